//! A program on a pseudo-terminal: keys are typed, and the screen is read as a person sees it.

mod picture;

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::child::Running;
use super::pause;

/// How long the screen may take to show what a test waits for.
const LIMIT: Duration = Duration::from_secs(60);

/// The name of a new terminal, and its other side.
fn new_terminal() -> (String, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a pseudo-terminal");
    grantpt(&master).expect("a terminal for this user");
    unlockpt(&master).expect("a terminal that can be opened");
    let name = ptsname(&master, Vec::new()).expect("the name of the terminal");
    (name.into_string().expect("a path in UTF-8"), File::from(master))
}

fn open(path: &str) -> File {
    File::options().read(true).write(true).open(path).expect("the terminal")
}

/// Has a command run on a terminal that is not that of its session, as below a supervisor: no SIGHUP tells that it is
/// closed. Returns its other side.
pub fn attach(command: &mut Command) -> File {
    let (path, master) = new_terminal();
    let terminal = || Stdio::from(open(&path));
    command.stdin(terminal()).stdout(terminal()).stderr(terminal());
    master
}

/// A program and its terminal.
pub struct OnTerminal {
    running: Running,
    master: File,
    /// Kept open: its modes are read after the program has ended.
    terminal: File,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl OnTerminal {
    /// Starts a program on a terminal of this size.
    pub fn spawn(program: &str, args: &[&str], rows: u16, columns: u16) -> Self {
        let (path, master) = new_terminal();
        let terminal = open(&path);
        set_size(&master, rows, columns);
        // setsid makes it the controlling terminal, so that changes of its size are signalled.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(program)
            .args(args)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        let stdio = || Stdio::from(open(&path));
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let running = Running::spawn(program, &mut command);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut output, shown) = (master.try_clone().expect("a descriptor"), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap_or_else(PoisonError::into_inner).process(&bytes[..count]);
            }
        });
        Self { running, master, terminal, screen }
    }

    /// Types keys.
    pub fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        self.lock().screen_mut().set_size(rows, columns);
        set_size(&self.master, rows, columns);
    }

    /// The lines of the screen without trailing blanks.
    pub fn lines(&self) -> Vec<String> {
        let parser = self.lock();
        let columns = parser.screen().size().1;
        parser.screen().rows(0, columns).map(|line| line.trim_end().to_owned()).collect()
    }

    /// The first line from this row on whose second character is reversed: the selected row of a table.
    pub fn reversed_line(&self, from: u16) -> Option<String> {
        let rows = self.lock().screen().size().0;
        let is_reversed =
            |row: &u16| self.lock().screen().cell(*row, 1).is_some_and(vt100::Cell::inverse);
        let row = (from..rows).find(is_reversed)?;
        self.lines().get(usize::from(row)).cloned()
    }

    /// The screen as a picture.
    pub fn svg(&self, title: &str) -> String {
        picture::svg(self.lock().screen(), title)
    }

    /// Waits until the text of the screen is as wanted, and returns it.
    pub fn wait(&self, what: &str, is_shown: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let text = self.lines().join("\n");
            if is_shown(&text) {
                return text;
            }
            assert!(began.elapsed() < LIMIT, "the screen does not show {what}:\n{text}");
            std::thread::sleep(pause(began.elapsed()));
        }
    }

    /// Waits until the screen contains a text.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(&format!("{text:?}"), |screen| screen.contains(text))
    }

    /// Sends a signal by its short name.
    pub fn signal(&mut self, signal: &str) {
        self.running.signal(signal);
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Waits for the end, and checks that the terminal is as it was: lines are edited and echoed, the first screen is
    /// shown, and the cursor is visible.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let status = self.running.wait_at_most(LIMIT).expect("the program ends");
        let modes = tcgetattr(&self.terminal).expect("the modes of the terminal").local_modes;
        assert!(
            modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG),
            "{modes:?}"
        );
        self.wait("the first screen", |_| {
            let parser = self.lock();
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        });
        status
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, vt100::Parser> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set_size(terminal: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("the size of the terminal");
}
