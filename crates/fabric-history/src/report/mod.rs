//! The report on a period: its findings with evidence, the most harmful first, its other incidents, errors of other
//! ports, the fabric at both ends of the period, and what data is missing: readers take what is silently left out for
//! what did not happen.
//!
//! [`Report`] is computed from any [`Source`]; [`html`] and [`markdown`] write it.

mod fabric_summary;
mod finding;
mod hosts;
pub mod html;
mod link_evidence;
pub mod markdown;
mod missing;
mod sentences;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::host_scope::HostScope;
use crate::incidents::{Incident, Incidents, MAX_INCIDENTS, at_beginning};
use crate::local_clock::LocalClock;
use crate::model::{ErrorDelta, Port, Window};
use crate::source::{Answer, EventFilter, Source, until_known};
use display_text::{grouped, plural};
use ib_fabric::topology::LinkId;

use fabric_summary::{side_by_side, summaries};
use sentences::FormatTime;

pub use fabric_summary::FabricSummary;
pub use finding::{Finding, PluggedModule};
pub use hosts::ReportedHosts;

/// Findings in the report; further ones are only counted.
const MAX_FINDINGS: usize = 20;

/// Other incidents in the report; further ones are only counted.
const MAX_OTHER_INCIDENTS: usize = 200;

/// Ports with errors that do not belong to a finding.
const MAX_OTHERS: usize = 30;

/// The report on a window.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of its source.
    pub source: String,
    /// The window, without its future part.
    pub window: Window,
    /// The hosts that it is limited to; `None` if it is on the whole fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<ReportedHosts>,
    /// The fabrics at the window's beginning and at its end, by name.
    #[serde(rename = "shapes")]
    pub summaries: BTreeMap<String, [Option<FabricSummary>; 2]>,
    /// The incidents that need attention, the most harmful first.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub more_findings: usize,
    /// The other incidents, the earliest first.
    pub incidents: Vec<Incident>,
    /// How many more there were.
    pub more_incidents: usize,
    /// Errors and discards of ports that are in no finding, those with the most first.
    pub others: Vec<ErrorDelta>,
    /// How many more of those ports there are.
    pub more_others: usize,
    /// What data is missing, in sentences.
    pub unknown: Vec<String>,
}

impl Report {
    /// Computes the report from a source. The window ends at `now` at the latest, unless the source's own
    /// clock is ahead of it; `format_time` formats times for readers. With `hosts` it has only what concerns them: see
    /// [`HostScope`].
    pub fn compute(
        source: &dyn Source,
        window: Window,
        hosts: Option<&[String]>,
        now: SystemTime,
        format_time: FormatTime<'_>,
    ) -> Answer<Self> {
        let window = until_known(source, window, now)?;
        let cover = source.coverage(window)?;
        let (before, after) = (at_beginning(source, window)?, source.fabrics(window.to)?);
        let mut found = Incidents::among(source, window, [&before, &after], MAX_INCIDENTS)?;
        let scope = hosts.map(|hosts| HostScope::of(hosts, &[&before[..], &after[..]].concat()));
        if let Some(scope) = &scope {
            found.incidents.retain(|incident| scope.relation(incident).is_some());
        }
        let filter = EventFilter { kinds: missing::KINDS.to_vec(), ..EventFilter::all(window) };
        let events = source.events(&filter)?;
        let unknown =
            missing::sentences(&cover, window, &events, &found.incidents, &after, format_time);
        let mut moved = source.error_deltas(window)?;
        if let Some(scope) = &scope {
            moved.retain(|moved| scope.relation_of_port(moved).is_some());
        }
        let period = finding::Period { window, moved: &moved, after: &after, format_time };
        let (mut findings, more_findings) =
            finding::take(source, &mut found, MAX_FINDINGS, &period)?;
        for finding in &mut findings {
            finding.relation = scope.as_ref().and_then(|it| it.relation(&finding.incident));
        }
        let hosts = scope.map(|scope| ReportedHosts::new(scope, &findings, &found, &moved, &cover));
        let more_incidents = found.more + truncate(&mut found.incidents, MAX_OTHER_INCIDENTS);
        let mut others = others(moved, &findings);
        let more_others = truncate(&mut others, MAX_OTHERS);
        Ok(Report {
            source: source.name(),
            window,
            hosts,
            summaries: summaries(&before, &after),
            findings,
            more_findings,
            incidents: found.incidents,
            more_incidents,
            others,
            more_others,
            unknown,
        })
    }

