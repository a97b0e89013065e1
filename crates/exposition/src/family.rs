//! Metric families, their headers in both formats, and labels.

use std::borrow::Cow;
use std::io::Write;

use super::Format;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Only increases; its samples end in `_total`.
    Counter,
    /// Goes up and down, or is always 1 and carries labels. For the latter OpenMetrics has the type `info`,
    /// which is unknown to Prometheus's text format; the two formats have the same types here.
    Gauge,
    /// Buckets, sum and count.
    Histogram,
}

impl MetricType {
    /// As in the line `# TYPE`.
    pub fn label(self) -> &'static str {
        match self {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        }
    }
}

/// A metric family of a table in the code.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name, without a counter's `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricType,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence without anything that would have to be escaped.
    pub help: &'static str,
}

/// The names of a family's labels.
type LabelNames = &'static [&'static str];

impl Family {
    /// A gauge.
    pub const fn gauge(name: &'static str, labels: LabelNames, help: &'static str) -> Self {
        Family { name, kind: MetricType::Gauge, labels, help }
    }

    /// A counter; its name lacks `_total`.
    pub const fn counter(name: &'static str, labels: LabelNames, help: &'static str) -> Self {
        Family { name, kind: MetricType::Counter, labels, help }
    }

    /// The name of its samples.
    pub fn sample_name(&self) -> String {
        Header::from(*self).sample_name()
    }
}

/// A gauge with what writes its samples: an entry of a table.
pub const fn gauge<W>(
    name: &'static str,
    labels: LabelNames,
    help: &'static str,
    write: W,
) -> (Family, W) {
    (Family::gauge(name, labels, help), write)
}

/// A counter with what writes its samples: an entry of a table. Its name lacks `_total`.
pub const fn counter<W>(
    name: &'static str,
    labels: LabelNames,
    help: &'static str,
    write: W,
) -> (Family, W) {
    (Family::counter(name, labels, help), write)
}

/// The units that names end in.
const UNITS: [&str; 5] = ["bytes_per_second", "seconds", "bytes", "lanes", "ticks"];

/// The lines before a family's samples.
#[derive(Clone, Debug)]
pub struct Header {
    /// The family's name, without a counter's `_total`.
    pub name: Cow<'static, str>,
    /// Its type.
    pub kind: MetricType,
    /// What it says.
    pub help: Cow<'static, str>,
}

impl From<Family> for Header {
    fn from(family: Family) -> Self {
        Header { name: family.name.into(), kind: family.kind, help: family.help.into() }
    }
}

impl Header {
    /// The name of the samples.
    pub fn sample_name(&self) -> String {
        match self.kind {
            MetricType::Counter => format!("{}_total", self.name),
            _ => self.name.clone().into_owned(),
        }
    }

    /// The unit that the name ends in.
    pub fn unit(&self) -> Option<&'static str> {
        let is_unit =
            |unit: &&str| self.name.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_'));
        UNITS.into_iter().find(is_unit)
    }

    /// Writes the lines.
    pub fn write(&self, out: &mut Vec<u8>, format: Format) {
        let (name, kind, help) = (&self.name, self.kind.label(), &self.help);
        // In the text format a counter's family has the name of its samples.
        let is_total = format == Format::Text && self.kind == MetricType::Counter;
        let suffix = if is_total { "_total" } else { "" };
        // Writing to a vector does not fail.
        let _ = writeln!(out, "# HELP {name}{suffix} {help}");
        let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        if let Some(unit) = self.unit().filter(|_| format == Format::OpenMetrics) {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
    }
}

/// Writes labels, up to where the brace is closed: `{a="1",b="2"`.
#[derive(Debug)]
pub struct Labels<'a> {
    pub(super) text: &'a mut Vec<u8>,
    pub(super) has_any: bool,
}

impl<'a> Labels<'a> {
    /// Begins labels at the end of a text.
    pub fn new(text: &'a mut Vec<u8>) -> Self {
        Labels { text, has_any: false }
    }

    /// Appends labels at the end of a text.
    pub fn more(text: &'a mut Vec<u8>) -> Self {
        Labels { text, has_any: true }
    }

    /// Adds a label.
    pub fn push(&mut self, name: &str, value: &str) -> &mut Self {
        self.text.push(if self.has_any { b',' } else { b'{' });
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"=\"");
        for byte in value.bytes() {
            // Both formats escape these three.
            match byte {
                b'\\' => self.text.extend_from_slice(b"\\\\"),
                b'"' => self.text.extend_from_slice(b"\\\""),
                b'\n' => self.text.extend_from_slice(b"\\n"),
                byte => self.text.push(byte),
            }
        }
        self.text.push(b'"');
        self.has_any = true;
        self
    }

    /// Adds a label, if its value is not empty: one without a value is as good as none.
    pub fn push_if_any(&mut self, name: &str, value: &str) -> &mut Self {
        if value.is_empty() { self } else { self.push(name, value) }
    }
}
