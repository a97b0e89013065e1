//! Devices that refuse to read their counters, and files that cannot be read.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;

use rustix::fs::inotify;

use test_rig::sysfs::{Content, Device, Tree, Vpd, hgx_b200};
use test_rig::{Exporter, Metrics};

const REFUSED: &str = "device refuses to read its counters";

/// An HCA whose counters refuse to be read.
fn refusing(name: &str) -> Device {
    let tree = Tree::new([Device::mlx5_ndr(name, 0)]);
    let counters = tree.numbers(name, "ports/1/counters");
    assert!(counters.len() > 10);
    let refuse = |device: Device, file: &String| {
        device.has(&format!("ports/1/counters/{file}"), Content::Refuses)
    };
    counters.keys().fold(Device::mlx5_ndr(name, 0), refuse)
}

fn lines<'a>(log: &'a str, texts: &[&str]) -> Vec<&'a str> {
    log.lines().filter(|line| texts.iter().all(|text| line.contains(text))).collect()
}

fn samples(metrics: &Metrics, device: &str, prefix: &str) -> usize {
    let is_its = |name: &str| name.starts_with(prefix);
    let of_device = metrics.samples.iter().filter(|it| it.has(&[("device", device)]));
    of_device.filter(|sample| is_its(&sample.name)).count()
}

#[test]
fn device_that_refuses_three_counters_is_not_asked_again() {
    let tree = Tree::new([refusing("mlx5_0"), Device::mlx5_ndr("mlx5_1", 1)]);
    let watcher =
        inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
    for directory in ["counters", "hw_counters"] {
        let path = tree.path().join("class/infiniband/mlx5_0/ports/1").join(directory);
        inotify::add_watch(&watcher, path, inotify::WatchFlags::OPEN).unwrap();
    }
    let flags = ["--host.interval=1s", "--host.error-backoff=1s"];
    let mut exporter = Exporter::on_host(&tree, &flags);
    exporter.wait_ready();
    let metrics = exporter.wait_reads(4);
    let log = exporter.log();
    assert!(exporter.stop().success());

    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watcher, &mut buffer);
    let mut opened = Vec::new();
    while let Ok(event) = events.next() {
        opened.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    let names: BTreeSet<&String> = opened.iter().collect();
    assert_eq!((opened.len(), names.len()), (3, 3), "{opened:?}");
    assert_eq!(metrics.get("infiniband_device_up", &[("device", "mlx5_0")]), Some(1.0));
    assert_eq!(metrics.get("infiniband_port_state", &[("device", "mlx5_0")]), Some(4.0));
    assert_eq!(samples(&metrics, "mlx5_0", "infiniband_hw_"), 0);
    assert!(samples(&metrics, "mlx5_1", "infiniband_hw_") > 10);
    assert_eq!(lines(&log, &[REFUSED, "mlx5_0", "--host.device-exclude"]).len(), 1, "{log}");
    assert_eq!(lines(&log, &["files of the device cannot be read"]).len(), 0, "{log}");
}

/// The counter files of a host's devices that are opened while the exporter reads it several times, by device; its
/// metrics, and its log.
fn opened(tree: &Tree, devices: &[&str]) -> (Vec<usize>, Metrics, String) {
    let watch = |device: &&str| {
        let watcher =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
        for directory in ["counters", "hw_counters"] {
            let port = tree.path().join("class/infiniband").join(device).join("ports/1");
            inotify::add_watch(&watcher, port.join(directory), inotify::WatchFlags::OPEN).unwrap();
        }
        watcher
    };
    let watchers: Vec<_> = devices.iter().map(watch).collect();
    let mut exporter = Exporter::on_host(tree, &["--host.interval=1s", "--host.error-backoff=1s"]);
    exporter.wait_ready();
    let metrics = exporter.wait_reads(4);
    let log = exporter.log();
    assert!(exporter.stop().success());
    let count = |watcher| {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watcher, &mut buffer);
        // That of the directory itself has no name.
        std::iter::from_fn(|| events.next().ok().map(|event| event.file_name().is_some()))
            .filter(|is_file| *is_file)
            .count()
    };
    (watchers.into_iter().map(count).collect(), metrics, log)
}

const BRIDGES: [&str; 4] = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"];

/// The kinds of the six devices, in their order.
fn kinds(metrics: &Metrics) -> Vec<String> {
    metrics.all("infiniband_device_info").map(|(labels, _)| labels["kind"].clone()).collect()
}

#[test]
fn each_bridge_of_b200_refuses_three_reads_in_its_life() {
    let tree = hgx_b200(Vpd::Refused);
    let (opened, metrics, log) = opened(&tree, &BRIDGES);
    assert_eq!(opened, [3; 4], "{log}");
    let restricted = "restricted";
    let physical = "physical";
    assert_eq!(
        kinds(&metrics),
        [restricted, restricted, restricted, restricted, physical, physical]
    );
    for device in BRIDGES {
        assert_eq!(lines(&log, &[REFUSED, device]).len(), 1, "{log}");
        assert_eq!(lines(&log, &[device]).len(), 1, "{log}");
        assert!(metrics.get("infiniband_port_state", &[("device", device)]).is_some());
    }
}

