//! Counters that another tool clears, and PortXmitWait that is saturated.

use super::*;
use crate::assessment::PortAssessment;
use crate::bit_errors::{BerWindow, BitErrorLevel, BitErrors};
use crate::congestion::{Role, RootCause};
use ib_mad::PortKey;

/// Switch 1 with the hosts 2 and 3 at its ports 1 and 2; all links are 4x EDR.
struct Leaf {
    evaluator: LinkEvaluator,
    fabric: Arc<Fabric>,
    down: Option<PortKey>,
}

const ROOT: PortKey = PortKey::new(Guid(1), 1);
const SENDER: PortKey = PortKey::new(Guid(3), 1);

impl Leaf {
    fn new() -> Leaf {
        let nodes = vec![
            found(1, NodeKind::Switch, 2),
            found(2, NodeKind::Ca, 1),
            found(3, NodeKind::Ca, 1),
        ];
        let links = [(end(1, 1), end(2, 1)), (end(1, 2), end(3, 1))];
        let fabric = Arc::new(fabric(nodes, &links, None));
        Leaf { evaluator: LinkEvaluator::new(LimitTable::default()), fabric, down: None }
    }

    /// A sweep of readings at one moment, in which each port shows the counters that `shown` sets.
    fn sweep<F: Fn(PortKey, &mut Reading<Raw>)>(
        &mut self,
        seconds: f64,
        shown: F,
    ) -> impl Fn(PortKey) -> PortAssessment + use<F> {
        let at = Moment::default() + Duration::from_secs_f64(1000.0 + seconds);
        let anchor = Anchor { moment: at, wall: SystemTime::UNIX_EPOCH };
        let mut snapshot = Snapshot::blank(Arc::clone(&self.fabric), anchor);
        for port in self.fabric.port_indexes() {
            let mut reading = Reading::empty(at);
            shown(self.fabric.port_key(port), &mut reading);
            snapshot.readings[port] = Some(reading).filter(|it| !it.is_empty());
            let is_down = self.down == Some(self.fabric.port_key(port));
            let down = PortStatus { state: PortState::Down, ..PortStatus::default() };
            let status = if is_down { down } else { running(Width::X4, Speed::Edr) };
            snapshot.statuses[port] = PortRead::Ok(status);
        }
        let (snapshot, assessment) = self.evaluator.evaluate(snapshot);
        move |end| assessment.ports[snapshot.fabric.find(end).unwrap()].clone()
    }
}

const FULL: u64 = u32::MAX as u64;

#[expect(clippy::cast_sign_loss, reason = "no count is below zero")]
fn whole(count: f64) -> u64 {
    count as u64
}

/// A 32-bit PortXmitWait; a tick is 8 bytes, so that 1.5625e9 of them are a second at EDR.
fn waited(reading: &mut Reading<Raw>, seconds: f64) {
    let ticks = whole(seconds * 1.5625e9).min(FULL);
    reading.set(Counter::XmitWait, ticks);
    reading.saturated.set(Counter::XmitWait, ticks == FULL);
}

#[test]
fn saturated_wait_counter_has_no_ratio() {
    let mut leaf = Leaf::new();
    // It was full before the first sweep, as that of an mlx4.
    for sweep in 0..4 {
        let found = leaf.sweep(f64::from(sweep) * 15.0, |_, reading| waited(reading, 10.0));
        assert_eq!(found(ROOT).wait, None, "sweep {sweep}");
        assert!(found(ROOT).counters.saturated_now.contains(Counter::XmitWait));
    }
}

#[test]
fn wait_counter_that_fills_has_no_ratio() {
    let mut leaf = Leaf::new();
    let found = leaf.sweep(0.0, |_, reading| waited(reading, 1.0));
    assert_eq!(found(ROOT).wait, None);
    let found = leaf.sweep(15.0, |_, reading| waited(reading, 2.5));
    assert!((found(ROOT).wait.unwrap().share - 0.1).abs() < 1e-6);
    // It grew by a quarter of a second at least: that is no measurement.
    let found = leaf.sweep(30.0, |_, reading| waited(reading, 10.0));
    assert_eq!(found(ROOT).wait, None);
}

