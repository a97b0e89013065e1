//! As many connections as there may be, of a few clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use axum::Router;
use axum::routing::get;
use exporter_web::{Limits, RequestClass};

use crate::served::{Served, status};

fn served(limits: Limits) -> Served {
    let router = Router::new().route("/", get(|| async { "fine\n" }));
    Served::new(limits, router, |_| RequestClass::Ready)
}

/// A connection that was used once, and is idle now.
fn idle(served: &Served, own: [u8; 4]) -> TcpStream {
    let mut stream = served.connect_from(own);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
    stream
}

#[test]
fn four_addresses_do_not_lock_out_a_fifth() {
    let served = served(Limits::default());
    let limits = Limits::default();
    let mut open = Vec::new();
    for nth in 0..limits.connections {
        let own = [127, 0, 1, (nth % 4) as u8 + 1];
        // Half of them send nothing at all.
        open.push(if nth < 8 { idle(&served, own) } else { served.connect_from(own) });
    }
    for _ in 0..20 {
        let response = served.get_from([127, 0, 2, 1], "/");
        assert_eq!(status(&response), Some(200), "{response:?}");
    }
}
