//! Published rules of other tools, applied to the same readings.
//!
//! Each gets the counters as devices show them. They are judged leniently: an alarm is false only if neither `bad` nor
//! `watch` would be right.

use ib_fabric::Snapshot;
use ib_mad::Counter;
use ib_mad::rate::Speed;
use ib_mad::reading::Raw;

use crate::cell::Cell;

display_text::labeled_enum! {
    /// A rule of another tool.
    #[derive(PartialOrd, Ord)]
    pub enum Rule {
        AnySymbolError, "rate(symbol_errors) > 0", "Any symbol error at either end in 5 minutes: common in example rules for exporters.";
        HourlyLimit, "120 symbol errors an hour", "More than 120 symbol errors in an hour at either end, at any speed.";
        NvSentinel, "NVSentinel", "At the host's end: LinkDowned, LocalLinkIntegrityErrors or ExcessiveBufferOverrunErrors grew, more than 120 symbol errors in an hour, or the port is down. These are its default fatal conditions.";
        Gpud, "gpud", "At the host's end: down for 4 minutes, or three link downs of at least 25 s in 12 hours, each followed by Active. These are its defaults.";
        UfmPdr, "UFM PDR", "Evaluated every 5 minutes: LinkDowned of both ends grew, or more than 1e-14 of the bits were wrong in 12 minutes, or 1e-15 in 125 minutes. The NDR procedure from the README of NVIDIA's PDR plugin for UFM, without its temperature check; on NDR cables only.";
        UfmPdrDrops, "UFM PDR with drops", "The same, or more than 1e-12 of the packets received in 5 minutes had errors.";
    }
}

/// An hour in parts of 5 minutes.
const PART: f64 = 300.0;
const HOUR: usize = 12;

/// UFM's plugin reads every 5 minutes: its windows are 3 and 26 readings.
const SHORT: usize = 3;
const LONG: usize = 26;

/// gpud: a port is down for good, a loss counts, so many in a time.
const DROP: f64 = 240.0;
const LOSS: f64 = 25.0;
const RETURNS: (usize, f64) = (3, 12.0 * 3600.0);

const WATCHED: [Counter; 7] = [
    Counter::SymbolErrors,
    Counter::LinkDowned,
    Counter::RcvErrors,
    Counter::RcvPkts,
    Counter::LocalLinkIntegrityErrors,
    Counter::ExcessiveBufferOverrunErrors,
    Counter::RcvRemotePhysicalErrors,
];

/// What is kept of a port.
#[derive(Clone, Debug, Default)]
struct PortGrowth {
    last: [Option<u64>; WATCHED.len()],
    /// Growth by part of an hour, or longer: symbol errors, the latest first.
    symbols: [u64; LONG],
    /// The growth of all counters in the current part and the one before.
    current: [u64; WATCHED.len()],
    previous: [u64; WATCHED.len()],
    last_symbol: Option<f64>,
}

/// The rules' memory of a cell.
#[derive(Clone, Debug)]
pub struct BaselineRules {
    ports: Vec<PortGrowth>,
    part: u64,
    /// Since when a cable is down, and when it was Active again.
    down: Vec<Option<f64>>,
    returns: Vec<Vec<f64>>,
    /// What UFM's plugin found at its latest reading.
    ufm: Vec<[bool; 2]>,
}

impl Rule {
    /// Whether it is published for NDR only.
    pub fn is_for_ndr(self) -> bool {
        matches!(self, Rule::UfmPdr | Rule::UfmPdrDrops)
    }
}

impl BaselineRules {
    /// For a cell.
    pub fn new(cell: &Cell) -> BaselineRules {
        BaselineRules {
            ports: vec![PortGrowth::default(); cell.ports.len()],
            part: 0,
            down: vec![None; cell.cables.len()],
            returns: vec![Vec::new(); cell.cables.len()],
            ufm: vec![[false; 2]; cell.cables.len()],
        }
    }

