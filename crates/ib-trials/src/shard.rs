//! A shard: one cell, evaluated for many days, or for a day after faults are planted.

use std::time::Instant;

use ib_health::verdict::Repair;
use ib_health::{Assessment, LimitTable, LinkAssessment, LinkEvaluator, Verdict};
use ib_mad::rate::Speed;
use ib_sim::rng::Rng;

use crate::cell::{CABLES, Cable, Cell, between, share};
use crate::devices::GENERATIONS;
use crate::rates::MARGINAL;
use crate::rules::{BaselineRules, Rule};
use crate::schedule;
use crate::score::{Tally, Trial};
use crate::time::DAY;
use crate::trials::{CAUSES, KINDS, Kind, VISIT, WARM_UP, WATCHED, visit};
use crate::world::World;

/// A verdict that stays this much longer than documented is stale.
const STALE: f64 = 3600.0;

/// After this time an event is not given as the context of a false verdict.
const CONTEXT: f64 = DAY;

/// The class of cables that are not marginal.
pub const BELOW: &str = "below 0.1";

/// Faults that are planted in a cell at the same time, in cables far from each other.
const PLANTED: usize = 6;

/// What is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// A cell of the long run.
    Long(u64),
    /// A cell with injected faults, and the seconds between sweeps.
    Trial(u64, u32),
}

impl Shard {
    /// Its name in the file of results.
    pub fn name(self) -> String {
        match self {
            Shard::Long(cell) => format!("long-{cell}"),
            Shard::Trial(cell, interval) => format!("trial-{interval}s-{cell}"),
        }
    }

    /// Evaluates it.
    pub fn run(self, seed: u64, days: f64, interval: u32, limits: &LimitTable) -> Tally {
        let began = Instant::now();
        let mut tally = match self {
            Shard::Long(cell) => long(seed, cell, days, interval, limits),
            Shard::Trial(cell, interval) => trial(seed, cell, interval, limits),
        };
        tally.seconds = began.elapsed().as_secs_f64();
        tally
    }
}

/// What is remembered of a cable between sweeps.
#[derive(Clone, Debug, Default)]
struct Seen {
    verdict: Verdict,
    was_false: bool,
    is_stale: bool,
    flaps: u32,
    alarms: [bool; Rule::ALL.len()],
}

/// The loop that both kinds of shards have in common: a sweep, an evaluation, what the rules of other tools find, and what is true.
struct Loop {
    world: World,
    evaluator: LinkEvaluator,
    baseline: BaselineRules,
    limits: LimitTable,
    now: f64,
}

impl Loop {
    fn new(world: World, limits: &LimitTable) -> Loop {
        let baseline = BaselineRules::new(&world.cell);
        let evaluator = LinkEvaluator::new(limits.clone());
        Loop { world, evaluator, baseline, limits: limits.clone(), now: 0.0 }
    }

    /// The next sweep; `None` if the exporter misses it.
    fn step(&mut self) -> Option<Assessment> {
        let world = &mut self.world;
        self.now += world.interval;
        world.advance(self.now);
        world.update_truth(self.now);
        if std::mem::take(&mut world.restarted) {
            self.evaluator = LinkEvaluator::new(self.limits.clone());
        }
        if self.now < world.gap_until {
            return None;
        }
        let snapshot = world.sweep(self.now);
        self.baseline.record(&snapshot, self.now);
        self.evaluator.maintenance.clone_from(&world.maintenance);
        let (_, assessment) = self.evaluator.evaluate(snapshot);
        Some(assessment)
    }

    fn cable_of(&self, link: &LinkAssessment) -> Option<usize> {
        self.world.cell.ports[usize::from(link.link.low)].cable.map(|(cable, _)| cable)
    }
}

/// How near a cable always is to its limit.
fn class(cable: &Cable) -> String {
    let worst = cable.steady[0].max(cable.steady[1]);
    if worst < MARGINAL[0].0 { BELOW.to_owned() } else { format!("{worst}") }
}

/// The reason of a verdict, and what happened to the cable before.
fn describe(at: &Loop, cable: usize, link: &LinkAssessment) -> String {
    let reason = link.reasons.worst().map_or("none", |(reason, _)| reason.label());
    let known = &at.world.cell.cables[cable];
    let last = known.truth.last.filter(|(_, when)| at.now - when < CONTEXT);
    let before =
        last.map_or("without an event".into(), |(event, _)| format!("after {}", event.label()));
    match class(known).as_str() {
        BELOW => format!("{reason}, {before}"),
        worst => format!("{reason}, {before}, at {worst} of the limit"),
    }
}

