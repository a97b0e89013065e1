//! What clients cannot do to us: be slow, be many, say too much, or talk nonsense.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use exporter_web::limits::Limits;
use exporter_web::security::Security;
use exporter_web::serving::Server;
use proptest::prelude::*;
use rustls::ClientConnection;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::web_config::raw::{connect, rest, say, status};
use crate::web_config::{Site, TLS};
use test_rig::certs::Ca;
use test_rig::wait_until;

/// A server in this process, with limits that a test does not have to wait for.
struct Served {
    address: String,
    server: Option<Server>,
    runtime: tokio::runtime::Runtime,
}

/// More than fits into the sockets between us.
const LARGE: usize = 64 << 20;

impl Served {
    fn new(limits: Limits) -> Self {
        Self::with(None, limits)
    }

    /// One with a web config file.
    fn with(file: Option<&Path>, limits: Limits) -> Self {
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
            let (security, _) = Security::load(file).unwrap();
            let server = Server::new(Arc::new(security), limits);
            server.serve(listener, router);
            (address, server)
        });
        Served { address, server: Some(server), runtime }
    }

    /// What becomes of an ordinary request.
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
    Limits { look_every: millis(10), ..Limits::default() }
}

/// Sends a little of a head now and then, until it is not taken any more.
fn trickle(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(millis(5))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "a head may trickle in for ever");
        let gone = match stream.read(&mut [0; 64]) {
            Ok(0) => true,
            Ok(_) => panic!("an answer to half a request"),
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        if gone || stream.write_all(b"X: y\r\n").is_err() {
            return;
        }
    }
}

#[test]
fn a_head_that_trickles_in_is_not_waited_for() {
    let served = Served::new(Limits { asking: millis(1_000), ..brisk() });
    trickle(&mut connect(&served.address));
    assert_eq!(rest(&mut connect(&served.address)), b"", "nor is one that never begins");
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
fn a_connection_may_rest_and_not_for_ever() {
    let served = Served::new(Limits { asking: millis(1_000), resting: millis(4_000), ..brisk() });
    let mut stream = connect(&served.address);
    let mut answer = vec![0; 1024];
    for _ in 0..2 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let bytes = stream.read(&mut answer).unwrap();
        assert_eq!(status(&answer[..bytes]), Some(200));
        // Longer than a head may take.
        std::thread::sleep(millis(1_100));
    }
    assert_eq!(rest(&mut stream), b"");
}

#[test]
fn a_client_that_does_not_read_is_not_waited_for() {
    let served = Served::new(Limits { taking: millis(2_000), ..brisk() });
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // It is there until the other side has enough, which shows in that the connection is reset.
    wait_until(Duration::from_secs(60), "the end of the connection", || {
        stream.take_error().unwrap().or_else(|| stream.write(b" ").err())
    });
    // One that reads, if slowly, has it all.
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

/// Asks for / twice by one connection of HTTP/2 (RFC 9113), and lets nothing of the answers through.
fn hold_back(address: &str, ca: &Ca) -> impl Sized + use<> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let client = ClientConnection::new(Arc::new(config), "127.0.0.1".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(client, connect(address));
    let mut said = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS: a window of 0 for each answer.
    said.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    for request in [1, 3] {
        // HEADERS, and no more: GET, https, / by their numbers in HPACK's table.
        said.extend([0, 0, 3, 1, 5, 0, 0, 0, request, 0x82, 0x87, 0x84]);
    }
    stream.write_all(&said).unwrap();
    stream.flush().unwrap();
    stream
}

#[test]
fn an_answer_that_http_2_holds_back_is_not_waited_for() {
    let site = Site::new(TLS);
    let served = Served::with(
        Some(&site.path().join("web.yml")),
        Limits { requests: 2, whole: Duration::MAX, ..brisk() },
    );
    let _held = hold_back(&served.address, &site.ca);
    let (agent, url) = (site.ca.agent(None), format!("https://{}/", served.address));
    let comes = |status: u16, what| {
        wait_until(Duration::from_secs(60), what, || {
            (agent.get(&url).call().ok()?.status() == status).then_some(())
        });
    };
    comes(503, "the limit");
    comes(200, "room");
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    let served = Served::new(Limits { answering: millis(100), ..brisk() });
    let answer = say(&served.address, b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(status(&answer), None, "who half closes is gone");
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /never HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(status(&rest(&mut stream)), Some(503));
}

#[test]
fn an_answer_is_to_be_taken_in_time() {
    let served = Served::new(Limits { whole: millis(300), ..brisk() });
    let mut stream = connect(&served.address);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let (mut all, mut chunk) = (0, vec![0; 64 << 10]);
    while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
        all += bytes;
        std::thread::sleep(millis(5));
    }
    assert!(all < LARGE, "{all}");
}

#[test]
fn of_many_connections_who_does_least_gives_way() {
    let served = Served::new(Limits { connections: 20, ..brisk() });
    let idle: Vec<TcpStream> = (0..100).map(|_| connect(&served.address)).collect();
    wait_until(Duration::from_secs(60), "a place", || served.is_fine().then_some(()));
    drop(idle);
    assert!(served.is_fine());
}

#[test]
fn a_request_too_many_is_told_so() {
    let served = Served::new(Limits { requests: 2, ..brisk() });
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
fn what_is_too_large_is_refused() {
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
fn the_end_waits_for_answers_on_their_way_and_not_for_who_rests() {
    let mut served = Served::new(brisk());
    let mut resting = connect(&served.address);
    resting.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let _ = resting.read(&mut [0; 1024]).unwrap();
    let mut large = connect(&served.address);
    large.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut some = vec![0; 1 << 16];
    large.read_exact(&mut some).unwrap();
    let reader = std::thread::spawn(move || rest(&mut large).len() + some.len());
    let ending = served.server.take().unwrap();
    let began = Instant::now();
    served.runtime.block_on(ending.end(Duration::from_secs(60)));
    assert!(began.elapsed() < Duration::from_secs(50), "it waits for who rests");
    assert!(reader.join().unwrap() > LARGE);
    assert_eq!(rest(&mut resting), b"");
}

#[test]
fn nonsense_is_answered_with_400_or_not_at_all() {
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
    fn bytes_at_random_do_no_harm(all in prop::collection::vec(noise(), 50)) {
        let served = Served::new(brisk());
        for bytes in &all {
            let answer = say(&served.address, bytes);
            let told = status(&answer);
            prop_assert!(answer.is_empty() || told.is_some(), "{answer:?}");
            prop_assert!(told != Some(500), "{answer:?}");
        }
        prop_assert!(served.is_fine());
    }
}

/// Requests with something wrong somewhere, and bytes that are none.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let request =
        b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nAccept: */*\r\n\r\nabc";
    let spoilt = (0..request.len(), any::<u8>(), 0..request.len()).prop_map(|(at, byte, end)| {
        let mut bytes = request.to_vec();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - end / 3);
        bytes
    });
    prop_oneof![spoilt, prop::collection::vec(any::<u8>(), 0..300)]
}
