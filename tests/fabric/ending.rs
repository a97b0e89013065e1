//! Every command ends soon after SIGTERM and SIGHUP, and when its terminal is gone, whatever it waits for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rig::child::{Running, read_lossy};
use rig::pty::attach;
use rig::{Ibsim, Proxy, program, topology, wait_until};
use rustix::pipe::fcntl_setpipe_size;

/// How long a command may take to end. On an idle machine it is less than a second; here ten tests run at a time, and an
/// exporter itself gives its threads 5 s.
const ENDS: Duration = Duration::from_secs(20);

/// How long a command may take until it waits for what the test has it wait for.
const STARTS: Duration = Duration::from_secs(60);

const SIGNALS: [(&str, i32); 2] = [("TERM", 15), ("HUP", 1)];

/// An exporter that accepts connections and never responds.
struct SilentExporter(TcpListener);

impl SilentExporter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        SilentExporter(listener)
    }

    fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// The connection of a command that waits for a response.
    fn client(&self, what: &str) -> TcpStream {
        wait_until(STARTS, what, || self.0.accept().ok()).0
    }
}

fn command(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(program());
    command.args(args).current_dir(dir).env("TMPDIR", dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn end(running: &mut Running, what: &str) -> ExitStatus {
    let status = running.wait_at_most(ENDS);
    if status.is_none() {
        running.kill();
    }
    status.unwrap_or_else(|| panic!("{what} goes on"))
}

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn commands_that_wait_for_an_exporter_end_at_a_signal_and_leave_nothing() {
    let exporter = SilentExporter::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("--url={}", exporter.url());
    let output = "--output=copy.db";
    for args in [
        &["links"][..],
        &["links", "--watch"],
        &["nodes"],
        &["nodes", "--watch=1s"],
        &["ports", "leaf-0-1"],
        &["ports", "leaf-0-1", "--watch"],
        &["history", "events"],
        &["history", "report"],
        &["history", "link", "leaf-0-1/9"],
        // They have made their files when they wait.
        &["history", "export", "--at=03:12"],
        &["history", "dump", "--at=03:12", output],
    ] {
        for (signal, number) in SIGNALS {
            let what = format!("{args:?} at SIG{signal}");
            let mut running =
                Running::spawn(args[0], &mut command(&[args, &[&url]].concat(), dir.path()));
            let _client = exporter.client(&what);
            if args.contains(&"--at=03:12") {
                assert!(!files(dir.path()).is_empty(), "{what}");
            }
            running.signal(signal);
            // As if it had no handler.
            assert_eq!(end(&mut running, &what).signal(), Some(number), "{what}");
            assert_eq!(files(dir.path()), Vec::<String>::new(), "{what}");
        }
    }
}

#[test]
fn export_that_was_started_with_nohup_survives_its_terminal() {
    let exporter = SilentExporter::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("--url={}", exporter.url());
    let mut nohup = Command::new("nohup");
    nohup.arg(program()).args(["history", "export", "--at=03:12", &url]).current_dir(dir.path());
    nohup.env("TMPDIR", dir.path()).stdin(Stdio::null());
    nohup.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running::spawn("nohup", &mut nohup);
    let _client = exporter.client("the export");
    running.signal("HUP");
    assert!(running.wait_at_most(Duration::from_millis(300)).is_none(), "it goes on");
    running.signal("TERM");
    assert_eq!(end(&mut running, "the export").signal(), Some(15));
    assert_eq!(files(dir.path()), Vec::<String>::new());
}

#[test]
fn commands_that_sweep_a_slow_fabric_end_at_a_signal() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    // A round trip of 400 ms: a discovery alone takes many seconds.
    let proxy = Proxy::between(&ibsim, Duration::from_millis(400), 0);
    let dir = tempfile::tempdir().unwrap();
    // No more: a client that is killed keeps its place in ibsim, which has ten.
    for (args, (signal, number)) in [
        (&["links", "--fabric.timeout=1s"][..], SIGNALS[0]),
        (&["links", "--for=1m", "--watch"], SIGNALS[1]),
        (&["nodes", "--watch"], SIGNALS[0]),
        (&["ports", "leaf-0-1"], SIGNALS[1]),
        (&["doctor"], SIGNALS[0]),
        (&["doctor", "--json"], SIGNALS[1]),
    ] {
        let what = format!("{args:?} at SIG{signal}");
        let mut command = proxy.seat().command_in(program(), dir.path());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running::spawn(args[0], &mut command);
        let fds = format!("/proc/{}/fd", running.pid());
        wait_until(STARTS, &format!("{what} to use its device"), || {
            let mut targets = std::fs::read_dir(&fds).ok()?.filter_map(|fd| {
                let target = std::fs::read_link(fd.ok()?.path()).ok()?;
                Some(target.to_string_lossy().starts_with("socket:"))
            });
            targets.any(|is_socket| is_socket).then_some(())
        });
        running.signal(signal);
        assert_eq!(end(&mut running, &what).signal(), Some(number), "{what}");
    }
}

#[test]
fn commands_whose_output_nobody_reads_end_at_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    for (signal, number) in SIGNALS {
        let (mut reader, writer) = std::io::pipe().unwrap();
        fcntl_setpipe_size(&writer, 4096).unwrap();
        let mut command = command(&["completions", "bash"], dir.path());
        let mut running = Running::spawn("completions", command.stdout(writer));
        drop(command);
        // The rest does not fit into the pipe.
        reader.read_exact(&mut [0]).unwrap();
        running.signal(signal);
        assert_eq!(end(&mut running, "completions").signal(), Some(number));
    }
}

