//! A server in this process, and clients of it that send bytes as no library would.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use exporter_web::{Limits, RequestClass, Security, Server, WebMetrics};
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};

/// Nothing here should take so long; a test that waits longer fails.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Served {
    pub address: SocketAddr,
    _server: Server,
    security: Arc<Security>,
    pub runtime: tokio::runtime::Runtime,
}

impl Served {
    pub fn new(limits: Limits, router: Router, class: fn(&str) -> RequestClass) -> Self {
        Served::secured(limits, router, class, Security::load(None).unwrap())
    }

    pub fn secured(
        limits: Limits,
        router: Router,
        class: fn(&str) -> RequestClass,
        security: Security,
    ) -> Self {
        let security = Arc::new(security);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            // As many as there are permits for pages.
            .max_blocking_threads(4)
            .enable_all()
            .build()
            .unwrap();
        let (address, server) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server =
                Server::new(Arc::clone(&security), router, limits, WebMetrics::default(), class);
            server.serve(listener);
            (address, server)
        });
        Served { address, _server: server, security, runtime }
    }

    /// Reads the web config file again when it changes.
    pub fn watch(&self) {
        let security = Arc::clone(&self.security);
        self.runtime.spawn(async move {
            let hangup = signal(SignalKind::hangup()).unwrap();
            security.watch(hangup).await;
        });
    }

    pub fn connect(&self) -> TcpStream {
        self.connect_from([127, 0, 0, 1])
    }

    /// A connection from an address of the loopback.
    pub fn connect_from(&self, own: [u8; 4]) -> TcpStream {
        self.connect_with(own, |_| {})
    }

    /// A connection that is reset when it is dropped.
    pub fn connect_to_reset(&self) -> TcpStream {
        self.connect_with([127, 0, 0, 1], |socket| socket.set_zero_linger().unwrap())
    }

    fn connect_with(&self, own: [u8; 4], set: impl FnOnce(&TcpSocket)) -> TcpStream {
        self.runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            set(&socket);
            socket.bind((own, 0).into()).unwrap();
            let stream = socket.connect(self.address).await.unwrap().into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            stream.set_write_timeout(Some(LONG)).unwrap();
            stream
        })
    }

    /// The response to a request for a path.
    pub fn get(&self, path: &str) -> String {
        self.get_from([127, 0, 0, 1], path)
    }

    /// The same for a client with an address of the loopback.
    pub fn get_from(&self, own: [u8; 4], path: &str) -> String {
        let mut stream = self.connect_from(own);
        let _ = stream.write_all(request(path).as_bytes());
        rest(&mut stream)
    }
}

/// The last request of a connection.
pub fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

/// What comes until the other side closes or resets the connection.
pub fn rest(stream: &mut TcpStream) -> String {
    let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
        all.extend_from_slice(&chunk[..bytes]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The status code of a response.
pub fn status(response: &str) -> Option<u16> {
    response.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