#[test]
fn bridges_of_b200_are_recognized_by_vpd_before_any_read() {
    let tree = hgx_b200(Vpd::Readable);
    let (opened, metrics, log) = opened(&tree, &BRIDGES);
    assert_eq!(opened, [0; 4], "{log}");
    let (bridge, physical) = ("nvlink_bridge", "physical");
    assert_eq!(kinds(&metrics), [bridge, bridge, bridge, bridge, physical, physical]);
    for device in BRIDGES {
        assert_eq!(lines(&log, &["manages NVSwitches", device]).len(), 1, "{log}");
        assert_eq!(lines(&log, &[device]).len(), 1, "{log}");
        let unreadable = "fabric_exporter_device_unreadable_files";
        assert_eq!(metrics.get(unreadable, &[("device", device)]), Some(0.0));
    }
}

#[test]
fn counters_of_nvlink_bridge_are_not_read() {
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0), Device::mlx5_ndr("mlx5_1", 1)]);
    let vpd = "\u{2}VA\u{1d}MLX:MN=MLNX:SMDL=SW_MNG:PCI=V0x";
    std::fs::write(tree.path().join("class/infiniband/mlx5_0/device/vpd"), vpd).unwrap();
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    let metrics = exporter.wait_reads(2);
    let received = |device| {
        let family = "infiniband_port_receive_bytes_total";
        metrics.sample(family, &[("device", device)]).is_some()
    };
    assert_eq!((received("mlx5_0"), received("mlx5_1")), (false, true));
    assert_eq!(samples(&metrics, "mlx5_0", "infiniband_hw_"), 0);
    assert_eq!(metrics.get("infiniband_port_state", &[("device", "mlx5_0")]), Some(4.0));
    let log = exporter.log();
    assert_eq!(lines(&log, &["manages NVSwitches", "mlx5_0"]).len(), 1, "{log}");
    assert!(exporter.stop().success());
}

#[test]
fn files_that_cannot_be_read_are_logged_once_for_each_device() {
    let tree = Tree::new([Device::bnxt_re("bnxt_re0"), Device::i40iw("i40iw0")]);
    let flags = ["--host.interval=1s", "--host.error-backoff=1s"];
    let mut exporter = Exporter::on_host(&tree, &flags);
    exporter.wait_ready();
    exporter.wait_reads(4);
    let log = exporter.log();
    let about = |device| lines(&log, &["files of the device cannot be read", device]);
    for (device, says) in [
        ("bnxt_re0", "ports/1/counters/port_rcv_data: Is a directory"),
        ("i40iw0", "ports/1/counters/{"),
    ] {
        let about = about(device);
        assert!(about.len() == 1 && about[0].contains("backoff=1s"), "{log}");
        assert!(about[0].contains(says), "{log}");
    }
    assert!(about("i40iw0")[0].contains("}: not a valid value"), "{log}");
    assert!(exporter.stop().success());
}

#[test]
fn ports_come_and_go_under_a_device() {
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0)]);
    let second = tree.path().join("class/infiniband/mlx5_0/ports/2");
    // At once, so that no read sees half of a port.
    let make = |port: &str, text: &str| {
        let new = tree.path().join("new");
        std::fs::create_dir(&new).unwrap();
        std::fs::write(new.join("state"), text).unwrap();
        let place = tree.path().join("class/infiniband/mlx5_0/ports").join(port);
        std::fs::rename(&new, place).unwrap();
    };
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    let state = |metrics: &Metrics| {
        metrics.get("infiniband_port_state", &[("device", "mlx5_0"), ("port", "2")])
    };
    assert_eq!(state(&exporter.metrics()), None);
    for (text, expected) in [("2: INIT\n", 2.0), ("4: ACTIVE\n", 4.0)] {
        make("2", text);
        assert_eq!(state(&exporter.wait_reads(2)), Some(expected));
        std::fs::remove_dir_all(&second).unwrap();
        assert_eq!(state(&exporter.wait_reads(2)), None);
    }
    // Made again between two reads.
    std::fs::remove_dir_all(tree.path().join("class/infiniband/mlx5_0/ports/1")).unwrap();
    make("1", "1: DOWN\n");
    let metrics = exporter.wait_reads(2);
    assert_eq!(metrics.get("infiniband_port_state", &[("device", "mlx5_0")]), Some(1.0));
    assert_eq!(metrics.get("infiniband_device_up", &[("device", "mlx5_0")]), Some(1.0));
    assert!(exporter.stop().success());
}
