use proptest::prelude::*;

use super::*;
use crate::mad::{Class, LEN, Mad, method};
use crate::vendor::{ACCESS_REGISTER, access_register};

fn any_query() -> impl Strategy<Value = RegisterQuery> {
    (any::<u8>(), any::<u16>(), 0..11u8).prop_map(|(port, sensor, which)| match which {
        0 => RegisterQuery::PhysicalStatistics(port),
        1 => RegisterQuery::FecHistogram(port),
        2 => RegisterQuery::Troubleshooting(port),
        3 => RegisterQuery::Module(port),
        4 => RegisterQuery::LinkDown(port),
        5 => RegisterQuery::Temperature(sensor & 0xfff),
        6 => RegisterQuery::Temperatures { first: sensor & 0xfff, count: port },
        7 => RegisterQuery::Fans,
        8 => RegisterQuery::FanSpeed(port & 0xf),
        9 => RegisterQuery::PowerSupplies,
        _ => RegisterQuery::FanLimits,
    })
}

proptest! {
    /// Bits that act on the device even in a Get (mstflint's register tables): PPCNT clr, MTMP mtr and mte, the
    /// interrupt and clear bits of PPBMC, and writes of any kind.
    #[test]
    fn no_request_has_a_bit_that_acts(query in any_query()) {
        let mad = access_register(query).request(None, 7);
        prop_assert_eq!((mad.class(), mad.method()), (Class::Vendor as u8, method::GET));
        prop_assert_eq!(mad.attribute(), ACCESS_REGISTER);
        // Only bits that select are set: in the first dword port, numbering, group, sensor or fan; in the second one
        // the unit of power, the page or the number of sensors.
        let selecting = match query.kind().0 {
            PhysicalStatistics::ID => [0x00ff_c03f, 0],
            Module::ID => [0x00ff_c000, 0x2000_00ff],
            Temperature::ID | Temperatures::ID => [0x0000_0fff, 0x0000_00ff],
            FanSpeed::ID => [0x0f00_0000, 0],
            _ => [0, 0],
        };
        for (offset, selecting) in [START, START + 4].into_iter().zip(selecting) {
            prop_assert_eq!(mad.be(offset, 4) & !selecting, 0, "dword at {}", offset);
        }
        prop_assert!(mad.0[START + 8..].iter().all(|byte| *byte == 0));
        prop_assert!(mad.0[24..START].iter().all(|byte| *byte == 0), "VSKey and block");
    }

    #[test]
    fn request_names_its_query(query in any_query()) {
        prop_assert_eq!(RegisterQuery::decode(&access_register(query).request(None, 7)), Some(query));
    }

    #[test]
    fn module_text_is_short_and_printable(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
        let text = text(&bytes);
        prop_assert!(text.len() <= bytes.len());
        prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}

#[test]
fn mtmp_request_matches_the_documented_bytes() {
    // As cmtcr.so of mstflint 4.21 sends it for the sensor 0, apart from the transaction ID.
    let mad = access_register(RegisterQuery::Temperature(0)).request(None, 0);
    let mut expected = [0; LEN];
    expected[..4].copy_from_slice(&[0x01, 0x0a, 0x01, 0x01]);
    expected[16..24].copy_from_slice(&[0x00, 0x51, 0x00, 0x00, 0x00, 0x00, 0x90, 0x0a]);
    assert_eq!(mad.0, expected);
}

#[test]
fn module_request_selects_ib_port_page_and_unit() {
    let mad = access_register(RegisterQuery::Module(7)).request(None, 0);
    assert_eq!(mad.be(START, 8), 0x0007_4000_2000_0003);
    assert_eq!(mad.modifier(), 0x5031);
}

#[test]
fn bit_error_ratio_is_absent_zero_or_a_number() {
    for (coefficient, magnitude, ratio) in
        [(0, 0, None), (7, 0, None), (15, 255, Some(0.0)), (0, 15, Some(0.0)), (3, 8, Some(3e-8))]
    {
        let found = bit_error_ratio(coefficient, magnitude);
        assert_eq!(found.map(|it| (it * 1e9).round()), ratio.map(|it: f64| (it * 1e9).round()));
    }
}

#[test]
fn physical_statistics_are_at_their_offsets() {
    let mut mad = Mad([0; LEN]);
    let at = |offset: usize| START + 8 + offset;
    mad.put_be(at(0), 8, 60_000);
    mad.put_be(at(0x10), 8, 2);
    mad.put_be(at(0x20) + 3 * 8, 8, 99);
    mad.put_be(at(0x60), 4, 0x0000_0803);
    mad.put_be(at(0x64), 4, 0x0000_0f00);
    let read = PhysicalStatistics::decode(&mad);
    assert_eq!((read.since_clear, read.symbol_errors, read.lane_errors[3]), (60_000, 2, 99));
    assert_eq!(
        (read.raw_ber(), read.effective_ber(), read.symbol_ber()),
        (Some(3e-8), Some(0.0), None)
    );
}

#[test]
fn text_is_trimmed_and_escaped() {
    for (bytes, expected) in [
        (&b"MCP1600-E001E30\0"[..], "MCP1600-E001E30"),
        (b"\0\0Mellanox   ", "Mellanox"),
        (b"    ", ""),
        (b"\xff\xff\xff\xff", ""),
        (b"a\x1b[2Jb\xe9\0x", "a?[2Jb?"),
        (b"", ""),
    ] {
        assert_eq!(text(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn power_is_in_the_unit_that_the_device_used() {
    let watts = Module { rx_power_high: 3_162, rx_power_low: 40, ..Module::default() };
    assert_eq!(watts.dbm(1_000), Some(0.0));
    assert_eq!(watts.dbm(0), None);
    let dbm = Module { rx_power_high: 5, rx_power_low: 0xfff6, ..Module::default() };
    assert_eq!((dbm.dbm(0xfffd), dbm.dbm(2), dbm.dbm(5_000)), (Some(-3.0), Some(2.0), None));
}

#[test]
fn length_has_a_multiplier_in_cmis_modules() {
    let module = |identifier, length_code| Module { length_code, identifier, ..Module::default() };
    for (identifier, code, meters) in [
        (0, 5, Some(5.0)),
        (0, 0, None),
        (8, 0x0f, Some(1.5)),
        (7, 0x43, Some(3.0)),
        (8, 0x83, Some(30.0)),
    ] {
        assert_eq!(module(identifier, code).meters(), meters, "{identifier} {code:#x}");
    }
}

#[test]
fn implausible_temperatures_are_absent() {
    assert_eq!((celsius(45 * 8), celsius(0xffff)), (Some(45.0), Some(-0.125)));
    for code in [0, 0x8000, 0x8001, 0x8002, 0x8003, 0x7fff] {
        assert_eq!(celsius(code), None, "{code:#x}");
    }
    assert_eq!(Module::default().celsius(0x2d80), Some(45.5));
    assert_eq!(Module::default().celsius(0x7fff), None);
}

#[test]
fn module_without_identity_is_unplugged() {
    assert!(!Module::default().is_plugged());
    assert!(!Module { kind: 4, vendor: [b'x'; 16], ..Module::default() }.is_plugged());
    assert!(Module { kind: 3, vendor: [b'x'; 16], ..Module::default() }.is_plugged());
}

#[test]
fn absent_sensors_and_power_supplies_are_left_out() {
    let mut records = [0; Temperatures::MAX];
    // Highest and current; no sensor; a passive cable; beyond the count.
    records[..5].copy_from_slice(&[0x0220_0208, 0x8000_8000, 0, 0x01f0_01e0, 0x0200_0200]);
    let sensors = Temperatures { first: Temperatures::MODULES, count: 4, records };
    assert_eq!(sensors.known().collect::<Vec<_>>(), [(64, 65.0), (67, 60.0)]);
    let end = Temperatures { first: u16::MAX, count: 255, records: [0x208; Temperatures::MAX] };
    assert_eq!(end.known().count(), 1);

    let mut first = [0; PowerSupplies::WORDS];
    (first[0], first[4], first[12]) = (0x5000_0010, 0x4142_4300, 0x5053_5531);
    let second = [0x1234_5678; PowerSupplies::WORDS];
    let [known, absent] = PowerSupplies { first, second }.supplies();
    let known = known.unwrap();
    assert_eq!(
        (text(&known.serial_number), text(&known.part_number)),
        ("ABC".into(), "PSU1".into())
    );
    assert_eq!(absent, None);
}

#[test]
fn weak_laser_is_below_the_modules_own_threshold() {
    let module = Module {
        kind: 2,
        tx_power: [1000, 1000, 60, 1000, 0, 0, 0, 0],
        tx_power_high: 3000,
        tx_power_low: 100,
        tx_bias: [3500; LANES],
        bias_high: 5000,
        bias_low: 1000,
        monitors: monitor::TX_POWER | monitor::BIAS,
        ..Module::default()
    };
    assert!(module.is_weak(4) && !module.is_weak(2));
    // Not measured, copper, without thresholds, and in dBm.
    assert!(!Module { monitors: monitor::BIAS, ..module }.is_weak(4));
    assert!(!Module { kind: 3, ..module }.is_weak(4));
    assert!(!Module { tx_power_high: 0, tx_power_low: 0, ..module }.is_weak(4));
    assert!(
        !Module { tx_power_high: 5, tx_power_low: (-10_i16).cast_unsigned(), ..module }.is_weak(4)
    );
    // The current of a laser that wears out; lanes without a value.
    assert!(Module { tx_bias: [6000; LANES], ..module }.is_weak(2));
    let unread = Module { tx_power: [0; LANES], tx_bias: [0; LANES], ..module };
    assert!(!unread.is_weak(4));
    assert!(!module.is_part_of_cable() && Module { kind: 3, ..module }.is_part_of_cable());
}
