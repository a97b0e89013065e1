//! Scrapes as the series of promtool's unit tests: values a minute apart, with runs shortened.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use exposition::Part;

use super::host::Minute;

/// The values of a series.
#[derive(Debug, Default)]
struct Series {
    text: String,
    /// The last run of values with equal differences: it is not in the text yet.
    first: f64,
    step: f64,
    length: u32,
    /// The minute after the last value.
    next: Minute,
}

impl Series {
    /// Adds a value, with none in the minutes before it.
    #[expect(clippy::float_cmp, reason = "promtool adds up the same numbers")]
    fn push(&mut self, minute: Minute, value: f64) {
        self.skip_to(minute);
        self.next += 1;
        match self.length {
            0 => self.first = value,
            1 => self.step = value - self.first,
            length if value != self.first + self.step * f64::from(length) => {
                self.end_run();
                self.first = value;
            }
            _ => {}
        }
        self.length += 1;
    }

    /// Repeats the last value so often.
    fn repeat(&mut self, count: u32) {
        let last = self.first + self.step * f64::from(self.length - 1);
        if self.length == 1 || self.step == 0.0 {
            self.step = 0.0;
        } else if count > 0 {
            self.end_run();
            (self.first, self.step) = (last, 0.0);
        }
        self.length += count;
        self.next += count;
    }

    /// Adds the marker of the end of a series.
    fn end(&mut self, minute: Minute) {
        self.skip_to(minute);
        self.end_run();
        self.next += 1;
        self.text.push_str("stale ");
    }

    fn skip_to(&mut self, minute: Minute) {
        if self.next < minute {
            self.end_run();
            write!(self.text, "_x{} ", minute - self.next).unwrap();
            self.next = minute;
        }
    }

    fn end_run(&mut self) {
        let (first, step, more) = (self.first, self.step, self.length.saturating_sub(1));
        match self.length {
            0 => return,
            1 => write!(self.text, "{first} "),
            _ if step == 0.0 => write!(self.text, "{first}x{more} "),
            _ => write!(self.text, "{first}{step:+}x{more} "),
        }
        .unwrap();
        (self.length, self.step) = (0, 0.0);
    }
}

/// A family as it was last scraped.
#[derive(Debug, Default)]
struct Family {
    samples: Vec<u8>,
    /// Its series in these samples.
    series: Vec<usize>,
    /// How often it was scraped with the same samples since.
    repeated: u32,
}

/// All series of a target.
#[derive(Debug, Default)]
pub struct Target {
    families: BTreeMap<String, Family>,
    series: Vec<Series>,
    /// The places of series by what is before their values: `name{label="value"`, without a brace at the end.
    places: HashMap<String, usize>,
}

impl Target {
    /// Adds a scrape. What is missing in it has ended.
    pub fn add(&mut self, minute: Minute, parts: &[Part<Vec<u8>>]) {
        for part in parts {
            self.set(minute, &part.family.name, &part.samples);
        }
        let is_scraped = |name: &str| parts.iter().any(|part| *part.family.name == *name);
        let ended: Vec<String> = (self.families.keys())
            .filter(|name| *name != UP && !is_scraped(name))
            .cloned()
            .collect();
        for name in ended {
            self.set(minute, &name, b"");
        }
    }

    /// Adds whether a scrape succeeded.
    pub fn add_up(&mut self, minute: Minute, is: bool) {
        self.set(minute, UP, if is { b"up 1\n" } else { b"up 0\n" });
    }

    fn set(&mut self, minute: Minute, name: &str, samples: &[u8]) {
        let family = self.families.entry(name.to_owned()).or_default();
        let is_next =
            family.series.iter().all(|&it| self.series[it].next + family.repeated == minute);
        if family.samples == samples && is_next {
            family.repeated += 1;
            return;
        }
        let mut family = std::mem::take(family);
        self.write_repeated(&mut family);
        let before = std::mem::take(&mut family.series);
        for line in std::str::from_utf8(samples).unwrap().lines() {
            let (head, value) = line.rsplit_once(' ').unwrap();
            let head = head.strip_suffix('}').unwrap_or(head);
            let place = self.places.get(head).copied().unwrap_or_else(|| {
                self.series.push(Series::default());
                self.places.insert(head.to_owned(), self.series.len() - 1);
                self.series.len() - 1
            });
            self.series[place].push(minute, value.parse().unwrap());
            family.series.push(place);
        }
        for place in before.into_iter().filter(|place| !family.series.contains(place)) {
            self.series[place].end(minute);
        }
        family.samples = samples.to_vec();
        self.families.insert(name.to_owned(), family);
    }

    fn write_repeated(&mut self, family: &mut Family) {
        for &place in &family.series {
            self.series[place].repeat(family.repeated);
        }
        family.repeated = 0;
    }

    /// The series with more labels, and their values.
    pub fn finish(mut self, labels: &str) -> Vec<(String, String)> {
        for mut family in std::mem::take(&mut self.families).into_values() {
            self.write_repeated(&mut family);
        }
        self.series.iter_mut().for_each(Series::end_run);
        let named = self.places.into_iter().map(|(head, place)| {
            let comma = if head.contains('{') { "," } else { "{" };
            let values = std::mem::take(&mut self.series[place].text);
            (format!("{head}{comma}{labels}}}"), values)
        });
        let mut all: Vec<_> = named.collect();
        all.sort_unstable();
        all
    }
}

/// The metric of Prometheus itself.
const UP: &str = "up";

/// A series whose values are set for ranges of minutes.
pub fn of_ranges(ranges: &[(std::ops::Range<Minute>, f64)]) -> String {
    let mut series = Series::default();
    for (minutes, value) in ranges.iter().filter(|(minutes, _)| !minutes.is_empty()) {
        if series.next > 0 && series.next < minutes.start {
            series.end(series.next);
        }
        minutes.clone().for_each(|minute| series.push(minute, *value));
    }
    series.end(series.next);
    series.text
}
