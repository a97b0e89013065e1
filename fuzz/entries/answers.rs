//! What a Prometheus, or another exporter, answers to who asks for what happened.
//!
//! The bytes are its answers, one after the other and then over again, with a NUL between them: a
//! server on the loopback gives them to everybody.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};

use fabric_exporter::history_sources::Api;
use fabric_exporter::history_sources::prometheus::Prometheus;
use fabric_exporter::remote::Access;
use fabric_history::Source;

use super::history::ask;

/// What `time()` comes to, unless the script has an answer to that, too.
const NOW: &[u8] = br#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700010000,"1700010000"]}]}}"#;

/// What is answered.
#[derive(Default)]
struct Answers {
    /// Whether the time is told as it is.
    tells_time: bool,
    status: u16,
    bodies: Vec<Vec<u8>>,
    next: usize,
}

static ANSWERS: Mutex<Answers> =
    Mutex::new(Answers { tells_time: true, status: 200, bodies: Vec::new(), next: 0 });

pub fn run(bytes: &[u8]) {
    static ASKED: OnceLock<[Box<dyn Source + Send + Sync>; 2]> = OnceLock::new();
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (&flags, rest) = bytes.split_first().unwrap_or((&0, &[]));
    *ANSWERS.lock().unwrap() = Answers {
        tells_time: flags & 1 == 0,
        status: if flags & 2 == 0 { 200 } else { 422 },
        bodies: rest.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
        next: 0,
    };
    let asked = ASKED.get_or_init(|| {
        let url = serve();
        [
            Box::new(Prometheus::new(&url, &Access::default()).unwrap()),
            Box::new(Api::new(&url, &Access::default()).unwrap()),
        ]
    });
    ask(&*asked[usize::from(flags >> 2 & 1)]);
}

/// A server for as long as the process lives; its address.
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

/// Answers one who asks, until he goes.
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
        let (status, body) = ANSWERS.lock().unwrap().next(&asked);
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n");
        out.write_all(&[head.as_bytes(), &body].concat()).ok()?;
    }
}

impl Answers {
    fn next(&mut self, asked: &[u8]) -> (u16, Vec<u8>) {
        if self.tells_time && asked.starts_with(b"query=vector(time") {
            return (200, NOW.to_vec());
        }
        let body = self.bodies.get(self.next % self.bodies.len().max(1));
        self.next += 1;
        (self.status, body.cloned().unwrap_or_default())
    }
}
