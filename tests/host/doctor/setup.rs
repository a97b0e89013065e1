//! Cards, drivers, modules and firmware.

use crate::doctor::patient::{CARD, TestHost};
use test_rig::sysfs::{Copies, Device, Host, Vpd, connectx8, every_host, hgx_b200};

fn two_ports() -> TestHost {
    TestHost::with([Device::mlx4("mlx4_0")])
}

#[test]
fn complete_host_has_no_findings() {
    let found = two_ports().report(&[]);
    assert_eq!(found.troubles(), [""; 0], "{:#}", found.json);
    assert_eq!(found.code, 0);
    let subjects = [
        "pci",
        "modules",
        "ports",
        "subnet_manager",
        "permissions",
        "partitions",
        "ipoib",
        "firmware",
        "configuration",
        "listener",
    ];
    for subject in subjects {
        assert!(!found.of_subject(subject).is_empty(), "{subject}: {:#}", found.json);
    }
    found.one("ports", "mlx4_0 port 2").says("ok", "Active, physical state LinkUp, 40 Gb/s", "");
    found.one("subnet_manager", "mlx4_0 port 1").says("ok", "LID 17, SM LID ", "");
    found.one("pci", "0000:04:00.0").says("ok", "mlx4_core: mlx4_0", "");

    let text = two_ports().run(&[]);
    assert_eq!(text.status.code(), Some(0));
    assert_eq!(text.stdout.lines().last(), Some("no problems found"));
    assert_eq!(text.stderr, "");
    assert!(!text.stdout.contains('\x1b') && !text.stdout.contains("!!"), "{}", text.stdout);
}

#[test]
fn card_without_driver_is_a_finding() {
    let patient = two_ports();
    patient.tree.on_bus("0000:81:00.0", &CARD);
    let found = patient.report(&[]);
    found.one("pci", "0000:81:00.0").says("bad", "no driver bound", "modprobe mlx5_core");
    assert_eq!(found.code, 6);
    assert_eq!(found.json["first"]["what"], "0000:81:00.0", "the first of the errors");
    // A device that is passed through to a guest is no problem.
    patient.tree.bind("0000:81:00.0", "vfio-pci");
    let found = patient.report(&[]);
    found.one("pci", "0000:81:00.0").says("note", "bound to vfio-pci", "");
    assert_eq!(found.code, 0);
}

#[test]
fn driver_without_rdma_module_is_a_finding() {
    let patient = two_ports();
    patient.tree.on_bus("0000:81:00.0", &CARD);
    patient.tree.bind("0000:81:00.0", "mlx5_core");
    patient.modules("");
    let found = patient.report(&[]);
    found.one("pci", "0000:81:00.0").says("warn", "no RDMA device created", "dmesg");
    found.one("modules", "mlx5_ib").says("bad", "not loaded", "modprobe mlx5_ib");
    found.one("modules", "mlx4_ib").says("ok", "loaded or built in", "");
    // Built into the kernel: not in the list, but in sysfs.
    patient.tree.put("module/mlx5_ib/parameters/x", "");
    patient.report(&[]).one("modules", "mlx5_ib").says("ok", "loaded or built in", "");
}

#[test]
fn plain_network_card_is_no_finding() {
    let patient = TestHost::with([Device::irdma("irdma0")]);
    let ice = [("class", "0x020000"), ("vendor", "0x8086"), ("device", "0x1592")];
    patient.tree.on_bus("0000:82:00.0", &ice);
    patient.tree.bind("0000:82:00.0", "ice");
    patient.tree.on_bus("0000:83:00.0", &[("class", "0x020000"), ("vendor", "0x8086")]);
    let found = patient.report(&["--no-collector.fabric"]);
    found.one("pci", "0000:82:00.0").says("note", "some adapters of this driver support RDMA", "");
    assert_eq!(found.of_subject("pci").len(), 2, "{:#}", found.json);
}

