//! The masks: which class each link and switch has by its verdict, errors, utilization, congestion, temperature or
//! speed.

use std::collections::HashMap;

use fabric_api::model::LEARNING;
use fabric_api::{FabricView, LinkCongestion, LinkRow};
use fabric_history::local_clock::LocalClock;
use ib_health::Verdict;
use ib_health::bit_errors::BerWindow;
use ib_health::congestion::{FLOOR, FULL};
use ib_mad::rate::Speed;

use super::changes::{self, Compared};
use super::choice::Mask;
use super::coloring::{Class, Coloring, Look, Scale, Step};
use super::recorded_errors::RecordedErrors;
use crate::components;
use crate::history_queries::NoHistory;

/// Where the errors come from.
#[derive(Debug)]
pub enum Errors {
    Evaluated(BerWindow),
    Recorded(Result<RecordedErrors, NoHistory>),
}

impl Errors {
    /// For a mask that shows none.
    pub fn unused() -> Self {
        Errors::Evaluated(BerWindow::Short)
    }
}

/// The errors of a link from which on it has the next class.
const ERRORS: [(u64, &str, &str); 5] = [
    (0, "", "no errors"),
    (1, "≥1", "1 to 9"),
    (10, "≥10", "10 to 99"),
    (100, "≥100", "100 to 999"),
    (1_000, "≥1k", "1,000 or more"),
];

/// The same of the utilization. From the last one on a link is fully utilized.
const UTILIZATION: [(f32, &str, &str); 5] = [
    (0.0, "", "below 1%"),
    (0.01, "≥1%", "1% to 25%"),
    (0.25, "≥25%", "25% to 50%"),
    (0.5, "≥50%", "50% to 90%"),
    (FULL, "≥90%", "90% or more: fully utilized"),
];

/// The same of the temperatures of modules and of ASICs in degrees Celsius. The last class of a module is that at or above
/// its own alarm threshold. The other steps are for the eye: no verdict depends on them.
const TEMPERATURE: [(f64, f64, &str, &str); 5] = [
    (f64::MIN, f64::MIN, "", "modules below 50 °C, ASICs below 70 °C"),
    (50.0, 70.0, "≥50°", "from 50 °C, ASICs from 70 °C"),
    (60.0, 85.0, "≥60°", "from 60 °C, ASICs from 85 °C"),
    (70.0, 95.0, "≥70°", "from 70 °C, ASICs from 95 °C"),
    (f64::MAX, 105.0, "✕", "modules at or above their alarm threshold, ASICs from 105 °C"),
];

/// The classes of a fabric by a mask.
pub fn coloring(
    view: FabricView<'_>,
    mask: Mask,
    errors: &Errors,
    compared: &Compared,
    clock: &LocalClock,
) -> Coloring {
    match mask {
        Mask::Changes => changes::coloring(view, compared),
        Mask::Verdict => verdict(view),
        Mask::Errors => self::errors(view, errors, clock),
        Mask::Utilization => utilization(view),
        Mask::Congestion => congestion(view),
        Mask::Temperature => temperature(view),
        Mask::Speed => speed(view),
    }
}

fn step(look: Look, sign: &'static str, label: impl Into<String>) -> Step {
    Step { look, sign, label: label.into() }
}

/// The steps of a measured value.
fn steps<'a>(of: impl Iterator<Item = (&'static str, &'a str)>) -> Vec<Step> {
    Look::STEPS.into_iter().zip(of).map(|(look, (sign, label))| step(look, sign, label)).collect()
}

/// The last step whose threshold a value reaches.
fn reached<T: Copy + PartialOrd>(thresholds: impl Iterator<Item = T>, value: T) -> Class {
    Class(thresholds.skip(1).take_while(|from| value >= *from).count())
}

fn verdict(view: FabricView<'_>) -> Coloring {
    let scale = Scale {
        steps: vec![
            step(Look::Ok, "", Verdict::Ok.label()),
            step(Look::Learning, "~", LEARNING),
            step(Look::Watch, "!", Verdict::word(Verdict::Watch.label())),
            step(Look::Bad, "✕", Verdict::Bad.label()),
        ],
        harmless: 2,
        unknown: "down, or not evaluated yet",
        notes: Vec::new(),
    };
    Coloring::of_links(scale, view, |link| match link.verdict() {
        Verdict::Ok => Some(Class(0)),
        Verdict::Unknown => link.learning().map(|_| Class(1)),
        Verdict::Watch => Some(Class(2)),
        Verdict::Bad => Some(Class(3)),
    })
}