/// The hosts' link is the root of a congestion from the second sweep on: its port waits half of the time, and the other
/// host, which sends there, a third.
fn congested(leaf: &mut Leaf) {
    for sweep in 0..4 {
        let seconds = f64::from(sweep) * 0.5;
        let found = leaf.sweep(seconds, |end, reading| growing(end, reading, seconds));
        assert_eq!(found(ROOT).role.is_some(), sweep > 0);
    }
}

fn growing(end: PortKey, reading: &mut Reading<Raw>, seconds: f64) {
    reading.set(Counter::XmitData, 1_000_000 + whole(seconds * 1e6));
    match end {
        ROOT => waited(reading, 0.2 + seconds / 2.0),
        SENDER => waited(reading, 0.2 + seconds / 3.0),
        _ => waited(reading, 0.0),
    }
}

const SLOW: Option<Role> = Some(Role::Root(RootCause::SlowReceiver));
const UNKNOWN: Option<Role> = Some(Role::Root(RootCause::Unknown));

#[test]
fn clear_of_a_switch_makes_no_other_roots() {
    let mut leaf = Leaf::new();
    congested(&mut leaf);
    for sweep in 4..8 {
        let seconds = f64::from(sweep) * 0.5;
        // All counters of the switch are cleared a moment before the fifth sweep, which shows next to nothing.
        let found = leaf.sweep(seconds, |end, reading| match end.guid {
            Guid(1) => {
                reading.set(Counter::XmitData, whole((seconds - 1.99) * 1e6));
                let wait = if end == ROOT { (seconds - 1.99) / 2.0 } else { 0.0 };
                waited(reading, wait);
            }
            _ => growing(end, reading, seconds),
        });
        assert_eq!(found(ROOT).role, SLOW, "sweep {sweep}");
        let root = leaf.fabric.find(ROOT).unwrap();
        assert_eq!(found(SENDER).role, Some(Role::Victim { of: root }), "sweep {sweep}");
        assert_eq!(found(ROOT).wait.is_none(), sweep == 4);
    }
}

#[test]
fn port_that_was_not_read_keeps_its_role() {
    let mut leaf = Leaf::new();
    congested(&mut leaf);
    let found = leaf.sweep(2.0, |end, reading| {
        if end.guid != Guid(1) {
            growing(end, reading, 2.0);
        }
    });
    assert_eq!(found(ROOT).role, SLOW);
}

#[test]
fn root_whose_link_goes_down_is_the_root_of_what_waited_until_then() {
    let mut leaf = Leaf::new();
    congested(&mut leaf);
    leaf.down = Some(ROOT);
    let root = leaf.fabric.find(ROOT).unwrap();
    let found = leaf.sweep(2.0, |end, reading| growing(end, reading, 2.0));
    assert_eq!((found(ROOT).role, found(ROOT).wait), (SLOW, None));
    assert_eq!(found(SENDER).role, Some(Role::Victim { of: root }));
    // Nothing is sent there any more: what waits now waits for something else.
    let found = leaf.sweep(2.5, |end, reading| growing(end, reading, 2.5));
    assert_eq!((found(ROOT).role, found(SENDER).role), (None, UNKNOWN));
}

#[test]
fn saturated_root_is_held_for_a_time() {
    let mut leaf = Leaf::new();
    congested(&mut leaf);
    // The sender's counter has more bits than the root's.
    let mut role = |minutes: f64| {
        let seconds = minutes * 60.0;
        let found = leaf.sweep(seconds, |end, reading| match end {
            SENDER => reading.set(Counter::XmitWait, whole(seconds * 1.5625e9 / 3.0) + FULL),
            _ => waited(reading, if end == ROOT { 10.0 } else { 0.0 }),
        });
        found(ROOT).role
    };
    for minute in [1, 2, 5, 10, 14] {
        assert_eq!(role(f64::from(minute)), SLOW, "minute {minute}");
    }
    assert_eq!(role(16.0), None);
}

