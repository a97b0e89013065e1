//! Tests of the totals of one port.

use proptest::prelude::*;

use super::*;
use crate::impossible_values::CONFIRMATIONS;

const ERRORS: Counter = Counter::SymbolErrors;

/// 4x NDR, in bytes a second.
const RATE: u64 = 50_000_000_000;

fn reading(at: u64, raw: u64, saturated: bool) -> Reading<Raw> {
    let mut reading = Reading::empty(Moment(at * 1_000_000_000));
    reading.set(ERRORS, raw);
    if saturated {
        reading.saturated.insert(ERRORS);
    }
    reading
}

/// The totals of raw values that are read once per second; 255 is a full field.
fn totals(last_values: &[u64]) -> (Vec<u64>, CounterStatus) {
    let mut totals = PortTotals::default();
    let values = last_values.iter().enumerate().map(|(at, &raw)| {
        let reading = reading(at as u64, raw, raw == 255);
        totals.update(reading, RATE).0.get(ERRORS).unwrap()
    });
    (values.collect(), totals.status())
}

#[test]
fn total_follows_counter_and_never_falls() {
    for (last_values, values, resets) in [
        (&[7, 7, 9][..], &[7, 7, 9][..], 0),
        // Cleared, and status on.
        (&[7, 0, 2, 5], &[7, 7, 9, 12], 1),
        // Cleared twice.
        (&[100, 40, 3], &[100, 140, 143], 2),
        // Full: a lower bound, until it is cleared.
        (&[250, 255, 255, 4], &[250, 255, 255, 259], 1),
    ] {
        let (got, status) = totals(last_values);
        assert_eq!((&got[..], status.resets), (values, resets), "{last_values:?}");
    }
}

#[test]
fn saturation_is_reported_during_and_after() {
    let (_, status) = totals(&[255]);
    assert!(status.saturated_now.contains(ERRORS) && status.ever_saturated.contains(ERRORS));
    let (_, status) = totals(&[255, 0]);
    assert!(!status.saturated_now.contains(ERRORS) && status.ever_saturated.contains(ERRORS));
    let (_, status) = totals(&[254, 3]);
    assert!(status.ever_saturated.is_empty());
    assert_eq!(status.last_reset, Some(Moment(1_000_000_000)));
}

#[test]
fn growth_is_known_from_the_second_reading_on() {
    let mut totals = PortTotals::default();
    let (_, first) = totals.update(reading(10, 5, false), RATE);
    assert_eq!((first.get(ERRORS), first.reset), (None, false));
    assert!(first.seconds.abs() < 1e-9);
    let (_, second) = totals.update(reading(25, 8, false), RATE);
    assert_eq!(second.get(ERRORS), Some(3));
    assert_eq!(second.get(Counter::XmitWait), None);
    assert!((second.seconds - 15.0).abs() < 1e-9);
    // It was not read in between: nothing is lost, but that took longer.
    totals.update(Reading::empty(Moment(40_000_000_000)), RATE);
    let (_, third) = totals.update(reading(55, 20, false), RATE);
    assert_eq!((third.get(ERRORS), third.timed(ERRORS)), (Some(12), None));
    assert_eq!(totals.update(reading(70, 21, false), RATE).1.timed(ERRORS), Some(1));
}

#[test]
fn own_clear_is_no_reset_and_loses_nothing() {
    let mut totals = PortTotals::default();
    totals.update(reading(0, 200, false), RATE);
    totals.on_clear(ERRORS, 203);
    assert_eq!(totals.total(ERRORS), Some(203));
    totals.update(reading(1, 2, false), RATE);
    assert_eq!((totals.total(ERRORS), totals.status().resets), (Some(205), 0));
    // Of one that was never read nothing is known.
    totals.on_clear(Counter::LinkDowned, 9);
    assert_eq!(totals.total(Counter::LinkDowned), None);
}

