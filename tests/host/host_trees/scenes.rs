//! Hosts whose devices come, go and change, as kernels do it: bonds, pods, renames, planes, and flaps without events.

use std::time::Duration;

use crate::host_trees::read_once;
use test_rig::sysfs::{Device, Netdev, Tree};
use test_rig::{Exporter, Metrics, wait_until};

const LIMIT: Duration = Duration::from_secs(60);
const LOSSES: &str = "infiniband_port_link_losses_total";
const LINK_DOWNED: &str = "ports/1/counters/link_downed";
const SYMBOL_ERROR: &str = "ports/1/counters/symbol_error";

fn start(tree: &Tree) -> Exporter {
    let mut exporter = Exporter::on_host(tree, &["--host.interval=1s", "--host.error-backoff=1s"]);
    exporter.wait_ready();
    exporter
}

fn of(device: &str) -> [(&str, &str); 1] {
    [("device", device)]
}

fn losses(metrics: &Metrics, device: &str) -> Option<u64> {
    metrics.get_u64(LOSSES, &of(device))
}

fn wait(exporter: &Exporter, what: &str, found: impl Fn(&Metrics) -> bool) -> Metrics {
    wait_until(LIMIT, what, || Some(exporter.metrics()).filter(|metrics| found(metrics)))
}

/// A port of RoCE with the interface of its own.
fn roce(device: Device, netdev: &str) -> Device {
    device.gid_on(1, netdev).netdev(
        Netdev::ethernet(netdev)
            .file("phys_port_name", "p0")
            .file("flags", "0x1003")
            .file("carrier", "1"),
    )
}

/// A function of ConnectX-6 Dx by itself.
fn function(name: &str, address: &str, guid: u64, netdev: &str) -> Device {
    let device = Device::mlx5_bond(name, 0).without("ports/1/gid_attrs").on(address, "mlx5_core");
    // Its interfaces are those of a bond: only one is its own.
    let bare = Device::bare(name).on(address, "mlx5_core").guid(guid);
    roce(device.files_to(bare).guid(guid), netdev)
}

/// The kind that a family says of each device and port.
fn kinds(metrics: &Metrics, family: &str) -> Vec<String> {
    let kind = |(labels, _): (&std::collections::BTreeMap<String, String>, f64)| {
        let port = labels.get("port").map(|port| format!("/{port}")).unwrap_or_default();
        format!("{}{port} {}", labels["device"], labels["kind"])
    };
    metrics.all(family).map(kind).collect()
}

#[test]
fn ports_without_a_cable_of_their_own_are_marked() {
    let vf = Device::mlx5_vf("mlx5_4", 1);
    let sf = function("mlx5_5", "mlx5_core.sf.2", 0x55, "en0");
    let switchdev = function("mlx5_6", "0000:31:00.0", 0x66, "p0")
        .port(2, "4: ACTIVE", "5: LinkUp", "100 Gb/sec (4X EDR)", "Ethernet")
        .gid_on(2, "pf0vf0")
        .netdev(Netdev::ethernet("pf0vf0").file("phys_port_name", "pf0vf0"));
    // A plane device has the PCI function and the GUIDs of its parent, and a port for each plane. Its name is free.
    let parent = Device::mlx5_xdr("mlx5_7").file("ports/1/gids/0", GID);
    let planes = (1..=4).fold(
        Device::bare("planes").on("0000:d0:00.0", "mlx5_core").guid(0xe09d_7303_0012_3456),
        |planes, port| {
            planes
                .port(port, "4: ACTIVE", "5: LinkUp", "200 Gb/sec (1X XDR)", "InfiniBand")
                .file(&format!("ports/{port}/gids/0"), GID)
        },
    );
    // Socket Direct: one port of a card on the buses of two processors.
    let direct = |name: &str, address: &str, guid| {
        let device = Device::bare(name).on(address, "mlx5_core");
        let device = Device::mlx5_ndr(name, 8).files_to(device).guid(guid);
        device.file("sys_image_guid", "0000:0000:0000:0088")
    };
    let tree = Tree::new([
        vf,
        sf,
        switchdev,
        parent,
        planes,
        direct("mlx5_8", "0000:3b:00.0", 0x88),
        direct("mlx5_9", "0000:af:00.0", 0x8c),
        // The second port of the same card.
        direct("mlx5_a", "0000:3b:00.1", 0x89),
        Device::rxe("rxe0", "veth0"),
    ]);
    tree.link("devices/pci0000:00/0000:c1:00.1/physfn", "../0000:c1:00.0");
    tree.put("devices/pci0000:00/mlx5_core.sf.2/sfnum", "88\n");
    let metrics = read_once(&tree);
    assert_eq!(
        kinds(&metrics, "infiniband_device_info"),
        [
            "mlx5_4 virtual_function",
            "mlx5_5 sub_function",
            "mlx5_6 physical",
            "mlx5_7 physical",
            "mlx5_8 physical",
            "mlx5_9 second_function",
            "mlx5_a physical",
            "planes smi",
            "rxe0 software",
        ]
    );
    let ports = kinds(&metrics, "infiniband_device_port_info");
    for port in [
        "mlx5_6/1 physical",
        "mlx5_6/2 representor",
        "mlx5_7/1 physical",
        "planes/4 smi",
        "mlx5_4/1 virtual_function",
    ] {
        assert!(ports.contains(&port.to_owned()), "{port}: {ports:?}");
    }
}

