//! The samples of a family, and the things that have them.

use std::fmt::{Debug, Display};
use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use super::family::Labels;

/// Things with their labels, which are written once and copied for each family.
#[derive(Debug)]
pub struct Labeled<T> {
    all: Vec<(Range<usize>, T)>,
    /// The labels of all, one after the other.
    text: Vec<u8>,
}

impl<T> Default for Labeled<T> {
    fn default() -> Self {
        Labeled { all: Vec::new(), text: Vec::new() }
    }
}

impl<T> Labeled<T> {
    /// Adds a thing.
    pub fn push(&mut self, thing: T, labels: impl FnOnce(&mut Labels<'_>)) {
        let start = self.text.len();
        labels(&mut Labels::new(&mut self.text));
        self.all.push((start..self.text.len(), thing));
    }

    /// The things, each with its labels.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &T)> {
        self.all.iter().map(|(labels, thing)| (&self.text[labels.clone()], thing))
    }
}

/// Writes the samples of a family for one thing: any number of them, each with labels of its own.
pub type WriteSamples<T> = fn(&T, &mut Samples<'_>);

/// Writes samples of a family that share some labels.
#[derive(Debug)]
pub struct Samples<'a> {
    text: &'a mut Vec<u8>,
    name: &'a str,
    /// `{a="1"`, or nothing.
    shared: &'a [u8],
    suffix: &'static str,
    /// Where the present sample begins and whether it has labels, once one was written.
    present: Option<(usize, bool)>,
}

impl<'a> Samples<'a> {
    /// Samples of this name at the end of a text, with these labels, whose brace is not closed.
    pub fn new(text: &'a mut Vec<u8>, name: &'a str, shared: &'a [u8]) -> Self {
        Samples { text, name, shared, suffix: "", present: None }
    }

    /// Samples of the same name with other labels.
    pub fn of<'s>(&'s mut self, shared: &'s [u8]) -> Samples<'s> {
        Samples::new(self.text, self.name, shared)
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
        let has_any = self.begin();
        Labels { text: self.text, has_any }.push(name, value);
        self.present = self.present.map(|(start, _)| (start, true));
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
    pub fn value(&mut self, value: u64) {
        self.value_at(value, "\n");
    }

    /// Writes the next sample, if its value is known.
    pub fn value_if_known(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.value(value),
            None => self.skip(),
        }
    }

    /// Writes the next sample with the end of its line: a blank, its time and a newline.
    pub fn value_at(&mut self, value: u64, end: &str) {
        self.begin_value();
        self.text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.text.extend_from_slice(end.as_bytes());
    }

    /// Writes seconds to the millisecond, by whole numbers: there are many of them, and floats take four
    /// times as long.
    pub fn seconds(&mut self, seconds: f64) {
        // Rounded; what is less than nothing is nothing.
        let time = Duration::try_from_secs_f64(seconds + 0.000_5).unwrap_or_default();
        let millis = time.subsec_millis();
        self.begin_value();
        self.text.extend_from_slice(itoa::Buffer::new().format(time.as_secs()).as_bytes());
        let digits = [100, 10, 1].map(|place| b'0' + (millis / place % 10) as u8);
        self.text.push(b'.');
        self.text.extend_from_slice(&digits);
        self.text.push(b'\n');
    }

    /// Writes a number that may be very small, in as many digits as it has. NaN and infinities are not known.
    pub fn float(&mut self, value: impl Into<f64> + Debug + Copy) {
        self.float_if_known(Some(value));
    }

    /// The same, if the number is known.
    pub fn float_if_known(&mut self, value: Option<impl Into<f64> + Debug + Copy>) {
        match value.filter(|value| (*value).into().is_finite()) {
            Some(value) => self.write(format_args!("{value:?}")),
            None => self.skip(),
        }
    }

    /// Writes microseconds in seconds: exactly, for they may be more than a float can hold.
    pub fn micros(&mut self, micros: u64) {
        self.write(format_args!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
    }

    /// Begins the sample, unless that was done; whether it has labels.
    fn begin(&mut self) -> bool {
        if let Some((_, has_labels)) = self.present {
            return has_labels;
        }
        let start = self.text.len();
        for part in [self.name.as_bytes(), self.suffix.as_bytes(), self.shared] {
            self.text.extend_from_slice(part);
        }
        let has_labels = !self.shared.is_empty();
        self.present = Some((start, has_labels));
        has_labels
    }

    fn begin_value(&mut self) {
        let has_labels = self.begin();
        self.text.extend_from_slice(if has_labels { b"} " } else { b" " });
        (self.present, self.suffix) = (None, "");
    }

    fn write(&mut self, value: impl Display) {
        self.begin_value();
        // Writing to a vector does not fail.
        let _ = writeln!(self.text, "{value}");
    }

    /// Drops what was written of a sample that has no value.
    fn skip(&mut self) {
        if let Some((start, _)) = self.present.take() {
            self.text.truncate(start);
        }
        self.suffix = "";
    }
}

impl Drop for Samples<'_> {
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
