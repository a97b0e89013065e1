//! The findings of a period: the incidents that need attention, the most harmful first, with evidence.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::EventKind;
use crate::host_scope::Relation;
use crate::incidents::{Incident, Incidents, Severity};
use crate::model::{Cable, ErrorDelta, Event, FabricState, Series, Window};
use crate::plot::LinkTimeline;
use crate::report::link_evidence::LinkEvidence;
use crate::report::sentences::FormatTime;
use crate::source::{Answer, EventFilter, SeriesDetail, Source};
use display_text::{grouped, plural};
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_health::outage::duration;
use ib_mad::PortKey;

/// An incident that needs attention.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What happened, when, where and why, and what to do.
    #[serde(flatten)]
    pub incident: Incident,
    /// What it has to do with the hosts that the report is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// The cable or modules of its link, at the latest verdict that knew them.
    pub modules: Vec<PluggedModule>,
    /// Evidence, in sentences.
    pub evidence: Vec<String>,
    /// What happened after it, in a sentence.
    pub since_then: String,
    /// The counters of both ends of its link.
    pub series: Vec<Series>,
    /// The events of its link in the period.
    #[serde(skip)]
    timeline: Vec<Event>,
}

/// A cable or module, as a port reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluggedModule {
    /// The port.
    pub port: String,
    /// Its part number.
    pub part: String,
    /// Its serial number.
    pub serial: String,
}

impl Finding {
    /// What it has to do with the hosts of the report, in a sentence.
    pub(super) fn relation_text(&self) -> Option<&'static str> {
        Some(match self.relation? {
            Relation::Own => "It is at one of the hosts.",
            Relation::Crossed => "The traffic between the hosts may have crossed it.",
            Relation::Fabric => "It concerns the whole fabric.",
        })
    }

    /// Its counters and events, of one about a link.
    pub(super) fn timeline(&self) -> Option<LinkTimeline<'_>> {
        let Incident { place, link, .. } = &self.incident;
        Some(LinkTimeline { link: (*link)?, place, series: &self.series, events: &self.timeline })
    }

    /// When: from when to when, and for how long.
    pub(super) fn when(&self, window: Window, format_time: FormatTime<'_>) -> String {
        let Incident { began, began_earlier, ended, .. } = &self.incident;
        let began_text = format_time(*began);
        let length = self.incident.length(window.to);
        let length = duration(Duration::from_secs(length.as_secs()));
        match ended {
            Some(_) if length == "0.0s" && !began_earlier => format!("At {began_text}."),
            Some(end) if *began_earlier => {
                format!("From before {began_text} to {}.", format_time(*end))
            }
            Some(end) => format!("From {began_text} to {} ({length}).", format_time(*end)),
            None if *began_earlier => format!("Since before {began_text}; it lasts."),
            None => format!("Since {began_text}; it lasts, for {length} so far."),
        }
    }
}

/// A link that goes down and has another cable within this time did not flap: a technician worked on it.
const REPLACED_WITHIN: Duration = Duration::from_secs(30 * 60);

/// What is read for the findings of a period.
pub(super) struct Period<'a> {
    pub window: Window,
    pub moved: &'a [ErrorDelta],
    pub after: &'a [FabricState],
    pub format_time: FormatTime<'a>,
}

/// Takes the findings out of the incidents, the most harmful first, and returns how many more there are.
pub(super) fn take(
    source: &dyn Source,
    found: &mut Incidents,
    most: usize,
    period: &Period<'_>,
) -> Answer<(Vec<Finding>, usize)> {
    let (mut findings, others): (Vec<Incident>, Vec<Incident>) =
        std::mem::take(&mut found.incidents)
            .into_iter()
            .partition(|incident| incident.severity > Severity::Info);
    found.incidents = others;
    findings.sort_by(|a, b| b.harm.cmp(&a.harm).then_with(|| a.began.cmp(&b.began)));
    let more = findings.len().saturating_sub(most);
    findings.truncate(most);
    let ends: Vec<PortKey> =
        findings.iter().filter_map(|incident| incident.link).flat_map(LinkId::ends).collect();
    let (mut events, mut series) = (Vec::new(), Vec::new());
    if !ends.is_empty() {
        events = source
            .events(&EventFilter { ports: ends.clone(), ..EventFilter::all(period.window) })?;
        series = source.series(&ends, SeriesDetail::All, period.window)?;
    }
    let finding = |incident| finding(incident, &events, &series, period);
    Ok((findings.into_iter().map(finding).collect(), more))
}

