//! The evidence for a verdict: a sentence with numbers for each reason.

mod planes;

use std::time::Duration;

use display_text::{grouped, plural};
use ib_fabric::topology::Link;
use ib_fabric::{PortIndex, Snapshot};
use ib_mad::node::PortRole;
use ib_mad::port_state::{PhysicalState, PortState, PortStatus};
use ib_mad::rate::LinkRate;
use ib_mad::register::Module;
use ib_mad::{Counter, Moment};

use super::bit_errors::{BitErrorLevel, BitErrors, Deciding, PreFecBer};
use super::congestion::{Role, RootCause};
use super::flap_days::RepeatedFlaps;
use super::judge::DECISIVE;

use super::outage::{Downtime, Outages, duration};
use super::peers::RateReference;
use super::verdict::{Reason, Verdict};
use super::{Assessment, LinkAssessment, PortAssessment};

/// The period of counts that begin at zero when the exporter starts.
const SINCE_START: &str = "since the exporter started";

/// The evidence for a reason; where there are no numbers, what the reason means.
pub fn reason(
    reason: Reason,
    link: &LinkAssessment,
    assessment: &Assessment,
    snapshot: &Snapshot,
) -> String {
    if let Some(recorded) = &assessment.recorded {
        let text = recorded.get(link.link.low, reason);
        return text.map_or_else(|| meaning(reason), str::to_owned);
    }
    let text = if link.planes.is_empty() {
        Evidence { link, assessment, snapshot }.reason(reason)
    } else {
        planes::reason(reason, link, &snapshot.fabric, |reason, link| {
            let text = Evidence { link, assessment, snapshot }.reason(reason);
            text.unwrap_or_else(|| meaning(reason))
        })
    };
    text.unwrap_or_else(|| meaning(reason))
}

/// What was counted; and how much of it decides, if bursts had most of it.
fn symbol_errors(Deciding { counted, steady }: Deciding) -> String {
    let errors = plural(counted.errors, "symbol error");
    let time = duration(counted.span());
    let has_bursts = steady < counted.errors / 2;
    let without =
        if has_bursts { format!(" ({} without bursts)", grouped(steady)) } else { String::new() };
    format!("{errors} in {time}{without}")
}

/// The meaning of a reason, to be used within a sentence.
fn meaning(reason: Reason) -> String {
    let mut chars = reason.help().trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// `once`, `twice`, `3 times`.
fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

/// Without the part of a second.
fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// How often a link went down, and for how long if that is known: `went down 3 times, 44s in total`.
pub fn link_downs(count: u32, down: Downtime) -> String {
    let text = format!("went down {}", times(count));
    match count {
        _ if down.most.is_zero() => text,
        1 => format!("{text} for {down}"),
        _ => format!("{text}, {down} in total"),
    }
}

/// A ratio with as many digits as it takes to differ from its limit: `1.03e-5`, not `1.0e-5 (limit 1e-5)`.
fn different(ratio: f64, limit: f64) -> String {
    let texts = (1..=4).map(|digits| (format!("{ratio:.digits$e}"), format!("{limit:.digits$e}")));
    let mut different = texts.filter(|(ratio, limit)| ratio != limit).map(|(ratio, _)| ratio);
    different.next().unwrap_or_else(|| format!("{ratio:.4e}"))
}

struct Evidence<'a> {
    link: &'a LinkAssessment,
    assessment: &'a Assessment,
    snapshot: &'a Snapshot,
}

