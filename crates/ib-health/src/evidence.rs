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

/// The period of counts that begin at zero when the exporter starts.
const SINCE_START: &str = "since the exporter started";

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
        Reason::NodeFlapping => evidence.link_downs(),
        Reason::Recoveries => Some(evidence.recoveries()),
        Reason::Width | Reason::Speed | Reason::BelowCapability => evidence.slower(),
        Reason::Down => evidence.down(),
        Reason::ReceiveErrors => evidence.corrupt_packets(),
        Reason::LinkIntegrity => evidence.integrity(),
        Reason::PreFec => evidence.pre_fec(),
        Reason::UpstreamErrors => Some(evidence.marked_bad()),
        Reason::Congested => evidence.waits(false),
        Reason::Victim => evidence.waits(true),
        Reason::CounterSaturated => evidence.saturated(),
        Reason::ImpossibleValue => evidence.impossible(),
        Reason::InsufficientData => evidence.insufficient_data(),
        Reason::Unresponsive => evidence.unresponsive(),
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

/// A number with a noun: `1 packet`, `2,000 packets`.
fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
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

/// A duration: `0.5s`, `90s`, `1h 2m`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1}s", time.as_secs_f64()),
        seconds @ 1..120 => format!("{seconds}s"),
        seconds => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
    }
}

/// How often a link went down, and for how long if that is known: `went down 3 times, 44s in total`.
pub fn link_downs(count: u32, down: Downtime) -> String {
    let text = format!("went down {}", times(count));
    match count {
        _ if down.most.is_zero() => text,
        1 => format!("{text} for {}", downtime(down)),
        _ => format!("{text}, {} in total", downtime(down)),
    }
}

