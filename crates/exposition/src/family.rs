//! What a metric family is, and its header in both formats.

use std::borrow::Cow;
use std::fmt::Write;

use super::Format;

/// The kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up; its samples end in `_total`.
    Counter,
    /// Goes up and down, or is always 1 and carries labels. OpenMetrics's own type for the latter,
    /// `info`, is unknown to Prometheus's text format, and both are to be one.
    Gauge,
    /// Buckets, sum and count.
    Histogram,
}

impl Kind {
    /// As `# TYPE` writes it.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A metric family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name, without a counter's `_total`.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells, in a sentence; without anything that would have to be escaped.
    pub help: &'static str,
}

/// The units that names end in.
const UNITS: [&str; 5] = ["bytes_per_second", "seconds", "bytes", "lanes", "ticks"];

impl Family {
    /// The unit that its name ends in.
    pub fn unit(&self) -> Option<&'static str> {
        unit_of(self.name)
    }

    /// The name of its samples.
    pub fn sample_name(&self) -> String {
        Head::from(*self).sample_name()
    }
}

/// What stands before a family's samples.
#[derive(Clone, Debug)]
pub struct Head {
    /// The family's name, without a counter's `_total`.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: Kind,
    /// What it tells.
    pub help: Cow<'static, str>,
}

impl From<Family> for Head {
    fn from(family: Family) -> Self {
        Head { name: family.name.into(), kind: family.kind, help: family.help.into() }
    }
}

impl Head {
    /// The name of its samples.
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            _ => self.name.clone().into_owned(),
        }
    }

    /// Writes the lines before the samples.
    pub fn write(&self, out: &mut String, format: Format) {
        let (name, kind, help) = (&self.name, self.kind, &self.help);
        // In the text format a counter's family has the name of its samples.
        let suffix = if format == Format::Text && kind == Kind::Counter { "_total" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name}{suffix} {help}");
        let _ = writeln!(out, "# TYPE {name}{suffix} {}", kind.label());
        if let Some(unit) = unit_of(name).filter(|_| format == Format::OpenMetrics) {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
    }
}

/// The unit that a family's name ends in.
pub fn unit_of(name: &str) -> Option<&'static str> {
    UNITS.into_iter().find(|unit| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
}

/// Writes a label; `before` is the brace or comma that it follows.
pub fn push_label(out: &mut Vec<u8>, before: u8, name: &str, value: &str) {
    out.push(before);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    push_escaped(out, value);
    out.push(b'"');
}

/// Escapes a label's value: backslash, quote and newline, in both formats alike.
pub fn push_escaped(out: &mut Vec<u8>, value: &str) {
    for byte in value.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'\n' => out.extend_from_slice(b"\\n"),
            byte => out.push(byte),
        }
    }
}