impl<'a> Evidence<'a> {
    /// The evidence for a reason, if there are numbers.
    fn reason(&self, reason: Reason) -> Option<String> {
        match reason {
            Reason::BitErrors => self.bit_errors(),
            Reason::Flapping => {
                let Outages { flaps, down, .. } = self.link.outages;
                (flaps > 0).then(|| format!("{} {SINCE_START}", link_downs(flaps, down)))
            }
            Reason::NodeFlapping => self.link_downs(),
            Reason::RepeatedFlaps => self.repeated_flaps(),
            Reason::Recoveries => {
                let times = times(self.link.outages.recoveries);
                Some(format!(
                    "LinkErrorRecovery: retrained {times} without a link down {SINCE_START}"
                ))
            }
            Reason::Width | Reason::Speed | Reason::BelowCapability => self.slower(),
            Reason::Down => self.down(),
            Reason::ReceiveErrors => self.corrupt_packets(),
            Reason::LinkIntegrity => {
                let errors = |port| self.count(port, Counter::LocalLinkIntegrityErrors);
                self.counts("counted", "local link integrity error", errors)
            }
            Reason::PreFec => self.pre_fec(),
            Reason::ModuleTemperature => self.module_temperature(),
            Reason::RxPower => self.rx_power(),
            Reason::UpstreamErrors => Some(self.marked_bad()),
            Reason::Congested => self.waits(false),
            Reason::Victim => self.waits(true),
            Reason::Replaced => self.replaced(),
            Reason::CounterSaturated => self.saturated(),
            Reason::ImpossibleValue => self.impossible(),
            Reason::InsufficientData => self.insufficient_data(),
            Reason::Unresponsive => self.each(|port| {
                let node = self.snapshot.fabric.node_of(port);
                let is_up = self.snapshot.is_up(self.snapshot.fabric.port(port).node);
                let why = if node.present() { "does not respond" } else { "is missing" };
                (!is_up).then(|| format!("{} {why}", node.name))
            }),
            Reason::Disabled => self.each_named(|port| {
                let is_off = self.snapshot.status(port)?.physical_state == PhysicalState::Disabled;
                is_off.then(|| "is disabled".into())
            }),
            Reason::Internal => {
                self.each_named(|port| match self.snapshot.fabric.port(port).role? {
                    PortRole::Fnm => Some("connects ASICs of one switch (FNM)".into()),
                    PortRole::Router => Some("leads to the router in the switch".into()),
                    PortRole::Cable | PortRole::Other => None,
                })
            }
            Reason::RingBroken => self.ring_broken(),
            // Links of several planes say it themselves. What counters mean on NVLink is not documented, so there are no
            // numbers to show; the details of maintenance are in the site's own file.
            Reason::PlanesDown
            | Reason::PlanesSwapped
            | Reason::PlanesUnequal
            | Reason::NvLink
            | Reason::Maintenance => None,
        }
    }

    /// Its ends; a loopback plug has one.
    fn ends(&self) -> impl Iterator<Item = PortIndex> + use<> {
        let Link { low: near, high: far } = self.link.link;
        std::iter::once(near).chain((far != near).then_some(far))
    }

    fn name(&self, port: PortIndex) -> String {
        self.snapshot.fabric.port_label(port)
    }

