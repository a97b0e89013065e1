//! Events of a fabric with faults, and of one without.

use std::time::Duration;

use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::Event;
use fabric_history::source::SeriesDetail;
use fabric_history::{Reader, Source};
use ib_mad::{Counter, PortKey};

use crate::frames::frames;
use crate::{RecordedSimulation, always, events, minutes, wall};

/// A fault, and its expected events.
struct Fault {
    /// In the scenario.
    entry: &'static str,
    /// Its events: the kind, a part of the location or the text, the time, and the largest delay.
    tells: &'static [(&'static str, &'static str, Duration, Duration)],
    /// Locations that may have further events from then on.
    places: &'static [&'static str],
    from: Duration,
}

const SOON: Duration = Duration::from_secs(20);

const FAULTS: &[Fault] = &[
    Fault {
        entry: "unplug: {at: 10m, link: \"leaf-0-0[9]\", for: 5m}",
        tells: &[
            ("link_down", "leaf-0-0 port 9", minutes(10), SOON),
            ("link_up", "leaf-0-0 port 9", minutes(15), SOON),
            ("flap", "leaf-0-0 port 9", minutes(10), SOON),
            ("link_down_reason", "leaf-0-0 port 9", minutes(10), SOON),
            ("verdict_changed", "not Active: leaf-0-0 port 9 Down", minutes(10), SOON),
        ],
        places: &["leaf-0-0 port 9"],
        from: minutes(10),
    },
    Fault {
        entry: "flap: {at: 20m 7s, link: \"leaf-0-2[3]\", down: 500ms, every: 1m, times: 3}",
        tells: &[("flap", "leaf-0-2 port 3", Duration::from_secs(20 * 60 + 7), SOON)],
        places: &["leaf-0-2 port 3"],
        from: Duration::from_secs(20 * 60 + 7),
    },
    Fault {
        entry: "reboot: {at: 40m, node: host-13, down: 90s}",
        tells: &[
            ("node_down", "host-13", minutes(40), SOON),
            ("node_up", "host-13", Duration::from_secs(40 * 60 + 90), Duration::from_secs(60)),
            ("expected_link_down", "host-13", minutes(40), SOON),
            ("link_down_reason", "remote side, device reset", minutes(40), SOON),
        ],
        places: &["host-13"],
        from: minutes(40),
    },
    Fault {
        entry: "degrade: {at: 50m, link: \"leaf-0-0[10]\", width: 1x}",
        tells: &[
            ("rate_changed", "from 4x NDR to 1x NDR", minutes(50), SOON),
            ("verdict_changed", "runs at 1x NDR", minutes(50), Duration::from_secs(60)),
        ],
        places: &["leaf-0-0 port 10"],
        from: minutes(50),
    },
    Fault {
        entry: "bad-cable: {at: 60m, into: \"leaf-0-1[9]\", ratio: 1e-9}",
        tells: &[("verdict_changed", "symbol BER", minutes(60), Duration::from_secs(300))],
        places: &["leaf-0-1 port 9"],
        from: minutes(60),
    },
    Fault {
        entry: "move-cable: {at: 70m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}",
        tells: &[
            ("cable_moved", "host-9", minutes(70), SOON),
            ("cable_moved", "leaf-0-1 port 2", minutes(70), SOON),
            ("cable_changed", "seen at leaf-0-1 port 2", minutes(70), Duration::from_secs(60)),
        ],
        places: &["leaf-0-1 port 2", "leaf-0-1 port 5", "host-9", "host-12"],
        from: minutes(70),
    },
    Fault {
        entry: "clear: {at: 80m, node: spine-1}",
        tells: &[("counter_reset", "spine-1", minutes(80), SOON)],
        places: &["spine-1"],
        from: minutes(80),
    },
];

fn is_told(event: &Event, fault: &Fault) -> bool {
    // Both ends of a link report why it went down.
    let is_reason = event.kind == "link_down_reason" && event.at < wall(fault.from + minutes(6));
    let is_there = |place: &&str| event.place.contains(*place) || is_reason;
    fault.places.iter().any(is_there) && event.at >= wall(fault.from)
}

