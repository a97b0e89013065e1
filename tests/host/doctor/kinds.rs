//! Ports without a cable of their own, and bonds.

use crate::doctor::patient::{CARD, JsonFinding, Report, TestHost};
use test_rig::sysfs::{Device, Netdev};

/// What is only right for the port of an adapter.
fn assert_no_cable_advice(found: &Report) {
    let text = found.json.to_string();
    for advice in ["cable", "ibportstate", "systemctl start", "install opensm"] {
        assert!(!text.contains(advice), "{advice}: {:#}", found.json);
    }
}

fn vf(index: u16) -> Device {
    Device::mlx5_vf(&format!("mlx5_{}", 10 + index), index)
        .file("ports/1/state", "1: DOWN")
        .file("ports/1/phys_state", "5: LinkUp")
}

#[test]
fn idle_virtual_functions_are_notes() {
    let adapter = Device::mlx5_ndr("mlx5_2", 2);
    let patient = TestHost::with([adapter, vf(1), vf(2).guid(0x22), vf(3).guid(0x33)]);
    for index in 1..3 {
        let path = format!("devices/pci0000:00/0000:c1:00.{index}/physfn");
        patient.tree.link(&path, "../0000:12:00.0");
    }
    for flags in [&[][..], &["--no-collector.fabric"]] {
        let found = patient.report(flags);
        let port = |index| found.one("ports", &format!("mlx5_1{index} port 1"));
        port(1).says("note", "virtual function without a GUID", "port_guid");
        port(2).says("note", "Down, physical state LinkUp", "vf <N> state auto");
        // No other port is down while its link is up.
        port(3).says("note", "virtual port", "vf <N> state auto");
        assert_no_cable_advice(&found);
        assert_eq!(found.code, 0, "{:#}", found.json);
    }
    // The only port of a guest.
    let found = TestHost::with([vf(3).guid(0x33)]).report(&["--no-collector.fabric"]);
    found.one("ports", "mlx5_13 port 1").says("warn", "virtual port", "vf <N> state auto");
    assert_no_cable_advice(&found);
}

#[test]
fn planes_and_second_functions_refer_to_their_adapter() {
    let guid = |device: Device, node: u64| {
        let system = "a088:c203:0040:0000";
        device.guid(node).file("sys_image_guid", system).file("ports/1/state", "2: INIT")
    };
    let port = |number: u8| format!("fe80:0000:0000:0000:a088:c203:0040:{number:04x}");
    let parent = Device::mlx5_xdr("mlx5_0").file("ports/1/gids/0", &port(0));
    let mut planes = Device::mlx5_xdr("planes0").without("ports/1/hw_counters");
    for number in 1..5 {
        planes = planes
            .port(number, "1: DOWN", "2: Polling", "200 Gb/sec (1X XDR)", "InfiniBand")
            .file(&format!("ports/{number}/gids/0"), &port(0));
    }
    let found = TestHost::with([parent, planes]).report(&[]);
    let plane = found.one("ports", "planes0 port 3");
    plane.says("note", "plane 3 of mlx5_0", "");
    found.one("ports", "mlx5_0 port 1: subnet management").says(
        "ok",
        "through planes0, planes 1, 2, 3, 4",
        "",
    );
    // SMPs are sent through them.
    let permissions = found.of_subject("permissions");
    let opened = |it: &&JsonFinding<'_>| it.text("found").starts_with("planes0 port");
    assert_eq!(permissions.iter().filter(opened).count(), 4, "{permissions:#?}");
    assert_no_cable_advice(&found);
    assert_eq!(found.code, 0, "{:#}", found.json);

    // Socket Direct: a port on two PCI buses.
    let first = guid(Device::mlx5_ndr("mlx5_0", 0), 0xa);
    let second = guid(Device::mlx5_ndr("mlx5_1", 1), 0xb);
    let found = TestHost::with([first, second]).report(&[]);
    found.one("subnet_manager", "mlx5_0 port 1").says("bad", "no subnet manager", "opensm");
    found.one("ports", "mlx5_1 port 1").says("note", "the port of mlx5_0", "");
    assert_eq!(found.troubles().len(), 2, "once for the adapter: {:#}", found.json);
}

#[test]
fn adapter_without_qp0_says_how_to_get_one() {
    let found = |device: Device, kernel: &str, flags: &[&str]| {
        let host = TestHost::with([device]);
        host.without("class/infiniband_mad/issm0");
        std::fs::create_dir_all(host.path("proc/sys/kernel")).unwrap();
        std::fs::write(host.path("proc/sys/kernel/osrelease"), format!("{kernel}\n")).unwrap();
        host.report(flags)
    };
    let what = "mlx5_0 port 1: subnet management";
    let multi_plane = || Device::mlx5_xdr("mlx5_0");
    let report = found(multi_plane(), "6.14.0", &[]);
    let fix = "rdma dev add smi_mlx5_0 type SMI parent mlx5_0";
    report.one("ports", what).says("warn", "multi-plane HCA", fix);
    let report = found(multi_plane(), "6.14.0", &["--no-collector.fabric"]);
    report.one("ports", what).says("note", "multi-plane HCA", fix);

    let ordinary = || Device::mlx5_ndr("mlx5_0", 0).file("fw_ver", "28.41.1000");
    let report = found(ordinary(), "6.12.3-arch1-1", &[]);
    let finding = report.one("ports", what);
    finding.says("warn", "firmware 28.41.1000", "kernel to 6.12.9");
    finding.says("warn", "kernel 6.12.3-arch1-1", "firmware to one after xx.42.1000");
    // What is not known is not said.
    let report = found(ordinary(), "6.12.9", &[]);
    assert!(report.of_subject("ports").iter().all(|it| it.text("what") != what));
    // With QP0 there is nothing to say.
    let report = TestHost::with([multi_plane()]).report(&[]);
    assert!(report.of_subject("ports").iter().all(|it| it.text("what") != what));
}

