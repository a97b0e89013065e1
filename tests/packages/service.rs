//! The protocol between the program and a service manager; the tests act as systemd.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use test_rig::child::{self, Running};
use test_rig::{free_port, require, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

fn demo(dir: &Path) -> Command {
    let mut command = Command::new(crate::program());
    command.current_dir(dir).args(["demo", "--fabric.interval=1s", "--log.level=info"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(child::create(&dir.join("stderr")));
    command
}

#[test]
fn systemd_gets_ready_watchdog_and_stopping() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let receive = || {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).expect("no more notifications");
        String::from_utf8(message[..length].to_vec()).unwrap().trim().to_owned()
    };
    let mut command = demo(dir.path());
    command.arg("--web.listen-address=127.0.0.1:0").env("NOTIFY_SOCKET", &path);
    let mut running = Running::spawn(
        "fabric-exporter",
        command.env("WATCHDOG_USEC", "600000").env_remove("WATCHDOG_PID"),
    );
    assert_eq!(receive(), "READY=1");
    running.wait_until_log_is_written();
    assert!(child::read_lossy(&dir.path().join("stderr")).contains("listening"));
    let (mut pings, mut status) = (0, None);
    while pings < 3 || status.is_none() {
        match receive().as_str() {
            "WATCHDOG=1" => pings += 1,
            other if other.starts_with("STATUS=") => status = Some(other.to_owned()),
            other => panic!("unexpected notification: {other}"),
        }
    }
    let status = status.unwrap();
    let parts = ["STATUS=default: ", " sweeps; this host: 9 devices, "];
    assert!(parts.iter().all(|part| status.contains(part)), "{status}");
    running.signal("TERM");
    wait_until(LIMIT, "STOPPING=1", || (receive() == "STOPPING=1").then_some(()));
    assert!(running.stop().success());
}

/// Starts the service by socket activation, with `systemd-socket-activate`.
fn activated(dir: &Path, address: &str) -> Running {
    let mut command = Command::new(require("systemd-socket-activate"));
    command.arg("--listen").arg(address).arg(crate::program());
    command.args(["demo", "--web.systemd-socket", "--log.level=info"]).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(child::create(&dir.join("stderr")));
    Running::spawn("systemd-socket-activate", &mut command)
}

#[test]
fn activated_socket_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut running = activated(dir.path(), &address);
    // This connection starts the service, and waits until it runs.
    let mut stream = wait_until(LIMIT, "the socket", || TcpStream::connect(&address).ok());
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"GET /-/healthy HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    running.wait_until_log_is_written();
    let log = child::read_lossy(&dir.path().join("stderr"));
    assert!(log.contains(&format!("listening address={address}")), "{log}");
    assert!(running.stop().success());
}

#[test]
fn non_tcp_socket_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let mut running = activated(dir.path(), path.to_str().unwrap());
    let _stream = wait_until(LIMIT, "the socket", || UnixStream::connect(&path).ok());
    let status = running.wait_at_most(LIMIT).expect("the service does not end");
    let log = child::read_lossy(&dir.path().join("stderr"));
    assert_eq!(status.code(), Some(4), "{log}");
    assert!(log.contains("socket 1 is not a listening TCP socket"), "{log}");
}

#[test]
fn start_fails_without_the_requested_socket() {
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(
        "fabric-exporter",
        Command::new(crate::program()).args(["demo", "--web.systemd-socket"]),
        dir.path(),
        LIMIT,
    );
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stderr.contains("systemd passed no socket"), "{}", output.stderr);
}