fn finding(
    incident: Incident,
    events: &[Event],
    series: &[Series],
    period: &Period<'_>,
) -> Finding {
    let since_then = since_then(&incident, period);
    let Some(link) = incident.link else {
        let evidence = evidence_of_events(&incident);
        let (modules, series, timeline) = Default::default();
        return Finding {
            incident,
            relation: None,
            modules,
            evidence,
            since_then,
            series,
            timeline,
        };
    };
    let ends = link.ends();
    let is_of_link = |event: &&Event| event.fabric == incident.fabric && event.link == Some(link);
    let mut timeline: Vec<Event> = events.iter().filter(is_of_link).cloned().collect();
    let is_replacement = |event: &&Event| {
        let of_end = event.port_key().is_some_and(|end| ends.contains(&end));
        of_end && event.kind == EventKind::CableChanged.label()
    };
    let replaced: Vec<SystemTime> =
        events.iter().filter(is_replacement).map(|event| event.at).collect();
    timeline.retain(|event| {
        let since = |at: &SystemTime| at.duration_since(event.at).ok();
        let is_work = replaced.iter().filter_map(since).any(|since| since < REPLACED_WITHIN);
        event.kind != EventKind::Flap.label() || !is_work
    });
    let of_ends = series
        .iter()
        .filter(|it| it.port.fabric == incident.fabric && ends.contains(&it.port.end()));
    let mut series: Vec<Series> = of_ends.cloned().collect();
    series.sort_by_key(|series| series.port.end());
    // By port, not by cable: a port's cable may have been replaced since it counted.
    let moved = period.moved.iter();
    let is_of_ends =
        |it: &&ErrorDelta| it.port.fabric == incident.fabric && ends.contains(&it.port.end());
    let evidence = LinkEvidence {
        events: &timeline,
        moved: moved.filter(is_of_ends).collect(),
        window: period.window,
        format_time: period.format_time,
    };
    let evidence = evidence.sentences();
    let modules = modules(timeline.iter().chain(&incident.events));
    Finding { incident, relation: None, modules, evidence, since_then, series, timeline }
}

/// The modules that the latest of these events knows; before they were replaced.
fn modules<'a>(events: impl Iterator<Item = &'a Event> + Clone) -> Vec<PluggedModule> {
    let replaced = events.clone().filter(|event| event.kind == EventKind::CableChanged.label());
    let replaced = replaced.map(|event| event.at).min();
    let earlier = events.filter(|event| replaced.is_none_or(|replaced| event.at < replaced));
    let known = earlier.filter_map(|event| {
        let read = serde_json::from_value::<Vec<PluggedModule>>(event.detail["modules"].clone());
        Some((event.at, read.ok().filter(|modules| !modules.is_empty())?))
    });
    let latest = known.max_by_key(|(at, _)| *at).map(|(_, modules)| modules).unwrap_or_default();
    let mut modules: Vec<PluggedModule> = Vec::new();
    for module in latest {
        // A cable reports one serial number at both of its ends.
        match modules.iter_mut().find(|known| known.serial == module.serial) {
            Some(known) => known.port = format!("{} and {}", known.port, module.port),
            None => modules.push(module),
        }
    }
    modules
}