const GID: &str = "fe80:0000:0000:0000:e09d:7303:0012:3456";

#[test]
fn interface_says_whether_it_was_set_down_or_lost_its_link() {
    let device = function("mlx5_0", "0000:31:00.0", 7, "en0");
    let tree = Tree::new([device]);
    let exporter = start(&tree);
    let values = |metrics: &Metrics| {
        ["administratively_up", "carrier"]
            .map(|name| metrics.get_u64(&format!("infiniband_netdev_{name}"), &[]))
    };
    assert_eq!(values(&exporter.metrics()), [Some(1), Some(1)]);
    let netdev = "devices/pci0000:00/0000:31:00.0/net/en0";
    let downs = |metrics: &Metrics| {
        (
            losses(metrics, "mlx5_0"),
            metrics.get_u64("infiniband_port_administrative_downs_total", &[]),
        )
    };
    // `ip link set down`: the kernel refuses to read the carrier then.
    std::fs::remove_file(tree.path().join(netdev).join("carrier")).unwrap();
    tree.put(&format!("{netdev}/flags"), "0x1002\n");
    tree.set("mlx5_0", "ports/1/phys_state", "3: Disabled\n");
    tree.set("mlx5_0", "ports/1/state", "1: DOWN\n");
    let metrics = wait(&exporter, "a port that is set down", |it| downs(it) == (Some(0), Some(1)));
    assert_eq!(values(&metrics), [Some(0), None]);
    tree.put(&format!("{netdev}/carrier"), "1\n");
    tree.put(&format!("{netdev}/flags"), "0x1003\n");
    tree.set("mlx5_0", "ports/1/state", "4: ACTIVE\n");
    wait(&exporter, "the port", |it| it.get_u64("infiniband_port_state", &[]) == Some(4));
    // The cable is pulled: the driver reports the same states.
    tree.put(&format!("{netdev}/carrier"), "0\n");
    tree.set("mlx5_0", "ports/1/state", "1: DOWN\n");
    let metrics = wait(&exporter, "a lost link", |it| downs(it) == (Some(1), Some(1)));
    assert_eq!(values(&metrics), [Some(1), Some(0)]);
}

#[test]
fn device_that_joined_a_bond_is_not_missing() {
    let (first, second) = (0x0c42_a103_00b7_0000, 0x0c42_a103_00b7_0001);
    let [a, b] = [
        function("mlx5_0", "0000:31:00.0", first, "ens1f0np0"),
        function("mlx5_1", "0000:31:00.1", second, "ens1f1np1"),
    ];
    let tree = Tree::new([a.clone(), b.clone()]);
    let mut exporter = start(&tree);
    assert_eq!(exporter.metrics().all("infiniband_device_up").count(), 2);
    // mlx5 removes both devices, and makes one of the first function. Here that is many steps, of which no read may see
    // only some: the exporter stands still from the end of one read on.
    let reads = || exporter.metrics().get_u64("fabric_exporter_host_reads_total", &[]).unwrap();
    let before = reads();
    wait_until(LIMIT, "the next read", || (reads() > before).then_some(()));
    exporter.signal("STOP");
    tree.remove(&a);
    tree.remove(&b);
    tree.add_netdev(None, &Netdev::ethernet("bond0").file("bonding/slaves", "ens1f0np0 ens1f1np1"));
    for (address, name) in [("0000:31:00.0", "ens1f0np0"), ("0000:31:00.1", "ens1f1np1")] {
        let function = std::path::Path::new("devices/pci0000:00").join(address);
        tree.add_netdev(Some(&function), &Netdev::ethernet(name));
    }
    let bond = Device::bare("mlx5_bond_0").on("0000:31:00.0", "mlx5_core");
    let bond = a.files_to(bond).without("ports/1/gid_attrs").guid(first).gid_on(1, "bond0");
    tree.add(&bond);
    exporter.signal("CONT");
    let metrics = wait(&exporter, "the bond", |it| {
        it.get("infiniband_device_up", &of("mlx5_bond_0")) == Some(1.0)
    });
    assert_eq!(metrics.all("infiniband_device_up").count(), 1, "no device is missing");
    let info = metrics.sample("infiniband_netdev_info", &[("netdev", "ens1f1np1")]).unwrap();
    assert_eq!(info.labels["bond"], "bond0");
    assert!(!exporter.log().contains("device disappeared"), "{}", exporter.log());
}