fn errors(view: FabricView<'_>, errors: &Errors, clock: &LocalClock) -> Coloring {
    let notes = match errors {
        Errors::Evaluated(window) => vec![evaluated_note(view, *window)],
        Errors::Recorded(Ok(recorded)) => recorded_notes(recorded, clock),
        Errors::Recorded(Err(NoHistory::NotRecorded)) => {
            vec!["No history is recorded: start the exporter with --history.file=FILE.".into()]
        }
        Errors::Recorded(Err(NoHistory::Unavailable(why))) => vec![why.clone()],
    };
    let scale = Scale {
        steps: steps(ERRORS.iter().map(|(_, sign, label)| (*sign, *label))),
        harmless: 1,
        unknown: "not counted in this window",
        notes,
    };
    let counted = |link: &LinkRow<'_>| match errors {
        Errors::Evaluated(window) => link.window_errors(*window).map(|it| it.errors.into()),
        Errors::Recorded(recorded) => recorded.as_ref().ok()?.of(link),
    };
    Coloring::of_links(scale, view, |link| {
        Some(reached(ERRORS.iter().map(|(from, ..)| *from), counted(link)?))
    })
}

/// Which errors they are, and how many links were not observed for the whole window.
fn evaluated_note(view: FabricView<'_>, window: BerWindow) -> String {
    let wanted = match window {
        BerWindow::Quick => 75.0,
        BerWindow::Short => 12.0 * 60.0,
        BerWindow::Long => 125.0 * 60.0,
    };
    // A window begins with a sweep: up to a sixth of it may be missing.
    let is_short = |link: &LinkRow<'_>| {
        link.window_errors(window).is_some_and(|it| f64::from(it.seconds) < wanted * 0.8)
    };
    let short = view.links().filter(is_short).count();
    let part = match short {
        0 => String::new(),
        short => format!(
            " For {} only a part of the window was counted.",
            components::plural(short, "link")
        ),
    };
    format!("Bit errors of both directions until the latest sweep.{part}")
}

fn recorded_notes(recorded: &RecordedErrors, clock: &LocalClock) -> Vec<String> {
    let RecordedErrors { window, missing, .. } = recorded;
    let (from, to) = (clock.format(window.from), clock.format(window.to));
    let mut notes = vec![format!("All link errors from {from} to {to}, from the history.")];
    match missing {
        None => notes.push("Nothing of this fabric is recorded in this window.".into()),
        Some(missing) if missing.is_zero() => {}
        Some(missing) => notes.push(format!(
            "Not recorded: {} of it. Errors of that time are unknown.",
            components::duration(*missing)
        )),
    }
    notes
}

fn utilization(view: FabricView<'_>) -> Coloring {
    let scale = Scale {
        steps: steps(UTILIZATION.iter().map(|(_, sign, label)| (*sign, *label))),
        harmless: 1,
        unknown: "without traffic counters, or down",
        notes: vec!["The busier direction, between the latest two readings.".into()],
    };
    Coloring::of_links(scale, view, |link| {
        Some(reached(UTILIZATION.iter().map(|(from, ..)| *from), link.used()?))
    })
}

fn congestion(view: FabricView<'_>) -> Coloring {
    let scale = Scale {
        steps: vec![
            step(Look::Step0, "", "no port waits for long"),
            step(Look::Step2, "◇", "victim: a port waits for a root"),
            step(Look::Step4, "◆", "congestion root"),
        ],
        harmless: 1,
        unknown: "no data on waiting",
        notes: vec![format!(
            "Ports that wait to send for at least {:.0}% of the time.",
            FLOOR * 100.0
        )],
    };
    Coloring::of_links(scale, view, |link| {
        Some(match link.congestion_part()? {
            LinkCongestion::None => Class(0),
            LinkCongestion::Victim => Class(1),
            LinkCongestion::Root => Class(2),
        })
    })
}

