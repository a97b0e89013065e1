//! `doctor` on a real kernel: its findings about working devices, and about one that has failed.

use serde_json::Value;

use test_rig::guest::{self, Guest};

/// Its findings about these devices alone, since others come and go; each as `subject: what: level: found`.
fn findings(devices: &str, flags: &[&str]) -> (i32, Vec<String>) {
    let include = format!("--host.device-include={devices}");
    let listen = "--web.listen-address=127.0.0.1:0";
    let output = guest::run_to_exit(&[&["doctor", "--json", &include, listen], flags].concat());
    let json: Value = serde_json::from_str(&output.text)
        .unwrap_or_else(|error| panic!("{error}: {}", output.text));
    let findings = json["findings"].as_array().unwrap().iter().map(|finding| {
        let text = |field: &str| finding[field].as_str().unwrap().to_owned();
        ["subject", "what", "level", "found"].map(text).join(": ")
    });
    (output.status, findings.collect())
}

#[track_caller]
fn has(findings: &[String], says: &str) {
    assert!(findings.iter().any(|it| it.contains(says)), "{says}: {findings:#?}");
}

#[test]
fn doctor_recognizes_devices_of_a_real_kernel() {
    let guest = Guest::get();
    let hca = guest.testhca("docib", 2, false);
    let _soft = guest.rxe("docrxe");
    let (status, report) = findings("docib|docrxe", &["--offline"]);
    println!("{status}: {report:#?}");
    for says in [
        "modules: ib_umad: ok: loaded",
        "modules: ib_uverbs: ok: loaded",
        "modules: rdma_cm: ok: loaded",
        "ports: docib port 1: ok: InfiniBand, Active, physical state LinkUp, 200 Gb/s (4x HDR)",
        "ports: docrxe port 1: ok: Ethernet, Active",
        "ports: docrxe port 1 GIDs: ok: ",
        "partitions: docib port 2: ok: 0xffff: full member",
        "subnet_manager: docib port 1: ok: LID ",
        "listener: 127.0.0.1:0: ok: free",
    ] {
        has(&report, says);
    }

    hca.set(1, "state", 1);
    hca.set(1, "phys", 2);
    hca.set(2, "state", 2);
    hca.set(2, "lid", 0);
    let (status, report) = findings("docib", &["--offline"]);
    assert_eq!(status, 6, "{report:#?}");
    has(&report, "ports: docib port 1: bad: InfiniBand, Down, physical state Polling");
    has(&report, "subnet_manager: docib port 2: bad: link is up, but no LID");
}

#[test]
fn host_with_only_soft_roce_is_healthy() {
    let _soft = Guest::get().rxe("docalone");
    let (status, report) = findings("docalone", &["--no-collector.fabric"]);
    let worse = report.iter().filter(|it| it.contains(": warn: ") || it.contains(": bad: "));
    assert_eq!(worse.collect::<Vec<_>>(), [""; 0], "{report:#?}");
    assert_eq!(status, 0, "{report:#?}");
    has(&report, "modules: ib_ipoib: ok: not loaded, not needed");
}
