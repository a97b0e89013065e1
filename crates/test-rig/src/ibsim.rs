//! One ibsim: a simulated fabric with its console.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::child::{self, Output, Running};
use super::counters::Setting;
use super::seat::Seat;
use super::topology::{sizes, usable_hosts};
use super::{require, wait_until};

/// How long ibsim may take to load a net or to carry out a command; 18,000 nodes load in 5 s.
const CONSOLE_LIMIT: Duration = Duration::from_secs(60);

/// The longest line that ibsim's console accepts.
const CONSOLE_LINE: usize = 126;

/// A running ibsim. It has slots for ten clients, `OpenSM` included.
pub struct Ibsim {
    // Before the directory, so that ibsim ends first.
    running: Running,
    console: Mutex<Console>,
    seat: Seat,
    sm_host: String,
}

/// The writing end of ibsim's console, and the file with its output.
struct Console {
    input: File,
    log: PathBuf,
    commands: u32,
}

impl Ibsim {
    /// Starts ibsim on a net and waits until it takes clients.
    pub fn start(net_text: &str) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("ibsim-")
            .tempdir()
            .unwrap_or_else(|e| panic!("cannot make a temporary directory for ibsim: {e}"));
        let (net, fifo, log) =
            (dir.path().join("net"), dir.path().join("console"), dir.path().join("ibsim.log"));
        std::fs::write(&net, net_text)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", net.display()));
        let made = Command::new("mkfifo").arg(&fifo).status();
        assert!(made.as_ref().is_ok_and(std::process::ExitStatus::success), "mkfifo: {made:?}");
        // Open for reading too, here and so in ibsim: at an end of file on its console ibsim spins.
        let input = File::options()
            .read(true)
            .write(true)
            .open(&fifo)
            .unwrap_or_else(|e| panic!("cannot open {}: {e}", fifo.display()));
        let socket_name = unique_socket_name();
        let (sizes, spare) = (sizes(net_text), 8);
        let running = Running::spawn(
            "ibsim",
            Command::new(require("ibsim"))
                .arg("-s")
                .args(["-N", &(sizes.nodes + spare).to_string()])
                .args(["-S", &(sizes.switches + spare).to_string()])
                .args(["-P", &(sizes.ports + spare).to_string()])
                .arg(&net)
                .current_dir(dir.path())
                .env("IBSIM_SOCKNAME", &socket_name)
                .stdin(input.try_clone().expect("the console cannot be given to ibsim"))
                .stdout(child::create(&log))
                .stderr(child::create(&dir.path().join("ibsim.err"))),
        );
        let hosts = usable_hosts(net_text);
        let sm_host =
            hosts.first().expect("no host of the net has a cable on its first port").clone();
        let host = hosts.get(1).unwrap_or(&sm_host);
        let mut ibsim = Self {
            running,
            console: Mutex::new(Console { input, log, commands: 0 }),
            seat: Seat::new(&socket_name, host, Arc::new(dir)),
            sm_host,
        };
        // ibsim says it is ready before it has bound its sockets, and a client that comes too early
        // waits two seconds. Its console is served only after both.
        ibsim.running.try_wait();
        ibsim.console("");
        ibsim
    }

    /// Runs an ibsim command, waits until it is done and returns its output. Panics if ibsim reports an error.
    pub fn console(&self, command: &str) -> String {
        assert!(command.len() <= CONSOLE_LINE, "too long for ibsim's console: {command}");
        let answer = self.console.lock().expect("an earlier command failed").run(command);
        for line in answer.lines() {
            let refused = line.starts_with("# ")
                || line.ends_with("unknown - skipped")
                || line.contains("cannot open");
            // `Dump` heads its tables with the same sign.
            assert!(!refused || command.starts_with("Dump"), "ibsim refused `{command}`: {answer}");
        }
        answer
    }

    /// Runs many ibsim commands at once, by way of a file.
    pub fn console_many(&self, commands: &[String]) -> String {
        let file = self.seat.new_dir("commands").join("all");
        let mut text = commands.join("\n");
        text.push('\n');
        std::fs::write(&file, text)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
        self.console(&format!("!{}", file.display()))
    }

    /// Sets counters.
    pub fn set(&self, settings: &[Setting]) {
        let commands: Vec<String> = settings
            .iter()
            .map(|Setting { node, port, counter, value }| {
                let (attribute, field) = (counter.attribute, counter.console);
                format!("PerformanceSet \"{node}\"[{port}] {attribute}.{field}={value}")
            })
            .collect();
        self.console_many(&commands);
    }

    /// The node of this fabric's clients: the second host of the net, unless set otherwise.
    pub fn seat(&self) -> Seat {
        self.seat.clone()
    }

    /// The node of the subnet manager: the first host of the net.
    pub fn sm_seat(&self) -> Seat {
        self.seat.at(&self.sm_host)
    }

    /// Sets the node of the clients that start from now on.
    pub fn set_host(&mut self, host: &str) {
        self.seat = self.seat.at(host);
    }

    /// The name under which clients reach this ibsim.
    pub fn socket_name(&self) -> &str {
        self.seat.socket_name()
    }

    /// [`Seat::tool`] at the clients' node.
    pub fn tool(&self, program: &str, args: &[&str]) -> String {
        self.seat.tool(program, args)
    }

    /// [`Seat::try_tool`] at the clients' node.
    pub fn try_tool(&self, program: &str, args: &[&str]) -> Output {
        self.seat.try_tool(program, args)
    }

    /// [`Seat::command`] at the clients' node.
    pub fn command(&self, program: &str) -> Command {
        self.seat.command(program)
    }

    /// The process id of ibsim, for measurements.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}

impl From<&Ibsim> for Seat {
    fn from(ibsim: &Ibsim) -> Self {
        ibsim.seat()
    }
}

impl Console {
    /// A comment follows the command; ibsim repeats it once the command is done.
    fn run(&mut self, command: &str) -> String {
        self.commands += 1;
        let marker = format!("#done-{}.", self.commands);
        let before = child::read_lossy(&self.log).len();
        self.input
            .write_all(format!("{command}\n{marker}\n").as_bytes())
            .unwrap_or_else(|e| panic!("cannot write to ibsim's console: {e}"));
        wait_until(CONSOLE_LIMIT, &format!("ibsim to take `{command}`"), || {
            let log = child::read_lossy(&self.log);
            let (answer, _) = log.get(before..)?.split_once(&marker)?;
            Some(answer.replace("sim> ", ""))
        })
    }
}

/// A socket name that no other ibsim on this machine has: abstract sockets are shared by all.
fn unique_socket_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("rig-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
