//! The choice of a counter's field.

use std::time::Duration;

use proptest::prelude::*;

use crate::collect::agent_cache::CounterSources;
use ib_health::totals::PortTotals;
use ib_mad::counter::{Attribute, CounterField};
use ib_mad::reading::{Raw, Reading};
use ib_mad::{Counter, Guid, Moment, PortKey};

const PORT: PortKey = PortKey::new(Guid(7), 1);
const DOWNED: Counter = Counter::LinkDowned;
/// Between two sweeps.
const SWEEP: Duration = Duration::from_secs(15);
/// In bytes a second: 4x NDR.
const RATE: u64 = 50_000_000_000;

fn counters() -> Vec<(Counter, CounterField)> {
    let fields = DOWNED.row().fields.iter();
    let classic = fields.filter(|field| field.attribute == Attribute::PortCounters);
    classic.map(|field| (DOWNED, *field)).collect()
}

/// What is read of a counter, and whether it is saturated, from what its two fields answer.
fn selected(
    sources: &mut CounterSources,
    wide: Option<u64>,
    narrow: Option<u64>,
) -> (Reading<Raw>, Option<(u64, bool)>) {
    let mut reading = Reading::empty(Moment(0));
    if let Some(wide) = wide {
        reading.set(DOWNED, wide);
    }
    let classic = narrow.map(|narrow| {
        let mut classic = Reading::empty(Moment(0));
        classic.set(DOWNED, narrow);
        if narrow == 255 {
            classic.saturated.insert(DOWNED);
        }
        classic
    });
    sources.select(PORT, &counters(), &mut reading, classic.as_ref());
    let value = reading.get(DOWNED).map(|value| (value, reading.saturated.contains(DOWNED)));
    (reading, value)
}

#[test]
fn wide_field_wins_unless_it_alone_is_zero() {
    type Step = (Option<u64>, Option<u64>, Option<(u64, bool)>);
    let stories: &[(&str, &[Step])] = &[
        (
            "a field that stays 0",
            &[
                (Some(0), Some(0), Some((0, false))),
                (Some(0), Some(3), Some((3, false))),
                (Some(0), Some(255), Some((255, true))),
                // Cleared.
                (Some(0), Some(0), Some((0, false))),
                (Some(0), Some(1), Some((1, false))),
                // Either answer is lost.
                (Some(0), None, None),
                (None, Some(2), Some((2, false))),
                (None, None, None),
            ],
        ),
        (
            "both count",
            &[
                (Some(7), Some(7), Some((7, false))),
                (Some(300), Some(255), Some((300, false))),
                // The 64-bit field alone is cleared: that is a reset, and no unused field.
                (Some(0), Some(255), Some((0, false))),
                (Some(0), None, Some((0, false))),
                (Some(4), None, Some((4, false))),
                (None, Some(255), None),
            ],
        ),
        (
            "new firmware does not fill the 64-bit field any more",
            &[
                (Some(7), Some(7), Some((7, false))),
                (Some(0), Some(0), Some((0, false))),
                (Some(0), Some(2), Some((0, false))),
                (Some(0), Some(2), Some((0, false))),
                (Some(0), Some(3), Some((3, false))),
                (None, Some(4), Some((4, false))),
            ],
        ),
        (
            "an impossible value says nothing about which field counts",
            &[
                (Some(0), Some(26), Some((26, false))),
                (Some(u64::MAX - 39), Some(26), Some((u64::MAX - 39, false))),
                (Some(0), Some(27), Some((27, false))),
            ],
        ),
        (
            "nothing is known yet",
            &[(None, Some(9), None), (Some(0), None, None), (Some(0), Some(0), Some((0, false)))],
        ),
    ];
    for (name, steps) in stories {
        let mut sources = CounterSources::default();
        for (at, &(wide, narrow, expected)) in steps.iter().enumerate() {
            let (_, value) = selected(&mut sources, wide, narrow);
            assert_eq!(value, expected, "{name}, step {at}");
        }
    }
}

#[test]
fn switch_to_wide_field_adds_nothing_twice() {
    let mut sources = CounterSources::default();
    let mut totals = PortTotals::default();
    let mut now = Moment(0);
    let mut read = |wide, narrow| {
        let (mut reading, _) = selected(&mut sources, wide, narrow);
        (now, reading.at) = (now + SWEEP, now);
        let (reading, growth) = totals.update(reading, RATE);
        (reading.get(DOWNED), growth.get(DOWNED), growth.reset)
    };
    // The 64-bit field was cleared before we came.
    assert_eq!(read(Some(0), Some(100)), (Some(100), None, false));
    assert_eq!(read(None, Some(105)), (Some(105), Some(5), false));
    assert_eq!(read(Some(6), Some(106)), (Some(105), Some(0), false));
    assert_eq!(read(Some(8), Some(108)), (Some(107), Some(2), false));
}

/// What happens to a port between two sweeps.
#[derive(Clone, Copy, Debug)]
struct Step {
    counts: u64,
    between: u64,
    clears: (bool, bool),
    lost: (bool, bool),
    wide_first: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rarely = || prop::bool::weighted(0.15);
    let step = (0u64..60, 0u64..3, (rarely(), rarely()), (rarely(), rarely()), any::<bool>());
    let step = step.prop_map(|(counts, between, clears, lost, wide_first)| Step {
        counts,
        between,
        clears,
        lost,
        wide_first,
    });
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// Whatever is counted, cleared field by field and lost: a total never exceeds what was
    /// counted and never falls; and where only the classic field counts and is neither cleared
    /// nor full, it is what that field shows.
    #[test]
    fn total_never_exceeds_true_count(
        steps in steps(), wide_counts in any::<bool>(), begins in (0u64..200, 0u64..200),
    ) {
        let mut sources = CounterSources::default();
        let mut totals = PortTotals::default();
        // The fields begin at different values: either may have been cleared.
        let mut wide = if wide_counts { begins.0 } else { 0 };
        let (mut narrow, mut truth) = (begins.1, begins.0.max(begins.1));
        if !wide_counts {
            truth = narrow;
        }
        let (mut last, mut exact, mut now) = (0, true, Moment(0));
        for step in steps {
            let mut count = |wide: &mut u64, narrow: &mut u64, more: u64| {
                truth += more;
                *wide += if wide_counts { more } else { 0 };
                *narrow = (*narrow + more).min(255);
            };
            count(&mut wide, &mut narrow, step.counts);
            if step.clears.0 {
                wide = 0;
            }
            if step.clears.1 {
                (narrow, exact) = (0, false);
            }
            let answers = if step.wide_first {
                let first = wide;
                count(&mut wide, &mut narrow, step.between);
                (first, narrow)
            } else {
                let first = narrow;
                count(&mut wide, &mut narrow, step.between);
                (wide, first)
            };
            let (mut reading, _) = selected(
                &mut sources,
                (!step.lost.0).then_some(answers.0),
                (!step.lost.1).then_some(answers.1),
            );
            (now, reading.at) = (now + SWEEP, now);
            let (reading, _) = totals.update(reading, RATE);
            exact &= narrow < 255;
            let Some(total) = reading.get(DOWNED) else { continue };
            prop_assert!(total >= last, "fell from {last} to {total}");
            prop_assert!(total <= truth, "{total} of {truth}");
            if exact && !wide_counts {
                prop_assert_eq!(total, answers.1);
            }
            last = total;
        }
    }
}
