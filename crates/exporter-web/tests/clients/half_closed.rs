//! Clients that close their side after the request, as `nc -N` does.

use std::io::Write;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex};

use axum::Router;
use axum::routing::get;
use exporter_web::{Limits, RequestClass, blocking};

use crate::served::{Served, request, rest, status, wait_until};

/// What the handlers of a test wait for.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Gate {
    /// Waits until the gate is open.
    fn pass(&self) {
        let (state, opened) = &*self.0;
        let mut state = state.lock().unwrap();
        state.1 += 1;
        while !state.0 {
            state = opened.wait(state).unwrap();
        }
    }

    fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    fn waiting(&self) -> usize {
        self.0.0.lock().unwrap().1
    }
}

#[test]
fn client_that_half_closes_gets_its_response() {
    let gate = Gate::default();
    let passed = gate.clone();
    let page = move || {
        let gate = passed.clone();
        async move {
            blocking::run(move || gate.pass()).await.unwrap();
            "a page\n"
        }
    };
    let router = Router::new().route("/page", get(page));
    let served = Served::new(Limits::default(), router, |_| RequestClass::Page);
    let mut stream = served.connect();
    stream.write_all(request("/page").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    wait_until("the request", || gate.waiting() == 1);
    gate.open();
    let response = rest(&mut stream);
    assert_eq!(status(&response), Some(200), "{response:?}");
    assert!(response.ends_with("a page\n"), "{response:?}");
}
