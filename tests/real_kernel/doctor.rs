//! `doctor` on a real kernel: what it says of devices that work, and of one that does not any more.

use serde_json::Value;

use test_rig::guest::{self, Guest};

/// What it finds of these devices alone, for others come and go; each as `subject: what: level: found`.
fn found(devices: &str, flags: &[&str]) -> (i32, Vec<String>) {
    let include = format!("--host.device-include={devices}");
    let listen = "--web.listen-address=127.0.0.1:0";
    let output = guest::run_to_exit(&[&["doctor", "--json", &include, listen], flags].concat());
    let json: Value = serde_json::from_str(&output.text)
        .unwrap_or_else(|error| panic!("{error}: {}", output.text));
    let told = json["findings"].as_array().unwrap().iter().map(|finding| {
        let text = |field: &str| finding[field].as_str().unwrap().to_owned();
        ["subject", "what", "level", "found"].map(text).join(": ")
    });
    (output.status, told.collect())
}

#[track_caller]
fn has(told: &[String], says: &str) {
    assert!(told.iter().any(|it| it.contains(says)), "{says}: {told:#?}");
}

#[test]
fn the_doctor_knows_a_real_kernels_devices() {
    let guest = Guest::get();
    let hca = guest.testhca("docib", 2, false);
    let _soft = guest.rxe("docrxe");
    let (status, told) = found("docib|docrxe", &["--offline"]);
    println!("{status}: {told:#?}");
    for says in [
        "modules: ib_umad: ok: there",
        "modules: ib_uverbs: ok: there",
        "modules: rdma_cm: ok: there",
        "ports: docib port 1: ok: InfiniBand, Active, physical state LinkUp, 200 Gb/s (4x HDR)",
        "ports: docrxe port 1: ok: Ethernet, Active",
        "ports: docrxe port 1 GIDs: ok: ",
        "partitions: docib port 2: ok: 0xffff: full member",
        "subnet_manager: docib port 1: ok: LID ",
        "listener: 127.0.0.1:0: ok: free",
    ] {
        has(&told, says);
    }

    hca.set(1, "state", 1);
    hca.set(1, "phys", 2);
    hca.set(2, "state", 2);
    hca.set(2, "lid", 0);
    let (status, told) = found("docib", &["--offline"]);
    assert_eq!(status, 6, "{told:#?}");
    has(&told, "ports: docib port 1: bad: InfiniBand, Down, physical state Polling");
    has(&told, "subnet_manager: docib port 2: bad: a link, and no LID");
}

#[test]
fn soft_roce_alone_is_a_sound_host() {
    let _soft = Guest::get().rxe("docalone");
    let (status, told) = found("docalone", &["--no-collector.fabric"]);
    let worse = told.iter().filter(|it| it.contains(": warn: ") || it.contains(": bad: "));
    assert_eq!(worse.collect::<Vec<_>>(), [""; 0], "{told:#?}");
    assert_eq!(status, 0, "{told:#?}");
    has(&told, "modules: ib_ipoib: ok: not loaded, and not needed");
}