#[test]
fn representor_needs_no_address() {
    let port = |name: &str| {
        Device::irdma("mlx5_0")
            .file("ports/1/gid_attrs/types/0", "IB/RoCE v1")
            .file("ports/1/gids/0", "fe80:0000:0000:0000:6a05:caff:fe12:3456")
            .netdev(Netdev::ethernet("rep0").file("phys_port_name", name))
            .gid_on(1, "rep0")
    };
    let troubles =
        |name| TestHost::with([port(name)]).report(&["--no-collector.fabric"]).troubles();
    assert_eq!(troubles("pf0vf3"), [""; 0]);
    assert_eq!(troubles("p0"), ["ports: mlx5_0 port 1 GIDs"]);
}

/// An adapter with two functions whose ports one device serves in a bond.
fn lag(name: &str, slaves: &[Netdev]) -> TestHost {
    let device = Device::mlx5_bond(name, 8)
        .file("ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a00:0001")
        .file("ports/1/gid_attrs/types/0", "RoCE v2")
        .named_anew("ens1f1np1", "other0");
    let patient = TestHost::with([device]);
    patient.tree.on_bus("0000:18:00.1", &CARD);
    patient.tree.bind("0000:18:00.1", "mlx5_core");
    let second = std::path::Path::new("devices/pci0000:00/0000:18:00.1");
    for slave in slaves {
        patient.tree.add_netdev(Some(second), slave);
    }
    let names: Vec<&str> = slaves.iter().map(|slave| &*slave.name).collect();
    let slaves = format!("ens1f0np0 {}", names.join(" "));
    let bond = Netdev::ethernet("bond0").file("bonding/slaves", &slaves);
    patient.tree.add_netdev(None, &bond.file("flags", "0x1403").file("carrier", "1"));
    patient
}

fn slave() -> Netdev {
    Netdev::ethernet("ens1f1np1").file("flags", "0x1803").file("carrier", "1")
}

#[test]
fn function_in_a_bond_is_served_by_its_device() {
    let patient = lag("mlx5_bond_0", &[slave()]);
    let found = patient.report(&["--no-collector.fabric"]);
    found.one("pci", "0000:18:00.1").says("ok", "served by mlx5_bond_0", "");
    let bond = found.one("ports", "mlx5_bond_0 port 1 bond0");
    bond.says("ok", "ens1f0np0, ens1f1np1", "");
    // Ethernet has none of InfiniBand's speeds.
    let port = found.one("ports", "mlx5_bond_0 port 1").text("found");
    assert!(port.ends_with("LinkUp, 100 Gb/s"), "{port}");
    assert_eq!((found.troubles(), found.code), (vec![], 0), "{:#}", found.json);
    // Its function does not work, and is in no bond.
    let found = lag("mlx5_0", &[]).report(&["--no-collector.fabric"]);
    assert_eq!(found.troubles(), ["pci: 0000:18:00.1"]);
}

#[test]
fn function_of_a_second_port_is_served_by_the_device_of_the_adapter() {
    // mlx5 with RoCE on both ports: one device with two ports (kernel: multiport in drivers/infiniband/hw/mlx5).
    let device = Device::mlx5_bond("mlx5_0", 8).named_anew("ens1f1np1", "other0").port(
        2,
        "1: DOWN",
        "3: Disabled",
        "40 Gb/sec (4X QDR)",
        "Ethernet",
    );
    let patient = TestHost::with([device]);
    patient.tree.on_bus("0000:18:00.1", &CARD);
    patient.tree.bind("0000:18:00.1", "mlx5_core");
    let found = patient.report(&["--no-collector.fabric"]);
    found.one("pci", "0000:18:00.1").says("ok", "served by mlx5_0", "");
    // Those of another adapter are not.
    patient.tree.on_bus("0000:19:00.1", &CARD);
    patient.tree.bind("0000:19:00.1", "mlx5_core");
    let found = patient.report(&["--no-collector.fabric"]);
    found.one("pci", "0000:19:00.1").says("warn", "no RDMA device created", "dmesg");
}

#[test]
fn member_of_a_bond_without_carrier_is_a_finding() {
    let bond = |slave: Netdev| {
        let found = lag("mlx5_bond_0", &[slave]).report(&["--no-collector.fabric"]);
        let bond = found.one("ports", "mlx5_bond_0 port 1 bond0");
        let texts = ["level", "found", "fix"].map(|field| bond.text(field).to_owned());
        (texts, found.code)
    };
    let lost = slave().file("carrier", "0").file("operstate", "down");
    let ([level, found, fix], code) = bond(lost);
    assert_eq!((&*level, code), ("warn", 5), "{found}");
    assert!(found.contains("member ens1f1np1 has no carrier"), "{found}");
    assert!(fix.contains("cable of ens1f1np1"), "{fix}");
    let off = slave().file("flags", "0x1002").file("operstate", "down").file("carrier", "");
    let ([level, found, _], code) = bond(off);
    assert_eq!((&*level, code), ("note", 0), "{found}");
    assert!(found.contains("ens1f1np1 is administratively down"), "{found}");
}
