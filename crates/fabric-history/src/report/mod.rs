//! The report on a window: what happened in order, who is suspect and why, what the fabric was like, and
//! what is not known. It has one shape, whoever it is told by.
//!
//! Gathered from a [`Source`] into a [`Report`], which [`html`] and [`markdown`] write down.

pub mod html;
pub mod markdown;
mod shape;
mod suspects;
mod unknown;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::model::{Moved, Then, Told, Window};
use super::source::{AskError, Source, Wanted, until_known};

pub use shape::Shape;
pub use suspects::Suspect;

/// How many suspects are told of in full; those after them are counted.
const MOST_SUSPECTS: usize = 20;

/// How many events are: more are not read.
const MOST_EVENTS: usize = 1_000;

/// How many ports with errors that nobody is suspected for.
const MOST_OTHERS: usize = 30;

/// What is told of a window.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Who told it.
    pub source: String,
    /// The window, without what lies in the future.
    pub window: Window,
    /// The fabrics at the window's beginning and at its end, by name.
    pub shapes: BTreeMap<String, [Option<Shape>; 2]>,
    /// The suspects, the worst first.
    pub suspects: Vec<Suspect>,
    /// How many more there are.
    pub more_suspects: usize,
    /// What happened, the earliest first.
    pub events: Vec<Told>,
    /// How many more events there were.
    pub more_events: usize,
    /// Errors of ports whose cables are not suspect, the most first.
    pub others: Vec<Moved>,
    /// How many more of those ports there are.
    pub more_others: usize,
    /// What is not known, in sentences.
    pub unknown: Vec<String>,
}

impl Report {
    /// Asks a source all that a report needs. `now` bounds the window, but for a source that is
    /// ahead of it; `tell` says a time as its readers do.
    pub fn of(
        source: &dyn Source,
        window: Window,
        now: SystemTime,
        tell: &dyn Fn(SystemTime) -> String,
    ) -> Result<Self, AskError> {
        let window = until_known(source, window, now)?;
        let cover = source.cover(window)?;
        let mut events = source.events(&Wanted::all(window))?;
        let moved = source.moved(window)?;
        let (before, after) = (at_beginning(source, window)?, source.fabrics(window.to)?);
        let unknown = unknown::sentences(&cover, window, &events, &after, tell);
        let mut suspects = suspects::of(&events, &moved, [&before, &after], window, tell);
        let more_suspects = suspects.len().saturating_sub(MOST_SUSPECTS);
        suspects.truncate(MOST_SUSPECTS);
        suspects::trace(source, &mut suspects, window)?;
        let (others, more_others) = others(moved, &suspects);
        let more_events = events.len().saturating_sub(MOST_EVENTS);
        events.truncate(MOST_EVENTS);
        Ok(Report {
            source: source.name(),
            window,
            shapes: shapes(&before, &after),
            suspects,
            more_suspects,
            events,
            more_events,
            others,
            more_others,
            unknown,
        })
    }

    /// The gist in a sentence or two.
    pub fn gist(&self) -> String {
        let suspects = self.suspects.len() + self.more_suspects;
        match (suspects, self.events.len() + self.more_events) {
            (0, 0) => "Nothing happened, as far as is known, and no cable is suspect.".into(),
            (0, events) => format!("No cable is suspect. Events: {events}."),
            (1, events) => format!("One cable is suspect. Events: {events}."),
            (_, events) => format!("{suspects} cables are suspect. Events: {events}."),
        }
    }
}

/// The fabrics as they were at a window's beginning, or at the first sweep, if that came later.
fn at_beginning(source: &dyn Source, window: Window) -> Result<Vec<Then>, AskError> {
    let then = source.fabrics(window.from)?;
    let first = source.span()?.first.filter(|first| then.is_empty() && window.has(*first));
    // Whoever asks by HTTP says it to the millisecond.
    first.map_or(Ok(then), |first| source.fabrics(first + Duration::from_millis(1)))
}

fn shapes(before: &[Then], after: &[Then]) -> BTreeMap<String, [Option<Shape>; 2]> {
    let mut shapes: BTreeMap<String, [Option<Shape>; 2]> = BTreeMap::new();
    for (place, then) in [before, after].into_iter().enumerate() {
        for then in then {
            shapes.entry(then.fabric.clone()).or_default()[place] = Some(Shape::of(then));
        }
    }
    shapes
}