#[test]
fn renamed_device_continues_under_its_new_name() {
    let tree = Tree::new([Device::mlx5_ndr("mlx5_1", 0).file(SYMBOL_ERROR, "1000")]);
    let exporter = start(&tree);
    let errors = "infiniband_port_symbol_errors_total";
    // Cleared by another program, and five more; a lost link.
    tree.set("mlx5_1", SYMBOL_ERROR, "5\n");
    tree.set("mlx5_1", "ports/1/state", "1: DOWN\n");
    wait(&exporter, "1,005 errors and a lost link", |it| {
        (it.get_u64(errors, &[]), losses(it, "mlx5_1")) == (Some(1005), Some(1))
    });
    let class = tree.path().join("class/infiniband");
    std::fs::rename(class.join("mlx5_1"), class.join("ibp24s0")).unwrap();
    tree.set("ibp24s0", SYMBOL_ERROR, "6\n");
    let metrics =
        wait(&exporter, "its new name", |it| it.get_u64(errors, &of("ibp24s0")) == Some(1006));
    assert_eq!(losses(&metrics, "ibp24s0"), Some(1));
    assert_eq!(metrics.all(LOSSES).count(), 1, "not under the old name");
    let resets = metrics.get_u64("infiniband_port_counters_reset_total", &of("ibp24s0"));
    assert_eq!(resets, Some(1), "the rename is none");
}

/// A virtual function for one pod after the other, and a card that is replaced.
#[test]
fn losses_are_not_inherited_with_a_name() {
    let pod = |guid| Device::mlx5_vf("mlx5_4", 1).guid(guid);
    let card = |guid| Device::mlx5_ndr("mlx5_0", 0).guid(guid);
    let tree = Tree::new([pod(0x100), card(1)]);
    tree.link("devices/pci0000:00/0000:c1:00.1/physfn", "../0000:c1:00.0");
    let exporter = start(&tree);
    for next in 1..=3 {
        tree.remove(&pod(0x100));
        tree.add(&pod(0x100 + next));
        let guid = format!("0x{:016x}", 0x100 + next);
        let labels = [("device", "mlx5_4"), ("guid", &*guid)];
        let metrics = wait(&exporter, "the next pod", |it| it.sample(LOSSES, &labels).is_some());
        assert_eq!(metrics.get_u64(LOSSES, &labels), Some(0));
    }
    tree.set("mlx5_0", "ports/1/state", "1: DOWN\n");
    wait(&exporter, "the loss of the first card", |it| losses(it, "mlx5_0") == Some(1));
    tree.remove(&card(1));
    tree.add(&card(2));
    let labels = [("device", "mlx5_0"), ("guid", "0x0000000000000002")];
    let metrics = wait(&exporter, "the new card", |it| it.sample(LOSSES, &labels).is_some());
    assert_eq!(metrics.get_u64(LOSSES, &labels), Some(0));
}

#[test]
fn flap_between_two_reads_is_found_in_link_downed() {
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0).file(LINK_DOWNED, "12")]);
    let exporter = start(&tree);
    let downed = "infiniband_port_link_downed_total";
    assert_eq!(losses(&exporter.metrics(), "mlx5_0"), Some(0), "12 is from before");
    for (value, total, lost) in [(13, 13, 1), (0, 13, 1), (1, 14, 2)] {
        tree.set("mlx5_0", LINK_DOWNED, &format!("{value}\n"));
        // A clear is seen by the count of resets.
        let metrics = exporter.wait_reads(2);
        assert_eq!(
            (metrics.get_u64(downed, &[]), losses(&metrics, "mlx5_0")),
            (Some(total), Some(lost)),
            "LinkDowned {value}"
        );
    }
}
