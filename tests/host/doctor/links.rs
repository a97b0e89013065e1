//! Ports, their subnet managers, partitions and interfaces.

use crate::doctor::patient::TestHost;
use test_rig::sysfs::{Device, Netdev};

fn ndr() -> Device {
    Device::mlx5_ndr("mlx5_0", 0)
}

fn polling(device: Device, port: u8) -> Device {
    device
        .file(&format!("ports/{port}/state"), "1: DOWN")
        .file(&format!("ports/{port}/phys_state"), "2: Polling")
        .lid(port, 0, 0)
}

#[test]
fn level_of_a_polling_port_depends_on_other_ports() {
    let level = |devices: Vec<Device>, what: &str| {
        let found = TestHost::with(devices).report(&[]);
        let port = found.one("ports", what);
        assert!(port.text("found").contains("Polling: no signal"), "{port:?}");
        assert!(port.text("fix").contains("cable"), "{port:?}");
        (port.text("level").to_owned(), found.code)
    };
    let port = "mlx5_0 port 1";
    assert_eq!(level(vec![polling(ndr(), 1)], port), ("bad".into(), 6), "there is no other");
    let other = Device::mlx5_ndr("mlx5_1", 1);
    assert_eq!(level(vec![polling(ndr(), 1), other], port), ("warn".into(), 5));
    let spare = polling(Device::mlx4("mlx4_0"), 2);
    assert_eq!(level(vec![spare], "mlx4_0 port 2"), ("note".into(), 0), "often left empty");
}

#[test]
fn disabled_port_is_a_finding() {
    let off = polling(ndr(), 1).file("ports/1/phys_state", "3: Disabled");
    let found = TestHost::with([off]).report(&[]);
    let fix = "ibportstate -C mlx5_0 -P 1 -D 0 1 enable";
    found.one("ports", "mlx5_0 port 1").says("warn", "disabled by an administrator", fix);

    let roce = polling(Device::irdma("irdma0"), 1).file("ports/1/phys_state", "3: Disabled");
    let patient = TestHost::with([roce]);
    patient.tree.put("class/net/ens3f0/flags", "0x1002\n");
    let found = patient.report(&["--no-collector.fabric"]);
    let fix = "ip link set ens3f0 up";
    found.one("ports", "irdma0 port 1").says("warn", "ens3f0 is administratively down", fix);
    // Beside a port in use it is a spare one.
    let roce = polling(Device::irdma("irdma0"), 1).file("ports/1/phys_state", "3: Disabled");
    let patient = TestHost::with([roce, ndr()]);
    patient.tree.put("class/net/ens3f0/flags", "0x1002\n");
    let found = patient.report(&["--no-collector.fabric"]);
    found.one("ports", "irdma0 port 1").says("note", "ens3f0 is administratively down", fix);
    assert_eq!(found.code, 0);
}

#[test]
fn virtual_function_without_guid_is_a_finding() {
    let patient = TestHost::with([polling(Device::mlx5_vf("mlx5_4", 1), 1)]);
    patient.tree.link("devices/pci0000:00/0000:c1:00.1/physfn", "../0000:c1:00.0");
    let found = patient.report(&[]);
    let port = found.one("ports", "mlx5_4 port 1");
    port.says("warn", "virtual function without a GUID", "port_guid");
    found.one("pci", "0000:c1:00.1").says("ok", "virtual function", "");
}

#[test]
fn link_in_init_state_is_a_finding() {
    let waits = || ndr().file("ports/1/state", "2: INIT").lid(1, 0, 0);
    let patient = TestHost::with([waits()]);
    let found = patient.report(&[]);
    found.one("ports", "mlx5_0 port 1").says("warn", "Init, physical state LinkUp", "below");
    let manager = found.one("subnet_manager", "mlx5_0 port 1");
    manager.says("bad", "no subnet manager has configured the port", "opensm");
    assert_eq!((&found.json["first"]["subject"], found.code), (&"subnet_manager".into(), 6));

    // One runs here, according to /proc.
    let process = patient.path("proc/4711");
    std::fs::create_dir(&process).unwrap();
    let zeros = " 0".repeat(49);
    std::fs::write(process.join("stat"), format!("4711 (opensm) S{zeros}\n")).unwrap();
    let found = patient.report(&[]);
    let manager = found.one("subnet_manager", "mlx5_0 port 1");
    manager.says("bad", "no subnet manager", "opensm runs here (process 4711)");

    // Omni-Path has its own manager.
    let hfi = Device::hfi1("hfi1_0").file("ports/1/state", "2: INIT").lid(1, 0, 0);
    let found = TestHost::with([hfi]).report(&[]);
    found.one("subnet_manager", "hfi1_0 port 1").says("bad", "no subnet manager", "opafm");
}

