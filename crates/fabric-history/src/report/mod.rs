//! The report on a window: events in order, suspect links with evidence, the fabric at both ends of the
//! window, and what data is missing: readers take what is silently left out for what did not happen.
//!
//! [`Report`] is computed from any [`Source`]; [`html`] and [`markdown`] write it.

pub mod html;
pub mod markdown;
mod suspects;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::EventKind;
use crate::local_clock::LocalClock;
use crate::model::{Cable, Coverage, ErrorDelta, Event, FabricState, Port, Window};
use crate::source::{Answer, EventFilter, Source, until_known};
use ib_health::Verdict;
use ib_mad::label;

pub use suspects::Suspect;

/// Suspects in the report; further ones are only counted.
const MAX_SUSPECTS: usize = 20;

/// Events in the report; further ones are only counted.
const MAX_EVENTS: usize = 1_000;

/// Ports with errors that do not belong to a suspect.
const MAX_OTHERS: usize = 30;

/// Formats times for readers.
type FormatTime<'a> = &'a dyn Fn(SystemTime) -> String;

/// The report on a window.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of its source.
    pub source: String,
    /// The window, without its future part.
    pub window: Window,
    /// The fabrics at the window's beginning and at its end, by name.
    #[serde(rename = "shapes")]
    pub summaries: BTreeMap<String, [Option<FabricSummary>; 2]>,
    /// The suspects, the worst first.
    pub suspects: Vec<Suspect>,
    /// How many more there are.
    pub more_suspects: usize,
    /// Events, the earliest first.
    pub events: Vec<Event>,
    /// How many more events there were.
    pub more_events: usize,
    /// Errors of ports whose cables are not suspect, those with the most errors first.
    pub others: Vec<ErrorDelta>,
    /// How many more of those ports there are.
    pub more_others: usize,
    /// What data is missing, in sentences.
    pub unknown: Vec<String>,
}

impl Report {
    /// Computes the report from a source. The window ends at `now` at the latest, unless the source's own
    /// clock is ahead of it; `format_time` formats times for readers.
    pub fn compute(
        source: &dyn Source,
        window: Window,
        now: SystemTime,
        format_time: FormatTime<'_>,
    ) -> Answer<Self> {
        let window = until_known(source, window, now)?;
        let cover = source.coverage(window)?;
        let mut events = source.events(&EventFilter::all(window))?;
        let moved = source.error_deltas(window)?;
        let (before, after) = (at_beginning(source, window)?, source.fabrics(window.to)?);
        let unknown = limitations(&cover, window, &events, &after, format_time);
        let mut suspects = suspects::find(&events, &moved, [&before, &after], window, format_time);
        let more_suspects = truncate(&mut suspects, MAX_SUSPECTS);
        suspects::read_series(source, &mut suspects, window)?;
        let mut others = others(moved, &suspects);
        let more_others = truncate(&mut others, MAX_OTHERS);
        let more_events = truncate(&mut events, MAX_EVENTS);
        Ok(Report {
            source: source.name(),
            window,
            summaries: summaries(&before, &after),
            suspects,
            more_suspects,
            events,
            more_events,
            others,
            more_others,
            unknown,
        })
    }

    /// A summary in a few words.
    pub fn summary(&self) -> String {
        let suspects = self.suspects.len() + self.more_suspects;
        let events = self.events.len() + self.more_events;
        format!("{}, {}", label::plural(suspects, "suspect link"), label::plural(events, "event"))
    }

