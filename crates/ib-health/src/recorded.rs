//! The errors of links that an earlier run recorded. With them a restarted evaluator knows at once what it knew before;
//! without them a link at NDR is observed for 10 minutes until its bit error ratio is known.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use ib_fabric::topology::LinkId;
use ib_fabric::{PortIndex, PortMap, Snapshot};
use ib_mad::rate::{Speed, Width};
use ib_mad::reading::Raw;
use ib_mad::{Counter, Reading};

use super::assessment::Assessment;
use super::bit_errors::{BerWindows, BitErrors, LongWindow, chance_limit};
use super::incoming::Incoming;
use super::port::{PortTracker, TRAINING};
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
    /// The errors that each end counted ([`lost_data`](super::lost_data::lost_data)), and when the sweep that read them began, the earliest first; the
    /// ends in the order of the link's id.
    pub ends: [Vec<(SystemTime, u64)>; 2],
}

/// When links flapped in an earlier run, by link, since its cable was last changed. Not those that a node caused.
pub type RecordedFlaps = HashMap<LinkId, Vec<SystemTime>>;

impl RecordedErrors {
    /// The longest time before a restart of which errors are used.
    pub fn longest() -> Duration {
        Duration::from_secs(LongWindow::LONGEST.into())
    }
}

/// Errors in a longer time between two runs may be a burst or not: the time between two points of the window of 12 min.
const MAX_BURST: Duration = Duration::from_secs(144);

/// Counters of lost data, and of link downs: what is compared with the values before a restart.
const COMPARED: [Counter; 3] =
    [Counter::SymbolErrors, Counter::FecUncorrectableBlocks, Counter::LinkDowned];

/// The totals of a port's [`COMPARED`] counters before a restart, and in the first sweep after it; `None` of those that
/// are unknown.
#[derive(Default)]
pub(super) struct Compared {
    before: [Option<u64>; COMPARED.len()],
    now: [Option<u64>; COMPARED.len()],
}

impl Compared {
    pub fn set_now(&mut self, reading: &Reading<Raw>) {
        self.now = COMPARED.map(|counter| reading.get(counter));
    }

    /// The errors that were counted in between, if they are known, and whether all counters of them are.
    fn errors(&self) -> (Option<u64>, bool) {
        let [symbols, blocks, _] = [0, 1, 2].map(|it| self.now[it]?.checked_sub(self.before[it]?));
        let is_complete = self.before[1].is_none() || blocks.is_some();
        (symbols.map(|symbols| symbols.max(blocks.unwrap_or(0))), is_complete)
    }

    /// Whether a link may have gone down in between.
    fn has_link_down(&self) -> bool {
        self.now[2].is_none() || self.now[2] != self.before[2]
    }
}

/// The totals with which ports begin.
pub(super) fn before(ports: &PortMap<PortTracker>) -> PortMap<Compared> {
    let of_port = |port: &PortTracker| Compared {
        before: COMPARED.map(|counter| port.totals.restored(counter)),
        ..Compared::default()
    };
    ports.iter().map(of_port).collect()
}

/// Windows of ports without errors, which are the same for most ports: the key of each, and what was found.
#[derive(Default)]
struct ErrorFree(Vec<(SystemTime, Incoming, (BerWindows, BitErrors))>);

/// More keys than a fabric has rates: each link down makes another one.
const MOST_ERROR_FREE: usize = 16;

/// After the first sweep: continues the windows of links that did not change since the last recorded one. The time
/// between the two sweeps counts as one interval, with all errors that were counted in it.
pub(super) fn resume(
    recorded: &RecordedErrors,
    compared: &PortMap<Compared>,
    snapshot: &Snapshot,
    trackers: &mut PortMap<PortTracker>,
    assessment: &mut Assessment,
) {
    let mut error_free = ErrorFree::default();
    for link in snapshot.fabric.links() {
        let Some(id) = snapshot.fabric.plane_link_id(link.low) else { continue };
        let Some(known) = recorded.links.get(&id) else { continue };
        let mut ports = link.ports();
        ports.sort_by_key(|port| snapshot.fabric.port_key(*port));
        if !is_unchanged(ports, known, compared, snapshot, trackers) {
            continue;
        }
        for (port, past) in ports.into_iter().zip(&known.ends) {
            let gap = &compared[port];
            let history = PortErrors { sweeps: &recorded.sweeps, since: known.since, past, gap };
            if let Some(found) = trackers[port].resume(&history, snapshot, &mut error_free) {
                assessment.ports[port].bit_errors = found;
            }
        }
    }
}

