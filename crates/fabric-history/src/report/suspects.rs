//! Which cables are suspect in a window, and on what evidence.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::Kind;
use crate::course::Course;
use crate::event::lengths_in;
use crate::model::{Cable, Moved, Series, Then, Told, Window};
use crate::source::{AskError, Detail, Source};
use ib_fabric::topology::LinkId;
use ib_health::outage::Downtime;
use ib_health::verdict::Repair;
use ib_health::{Verdict, evidence};

/// How many outages and rates of a cable are told one by one.
const MOST_OF_A_KIND: usize = 10;

/// A cable that is suspect.
#[derive(Clone, Debug, Serialize)]
pub struct Suspect {
    /// The fabric that tells of it: a net that is watched by two devices is two of them.
    pub fabric: String,
    /// The cable.
    #[serde(serialize_with = "as_text")]
    pub link: LinkId,
    /// As people call it.
    pub place: String,
    /// The gravest verdict on it in the window.
    pub worst: &'static str,
    /// The verdict at the window's end; `gone` if it was no part of the fabric any more.
    pub last: &'static str,
    /// When it was first conspicuous.
    #[serde(with = "crate::model::time")]
    pub since: SystemTime,
    /// Why, in sentences.
    pub evidence: Vec<String>,
    /// What to try first.
    pub repair: Option<&'static str>,
    /// What happened to it.
    pub events: Vec<Told>,
    /// What both ends counted.
    pub series: Vec<Series>,
}

fn as_text<S: serde::Serializer>(link: &LinkId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(link)
}

/// What is held against a cable.
#[derive(Default)]
struct File<'a> {
    events: Vec<&'a Told>,
    before: Option<&'a Cable>,
    after: Option<&'a Cable>,
    moved: Vec<&'a Moved>,
}

/// The suspects of a window, the worst first. A cable is one for a verdict of somebody to look at it, for a
/// loss that nobody expected, or for having been so when the window began.
pub(super) fn of(
    events: &[Told],
    moved: &[Moved],
    [before, after]: [&[Then]; 2],
    window: Window,
    tell: &dyn Fn(SystemTime) -> String,
) -> Vec<Suspect> {
    let mut files: BTreeMap<(&str, LinkId), File<'_>> = BTreeMap::new();
    for event in events {
        if let Some(link) = event.link {
            files.entry((&event.fabric, link)).or_default().events.push(event);
        }
    }
    for then in before {
        for cable in then.cables.iter().filter(|cable| cable.verdict >= Verdict::Watch) {
            files.entry((&then.fabric, cable.link())).or_default().before = Some(cable);
        }
    }
    for then in after {
        for cable in &then.cables {
            if let Some(file) = files.get_mut(&(&*then.fabric, cable.link())) {
                file.after = Some(cable);
            }
        }
    }
    // Where its cable leads now is not where it led when it counted: what is told is what the port did.
    let mut by_port: HashMap<_, Vec<_>> = HashMap::new();
    for moved in moved {
        by_port.entry((&*moved.port.fabric, moved.port.end())).or_default().push(moved);
    }
    for ((fabric, link), file) in &mut files {
        let of_ends = link.ends().into_iter().filter_map(|end| by_port.get(&(*fabric, end)));
        file.moved.extend(of_ends.flatten());
    }
    let replugged: Vec<_> = events
        .iter()
        .filter(|event| event.kind == Kind::PortMoved.label())
        .filter_map(|event| Some((event.node?, event.port?)))
        .collect();
    let knows_after = !after.is_empty();
    files.retain(|(_, link), file| {
        // It did not fail: somebody plugged it elsewhere.
        let was_moved = knows_after
            && file.after.is_none()
            && link.ends().iter().all(|end| replugged.contains(end));
        !was_moved && file.weight() >= Verdict::Watch
    });
    let mut ranked: Vec<(Rank, Suspect)> = (files.iter())
        .map(|((fabric, link), file)| {
            (file.rank(), file.suspect(fabric, *link, knows_after, window, tell))
        })
        .collect();
    ranked.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.link.cmp(&other.link)));
    ranked.into_iter().map(|(_, suspect)| suspect).collect()
}

/// How grave it is: the verdict, losses, link errors.
type Rank = (Verdict, usize, u64);

