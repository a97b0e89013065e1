//! Samples in the making.

use std::fmt::{Debug, Display};
use std::io::Write;

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
        self.write(itoa::Buffer::new().format(value));
    }

    pub(super) fn value_of(&mut self, value: Option<u64>) {
        if let Some(value) = value {
            self.value(value);
        }
    }

    pub(super) fn seconds(&mut self, seconds: f64) {
        self.write(format_args!("{seconds:.3}"));
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

    fn write(&mut self, value: impl Display) {
        for part in [self.name.as_bytes(), self.part.as_bytes(), self.labels, &self.own] {
            self.text.extend_from_slice(part);
        }
        // Writing to a vector does not fail.
        let _ = writeln!(self.text, "}} {value}");
        self.own.clear();
        self.part = "";
    }
}
