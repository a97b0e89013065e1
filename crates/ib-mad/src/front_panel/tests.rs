use proptest::prelude::*;

use super::*;

const NA: u32 = u32::MAX;
const SWITCH: NodeKind = NodeKind::Switch;
const CA: NodeKind = NodeKind::Ca;

fn panel(template: u64, kind: NodeKind, values: &[u32]) -> Option<FrontPanel> {
    let mut info = HierarchyInfo::empty(template);
    info.values[..values.len()].copy_from_slice(values);
    FrontPanel::new(&info, kind)
}

fn label(template: u64, kind: NodeKind, values: &[u32]) -> Option<String> {
    panel(template, kind, values).and_then(|panel| panel.label())
}

#[test]
fn labels_are_those_of_ibdiagnet() {
    // Bus 202, device 1, function 2.
    let pci = 202 << 8 | 1 << 3 | 2;
    for (template, kind, values, expected) in [
        // Split, port, cage, ASIC, slot, type, PCI.
        (3, SWITCH, &[NA, 1, 19, 1, NA, 2, NA][..], "1/19/1"),
        (3, SWITCH, &[2, 1, 19, 1, NA, 2, NA], "1/19/1/2"),
        (3, SWITCH, &[NA, 5], "5"),
        (3, SWITCH, &[1, 5], "5/1"),
        (3, CA, &[NA, 1, 1, NA, 0, NA, pci], "B202D1F2/1/1"),
        (3, CA, &[NA, 1, 1, NA, 4 << 8 | 1, NA, pci], "Physical4/1/1"),
        (3, CA, &[2, 1, 1, NA, NA, NA, pci], "B202D1F2/1/1/2"),
        // Type, ASIC name, internal port, cage, port, split, ASIC, -, type, cage manager, plane, planes, port.
        (4, SWITCH, &[3, NA, NA, 1, 1, NA, 1, NA, NA, 1, 1, 4, 1], "sw1p1"),
        (4, SWITCH, &[3, NA, NA, 10, 2, 1], "sw10p2s1"),
        (4, SWITCH, &[2, 1, 145], "FNMA1P145"),
        (4, SWITCH, &[2, 257, 146], "FNMBP146"),
        (4, SWITCH, &[1], "FNM1"),
        (4, SWITCH, &[5, NA, 7], "AccessP7"),
        (4, SWITCH, &[99, 99, NA, 10, 2], "10p2"),
        (5, CA, &[6, 0, 1, 9, 9], "GPUP1"),
        (5, CA, &[4, 0, 1, 1, 2, NA, 0, 0, 0, pci], "ibB202D1F2HCA1p2"),
        (5, CA, &[4, 0, 1, 1, 2, 3], "ibHCA1p2s3"),
    ] {
        assert_eq!(label(template, kind, values).as_deref(), Some(expected), "{values:?}");
    }
}

#[test]
fn absent_or_unknown_values_are_no_label() {
    let all = [1; HierarchyInfo::PER_BLOCK];
    for template in [0, 1, 2, 6, 7, u64::MAX] {
        assert_eq!(panel(template, SWITCH, &all), None, "{template}");
    }
    for template in [3, 4, 5] {
        for kind in [SWITCH, CA] {
            assert_eq!(panel(template, kind, &[]), None, "{template}");
        }
    }
    // A port of an adapter at an unknown place, and values that no port has.
    assert_eq!(panel(3, CA, &[NA, 1, 1, NA, NA, NA, 0]), None);
    assert_eq!(panel(3, SWITCH, &[NA, 256, 19, 1]), None);
    assert_eq!(panel(4, SWITCH, &[3, NA, NA, 1000, 70_000]), None);
    assert_eq!(panel(4, SWITCH, &[3, 1]), None);
    assert_eq!(panel(5, CA, &[6]), None);
}

#[test]
fn plane_and_aggregated_port_of_xdr_ports() {
    let of = |template, kind, values| {
        let panel: FrontPanel = panel(template, kind, values).unwrap();
        (panel.plane, panel.planes, panel.aggregated_port)
    };
    let values = [3, 1, NA, 10, 2, NA, 1, NA, NA, 0, 3, 4, 20];
    assert_eq!(of(4, SWITCH, &values), (Some(3), Some(4), Some(20)));
    assert_eq!(of(5, CA, &values), (Some(3), Some(4), Some(20)));
    let unplanarized = [3, 1, NA, 10, 2, NA, 1, NA, NA, 0, 0, 0, NA];
    assert_eq!(of(4, SWITCH, &unplanarized), (None, None, None));
    // The values of a Quantum-2 mean something else.
    assert_eq!(of(3, SWITCH, &values), (None, None, None));
}

