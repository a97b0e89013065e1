//! Patterns, and the devices that they select.

use std::fs;
use std::os::unix::fs::symlink;

use ib_mad::Guid;

use super::*;
use rdma_netlink::SmiDevice;

/// A name that only a regular expression can select.
fn selects(include: Option<&str>, exclude: Option<&str>, name: &str) -> bool {
    let filter = DeviceFilter::new(include, exclude).unwrap();
    filter.matches(Path::new("/nonexistent"), name)
}

#[test]
fn whole_name_matches_and_exclude_wins() {
    for (include, exclude, matching, excluded) in [
        (None, None, "mlx5_0", ""),
        (None, Some("mlx5_1"), "mlx5_10", "mlx5_1"),
        (Some("mlx5_[0-3]|rxe.*"), None, "rxe0", "mlx5_30"),
        (Some("mlx5_.*"), Some("mlx5_bond_.*"), "mlx5_0", "mlx5_bond_0"),
        // A part of it may have other alternatives.
        (Some("mlx5_(0|1)|pci:15b3:1021"), None, "mlx5_1", "mlx5_2"),
        (None, Some(r"kind:smi|a[|]b|c\|d"), "a", "c|d"),
    ] {
        assert!(selects(include, exclude, matching), "{include:?} {exclude:?} {matching}");
        let is_left_out = excluded.is_empty() || !selects(include, exclude, excluded);
        assert!(is_left_out, "{include:?} {excluded}");
    }
}

#[test]
fn wrong_pattern_is_named_with_the_forms_that_are_right() {
    for (pattern, says) in [
        ("mlx5_(", "\"mlx5_(\" is not a regular expression"),
        ("mlx5_.*|kind:bridge", "\"kind:bridge\" is not one of kind:nvlink_bridge, kind:smi, "),
        ("kind:", "\"kind:\" is not one of "),
        // Known only after the counters were read.
        ("kind:restricted", "\"kind:restricted\" is not one of "),
        ("pci:15b3", "\"pci:15b3\" has neither the form pci:VENDOR:DEVICE, as in pci:15b3:1021, "),
        ("pci:0x15b3:0x1021", "nor that of an address, as in pci:0000:0b:00.0"),
        ("pci:0b:00.0", "neither"),
        ("pci:0000:0b:00", "neither"),
        ("pci:+5b3:1021", "neither"),
    ] {
        for patterns in [(Some(pattern), None), (None, Some(pattern))] {
            let error = DeviceFilter::new(patterns.0, patterns.1).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}

#[test]
fn devices_are_selected_by_function_and_kind() {
    let sysfs = tempfile::tempdir().unwrap();
    let class = sysfs.path().join("class/infiniband");
    let device = |name: &str, address: &str, model: &str, guid: &str| {
        let function = sysfs.path().join("devices").join(address);
        let directory = class.join(name);
        fs::create_dir_all(&function).unwrap();
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("node_guid"), guid).unwrap();
        if !address.is_empty() {
            fs::write(function.join("vendor"), "0x15b3\n").unwrap();
            fs::write(function.join("device"), model).unwrap();
            symlink(&function, directory.join("device")).unwrap();
        }
        function
    };
    let bridge = device("mlx5_0", "0000:0b:00.0", "0x1021\n", "0000:0000:0000:0001");
    fs::write(bridge.join("vpd"), b"\x90\x06\x00SW_MNG\x78").unwrap();
    symlink("/sys/bus/pci/drivers/mlx5_core", bridge.join("driver")).unwrap();
    device("mlx5_1", "0000:1a:00.0", "0x1021\n", "0000:0000:0000:0002");
    device("mlx5_2", "0000:c1:00.0", "0x1023\n", "0000:0000:0000:0003");
    device("planes", "0000:c1:00.0", "0x1023\n", "0000:0000:0000:0003");
    let vf = device("mlx5_3", "0001:c1:00.1", "0x101e\n", "0000:0000:0000:0000");
    symlink("../0000:c1:00.0", vf.join("physfn")).unwrap();
    device("rxe0", "", "", "0000:0000:0000:0009");
    let (name, parent) = ("planes".to_owned(), "mlx5_2".to_owned());
    let kernel = KernelDevices::with(vec![SmiDevice { name, guid: Guid(3), parent }]);
    let left = |exclude: &str| {
        let filter = DeviceFilter::new(None, Some(exclude)).unwrap();
        let all = ["mlx5_0", "mlx5_1", "mlx5_2", "planes", "mlx5_3", "rxe0"];
        let left = all.into_iter().filter(|name| filter.selects(&class, name, &kernel));
        left.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left("pci:15b3:1021"), "mlx5_2 planes mlx5_3 rxe0");
    assert_eq!(left("pci:0000:0B:00.0|pci:0001:c1:00.1"), "mlx5_1 mlx5_2 planes rxe0");
    assert_eq!(left("kind:nvlink_bridge|kind:smi"), "mlx5_1 mlx5_2 mlx5_3 rxe0");
    assert_eq!(left("kind:virtual_function|kind:software"), "mlx5_0 mlx5_1 mlx5_2 planes");
    // Both devices of the function.
    assert_eq!(left("pci:0000:c1:00.0|rxe.*"), "mlx5_0 mlx5_1 mlx5_3");
}
