//! Limits of the server: slow clients, many clients, large requests, and malformed ones.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use exporter_web::{Limits, RequestClass, Security, Server, WebMetrics};
use proptest::prelude::*;

use crate::web_config::raw::{connect, connect_from, rest, say, status};
use test_rig::wait_until;

/// A server in this process, with limits that a test need not wait for.
struct Served {
    address: String,
    server: Option<Server>,
    runtime: tokio::runtime::Runtime,
}

/// More than fits into the sockets between us.
const LARGE: usize = 64 << 20;

impl Served {
    fn new(limits: Limits) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (address, server) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let router = Router::new()
                .route("/", get(|| async { "fine\n" }))
                .route("/never", get(std::future::pending::<()>))
                .route("/large", get(|| async { vec![b'x'; LARGE] }));
            let security = Security::load(None).unwrap();
            let server =
                Server::new(Arc::new(security), router, limits, WebMetrics::default(), |_| {
                    RequestClass::Ready
                });
            server.serve(listener);
            (address, server)
        });
        Served { address, server: Some(server), runtime }
    }

    /// The status of an ordinary request, if it is answered.
    fn status(&self) -> Option<u16> {
        let mut stream = connect(&self.address);
        let _ = stream.write_all(REQUEST);
        status(&rest(&mut stream))
    }

    fn is_fine(&self) -> bool {
        self.status() == Some(200)
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn brisk() -> Limits {
    Limits { check_interval: millis(10), ..Limits::default() }
}

/// Sends a head piece by piece, until the connection is closed.
fn trickle(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(millis(5))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "a head may take for ever");
        let gone = match stream.read(&mut [0; 64]) {
            Ok(0) => true,
            Ok(_) => panic!("an answer to half a request"),
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        if gone || stream.write_all(b"X: y\r\n").is_err() {
            return;
        }
    }
}

#[test]
fn slow_head_times_out() {
    let served = Served::new(Limits { header_timeout: millis(1_000), ..brisk() });
    trickle(&mut connect(&served.address));
    assert_eq!(rest(&mut connect(&served.address)), b"", "a head that never begins");
    // The same for the second request of a connection.
    let mut stream = connect(&served.address);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = vec![0; 1024];
    let bytes = stream.read(&mut answer).unwrap();
    assert_eq!(status(&answer[..bytes]), Some(200));
    trickle(&mut stream);
    assert!(served.is_fine());
}

#[test]
fn connection_may_be_idle_until_the_idle_timeout() {
    let served =
        Served::new(Limits { header_timeout: millis(500), idle_timeout: millis(6_000), ..brisk() });
    let mut stream = connect(&served.address);
    let mut answer = vec![0; 1024];
    for _ in 0..2 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let bytes = stream.read(&mut answer).unwrap();
        assert_eq!(status(&answer[..bytes]), Some(200));
        // Longer than a head may take, and far shorter than a connection may be idle.
        std::thread::sleep(millis(600));
    }
    assert_eq!(rest(&mut stream), b"");
}

#[test]
fn client_that_does_not_read_is_disconnected() {
    let served = Served::new(Limits { write_stall_timeout: millis(2_000), ..brisk() });
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // The end of the connection shows as a reset.
    wait_until(Duration::from_secs(60), "the end of the connection", || {
        stream.take_error().unwrap().or_else(|| stream.write(b" ").err())
    });
    // One that reads slowly gets all of it.
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let (mut all, mut chunk) = (0, vec![0; 1 << 20]);
    loop {
        let bytes = stream.read(&mut chunk).unwrap();
        if bytes == 0 {
            break;
        }
        all += bytes;
        std::thread::sleep(millis(5));
    }
    assert!(all > LARGE, "{all}");
}

#[test]
fn handler_that_does_not_answer_is_a_503() {
    let served = Served::new(Limits { handler_timeout: millis(100), ..brisk() });
    let answer = say(&served.address, b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(status(&answer), Some(503), "a client that half closes gets a response");
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /never HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(status(&rest(&mut stream)), Some(503));
}

#[test]
fn response_has_to_be_read_within_its_timeout() {
    let served = Served::new(Limits { response_timeout: millis(300), ..brisk() });
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let (mut all, mut chunk) = (0, vec![0; 64 << 10]);
    while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
        all += bytes;
        std::thread::sleep(millis(5));
    }
    assert!(all < LARGE, "{all}");
}

/// Opens connections of an address that ask nothing.
fn open_idle(served: &Served, own: [u8; 4], count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| connect_from(own, &served.address)).collect()
}

