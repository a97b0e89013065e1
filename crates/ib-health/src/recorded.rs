//! The errors of links that an earlier run recorded. With them a restarted evaluator knows at once what it knew before;
//! without them a link at NDR is observed for 10 minutes until its bit error ratio is known.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use ib_fabric::topology::LinkId;
use ib_fabric::{PortIndex, Snapshot};
use ib_mad::rate::{Speed, Width};
use ib_mad::reading::Totals;
use ib_mad::{Counter, Reading};

use super::assessment::Assessment;
use super::bit_errors::{BerWindow, BerWindows, BitErrors, chance_limit};
use super::evaluator::LinkEvaluator;
use super::port::{Incoming, PortTracker, TRAINING};
use super::window::Tick;

/// What an earlier run recorded of the errors of a fabric's links.
#[derive(Clone, Debug, Default)]
pub struct RecordedErrors {
    /// When each sweep began, the earliest first.
    pub sweeps: Vec<SystemTime>,
    /// The links that were up at the last of them.
    pub links: HashMap<LinkId, LinkErrors>,
}

/// The errors of a link since it last changed.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkErrors {
    /// Since when it has been up between the same ports at the same rate, without a link down; or the time of the first
    /// sweep.
    pub since: SystemTime,
    /// The rate.
    pub rate: (Width, Speed),
    /// The errors that each end counted ([`lost_data`]), and when the sweep that read them began, the earliest first; the
    /// ends in the order of the link's id.
    pub ends: [Vec<(SystemTime, u64)>; 2],
}

impl RecordedErrors {
    /// The longest time before a restart of which errors are used.
    pub fn longest() -> Duration {
        BerWindow::Long.longest()
    }
}

/// Errors in a longer time between two runs may be a burst or not: the time between two points of the window of 12 min.
const MAX_BURST: Duration = Duration::from_secs(144);

/// Counters of lost data, and of link downs: what is compared with the values before a restart.
const COMPARED: [Counter; 3] =
    [Counter::SymbolErrors, Counter::FecUncorrectableBlocks, Counter::LinkDowned];

/// The totals of a port's [`COMPARED`] counters; `None` of those that are unknown.
type Compared = [Option<u64>; COMPARED.len()];

/// The errors that a port counted, from the increases of SymbolErrorCounter and of uncorrectable FEC blocks. With error
/// correction, lost data counts as symbols, as uncorrectable blocks or, mostly, as both.
pub fn lost_data(by: impl Fn(Counter) -> Option<u64>) -> Option<u64> {
    let lost = [Counter::SymbolErrors, Counter::FecUncorrectableBlocks];
    lost.into_iter().filter_map(by).max()
}

/// The totals with which ports begin, by port index.
pub(super) fn totals_before(ports: &[PortTracker]) -> Vec<Compared> {
    ports.iter().map(|port| COMPARED.map(|counter| port.totals.restored(counter))).collect()
}

/// Windows of a port without errors: those of most ports are the same.
#[derive(Default)]
struct ErrorFree(Option<(SystemTime, Incoming, BerWindows, BitErrors)>);

impl LinkEvaluator {
    /// After the first sweep: continues the windows of links that did not change since the last recorded one. The time
    /// between the two sweeps counts as one interval, with all errors that were counted in it.
    pub(super) fn resume(
        &mut self,
        recorded: &RecordedErrors,
        before: &[Compared],
        snapshot: &Snapshot,
        assessment: &mut Assessment,
    ) {
        let mut error_free = ErrorFree::default();
        for (link, _) in &self.links {
            let Some(id) = snapshot.fabric.link_id(link.0) else { continue };
            let Some(known) = recorded.links.get(&id) else { continue };
            let mut ports = [link.0, link.1];
            ports.sort_by_key(|port| snapshot.fabric.end(*port));
            let Some(errors) = self.errors_between(ports, known, before, snapshot) else {
                continue;
            };
            for ((port, past), gap) in ports.into_iter().zip(&known.ends).zip(errors) {
                let Some(gap) = gap else { continue };
                let tracker = &mut self.ports[port.0 as usize];
                let history =
                    PortErrors { sweeps: &recorded.sweeps, since: known.since, past, gap };
                if let Some(found) = tracker.resume(&history, snapshot, &mut error_free) {
                    assessment.ports[port.0 as usize].bit_errors = found;
                }
            }
        }
    }

