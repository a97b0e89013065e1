//! The suspect links of a window, with evidence.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::EventKind;
use crate::event::downtime_of;
use crate::model::{Cable, ErrorDelta, Event, FabricState, Series, Window};
use crate::plot::LinkTimeline;
use crate::source::{Answer, SeriesDetail, Source};
use ib_fabric::topology::LinkId;
use ib_health::outage::Downtime;
use ib_health::verdict::Repair;
use ib_health::{Verdict, evidence};

use super::{FormatTime, push_some};

/// The verdict on a cable that the fabric did not contain any more.
const MISSING: &str = "missing";

/// A cable that is suspect.
#[derive(Clone, Debug, Serialize)]
pub struct Suspect {
    /// The fabric that contains it: a subnet that is monitored by two devices is two fabrics.
    pub fabric: String,
    /// The cable.
    #[serde(with = "crate::model::text")]
    pub link: LinkId,
    /// Its label.
    pub place: String,
    /// The worst verdict on it in the window.
    pub worst: &'static str,
    /// The verdict at the window's end; `missing` if the fabric did not contain it any more.
    pub last: &'static str,
    /// The time of its first event, or the window's beginning if it was suspect before.
    #[serde(with = "crate::model::text")]
    pub since: SystemTime,
    /// Evidence, in sentences.
    pub evidence: Vec<String>,
    /// What to try first.
    pub repair: Option<&'static str>,
    /// Its events.
    pub events: Vec<Event>,
    /// The counters of both ends.
    pub series: Vec<Series>,
}

/// What is known of a cable that may be suspect.
#[derive(Default)]
struct Case<'a> {
    events: Vec<&'a Event>,
    /// The cable at the window's beginning, if its verdict was bad then.
    before: Option<&'a Cable>,
    /// The cable at the window's end.
    after: Option<&'a Cable>,
    moved: Vec<&'a ErrorDelta>,
}

/// The suspects of a window, the worst first. A cable is suspect if its verdict was `watch` or worse, also at
/// the window's beginning, or if the link went down unexpectedly.
pub(super) fn find(
    events: &[Event],
    moved: &[ErrorDelta],
    [before, after]: [&[FabricState]; 2],
    window: Window,
    format_time: FormatTime<'_>,
) -> Vec<Suspect> {
    let mut cases: BTreeMap<(&str, LinkId), Case<'_>> = BTreeMap::new();
    for event in events {
        if let Some(link) = event.link {
            cases.entry((&event.fabric, link)).or_default().events.push(event);
        }
    }
    for then in before {
        for cable in then.cables.iter().filter(|cable| cable.verdict >= Verdict::Watch) {
            cases.entry((&then.fabric, cable.link())).or_default().before = Some(cable);
        }
    }
    for then in after {
        for cable in &then.cables {
            if let Some(case) = cases.get_mut(&(&*then.fabric, cable.link())) {
                case.after = Some(cable);
            }
        }
    }
    // By port, not by cable: a port's cable may have been replaced since it counted.
    let mut by_port: HashMap<_, Vec<_>> = HashMap::new();
    for moved in moved {
        by_port.entry((&*moved.port.fabric, moved.port.end())).or_default().push(moved);
    }
    for ((fabric, link), case) in &mut cases {
        let of_ends = link.ends().into_iter().filter_map(|end| by_port.get(&(*fabric, end)));
        case.moved.extend(of_ends.flatten());
    }
    let replugged: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::CableMoved.label())
        .filter_map(|event| Some((event.node?, event.port?)))
        .collect();
    let knows_after = !after.is_empty();
    cases.retain(|(_, link), case| {
        // Not a failure: both ends were plugged elsewhere.
        let was_moved = knows_after
            && case.after.is_none()
            && link.ends().iter().all(|end| replugged.contains(end));
        !was_moved && case.worst() >= Verdict::Watch
    });
    let mut ranked: Vec<(Rank, Suspect)> = (cases.iter())
        .map(|((fabric, link), case)| {
            (case.rank(), case.suspect(fabric, *link, knows_after, window, format_time))
        })
        .collect();
    ranked.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.link.cmp(&other.link)));
    ranked.into_iter().map(|(_, suspect)| suspect).collect()
}

