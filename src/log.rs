//! The log on standard error. Nobody who logs waits for its reader: a paused `tee` or a log driver that blocks would
//! stop sweeps, and the end of the process.
//!
//! Lines are queued, and a thread writes them. If the queue is full, lines are dropped and counted. Threads inherit the
//! sandbox, so this one is started after it; until then, those who log write what standard error takes without waiting.
//! The thread holds no lock of standard error while it writes: panic messages take that lock.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::PanicHookInfo;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use exposition::unseen;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Deserializer};
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The size of the queue: some 1,500 lines. As much again is being written.
const QUEUE_BYTES: usize = 256 << 10;

/// How much is written at once: a pipe takes this much whole, also if other processes write to it (PIPE_BUF, pipe(7)),
/// and has room for it if it has any.
const PIECE_BYTES: usize = 4096;

/// How long the end of the process waits for the log. A reader that is not stalled needs milliseconds.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The stack of the thread. It formats one line at most.
const STACK_BYTES: usize = 256 << 10;

static STDERR: LazyLock<Arc<Log>> = LazyLock::new(|| Arc::new(Log::new(io::stderr())));

/// A queue of lines, and what they are written to.
struct Log {
    out: Box<dyn Output>,
    queue: Mutex<Queue>,
    /// Something was queued.
    filled: Condvar,
    /// Everything was written.
    emptied: Condvar,
    /// Lines that did not fit into the queue.
    refused: AtomicU64,
    /// Lines that could not be written.
    failed: AtomicU64,
}

trait Output: AsFd + Send + Sync {}

impl<T: AsFd + Send + Sync> Output for T {}

#[derive(Default)]
struct Queue {
    /// Whole lines.
    text: Vec<u8>,
    has_thread: bool,
    /// The thread is writing what was queued before.
    is_writing: bool,
}

impl Log {
    fn new(out: impl Output + 'static) -> Self {
        Log {
            out: Box::new(out),
            queue: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.out.as_fd()
    }

    /// Adds a line, or drops it if the queue has `limit` bytes.
    fn push(&self, line: &[u8], limit: usize) {
        let mut queue = self.queue();
        if queue.text.len() + line.len() > limit {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.text.extend_from_slice(line);
        if queue.has_thread {
            self.filled.notify_one();
        } else {
            self.write_until(&mut queue, Some(Instant::now()));
        }
    }

    /// Writes what is queued, as long as it can be written without waiting beyond a time.
    fn write_until(&self, queue: &mut Queue, end: Option<Instant>) {
        while !queue.text.is_empty() && is_writable(self.fd(), end) {
            let length = piece(&queue.text).len();
            self.write(&queue.text[..length]);
            queue.text.drain(..length);
        }
    }

    /// Writes all of a text, however long that takes.
    fn write(&self, mut text: &[u8]) {
        while !text.is_empty() {
            match rustix::io::write(self.fd(), piece(text)) {
                Ok(written) => text = &text[written..],
                Err(Errno::INTR) => {}
                // Another process that has it, too, made it non-blocking.
                Err(Errno::AGAIN) => {
                    is_writable(self.fd(), None);
                }
                Err(_) => {
                    let lines = text.split_inclusive(|byte| *byte == b'\n').count() as u64;
                    self.failed.fetch_add(lines, Ordering::Relaxed);
                    return;
                }
            }
        }
    }

    /// Writes what is queued, until the process ends. `report` gets the number of lines that were dropped since the call
    /// before, when there is room again.
    fn run(&self, report: impl Fn(u64)) {
        let mut reported = 0;
        loop {
            let mut queue = self.queue();
            queue.is_writing = false;
            if queue.text.is_empty() {
                self.emptied.notify_all();
            }
            while queue.text.is_empty() {
                queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let text = std::mem::take(&mut queue.text);
            queue.is_writing = true;
            drop(queue);
            // They would have followed this text.
            let refused = self.refused.load(Ordering::Relaxed);
            if refused > reported {
                report(refused - reported);
                reported = refused;
            }
            self.write(&text);
        }
    }

    /// Waits until everything is written, at most until a time; `false` if that is over.
    fn flush(&self, end: Option<Instant>) -> bool {
        let mut queue = self.queue();
        if !queue.has_thread {
            self.write_until(&mut queue, end);
            return queue.text.is_empty();
        }
        while queue.is_writing || !queue.text.is_empty() {
            let left = end.map_or(FLUSH_TIMEOUT, |end| end - Instant::now().min(end));
            if left.is_zero() {
                return false;
            }
            let waited = self.emptied.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// The whole lines at the beginning of a text that are written at once. A longer line is divided.
fn piece(text: &[u8]) -> &[u8] {
    let Some(most) = text.get(..PIECE_BYTES) else { return text };
    let end = most.iter().rposition(|byte| *byte == b'\n');
    &text[..end.map_or(PIECE_BYTES, |end| end + 1)]
}

/// Waits until something can be written, at most until a time; `false` if that is over.
fn is_writable(out: BorrowedFd<'_>, end: Option<Instant>) -> bool {
    loop {
        let left = end.map(|end| end - Instant::now().min(end));
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&out, PollFlags::OUT)], limit.as_ref()) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            // The write reports what is wrong.
            Err(_) => return true,
        }
    }
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// `key=value` pairs.
    Logfmt,
    /// One JSON object per line.
    Json,
}

/// The minimum levels that are logged: of all lines, and of some targets, such as crates.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFilter(Targets);

impl Default for LogFilter {
    fn default() -> Self {
        LogFilter(Targets::new().with_default(LevelFilter::INFO))
    }
}

impl LogFilter {
    /// Errors and warnings.
    pub fn warnings() -> Self {
        LogFilter(Targets::new().with_default(LevelFilter::WARN))
    }
}

impl FromStr for LogFilter {
    type Err = String;

    /// Parses `LEVEL` and `TARGET=LEVEL`, separated by commas. Without a level of all lines, that is info.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').try_fold(LogFilter::default(), |LogFilter(targets), part| {
            let (target, level) = match part.split_once('=') {
                Some((target, level)) => (Some(target.trim()), level.trim()),
                None => (None, part.trim()),
            };
            let level = match level {
                "error" => LevelFilter::ERROR,
                "warn" => LevelFilter::WARN,
                "info" => LevelFilter::INFO,
                "debug" => LevelFilter::DEBUG,
                _ => return Err(format!("{level:?} is not one of: error, warn, info, debug")),
            };
            // Without this, "ib-umad=debug" would be accepted, and log nothing.
            let is_path = |target: &str| {
                let is_word = |char: char| char.is_ascii_alphanumeric() || "_:".contains(char);
                !target.is_empty() && target.chars().all(is_word)
            };
            Ok(LogFilter(match target {
                None => targets.with_default(level),
                Some(target) if is_path(target) => targets.with_target(target, level),
                Some(target) => {
                    let example = "a target of log lines, such as ib_umad";
                    return Err(format!("{target:?} is not {example}"));
                }
            }))
        })
    }
}