#[test]
fn plane_without_a_label_is_kept() {
    let planes = [NA, NA, NA, NA, NA, NA, NA, NA, NA, NA, 2, 4, 7];
    for (template, kind) in [(4, SWITCH), (5, CA)] {
        let panel = panel(template, kind, &planes).unwrap();
        assert_eq!((panel.plane, panel.planes, panel.aggregated_port), (Some(2), Some(4), Some(7)));
        assert_eq!(panel.label(), None);
        assert!(!panel.is_called("") && !panel.is_called("ib"));
    }
}

#[test]
fn numbers_that_no_plane_has_are_absent() {
    for (values, expected, is_plane) in [
        ([1, 4, 7], (Some(1), Some(4), Some(7)), true),
        ([4, 2, 7], (Some(4), Some(2), Some(7)), true),
        // More planes than there are, and port 0.
        ([1, 5, 0], (Some(1), None, None), true),
        ([5, 4, 7], (None, Some(4), Some(7)), false),
        // A port with one plane is none of several.
        ([1, 1, 7], (Some(1), Some(1), Some(7)), false),
        ([0, 4, 7], (None, Some(4), Some(7)), false),
    ] {
        let mut all = vec![3, NA, NA, 10, 2, NA, NA, NA, NA, NA];
        all.extend(values);
        let panel = panel(4, SWITCH, &all).unwrap();
        assert_eq!((panel.plane, panel.planes, panel.aggregated_port), expected, "{values:?}");
        assert_eq!(panel.is_plane(), is_plane, "{values:?}");
    }
}

#[test]
fn ports_are_found_by_what_people_type() {
    let ndr = panel(3, SWITCH, &[NA, 1, 19, 1]).unwrap();
    let split = panel(3, SWITCH, &[2, 1, 19, 1]).unwrap();
    let xdr = panel(4, SWITCH, &[3, NA, NA, 10, 2]).unwrap();
    let xdr_split = panel(4, SWITCH, &[3, NA, NA, 10, 2, 1]).unwrap();
    let fnm1 = panel(4, SWITCH, &[1]).unwrap();
    let adapter = panel(5, CA, &[4, 0, 1, 1, 2]).unwrap();
    let all = [ndr, split, xdr, xdr_split, fnm1, adapter];
    for (text, expected) in [
        ("1/19/1", ndr),
        (" IB1/19/1 ", ndr),
        ("ib19/1", ndr),
        ("19/1", ndr),
        ("sw19p1", ndr),
        ("1/19/1/2", split),
        ("SW19P1S2", split),
        ("sw10p2", xdr),
        ("10/2", xdr),
        ("sw10p2s1", xdr_split),
        ("fnm1", fnm1),
        ("ibhca1p2", adapter),
    ] {
        let found: Vec<_> = all.into_iter().filter(|panel| panel.is_called(text)).collect();
        assert_eq!(found, [expected], "{text}");
    }
    for text in ["", "ib", "37", "1", "19", "1/19", "1/1/19", "9/1", "sw1p1", "i\u{df}1/19/1"] {
        assert!(!all.iter().any(|panel| panel.is_called(text)), "{text}");
    }
}

proptest! {
    #[test]
    fn any_values_have_one_label_that_finds_the_port(
        template in 0u64..8, is_switch: bool, values: [u32; HierarchyInfo::PER_BLOCK],
        small in proptest::array::uniform13(0u32..300), is_small: bool,
    ) {
        let kind = if is_switch { SWITCH } else { CA };
        if let Some(panel) = panel(template, kind, if is_small { &small } else { &values }) {
            let label = panel.label();
            prop_assert!(label.is_some() || panel.plane.is_some());
            if let Some(label) = label {
                prop_assert!(panel.is_called(&label));
                prop_assert!(label.is_ascii());
            }
        }
    }
}