#[test]
fn many_connections_of_one_client_leave_room_for_others() {
    let limits = Limits { connections: 20, connections_per_client: 10, ..brisk() };
    let served = Served::new(limits);
    let mut idle = open_idle(&served, [127, 0, 0, 2], 100);
    // For each beyond its limit its oldest one is closed at once.
    let closed = &mut idle[..90];
    assert!(closed.iter_mut().all(|stream| rest(stream).is_empty()));
    for _ in 0..50 {
        assert!(served.is_fine());
    }
}

#[test]
fn full_server_has_room_for_a_newcomer() {
    let served = Served::new(Limits { connections: 20, ..brisk() });
    let idle = open_idle(&served, [127, 0, 0, 1], 100);
    assert!(served.is_fine());
    drop(idle);
    assert!(served.is_fine());
}

#[test]
fn idle_connections_end_sooner_while_the_server_is_crowded() {
    let limits = Limits { connections: 5, header_timeout: millis(500), ..brisk() };
    let served = Served::new(limits);
    let mut idle: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = connect(&served.address);
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let bytes = stream.read(&mut [0; 1024]).unwrap();
            assert!(bytes > 0);
            stream
        })
        .collect();
    // Nobody else connects, and the idle timeout is far away. Two are no crowd.
    for stream in &idle {
        stream.set_nonblocking(true).unwrap();
    }
    wait_until(Duration::from_secs(60), "the end of two", || {
        idle.retain(|stream| {
            stream.peek(&mut [0; 1]).is_err_and(|it| it.kind() == ErrorKind::WouldBlock)
        });
        (idle.len() == 2).then_some(())
    });
}

#[test]
fn request_beyond_the_limit_is_a_503() {
    let served = Served::new(Limits { concurrent_requests: 2, ..brisk() });
    let never: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = connect(&served.address);
            stream.write_all(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream
        })
        .collect();
    wait_until(Duration::from_secs(60), "the limit", || {
        (served.status() == Some(503)).then_some(())
    });
    drop(never);
    wait_until(Duration::from_secs(60), "room", || served.is_fine().then_some(()));
}

#[test]
fn large_heads_and_bodies_are_refused() {
    let served = Served::new(Limits::default());
    let head = |bytes: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\nConnection: close\r\n\r\n",
            "y".repeat(bytes)
        )
    };
    for (request, expected) in [
        (head(8 << 10), 200),
        (head(80 << 10), 431),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(200)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "y".repeat(50_000)), 431),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n".into(), 413),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n".into(), 413),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx".into(),
            405,
        ),
    ] {
        let mut stream = connect(&served.address);
        let _ = stream.write_all(request.as_bytes());
        let answer = rest(&mut stream);
        assert_eq!(
            status(&answer),
            Some(expected),
            "{:.60}: {:.200}",
            request,
            String::from_utf8_lossy(&answer)
        );
    }
}

#[test]
fn shutdown_waits_for_responses_and_not_for_idle_connections() {
    let mut served = Served::new(brisk());
    let mut idle = connect(&served.address);
    idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let _ = idle.read(&mut [0; 1024]).unwrap();
    let mut large = connect(&served.address);
    large.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut some = vec![0; 1 << 16];
    large.read_exact(&mut some).unwrap();
    let reader = std::thread::spawn(move || rest(&mut large).len() + some.len());
    let ending = served.server.take().unwrap();
    let began = Instant::now();
    served.runtime.block_on(ending.shutdown(Duration::from_secs(60)));
    assert!(began.elapsed() < Duration::from_secs(50), "it waits for an idle connection");
    assert!(reader.join().unwrap() > LARGE);
    assert_eq!(rest(&mut idle), b"");
}

#[test]
fn malformed_requests_are_a_400_or_closed() {
    let served = Served::new(brisk());
    for nonsense in [
        &b"\0\0\0\0"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
    ] {
        let answer = say(&served.address, nonsense);
        assert!(matches!(status(&answer), Some(400) | None), "{nonsense:?}: {answer:?}");
        assert!(served.is_fine());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_no_harm(all in prop::collection::vec(noise(), 50)) {
        let served = Served::new(brisk());
        for bytes in &all {
            let answer = say(&served.address, bytes);
            let status = status(&answer);
            prop_assert!(answer.is_empty() || status.is_some(), "{answer:?}");
            prop_assert!(status != Some(500), "{answer:?}");
        }
        prop_assert!(served.is_fine());
    }
}

/// Requests with a wrong byte somewhere, and bytes at random.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let request =
        b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nAccept: */*\r\n\r\nabc";
    let corrupt = (0..request.len(), any::<u8>(), 0..request.len()).prop_map(|(at, byte, end)| {
        let mut bytes = request.to_vec();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - end / 3);
        bytes
    });
    prop_oneof![corrupt, prop::collection::vec(any::<u8>(), 0..300)]
}
