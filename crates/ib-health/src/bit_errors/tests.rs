//! Ratios that are far over, at, and below a limit.

mod hovering;

use super::*;
use crate::limits::{LimitTable, Limits};
use ib_mad::Moment;
use ib_mad::rate::{Speed, Width, bytes_per_second};

fn incoming(bits_per_second: f32, symbol: f32, confidence: Confidence) -> Incoming {
    Incoming { bits_per_second, lanes: 4, limits: Limits { symbol, pre_fec: None }, confidence }
}

/// The results for a link that is swept every 15 s, with this many errors in each sweep.
fn results(minutes: u32, speed: Speed, errors: impl Fn(u32) -> u64) -> Vec<BitErrors> {
    let bits = bytes_per_second(Width::X4, speed) as f32 * 8.0;
    let limit = LimitTable::default().limits(speed, None).symbol;
    let mut windows = BerWindows::default();
    (0..=minutes * 4)
        .map(|sweep| {
            let at = Moment::default() + Duration::from_secs(15) * sweep;
            let errors = if sweep == 0 { 0 } else { errors(sweep) };
            windows.add(at.into(), errors, incoming(bits, limit, Confidence::High), 1.0)
        })
        .collect()
}

/// The first minute with this level.
fn first(found: &[BitErrors], is: BitErrorLevel) -> Option<f32> {
    found.iter().position(|found| found.level == is).map(|sweep| sweep as f32 / 4.0)
}

#[test]
fn error_free_link_is_fine_once_its_limit_is_measurable() {
    // (speed, minutes): 2.5 errors at the limit take 2.5 / (limit × rate).
    for (speed, sweeps) in [(Speed::Qdr, 5), (Speed::Edr, 17), (Speed::Hdr, 9), (Speed::Ndr, 42)] {
        let minutes = sweeps as f32 / 4.0;
        let found = results(130, speed, |_| 0);
        assert_eq!(first(&found, BitErrorLevel::Fine), Some(minutes), "{speed:?}");
        let before = &found[..sweeps];
        assert!(before.iter().all(|found| found.level == BitErrorLevel::Unknown));
        assert!(before.iter().all(|found| found.ratio(BerWindow::Short).is_none()));
        let last = found.last().unwrap();
        assert_eq!(last.level, BitErrorLevel::Fine);
        assert!(last.ratio(BerWindow::Long).unwrap().abs() < 1e-30);
    }
}

#[test]
fn higher_error_ratio_is_detected_sooner() {
    // Errors a sweep at NDR: 6,000 are 1e-9; one in four sweeps is 4e-14, one in 12 1.4e-14.
    let per = |sweeps: u32| move |sweep: u32| u64::from(sweep.is_multiple_of(sweeps));
    assert_eq!(first(&results(130, Speed::Ndr, |_| 6_000), BitErrorLevel::Over), Some(0.75));
    assert_eq!(first(&results(130, Speed::Ndr, per(1)), BitErrorLevel::Raised), Some(1.0));
    assert_eq!(first(&results(130, Speed::Ndr, per(1)), BitErrorLevel::Over), Some(5.5));
    let four = results(130, Speed::Ndr, per(4));
    let [raised, over] = [BitErrorLevel::Raised, BitErrorLevel::Over].map(|it| first(&four, it));
    assert!((6.0..15.0).contains(&raised.unwrap()), "{raised:?}");
    assert!((15.0..30.0).contains(&over.unwrap()), "{over:?}");
    // Somewhat over its limit: raised, because it cannot be distinguished from one that is just below.
    let barely = results(300, Speed::Ndr, per(12));
    assert_eq!(first(&barely, BitErrorLevel::Over), None);
    assert!(first(&barely, BitErrorLevel::Raised).is_some());
}

#[test]
fn single_burst_is_not_over_the_limit() {
    // Also if a sweep falls into it.
    for second in [0, 5_000] {
        let burst = |sweep| match sweep {
            60 => 5_000,
            61 => second,
            _ => 0,
        };
        assert_eq!(first(&results(60, Speed::Edr, burst), BitErrorLevel::Over), None, "{second}");
    }
}

#[test]
fn bursts_on_a_good_link_are_not_over_the_limit() {
    // At HDR the limit is 0.3 errors a sweep; this link has a tenth of it, and two bursts within the hour.
    let errors = |sweep: u32| match sweep {
        300 | 420 => 5_000,
        _ => u64::from(sweep.is_multiple_of(33)),
    };
    let found = results(300, Speed::Hdr, errors);
    assert!(found.iter().all(|found| found.level < BitErrorLevel::Raised));
    // The same bursts do not hide that a link is at twice its limit.
    let twice = |sweep: u32| if sweep == 300 { 5_000 } else { u64::from(!sweep.is_multiple_of(3)) };
    assert!(first(&results(300, Speed::Hdr, twice), BitErrorLevel::Over).is_some());
}