impl File<'_> {
    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &&Told> {
        self.events.iter().filter(move |event| event.kind == kind.label())
    }

    /// The gravest verdict on it.
    fn weight(&self) -> Verdict {
        let told = self
            .of_kind(Kind::Verdict)
            .flat_map(|event| ["from", "to"].map(|key| verdict(event, key)));
        let before = self.before.map(|cable| cable.verdict);
        let lost = self.of_kind(Kind::Flap).next().map(|_| Verdict::Watch);
        told.chain([before, lost]).flatten().max().unwrap_or(Verdict::Ok)
    }

    fn rank(&self) -> Rank {
        let errors = self.moved.iter().map(|moved| moved.link_errors());
        (self.weight(), self.of_kind(Kind::Flap).count(), errors.fold(0, u64::saturating_add))
    }

    fn suspect(
        &self,
        fabric: &str,
        link: LinkId,
        knows_after: bool,
        window: Window,
        tell: &dyn Fn(SystemTime) -> String,
    ) -> Suspect {
        let last = match self.after {
            Some(cable) => cable.verdict.label(),
            None if knows_after => "gone",
            None => {
                let told = self.of_kind(Kind::Verdict).filter_map(|event| verdict(event, "to"));
                told.last().unwrap_or(Verdict::Unknown).label()
            }
        };
        let place = self.after.or(self.before).map(Cable::label);
        let place = place.or_else(|| self.events.first().map(|event| event.place.clone()));
        let gravest = self.gravest();
        let repair = gravest.and_then(|event| event.detail.get("repair")?.as_str());
        let repair = Repair::ALL.iter().find(|known| Some(known.label()) == repair);
        let first = self.events.first().map(|event| event.at);
        Suspect {
            fabric: fabric.to_owned(),
            link,
            place: place.unwrap_or_else(|| link.to_string()),
            worst: self.weight().label(),
            last,
            since: if self.before.is_some() { window.from } else { first.unwrap_or(window.from) },
            evidence: self.evidence(gravest, window, tell),
            repair: repair.map(|repair| repair.help()),
            events: self.events.iter().map(|event| (*event).clone()).collect(),
            series: Vec::new(),
        }
    }

    /// The latest of the gravest verdicts.
    fn gravest(&self) -> Option<&Told> {
        let told = self
            .of_kind(Kind::Verdict)
            .filter(|event| verdict(event, "to") >= Some(Verdict::Watch));
        told.max_by_key(|event| (verdict(event, "to"), event.at)).copied()
    }

    fn evidence(
        &self,
        gravest: Option<&Told>,
        window: Window,
        tell: &dyn Fn(SystemTime) -> String,
    ) -> Vec<String> {
        let mut told = Vec::new();
        if let Some(before) = self.before {
            told.push(format!("It was {} already when this window began.", before.verdict.label()));
        }
        if let Some(event) = gravest {
            let reasons = event.detail.get("reasons").and_then(|reasons| reasons.as_array());
            let reasons = reasons.into_iter().flatten();
            let reasons: Vec<&str> =
                reasons.filter_map(|reason| reason.get("evidence")?.as_str()).collect();
            let verdict = verdict(event, "to").unwrap_or(Verdict::Unknown).label();
            let at = tell(event.at);
            told.push(format!("Judged {verdict} at {at}: {}.", reasons.join("; ")));
        }
        let flaps: Vec<_> = self.of_kind(Kind::Flap).collect();
        if let (Some(first), Some(last)) = (flaps.first(), flaps.last()) {
            let losses = flaps.iter().map(|event| event.detail["losses"].as_u64().unwrap_or(1));
            let when = match losses.sum() {
                1 => format!("at {}", tell(first.at)),
                count => {
                    format!("{count} times, first at {}, last at {}", tell(first.at), tell(last.at))
                }
            };
            told.push(format!("The link was lost by its own fault {when}."));
        }
        let outages = self.outages();
        for (from, to) in outages.iter().copied().take(MOST_OF_A_KIND) {
            let long = |to: SystemTime| {
                let long = to.duration_since(from).unwrap_or_default();
                humantime::format_duration(Duration::from_secs(long.as_secs())).to_string()
            };
            told.push(match to {
                Some(to) => {
                    let long = self.down(from).map_or_else(|| long(to), evidence::downtime);
                    format!("It was seen down at {}, and was down for {long}.", tell(from))
                }
                None => format!(
                    "It was seen down at {}, and is down to the end of this window ({}).",
                    tell(from),
                    long(window.to)
                ),
            });
        }
        more(&mut told, outages.len(), "It was seen down");
        for event in self.of_kind(Kind::Rate).take(MOST_OF_A_KIND) {
            told.push(format!(
                "It ran at another rate from {} on: {}.",
                tell(event.at),
                event.text
            ));
        }
        more(&mut told, self.of_kind(Kind::Rate).count(), "It ran at another rate");
        for moved in &self.moved {
            told.push(format!("{} counted {}.", moved.port.label(), counted(moved, tell)));
        }
        told
    }

    /// How long the outage was that was seen to begin at this time, if its loss was counted.
    fn down(&self, from: SystemTime) -> Option<Downtime> {
        let kinds = [Kind::Flap, Kind::ExpectedLoss].map(Kind::label);
        // The clocks of two sweeps may disagree by some microseconds.
        let apart = |at: SystemTime| at.max(from).duration_since(at.min(from)).unwrap_or_default();
        let mut of_it = self
            .events
            .iter()
            .filter(|it| kinds.contains(&&*it.kind) && apart(it.at) < Duration::from_secs(1));
        of_it.find_map(|it| lengths_in(&it.detail))
    }

    /// When it was seen to go down, and when it was seen up again.
    fn outages(&self) -> Vec<(SystemTime, Option<SystemTime>)> {
        let mut outages: Vec<(SystemTime, Option<SystemTime>)> = Vec::new();
        for event in &self.events {
            if event.kind == Kind::LinkDown.label() {
                outages.push((event.at, None));
            } else if event.kind == Kind::LinkUp.label()
                && let Some((_, end @ None)) = outages.last_mut()
            {
                *end = Some(event.at);
            }
        }
        outages
    }
}

