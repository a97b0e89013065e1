//! The evidence for a verdict: a sentence with numbers for each reason.

use std::time::Duration;

use ib_fabric::{PortIndex, Snapshot};
use ib_mad::Moment;
use ib_mad::counter::{Counter, TABLE};
use ib_mad::label;
use ib_mad::node::PortRole;
use ib_mad::port_state::{physical, state};

use super::bit_errors::{BitErrorLevel, BitErrors, PreFecBer};
use super::congestion::{Role, RootCause};
use super::link::DECISIVE;
use super::outage::Downtime;
use super::peers::{LinkRate, RateReference};
use super::verdict::Reason;
use super::{Assessment, LinkAssessment, PortAssessment};

/// The evidence for a reason; where there are no numbers, what the reason means.
pub fn describe(
    reason: Reason,
    link: &LinkAssessment,
    assessment: &Assessment,
    snapshot: &Snapshot,
) -> String {
    let evidence = Evidence { link, assessment, snapshot };
    let text = match reason {
        Reason::BitErrors => evidence.bit_errors(),
        Reason::Flapping => evidence.flapping(),
        Reason::NodeFlapping => evidence.losses(),
        Reason::Recoveries => {
            Some(format!("retrained by itself {}", times(link.outages.recoveries)))
        }
        Reason::Width | Reason::Speed | Reason::BelowCapability => evidence.slower(),
        Reason::Down => evidence.down(),
        Reason::ReceiveErrors => evidence.broken(),
        Reason::LinkIntegrity => evidence.integrity(),
        Reason::PreFec => evidence.pre_fec(),
        Reason::UpstreamErrors => Some(evidence.marked()),
        Reason::Congested => evidence.waits(false),
        Reason::Victim => evidence.waits(true),
        Reason::CounterSaturated => evidence.saturated(),
        Reason::ImpossibleValue => evidence.impossible(),
        Reason::InsufficientData => evidence.too_short(),
        Reason::Unresponsive => evidence.unanswered(),
        Reason::Disabled => evidence.disabled(),
        Reason::Internal => evidence.internal(),
        // The details are in the site's own file.
        Reason::Maintenance => None,
    };
    text.unwrap_or_else(|| meaning(reason))
}

/// A port by its node's name and its number.
pub fn port_label(snapshot: &Snapshot, port: PortIndex) -> String {
    let fabric = &snapshot.fabric;
    label::port(&fabric.node_of(port).name, fabric.port(port).number)
}

/// The meaning of a reason, to be used within a sentence.
fn meaning(reason: Reason) -> String {
    let mut chars = reason.help().trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// `once`, `twice`, `3 times`.
pub fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

/// A number in groups of three digits: `4,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration: `0.5 s`, `90 s`, `1h 2m`.
fn duration(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
    }
}

/// A downtime: `2 to 15 s`, `at most 15 s`.
pub fn downtime(down: Downtime) -> String {
    // To the nearest second, so that a bound reads the same from a metric with three decimals.
    let rounded = |time: Duration| match time.as_secs() {
        0 => time,
        _ => Duration::from_secs(time.as_secs() + u64::from(time.subsec_millis() >= 500)),
    };
    let (least, most) = (rounded(down.least), duration(rounded(down.most)));
    // A lower bound that rounds to zero is none.
    let least = (least >= Duration::from_millis(50)).then(|| duration(least));
    match least {
        None => format!("at most {most}"),
        Some(least) if least == most => most,
        Some(least) => match least.strip_suffix(" s").filter(|_| most.ends_with(" s")) {
            Some(number) => format!("{number} to {most}"),
            None => format!("{least} to {most}"),
        },
    }
}

struct Evidence<'a> {
    link: &'a LinkAssessment,
    assessment: &'a Assessment,
    snapshot: &'a Snapshot,
}

impl<'a> Evidence<'a> {
    /// Its ends; a loopback plug has one.
    fn ends(&self) -> impl Iterator<Item = PortIndex> + use<> {
        let (near, far) = (self.link.link.0, self.link.link.1);
        [Some(near), Some(far).filter(|far| *far != near)].into_iter().flatten()
    }

    fn name(&self, port: PortIndex) -> String {
        port_label(self.snapshot, port)
    }