#[test]
fn each_fault_is_one_event_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let entries: Vec<&str> = FAULTS.iter().map(|fault| fault.entry).collect();
    let mut simulation =
        RecordedSimulation::new(&format!("timeline:\n- {}", entries.join("\n- ")), &file);
    simulation.run_to(minutes(90));
    let sweeps = simulation.simulated.observation().stats.sweeps;
    simulation.recorder.finish(wall(minutes(90)));
    let events = events(&file);
    let listed = || {
        events
            .iter()
            .map(|it| {
                format!(
                    "{:?} {} {} {}",
                    it.at.duration_since(wall(Duration::ZERO)),
                    it.kind,
                    it.place,
                    it.text
                )
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    for fault in FAULTS {
        for (kind, part, at, late) in fault.tells {
            let from = wall(*at) - Duration::from_millis(1);
            let is_it = |event: &&Event| {
                event.kind == *kind
                    && (event.place.contains(part) || event.text.contains(part))
                    && event.at >= from
                    && event.at <= wall(*at + *late)
            };
            assert!(
                events.iter().any(|it| is_it(&it)),
                "{kind} {part} at {at:?} is not in\n{}",
                listed()
            );
        }
    }
    let (first, last) = (&events[0], &events[events.len() - 1]);
    assert_eq!((&*first.kind, &*last.kind), ("exporter_start", "exporter_stop"));
    for event in &events[1..events.len() - 1] {
        assert!(
            FAULTS.iter().any(|fault| is_told(event, fault)),
            "unexpected: {event:?} in\n{}",
            listed()
        );
    }
    // Every sweep had traffic, and is recorded.
    let (whole, torn, _) = frames(&file, RecordKind::TrafficDeltas).unwrap();
    assert_eq!((whole as u64, torn), (sweeps - 1, 0), "the first sweep is the reference");
    assert_eq!((simulation.metrics.get().missed, simulation.metrics.errors()), (0, 0));
}

/// The sum of recorded increases equals the increase of the counters.
#[test]
fn increases_add_up_to_totals() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let story = "timeline:\n- bad-cable: {at: 3m, into: \"leaf-0-1[9]\", ratio: 1e-9}\n\
                 - clear: {at: 7m}";
    let mut simulation = RecordedSimulation::new(story, &file);
    simulation.run_to(Duration::from_secs(5));
    let first = simulation.simulated.observation();
    simulation.run_to(minutes(30));
    let last = simulation.simulated.observation();
    let reader = Reader::open(&file).unwrap();
    let (before, after) = (first.snapshot.as_ref().unwrap(), last.snapshot.as_ref().unwrap());
    let mut counted = 0;
    for port in after.fabric.port_indexes() {
        let PortKey { guid, number } = after.fabric.port_key(port);
        let Some(reading) = after.reading(port) else { continue };
        let series =
            reader.series(&[PortKey::new(guid, number)], SeriesDetail::All, always()).unwrap();
        let old = after.fabric.port_key(port);
        let old = before.reading(before.fabric.find(old).unwrap()).unwrap();
        for counter in Counter::all() {
            let Some(total) = reading.get(counter) else { continue };
            let of = series.iter().filter(|of| of.counter == counter);
            let sum: u64 = of.flat_map(|of| &of.steps).map(|step| step.by).sum();
            let grown = (total - old.get(counter).unwrap()) * counter.row().scale;
            assert_eq!(sum, grown, "{guid} {number} {counter:?}");
            counted += sum;
        }
    }
    assert!(counted > 0);
}

#[test]
fn quiet_fabric_has_no_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new("about: traffic, and nothing else", &file);
    simulation.run_to(minutes(180));
    let events = Reader::open(&file)
        .unwrap()
        .events(&fabric_history::source::EventFilter::all(always()))
        .unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["exporter_start"], "{events:?}");
}

/// A recorder that falls behind counts the sweeps that it missed, and their increases are recorded.
#[test]
fn missed_sweeps_are_counted_and_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation =
        RecordedSimulation::new("timeline: [unplug: {at: 2m, link: \"leaf-0-0[9]\"}]", &file);
    simulation.run_to(minutes(1));
    let before = simulation.metrics.get().frames;
    simulation.at = minutes(4) + Duration::from_secs(5);
    let done = simulation.simulated.observation().stats.sweeps;
    simulation.run_to(simulation.at);
    let missed = simulation.simulated.observation().stats.sweeps - done - 1;
    assert_eq!(simulation.metrics.get().missed, missed);
    assert!(missed >= 10 && simulation.metrics.get().frames > before);
    assert!(events(&file).iter().any(|event| event.kind == "link_down"));
}