    /// Its sections after the summary.
    fn sections(&self, clock: &LocalClock) -> Vec<Section<'_>> {
        let text = |text: &str| Section::Text(text.to_owned());
        let not_listed = |more, noun, how| {
            let text = format!("Not listed: {} {how}.", label::plural(more, noun));
            (more > 0).then_some(Section::Text(text))
        };
        let mut all = vec![Section::Heading("Suspect links")];
        if self.suspects.is_empty() {
            all.push(text("None."));
        }
        all.extend(self.suspects.iter().map(Section::Suspect));
        all.extend(not_listed(self.more_suspects, "more suspect link", "of lower rank"));
        all.push(Section::Heading("Events"));
        if self.events.is_empty() {
            all.push(text("None recorded."));
        } else {
            let row = |event: &Event| {
                let (kind, place) = (event.kind.clone(), event.place.clone());
                vec![clock.format(event.at), kind, place, event.text.clone()]
            };
            let head = ["time", "kind", "location", "description"];
            let rows = self.events.iter().map(row).collect();
            all.push(Section::Table(head.into(), &["when", "what"], rows));
        }
        all.extend(not_listed(self.more_events, "more event", "after these"));
        if !self.others.is_empty() {
            all.push(Section::Heading("Errors and discards of other ports"));
            let rows = self.others.iter().map(|moved| {
                let mut errors = suspects::list_errors(moved, &|at| clock.format(at));
                // The cause of discards.
                if let Some(event) = self.events.iter().find(|event| is_root(event, &moved.port)) {
                    errors = format!("{errors}; {}", event.text);
                }
                vec![moved.port.label(), errors]
            });
            all.push(Section::Table(["port", "counters"].into(), &[], rows.collect()));
            all.extend(not_listed(self.more_others, "more port", "with fewer errors"));
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
}

/// Whether an event says that a port is the root of a congestion.
fn is_root(event: &Event, port: &Port) -> bool {
    event.kind == EventKind::CongestionStart.label()
        && event.fabric == port.fabric
        && event.node.zip(event.port) == Some(port.end())
}

/// A section of the report, which each format writes in its own markup.
enum Section<'a> {
    Heading(&'static str),
    Text(String),
    List(&'a [String]),
    Suspect(&'a Suspect),
    /// The names of columns, what the cells of the first ones are in a page (their class), and the rows.
    Table(Vec<&'a str>, &'static [&'static str], Vec<Vec<String>>),
}

/// Shortens a list; returns by how many elements.
fn truncate<T>(list: &mut Vec<T>, max: usize) -> usize {
    let more = list.len().saturating_sub(max);
    list.truncate(max);
    more
}

/// The fabrics at a window's beginning, or at the first sweep, if that came later.
fn at_beginning(source: &dyn Source, window: Window) -> Answer<Vec<FabricState>> {
    let then = source.fabrics(window.from)?;
    let first = source.span()?.first.filter(|first| then.is_empty() && window.has(*first));
    // Over HTTP times have milliseconds.
    first.map_or(Ok(then), |first| source.fabrics(first + Duration::from_millis(1)))
}

fn summaries(
    before: &[FabricState],
    after: &[FabricState],
) -> BTreeMap<String, [Option<FabricSummary>; 2]> {
    let mut summaries: BTreeMap<String, [Option<FabricSummary>; 2]> = BTreeMap::new();
    for (index, fabrics) in [before, after].into_iter().enumerate() {
        for then in fabrics {
            let states = summaries.entry(then.fabric.clone()).or_default();
            states[index] = Some(FabricSummary::of(then));
        }
    }
    summaries
}

/// The ports that counted errors and are at no suspect's cable, ordered by link errors, and then by all errors,
/// the most first.
fn others(moved: Vec<ErrorDelta>, suspects: &[Suspect]) -> Vec<ErrorDelta> {
    let is_suspect = |moved: &ErrorDelta| {
        suspects.iter().any(|suspect| {
            suspect.fabric == moved.port.fabric && suspect.link.ends().contains(&moved.port.end())
        })
    };
    let mut others: Vec<ErrorDelta> =
        moved.into_iter().filter(|moved| !is_suspect(moved)).collect();
    let sum = |moved: &ErrorDelta| moved.sums.iter().map(|sum| u128::from(sum.by)).sum::<u128>();
    let rank = |moved: &ErrorDelta| std::cmp::Reverse((moved.link_errors(), sum(moved)));
    others.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.port.cmp(&b.port)));
    others
}

/// The nodes and cables of a fabric at a time, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FabricSummary {
    /// The time of the sweep.
    #[serde(with = "crate::model::text")]
    pub at: SystemTime,
    /// Nodes by kind: all, and those that responded.
    pub nodes: BTreeMap<String, (usize, usize)>,
    /// Cables: all, and those that carried traffic.
    pub cables: (usize, usize),
    /// Cables by verdict.
    pub verdicts: BTreeMap<&'static str, usize>,
    /// Cables by rate.
    pub rates: BTreeMap<String, usize>,
}

impl FabricSummary {
    /// Counts a fabric.
    pub fn of(then: &FabricState) -> Self {
        let mut nodes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for node in &then.nodes {
            let (all, up) = nodes.entry(node.kind.clone()).or_default();
            *all += 1;
            *up += usize::from(node.up);
        }
        let up = then.cables.iter().filter(|cable| cable.up == Some(true)).count();
        let (mut verdicts, mut rates) = (BTreeMap::new(), BTreeMap::new());
        for cable in &then.cables {
            *verdicts.entry(cable.verdict.label()).or_default() += 1;
            if let Some(rate) = &cable.rate {
                *rates.entry(rate.clone()).or_default() += 1;
            }
        }
        FabricSummary { at: then.at, nodes, cables: (then.cables.len(), up), verdicts, rates }
    }

    /// Table rows: a name, and a count.
    fn rows(&self) -> Vec<(String, String)> {
        let mut rows: Vec<(String, String)> = (self.nodes.iter())
            .map(|(kind, counts)| (format!("nodes: {kind}"), of_all(*counts, "unresponsive")))
            .collect();
        rows.push(("links".into(), of_all(self.cables, "not up")));
        rows.extend(
            self.rates.iter().map(|(rate, count)| (format!("links at {rate}"), count.to_string())),
        );
        rows.extend(self.verdicts.iter().map(|(label, count)| {
            (format!("links with verdict {}", Verdict::word(label)), count.to_string())
        }));
        rows
    }
}

fn of_all((all, up): (usize, usize), otherwise: &str) -> String {
    match all - up {
        0 => all.to_string(),
        down => format!("{all}, {down} {otherwise}"),
    }
}

/// The rows of two times side by side: a name, and both counts.
fn side_by_side(states: &[Option<FabricSummary>; 2]) -> Vec<Vec<String>> {
    let tables = states.each_ref().map(|state| state.as_ref().map(FabricSummary::rows));
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in tables.iter().flatten().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let count = |rows: &Option<Vec<(String, String)>>, name: &String| {
        let Some(rows) = rows else { return "unknown".to_owned() };
        let found = rows.iter().find(|(known, _)| known == name);
        found.map_or("0".to_owned(), |(_, count)| count.clone())
    };
    let row = |name: &String| vec![name.clone(), count(&tables[0], name), count(&tables[1], name)];
    names.into_iter().map(row).collect()
}

/// Sentences of one kind; further ones are only counted.
const MAX_OF_A_KIND: usize = 10;

/// What data is missing, in sentences.
fn limitations(
    cover: &Coverage,
    window: Window,
    events: &[Event],
    after: &[FabricState],
    format_time: FormatTime<'_>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if cover.fabrics.is_empty() {
        sentences.push("Nothing was recorded in this period.".into());
    }
    for (fabric, known) in &cover.fabrics {
        let gaps = known.gaps.iter().map(|gap| {
            format!(
                "{fabric}: no sweep from {} to {}. Counter increases of this gap appear in the first sweep \
                 after it; links that went down and up again in the gap may be missing.",
                format_time(gap.from),
                format_time(gap.to)
            )
        });
        push_some(&mut sentences, gaps, &format!("{fabric}: gaps without a sweep"));
        match known.traffic_from {
            None if known.sweeps > 0 => {
                sentences.push(format!("{fabric}: no traffic per sweep is available."));
            }
            Some(from) if known.is_swept_before(from, window) => sentences.push(format!(
                "{fabric}: traffic per sweep is available from {} on; before that, per hour at most.",
                format_time(from)
            )),
            _ => {}
        }
    }
    if cover.damaged > 0 {
        sentences.push(format!(
            "The counters of {} are damaged and cannot be read.",
            label::plural(cover.damaged, "sweep")
        ));
    }
    for (kind, meaning) in [
        (
            EventKind::ExporterStart,
            "the exporter started; it does not count earlier flaps, nor report links and nodes that were already down.",
        ),
        (EventKind::SweepFailed, "sweeps of the fabric fail until the next sweep_recovered event."),
        (
            EventKind::CounterReset,
            "counters were cleared or reset; errors between the previous sweep and this one are unknown.",
        ),
        (EventKind::CounterSaturated, "a counter is saturated; its total is a lower bound."),
    ] {
        let matching = events.iter().filter(|event| event.kind == kind.label());
        let line = |event: &Event| format!("{}, {}: {meaning}", format_time(event.at), event.place);
        push_some(&mut sentences, matching.map(line), kind.label());
    }
    let unresponsive = unresponsive_nodes(events, format_time);
    push_some(&mut sentences, unresponsive, "nodes that did not respond");
    for then in after {
        let is_unknown = |cable: &&Cable| cable.verdict == Verdict::Unknown;
        let count = then.cables.iter().filter(is_unknown).count();
        if count > 0 {
            sentences.push(format!(
                "{}: the verdict is unknown for {count} of {}.",
                then.fabric,
                label::plural(then.cables.len(), "link")
            ));
        }
    }
    sentences
}

/// The times in which nodes did not respond.
fn unresponsive_nodes(events: &[Event], format_time: FormatTime<'_>) -> Vec<String> {
    let mut unresponsive: BTreeMap<_, SystemTime> = BTreeMap::new();
    let mut sentences = Vec::new();
    for event in events {
        let Some(node) = event.node else { continue };
        if event.kind == EventKind::NodeDown.label() {
            unresponsive.insert((node, event.place.clone()), event.at);
        } else if event.kind == EventKind::NodeUp.label()
            && let Some(since) = unresponsive.remove(&(node, event.place.clone()))
        {
            sentences.push(format!(
                "{} did not respond from {} to {}; counter increases of that time appear in the \
                 first reading after it.",
                event.place,
                format_time(since),
                format_time(event.at)
            ));
        }
    }
    let still = unresponsive.into_iter().map(|((_, place), since)| {
        format!("{place} did not respond from {} on.", format_time(since))
    });
    sentences.extend(still);
    sentences
}

/// Adds up to [`MAX_OF_A_KIND`] sentences, and the number of further ones.
fn push_some(sentences: &mut Vec<String>, lines: impl IntoIterator<Item = String>, what: &str) {
    let mut lines = lines.into_iter();
    sentences.extend(lines.by_ref().take(MAX_OF_A_KIND));
    match lines.count() {
        0 => {}
        more => sentences.push(format!("{what}: {more} more.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;
    use crate::model::{Series, Step};
    use crate::testing::Canned;
    use ib_fabric::topology::LinkId;

    fn report(source: &Canned) -> Report {
        let from = SystemTime::UNIX_EPOCH;
        let window = Window { from, to: from + Duration::from_secs(3600) };
        Report::compute(source, window, window.to, &|_| "then".into()).unwrap()
    }

    fn evidence(suspect: &Suspect) -> String {
        suspect.evidence.join("\n")
    }

    /// At the end of the window the bad cable's port has another cable.
    #[test]
    fn replaced_cable_keeps_its_errors() {
        let [port, was, is] = ["leaf", "host", "next"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(port.end(), was.end());
        let source = Canned {
            events: vec![Canned::event(EventKind::Flap, Some(id), &port)],
            moved: vec![Canned::counted(&port, Some(&is), 4_711)],
            ..Canned::default()
        };
        let report = report(&source);
        let text = evidence(&report.suspects[0]);
        assert!(text.contains("leaf port 1 counted 4711 symbol_errors"), "{text}");
        assert!(report.others.is_empty());
    }

    /// A subnet that is monitored by two devices has each of its cables in two fabrics.
    #[test]
    fn same_guids_in_two_fabrics_are_counted_once_each() {
        let mut source = Canned::default();
        for fabric in ["one", "two"] {
            let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port(fabric, node, 1));
            let id = LinkId::between(a.end(), b.end());
            source.events.push(Canned::event(EventKind::Flap, Some(id), &a));
            source.moved.push(Canned::counted(&a, Some(&b), 3));
            let (from, counter) = (SystemTime::UNIX_EPOCH, ib_mad::Counter::SymbolErrors);
            let steps = vec![Step { from, to: from, by: 3 }];
            source.series.push(Series { port: a.clone(), counter, steps });
        }
        let report = report(&source);
        assert_eq!(report.suspects.len(), 2);
        for (suspect, fabric) in report.suspects.iter().zip(["one", "two"]) {
            let text = evidence(suspect);
            assert!(text.contains("went down unexpectedly at then"), "{text}");
            assert_eq!(text.matches(" counted 3 ").count(), 1, "{text}");
            let of: Vec<&str> = suspect.series.iter().map(|it| it.port.fabric.as_str()).collect();
            assert_eq!(of, [fabric]);
        }
    }

    /// The response of another program may contain any name.
    #[test]
    fn name_with_line_breaks_stays_on_one_line() {
        let [a, b] = ["a\nb\u{1b}[2J", "bbbb"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(a.end(), b.end());
        let (from, counter) = (SystemTime::UNIX_EPOCH, ib_mad::Counter::SymbolErrors);
        let steps = vec![Step { from, to: from, by: 3 }];
        let source = Canned {
            events: vec![Canned::event(EventKind::Flap, Some(id), &a)],
            series: vec![Series { port: a, counter, steps }],
            ..Canned::default()
        };
        let page = markdown::write(&report(&source), &LocalClock::now());
        assert!(page.contains("errors at a b \\[2J port 1\n"), "{page}");
        assert!(!page.contains('\u{1b}'), "{page}");
    }

    #[test]
    fn cause_of_discards_is_named() {
        let [root, other] = ["aaaa", "bbbb"].map(|node| Canned::port("fab", node, 1));
        let mut start = Canned::event(EventKind::CongestionStart, None, &root);
        start.text = "congestion root: 5 ports waiting".into();
        let moved = [&root, &other].map(|port| Canned::counted(port, None, 7));
        let source = Canned { events: vec![start], moved: moved.into(), ..Canned::default() };
        let page = markdown::write(&report(&source), &LocalClock::now());
        let lines: Vec<&str> = page.lines().filter(|line| line.contains("7 symbol")).collect();
        assert!(lines[0].ends_with("; congestion root: 5 ports waiting |"), "{page}");
        assert!(!lines[1].contains("congestion"), "{page}");
    }

    #[test]
    fn evidence_of_a_thousand_flaps_stays_short() {
        let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(a.end(), b.end());
        let kinds =
            [EventKind::Flap, EventKind::LinkDown, EventKind::LinkUp, EventKind::RateChanged];
        let events = (0..1_000).flat_map(|_| kinds).map(|kind| Canned::event(kind, Some(id), &a));
        let source = Canned { events: events.collect(), ..Canned::default() };
        let report = report(&source);
        let text = evidence(&report.suspects[0]);
        assert!(text.lines().count() < 30, "{}", text.lines().count());
        assert!(text.contains("Link downs: 990 more."), "{text}");
        assert!(text.contains("Rate changed at "), "{text}");
        assert!(text.contains("Rate changes: 990 more."), "{text}");
    }
}