fn long(seed: u64, number: u64, days: f64, interval: u32, limits: &LimitTable) -> Tally {
    let mut rng = Rng::keyed(seed, &[0, number]);
    let cell = Cell::new(&mut rng, None, true);
    let mut world = World::new(cell, rng, f64::from(interval));
    schedule::plan(&mut world, days);
    let mut tally = Tally::default();
    let mut at = Loop::new(world, limits);
    let mut cables = vec![Seen::default(); CABLES];
    let mut unknown = 0_u64;
    while at.now < days * DAY {
        let Some(assessment) = at.step() else { continue };
        tally.evaluations += assessment.links.len() as u64;
        for link in &assessment.links {
            let Some(cable) = at.cable_of(link) else { continue };
            let known = &mut cables[cable];
            unknown += u64::from(link.verdict == Verdict::Unknown);
            let flaps = link.outages.flaps;
            // After a restart of the exporter it counts from 0.
            tally.counted_flaps += u64::from(flaps.checked_sub(known.flaps).unwrap_or(flaps));
            known.flaps = flaps;
            judge(&at, number, cable, link, known, &mut tally);
            let truth = &at.world.cell.cables[cable].truth;
            let right = at.now <= truth.watch_until;
            let alarms = at.baseline.alarms(&at.world.cell, cable, at.now);
            for ((count, before), is) in tally.others.iter_mut().zip(&mut known.alarms).zip(alarms)
            {
                *count += u64::from(is && !*before && !right);
                *before = is;
            }
        }
    }
    #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
    let seconds = (days * DAY) as u64;
    tally.cable_seconds = seconds * CABLES as u64;
    if at.world.cell.generation.speed == Speed::Ndr {
        tally.ndr_seconds = tally.cable_seconds;
    }
    tally.unknown_seconds = unknown * u64::from(interval);
    tally.flaps = at.world.flaps;
    for cable in &at.world.cell.cables {
        tally.classes.entry(class(cable)).or_default().cable_seconds += seconds;
    }
    tally
}

/// Compares the verdict of a sweep with the truth.
fn judge(
    at: &Loop,
    cell: u64,
    cable: usize,
    link: &LinkAssessment,
    known: &mut Seen,
    tally: &mut Tally,
) {
    let (before, now) = (std::mem::replace(&mut known.verdict, link.verdict), link.verdict);
    if now < Verdict::Watch {
        (known.was_false, known.is_stale) = (false, false);
        return;
    }
    let state = &at.world.cell.cables[cable];
    let truth = &state.truth;
    let is_bad = now == Verdict::Bad;
    let until = if is_bad { truth.bad_until } else { truth.watch_until };
    if now > before {
        if at.now > until {
            known.was_false = true;
            let text = describe(at, cable, link);
            let of = tally.classes.entry(class(state)).or_default();
            let (of_class, counts) = if is_bad {
                (&mut of.false_bad, &mut tally.false_bad)
            } else {
                (&mut of.false_watch, &mut tally.false_watch)
            };
            *of_class += 1;
            *counts.entry(text.clone()).or_default() += 1;
            #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
            tally.examples.push((cell, at.now as u64, cable, format!("{}: {text}", now.label())));
        }
    } else if is_bad && !known.was_false && !known.is_stale && at.now > until + STALE {
        known.is_stale = true;
        *tally.stale_bad.entry(describe(at, cable, link)).or_default() += 1;
    }
}

/// A injected fault that is watched.
struct Watched {
    cable: usize,
    planted: f64,
    began: f64,
    cause: usize,
    trial: Trial,
}

