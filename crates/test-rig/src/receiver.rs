//! A receiver of webhooks, which fails as receivers do.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With a status.
    Status(u16),
    /// With a status, and how many seconds the client has to wait.
    RetryAfter(u16, u64),
    /// With a status, and the head of the request in the body.
    Repeat(u16),
    /// The connection is closed without an answer, although the request has arrived.
    Close,
    /// Not at all: the connection stays open.
    Silence,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// When it was complete.
    pub at: Instant,
    /// The lines before the body, in lower case.
    pub head: String,
    /// The body.
    pub body: Value,
    /// How it was answered.
    pub answer: Answer,
}

impl Request {
    /// Its events.
    pub fn events(&self) -> Vec<Value> {
        self.body["events"].as_array().cloned().unwrap_or_default()
    }

    /// Whether it was answered with success.
    pub fn is_accepted(&self) -> bool {
        matches!(self.answer, Answer::Status(200..=299))
    }
}

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<Answer>,
    requests: Vec<Request>,
    /// Connections without an answer.
    open: Vec<TcpStream>,
}

/// A receiver on a port of the loopback.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    /// Answers requests in this way, one after the other, and later ones with the last of these; all with 200 without
    /// any.
    pub fn start(answers: &[Answer]) -> Self {
        Self::start_at(0, answers)
    }

    /// The same on a port that was free a moment ago.
    pub fn start_at(port: u16, answers: &[Answer]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let receiver = Receiver { address, state };
        receiver.answer(answers);
        let state = Arc::clone(&receiver.state);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        receiver
    }

    /// Answers from now on in this way.
    pub fn answer(&self, answers: &[Answer]) {
        let answers = if answers.is_empty() { &[Answer::Status(200)] } else { answers };
        self.lock().answers = answers.iter().copied().collect();
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}/hook?key=secret", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// The events of requests that were answered with success, in their order.
    pub fn accepted(&self) -> Vec<Value> {
        let requests = self.requests().into_iter().filter(Request::is_accepted);
        requests.flat_map(|request| request.events()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads one request, and answers it. A client that connects and leaves is ignored.
fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some((head, body)) = read(&mut stream) else { return };
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let answer = {
        let mut state = lock(state);
        let answer = match state.answers.len() {
            0 | 1 => state.answers.front().copied().unwrap_or(Answer::Status(200)),
            _ => state.answers.pop_front().unwrap(),
        };
        let head = head.clone();
        state.requests.push(Request { at: Instant::now(), head, body, answer });
        answer
    };
    let (status, more) = match answer {
        Answer::Status(status) | Answer::Repeat(status) => (status, String::new()),
        Answer::RetryAfter(status, seconds) => (status, format!("Retry-After: {seconds}\r\n")),
        Answer::Close => return,
        Answer::Silence => {
            lock(state).open.push(stream);
            return;
        }
    };
    let text = match answer {
        Answer::Repeat(_) => head.replace("\r\n", " "),
        _ => "as told\n".to_owned(),
    };
    let response = format!(
        "HTTP/1.1 {status} Told\r\n{more}Location: http://127.0.0.1:1/\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(response.as_bytes());
}

/// The head and the body of a request.
fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = head_end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length?.trim().parse().ok()?;
            if bytes.len() >= end + 4 + length {
                return Some((head, bytes[end + 4..end + 4 + length].to_vec()));
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