#[test]
fn check_of_a_file_that_blocks_ends_at_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("config.yml");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (signal, _) in SIGNALS {
        let args = ["check", "--config.file", fifo.to_str().unwrap()];
        let mut running = Running::spawn("check", &mut command(&args, dir.path()));
        running.signal(signal);
        end(&mut running, "check");
    }
}

/// The address of a demo that listens.
fn listening(out: &Path) -> String {
    wait_until(STARTS, "the demo to listen", || {
        let text = read_lossy(out);
        Some(text.split_once("http://")?.1.split_once("/ ")?.0.to_owned())
    })
}

#[test]
fn demo_ends_at_a_signal_also_while_it_responds() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("stdout");
    for (signal, _) in SIGNALS {
        let args = ["demo", "--web.listen-address=127.0.0.1:0", "--hosts=500"];
        let mut command = command(&args, dir.path());
        let mut running = Running::spawn("demo", command.stdout(File::create(&out).unwrap()));
        // Requests that never end, and one that waits for more.
        let address = listening(&out);
        let clients = ["GET /metr", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", ""].map(|text| {
            let mut client = TcpStream::connect(&address).unwrap();
            client.write_all(text.as_bytes()).unwrap();
            client
        });
        running.signal(signal);
        assert!(end(&mut running, signal).success());
        drop(clients);
        assert_eq!(files(dir.path()), ["stdout"], "SIG{signal}");
    }
}

fn on_terminal(args: &[&str], dir: &Path) -> (Running, File) {
    let mut command = command(args, dir);
    let master = attach(&mut command);
    (Running::spawn(args[0], &mut command), master)
}

#[test]
fn commands_end_when_their_terminal_is_gone() {
    let exporter = SilentExporter::start();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("--url={}", exporter.url());
    for args in [
        &["links", &url][..],
        &["links", "--watch", &url],
        &["nodes", "--watch=1h", &url],
        &["ports", "leaf-0-1", "--watch", &url],
        &["history", "report", &url],
        &["history", "export", "--at=03:12", &url],
    ] {
        let (mut running, master) = on_terminal(args, dir.path());
        let _client = exporter.client(&format!("{args:?}"));
        drop(master);
        assert_eq!(end(&mut running, &format!("{args:?}")).signal(), Some(1), "{args:?}");
        assert_eq!(files(dir.path()), Vec::<String>::new(), "{args:?}");
    }
    let args = ["demo", "--web.listen-address=127.0.0.1:0"];
    let (mut running, mut master) = on_terminal(&args, dir.path());
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    while !shown.contains("Press Ctrl-C to stop.") {
        let count = master.read(&mut bytes).unwrap();
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    drop(master);
    assert!(end(&mut running, "demo").success());
    assert_eq!(files(dir.path()), Vec::<String>::new());
}