#[test]
fn totals_resume_from_an_earlier_run() {
    for (total, offset, raw, resumed, resets) in [
        // It had fallen before, and counted on meanwhile.
        (140, 100, 47, 147, 0),
        (140, 100, 40, 140, 0),
        (7, 0, 9, 9, 0),
        // It decreased meanwhile.
        (140, 100, 39, 179, 1),
    ] {
        let mut totals = PortTotals::default();
        totals.restore(ERRORS, total, offset);
        assert_eq!(totals.restored(ERRORS), Some(total));
        assert_eq!(totals.total(ERRORS), None, "nothing was read in this run");
        let (first, growth) = totals.update(reading(10, raw, false), RATE);
        assert_eq!((first.get(ERRORS), totals.status().resets), (Some(resumed), resets));
        assert_eq!(growth.get(ERRORS), None, "it is not known since when");
        assert!(growth.seconds.abs() < 1e-9);
        let (second, growth) = totals.update(reading(25, raw + 3, false), RATE);
        assert_eq!((growth.timed(ERRORS), second.get(ERRORS)), (Some(3), Some(resumed + 3)));
    }
}

/// What a ConnectX-7 was seen to report.
const NEGATIVE: u64 = u64::MAX - 39;

/// More symbol errors than 4x NDR carries symbols in an hour.
const TOO_MANY: u64 = 1 << 52;

/// Adds raw values, one per second, and returns the totals; `None` where the value is rejected.
fn readings(totals: &mut PortTotals, last_values: &[u64]) -> Vec<Option<u64>> {
    let values = last_values.iter().map(|&raw| {
        let at = totals.at.0 / 1_000_000_000 + 1;
        totals.update(reading(at, raw, false), RATE).0.get(ERRORS)
    });
    values.collect()
}

#[test]
fn impossible_value_is_skipped() {
    for (last_values, values, impossible) in [
        (&[7, NEGATIVE, 9][..], &[Some(7), None, Some(9)][..], 1),
        (&[7, TOO_MANY, 9], &[Some(7), None, Some(9)], 1),
        // From the beginning, permanently.
        (&[NEGATIVE; 20], &[None; 20], 20),
        (&[NEGATIVE, 5, 6], &[None, Some(5), Some(6)], 1),
        // Cleared meanwhile.
        (&[7, NEGATIVE, 2], &[Some(7), None, Some(9)], 1),
        // Impossible values that do not agree with each other.
        (&[7, TOO_MANY, 2 * TOO_MANY, TOO_MANY, 8], &[Some(7), None, None, None, Some(8)], 3),
    ] {
        let mut totals = PortTotals::default();
        assert_eq!(readings(&mut totals, last_values), values, "{last_values:?}");
        assert_eq!(totals.status().impossible_readings, impossible, "{last_values:?}");
        let now = values.last().is_some_and(Option::is_none);
        assert_eq!(totals.status().impossible.contains(ERRORS), now, "{last_values:?}");
    }
}

#[test]
fn growth_of_an_impossible_value_is_unknown() {
    let mut totals = PortTotals::default();
    totals.update(reading(10, 5, false), RATE);
    let (_, growth) = totals.update(reading(25, NEGATIVE, false), RATE);
    assert_eq!(
        (growth.get(ERRORS), growth.rejected.contains(ERRORS), growth.reset),
        (None, true, false)
    );
    let (_, growth) = totals.update(reading(40, 8, false), RATE);
    assert_eq!((growth.get(ERRORS), growth.timed(ERRORS)), (Some(3), None));
    assert!(!growth.rejected.contains(ERRORS));
}

#[test]
fn lost_response_does_not_widen_the_bound_to_a_year() {
    let mut totals = PortTotals::default();
    let mut total = |at: u64, raw: Option<u64>| {
        let mut reading = Reading::empty(Moment(at * 1_000_000_000));
        if let Some(raw) = raw {
            reading.set(ERRORS, raw);
        }
        totals.update(reading, RATE).0.get(ERRORS)
    };
    let values = [(0, Some(7)), (15, None), (30, Some(1_000_000_000_000_000)), (45, Some(9))];
    let values = values.map(|(at, raw)| total(at, raw));
    assert_eq!(values, [Some(7), None, None, Some(9)]);
}