/// A downtime: `2s to 15s`, `at most 15s`.
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
        Some(least) => format!("{least} to {most}"),
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
            let time = duration(measured.span());
            let counted = format!("{} in {time}", counted(measured.errors.into(), "symbol error"));
            Some(match errors.ratio(window) {
                Some(ratio) => {
                    format!("{name} receives symbol BER {ratio:.1e} (limit {limit:e}): {counted}")
                }
                None => format!("{name} receives {counted} (limit: symbol BER {limit:e})"),
            })
        })
    }

    fn flapping(&self) -> Option<String> {
        let outages = &self.link.outages;
        let text = || format!("{} {SINCE_START}", link_downs(outages.flaps, outages.down));
        (outages.flaps > 0).then(text)
    }

    fn link_downs(&self) -> Option<String> {
        let downed = |port| self.count(port, Counter::LinkDowned);
        let text = self.each(|port| Some(format!("{} counted {}", self.name(port), downed(port))));
        let text = text.filter(|_| self.ends().any(|port| downed(port) > 0))?;
        Some(format!("LinkDowned: {text}"))
    }

    fn recoveries(&self) -> String {
        let times = times(self.link.outages.recoveries);
        format!("LinkErrorRecovery: retrained {times} without a link down {SINCE_START}")
    }

    /// Its rate, and the higher one that it is compared with.
    fn slower(&self) -> Option<String> {
        let statuses = || self.ends().filter_map(|port| self.snapshot.status(port));
        let width = statuses().find_map(|status| status.width)?;
        let speed = statuses().find_map(|status| status.speed)?;
        let rate = |(width, speed): LinkRate| format!("{} {}", width.label(), speed.label());
        let reference = match self.link.reference? {
            RateReference::Past(more) => format!("ran at {} before", rate(more)),
            RateReference::Peers(more) => format!("its peers run at {}", rate(more)),
            RateReference::Capability(more) => {
                format!("both ends support and enable {}", rate(more))
            }
        };
        Some(format!("runs at {}; {reference}", rate((width, speed))))
    }

    fn down(&self) -> Option<String> {
        let last = self.link.outages.last_change;
        if last > Some(self.snapshot.began) {
            return Some("link down: reported by a port after the sweep read its state".into());
        }
        let known = |port| Some((port, self.snapshot.status(port)?.state));
        let states: Vec<_> = self.ends().filter_map(known).collect();
        let is_active = |(_, it): &(PortIndex, u8)| *it == state::ACTIVE;
        if states.iter().all(is_active) {
            return None;
        }
        let texts =
            states.iter().map(|(port, it)| format!("{} {}", self.name(*port), state::name(*it)));
        let texts = texts.collect::<Vec<_>>().join(", ");
        // The link went down or came up between the readings of its ends.
        let is_mixed = states.iter().any(is_active);
        let note = if is_mixed { " (ends read at different times)" } else { "" };
        let since = last.map(|last| format!(" for {}", duration(self.snapshot.ended.since(last))));
        Some(format!("not Active{}: {texts}{note}", since.unwrap_or_default()))
    }

    fn corrupt_packets(&self) -> Option<String> {
        let corrupt = self.each(|port| {
            let marked = self.count(port, Counter::RcvRemotePhysicalErrors);
            let reading = self.snapshot.reading(port)?;
            // Errors of other kinds, such as buffer overruns, are not corrupt packets: the total is used only
            // where the 16 bits of the local physical errors are absent or saturated.
            let local = reading.get(Counter::RcvLocalPhysicalErrors);
            let own = local
                .filter(|_| !self.is_saturated(port, Counter::RcvLocalPhysicalErrors))
                .unwrap_or_else(|| self.count(port, Counter::RcvErrors).saturating_sub(marked));
            (own > 0)
                .then(|| format!("{} received {}", self.name(port), counted(own, "corrupt packet")))
        });
        corrupt.or_else(|| self.receive_errors())
    }

    /// Receive errors of any kind that were not marked bad upstream.
    fn receive_errors(&self) -> Option<String> {
        self.each(|port| {
            let marked = self.count(port, Counter::RcvRemotePhysicalErrors);
            let own = self.count(port, Counter::RcvErrors).saturating_sub(marked);
            (own > 0)
                .then(|| format!("{} counted {}", self.name(port), counted(own, "receive error")))
        })
    }

    fn integrity(&self) -> Option<String> {
        self.each(|port| {
            let count = self.count(port, Counter::LocalLinkIntegrityErrors);
            let errors = || counted(count, "local link integrity error");
            (count > 0).then(|| format!("{} counted {}", self.name(port), errors()))
        })
    }

    fn pre_fec(&self) -> Option<String> {
        self.each(|port| {
            let PreFecBer { ratio, limit, at, stale } = self.port(port)?.bit_errors.pre_fec?;
            let name = self.name(port);
            let when = if stale {
                let ago = self.ago(at);
                format!(", measured {ago} ago; the counter has been saturated since then")
            } else {
                String::new()
            };
            (ratio > limit)
                .then(|| format!("{name} receives pre-FEC BER {ratio:.1e} (limit {limit:e}){when}"))
        })
    }

    fn ago(&self, at: Moment) -> String {
        duration(Duration::from_secs(self.snapshot.ended.since(at).as_secs()))
    }

    fn marked_bad(&self) -> String {
        let received = self.each(|port| {
            let marked = self.count(port, Counter::RcvRemotePhysicalErrors);
            (marked > 0)
                .then(|| format!("{} received {}", self.name(port), counted(marked, "packet")))
        });
        let origin = self.link.upstream.map_or("on a link upstream".into(), |upstream| {
            format!("on the link into {}", self.name(upstream))
        });
        match received {
            Some(received) => format!("{received} marked bad, corrupted {origin}"),
            None => format!("packets marked bad, corrupted {origin}"),
        }
    }

    /// The ends that wait: roots of a congestion, or its victims.
    fn waits(&self, victims: bool) -> Option<String> {
        self.each(|port| {
            let found = self.port(port)?;
            let share = found.wait.map_or(0.0, |wait| wait.share * 100.0);
            let cause = match found.role? {
                Role::Root if !victims => match found.cause {
                    Some(RootCause::FullLink) => "its link is fully utilized".to_owned(),
                    Some(RootCause::SlowReceiver) => "its receiver is slow".to_owned(),
                    Some(RootCause::Unknown) | None => "cause unknown".to_owned(),
                },
                Role::Victim { of } if victims => format!("{} is congested", self.name(of)),
                _ => return None,
            };
            let (name, discards) = (self.name(port), self.discards(port));
            Some(format!("{name} waits {share:.0}% of the time: {cause}{discards}"))
        })
    }

    /// Packets that were discarded because they waited too long, by the limit that they exceeded, if that is
    /// known. Those discarded while the port had no link are not included.
    fn discards(&self, port: PortIndex) -> String {
        let by_limit = [
            (Counter::XmitHoqLimitDiscards, "HOQ"),
            (Counter::XmitLifetimeLimitDiscards, "switch lifetime"),
        ];
        let by_limit = by_limit.map(|(counter, limit)| (self.count(port, counter), limit));
        let inactive = Counter::XmitInactiveDiscards;
        let all = if self.is_saturated(port, inactive) {
            // It has stopped: how many of the rest belong to it is not known.
            by_limit.iter().map(|(count, _)| *count).fold(0, u64::saturating_add)
        } else {
            let all = self.count(port, Counter::XmitDiscards);
            all.saturating_sub(self.count(port, inactive))
        };
        let by_limit: Vec<String> = by_limit
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, limit)| format!("{} by the {limit} limit", grouped(count)))
            .collect();
        let packets = counted(all, "packet");
        match (all, by_limit.is_empty()) {
            (0, _) => String::new(),
            (_, true) => format!("; discarded {packets}"),
            (_, false) => format!("; discarded {packets} ({})", by_limit.join(", ")),
        }
    }

    fn is_saturated(&self, port: PortIndex, counter: Counter) -> bool {
        self.port(port).is_some_and(|found| found.counters.is_stuck(counter))
    }

    fn saturated(&self) -> Option<String> {
        self.each(|port| {
            let counters = self.port(port)?.counters;
            let saturated = TABLE.iter().filter(|row| counters.is_stuck(row.counter));
            let names: Vec<&str> = saturated.map(|row| row.metric).collect();
            let last = match self.port(port)?.bit_errors.pre_fec.filter(|known| known.stale) {
                Some(PreFecBer { ratio, limit, at, .. }) => {
                    format!(" (pre-FEC BER {ratio:.1e} {} ago, limit {limit:e})", self.ago(at))
                }
                // After a restart the ratio is not known.
                None if counters.is_stuck(Counter::FecCorrectedSymbols) => {
                    " (pre-FEC BER unknown)".into()
                }
                None => String::new(),
            };
            let is = if names.len() > 1 { "are" } else { "is" };
            let (counters, name) = (names.join(", "), self.name(port));
            (!names.is_empty()).then(|| format!("{counters} at {name} {is} saturated{last}"))
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
    fn insufficient_data(&self) -> Option<String> {
        let directions = self.ends().filter_map(|port| Some((port, &self.port(port)?.bit_errors)));
        let unknown = directions.filter(|(_, errors)| errors.level == BitErrorLevel::Unknown);
        let span = |errors: &BitErrors| errors.windows.map(|it| it.span()).into_iter().max();
        let (port, least) = unknown.min_by_key(|(_, errors)| span(errors))?;
        let observed = span(least).filter(|span| !span.is_zero()).map(duration)?;
        let takes = 2.5 / (least.limit * least.bits_per_second);
        let observed = format!("{} was observed for {observed}", self.name(port));
        Some(match Duration::try_from_secs_f32(takes) {
            Ok(takes) => {
                format!("{observed}; proving a BER below the limit takes {}", duration(takes))
            }
            Err(_) => observed,
        })
    }

    fn unresponsive(&self) -> Option<String> {
        self.each(|port| {
            let node = self.snapshot.fabric.node_of(port);
            let is_up = self.snapshot.is_up(self.snapshot.fabric.port(port).node);
            let why = if node.present() { "does not respond" } else { "is missing" };
            (!is_up).then(|| format!("{} {why}", node.name))
        })
    }

    fn disabled(&self) -> Option<String> {
        self.each(|port| {
            let off = self.snapshot.status(port)?.physical_state == physical::DISABLED;
            off.then(|| format!("{} is disabled", self.name(port)))
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