/// Says how often something was so besides, if it was.
fn more(told: &mut Vec<String>, count: usize, what: &str) {
    match count.saturating_sub(MOST_OF_A_KIND) {
        0 => {}
        1 => told.push(format!("{what}: one more time.")),
        more => told.push(format!("{what}: {more} more times.")),
    }
}

/// What a port's errors came to, the most first.
pub(super) fn counted(moved: &Moved, tell: &dyn Fn(SystemTime) -> String) -> String {
    let mut sums: Vec<_> = moved.sums.iter().collect();
    sums.sort_by_key(|sum| (std::cmp::Reverse(sum.by), sum.counter));
    let told: Vec<String> =
        sums.iter().map(|sum| format!("{} {}", sum.by, sum.counter.row().metric)).collect();
    let first = sums.iter().map(|sum| sum.first).min();
    let last = sums.iter().map(|sum| sum.last).max();
    let when = match (first, last) {
        (Some(first), Some(last)) if first == last => format!(" at {}", tell(first)),
        (Some(first), Some(last)) => format!(" from {} to {}", tell(first), tell(last)),
        _ => String::new(),
    };
    told.join(", ") + &when
}

/// The verdict that an event's detail has under a key.
fn verdict(event: &Told, key: &str) -> Option<Verdict> {
    let label = event.detail.get(key)?.as_str()?;
    Verdict::ALL.into_iter().find(|verdict| verdict.label() == label)
}

/// Asks for the course of the suspects' counters, all at once.
pub(super) fn trace(
    source: &dyn Source,
    suspects: &mut [Suspect],
    window: Window,
) -> Result<(), AskError> {
    let ends: Vec<_> = suspects.iter().flat_map(|suspect| suspect.link.ends()).collect();
    if ends.is_empty() {
        return Ok(());
    }
    let series = source.series(&ends, Detail::All, window)?;
    let mut by_end: HashMap<_, Vec<Series>> = HashMap::new();
    for series in series {
        by_end.entry((series.port.fabric.clone(), series.port.end())).or_default().push(series);
    }
    for suspect in suspects {
        for end in suspect.link.ends() {
            let of_end = by_end.get(&(suspect.fabric.clone(), end));
            suspect.series.extend(of_end.into_iter().flatten().cloned());
        }
    }
    Ok(())
}

impl Suspect {
    /// What it went through.
    pub(super) fn course(&self) -> Course<'_> {
        Course { link: self.link, place: &self.place, series: &self.series, events: &self.events }
    }
}