#[test]
fn counter_stays_impossible_until_read_again() {
    let mut totals = PortTotals::default();
    let mut total = |at: u64, raw: Option<u64>| {
        let mut reading = Reading::empty(Moment(at * 1_000_000_000));
        match raw {
            Some(raw) => reading.set(ERRORS, raw),
            None => reading.not_due.insert(ERRORS),
        }
        let (reading, _) = totals.update(reading, RATE);
        (reading.get(ERRORS), totals.status().impossible.contains(ERRORS))
    };
    assert_eq!(total(0, Some(7)), (Some(7), false));
    assert_eq!(total(15, None), (Some(7), false));
    assert_eq!(total(30, Some(NEGATIVE)), (None, true));
    assert_eq!(total(45, None), (None, true));
    assert_eq!(total(60, Some(8)), (Some(8), false));
}

#[test]
fn total_does_not_wrap_at_its_maximum() {
    let mut totals = PortTotals::default();
    let mut total = |raw| {
        let mut reading = Reading::empty(totals.at + std::time::Duration::from_secs(1));
        reading.set(Counter::XmitData, raw);
        totals.update(reading, RATE).0.get(Counter::XmitData)
    };
    let values = [u64::MAX - 1, u64::MAX, 0, 1].map(&mut total);
    assert_eq!(values, [Some(u64::MAX - 1), Some(u64::MAX), Some(u64::MAX), None]);
}

#[test]
fn counter_that_was_set_resumes_after_confirmation() {
    let mut totals = PortTotals::default();
    readings(&mut totals, &[10, 20]);
    let set: Vec<u64> = (0..u64::from(CONFIRMATIONS)).map(|nth| TOO_MANY + nth).collect();
    let values = readings(&mut totals, &set);
    assert!(values[..values.len() - 1].iter().all(Option::is_none), "{values:?}");
    assert_eq!(values.last(), Some(&Some(20)), "the step is in no total");
    assert_eq!(readings(&mut totals, &[TOO_MANY + 100]), [Some(20 + 100 - 7)]);
    // The same in the run after this one.
    let mut next = PortTotals::default();
    let offset = totals.reset_offsets().unwrap()[ERRORS as usize];
    next.restore(ERRORS, totals.total(ERRORS).unwrap(), offset);
    assert_eq!(readings(&mut next, &[TOO_MANY + 103]), [Some(116)]);
    assert_eq!(next.status().resets, 0);
}

#[test]
fn resumed_totals_survive_an_impossible_first_value() {
    let mut totals = PortTotals::default();
    totals.restore(ERRORS, 140, 0);
    assert_eq!(readings(&mut totals, &[NEGATIVE, 150, 151]), [None, Some(150), Some(151)]);
}

#[test]
fn clear_of_an_impossible_value_adds_nothing() {
    let mut totals = PortTotals::default();
    readings(&mut totals, &[10, TOO_MANY]);
    totals.on_clear(ERRORS, TOO_MANY);
    assert_eq!(readings(&mut totals, &[2]), [Some(12)]);
}

/// What a replica knows: before its last reset, and the value that it read in second 10.
fn replica(offset: u64, raw: Option<u64>) -> ReplicaCounter {
    let read = [Moment(9_500_000_000), Moment(10_000_000_000)];
    ReplicaCounter { counter: ERRORS, offset, raw, read }
}

#[test]
fn total_rises_to_what_a_replica_has_seen() {
    for (before, raw, known, expected) in [
        // The replica saw more of what was counted before the same reset, or less.
        (100, 7, replica(120, Some(5)), 127),
        (100, 7, replica(80, Some(5)), 107),
        // It does not know of the reset yet; its value was counted before.
        (100, 7, replica(90, Some(60)), 157),
        (100, 7, replica(20, Some(60)), 107),
        // The value of another field: it cannot have grown that much since.
        (100, 7 + (1 << 40), replica(500, Some(5)), 7 + (1 << 40)),
        // It could not read the counter, and this is not our first reading.
        (100, 7, replica(120, None), 107),
        // Nothing that makes sense.
        (100, 7, replica(u64::MAX, Some(5)), 107),
        (100, 7, replica(u64::MAX / 2, Some(5)), 107),
    ] {
        let mut totals = PortTotals::default();
        totals.update(reading(1, before, false), RATE);
        let mut last = reading(11, raw, false);
        let growth = totals.update_in_place(&mut last, RATE);
        let grown = growth.get(ERRORS);
        totals.raise(&mut last, &[known], RATE);
        assert_eq!(last.get(ERRORS), Some(expected), "{before} {raw} {known:?}");
        assert_eq!(totals.total(ERRORS), Some(expected), "{before} {raw} {known:?}");
        // What the replica knows is not counted as growth: no verdict changes.
        assert_eq!(grown, Some(if raw < before { raw } else { raw - before }));
        // It continues from there.
        let next = totals.update(reading(12, raw + 1, false), RATE).0;
        assert_eq!(next.get(ERRORS), Some(expected + 1));
    }
}

