//! A scrape's text, parsed without the code under test.
//!
//! The text format 0.0.4 only: `name{label="value"} number [timestamp]` and comments.

use std::collections::BTreeMap;

/// One line of a scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The metric's name, suffixes such as `_total` included.
    pub name: String,
    /// Its labels, their escapes resolved.
    pub labels: BTreeMap<String, String>,
    /// The value as it was written: a 64-bit counter does not fit an `f64`.
    pub raw: String,
}

impl Sample {
    /// The value as a number.
    pub fn f64(&self) -> f64 {
        match self.raw.as_str() {
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            raw => raw.parse().unwrap_or_else(|e| panic!("{self:?}: {e}")),
        }
    }

    /// The exact value of a counter.
    pub fn u64(&self) -> u64 {
        // An encoder may write a whole number as a float.
        let whole = self.raw.strip_suffix(".0").unwrap_or(&self.raw);
        whole.parse().unwrap_or_else(|e| panic!("{self:?}: {e}"))
    }

    /// Whether all of these labels are there, with these values.
    pub fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.labels.get(*name).is_some_and(|found| found == value))
    }
}

/// A whole scrape.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Every sample in the order of the text.
    pub samples: Vec<Sample>,
    /// The type of each family that declares one.
    pub types: BTreeMap<String, String>,
    /// The help of each family that has one.
    pub help: BTreeMap<String, String>,
}

impl Metrics {
    /// Parses a scrape; panics at a line that is not of the format.
    pub fn parse(text: &str) -> Self {
        let mut metrics = Self::default();
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            let words = [words.next(), words.next(), words.next(), words.next()]
                .map(Option::unwrap_or_default);
            match words {
                ["#", "TYPE", name, kind] => {
                    drop(metrics.types.insert(name.to_owned(), kind.to_owned()));
                }
                ["#", "HELP", name, help] => {
                    drop(metrics.help.insert(name.to_owned(), help.to_owned()));
                }
                ["#" | "", ..] => {}
                _ => metrics.samples.push(
                    sample(line)
                        .unwrap_or_else(|| panic!("not a line of the text format: {line:?}")),
                ),
            }
        }
        metrics
    }

    /// The samples of one name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = (&BTreeMap<String, String>, f64)> {
        self.samples.iter().filter(move |s| s.name == name).map(|s| (&s.labels, s.f64()))
    }

    /// The one sample with this name and these labels, which may have more labels; panics if there are several.
    pub fn sample(&self, name: &str, labels: &[(&str, &str)]) -> Option<&Sample> {
        let mut found = self.samples.iter().filter(|s| s.name == name && s.has(labels));
        let first = found.next()?;
        if let Some(second) = found.next() {
            panic!("several samples of {name} match {labels:?}: {first:?} and {second:?}");
        }
        Some(first)
    }

    /// The value of the one sample that matches.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.sample(name, labels).map(Sample::f64)
    }

    /// The exact value of the one counter that matches.
    pub fn get_u64(&self, name: &str, labels: &[(&str, &str)]) -> Option<u64> {
        self.sample(name, labels).map(Sample::u64)
    }
}

fn sample(line: &str) -> Option<Sample> {
    let name_end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
    let (name, rest) = line.split_at(name_end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    // A timestamp may follow the value.
    let raw = rest.split_whitespace().next()?;
    raw.parse::<f64>().ok()?;
    (!name.is_empty()).then(|| Sample { name: name.to_owned(), labels, raw: raw.to_owned() })
}

/// The labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        let before = labels.insert(name.to_owned(), value);
        assert!(before.is_none(), "duplicate label {name}");
        rest = after;
    }
}

/// A label's value up to its closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}
