//! What commands print on a terminal: colors, the width of lines, and progress.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

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
            ColorChoice::Auto => std::io::stdout().is_terminal() && !is_refused(),
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
    let stdout = std::io::stdout();
    let mut terminal = [PollFd::new(&stdout, PollFlags::empty())];
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut terminal, Some(&Timespec::default())).is_ok()
        && terminal[0].revents().intersects(gone)
}

/// Sends SIGHUP to this process when the terminal that standard output is now is gone. The kernel sends it only to the
/// session of a terminal.
pub fn hang_up_when_gone() {
    if !std::io::stdout().is_terminal() {
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
    let stdout = std::io::stdout();
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
        if !std::io::stderr().is_terminal() {
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
                let mut stderr = std::io::stderr();
                let _ =
                    write!(stderr, "\r\x1b[K{what}: {seconds}{of} s").and_then(|()| stderr.flush());
            }
            if began.elapsed() >= PATIENCE {
                let _ = write!(std::io::stderr(), "\r\x1b[K");
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
    text.chars().map(printable_char).collect()
}

fn printable_char(char: char) -> char {
    let is_direction =
        matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if char.is_control() || is_direction { char::REPLACEMENT_CHARACTER } else { char }
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
            line.push(printable_char(char));
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
    fn colors_are_off_in_a_pipe_and_when_refused() {
        assert!(ColorChoice::Always.is_on() && !ColorChoice::Never.is_on());
        assert_eq!(Color::paint(Some(Color::Bad), "bad", true), "\x1b[31mbad\x1b[0m");
        assert_eq!(Color::paint(Some(Color::Bad), "bad", false), "bad");
        assert_eq!(Color::paint(None, "bad", true), "bad");
    }
}