#[test]
fn first_reading_continues_the_totals_of_a_replica() {
    for (known, expected) in
        [(replica(120, Some(5)), 127), (replica(120, Some(60)), 187), (replica(120, None), 127)]
    {
        let mut totals = PortTotals::default();
        let mut first = reading(11, 7, false);
        totals.update_in_place(&mut first, RATE);
        totals.raise(&mut first, &[known], RATE);
        assert_eq!(first.get(ERRORS), Some(expected), "{known:?}");
        assert_eq!(totals.status().resets, 0);
    }
    // A value that may be older than that of the replica does not decide.
    let mut totals = PortTotals::default();
    let mut early = reading(9, 7, false);
    totals.update_in_place(&mut early, RATE);
    totals.raise(&mut early, &[replica(120, Some(5))], RATE);
    assert_eq!(early.get(ERRORS), Some(7));
}

proptest! {
    /// A device that now and then shows nonsense: no total is above the truth, none falls, and each
    /// one that there is is the truth.
    #[test]
    fn random_nonsense_changes_no_total(
        steps in proptest::collection::vec((0u64..300, 0u8..3, TOO_MANY..), 1..60),
    ) {
        let mut totals = PortTotals::default();
        let mut truth = 5;
        readings(&mut totals, &[truth]);
        let mut nonsense = 0;
        for (count, what, value) in steps {
            truth += count;
            // Nonsense that never agrees with itself for long: a counter that was set would.
            let is_nonsense = what == 0 && nonsense < CONFIRMATIONS - 1;
            nonsense = if is_nonsense { nonsense + 1 } else { 0 };
            let values = readings(&mut totals, &[if is_nonsense { value } else { truth }]);
            prop_assert_eq!(values[0], (!is_nonsense).then_some(truth));
            prop_assert!(totals.total(ERRORS).is_some_and(|total| total <= truth));
        }
    }

    /// Whatever is counted, read and cleared, in whatever order: the total is what was counted
    /// but for what was counted between a reading and a clear, or at a full counter.
    #[test]
    fn totals_never_exceed_what_was_counted(
        steps in proptest::collection::vec((0u64..300, 0u8..8, any::<bool>()), 1..60),
        wide in any::<bool>(),
    ) {
        let most = if wide { u64::MAX } else { 255 };
        let mut totals = PortTotals::default();
        let (mut raw, mut truth) = (0u64, 0u64);
        let (mut before, mut exact) = (0u64, true);
        totals.update(reading(0, 0, false), RATE);
        for (at, (count, what, ours)) in steps.into_iter().enumerate() {
            let counted = raw.saturating_add(count).min(most);
            exact &= counted < most;
            (raw, truth) = (counted, truth + count);
            if what == 0 {
                if ours {
                    totals.on_clear(ERRORS, raw);
                } else {
                    // Hidden from now on: what was counted since the latest reading, and, if the
                    // counter is past its old value when it is next read, that value.
                    exact = false;
                }
                raw = 0;
            } else {
                let reading = reading(at as u64 + 1, raw, raw == most);
                let total = totals.update(reading, RATE).0.get(ERRORS).unwrap();
                prop_assert!(total >= before, "never falls");
                prop_assert!(total <= truth, "never jumps: {total} of {truth}");
                if exact {
                    prop_assert_eq!(total, truth);
                }
                before = total;
            }
        }
    }
}