#[test]
fn errors_between_two_readings_are_not_certain() {
    // Two dumps an hour apart: 36 errors are the limit at EDR.
    let level = |errors| {
        let mut windows = BerWindows::default();
        let mut update = |hours: u32, errors| {
            let at = Moment::default() + Duration::from_secs(3600) * hours;
            windows.add(at.into(), errors, incoming(1e11, 1e-13, Confidence::High), 1.0).level
        };
        [update(1, 0), update(2, errors)]
    };
    assert_eq!(level(0), [BitErrorLevel::Unknown, BitErrorLevel::Fine]);
    assert_eq!(level(20)[1], BitErrorLevel::Fine);
    assert_eq!(level(1_000)[1], BitErrorLevel::Raised);
}

#[test]
fn confidence_trades_false_alarms_for_time() {
    // At EDR the limit is 0.15 errors a sweep: one in two sweeps is 3.3 times the limit.
    let errors = |sweep: u32| u64::from(sweep.is_multiple_of(2));
    let [high, medium] = Confidence::ALL.map(|confidence| {
        let mut windows = BerWindows::default();
        (0..=1_200).find(|&sweep| {
            let at = Moment::default() + Duration::from_secs(15) * sweep;
            let incoming = incoming(1e11, 1e-13, confidence);
            let found = windows.add(at.into(), errors(sweep), incoming, 1.0);
            found.level == BitErrorLevel::Over
        })
    });
    let minutes = [high, medium].map(|sweeps| sweeps.unwrap() / 4);
    assert_eq!(minutes, [14, 6]);
}

#[test]
fn hours_without_errors_do_not_hide_a_fault() {
    // At EDR the limit is 0.15 errors a sweep: three in ten sweeps are twice the limit.
    let errors = |sweep: u32| u64::from(sweep % 10 % 3 == 1);
    let hours = |quiet: u32| {
        let errors = move |sweep: u32| if sweep < quiet { 0 } else { errors(sweep) };
        let found = results(180 + quiet / 4, Speed::Edr, errors);
        let at = found.iter().position(|found| found.level == BitErrorLevel::Over).unwrap();
        // What decided is about the fault, not about the hours before.
        let ratio = found[at].ratio_of(found[at].decided_by.unwrap().counted).unwrap();
        assert!(ratio > 1.5e-13, "{ratio}");
        at as u32 - quiet
    };
    let (at_once, later) = (hours(0), hours(3 * 240));
    assert!(later <= at_once * 3 / 2, "{at_once} and {later} sweeps");
}

#[test]
fn what_is_shown_of_steady_errors_is_what_was_counted() {
    // 40 errors in each sweep of 5 s at NDR are 2e-11. Poisson with that mean has a standard deviation of 6.3.
    let mut noise = 1_u32;
    let mut windows = BerWindows::default();
    let mut shown = Vec::new();
    for sweep in 0..240 {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let errors = 34 + u64::from(noise >> 16) % 13;
        let at = Moment::default() + Duration::from_secs(5) * sweep;
        let found = windows.add(at.into(), errors, incoming(4e11, 1e-14, Confidence::High), 1.0);
        if let Some(deciding) = found.decided_by.filter(|_| found.level == BitErrorLevel::Over) {
            shown.push(found.ratio_of(deciding.counted).unwrap() / 2e-11);
            assert!(deciding.steady <= deciding.counted.errors, "{deciding:?}");
        }
    }
    let range =
        shown.iter().fold((f64::MAX, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
    assert!(shown.len() > 230 && range.0 > 0.85 && range.1 < 1.15, "{range:?} of {}", shown.len());
}

#[test]
fn ratio_is_errors_per_bit() {
    let found = results(130, Speed::Ndr, |_| 6_000);
    let ratio = found.last().unwrap().ratio(BerWindow::Short).unwrap();
    assert!((ratio / 1e-9 - 1.0).abs() < 0.01, "{ratio}");
}

/// A link with half of its limit's errors, spread by chance, is not called bad in a day. Chance may
/// do it all the same (on 6 of 20,000 such days); the days tested here are always the same.
#[test]
fn half_the_limit_is_not_over_in_a_day() {
    for seed in 1..=64u64 {
        // 4e11 bits/s × 1e-14 × 15 s / 2 = 0.03 errors a sweep.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut chance = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let errors: Vec<u64> = (0..=5_760).map(|_| u64::from(chance() < 0.03)).collect();
        let found = results(1_440, Speed::Ndr, |sweep| errors[sweep as usize]);
        assert_eq!(first(&found, BitErrorLevel::Over), None, "{seed}");
    }
}
