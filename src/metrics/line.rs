//! Samples in the making.

use std::fmt::{Arguments, Debug};
use std::io::Write;
use std::time::Duration;

use super::family::push_label;

/// Things with their labels, rendered up to where a family's own begin.
pub(super) type With<'a, T> = Vec<(Vec<u8>, &'a T)>;

/// What is told of one thing: for each of its samples the labels that it has besides, and the value;
/// or nothing.
pub(super) type Tell<T> = fn(&T, &mut Line<'_>);

/// A thing's samples in the making. What gets no value is not written.
pub(super) struct Line<'a> {
    text: &'a mut Vec<u8>,
    name: &'a str,
    labels: &'a [u8],
    /// Which part of a histogram the next sample is.
    part: &'static str,
    /// The labels of the next sample alone.
    own: Vec<u8>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a mut Vec<u8>, name: &'a str, labels: &'a [u8]) -> Self {
        Line { text, name, labels, part: "", own: Vec::new() }
    }

    /// Adds a label; one without a value is as good as none.
    pub(super) fn label(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            push_label(&mut self.own, b',', name, value);
        }
    }

    /// Says which part of a histogram the next sample is: `_sum`.
    pub(super) fn part(&mut self, part: &'static str) {
        self.part = part;
    }

    pub(super) fn value(&mut self, value: u64) {
        self.begin();
        self.text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.end();
    }

    pub(super) fn value_of(&mut self, value: Option<u64>) {
        if let Some(value) = value {
            self.value(value);
        }
    }

    /// To the millisecond, by whole numbers: there are many of them, and floats take four times as long.
    pub(super) fn seconds(&mut self, seconds: f64) {
        // Rounded; what is less than nothing is nothing.
        let time = Duration::try_from_secs_f64(seconds + 0.000_5).unwrap_or_default();
        let millis = time.subsec_millis();
        self.begin();
        self.text.extend_from_slice(itoa::Buffer::new().format(time.as_secs()).as_bytes());
        let digits = [100, 10, 1].map(|place| b'0' + (millis / place % 10) as u8);
        self.text.push(b'.');
        self.text.extend_from_slice(&digits);
        self.end();
    }

    /// A number that may be very small, in as many digits as it has. What is no number is not known.
    pub(super) fn ratio(&mut self, ratio: impl Into<f64> + Debug + Copy) {
        if ratio.into().is_finite() {
            self.write(format_args!("{ratio:?}"));
        }
    }

    /// Microseconds, in seconds: exactly, for they may be more than a float can hold.
    pub(super) fn micros(&mut self, micros: u64) {
        self.write(format_args!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
    }

    fn write(&mut self, value: Arguments<'_>) {
        self.begin();
        // Writing to a vector does not fail.
        let _ = self.text.write_fmt(value);
        self.end();
    }

    fn begin(&mut self) {
        for part in [self.name.as_bytes(), self.part.as_bytes(), self.labels, &self.own, b"} "] {
            self.text.extend_from_slice(part);
        }
    }

    fn end(&mut self) {
        self.text.push(b'\n');
        self.own.clear();
        self.part = "";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tell: impl FnOnce(&mut Line<'_>)) -> String {
        let mut text = Vec::new();
        tell(&mut Line::new(&mut text, "m", b"{a=\"b\""));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers_as_prometheus_reads_them() {
        for (seconds, says) in [
            (0.0, "0.000"),
            (1.0004, "1.000"),
            (1.9996, "2.000"),
            (0.05, "0.050"),
            (-3.0, "0.000"),
            (1_700_000_000.125, "1700000000.125"),
        ] {
            assert_eq!(told(|line| line.seconds(seconds)), format!("m{{a=\"b\"}} {says}\n"));
        }
        for (ratio, says) in [(0.0, "0.0"), (3.2e-13, "3.2e-13"), (0.25, "0.25")] {
            assert_eq!(told(|line| line.ratio(ratio)), format!("m{{a=\"b\"}} {says}\n"));
        }
        assert_eq!(told(|line| line.ratio(0.1_f32)), "m{a=\"b\"} 0.1\n");
        assert_eq!(told(|line| line.ratio(f64::NAN)), "");
    }

    #[test]
    fn what_is_said_of_one_sample_is_not_said_of_the_next() {
        let text = told(|line| {
            line.part("_bucket");
            line.label("le", "1.0");
            line.value(1);
            line.value(2);
        });
        assert_eq!(text, "m_bucket{a=\"b\",le=\"1.0\"} 1\nm{a=\"b\"} 2\n");
    }
}