#[test]
fn missing_modules_are_findings() {
    let patient = two_ports();
    patient.modules("ext4 1 0 - Live 0x0\n");
    patient.without("class/infiniband_mad").without("class/infiniband_verbs");
    let found = patient.report(&[]);
    found.one("modules", "ib_umad").says("bad", "not loaded", "modprobe ib_umad && echo ib_umad >");
    found.one("modules", "ib_uverbs").says("warn", "not loaded", "modprobe ib_uverbs");
    found.one("modules", "ib_ipoib").says("note", "not loaded", "modprobe ib_ipoib");
    found.one("permissions", "mlx4_0 port 1").says("note", "no umad device", "modprobe ib_umad");
    assert_eq!(found.code, 6);
    // The list cannot be read: sysfs shows the modules.
    std::fs::remove_file(patient.path("proc/modules")).unwrap();
    for path in ["class/infiniband_mad/abi_version", "class/infiniband_verbs/abi_version"] {
        patient.tree.put(path, "5\n");
    }
    let found = patient.report(&[]);
    found.one("modules", "ib_umad").says("ok", "loaded or built in", "");
    found.one("modules", "ib_uverbs").says("ok", "loaded or built in", "");
}

#[test]
fn narrow_pci_slot_is_a_finding() {
    let patient = two_ports();
    let with = |file: &'static str, text: &'static str| {
        patient.tree.put(&format!("devices/pci0000:00/0000:04:00.0/{file}"), &format!("{text}\n"));
    };
    let narrow = || {
        let found = patient.report(&[]);
        let pci = found.of_subject("pci");
        pci.get(1).map(|it| (it.text("level").to_owned(), it.text("found").to_owned()))
    };
    assert_eq!(narrow(), None);
    with("current_link_width", "8");
    let told = |text: &str| Some(("warn".to_owned(), format!("PCIe link is {text}")));
    assert_eq!(narrow(), told("x8 at 32 GT/s"));
    assert_eq!(patient.report(&[]).code, 5);
    with("current_link_speed", "8.0 GT/s PCIe");
    with("current_link_width", "16");
    assert_eq!(narrow(), told("x16 at 8 GT/s"));
    // The values of virtual functions and of sleeping devices.
    with("current_link_width", "0");
    with("current_link_speed", "Unknown");
    assert_eq!(narrow(), None);
}

#[test]
fn differing_firmware_is_a_finding() {
    let [a, b, c] = [0, 1, 2].map(|index| Device::mlx5_ndr(&format!("mlx5_{index}"), index));
    let old = b.file("fw_ver", "28.36.1010");
    let other_board = c.file("board_id", "DEL0000000041").file("fw_ver", "28.40.1000");
    let found = TestHost::with([a, old, other_board]).report(&[]);
    found.one("firmware", "MT4129 MT_0000000838").says(
        "warn",
        "versions differ: 28.36.1010: mlx5_1; 28.39.1002: mlx5_0",
        "mlxfwmanager",
    );
    found.one("firmware", "MT4129 DEL0000000041").says("ok", "28.40.1000: mlx5_2", "");
    assert_eq!(found.troubles(), ["firmware: MT4129 MT_0000000838"]);
    assert_eq!(found.code, 5);
}

#[test]
fn host_without_cards_is_a_finding() {
    for in_container in [false, true] {
        let patient = TestHost::with([]);
        if in_container {
            patient.without("bus");
            patient.without("class");
        } else {
            patient.tree.put("bus/pci/devices/none", "");
        }
        let found = patient.report(&[]);
        assert_eq!(found.code, 3, "{:#}", found.json);
        found.one("ports", "devices").says("bad", "no RDMA device", "");
        if in_container {
            found.one("pci", "bus").says("note", "bus/pci/devices", "");
        } else {
            found.one("pci", "adapters").says("bad", "no InfiniBand or RoCE", "lspci");
        }
        let last = patient.run(&[]).stdout;
        assert!(last.lines().last().unwrap().contains("; fix first: "), "{last}");
    }
}

/// For every device model: on a healthy host there is no finding worse than a known fault of the model.
#[test]
fn each_device_model_is_recognized() {
    // Not all of their files have a sample.
    let others = [
        Host { name: "ConnectX-8 with its planes", tree: connectx8(Copies::Yes) },
        Host { name: "HGX B200", tree: hgx_b200(Vpd::Readable) },
        Host { name: "HGX B200, VPD refused", tree: hgx_b200(Vpd::Refused) },
    ];
    for host in every_host().into_iter().chain(others) {
        let patient = TestHost { tree: host.tree, dir: tempfile::tempdir().unwrap() };
        let found = patient.report(&["--no-collector.fabric"]);
        let mut troubles = found.troubles();
        // A tree with devices alone has no modules and no device files.
        troubles.retain(|it| !it.starts_with("modules"));
        assert_eq!(troubles, [""; 0], "{}: {:#}", host.name, found.json);
    }
}
