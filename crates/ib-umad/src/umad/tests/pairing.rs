//! The rule that finds the two sides of a port, over all that devices say about themselves.

use std::collections::BTreeMap;

use ib_mad::Guid;
use rdma_netlink::SmiDevice;

use super::fake::{Device, FakeHost, GUID, IS_SM_DISABLED, QueuePairs};
use crate::umad::PortChoice;

/// The SMI device of a parent, as the kernel names it.
fn planes_of(parent: &str) -> SmiDevice {
    SmiDevice { name: "planes".into(), guid: Guid(GUID), parent: parent.into() }
}

/// The sides as libibumad finds them (rdma-core, libibumad/umad.c), written from its description: how often each port GUID occurs on
/// the host; of each device the first port whose GUID is not 0; if it occurs more than once, IsSMDisabled decides between
/// GSI and SMI side; otherwise the device is both, or with IsSMDisabled the GSI side. Ports that are not InfiniBand are
/// skipped. The first device of each side is taken.
fn libibumad(devices: &[Device]) -> (Option<&'static str>, Option<&'static str>) {
    let infiniband = || devices.iter().filter(|it| it.layer == "InfiniBand" && it.guid != 0);
    let mut counts = BTreeMap::new();
    for device in infiniband() {
        *counts.entry(device.guid).or_insert(0) += device.ports;
    }
    let (mut gsi, mut smi) = (None, None);
    for device in infiniband() {
        let is_disabled = device.cap_mask & IS_SM_DISABLED != 0;
        let is_single = counts[&device.guid] == 1;
        if is_disabled || is_single {
            gsi = gsi.or(Some(device.name));
        }
        if !is_disabled {
            smi = smi.or(Some(device.name));
        }
    }
    (gsi, smi)
}

/// What was opened, as in [`libibumad`].
fn ours(host: &FakeHost) -> Result<(String, Option<String>), &'static str> {
    host.chosen(PortChoice::default()).map_err(|error| match error {
        error if error.contains("Ethernet (RoCE)") => "Ethernet",
        error if error.contains("does not support subnet management") => "no QP0",
        error => panic!("{error}"),
    })
}

#[test]
fn sides_are_found_whatever_devices_say() {
    let mut agreements = Vec::new();
    for (on_parent, on_smi) in [(false, false), (true, false), (false, true), (true, true)] {
        for has_smi in [true, false] {
            for layer in ["InfiniBand", "Ethernet"] {
                for has_third in [false, true] {
                    let [parent, smi] = Device::pair();
                    // A virtual function that was given the GUID of its adapter.
                    let third = Device::new("mlx5_1", 1, QueuePairs::OnlyQp1);
                    let mask = |is_set| if is_set { 0x2651_ec48 } else { 0x2651_e848 };
                    let parent = Device { cap_mask: mask(on_parent), layer, ..parent };
                    let smi = Device { cap_mask: mask(on_smi), layer, ..smi };
                    let third = Device { layer, ..third };
                    let others = [has_third.then_some(third), has_smi.then_some(smi)];
                    let devices: Vec<Device> =
                        [Some(parent)].into_iter().chain(others).flatten().collect();
                    let found = ours(&FakeHost::new(devices.clone()));
                    let row = format!("{on_parent} {on_smi} {has_smi} {layer} {has_third}");
                    let expected = match (layer, has_smi) {
                        ("Ethernet", _) => Err("Ethernet"),
                        (_, false) => Err("no QP0"),
                        _ => Ok(("mlx5_0".to_owned(), Some("planes".to_owned()))),
                    };
                    assert_eq!(found, expected, "{row}");
                    let usable = expected.ok().map(|(gsi, smi)| (Some(gsi), smi));
                    let theirs = match libibumad(&devices) {
                        (Some(gsi), Some(smi)) => Some((Some(gsi.into()), Some(smi.into()))),
                        // A side is missing: SMPs cannot be sent.
                        _ => None,
                    };
                    if layer == "Ethernet" {
                        assert_eq!(theirs, None, "{row}");
                    } else if theirs == usable {
                        agreements.push((on_parent, on_smi, has_smi, has_third));
                    }
                }
            }
        }
    }
    // libibumad finds the sides only if firmware sets IsSMDisabled on the parent alone, and no other device has the GUID;
    // without an SMI device it finds none in some cases, and in the others a device that has no QP0.
    assert_eq!(
        agreements,
        [
            (false, false, false, true),
            (true, false, true, false),
            (true, false, false, false),
            (false, true, false, true),
            (true, true, false, false),
        ]
    );
}

