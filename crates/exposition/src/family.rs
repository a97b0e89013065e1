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

/// A metric family.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its name, without a counter's `_total`.
    pub name: Cow<'static, str>,
    /// Its type.
    pub kind: MetricType,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence without anything that would have to be escaped.
    pub help: Cow<'static, str>,
}

/// The units that names end in.
const UNITS: [&str; 5] = ["bytes_per_second", "seconds", "bytes", "lanes", "ticks"];

impl Family {
    /// A family of a table in the code.
    pub const fn new(
        name: &'static str,
        kind: MetricType,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Family { name: Cow::Borrowed(name), kind, labels, help: Cow::Borrowed(help) }
    }

    /// A gauge.
    pub const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Family::new(name, MetricType::Gauge, labels, help)
    }

    /// The name of the samples.
    pub fn sample_name(&self) -> String {
        match self.kind {
            MetricType::Counter => format!("{}_total", self.name),
            _ => self.name.clone().into_owned(),
        }
    }

    /// The unit that the name ends in.
    fn unit(&self) -> Option<&'static str> {
        let is_unit =
            |unit: &&str| self.name.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_'));
        UNITS.into_iter().find(is_unit)
    }

    /// Writes the lines before the samples.
    pub fn write_header(&self, out: &mut Vec<u8>, format: Format) {
        let (kind, help) = (self.kind.label(), &self.help);
        let name = match format {
            // In the text format a counter's family has the name of its samples.
            Format::Text => self.sample_name().into(),
            Format::OpenMetrics => self.name.clone(),
        };
        // Writing to a vector does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
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
        // Both formats escape these three; hardly any value has one.
        let value = value.as_bytes();
        // All bytes are looked at, several at a time: that is faster than to stop at the first one.
        if value.iter().fold(false, |any, byte| any | matches!(byte, b'\\' | b'"' | b'\n')) {
            for byte in value {
                match byte {
                    b'\\' => self.text.extend_from_slice(b"\\\\"),
                    b'"' => self.text.extend_from_slice(b"\\\""),
                    b'\n' => self.text.extend_from_slice(b"\\n"),
                    byte => self.text.push(*byte),
                }
            }
        } else {
            self.text.extend_from_slice(value);
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