fn trial(seed: u64, cell: u64, interval: u32, limits: &LimitTable) -> Tally {
    let mut rng = Rng::keyed(seed, &[1, cell]);
    let generation = (cell % GENERATIONS.len() as u64) as usize;
    let fabric = Cell::new(&mut rng, Some(GENERATIONS[generation]), false);
    let mut at = Loop::new(World::new(fabric, rng, f64::from(interval)), limits);
    let mut faults = plant(&mut at.world, cell, generation, interval);
    let mut tally = Tally::default();
    let mut bystanders = [false; CABLES];
    while at.now < WARM_UP + 3600.0 + WATCHED {
        let Some(assessment) = at.step() else { continue };
        tally.evaluations += assessment.links.len() as u64;
        for link in &assessment.links {
            let Some(cable) = at.cable_of(link) else { continue };
            let Some(fault) = faults.iter_mut().find(|fault| fault.cable == cable) else {
                let truth = &at.world.cell.cables[cable].truth;
                let is_false = link.verdict >= Verdict::Watch && at.now > truth.watch_until;
                tally.bystanders += u64::from(is_false && !bystanders[cable]);
                bystanders[cable] |= is_false;
                continue;
            };
            let alarms = at.baseline.alarms(&at.world.cell, cable, at.now);
            observe(fault, &mut at.world, at.now, link, alarms);
        }
    }
    tally.trials = faults.into_iter().map(|fault| fault.trial).collect();
    tally
}

fn plant(world: &mut World, cell: u64, generation: usize, interval: u32) -> Vec<Watched> {
    let about = GENERATIONS[generation];
    let mut faults = Vec::new();
    let round = cell / GENERATIONS.len() as u64 * PLANTED as u64;
    for nth in 0..PLANTED {
        let index = ((round + nth as u64) % KINDS.len() as u64) as usize;
        let (kind, ..) = KINDS[index];
        // Every sixth cable from a random one on; a dead one only between switches.
        let trunks = matches!(kind, Kind::Dead);
        let cable = if trunks { nth } else { 9 + 4 * nth + world.rng.below(4) as usize };
        let to_host = world.cell.cables[cable].to_host;
        if !kind.suits(to_host, about.fec.is_some(), about.reports) {
            continue;
        }
        let cause = cause_of(world, kind);
        let planted = WARM_UP + between(&mut world.rng, 0.0, 3600.0);
        let began = kind.plant(world, cable, CAUSES[cause].0, planted);
        let has_cause = matches!(kind, Kind::Errors(times, _) if times >= 3.0);
        let trial = Trial {
            kind: index,
            generation,
            interval,
            to_host,
            cause: has_cause.then_some(cause),
            ..Trial::default()
        };
        faults.push(Watched { cable, planted, began, cause, trial });
    }
    faults
}

/// A cause by its share; one of both directions where the fault has both.
fn cause_of(world: &mut World, kind: Kind) -> usize {
    if matches!(kind, Kind::Errors(_, true)) {
        return 1;
    }
    let shares = CAUSES.iter().enumerate().map(|(nth, (_, _, share, _))| (nth, *share));
    share(&mut world.rng, shares).unwrap_or(0)
}

/// Adds what a sweep says of a cable with a fault.
fn observe(
    fault: &mut Watched,
    world: &mut World,
    now: f64,
    link: &LinkAssessment,
    alarms: [bool; Rule::ALL.len()],
) {
    let trial = &mut fault.trial;
    #[expect(clippy::cast_sign_loss, reason = "at least 0")]
    let since = (now - fault.began).max(0.0) as u32;
    for (found, is) in trial.others.iter_mut().zip(alarms) {
        if is && now >= fault.planted && found.is_none() {
            *found = Some(since);
        }
    }
    if now < fault.planted {
        return;
    }
    if link.verdict >= Verdict::Watch && trial.watch.is_none() {
        trial.watch = Some(since);
    }
    // A reading in the sweep in which three flaps are complete.
    if link.verdict == Verdict::Bad && trial.bad.is_none() {
        trial.bad = Some(since);
    }
    if trial.first_right.is_none() {
        let has_powers = !world.cell.cables[fault.cable].optics.unreported;
        trial.has_powers = has_powers && world.cell.generation.reports;
    }
    if trial.cause.is_none() || trial.second_right.is_some() {
        return;
    }
    // The technician comes when the cable is bad, and again once the link was measured again.
    let again = trial.first_right.is_some();
    let due = fault.planted + if again { VISIT + 4.0 * 3600.0 } else { 8.0 * 3600.0 };
    let is_due = link.verdict == Verdict::Bad && now >= due;
    let advice = link.repair.filter(|repair| is_due && *repair != Repair::None);
    let Some(advice) = advice else { return };
    let right = visit(world, fault.cable, CAUSES[fault.cause].0, advice, now + 1.0);
    if again {
        trial.second_right = Some(right);
    } else {
        (trial.first_right, trial.second_right) = (Some(right), right.then_some(true));
    }
}