    fn port(&self, port: PortIndex) -> Option<&'a PortAssessment> {
        self.assessment.ports.get(port)
    }

    fn count(&self, port: PortIndex, counter: Counter) -> u64 {
        self.snapshot.reading(port).and_then(|reading| reading.get(counter)).unwrap_or(0)
    }

    /// What is to be said of each end, if anything.
    fn each(&self, describe: impl Fn(PortIndex) -> Option<String>) -> Option<String> {
        let texts: Vec<String> = self.ends().filter_map(describe).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The same, after the end's name.
    fn each_named(&self, describe: impl Fn(PortIndex) -> Option<String>) -> Option<String> {
        self.each(|port| Some(format!("{} {}", self.name(port), describe(port)?)))
    }

    /// How many of something each end `verb`: `leaf-1 port 1 received 2 packets`.
    fn counts(&self, verb: &str, noun: &str, of: impl Fn(PortIndex) -> u64) -> Option<String> {
        self.each_named(|port| {
            let number = of(port);
            (number > 0).then(|| format!("{verb} {}", plural(number, noun)))
        })
    }

    fn bit_errors(&self) -> Option<String> {
        self.each_named(|port| {
            let errors = &self.port(port)?.bit_errors;
            let is_raised = matches!(errors.level, BitErrorLevel::Raised | BitErrorLevel::Over);
            let (deciding, limit) = (errors.decided_by.filter(|_| is_raised)?, errors.limit);
            let counted = symbol_errors(deciding);
            let before = errors.raised_before.map_or_else(String::new, |before| {
                format!("; {} ago it was above half of the limit", duration(whole(before)))
            });
            Some(
                match errors.ratio_of(deciding.counted) {
                    Some(ratio) => {
                        format!("receives symbol BER {ratio:.1e} (limit {limit:e}): {counted}")
                    }
                    None => format!("receives {counted} (limit: symbol BER {limit:e})"),
                } + &before
                    + &self.clears(port),
            )
        })
    }

    /// That a tool clears the counters of a port again and again.
    fn clears(&self, port: PortIndex) -> String {
        let every = self.port(port).and_then(|found| found.cleared_every).map(duration);
        every.map_or_else(String::new, |every| {
            format!(
                "; a tool clears these counters every {every} or more often, so the time is estimated"
            )
        })
    }

    fn link_downs(&self) -> Option<String> {
        let downed = |port| self.count(port, Counter::LinkDowned);
        let text = self.each_named(|port| Some(format!("counted {}", downed(port))));
        let text = text.filter(|_| self.ends().any(|port| downed(port) > 0))?;
        Some(format!("LinkDowned: {text}"))
    }

    /// On how many of the last days it went down, and when last.
    fn repeated_flaps(&self) -> Option<String> {
        let RepeatedFlaps { days, within, last } = self.link.repeated_flaps?;
        // Two bursts that are 12 hours apart may be on one calendar day.
        let most = within.as_secs().div_ceil(24 * 3600);
        let days = u64::from(days).min(most);
        let Snapshot { anchor, ended, .. } = self.snapshot;
        // It may have been before the clock started.
        let last = anchor.wall_of(*ended).checked_sub(last)?;
        let last = humantime::format_rfc3339_seconds(last);
        Some(format!("went down unexpectedly on {days} of the last {most} days: last on {last}"))
    }

    /// Its rate, and the higher one that it is compared with.
    fn slower(&self) -> Option<String> {
        let rate = |(width, speed): LinkRate| format!("{} {}", width.label(), speed.label());
        let rate_of = |status: &PortStatus| status.width.zip(status.speed).map(rate);
        let now = self.snapshot.slower_end(self.link.link).and_then(rate_of)?;
        let reference = match self.link.reference? {
            RateReference::Past(more) => format!("ran at {} before", rate(more)),
            RateReference::Peers(more) => format!("its peers run at {}", rate(more)),
            RateReference::Capability(more) => {
                format!("both ends support and enable {}", rate(more))
            }
            RateReference::OtherEnd(_) => {
                return self.each_named(|port| {
                    Some(format!("says {}", self.snapshot.status(port).and_then(rate_of)?))
                });
            }
        };
        Some(format!("runs at {now}; {reference}"))
    }

    fn down(&self) -> Option<String> {
        let last = self.link.outages.last_change;
        if last > Some(self.snapshot.began) {
            return Some("not Active: reported by a port after the sweep read its state".into());
        }
        let known = |port| Some((port, self.snapshot.status(port)?.state));
        let states: Vec<_> = self.ends().filter_map(known).collect();
        let is_active = |(_, it): &(PortIndex, PortState)| *it == PortState::Active;
        let text =
            |(port, it): &(PortIndex, PortState)| format!("{} {}", self.name(*port), it.name());
        let texts = states.iter().map(text).collect::<Vec<_>>().join(", ");
        // The link went down or came up between the readings of its ends.
        let is_mixed = states.iter().any(is_active);
        let note = if is_mixed { " (ends read at different times)" } else { "" };
        let since = last.map(|last| self.snapshot.ended.since(last));
        let since = since.filter(|since| *since >= Duration::from_secs(1));
        let since = since.map_or_else(String::new, |since| format!(" for {}", duration(since)));
        (!states.iter().all(is_active)).then(|| format!("not Active{since}: {texts}{note}"))
    }

    /// Which link of a ring is down, and which ports of it have none.
    fn ring_broken(&self) -> Option<String> {
        let fabric = &self.snapshot.fabric;
        let gap = fabric.ring_gaps.iter().find(|gap| gap.link == self.link.link);
        let ports = gap.into_iter().flat_map(|gap| &gap.ports);
        let missing = ports.map(|port| {
            format!("{} has no link, although other nodes of the switch have", self.name(*port))
        });
        let is_down = self.link.up == Some(false);
        let texts: Vec<String> =
            self.down().filter(|_| is_down).into_iter().chain(missing).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    fn corrupt_packets(&self) -> Option<String> {
        // Not marked bad upstream.
        let own_errors = |port| {
            let marked = self.count(port, Counter::RcvRemotePhysicalErrors);
            self.count(port, Counter::RcvErrors).saturating_sub(marked)
        };
        let corrupt = self.counts("received", "corrupt packet", |port| {
            // Errors of other kinds, such as buffer overruns, are not corrupt packets: the total is used only
            // where the 16 bits of the local physical errors are absent or saturated.
            let local = Counter::RcvLocalPhysicalErrors;
            let known = self.snapshot.reading(port).and_then(|reading| reading.get(local));
            known.filter(|_| !self.is_saturated(port, local)).unwrap_or_else(|| own_errors(port))
        });
        corrupt.or_else(|| self.counts("counted", "receive error", own_errors))
    }

    fn pre_fec(&self) -> Option<String> {
        self.each_named(|port| {
            let PreFecBer { ratio, limit, at, stale, lane, over_at } =
                self.port(port)?.bit_errors.pre_fec?;
            let lane = lane.map_or_else(String::new, |(lane, share)| {
                format!(", {:.0}% of the errors on lane {lane}", share * 100.0)
            });
            let when = if stale {
                let ago = self.ago(at);
                format!(", measured {ago} ago; the counter has been saturated since then")
            } else {
                String::new()
            };
            let clears = self.clears(port);
            let before = match over_at {
                Some(over) if over < at => format!("; {} ago it was above it", self.ago(over)),
                _ => String::new(),
            };
            (ratio > limit || !before.is_empty()).then(|| {
                let ratio = different(f64::from(ratio), f64::from(limit));
                format!(
                    "receives pre-FEC BER {ratio} (limit {limit:e}){lane}{when}{before}{clears}"
                )
            })
        })
    }

    /// The lanes of the link; its ends have the same number, and a sweep may have queried one of them.
    fn lanes(&self) -> Option<usize> {
        Some(self.snapshot.slower_end(self.link.link)?.width?.lanes().into())
    }

    fn module(&self, port: PortIndex) -> Option<&'a Module> {
        self.snapshot.hardware.port(self.snapshot.fabric.port_key(port))?.plugged()
    }

    fn module_temperature(&self) -> Option<String> {
        self.each_named(|port| {
            let module = self.module(port).filter(|module| module.is_hot())?;
            let now = module.celsius(module.temperature)?;
            let limit = module.celsius(module.temperature_high)?;
            Some(format!("has a module at {now:.0} °C (its alarm threshold: {limit:.0} °C)"))
        })
    }

    fn rx_power(&self) -> Option<String> {
        self.each_named(|port| {
            let module = self.module(port)?;
            let lane = module.dark_lane(self.lanes()?)?;
            let limit = module.dbm(module.rx_power_low)?;
            let power = module.dbm(module.rx_power[lane]);
            let power = power.map_or("no light".into(), |dbm| format!("{dbm:.1} dBm"));
            Some(format!(
                "receives {power} on lane {lane} (alarm threshold of the module: {limit:.1} dBm)"
            ))
        })
    }

    /// How long ago a moment was; from an hour on, in whole minutes.
    fn ago(&self, at: Moment) -> String {
        let ago = self.snapshot.ended.since(at).as_secs();
        duration(Duration::from_secs(if ago < 3_600 { ago } else { ago / 60 * 60 }))
    }

    fn marked_bad(&self) -> String {
        let marked = |port| self.count(port, Counter::RcvRemotePhysicalErrors);
        let received = self.counts("received", "packet", marked);
        let origin = self.link.upstream.map_or("on a link upstream".into(), |upstream| {
            format!("on the link into {}", self.name(upstream))
        });
        let packets = received.as_deref().unwrap_or("packets");
        format!("{packets} marked bad, corrupted {origin}")
    }

    /// The ends that wait: roots of a congestion, or its victims.
    fn waits(&self, victims: bool) -> Option<String> {
        self.each_named(|port| {
            let found = self.port(port)?;
            let waits = self.wait(found);
            let cause = match found.role? {
                Role::Root(cause) if !victims => match cause {
                    RootCause::FullLink => "its link is fully utilized".to_owned(),
                    RootCause::SlowReceiver => "its receiver is slow".to_owned(),
                    RootCause::Unknown => "cause unknown".to_owned(),
                },
                Role::Victim { of } if victims => format!("{} is congested", self.name(of)),
                Role::Root(_) | Role::Victim { .. } => return None,
            };
            Some(format!("{waits}: {cause}{}", self.discards(port)))
        })
    }

    /// How long a port waits, or waited when that was last known.
    fn wait(&self, found: &PortAssessment) -> String {
        let percent = |share: f32| format!("{:.0}% of the time", share * 100.0);
        let full = found.is_wait_saturated();
        match (found.wait, found.held_wait) {
            (Some(wait), _) => format!("waits {}", percent(wait.share)),
            (None, Some(held)) => {
                let why = if full { "; PortXmitWait is saturated" } else { "" };
                format!("waited {} (measured {} ago{why})", percent(held.share), self.ago(held.at))
            }
            (None, None) if full => "waits for an unknown time (PortXmitWait is saturated)".into(),
            (None, None) => "waits for an unknown time".into(),
        }
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
            self.count(port, Counter::XmitDiscards).saturating_sub(self.count(port, inactive))
        };
        if all == 0 {
            return String::new();
        }
        let by_limit = by_limit.iter().filter(|(count, _)| *count > 0);
        let by_limit: Vec<String> = by_limit
            .map(|(count, limit)| format!("{} by the {limit} limit", grouped(count)))
            .collect();
        let packets = plural(all, "packet");
        let limits = if by_limit.is_empty() { "" } else { &format!(" ({})", by_limit.join(", ")) };
        format!("; discarded {packets}{limits}")
    }

    fn is_saturated(&self, port: PortIndex, counter: Counter) -> bool {
        self.port(port).is_some_and(|found| found.counters.saturated_now.contains(counter))
    }

    /// The names of the counters, the port's, and the verb for one or for several.
    fn listed(
        &self,
        counters: impl Iterator<Item = Counter>,
        port: PortIndex,
        [one, several]: [&str; 2],
    ) -> Option<String> {
        let names: Vec<&str> = counters.map(|counter| counter.row().metric).collect();
        let verb = if names.len() > 1 { several } else { one };
        let text = || format!("{} at {} {verb}", names.join(", "), self.name(port));
        (!names.is_empty()).then(text)
    }

    fn saturated(&self) -> Option<String> {
        self.each(|port| {
            let PortAssessment { counters, bit_errors, .. } = self.port(port)?;
            let saturated =
                Counter::all().filter(|counter| counters.saturated_now.contains(*counter));
            let text = self.listed(saturated, port, ["is saturated", "are saturated"])?;
            let last = match bit_errors.pre_fec {
                Some(PreFecBer { ratio, limit, at, stale: true, .. }) => {
                    format!(" (pre-FEC BER {ratio:.1e} {} ago, limit {limit:e})", self.ago(at))
                }
                // After a restart the ratio is not known.
                None if counters.saturated_now.contains(Counter::FecCorrectedSymbols) => {
                    " (pre-FEC BER unknown)".into()
                }
                _ => String::new(),
            };
            Some(text + &last)
        })
    }

    /// When the cable was replaced, and how the new one is.
    fn replaced(&self) -> Option<String> {
        let ago = self.ago(self.link.replaced?);
        let since = match self.link.verdict {
            Verdict::Ok => "; no fault since then",
            Verdict::Unknown => "; not observed for long enough since then",
            Verdict::Watch | Verdict::Bad => "",
        };
        Some(format!("the cable or a transceiver was replaced {ago} ago{since}"))
    }

    fn impossible(&self) -> Option<String> {
        self.each(|port| {
            let counters = self.port(port)?.counters;
            let impossible = |counter: &Counter| counters.impossible.contains(*counter);
            let impossible = DECISIVE.into_iter().filter(impossible);
            self.listed(impossible, port, ["shows an impossible value", "show an impossible value"])
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
        let clears = self.clears(port);
        let observed = format!("{} was observed for {observed}", self.name(port));
        Some(
            match Duration::try_from_secs_f32(takes) {
                Ok(takes) => {
                    format!("{observed}; proving a BER below the limit takes {}", duration(takes))
                }
                Err(_) => observed,
            } + &clears,
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