    /// The errors that each end of a link counted since the last recorded sweep; of an end whose counters were not
    /// recorded they are unknown. `None` if the link may have changed.
    fn errors_between(
        &self,
        ports: [PortIndex; 2],
        known: &LinkErrors,
        before: &[Compared],
        snapshot: &Snapshot,
    ) -> Option<[Option<u64>; 2]> {
        let rate = ports.into_iter().find_map(|port| {
            let status = snapshot.status(port).filter(|status| status.link_up())?;
            status.width.zip(status.speed)
        });
        if rate != Some(known.rate) {
            return None;
        }
        let mut errors = [None; 2];
        for (port, errors) in ports.into_iter().zip(&mut errors) {
            let before = before[port.0 as usize];
            if before == [None; COMPARED.len()] {
                continue;
            }
            let status = self.ports[port.0 as usize].totals.status();
            let reading: &Reading<Totals> = snapshot.reading(port)?;
            let now = COMPARED.map(|counter| reading.get(counter));
            let [.., downed_before] = before;
            let [.., downed] = now;
            // A device that was reset has trained its links. A saturated counter does not show link downs.
            let is_same = downed.is_some() && downed == downed_before && status.resets == 0;
            if !is_same || status.stuck.contains(Counter::LinkDowned) {
                return None;
            }
            let by = |counter| {
                let index = COMPARED.iter().position(|it| *it == counter)?;
                now[index]?.checked_sub(before[index]?)
            };
            // Of a counter that the device did not have before, the increase is unknown.
            *errors = by(Counter::SymbolErrors).and_then(|_| lost_data(by));
        }
        Some(errors)
    }
}

/// The recorded errors of a port.
struct PortErrors<'a> {
    sweeps: &'a [SystemTime],
    since: SystemTime,
    past: &'a [(SystemTime, u64)],
    /// Those since the last recorded sweep.
    gap: u64,
}

impl PortTracker {
    /// Replaces the windows, which the first sweep began, by those of an earlier run.
    fn resume(
        &mut self,
        history: &PortErrors<'_>,
        snapshot: &Snapshot,
        error_free: &mut ErrorFree,
    ) -> Option<BitErrors> {
        let incoming = self.incoming()?;
        let is_error_free = history.past.is_empty() && history.gap == 0;
        let known = error_free
            .0
            .filter(|(since, of, ..)| is_error_free && *since == history.since && *of == incoming);
        let (windows, found) = match known {
            Some((.., windows, found)) => (windows, found),
            None => history.windows(incoming, snapshot)?,
        };
        if is_error_free {
            error_free.0 = Some((history.since, incoming, windows, found));
        }
        self.set_windows(windows, found)
    }
}

impl PortErrors<'_> {
    /// The windows as they would be without a restart. `None` if the time of day was set back since, and if more errors
    /// were counted between the two runs than a good link has, for so long that a burst cannot be told apart.
    fn windows(&self, incoming: Incoming, snapshot: &Snapshot) -> Option<(BerWindows, BitErrors)> {
        let now = snapshot.anchor.wall_of(snapshot.began);
        let missed = now.duration_since(*self.sweeps.last()?).ok()?;
        let expected = missed.as_secs_f32() * incoming.bits_per_second * incoming.limits.symbol;
        if missed > MAX_BURST && self.gap as f32 > chance_limit(expected) {
            return None;
        }
        let mut windows = BerWindows::default();
        let mut past = self.past.iter().peekable();
        // After a change its ends adapt to each other.
        let has_changed = self.sweeps.first().is_some_and(|first| *first < self.since);
        let since = if has_changed { self.since + TRAINING } else { self.since };
        for sweep in self.sweeps {
            let mut errors = 0;
            while let Some((_, by)) = past.next_if(|(at, _)| at <= sweep) {
                errors += by;
            }
            let age = now.duration_since(*sweep).ok()?;
            if *sweep >= since {
                windows.add(Tick::from(snapshot.began).before(age), errors, incoming);
            }
        }
        let at = Tick::from(snapshot.began);
        windows.keep_latest(at);
        let found = windows.add(at, self.gap, incoming);
        Some((windows, found))
    }
}

#[cfg(test)]
mod tests;
