//! What commands print on a terminal: colors, the width of lines, and progress.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use exposition::unseen;
use ib_health::Verdict;

/// When the output is colored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in a file or pipe
    Always,
    /// Not at all
    Never,
}

impl ColorChoice {
    /// Whether standard output is colored.
    pub fn is_on(self) -> bool {
        // https://no-color.org: set and not empty.
        let is_refused = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            ColorChoice::Auto => io::stdout().is_terminal() && !is_refused(),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        }
    }
}

/// A color with a meaning. The word beside it says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Nothing to do.
    Good,
    /// To be looked at.
    Warning,
    /// To be fixed.
    Bad,
}

impl Color {
    /// The color of a verdict; none for unknown.
    pub fn of(verdict: Verdict) -> Option<Color> {
        match verdict {
            Verdict::Ok => Some(Color::Good),
            Verdict::Unknown => None,
            Verdict::Watch => Some(Color::Warning),
            Verdict::Bad => Some(Color::Bad),
        }
    }

    /// A text in this color, if colors are on.
    pub fn paint(color: Option<Color>, text: &str, is_on: bool) -> String {
        let code = match color.filter(|_| is_on) {
            None => return text.to_owned(),
            Some(Color::Good) => 32,
            Some(Color::Warning) => 33,
            Some(Color::Bad) => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// How often it is checked whether the terminal still exists. Most that close one send SIGHUP.
pub const GONE_CHECK: Duration = Duration::from_millis(500);

/// Whether standard output is a terminal whose other side was closed.
pub fn is_gone() -> bool {
    let stdout = io::stdout();
    let mut terminal = [PollFd::new(&stdout, PollFlags::empty())];
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut terminal, Some(&Timespec::default())).is_ok()
        && terminal[0].revents().intersects(gone)
}

/// Sends SIGHUP to this process when the terminal that standard output is now is gone. The kernel sends it only to the
/// session of a terminal.
pub fn hang_up_when_gone() {
    if !io::stdout().is_terminal() {
        return;
    }
    // Without the thread it ends as before, when it writes.
    let _ = std::thread::Builder::new().name("terminal".into()).spawn(|| {
        while !is_gone() {
            std::thread::sleep(GONE_CHECK);
        }
        let _ = kill_process(getpid(), Signal::HUP);
    });
}

/// The columns and rows of the terminal that standard output is; `None` for a file or pipe.
pub fn size() -> Option<(usize, usize)> {
    let stdout = io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|_| stdout.is_terminal())?;
    // A serial console may not know its size.
    let known = |count: u16, usual| if count == 0 { usual } else { usize::from(count) };
    Some((known(size.ws_col, 80), known(size.ws_row, 24)))
}

/// Operations that take less have no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line on standard error while an operation takes longer than a second: what is done, and for how long. Only on a
/// terminal; the line is deleted when this is dropped.
#[derive(Debug)]
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts an operation; with its duration, if that is known.
    pub fn start(what: impl Into<String>, length: Option<Duration>) -> Self {
        if !io::stderr().is_terminal() {
            return Progress(None);
        }
        let (what, began) = (what.into(), Instant::now());
        let (end, ended) = channel();
        let report = move || {
            let mut pause = PATIENCE;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = Duration::from_millis(250);
                let seconds = began.elapsed().as_secs();
                let of = length.map(|it| format!(" of {}", it.as_secs())).unwrap_or_default();
                let mut stderr = io::stderr();
                let _ =
                    write!(stderr, "\r\x1b[K{what}: {seconds}{of} s").and_then(|()| stderr.flush());
            }
            if began.elapsed() >= PATIENCE {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        };
        Progress(Some((end, std::thread::spawn(report))))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // A panic of it is on standard error.
            let _ = thread.join();
        }
    }
}

/// A text without what would move a terminal's cursor or change the direction of the text: names
/// come from devices and from the network.
pub fn printable(text: &str) -> String {
    text.chars().map(unseen::printable).collect()
}

/// Writes lines of text to a terminal, with printable characters only.
#[derive(Debug)]
pub struct PrintableWriter<W> {
    out: W,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl<W: Write> PrintableWriter<W> {
    /// One that writes to this.
    pub fn new(out: W) -> Self {
        PrintableWriter { out, rest: Vec::new() }
    }
}

impl<W: Write> Write for PrintableWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [&self.rest, bytes].concat();
        let (mut text, mut left) = (String::new(), &*all);
        self.rest.clear();
        while !left.is_empty() {
            let (valid, after) = match std::str::from_utf8(left) {
                Ok(valid) => (valid, None),
                Err(error) => {
                    let valid = left.get(..error.valid_up_to()).unwrap_or_default();
                    (std::str::from_utf8(valid).unwrap_or_default(), Some(error.error_len()))
                }
            };
            let shown =
                |char| if matches!(char, '\n' | '\t') { char } else { unseen::printable(char) };
            text.extend(valid.chars().map(shown));
            left = &left[valid.len()..];
            match after {
                None => {}
                // More bytes of it may follow.
                Some(None) => self.rest = std::mem::take(&mut left).to_vec(),
                Some(Some(length)) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    left = &left[length..];
                }
            }
        }
        self.out.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text in lines of at most this many characters, broken at blanks where possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut lines, mut line, mut length) = (Vec::new(), String::new(), 0);
    for word in text.split_whitespace() {
        if length > 0 && length + 1 + word.chars().count() <= width {
            line.push(' ');
            length += 1;
        } else if length > 0 {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        for char in word.chars() {
            if length == width {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            line.push(unseen::printable(char));
            length += 1;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks_and_long_words_within() {
        for (text, width, lines) in [
            ("", 10, &[""][..]),
            ("went down 3 times", 9, &["went down", "3 times"]),
            ("went  down", 4, &["went", "down"]),
            ("abcdefgh ij", 3, &["abc", "def", "gh", "ij"]),
            ("a\x1b[2J", 80, &["a\u{fffd}[2J"]),
            ("ab", 0, &["a", "b"]),
        ] {
            assert_eq!(wrap(text, width), lines, "{text} {width}");
        }
    }

    #[test]
    fn lines_on_a_terminal_are_printable_however_they_are_divided() {
        let text = "a,b\tc\nx\u{9b}31m,\u{202e}ä葉\r\u{1b}[2J\n";
        let shown = "a,b\tc\nx\u{fffd}31m,\u{fffd}ä葉\u{fffd}\u{fffd}[2J\n";
        for size in 1..text.len() {
            let mut out = PrintableWriter::new(Vec::new());
            text.as_bytes().chunks(size).for_each(|part| out.write_all(part).unwrap());
            assert_eq!(String::from_utf8(out.out).unwrap(), shown, "{size} bytes at a time");
        }
        let mut out = PrintableWriter::new(Vec::new());
        out.write_all(b"\xff\xe2\x80x\n").unwrap();
        assert_eq!(out.out, "\u{fffd}\u{fffd}x\n".as_bytes());
    }

    #[test]
    fn colors_are_off_in_a_pipe_and_when_refused() {
        assert!(ColorChoice::Always.is_on() && !ColorChoice::Never.is_on());
        assert_eq!(Color::paint(Some(Color::Bad), "bad", true), "\x1b[31mbad\x1b[0m");
        assert_eq!(Color::paint(Some(Color::Bad), "bad", false), "bad");
        assert_eq!(Color::paint(None, "bad", true), "bad");
    }
}
