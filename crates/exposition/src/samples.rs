//! The samples of a family.

use std::fmt::{Debug, Display};
use std::io::Write;
use std::time::Duration;

use super::family::Labels;
use super::fingerprint::Fingerprint;
use super::line_deflate::Line;

/// Writes the samples of a family for one thing: any number of them, each with labels of its own.
pub type WriteSamples<T> = fn(&T, &mut Samples<'_>);

/// Where samples go.
#[derive(Debug)]
enum Sink<'a> {
    /// Text with the name of the family and the shared labels: `{a="1"`, or nothing. The lines are noted with the number
    /// of the thing, if somebody needs them.
    Text {
        text: &'a mut Vec<u8>,
        name: &'a str,
        shared: &'a [u8],
        lines: Option<(&'a mut Vec<Line>, usize)>,
    },
    /// Only their fingerprint is needed; the second is that of the shared labels.
    Fingerprint(&'a mut Fingerprint, Fingerprint),
}

/// What there was before the present sample, to which a sample without a value returns.
#[derive(Clone, Copy, Debug)]
enum Before {
    Text { length: usize },
    Fingerprint(Fingerprint),
}

/// Writes samples of a family that share some labels.
#[derive(Debug)]
pub struct Samples<'a> {
    sink: Sink<'a>,
    suffix: &'static str,
    /// Whether the present sample has labels.
    has_labels: bool,
    /// Where the present sample begins, once that was written.
    before: Option<Before>,
}

impl<'a> Samples<'a> {
    /// Samples of this name at the end of a text, with these labels, whose brace is not closed.
    pub fn new(text: &'a mut Vec<u8>, name: &'a str, shared: &'a [u8]) -> Self {
        Samples::to(Sink::Text { text, name, shared, lines: None })
    }

    /// The same of a thing with this number, whose lines are noted.
    pub(super) fn of_thing(
        thing: usize,
        shared: &'a [u8],
        name: &'a str,
        text: &'a mut Vec<u8>,
        lines: &'a mut Vec<Line>,
    ) -> Self {
        Samples::to(Sink::Text { text, name, shared, lines: Some((lines, thing)) })
    }

    /// No text: only the fingerprint of samples, which share labels with this one.
    #[inline]
    pub(super) fn fingerprint(all: &'a mut Fingerprint, of_labels: Fingerprint) -> Self {
        Samples::to(Sink::Fingerprint(all, of_labels))
    }

    #[inline]
    fn to(sink: Sink<'a>) -> Self {
        Samples { sink, suffix: "", has_labels: false, before: None }
    }

    /// Samples of the same name with other labels.
    pub fn of<'s>(&'s mut self, shared: &'s [u8]) -> Samples<'s> {
        Samples::to(match &mut self.sink {
            Sink::Text { text, name, .. } => Sink::Text { text, name, shared, lines: None },
            Sink::Fingerprint(all, _) => {
                let mut of_labels = Fingerprint::default();
                of_labels.text(shared);
                Sink::Fingerprint(all, of_labels)
            }
        })
    }

    /// Sets the part of a histogram that the next sample is: `_sum`.
    pub fn suffix(&mut self, suffix: &'static str) -> &mut Self {
        self.suffix = suffix;
        self
    }

    /// Adds a label to the next sample, if its value is not empty: one without a value is as good as none.
    pub fn label(&mut self, name: &str, value: &str) -> &mut Self {
        if value.is_empty() { self } else { self.required_label(name, value) }
    }

    /// Adds a label to the next sample, even if its value is empty.
    pub fn required_label(&mut self, name: &str, value: &str) -> &mut Self {
        self.begin();
        match &mut self.sink {
            Sink::Text { text, .. } => {
                Labels { text, has_any: self.has_labels }.push(name, value);
            }
            Sink::Fingerprint(all, _) => {
                all.text(name.as_bytes());
                all.text(value.as_bytes());
            }
        }
        self.has_labels = true;
        self
    }

    /// Adds a label, if its value is not empty, which is made from these bytes and nothing else: a fingerprint takes the
    /// bytes, and the value is not made.
    pub fn label_from(
        &mut self,
        name: &str,
        bytes: &[u8],
        value: impl FnOnce() -> String,
    ) -> &mut Self {
        if !matches!(self.sink, Sink::Fingerprint(..)) {
            return self.label(name, &value());
        }
        self.begin();
        if let Sink::Fingerprint(all, _) = &mut self.sink {
            all.text(name.as_bytes());
            all.text(bytes);
        }
        self
    }

    /// Adds a label to the next sample, if its value is known.
    pub fn label_if_known(&mut self, name: &str, value: Option<impl AsRef<str>>) -> &mut Self {
        if let Some(value) = value {
            self.label(name, value.as_ref());
        }
        self
    }

    /// Writes the next sample.
    #[inline]
    pub fn value(&mut self, value: u64) {
        self.value_at(value, "\n");
    }

    /// Writes the next sample, if its value is known.
    #[inline]
    pub fn value_if_known(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.value(value),
            None => self.skip(),
        }
    }

    /// Writes the next sample with the end of its line: a blank, its time and a newline.
    #[inline]
    pub fn value_at(&mut self, value: u64, end: &str) {
        match self.begin_value() {
            Sink::Text { text, .. } => {
                text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
                text.extend_from_slice(end.as_bytes());
            }
            Sink::Fingerprint(all, _) => {
                all.number(value);
                if end != "\n" {
                    all.text(end.as_bytes());
                }
            }
        }
    }

    /// Writes seconds to the millisecond, by whole numbers: there are many of them, and floats take four
    /// times as long.
    pub fn seconds(&mut self, seconds: f64) {
        // Rounded; what is less than nothing is nothing.
        let time = Duration::try_from_secs_f64(seconds + 0.000_5).unwrap_or_default();
        let millis = time.subsec_millis();
        match self.begin_value() {
            Sink::Text { text, .. } => {
                text.extend_from_slice(itoa::Buffer::new().format(time.as_secs()).as_bytes());
                let digits = [100, 10, 1].map(|place| b'0' + (millis / place % 10) as u8);
                text.push(b'.');
                text.extend_from_slice(&digits);
                text.push(b'\n');
            }
            Sink::Fingerprint(all, _) => {
                all.number(time.as_secs());
                all.number(millis.into());
            }
        }
    }

    /// Writes a number that may be very small, in as many digits as it has. NaN and infinities are not known.
    pub fn float(&mut self, value: impl Into<f64> + Debug + Copy) {
        self.float_if_known(Some(value));
    }

    /// The same, if the number is known.
    pub fn float_if_known(&mut self, value: Option<impl Into<f64> + Debug + Copy>) {
        match value.filter(|value| (*value).into().is_finite()) {
            Some(value) => self.write(value.into().to_bits(), format_args!("{value:?}")),
            None => self.skip(),
        }
    }

    /// Writes microseconds in seconds: exactly, for they may be more than a float can hold.
    pub fn micros(&mut self, micros: u64) {
        self.write(micros, format_args!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
    }

    /// Begins the sample, unless that was done.
    #[inline]
    fn begin(&mut self) {
        if self.before.is_some() {
            return;
        }
        match &mut self.sink {
            Sink::Text { text, name, shared, .. } => {
                self.before = Some(Before::Text { length: text.len() });
                for part in [name.as_bytes(), self.suffix.as_bytes(), shared] {
                    text.extend_from_slice(part);
                }
                self.has_labels = !shared.is_empty();
            }
            Sink::Fingerprint(all, of_labels) => {
                self.before = Some(Before::Fingerprint(**all));
                all.all_of(*of_labels);
                if !self.suffix.is_empty() {
                    all.text(self.suffix.as_bytes());
                }
            }
        }
    }

    /// Ends the labels; where the value goes.
    #[inline]
    fn begin_value(&mut self) -> &mut Sink<'a> {
        self.begin();
        if let Sink::Text { text, lines, .. } = &mut self.sink {
            text.extend_from_slice(if self.has_labels { b"} " } else { b" " });
            if let (Some((lines, thing)), Some(Before::Text { length })) = (lines, self.before) {
                let thing = self.suffix.is_empty().then_some(*thing);
                lines.push(Line { start: length, value: text.len(), thing });
            }
        }
        (self.before, self.suffix) = (None, "");
        &mut self.sink
    }

    /// Writes a value, which is the same if its bits are.
    fn write(&mut self, bits: u64, value: impl Display) {
        match self.begin_value() {
            // Writing to a vector does not fail.
            Sink::Text { text, .. } => drop(writeln!(text, "{value}")),
            Sink::Fingerprint(all, _) => all.number(bits),
        }
    }

    /// Drops what was written of a sample that has no value.
    #[inline]
    fn skip(&mut self) {
        match (self.before.take(), &mut self.sink) {
            (Some(Before::Text { length }), Sink::Text { text, .. }) => text.truncate(length),
            (Some(Before::Fingerprint(before)), Sink::Fingerprint(all, _)) => **all = before,
            _ => (),
        }
        self.suffix = "";
    }
}