impl<'de> Deserialize<'de> for LogFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Writes a line of the log.
#[derive(Clone, Copy, Debug)]
struct Writer(LogFormat);

impl Write for Writer {
    /// Gets a whole line at each call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        STDERR.push(shown(line, self.0).as_bytes(), QUEUE_BYTES);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line without characters that a terminal obeys: names in it come from devices and from the network. Both formats have
/// ASCII control characters escaped already.
fn shown(line: &[u8], format: LogFormat) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    if line.iter().all(|byte| *byte < 0x7f) {
        return text;
    }
    match format {
        LogFormat::Json => Cow::Owned(unseen::json(&text).into_owned()),
        LogFormat::Logfmt => {
            let printable = |char| if char == '\n' { char } else { unseen::printable(char) };
            text.chars().map(printable).collect()
        }
    }
}

/// Logs to standard error from now on, also panics.
pub fn start(filter: LogFilter, format: LogFormat) {
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;

    let writer = move || Writer(format);
    let layer = match format {
        // The fields of spans say enough: which fabric, or which request.
        LogFormat::Logfmt => tracing_logfmt::builder()
            .with_span_name(false)
            .with_span_path(false)
            .layer()
            .with_writer(writer)
            .boxed(),
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .with_span_list(false)
            .with_writer(writer)
            .boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter.0)).init();
    std::panic::set_hook(Box::new(|panic| {
        let text = panic_message(panic);
        // With room that lines do not take.
        STDERR.push(text.as_bytes(), 2 * QUEUE_BYTES);
        // A second panic of this thread would end the process at once.
        STDERR.flush(Some(Instant::now() + FLUSH_TIMEOUT));
    }));
}

