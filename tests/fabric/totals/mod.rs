//! Whatever happens to a fabric, the totals of a port are what it has counted, less what cannot be
//! known.
//!
//! Random faults of all kinds occur in small fabrics of several device generations, and the
//! exporter's own monitor runs in virtual time. The true counts are those of the simulation
//! ([`truth`]); [`ledger`] has the valid range of each total of each port and sweep.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod days;
mod ledger;
mod story;
mod truth;

use test_rig as rig;

use std::cell::RefCell;
use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use ib_mad::Moment;
use ib_sim::scenario::{Overrides, Scenario};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use ledger::{Ledger, Tally};
use rig::Simulated;
use story::{Turn, Unrest};
use truth::Truth;

/// The sweep interval. Errors are drawn on the whole second: with this interval most sweeps are
/// between two draws, so that error counters do not change while they are read.
const INTERVAL: Duration = Duration::from_millis(15_300);

/// The duration of a sweep if all nodes respond: milliseconds.
const SOON: Duration = Duration::from_millis(20);

/// The duration if some node does not: seconds.
const LATER: Duration = Duration::from_millis(250);

/// Sweeps after the end of all faults: after many moves the next discovery waits for up to eight
/// intervals, and the last sweep has to read all ports.
const QUIET_TURNS: usize = 10;

const FABRICS: [&str; 5] = [
    "{fat-tree: {hosts: 6, radix: 8, down: 3, up: 2}}",
    "{fat-tree: {hosts: 6, radix: 8, down: 3, up: 2, switch: infiniscale-4, hca: infinihost-3}}",
    "{dragonfly-plus: {leaves: 1, spines: 1, hosts-per-leaf: 2, global: 2, radix: 8, switch: switchx, hca: connectx-3}}",
    "{fat-tree: {hosts: 4, radix: 6, down: 2, up: 2, ports: 2, switch: switch-ib-2, hca: connectx-5}}",
    "{back-to-back: {hca: infinihost-3}}",
];

/// A simulation with its monitor.
struct Play {
    simulated: Simulated,
    truth: Truth,
    ledger: Ledger,
    unrest: Unrest,
    now: Duration,
    sweeps: u64,
}

impl Play {
    fn new(fabric: usize, seed: u32) -> Play {
        let text = format!("fabric: {}\nseed: {seed}\ntraffic: {{load: 1%}}\n", FABRICS[fabric]);
        let scenario = Scenario::parse("totals", &text).unwrap();
        let story = scenario.resolve(&Overrides::default()).unwrap();
        let options = FabricOptions {
            details: Some(true),
            fec: Some(true),
            interval: Some(format!("{}ms", INTERVAL.as_millis()).parse().unwrap()),
            ..FabricOptions::default()
        };
        Play {
            truth: Truth::new(&story.net),
            ledger: Ledger::new(&story.net),
            unrest: Unrest::new(&story),
            simulated: Simulated::with(story, options),
            now: Duration::ZERO,
            sweeps: 0,
        }
    }

    fn go_on(&mut self, to: Duration) {
        self.now = self.now.max(to);
        self.simulated.run_to(self.now);
        self.truth.record(&self.simulated.world());
    }

    /// Runs the next sweep, and compares it with the truth.
    fn sweep(&mut self) -> Result<(), String> {
        self.truth.forget();
        let mut next = SOON;
        for _ in 0..400 {
            self.go_on(self.now + next);
            next = LATER;
            let seen = self.simulated.observation();
            if seen.stats.sweeps > self.sweeps {
                self.sweeps = seen.stats.sweeps;
                return self.ledger.audit(&self.truth, &seen);
            }
        }
        Err(format!("no sweep until {:?}", self.now))
    }

    /// One sweep, and the events until the next.
    fn turn(&mut self, turn: &Turn) -> Result<(), String> {
        self.sweep()?;
        let ticks = self.now.as_nanos() / INTERVAL.as_nanos();
        let next = INTERVAL * (ticks as u32 + 1);
        // Just before it: it begins at its tick.
        let end = next.saturating_sub(Duration::from_millis(1));
        let ended = self.simulated.observation().snapshot.as_ref().map(|snapshot| snapshot.ended);
        let since = ended.unwrap_or_default().since(Moment::default());
        if since.as_nanos() / INTERVAL.as_nanos() == ticks {
            // No events during a sweep: its correct result would be unknown.
            let gap = end.saturating_sub(self.now);
            let begin = self.now;
            for (share, change) in self.unrest.changes(turn) {
                self.go_on(begin + gap.mul_f64(share));
                let before = self.truth.latest().clone();
                self.simulated.act(change);
                self.truth.record_resets(&before, &self.simulated.world(), &mut self.ledger.tally);
            }
        }
        self.go_on(end);
        Ok(())
    }

    fn run(mut self, turns: &[Turn]) -> Result<Tally, String> {
        for turn in turns {
            self.turn(turn)?;
        }
        self.unrest.end_all();
        for _ in 0..QUIET_TURNS {
            self.turn(&Turn::new())?;
        }
        self.sweep()?;
        // A moved cable may have left a port without one, or split the fabric.
        if self.unrest.tally.moves == 0 {
            self.ledger.all_read()?;
        }
        self.ledger.tally.add(&self.unrest.tally);
        Ok(self.ledger.tally)
    }
}

#[test]
fn totals_match_the_true_counts() {
    let config = Config {
        cases: 100,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(15),
        ..Config::default()
    };
    let tally = RefCell::new(Tally::default());
    let stories = (0..FABRICS.len(), proptest::num::u32::ANY, story::turns());
    let outcome = TestRunner::new(config).run(&stories, |(fabric, seed, turns)| {
        let seen = Play::new(fabric, seed).run(&turns).map_err(TestCaseError::fail)?;
        tally.borrow_mut().add(&seen);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let tally = tally.into_inner();
    println!("{tally:?}");
    assert!(tally.is_of_all_kinds(), "{tally:?}");
}