/// Sort key of suspects: the worst verdict, flaps, link errors.
type Rank = (Verdict, usize, u64);

impl Case<'_> {
    fn of_kind(&self, kind: EventKind) -> impl Iterator<Item = &&Event> {
        self.events.iter().filter(move |event| event.kind == kind.label())
    }

    /// The worst verdict on it; an unexpected link down counts as `watch`.
    fn worst(&self) -> Verdict {
        let verdicts = self
            .of_kind(EventKind::VerdictChanged)
            .flat_map(|event| ["from", "to"].map(|key| verdict(event, key)));
        let before = self.before.map(|cable| cable.verdict);
        let lost = self.of_kind(EventKind::Flap).next().map(|_| Verdict::Watch);
        verdicts.chain([before, lost]).flatten().max().unwrap_or(Verdict::Ok)
    }

    fn rank(&self) -> Rank {
        let errors = self.moved.iter().map(|moved| moved.link_errors());
        (self.worst(), self.of_kind(EventKind::Flap).count(), errors.fold(0, u64::saturating_add))
    }

    fn suspect(
        &self,
        fabric: &str,
        link: LinkId,
        knows_after: bool,
        window: Window,
        format_time: FormatTime<'_>,
    ) -> Suspect {
        let last = match self.after {
            Some(cable) => cable.verdict.label(),
            None if knows_after => MISSING,
            None => {
                let verdicts = self.of_kind(EventKind::VerdictChanged);
                let last = verdicts.filter_map(|event| verdict(event, "to")).last();
                last.unwrap_or(Verdict::Unknown).label()
            }
        };
        let place = self.after.or(self.before).map(Cable::label);
        let place = place.or_else(|| self.events.first().map(|event| event.place.clone()));
        let decisive = self.decisive_verdict();
        let repair =
            decisive.and_then(|event| Repair::from_label(event.detail["repair"].as_str()?));
        let first = self.events.first().map(|event| event.at);
        Suspect {
            fabric: fabric.to_owned(),
            link,
            place: place.unwrap_or_else(|| link.to_string()),
            worst: self.worst().label(),
            last,
            since: if self.before.is_some() { window.from } else { first.unwrap_or(window.from) },
            evidence: self.evidence(decisive, window, format_time),
            repair: repair.map(Repair::help),
            events: self.events.iter().map(|event| (*event).clone()).collect(),
            series: Vec::new(),
        }
    }

    /// The event of the worst verdict; the latest of several.
    fn decisive_verdict(&self) -> Option<&Event> {
        self.of_kind(EventKind::VerdictChanged)
            .filter(|event| verdict(event, "to") >= Some(Verdict::Watch))
            .max_by_key(|event| (verdict(event, "to"), event.at))
            .copied()
    }

    fn evidence(
        &self,
        decisive: Option<&Event>,
        window: Window,
        format_time: FormatTime<'_>,
    ) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(before) = self.before {
            let verdict = Verdict::word(before.verdict.label());
            sentences.push(format!("Verdict {verdict} at the start of the period."));
        }
        if let Some(event) = decisive {
            let reasons = event.detail["reasons"].as_array().into_iter().flatten();
            let reasons: Vec<&str> =
                reasons.filter_map(|reason| reason["evidence"].as_str()).collect();
            let verdict = Verdict::word(verdict(event, "to").unwrap_or(Verdict::Unknown).label());
            let at = format_time(event.at);
            sentences.push(format!("Verdict {verdict} at {at}: {}.", reasons.join("; ")));
        }
        let flaps: Vec<_> = self.of_kind(EventKind::Flap).collect();
        if let (Some(first), Some(last)) = (flaps.first(), flaps.last()) {
            let losses = flaps.iter().map(|event| event.detail["losses"].as_u64().unwrap_or(1));
            let (first, last) = (format_time(first.at), format_time(last.at));
            let when = match losses.sum() {
                1 => format!("at {first}"),
                count => format!("{count} times, first at {first}, last at {last}"),
            };
            sentences.push(format!("The link went down unexpectedly {when}."));
        }
        let outages = self.outages().into_iter().map(|(from, to)| {
            let length = |to: SystemTime| {
                let length = to.duration_since(from).unwrap_or_default();
                humantime::format_duration(Duration::from_secs(length.as_secs())).to_string()
            };
            let Some(to) = to else {
                let (from, length) = (format_time(from), length(window.to));
                return format!("Link down from {from} to the end of the period ({length}).");
            };
            let length = self.downtime(from).map_or_else(|| length(to), evidence::downtime);
            format!("Link down at {} for {length}.", format_time(from))
        });
        push_some(&mut sentences, outages, "Link downs");
        let rates = self.of_kind(EventKind::RateChanged);
        let rates = rates
            .map(|event| format!("Rate changed at {}: {}.", format_time(event.at), event.text));
        push_some(&mut sentences, rates, "Rate changes");
        sentences.extend(self.moved.iter().map(|moved| {
            format!("{} counted {}.", moved.port.label(), list_errors(moved, format_time))
        }));
        sentences
    }

    /// The length of the outage that began at this time, if its loss was counted.
    fn downtime(&self, from: SystemTime) -> Option<Downtime> {
        let kinds = [EventKind::Flap, EventKind::ExpectedLinkDown].map(EventKind::label);
        // The clocks of two sweeps may disagree by some microseconds.
        let apart = |at: SystemTime| at.max(from).duration_since(at.min(from)).unwrap_or_default();
        let mut losses = (self.events.iter())
            .filter(|event| kinds.contains(&&*event.kind))
            .filter(|event| apart(event.at) < Duration::from_secs(1));
        losses.find_map(|event| downtime_of(&event.detail))
    }

    /// The times at which it went down, and at which it came up again.
    fn outages(&self) -> Vec<(SystemTime, Option<SystemTime>)> {
        let mut outages: Vec<(SystemTime, Option<SystemTime>)> = Vec::new();
        for event in &self.events {
            if event.kind == EventKind::LinkDown.label() {
                outages.push((event.at, None));
            } else if event.kind == EventKind::LinkUp.label()
                && let Some((_, end @ None)) = outages.last_mut()
            {
                *end = Some(event.at);
            }
        }
        outages
    }
}

