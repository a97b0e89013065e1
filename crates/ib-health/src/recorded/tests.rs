//! A restart with the recorded errors gives the same results as no restart, and nothing is taken from a link that
//! changed in between.

use std::sync::Arc;

use super::*;
use crate::bit_errors::{BerWindow, BitErrorLevel};
use crate::totals::TotalsSeed;
use crate::{LimitTable, LinkEvaluator, Reason, Verdict};
use ib_fabric::Fabric;
use ib_fabric::snapshot::PortRead;
use ib_fabric::testing::{end, fabric, found};
use ib_mad::fec::Fec;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;
use ib_mad::port_state::testing::up;
use ib_mad::{Moment, PortKey};

const SWEEP: Duration = Duration::from_secs(15);

/// What the host's end of a link counts, and the rate of the link.
#[derive(Clone, Copy)]
struct Counted {
    symbols: u64,
    downed: u64,
    speed: Speed,
    fec: Option<Fec>,
    is_read: bool,
    /// A counter that is saturated.
    saturated: Option<Counter>,
}

/// Switch 1, whose port 1 leads to port 1 of host 2.
fn pair() -> Arc<Fabric> {
    let nodes = vec![found(1, NodeKind::Switch, 1), found(2, NodeKind::Ca, 1)];
    Arc::new(fabric(nodes, &[(end(1, 1), end(2, 1))], None))
}

fn host() -> PortKey {
    end(2, 1)
}

fn wall(sweep: u32) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + SWEEP * sweep
}

/// An exporter that was started with a sweep.
struct Run {
    evaluator: LinkEvaluator,
    fabric: Arc<Fabric>,
    first: u32,
}

impl Run {
    fn new(first: u32) -> Self {
        let evaluator = LinkEvaluator::new(LimitTable::default());
        Run { evaluator, fabric: pair(), first }
    }

    fn sweep(&mut self, sweep: u32, counted: Counted) -> (Snapshot, Assessment) {
        let moment = Moment::default() + SWEEP * (sweep - self.first);
        let anchor = Anchor { moment, wall: wall(sweep) };
        let mut snapshot = Snapshot::<Raw>::blank(Arc::clone(&self.fabric), anchor);
        for port in [end(1, 1), host()] {
            let index = self.fabric.find(port).unwrap();
            let speed = Some(counted.speed);
            snapshot.statuses[index] = PortRead::Ok(PortStatus { speed, ..up(1) });
            let mut reading = Reading::empty(moment);
            let is_host = port == host();
            reading.set(Counter::SymbolErrors, if is_host { counted.symbols } else { 0 });
            reading.set(Counter::LinkDowned, counted.downed);
            if let Some(counter) = counted.saturated {
                reading.saturated.insert(counter);
            }
            snapshot.fec[index] = counted.fec;
            snapshot.readings[index] = (counted.is_read || !is_host).then_some(reading);
        }
        self.evaluator.evaluate(snapshot)
    }
}

fn errors_of_host(fabric: &Fabric, assessment: &Assessment) -> BitErrors {
    assessment.ports[fabric.find(host()).unwrap()].bit_errors
}

/// What a run of some sweeps from the first on recorded, when its counters showed these values.
fn record(sweeps: u32, counted: impl Fn(u32) -> Counted) -> (TotalsSeed, RecordedErrors) {
    let mut totals = TotalsSeed::new();
    let last = counted(sweeps - 1);
    for port in [end(1, 1), host()] {
        let restored = totals.entry(port).or_default();
        restored.restore(Counter::SymbolErrors, if port == host() { last.symbols } else { 0 }, 0);
        restored.restore(Counter::LinkDowned, last.downed, 0);
    }
    let grown = |sweep: u32| counted(sweep).symbols - counted(sweep - 1).symbols;
    let errors = (1..sweeps).map(|sweep| (wall(sweep), grown(sweep))).filter(|(_, by)| *by > 0);
    let link = LinkErrors {
        since: wall(0),
        rate: (Width::X4, last.speed),
        ends: [Vec::new(), errors.collect()],
    };
    let links = [(LinkId::between(end(1, 1), host()), link)].into();
    (totals, RecordedErrors { sweeps: (0..sweeps).map(wall).collect(), links })
}

