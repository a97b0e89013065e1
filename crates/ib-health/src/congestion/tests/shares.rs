//! The shares of time from counters.

use super::*;
use ib_mad::rate::{Speed, Width};

#[test]
fn ticks_convert_to_time() {
    for (ticks, tick, width, speed, seconds, share) in [
        // 4x NDR: 50 GB/s, 6.25e9 ticks of 8 bytes a second.
        (6_250_000_000, Some(7), Width::X4, Speed::Ndr, 2.0, 0.5),
        (3_125_000_000, Some(7), Width::X2, Speed::Ndr, 1.0, 1.0),
        (25_000_000_000, Some(0), Width::X4, Speed::Ndr, 1.0, 0.5),
        // A lane of EDR: 3.125 GB/s, 97,656,250 ticks of 32 bytes.
        (97_656_250, Some(31), Width::X4, Speed::Edr, 10.0, 0.1),
        (97_656_250, Some(31), Width::X1, Speed::Edr, 10.0, 0.1),
        (1_562_500_000, None, Width::X4, Speed::Edr, 4.0, 0.25),
        (0, None, Width::X4, Speed::Edr, 15.0, 0.0),
        (u64::MAX, Some(255), Width::X1, Speed::Sdr, 1e-9, 1.0),
    ] {
        let wait = wait(ticks, tick, width, speed, seconds).unwrap();
        assert!((wait.share - share).abs() < 1e-6, "{ticks} {tick:?} {width:?}: {wait:?}");
        assert_eq!(wait.tick_reported, tick.is_some());
    }
}

#[test]
fn no_time_has_no_share() {
    for seconds in [0.0, -1.0, f64::NAN] {
        assert_eq!(wait(1, None, Width::X4, Speed::Hdr, seconds), None);
        assert_eq!(used(1, Width::X4, Speed::Hdr, seconds), None);
    }
}

#[test]
fn full_link_excludes_line_code() {
    for (bytes, speed, share) in [
        (4_000_000_000, Speed::Qdr, 1.0),
        (5_000_000_000, Speed::Fdr10, 1.0),
        (2_500_000_000, Speed::Fdr10, 0.5),
        (25_000_000_000, Speed::Ndr, 0.5),
        (u64::MAX, Speed::Ndr, 1.0),
    ] {
        let used = used(bytes, Width::X4, speed, 1.0).unwrap();
        assert!((used - share).abs() < 1e-6, "{bytes} {speed:?}: {used}");
    }
}