    /// Adds the counters of a sweep.
    pub fn record(&mut self, snapshot: &Snapshot<Raw>, now: f64) {
        #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
        let part = (now / PART) as u64;
        let is_new = part != std::mem::replace(&mut self.part, part);
        for (kept, reading) in self.ports.iter_mut().zip(&snapshot.readings) {
            if is_new {
                kept.symbols.rotate_right(1);
                kept.symbols[0] = 0;
                kept.previous = std::mem::take(&mut kept.current);
            }
            let Some(reading) = reading else { continue };
            for (nth, counter) in WATCHED.into_iter().enumerate() {
                let Some(value) = reading.get(counter) else { continue };
                // A counter that fell was cleared, as `rate()` takes it.
                let by = kept.last[nth].map_or(0, |last| value.checked_sub(last).unwrap_or(value));
                kept.last[nth] = Some(value);
                if by > 0 {
                    kept.current[nth] = kept.current[nth].saturating_add(by);
                    if nth == 0 {
                        kept.symbols[0] = kept.symbols[0].saturating_add(by);
                        kept.last_symbol = Some(now);
                    }
                }
            }
        }
    }

    /// Which rules alert on a cable now. Every rule is asked once per sweep, after [`record`](Self::record).
    pub fn alarms(&mut self, cell: &Cell, cable: usize, now: f64) -> [bool; Rule::ALL.len()] {
        let known = &cell.cables[cable];
        let ends = known.ends.map(|end| &self.ports[end]);
        let any = ends.iter().any(|kept| kept.last_symbol.is_some_and(|at| now - at < PART));
        let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, it| sum.saturating_add(*it));
        let hourly = |kept: &PortGrowth| sum(&kept.symbols[..HOUR]) > 120;
        let by_hour = ends.iter().any(|kept| hourly(kept));
        let grew = |kept: &PortGrowth, nth: usize| kept.current[nth] > 0;
        let host_on = known.to_host && cell.has_both_nodes(cable);
        let is_down = !known.up || now < known.active_at;
        let is_fatal = [1, 4, 5].into_iter().any(|nth| grew(ends[1], nth));
        let sentinel = host_on && (is_down || is_fatal || hourly(ends[1]));
        // UFM compares at its own readings.
        let bits = cell.bytes_per_second(cable) * 8.0;
        if now % PART < 15.0 && cell.generation.speed == Speed::Ndr {
            let over = |kept: &PortGrowth, parts: usize, ratio: f64| {
                let errors = sum(&kept.symbols[1..=parts.min(LONG - 1)]);
                let seconds = if parts == SHORT { 720.0 } else { 7500.0 };
                errors as f64 > bits * seconds * ratio
            };
            let lost = ends.iter().all(|kept| kept.previous[1] > 0);
            let errors =
                ends.iter().any(|kept| over(kept, SHORT, 1e-14) || over(kept, LONG, 1e-15));
            let drops = ends.iter().any(|kept| {
                let packets = kept.previous[3];
                let bad = kept.previous[2].saturating_add(kept.previous[6]);
                packets > 0 && bad as f64 / packets as f64 > 1e-12
            });
            self.ufm[cable] = [lost || errors, lost || errors || drops];
        }
        let gpud = self.gpud(cable, host_on, is_down, now);
        let [pdr, drops] = self.ufm[cable];
        [any, by_hour, sentinel, gpud, pdr, drops]
    }

    fn gpud(&mut self, cable: usize, host_on: bool, is_down: bool, now: f64) -> bool {
        if !host_on {
            // It runs on the host.
            self.down[cable] = None;
            return false;
        }
        match (self.down[cable], is_down) {
            (None, true) => self.down[cable] = Some(now),
            (Some(since), false) => {
                if now - since >= LOSS {
                    self.returns[cable].push(now);
                }
                self.down[cable] = None;
            }
            _ => {}
        }
        self.returns[cable].retain(|at| now - at < RETURNS.1);
        let is_dropped = self.down[cable].is_some_and(|since| now - since >= DROP);
        is_dropped || self.returns[cable].len() >= RETURNS.0
    }
}