/// The errors at the host and the verdict after a restart: the exporter ran for `before` sweeps, and sees `now` in sweep
/// `at`.
fn restarted(
    before: u32,
    counted: impl Fn(u32) -> Counted,
    at: u32,
    now: Counted,
) -> (BitErrors, Verdict) {
    let mut run = Run::new(at);
    (run.evaluator.seed, run.evaluator.recorded) = record(before, counted);
    let (_, assessment) = run.sweep(at, now);
    (errors_of_host(&run.fabric, &assessment), assessment.links[0].verdict)
}

fn counted(symbols: u64) -> Counted {
    Counted { symbols, downed: 3, speed: Speed::Ndr, fec: None, is_read: true, saturated: None }
}

#[test]
fn restart_gives_the_results_of_an_exporter_that_was_not_restarted() {
    // At NDR the limit is 0.06 errors a sweep.
    type Fault = (&'static str, fn(u32) -> u64, BitErrorLevel);
    let faults: [Fault; 4] = [
        ("none", |_| 0, BitErrorLevel::Fine),
        ("one error", |sweep| u64::from(sweep > 150), BitErrorLevel::Fine),
        ("twice the limit", |sweep| u64::from(sweep / 9), BitErrorLevel::Raised),
        ("ten times the limit", |sweep| u64::from(sweep / 2), BitErrorLevel::Over),
    ];
    for (fault, symbols, level) in faults {
        for gap in [1, 5, 9] {
            let at = 299 + gap;
            let mut uninterrupted = Run::new(0);
            for sweep in 0..300 {
                uninterrupted.sweep(sweep, counted(symbols(sweep)));
            }
            let mut run = Run::new(at);
            (run.evaluator.seed, run.evaluator.recorded) =
                record(300, |sweep| counted(symbols(sweep)));
            for sweep in at..at + 20 {
                let (_, one) = uninterrupted.sweep(sweep, counted(symbols(sweep)));
                let (_, other) = run.sweep(sweep, counted(symbols(sweep)));
                let [one, other] = [one, other].map(|it| errors_of_host(&run.fabric, &it));
                assert_eq!(other.level, level, "{fault}, {gap}, {sweep}: {other:?}");
                assert_eq!(one.level, level, "{fault}, {gap}, {sweep}: {one:?}");
                let windows = one.windows.iter().zip(&other.windows);
                for ((one, other), window) in windows.zip(BerWindow::ALL) {
                    // The shortest begins again: after a minute it has no reading in its time.
                    if window != BerWindow::Quick || gap == 1 {
                        let nth = format!("{fault}, {gap}, {sweep}, {window:?}");
                        assert_eq!(one.errors, other.errors, "{nth}");
                        assert!((one.seconds - other.seconds).abs() < 0.1, "{nth}");
                    }
                }
            }
        }
    }
}

#[test]
fn link_has_its_verdict_after_the_first_sweep() {
    let (errors, verdict) = restarted(60, |_| counted(7), 63, counted(7));
    assert_eq!((errors.level, verdict), (BitErrorLevel::Fine, Verdict::Ok));
    let bad = |sweep| counted(u64::from(sweep));
    let (errors, verdict) = restarted(60, bad, 63, bad(63));
    assert_eq!((errors.level, verdict), (BitErrorLevel::Over, Verdict::Bad));
}

#[test]
fn changed_links_are_observed_anew() {
    let past = |_: u32| counted(7);
    let changes = [
        ("link down", Counted { downed: 4, ..counted(7) }),
        ("other rate", Counted { speed: Speed::Hdr, ..counted(7) }),
        ("counters fell", counted(6)),
        ("not read", Counted { is_read: false, ..counted(7) }),
        ("saturated", Counted { saturated: Some(Counter::LinkDowned), ..counted(7) }),
    ];
    for (change, now) in changes {
        let mut run = Run::new(63);
        (run.evaluator.seed, run.evaluator.recorded) = record(60, past);
        let (_, assessment) = run.sweep(63, now);
        for port in &assessment.ports {
            let BitErrors { level, windows, .. } = port.bit_errors;
            assert_eq!(level, BitErrorLevel::Unknown, "{change}");
            assert!(windows.iter().all(|window| window.seconds < 1.0), "{change}");
        }
    }
}

#[test]
fn saturated_errors_are_unknown() {
    let now = Counted { saturated: Some(Counter::SymbolErrors), ..counted(7) };
    assert_eq!(restarted(60, |_| counted(7), 63, now).0.level, BitErrorLevel::Unknown);
}

#[test]
fn windows_stay_when_the_error_correction_becomes_known() {
    let mut run = Run::new(63);
    (run.evaluator.seed, run.evaluator.recorded) = record(60, |_| counted(7));
    run.sweep(63, counted(7));
    let (_, assessment) = run.sweep(64, Counted { fec: Some(Fec::Rs271Plr), ..counted(7) });
    let errors = errors_of_host(&run.fabric, &assessment);
    assert_eq!(errors.level, BitErrorLevel::Fine);
    assert_eq!(errors.windows[BerWindow::Long as usize].span(), SWEEP * 64);
    assert_eq!(assessment.links[0].verdict, Verdict::Ok);
}

#[test]
fn errors_of_a_long_gap_are_no_evidence_after_a_second_restart() {
    // No exporter for 23 minutes, in which a link at its limit has 5 errors; then one that ran for a minute.
    let level = |errors: u64| {
        let symbols = |sweep: u32| if sweep < 100 { 0 } else { errors };
        let (totals, mut recorded) = record(104, |sweep| counted(symbols(sweep)));
        recorded.sweeps.retain(|sweep| *sweep < wall(10) || *sweep >= wall(100));
        let mut run = Run::new(104);
        (run.evaluator.seed, run.evaluator.recorded) = (totals, recorded);
        let (_, assessment) = run.sweep(104, counted(errors));
        errors_of_host(&run.fabric, &assessment).level
    };
    assert_eq!(level(5), BitErrorLevel::Fine);
    assert_eq!(level(43), BitErrorLevel::Unknown);
}

#[test]
fn errors_of_a_long_gap_are_no_evidence() {
    let past = |_: u32| counted(7);
    // 15 minutes at NDR have 4 errors at the limit.
    assert_eq!(restarted(60, past, 120, counted(9)).0.level, BitErrorLevel::Fine);
    assert_eq!(restarted(60, past, 120, counted(107)).0.level, BitErrorLevel::Unknown);
}

#[test]
fn gap_of_hours_begins_all_windows_again() {
    let (errors, _) = restarted(60, |_| counted(7), 60 + 3 * 240, counted(7));
    assert_eq!(errors.level, BitErrorLevel::Unknown);
    assert!(errors.windows.iter().all(|window| window.seconds < 1.0), "{errors:?}");
}

#[test]
fn clock_that_was_set_back_gives_no_windows() {
    let (errors, _) = restarted(60, |_| counted(7), 30, counted(7));
    assert_eq!(errors.level, BitErrorLevel::Unknown);
}

#[test]
fn errors_before_the_link_changed_do_not_count() {
    let symbols = |sweep: u32| u64::from(sweep.min(100));
    let (totals, mut recorded) = record(200, |sweep| counted(symbols(sweep)));
    for link in recorded.links.values_mut() {
        link.since = wall(100);
    }
    let mut run = Run::new(201);
    (run.evaluator.seed, run.evaluator.recorded) = (totals, recorded);
    let (_, assessment) = run.sweep(201, counted(100));
    let errors = errors_of_host(&run.fabric, &assessment);
    assert_eq!(errors.level, BitErrorLevel::Fine, "{errors:?}");
    let long = errors.windows[BerWindow::Long as usize];
    assert_eq!((long.errors, long.span().as_secs()), (0, 99 * 15));
    assert!(assessment.links[0].reasons.weight(Reason::InsufficientData).is_none());
}