    fn port(&self, port: PortIndex) -> Option<&'a PortAssessment> {
        self.assessment.ports.get(port.0 as usize)
    }

    fn count(&self, port: PortIndex, counter: Counter) -> u64 {
        self.snapshot.reading(port).and_then(|reading| reading.get(counter)).unwrap_or(0)
    }

    fn each(&self, describe: impl Fn(PortIndex) -> Option<String>) -> Option<String> {
        let texts: Vec<String> = self.ends().filter_map(describe).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    fn bit_errors(&self) -> Option<String> {
        self.each(|port| {
            let errors = &self.port(port)?.bit_errors;
            let is_raised = matches!(errors.level, BitErrorLevel::Raised | BitErrorLevel::Over);
            let window = errors.decided_by.filter(|_| is_raised)?;
            let (measured, name, limit) =
                (errors.windows[window as usize], self.name(port), errors.limit);
            let counted = format!("{} errors in {:.0} s", measured.errors, measured.seconds);
            let Some(ratio) = errors.ratio(window) else {
                return Some(format!("{counted} into {name}, limit {limit:e}"));
            };
            let over = window.label();
            Some(format!(
                "bit error ratio {ratio:.1e} into {name} over {over} ({counted}), limit {limit:e}"
            ))
        })
    }

    fn flapping(&self) -> Option<String> {
        let outages = &self.link.outages;
        let often = (outages.flaps > 0).then(|| format!("went down {}", times(outages.flaps)))?;
        let known = !outages.down.most.is_zero();
        Some(if known { format!("{often}, for {} in all", downtime(outages.down)) } else { often })
    }

    fn losses(&self) -> Option<String> {
        let downed = |port| self.count(port, Counter::LinkDowned);
        let text =
            self.each(|port| Some(format!("{} counted {} losses", self.name(port), downed(port))));
        self.ends().any(|port| downed(port) > 0).then_some(text)?
    }

    /// Its rate, and the higher one that it is compared with.
    fn slower(&self) -> Option<String> {
        let statuses = || self.ends().filter_map(|port| self.snapshot.status(port));
        let width = statuses().find_map(|status| status.width)?;
        let speed = statuses().find_map(|status| status.speed)?;
        let rate = |(width, speed): LinkRate| format!("{} {}", width.label(), speed.label());
        let reference = match self.link.reference? {
            RateReference::Past(more) => format!("it ran at {} before", rate(more)),
            RateReference::Peers(more) => {
                format!("links between such devices run at {}", rate(more))
            }
            RateReference::Capability(more) => format!("both ends can do {}", rate(more)),
        };
        Some(format!("runs at {}, and {reference}", rate((width, speed))))
    }

    fn down(&self) -> Option<String> {
        let last = self.link.outages.last_change;
        if last > Some(self.snapshot.began) {
            return Some(
                "no link: one of its ports reported the loss after the sweep read its state".into(),
            );
        }
        let states = self.each(|port| {
            let status = self.snapshot.status(port)?;
            Some(format!("{} is {}", self.name(port), state::name(status.state)))
        })?;
        let since = last.map(|last| format!(" for {}", duration(self.snapshot.ended.since(last))));
        Some(format!("no link{}: {states}", since.unwrap_or_default()))
    }

    fn broken(&self) -> Option<String> {
        self.each(|port| {
            let marked = self.count(port, Counter::RcvRemotePhysicalErrors);
            let reading = self.snapshot.reading(port)?;
            // Errors of other kinds, such as buffer overruns, are not broken packets: the total is used only
            // where the 16 bits of the local physical errors are absent or full.
            let local = reading.get(Counter::RcvLocalPhysicalErrors);
            let own = local
                .filter(|_| !self.is_full(port, Counter::RcvLocalPhysicalErrors))
                .unwrap_or_else(|| self.count(port, Counter::RcvErrors).saturating_sub(marked));
            (own > 0).then(|| format!("{own} packets came broken into {}", self.name(port)))
        })
    }

    fn integrity(&self) -> Option<String> {
        self.each(|port| {
            let count = self.count(port, Counter::LocalLinkIntegrityErrors);
            (count > 0).then(|| format!("{count} link integrity errors at {}", self.name(port)))
        })
    }

    fn pre_fec(&self) -> Option<String> {
        self.each(|port| {
            let PreFecBer { ratio, limit, at, stale } = self.port(port)?.bit_errors.pre_fec?;
            let name = self.name(port);
            let old = if stale {
                format!(", measured {} ago; the counter has been full since then", self.ago(at))
            } else {
                String::new()
            };
            (ratio > limit).then(|| {
                format!("{ratio:.1e} of the bits into {name} are corrected, limit {limit:e}{old}")
            })
        })
    }

    fn ago(&self, at: Moment) -> String {
        duration(Duration::from_secs(self.snapshot.ended.since(at).as_secs()))
    }

    fn marked(&self) -> String {
        let counted = self.each(|port| {
            let marked = self.count(port, Counter::RcvRemotePhysicalErrors);
            (marked > 0).then(|| format!("{marked} into {}", self.name(port)))
        });
        let from = self.link.upstream.map_or("further upstream".into(), |upstream| {
            format!("the link into {}", self.name(upstream))
        });
        let counted = counted.map_or(String::new(), |counted| format!(" ({counted})"));
        format!("marked packets come from {from}{counted}")
    }

    /// The ends that wait: roots of a congestion, or its victims.
    fn waits(&self, victims: bool) -> Option<String> {
        self.each(|port| {
            let found = self.port(port)?;
            let share = found.wait.map_or(0.0, |wait| wait.share * 100.0);
            let dropped = self.dropped(port);
            let waits = format!("{} waits {share:.0} % of the time{dropped}", self.name(port));
            match found.role? {
                Role::Root if !victims => Some(match found.cause {
                    Some(RootCause::FullLink) => format!("{waits}, and its link is full"),
                    _ => format!("{waits} for its receiver"),
                }),
                Role::Victim { of } if victims => {
                    Some(format!("{waits} because {} does", self.name(of)))
                }
                _ => None,
            }
        })
    }

    /// Packets that were discarded because they waited too long, by where they waited, if that is known.
    /// Those discarded while the port had no link are not included.
    fn dropped(&self, port: PortIndex) -> String {
        let why = [
            (Counter::XmitHoqLimitDiscards, "at the head of their queue"),
            (Counter::XmitLifetimeLimitDiscards, "in the switch"),
        ];
        let why = why.map(|(counter, at)| (self.count(port, counter), at));
        let inactive = Counter::XmitInactiveDiscards;
        let all = if self.is_full(port, inactive) {
            // It counts no further: how many of the rest belong to it is not known.
            why.iter().map(|(count, _)| *count).fold(0, u64::saturating_add)
        } else {
            let all = self.count(port, Counter::XmitDiscards);
            all.saturating_sub(self.count(port, inactive))
        };
        let why: Vec<String> = why
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, at)| format!("{count} {at}"))
            .collect();
        match (all, why.is_empty()) {
            (0, _) => String::new(),
            (_, true) => format!(", dropped {all} packets so far"),
            (_, false) => format!(", dropped {all} packets so far ({})", why.join(", ")),
        }
    }

    fn is_full(&self, port: PortIndex, counter: Counter) -> bool {
        self.port(port).is_some_and(|found| found.counters.is_stuck(counter))
    }

    fn saturated(&self) -> Option<String> {
        self.each(|port| {
            let counters = self.port(port)?.counters;
            let full = TABLE.iter().filter(|row| counters.is_stuck(row.counter));
            let full: Vec<&str> = full.map(|row| row.metric).collect();
            let last = match self.port(port)?.bit_errors.pre_fec.filter(|known| known.stale) {
                Some(PreFecBer { ratio, limit, at, .. }) => {
                    let ago = self.ago(at);
                    format!(" ({ratio:.1e} of the bits were corrected {ago} ago, limit {limit:e})")
                }
                // After a restart the ratio is not known.
                None if counters.is_stuck(Counter::FecCorrectedSymbols) => {
                    " (no ratio of corrected bits is known)".into()
                }
                None => String::new(),
            };
            let name = self.name(port);
            (!full.is_empty()).then(|| format!("{} is full at {name}{last}", full.join(", ")))
        })
    }

    fn impossible(&self) -> Option<String> {
        self.each(|port| {
            let counters = self.port(port)?.counters;
            let rows = DECISIVE.iter().filter(|&&counter| counters.is_impossible(counter));
            let names: Vec<&str> = rows.map(|counter| counter.row().metric).collect();
            let shows = if names.len() > 1 { "show" } else { "shows" };
            let (names, name) = (names.join(", "), self.name(port));
            (!names.is_empty()).then(|| format!("{names} at {name} {shows} an impossible value"))
        })
    }

    /// How long errors were counted so far, and how long it takes until 2.5 are expected at the limit.
    fn too_short(&self) -> Option<String> {
        let directions = self.ends().filter_map(|port| Some(&self.port(port)?.bit_errors));
        let unknown = directions.filter(|errors| errors.level == BitErrorLevel::Unknown);
        let span = |errors: &BitErrors| errors.windows.map(|it| it.span()).into_iter().max();
        let least = unknown.min_by_key(|errors| span(errors))?;
        let watched = span(least).filter(|span| !span.is_zero()).map(duration)?;
        let takes = 2.5 / (least.limit * least.bits_per_second);
        Some(match Duration::try_from_secs_f32(takes) {
            Ok(takes) => format!("watched for {watched}; to tell takes {}", duration(takes)),
            Err(_) => format!("watched for {watched}"),
        })
    }

    fn unanswered(&self) -> Option<String> {
        self.each(|port| {
            let node = self.snapshot.fabric.node_of(port);
            let is_up = self.snapshot.is_up(self.snapshot.fabric.port(port).node);
            let why = if node.present() { "does not answer" } else { "is gone" };
            (!is_up).then(|| format!("{} {why}", node.name))
        })
    }

    fn disabled(&self) -> Option<String> {
        self.each(|port| {
            let off = self.snapshot.status(port)?.physical_state == physical::DISABLED;
            off.then(|| format!("{} is switched off", self.name(port)))
        })
    }

    fn internal(&self) -> Option<String> {
        self.each(|port| {
            match self.snapshot.fabric.port(port).role? {
                PortRole::Fnm => Some("connects ASICs of one switch (FNM)"),
                PortRole::Router => Some("leads to the router in the switch"),
                PortRole::Cable | PortRole::Other => None,
            }
            .map(|role| format!("{} {role}", self.name(port)))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