    /// A summary in a few words: `1 switch down, 2 bad links; 12 other incidents`.
    pub fn summary(&self) -> String {
        let findings = match self.findings.len() + self.more_findings {
            0 => "No findings".to_owned(),
            all => {
                let more = match self.more_findings {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let all = plural(all, "finding");
                format!("{all}: {}{more}", finding::count(&self.findings))
            }
        };
        let others = self.incidents.len() + self.more_incidents;
        format!("{findings}; {}", plural(others, "other incident"))
    }

    /// Its sections after the summary.
    fn sections(&self, clock: &LocalClock) -> Vec<Section<'_>> {
        let text = |text: &str| Section::Text(text.to_owned());
        let not_listed = |more, noun, how| {
            let text = format!("Not listed: {} {how}.", plural(more, noun));
            (more > 0).then_some(Section::Text(text))
        };
        let mut all = Vec::new();
        if let Some(hosts) = &self.hosts {
            all.push(Section::Heading("Hosts"));
            all.push(Section::List(&hosts.sentences));
        }
        all.push(Section::Heading("Findings"));
        if self.findings.is_empty() {
            all.push(text("None."));
        }
        all.extend(self.findings.iter().map(Section::Finding));
        all.extend(not_listed(self.more_findings, "more finding", "of lower rank"));
        all.push(Section::Heading("Other incidents"));
        if self.incidents.is_empty() {
            all.push(text("None recorded."));
        } else {
            let head = ["time", "length", "incident", "cause", "events"];
            let rows = self.incidents.iter().map(|it| Self::incident_row(it, clock)).collect();
            all.push(Section::Table(head.into(), &["when", "what"], rows));
        }
        all.extend(not_listed(self.more_incidents, "more incident", "without consequences"));
        if !self.others.is_empty() {
            all.push(Section::Heading("Errors and discards of other ports"));
            let rows = self.others.iter().map(|moved| {
                let mut errors = link_evidence::list_errors(moved, &|at| clock.format(at));
                // The cause of discards.
                if let Some(incident) = self.congestion_of(&moved.port) {
                    errors = format!("{errors}; {}", incident.title);
                }
                vec![moved.port.label(), errors]
            });
            all.push(Section::Table(["port", "counters"].into(), &[], rows.collect()));
            all.extend(not_listed(self.more_others, "more port", "with fewer errors and discards"));
        }
        all.push(Section::Heading("Fabric state"));
        if self.summaries.is_empty() {
            all.push(text("Unknown."));
        }
        for (fabric, states) in &self.summaries {
            let head = [fabric, "start of period", "end of period"];
            all.push(Section::Table(head.into(), &[], side_by_side(states)));
        }
        all.push(Section::Heading("Missing data"));
        if self.unknown.is_empty() {
            all.push(text("None."));
        } else {
            all.push(Section::List(&self.unknown));
        }
        all
    }

    fn incident_row(incident: &Incident, clock: &LocalClock) -> Vec<String> {
        let length = Some(incident.length_text()).filter(|text| !text.is_empty());
        let length = length.unwrap_or_else(|| "-".to_owned());
        let cause = incident.cause.clone().unwrap_or_default();
        let events = grouped(incident.event_count);
        vec![clock.format(incident.began), length, incident.title.clone(), cause, events]
    }

    /// The congestion of which a port was a root.
    fn congestion_of(&self, port: &Port) -> Option<&Incident> {
        let findings = self.findings.iter().map(|finding| &finding.incident);
        findings.chain(&self.incidents).find(|incident| {
            incident.fabric == port.fabric
                && incident.events.iter().any(|event| {
                    event.kind.starts_with("congestion_") && event.port_key() == Some(port.end())
                })
        })
    }
}

/// The ports that counted errors and are at the cable of no finding, those with the most errors and discards first.
fn others(moved: Vec<ErrorDelta>, findings: &[Finding]) -> Vec<ErrorDelta> {
    let is_in_finding = |moved: &ErrorDelta| {
        findings.iter().any(|finding| {
            let ends = finding.incident.link.map(LinkId::ends);
            finding.incident.fabric == moved.port.fabric
                && ends.is_some_and(|ends| ends.contains(&moved.port.end()))
        })
    };
    let mut others: Vec<ErrorDelta> =
        moved.into_iter().filter(|moved| !is_in_finding(moved)).collect();
    others.retain(|moved| moved.unexplained() > 0);
    let rank = |moved: &ErrorDelta| std::cmp::Reverse(moved.unexplained());
    others.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.port.cmp(&b.port)));
    others
}

/// A section of the report, which each format writes in its own markup.
enum Section<'a> {
    Heading(&'static str),
    Text(String),
    List(&'a [String]),
    Finding(&'a Finding),
    /// The names of columns, what the cells of the first ones are in a page (their class), and the rows.
    Table(Vec<&'a str>, &'static [&'static str], Vec<Vec<String>>),
}

/// Shortens a list; returns by how many elements.
fn truncate<T>(list: &mut Vec<T>, max: usize) -> usize {
    let more = list.len().saturating_sub(max);
    list.truncate(max);
    more
}