/// What was counted of other incidents, and the different things that devices reported.
fn evidence_of_events(incident: &Incident) -> Vec<String> {
    let counts: Vec<String> = (incident.counts.iter())
        .map(|(kind, count)| format!("{} {kind}", grouped(*count)))
        .collect();
    let mut sentences = vec![format!("Events: {}.", counts.join(", "))];
    sentences.extend(incident.events.iter().rev().find_map(waiting));
    let mut reasons: Vec<&str> = Vec::new();
    for event in
        incident.events.iter().filter(|event| event.kind == EventKind::LinkDownReason.label())
    {
        if !reasons.contains(&&*event.text) {
            reasons.push(&event.text);
        }
    }
    if !reasons.is_empty() {
        sentences.push(format!("Ports reported: {}.", reasons.join("; ")));
    }
    sentences
}

/// Who waited in a congestion, and what was discarded, by the event of its end, or else of its start.
fn waiting(event: &Event) -> Option<String> {
    let names: Vec<&str> =
        event.detail["victims"].as_array()?.iter().filter_map(|it| it.as_str()).collect();
    let more = event.detail["victim_count"].as_u64()?.saturating_sub(names.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let discarded = event.detail["discarded_packets"].as_u64().filter(|packets| *packets > 0);
    let discarded = discarded.map_or_else(String::new, |packets| {
        format!(" The root discarded {}.", plural(packets, "packet"))
    });
    let waiting = if names.is_empty() { "not recorded".into() } else { names.join(", ") };
    Some(format!("Waiting: {waiting}{more}.{discarded}"))
}

/// What happened after an incident, until the end of the period.
fn since_then(incident: &Incident, period: &Period<'_>) -> String {
    let cable = incident.link.and_then(|link| cable(period.after, &incident.fabric, link));
    let replaced =
        incident.events.iter().rfind(|event| event.kind == EventKind::CableChanged.label());
    let replaced = replaced.map(|event| {
        format!(
            "The cable or module was replaced at {} ({}). ",
            (period.format_time)(event.at),
            event.text
        )
    });
    let replaced = replaced.unwrap_or_default();
    let Some(ended) = incident.ended else {
        let now = match cable {
            Some(cable) if cable.verdict >= Verdict::Watch => {
                let verdict = Verdict::word(cable.verdict.label());
                format!(
                    ": the link is {verdict}{}",
                    if cable.up == Some(false) { " and down" } else { "" }
                )
            }
            Some(cable) if cable.up == Some(false) => ": the link is down".to_owned(),
            _ => String::new(),
        };
        return format!("{replaced}It lasts at the end of the period{now}.");
    };
    let length = period.window.to.duration_since(ended).unwrap_or_default();
    let length = duration(Duration::from_secs(length.as_secs()));
    let state = match (incident.link, cable) {
        (None, _) => "Over".to_owned(),
        (Some(_), None) => "The link is no longer part of the fabric".to_owned(),
        (Some(_), Some(cable)) => match cable.verdict {
            Verdict::Ok => "The link is ok".to_owned(),
            // Another cable has to be observed for some time first.
            _ if cable.up == Some(true) => "The link is up and without new errors".to_owned(),
            verdict => format!("The link is {}", Verdict::word(verdict.label())),
        },
    };
    format!("{replaced}{state} since {} ({length}).", (period.format_time)(ended))
}

fn cable<'a>(after: &'a [FabricState], fabric: &str, link: LinkId) -> Option<&'a Cable> {
    let state = after.iter().find(|state| state.fabric == fabric)?;
    state.cables.binary_search_by_key(&link, Cable::link).ok().and_then(|at| state.cables.get(at))
}

/// A summary of findings by kind: `1 switch down, 2 bad links`.
pub(super) fn count(findings: &[Finding]) -> String {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for finding in findings {
        let noun = finding.incident.kind.noun();
        match counts.iter_mut().find(|(known, _)| *known == noun) {
            Some((_, count)) => *count += 1,
            None => counts.push((noun, 1)),
        }
    }
    let counts = counts.into_iter().map(|(noun, count)| plural(count, noun));
    counts.collect::<Vec<_>>().join(", ")
}
