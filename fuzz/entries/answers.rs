//! The responses of another exporter to the queries of `history --url`.
//!
//! The bytes are its responses, separated by NUL; a server on the loopback sends them in turn, from the
//! start again after the last one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};

use fabric_exporter::history_client::HistoryClient;
use fabric_exporter::remote::Access;

use super::history::ask;

/// The responses.
#[derive(Default)]
struct Answers {
    status: u16,
    bodies: Vec<Vec<u8>>,
    next: usize,
}

static ANSWERS: Mutex<Answers> = Mutex::new(Answers { status: 200, bodies: Vec::new(), next: 0 });

pub fn run(bytes: &[u8]) {
    static API: OnceLock<HistoryClient> = OnceLock::new();
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (&flags, rest) = bytes.split_first().unwrap_or((&0, &[]));
    *ANSWERS.lock().unwrap() = Answers {
        status: if flags & 2 == 0 { 200 } else { 422 },
        bodies: rest.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
        next: 0,
    };
    ask(API.get_or_init(|| HistoryClient::new(&serve(), &Access::default()).unwrap()));
}

/// Starts a server that lives as long as the process, and returns its address.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || converse(stream));
        }
    });
    url
}

/// Serves one client until it disconnects.
fn converse(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut out = stream.try_clone().ok()?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let small = line.trim().to_ascii_lowercase();
            if let Some(value) = small.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if small.is_empty() {
                break;
            }
        }
        let mut asked = vec![0; length];
        lines.read_exact(&mut asked).ok()?;
        let (status, body) = ANSWERS.lock().unwrap().next();
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n");
        out.write_all(&[head.as_bytes(), &body].concat()).ok()?;
    }
}

impl Answers {
    fn next(&mut self) -> (u16, Vec<u8>) {
        let body = self.bodies.get(self.next % self.bodies.len().max(1));
        self.next += 1;
        (self.status, body.cloned().unwrap_or_default())
    }
}