/// Starts the thread that writes. In the sandbox, if there is one.
pub fn start_thread() {
    // With the lock, so that no line overtakes another.
    let mut queue = STDERR.queue();
    let run = || {
        STDERR.run(|lines| {
            tracing::warn!("{lines} log lines were dropped: the reader of standard error is slow");
        });
    };
    let thread = std::thread::Builder::new().name("log".into()).stack_size(STACK_BYTES).spawn(run);
    queue.has_thread = thread.is_ok();
    drop(queue);
    if let Err(error) = thread {
        tracing::warn!(%error, "log lines are written by all threads: cannot start a thread");
    }
}

/// How many lines were dropped.
pub fn dropped_lines() -> u64 {
    STDERR.refused.load(Ordering::Relaxed) + STDERR.failed.load(Ordering::Relaxed)
}

/// Writes the last lines of the process: those that are queued, and then an error, if any. A service does not wait for a
/// reader that is stalled.
pub fn finish(error: &str) {
    let is_service = STDERR.queue().has_thread;
    let end = is_service.then(|| Instant::now() + FLUSH_TIMEOUT);
    let is_flushed = STDERR.flush(end);
    let mut error = Queue { text: error.into(), ..Queue::default() };
    if is_flushed {
        STDERR.write_until(&mut error, end);
    }
}