#[test]
fn ordinary_hca_is_its_own_other_side() {
    for cap_mask in [0x2651_e848, 0xa751_ec48] {
        let hca = Device::new("mlx5_0", 1, QueuePairs::Both);
        let host = FakeHost::new([Device { cap_mask, ..hca }]);
        assert_eq!(ours(&host), Ok(("mlx5_0".into(), None)));
    }
}

#[test]
fn smi_side_is_never_the_main_port() {
    // Its name is the first one.
    let [parent, smi] = Device::pair();
    let host = FakeHost::new([Device { name: "a", ..smi.clone() }, parent.clone()]);
    assert_eq!(ours(&host), Ok(("mlx5_0".into(), Some("a".into()))));
    // A user who names it gets its parent, too, with and without IsSMDisabled.
    for cap_mask in [parent.cap_mask, smi.cap_mask] {
        let host = FakeHost::new([smi.clone(), Device { cap_mask, ..parent.clone() }]);
        let named = PortChoice { hca: Some("planes"), ..PortChoice::default() };
        assert_eq!(host.chosen(named), Ok(("mlx5_0".into(), Some("planes".into()))));
    }
    // Another HCA of the host is complete.
    let other = Device { guid: 1, ..Device::new("mlx5_9", 1, QueuePairs::Both) };
    let host = FakeHost::new([smi, other]);
    assert_eq!(ours(&host), Ok(("mlx5_9".into(), None)));
}

#[test]
fn adapter_with_the_same_guid_is_not_taken_for_the_smi_side() {
    let [parent, smi] = Device::pair();
    let twin = Device::new("mlx5_1", 1, QueuePairs::Both);
    let disabled = Device { cap_mask: parent.cap_mask, ..smi.clone() };
    let choose = PortChoice { hca: Some("mlx5_0"), ..PortChoice::default() };
    let pair = Ok(("mlx5_0".to_owned(), Some("planes".to_owned())));
    // By the PCI function, by what the kernel says, and by IsSMDisabled.
    let host = FakeHost::new([parent.clone(), twin.clone(), disabled.clone()]);
    assert_eq!(host.chosen(choose), pair);
    let elsewhere = Device { function: "elsewhere", ..disabled };
    let mut host = FakeHost::new([parent.clone(), twin.clone(), elsewhere]);
    host.smi_devices = vec![planes_of("mlx5_0")];
    assert_eq!(host.chosen(choose), pair);
    let twin = Device { cap_mask: parent.cap_mask, ..twin };
    let elsewhere = Device { function: "elsewhere", ..smi };
    let host = FakeHost::new([parent, twin, elsewhere]);
    assert_eq!(host.chosen(choose), pair);
}

#[test]
fn smi_device_of_another_parent_is_left_alone() {
    let [parent, smi] = Device::pair();
    let twin = Device { name: "mlx5_1", function: "mlx5_1", ..parent.clone() };
    let mut host = FakeHost::new([parent, twin, smi]);
    host.smi_devices = vec![planes_of("mlx5_1")];
    assert_eq!(ours(&host), Ok(("mlx5_1".into(), Some("planes".into()))));
}

#[test]
fn two_pairs_are_not_mixed_up() {
    let [parent, smi] = Device::pair();
    let guid = GUID + 1;
    let second = Device { name: "mlx5_1", guid, function: "mlx5_1", ..parent.clone() };
    let planes = Device { name: "a_planes", guid, function: "mlx5_1", ..smi.clone() };
    let host = FakeHost::new([parent, smi, second, planes]);
    for (hca, smi) in [("mlx5_0", "planes"), ("mlx5_1", "a_planes")] {
        let choice = PortChoice { hca: Some(hca), ..PortChoice::default() };
        assert_eq!(host.chosen(choice), Ok((hca.into(), Some(smi.into()))));
    }
}