impl Drop for Samples<'_> {
    #[inline]
    fn drop(&mut self) {
        self.skip();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Samples<'_>)) -> String {
        let mut text = Vec::new();
        write(&mut Samples::new(&mut text, "m", b"{a=\"b\""));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers_as_prometheus_reads_them() {
        for (seconds, expected) in [
            (0.0, "0.000"),
            (1.0004, "1.000"),
            (1.9996, "2.000"),
            (0.05, "0.050"),
            (-3.0, "0.000"),
            (1_700_000_000.125, "1700000000.125"),
        ] {
            assert_eq!(written(|it| it.seconds(seconds)), format!("m{{a=\"b\"}} {expected}\n"));
        }
        for (ratio, expected) in [(0.0, "0.0"), (3.2e-13, "3.2e-13"), (0.25, "0.25")] {
            assert_eq!(written(|it| it.float(ratio)), format!("m{{a=\"b\"}} {expected}\n"));
        }
        assert_eq!(written(|it| it.float(0.1_f32)), "m{a=\"b\"} 0.1\n");
        assert_eq!(written(|it| it.float(f64::NAN)), "");
    }

    #[test]
    fn value_from_bytes_is_a_label_as_any_other() {
        let text = written(|it| {
            it.label_from("c", b"12", || "1:2".to_owned()).value(1);
            it.label_from("c", b"", String::new).value(2);
        });
        assert_eq!(text, "m{a=\"b\",c=\"1:2\"} 1\nm{a=\"b\"} 2\n");
    }

    #[test]
    fn labels_and_suffix_are_of_one_sample() {
        let text = written(|it| {
            it.suffix("_bucket").label("le", "1.0").value(1);
            it.value(2);
        });
        assert_eq!(text, "m_bucket{a=\"b\",le=\"1.0\"} 1\nm{a=\"b\"} 2\n");
    }

    #[test]
    fn sample_without_a_value_is_not_written() {
        let text = written(|it| {
            it.label("c", "1").value_if_known(None);
            it.label("c", "2").value(2);
            it.suffix("_sum").label("c", "3");
        });
        assert_eq!(text, "m{a=\"b\",c=\"2\"} 2\n");
    }

    #[test]
    fn sample_without_labels_has_no_braces() {
        let mut text = Vec::new();
        let mut samples = Samples::new(&mut text, "m", b"");
        samples.float(0.5);
        samples.required_label("fabric", "").value(1);
        drop(samples);
        assert_eq!(text, b"m 0.5\nm{fabric=\"\"} 1\n");
    }
}