/// The text of a panic, as the standard library writes it.
fn panic_message(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let mut text = format!("\nthread '{}' {panic}\n", thread.name().unwrap_or("<unnamed>"));
    let backtrace = Backtrace::capture();
    match backtrace.status() {
        BacktraceStatus::Captured => text.extend(["stack backtrace:\n", &backtrace.to_string()]),
        _ => text += "note: run with the environment variable RUST_BACKTRACE=1 for a backtrace\n",
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, pipe};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn level_is_that_of_the_target_or_of_all_lines() {
        use tracing::Level;
        let enables = |text: &str, target: &str, level: Level| {
            text.parse::<LogFilter>().unwrap().0.would_enable(target, &level)
        };
        assert!(enables("info,ib_umad=debug", "ib_umad::client", Level::DEBUG));
        assert!(!enables("info,ib_umad=debug", "ib_fabric", Level::DEBUG));
        assert!(enables("ib_umad=error", "ib_fabric", Level::INFO), "info is the default");
        assert!(!enables("ib_umad=error, warn", "ib_fabric", Level::INFO));
        for (text, problem) in [
            ("loud", "\"loud\" is not one of: error, warn, info, debug"),
            ("ib_umad=loud", "\"loud\" is not one of: error, warn, info, debug"),
            ("ib-umad=debug", "\"ib-umad\" is not a target of log lines, such as ib_umad"),
            ("=debug", "\"\" is not a target of log lines, such as ib_umad"),
            ("", "\"\" is not one of: error, warn, info, debug"),
        ] {
            assert_eq!(text.parse::<LogFilter>().unwrap_err(), problem);
        }
    }

    /// A log into a pipe of 4 KiB.
    fn into_pipe() -> (Arc<Log>, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, PIECE_BYTES).unwrap();
        (Arc::new(Log::new(writer)), reader)
    }

    fn start_thread(log: &Arc<Log>) {
        log.queue().has_thread = true;
        let (log, back) = (Arc::clone(log), Arc::clone(log));
        std::thread::spawn(move || {
            log.run(|lines| back.push(format!("{lines} dropped\n").as_bytes(), QUEUE_BYTES));
        });
    }

    fn flush(log: &Log, millis: u64) -> bool {
        log.flush(Some(Instant::now() + Duration::from_millis(millis)))
    }

    fn read(reader: &mut PipeReader, bytes: usize) -> String {
        let mut text = vec![0; bytes];
        reader.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_are_whole_and_in_order_also_those_before_the_thread() {
        let (log, mut reader) = into_pipe();
        let line = |number| format!("{number:0>99}\n");
        // More than the pipe takes without a reader.
        for number in 0..100 {
            log.push(line(number).as_bytes(), QUEUE_BYTES);
        }
        assert!(!flush(&log, 0), "nobody has read");
        assert_eq!(read(&mut reader, 100), line(0), "written without the thread");
        start_thread(&log);
        for number in 100..200 {
            log.push(line(number).as_bytes(), QUEUE_BYTES);
        }
        for number in 1..200 {
            assert_eq!(read(&mut reader, 100), line(number));
        }
        assert!(flush(&log, 60_000));
        assert_eq!(log.refused.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn lines_beyond_the_queue_are_dropped_counted_and_reported_in_their_place() {
        let (log, mut reader) = into_pipe();
        start_thread(&log);
        let half = "x".repeat(QUEUE_BYTES / 2 - 1) + "\n";
        log.push(half.as_bytes(), QUEUE_BYTES);
        // The thread has taken the first.
        while !log.queue().text.is_empty() {
            std::thread::yield_now();
        }
        for _ in 0..5 {
            log.push(half.as_bytes(), QUEUE_BYTES);
        }
        log.push(b"a panic\n", 2 * QUEUE_BYTES);
        assert_eq!(log.refused.load(Ordering::Relaxed), 3);
        assert!(!flush(&log, 50), "it waits for its time, not for the reader");
        for _ in 0..3 {
            assert_eq!(read(&mut reader, half.len()), half);
        }
        assert_eq!(read(&mut reader, 18), "a panic\n3 dropped\n");
        assert!(flush(&log, 60_000));
    }

    #[test]
    fn reader_that_is_gone_is_no_reason_to_stop() {
        let (log, reader) = into_pipe();
        drop(reader);
        log.push(b"one\n", QUEUE_BYTES);
        start_thread(&log);
        log.push(b"two\n", QUEUE_BYTES);
        assert!(flush(&log, 60_000));
        assert_eq!(log.failed.load(Ordering::Relaxed), 2);
        assert_eq!(log.refused.load(Ordering::Relaxed), 0, "the reader is not slow");
    }

    #[test]
    fn lines_have_no_characters_that_a_terminal_obeys() {
        let line = "node=\"a\u{9b}31m\u{202e}ä\"\n";
        let shown = |format| shown(line.as_bytes(), format).into_owned();
        assert_eq!(shown(LogFormat::Logfmt), "node=\"a\u{fffd}31m\u{fffd}ä\"\n");
        assert_eq!(shown(LogFormat::Json), "node=\"a\\u009b31m\\u202eä\"\n");
    }

    #[test]
    fn long_texts_are_written_in_pieces_of_whole_lines() {
        assert_eq!(piece(b"a\nb\n"), b"a\nb\n");
        let lines = "x".repeat(2_999) + "\n" + &"y".repeat(2_999) + "\n";
        assert_eq!(piece(lines.as_bytes()).len(), 3_000);
        assert_eq!(piece("x".repeat(5_000).as_bytes()).len(), PIECE_BYTES);
    }

    /// The test starts itself with a log that nobody reads, in which a thread panics; then with one that is read.
    #[test]
    fn panic_is_logged_and_ends_the_process_also_if_nobody_reads_the_log() {
        const PANIC: &str = "FABRIC_EXPORTER_TEST_LOG_PANIC";
        if std::env::var_os(PANIC).is_some() {
            start(LogFilter::default(), LogFormat::Logfmt);
            start_thread_and_panic();
        }
        let child = |full: bool| {
            let (mut reader, writer) = pipe().unwrap();
            rustix::pipe::fcntl_setpipe_size(&writer, PIECE_BYTES).unwrap();
            if full {
                (&writer).write_all(&[b'x'; PIECE_BYTES]).unwrap();
            }
            let name =
                "log::tests::panic_is_logged_and_ends_the_process_also_if_nobody_reads_the_log";
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", name, "--nocapture"]).env(PANIC, "1").stderr(writer);
            let mut child = command.stdout(Stdio::null()).spawn().unwrap();
            drop(command);
            let mut text = String::new();
            if !full {
                reader.read_to_string(&mut text).unwrap();
            }
            // It does not end by itself if the panic waits for the reader.
            let began = Instant::now();
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    assert_eq!(status.code(), Some(7));
                    return text;
                }
                let has_time = began.elapsed() < Duration::from_secs(60);
                if !has_time {
                    child.kill().unwrap();
                }
                assert!(has_time, "the panic waits for the reader of the log");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let text = child(false);
        assert!(text.contains("thread 'doomed' panicked at src/log.rs:"), "{text}");
        assert!(text.contains("\non purpose\n"), "{text}");
        assert!(text.contains("before the panic") && text.ends_with("the last line\n"), "{text}");
        child(true);
    }

    fn start_thread_and_panic() -> ! {
        super::start_thread();
        tracing::warn!("before the panic");
        let doomed = std::thread::Builder::new().name("doomed".into());
        assert!(doomed.spawn(|| panic!("on purpose")).unwrap().join().is_err());
        finish("the last line\n");
        std::process::exit(7)
    }
}