/// When errors occur at this rate per second, at random.
fn errors(rate: f64, seconds: f64) -> Vec<f64> {
    let (mut seed, mut at, mut errors) = (7_u64, 0.0, Vec::new());
    while rate > 0.0 && at < seconds {
        // Knuth's linear congruential generator.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        at -= (1.0 - (seed >> 11) as f64 / (1_u64 << 53) as f64).ln() / rate;
        errors.push(at);
    }
    errors
}

/// The errors of a link with this bit error ratio, of which a tool clears all counters, swept every so many seconds.
fn cleared(ratio: f64, clears: f64, interval: f64, minutes: f64) -> Vec<BitErrors> {
    let mut leaf = Leaf::new();
    let errors = errors(ratio * 1e11, minutes * 60.0);
    let until = |time: f64| errors.partition_point(|error| *error <= time) as u64;
    let sweeps = whole(minutes * 60.0 / interval) as u32;
    let found = (0..sweeps).map(|sweep| {
        let now = f64::from(sweep) * interval + 0.3;
        let since = (now / clears).floor() * clears;
        let found = leaf.sweep(now, |end, reading| {
            let errors = if end == ROOT { until(now) - until(since) } else { 0 };
            reading.set(Counter::SymbolErrors, errors);
            reading.set(Counter::RcvData, whole((now - since) * 1e8));
        });
        found(ROOT).bit_errors
    });
    found.collect()
}

#[test]
fn link_is_bad_although_its_counters_are_cleared_faster_than_read() {
    for (ratio, clears, interval) in [(3e-12, 2.7, 5.0), (3e-12, 2.7, 15.0), (1e-12, 9.0, 15.0)] {
        let found = cleared(ratio, clears, interval, 60.0);
        let last = found.last().unwrap();
        let shown = last.ratio(BerWindow::Short).unwrap_or(0.0);
        let case = format!("{ratio:e} {clears} {interval}: {:?} {shown:e}", last.level);
        assert_eq!(last.level, BitErrorLevel::Over, "{case}");
        // How much of each interval is observed is not known: see the module `clears`.
        let lowest = ratio * clears / interval / 2.0;
        assert!((lowest..ratio * 1.5).contains(&shown), "{case}");
    }
}

#[test]
fn link_is_not_fine_while_clears_may_hide_its_errors() {
    // Three times the limit.
    for clears in [2.7, 8.3] {
        let found = cleared(3e-13, clears, 15.0, 240.0);
        let fine = found.iter().rposition(|found| found.level == BitErrorLevel::Fine);
        assert!(fine.is_none_or(|last| last < found.len() / 2), "{clears}: {fine:?}");
    }
    // One without errors is fine nevertheless.
    assert_eq!(cleared(0.0, 2.7, 15.0, 240.0).last().unwrap().level, BitErrorLevel::Fine);
}

#[test]
fn good_link_stays_good_whatever_clears_its_counters() {
    for clears in [2.7, 4.9, 6.0, 9.0, 14.0, 60.0, 600.0] {
        // A third of the limit.
        let found = cleared(3e-14, clears, 5.0, 240.0);
        let worst = found.iter().map(|found| found.level).max().unwrap();
        assert!(worst <= BitErrorLevel::Raised, "{clears}: {worst:?}");
    }
}

#[test]
fn rare_clears_change_nothing() {
    let level = |ratio, clears| {
        let found = cleared(ratio, clears, 15.0, 120.0);
        let first = |is| found.iter().position(|found| found.level == is);
        [BitErrorLevel::Fine, BitErrorLevel::Raised, BitErrorLevel::Over].map(first)
    };
    for ratio in [0.0, 3e-14, 3e-13, 3e-12] {
        assert_eq!(level(ratio, 3600.0), level(ratio, 1e9), "{ratio:e}");
    }
}