/// Whether a link certainly did not go down since the last recorded sweep.
fn is_unchanged(
    ports: [PortIndex; 2],
    known: &LinkErrors,
    compared: &PortMap<Compared>,
    snapshot: &Snapshot,
    trackers: &PortMap<PortTracker>,
) -> bool {
    let rate = ports.into_iter().find_map(|port| {
        let status = snapshot.status(port).filter(|status| status.link_up())?;
        status.width.zip(status.speed)
    });
    let is_unchanged = |port: PortIndex| {
        let compared = &compared[port];
        let status = trackers[port].totals.status();
        // The counters of some HCAs cannot be read: then the other end decides.
        let was_read = compared.before.iter().any(Option::is_some);
        // A device that was reset has trained its links. A saturated counter does not show link downs.
        let is_certain = status.resets == 0 && !status.saturated_now.contains(Counter::LinkDowned);
        !was_read || is_certain && !compared.has_link_down()
    };
    rate == Some(known.rate) && ports.into_iter().all(is_unchanged)
}

/// The recorded errors of a port, and those since the last recorded sweep.
struct PortErrors<'a> {
    sweeps: &'a [SystemTime],
    since: SystemTime,
    past: &'a [(SystemTime, u64)],
    gap: &'a Compared,
}

impl PortTracker {
    /// Replaces the windows, which the first sweep began, by those of an earlier run.
    fn resume(
        &mut self,
        history: &PortErrors<'_>,
        snapshot: &Snapshot,
        error_free: &mut ErrorFree,
    ) -> Option<BitErrors> {
        let incoming = self.incoming?;
        let is_error_free = history.past.is_empty() && history.gap.errors() == (Some(0), true);
        let is_known = |(since, of, _): &&(SystemTime, Incoming, _)| {
            is_error_free && *since == history.since && *of == incoming
        };
        let (windows, found) = if let Some((.., known)) = error_free.0.iter().find(is_known) {
            *known
        } else {
            let new = history.windows(incoming, snapshot)?;
            if is_error_free && error_free.0.len() < MOST_ERROR_FREE {
                error_free.0.push((history.since, incoming, new));
            }
            new
        };
        self.set_windows(windows, found)
    }
}

impl PortErrors<'_> {
    /// The windows as they would be without a restart; `None` if the errors since the last recorded sweep are not known
    /// well enough, or if the time of day was set back.
    fn windows(&self, incoming: Incoming, snapshot: &Snapshot) -> Option<(BerWindows, BitErrors)> {
        let now = snapshot.anchor.wall_of(snapshot.began);
        let (errors, is_complete) = self.gap.errors();
        let (last, errors) = (*self.sweeps.last()?, errors?);
        let is_acceptable = |missed: Duration, errors: u64| {
            let expected = missed.as_secs_f32() * incoming.bits_per_second * incoming.limits.symbol;
            missed <= MAX_BURST || errors as f32 <= chance_limit(expected)
        };
        let missed = now.duration_since(last).ok()?;
        if !is_acceptable(missed, errors) || (missed > MAX_BURST && !is_complete) {
            return None;
        }
        let mut windows = BerWindows::default();
        let mut past = self.past.iter().peekable();
        // After a change its ends adapt to each other.
        let has_changed = self.sweeps.first().is_some_and(|first| *first < self.since);
        let since = if has_changed { self.since + TRAINING } else { self.since };
        let mut before = *self.sweeps.first()?;
        for sweep in self.sweeps {
            let mut errors: u64 = 0;
            while let Some((_, by)) = past.next_if(|(at, _)| at <= sweep) {
                errors = errors.saturating_add(*by);
            }
            if !is_acceptable(sweep.duration_since(before).ok()?, errors) {
                // An earlier restart, after which the link was observed again.
                windows = BerWindows::default();
            }
            before = *sweep;
            let age = now.duration_since(*sweep).ok()?;
            if *sweep >= since {
                windows.add(Tick::from(snapshot.began).before(age), errors, incoming, 1.0);
            }
        }
        let at = Tick::from(snapshot.began);
        windows.keep_latest(at);
        let found = windows.add(at, errors, incoming, 1.0);
        Some((windows, found))
    }
}

#[cfg(test)]
mod tests;