fn temperature(view: FabricView<'_>) -> Coloring {
    let scale = Scale {
        steps: steps(TEMPERATURE.iter().map(|(_, _, sign, label)| (*sign, *label))),
        // Copper cables have none: what is known of the others is shown.
        harmless: 0,
        unknown: "without a temperature, such as a copper cable",
        notes: vec![
            "A link: the hotter module of its ends. A box: the hottest of its modules and its ASIC."
                .into(),
        ],
    };
    let of_links = Coloring::of_links(scale, view, |link| {
        let module = link.temperature()?;
        let by_degrees = reached(TEMPERATURE.iter().map(|(from, ..)| *from), module.celsius);
        Some(if module.is_alarm() { Class(TEMPERATURE.len() - 1) } else { by_degrees })
    });
    let fabric = &view.snapshot.fabric;
    let nodes = fabric.node_indexes().filter(|node| fabric.node(*node).is_switch());
    let nodes = nodes.filter_map(|node| {
        let class = reached(TEMPERATURE.iter().map(|(_, from, ..)| *from), view.temperature(node)?);
        Some((fabric.node(node).identity.guid, class))
    });
    of_links.with_nodes(nodes.collect())
}

/// The speeds that occur, the highest first.
fn speed(view: FabricView<'_>) -> Coloring {
    let mut speeds: Vec<Speed> = view.links().filter_map(|link| link.rate().speed).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    speeds.dedup();
    let look = |place: usize| Look::STEPS.get(place).copied().unwrap_or(Look::Step4);
    let steps = speeds.iter().enumerate();
    let scale = Scale {
        steps: steps.map(|(place, it)| step(look(place), it.label(), it.label())).collect(),
        // The verdicts show which links are down.
        harmless: 0,
        unknown: "down, or its speed was not read",
        notes: vec!["Signaling rate per lane. A line shows the slowest of its links.".into()],
    };
    let place: HashMap<Speed, usize> =
        speeds.iter().enumerate().map(|(place, speed)| (*speed, place)).collect();
    Coloring::of_links(scale, view, |link| place.get(&link.rate().speed?).copied().map(Class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::Observation;
    use ib_health::assessment::Flow;
    use ib_health::testing::{fine, over, port, snapshot};

    /// The classes of the links to host-a and host-b.
    fn classes(observation: &Observation, mask: Mask) -> [Option<usize>; 2] {
        let view = FabricView::new(observation).unwrap();
        let errors = Errors::Evaluated(BerWindow::Short);
        let coloring = coloring(view, mask, &errors, &Compared::default(), &LocalClock::now());
        let classes: Vec<_> =
            view.links().map(|link| coloring.link(&link).map(|Class(place)| place)).collect();
        classes.try_into().unwrap()
    }

    #[test]
    fn what_is_not_measured_has_no_class() {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        let [leaf, host] = [port(&snapshot, 1, 1), port(&snapshot, 2, 1)];
        assessment.ports[leaf].tx = Some(Flow { rate: 1.0, used: 0.3 });
        assessment.ports[host].bit_errors = over(432);
        assessment.links[1].verdict = Verdict::Unknown;
        let snapshot = Some(snapshot.into());
        let observation = Observation { snapshot, assessment, ..Observation::default() };
        for (mask, expected) in [
            (Mask::Verdict, [Some(0), None]),
            (Mask::Errors, [Some(3), None]),
            (Mask::Utilization, [Some(2), None]),
            (Mask::Congestion, [None, None]),
            (Mask::Temperature, [None, None]),
            (Mask::Speed, [Some(0), Some(0)]),
        ] {
            assert_eq!(classes(&observation, mask), expected, "{mask:?}");
        }
    }

    #[test]
    fn steps_begin_at_their_thresholds() {
        let errors = |count| reached(ERRORS.iter().map(|(from, ..)| *from), count).0;
        assert_eq!([0, 1, 9, 10, 999, 1_000, u64::MAX].map(errors), [0, 1, 1, 2, 3, 4, 4]);
        let used = |share| reached(UTILIZATION.iter().map(|(from, ..)| *from), share).0;
        assert_eq!([0.0, 0.009, 0.01, 0.5, 0.9, 1.2].map(used), [0, 0, 1, 3, 4, 4]);
        let asic = |degrees| reached(TEMPERATURE.iter().map(|(_, from, ..)| *from), degrees).0;
        assert_eq!([-5.0, 69.9, 70.0, 105.0].map(asic), [0, 0, 1, 4]);
    }
}
