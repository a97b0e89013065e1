//! The log of an exporter whose reader is slow or has stopped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::io::{PipeReader, Read, Write, pipe};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::pipe::fcntl_setpipe_size;
use test_rig::child::{Running, read_lossy};
use test_rig::exporter::{agent, get};
use test_rig::metrics::Metrics;
use test_rig::{program, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

/// A demo that logs to a pipe of 4 KiB, with a hundred sweeps per second; its reader, and its address.
fn demo(dir: &Path) -> (Running, PipeReader, String) {
    let (reader, writer) = pipe().unwrap();
    fcntl_setpipe_size(&writer, 4096).unwrap();
    let out = dir.join("stdout");
    let mut command = Command::new(program());
    command.args(["demo", "--web.listen-address=127.0.0.1:0", "--log.level=debug"]);
    command.args(["--no-history", "--fabric.interval=1s", "--clock=100"]);
    command.stdout(File::create(&out).unwrap()).stderr(writer);
    let demo = Running::spawn("demo", &mut command);
    // The address is not read from the log here.
    let address = wait_until(LIMIT, "the address", || {
        let text = read_lossy(&out);
        let (_, rest) = text.split_once("http://")?;
        Some(rest.split_once("/ ")?.0.to_owned())
    });
    (demo, reader, address)
}

fn metrics(address: &str) -> Metrics {
    Metrics::parse(get(&agent(LIMIT), address, "/metrics", &[]).unwrap().text())
}

fn value(metrics: &Metrics, name: &str) -> u64 {
    metrics.get_u64(name, &[]).unwrap()
}

/// Has lines logged until some are dropped, and returns how many.
fn fill_log(address: &str) -> u64 {
    wait_until(LIMIT, "dropped lines", || {
        // At the level debug, a line for each.
        for _ in 0..100 {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"no request\r\n\r\n").unwrap();
            let _ = client.read_to_end(&mut Vec::new());
        }
        let dropped = value(&metrics(address), "fabric_exporter_log_lines_dropped_total");
        (dropped > 0).then_some(dropped)
    })
}

#[test]
fn stalled_reader_of_the_log_stops_neither_sweeps_nor_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (mut demo, reader, address) = demo(dir.path());
    fill_log(&address);
    let sweeps = || value(&metrics(&address), "fabric_exporter_sweeps_total");
    let before = sweeps();
    wait_until(LIMIT, "sweeps", || (sweeps() > before + 50).then_some(()));
    assert_eq!(get(&agent(LIMIT), &address, "/-/ready", &[]).unwrap().status, 200);
    let began = Instant::now();
    demo.signal("TERM");
    let status = demo.wait_at_most(LIMIT).expect("SIGTERM ends it");
    assert!(status.success(), "{status}");
    // The last second is for the log.
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    drop(reader);
}

#[test]
fn reader_that_goes_on_learns_how_many_lines_were_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (mut demo, mut reader, address) = demo(dir.path());
    fill_log(&address);
    let reading = std::thread::spawn(move || {
        let mut log = String::new();
        reader.read_to_string(&mut log).unwrap();
        log
    });
    // The queue has room: no more are dropped.
    let dropped = || value(&metrics(&address), "fabric_exporter_log_lines_dropped_total");
    wait_until(LIMIT, "room", || {
        let before = dropped();
        std::thread::sleep(Duration::from_millis(200));
        (dropped() == before).then_some(())
    });
    let all = dropped();
    demo.signal("TERM");
    assert!(demo.wait_at_most(LIMIT).expect("SIGTERM ends it").success());
    let log = reading.join().unwrap();
    let notice = " log lines were dropped: the reader of standard error is slow\"";
    let notices = log.lines().filter_map(|line| line.strip_suffix(notice));
    let counts = notices.map(|line| {
        assert!(line.contains("level=warn"), "{line}");
        line.rsplit('"').next().unwrap().parse::<u64>().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), all, "{log}");
    // Lines are whole, and the last ones are there.
    assert!(log.lines().all(|line| line.starts_with("ts=2")), "{log}");
    let last = log.lines().rev().take(20).find(|line| line.contains("shutting down"));
    assert!(last.is_some_and(|line| line.contains("signal=SIGTERM")), "{log}");
}