/// A port's errors as text, the most frequent first.
pub(super) fn list_errors(moved: &ErrorDelta, format_time: FormatTime<'_>) -> String {
    let mut sums: Vec<_> = moved.sums.iter().collect();
    sums.sort_by_key(|sum| (std::cmp::Reverse(sum.by), sum.counter));
    let counts: Vec<String> =
        sums.iter().map(|sum| format!("{} {}", sum.by, sum.counter.row().metric)).collect();
    let first = sums.iter().map(|sum| sum.first).min();
    let last = sums.iter().map(|sum| sum.last).max();
    let when = match first.zip(last) {
        Some((first, last)) if first == last => format!(" at {}", format_time(first)),
        Some((first, last)) => format!(" from {} to {}", format_time(first), format_time(last)),
        None => String::new(),
    };
    counts.join(", ") + &when
}

/// The verdict under a key of an event's detail.
fn verdict(event: &Event, key: &str) -> Option<Verdict> {
    Verdict::from_label(event.detail[key].as_str()?)
}

/// Reads the counters of all suspects with one query.
pub(super) fn read_series(
    source: &dyn Source,
    suspects: &mut [Suspect],
    window: Window,
) -> Answer<()> {
    let ends: Vec<_> = suspects.iter().flat_map(|suspect| suspect.link.ends()).collect();
    if ends.is_empty() {
        return Ok(());
    }
    let series = source.series(&ends, SeriesDetail::All, window)?;
    for suspect in suspects {
        let ends = suspect.link.ends();
        let of_ends = series.iter().filter(|series| {
            series.port.fabric == suspect.fabric && ends.contains(&series.port.end())
        });
        suspect.series = of_ends.cloned().collect();
        suspect.series.sort_by_key(|series| series.port.end());
    }
    Ok(())
}

impl Suspect {
    /// The verdict at the window's end as text.
    pub(super) fn last_text(&self) -> &str {
        if self.last == MISSING { "none (link removed)" } else { Verdict::word(self.last) }
    }

    /// Its counters and events.
    pub(super) fn timeline(&self) -> LinkTimeline<'_> {
        LinkTimeline {
            link: self.link,
            place: &self.place,
            series: &self.series,
            events: &self.events,
        }
    }
}