#[test]
fn partitions_limit_which_nodes_respond() {
    let keys = |keys: &[(u16, &str)]| {
        let device = ndr().without("ports/1/pkeys");
        let device = keys.iter().fold(device, |device, (index, key)| {
            device.file(&format!("ports/1/pkeys/{index}"), key)
        });
        let found = TestHost::with([device]).report(&[]);
        let port = found.one("partitions", "mlx5_0 port 1");
        (port.text("level").to_owned(), port.text("found").to_owned())
    };
    let told = |level: &str, found: &str| (level.to_owned(), found.to_owned());
    assert_eq!(
        keys(&[(0, "0xffff"), (1, "0x0000"), (10, "0x8003"), (2, "0x8001")]),
        told("ok", "0xffff, 0x8001, 0x8003: full member of the default partition")
    );
    assert_eq!(
        keys(&[(0, "0x7fff"), (1, "0x0000")]),
        told("warn", "0x7fff: limited member of the default partition")
    );
    assert_eq!(
        keys(&[(0, "0x8001"), (1, "0xffff")]),
        told("warn", "0x8001, 0xffff: the default partition is not first")
    );
    assert_eq!(keys(&[(0, "0x8001")]), told("warn", "0x8001: not in the default partition"));
    let many: Vec<(u16, String)> = (0..128).map(|n| (n, format!("{:#06x}", 0xffff - n))).collect();
    let many: Vec<(u16, &str)> = many.iter().map(|(index, key)| (*index, &**key)).collect();
    assert!(keys(&many).1.contains("122 more"), "{:?}", keys(&many));
}

#[test]
fn chosen_p_key_is_checked_in_its_own_port_table() {
    let keys = [(0, "0xffff"), (1, "0x8001"), (2, "0x0002")];
    let with_keys = |device: Device| {
        keys.iter().fold(device.without("ports/1/pkeys"), |device, (index, key)| {
            device.file(&format!("ports/1/pkeys/{index}"), key)
        })
    };
    let patient = TestHost::with([ndr(), with_keys(Device::mlx5_ndr("mlx5_1", 1))]);
    for (key, level, says) in [
        ("0x8001", "ok", "full member of the partition of --fabric.pkey 0x8001"),
        ("0x8002", "warn", "limited member of the partition of --fabric.pkey 0x8002"),
        ("0x8003", "bad", "not in the partition of --fabric.pkey 0x8003"),
    ] {
        let found = patient.report(&["--fabric.hca=mlx5_1", &format!("--fabric.pkey={key}")]);
        let port = found.one("partitions", "mlx5_1 port 1");
        assert_eq!(port.text("level"), level, "{key}");
        assert!(port.text("found").ends_with(says), "{key}: {}", port.text("found"));
        let other = found.one("partitions", "mlx5_0 port 1");
        assert!(other.text("found").ends_with("full member of the default partition"), "{key}");
    }
}

#[test]
fn differing_ipoib_interfaces_are_a_finding() {
    let ib = |index: u16, netdev: Netdev| {
        Device::mlx5_ndr(&format!("mlx5_{index}"), index).netdev(netdev)
    };
    let alike = TestHost::with([ndr(), Device::mlx5_ndr("mlx5_1", 1)]).report(&[]);
    alike.one("ipoib", "ib1").says("ok", "on mlx5_1 port 1: datagram, MTU 2044, up", "");
    assert_eq!(alike.code, 0);

    let connected = Netdev::ipoib("ib9").file("mode", "connected").file("mtu", "65520");
    let found = TestHost::with([ib(0, Netdev::ipoib("ib8")), ib(1, connected)]).report(&[]);
    let mode = found.one("ipoib", "mode");
    mode.says("warn", "differs: connected: ib9; datagram: ib0 ib8 ib1", "echo datagram >");
    found.one("ipoib", "MTU").says("warn", "2044: ib0 ib8 ib1; 65520: ib9", "mtu 2044");
    found.one("ipoib", "ib9").says("ok", "connected, MTU 65520", "");
    assert_eq!(found.code, 5);

    let down = Netdev::ipoib("ib8").file("operstate", "down");
    let found = TestHost::with([ib(0, down)]).report(&[]);
    found.one("ipoib", "ib8").says("note", "down", "ip link set ib8 up");
}

#[test]
fn roce_host_needs_no_infiniband() {
    let roce = || {
        Device::irdma("irdma0")
            .file("ports/1/gids/0", "fe80:0000:0000:0000:6a05:caff:fe12:3456")
            .file("ports/1/gid_attrs/types/0", "IB/RoCE v1")
            .file("ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000")
            .file("ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001")
            .file("ports/1/gid_attrs/types/2", "RoCE v2")
    };
    let patient = TestHost::with([roce()]);
    patient.modules("");
    patient.without("class/infiniband_mad");
    let found = patient.report(&["--no-collector.fabric"]);
    assert_eq!((found.troubles(), found.code), (vec![], 0), "{:#}", found.json);
    for module in ["ib_umad", "ib_ipoib"] {
        found.one("modules", module).says("ok", "not needed", "");
    }
    found.one("ports", "irdma0 port 1").says("ok", "Ethernet, Active", "");
    found.one("ports", "irdma0 port 1 GIDs").says("ok", "2 (IB/RoCE v1, RoCE v2) on ens3f0", "");
    found.one("subnet_manager", "ports").says("ok", "not needed", "");

    let old = roce().without("ports/1/gids/2");
    let found = TestHost::with([old]).report(&["--no-collector.fabric"]);
    let gids = found.one("ports", "irdma0 port 1 GIDs");
    gids.says("warn", "IB/RoCE v1: no RoCE v2 GID", "ip addr add");
}