/// The ports that counted something and are at no suspect's cable, those with the most link errors first, and
/// by all that they counted among equals.
fn others(moved: Vec<Moved>, suspects: &[Suspect]) -> (Vec<Moved>, usize) {
    let is_suspect = |moved: &Moved| {
        suspects.iter().any(|suspect| {
            suspect.fabric == moved.port.fabric && suspect.link.ends().contains(&moved.port.end())
        })
    };
    let mut others: Vec<Moved> = moved.into_iter().filter(|moved| !is_suspect(moved)).collect();
    let sum = |moved: &Moved| moved.sums.iter().map(|sum| u128::from(sum.by)).sum::<u128>();
    let rank = |moved: &Moved| std::cmp::Reverse((moved.link_errors(), sum(moved)));
    others.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.port.cmp(&b.port)));
    let more = others.len().saturating_sub(MOST_OTHERS);
    others.truncate(MOST_OTHERS);
    (others, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::model::{Series, Step};
    use crate::source::Canned;
    use ib_fabric::topology::LinkId;

    fn report(source: &Canned) -> Report {
        let from = SystemTime::UNIX_EPOCH;
        let window = Window { from, to: from + Duration::from_secs(3600) };
        Report::of(source, window, window.to, &|_| "then".into()).unwrap()
    }

    fn evidence(suspect: &Suspect) -> String {
        suspect.evidence.join("\n")
    }

    /// A bad cable at whose port another one is by the end of the window.
    #[test]
    fn errors_of_a_cable_that_was_replaced_are_held_against_it() {
        let [port, was, is] = ["leaf", "host", "next"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(port.end(), was.end());
        let source = Canned {
            events: vec![Canned::event(Kind::Flap, Some(id), &port)],
            moved: vec![Canned::counted(&port, Some(&is), 4_711)],
            ..Canned::default()
        };
        let report = report(&source);
        let told = evidence(&report.suspects[0]);
        assert!(told.contains("leaf port 1 counted 4711 symbol_errors"), "{told}");
        assert!(report.others.is_empty());
    }

    /// One net that is watched by two devices has each of its cables in two fabrics.
    #[test]
    fn what_two_fabrics_tell_of_the_same_guids_is_counted_once() {
        let mut source = Canned::default();
        for fabric in ["one", "two"] {
            let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port(fabric, node, 1));
            let id = LinkId::between(a.end(), b.end());
            source.events.push(Canned::event(Kind::Flap, Some(id), &a));
            source.moved.push(Canned::counted(&a, Some(&b), 3));
            let (from, counter) = (SystemTime::UNIX_EPOCH, ib_mad::Counter::SymbolErrors);
            let steps = vec![Step { from, to: from, by: 3 }];
            source.series.push(Series { port: a.clone(), counter, steps });
        }
        let report = report(&source);
        assert_eq!(report.suspects.len(), 2);
        for (suspect, fabric) in report.suspects.iter().zip(["one", "two"]) {
            let told = evidence(suspect);
            assert!(told.contains("by its own fault at then"), "{told}");
            assert_eq!(told.matches(" counted 3 ").count(), 1, "{told}");
            let of: Vec<&str> = suspect.series.iter().map(|it| it.port.fabric.as_str()).collect();
            assert_eq!(of, [fabric]);
        }
    }

    /// Another program's answer may have any name in it.
    #[test]
    fn a_name_of_several_lines_is_one_line_of_a_course() {
        let [a, b] = ["a\nb\u{1b}[2J", "bbbb"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(a.end(), b.end());
        let (from, counter) = (SystemTime::UNIX_EPOCH, ib_mad::Counter::SymbolErrors);
        let steps = vec![Step { from, to: from, by: 3 }];
        let source = Canned {
            events: vec![Canned::event(Kind::Flap, Some(id), &a)],
            series: vec![Series { port: a, counter, steps }],
            ..Canned::default()
        };
        let page = markdown::write(&report(&source), &crate::clock::Clock::now());
        assert!(page.contains("errors at a b \\[2J port 1\n"), "{page}");
        assert!(!page.contains('\u{1b}'), "{page}");
    }

    /// An afternoon of flapping is not a page of sentences.
    #[test]
    fn a_link_that_went_down_a_thousand_times_is_told_shortly() {
        let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(a.end(), b.end());
        let kinds = [Kind::Flap, Kind::LinkDown, Kind::LinkUp, Kind::Rate];
        let events = (0..1_000).flat_map(|_| kinds).map(|kind| Canned::event(kind, Some(id), &a));
        let source = Canned { events: events.collect(), ..Canned::default() };
        let report = report(&source);
        let told = evidence(&report.suspects[0]);
        assert!(told.lines().count() < 30, "{}", told.lines().count());
        assert!(told.contains("It was seen down: 990 more times."), "{told}");
        assert!(told.contains("It ran at another rate: 990 more times."), "{told}");
    }
}
