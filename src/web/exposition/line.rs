//! Samples and families in the making.

use crate::web::exposition::family::{Family, Head, push_label};
use crate::web::exposition::part::{Part, Place};

/// Things with their labels, rendered up to where a family's own begin.
pub(super) type With<'a, T> = Vec<(Vec<u8>, &'a T)>;

/// What is told of one thing: the labels that it has besides, and the value; or nothing.
pub(super) type Tell<T> = fn(&T, &mut Line<'_>);

/// The families that are done.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) done: Vec<Part<String>>,
    own: usize,
}

impl Parts {
    /// Adds a family that only the host tells.
    pub(super) fn host(&mut self, head: Head, write: impl FnOnce(&mut Vec<u8>, &str)) {
        self.own += 1;
        self.add(Place::Host(self.own), head, write);
    }

    /// Adds families of things of one kind.
    pub(super) fn each<T>(&mut self, families: &[(Family, Tell<T>)], things: &With<'_, T>) {
        for (family, tell) in families {
            self.host((*family).into(), |text, name| {
                for (labels, thing) in things {
                    tell(thing, &mut Line::new(text, name, labels));
                }
            });
        }
    }

    pub(super) fn add(&mut self, place: Place, head: Head, write: impl FnOnce(&mut Vec<u8>, &str)) {
        let mut samples = Vec::new();
        write(&mut samples, &head.sample_name());
        // Labels are text, and all else is ASCII.
        let samples = String::from_utf8(samples).unwrap_or_default();
        if !samples.is_empty() {
            self.done.push(Part { place, head, samples });
        }
    }
}

/// A sample in the making. What gets no value is not written.
pub(super) struct Line<'a> {
    text: &'a mut Vec<u8>,
    name: &'a str,
    labels: &'a [u8],
    own: Vec<u8>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a mut Vec<u8>, name: &'a str, labels: &'a [u8]) -> Self {
        Line { text, name, labels, own: Vec::new() }
    }

    /// Adds a label; one without a value is as good as none.
    pub(super) fn label(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            push_label(&mut self.own, b',', name, value);
        }
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
        self.write(&format!("{seconds:.3}"));
    }

    /// Microseconds, in seconds: exactly, for they may be more than a float can hold.
    pub(super) fn micros(&mut self, micros: u64) {
        self.write(&format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
    }

    pub(super) fn write(&mut self, value: &str) {
        for part in [self.name.as_bytes(), self.labels, &self.own, b"} ", value.as_bytes(), b"\n"] {
            self.text.extend_from_slice(part);
        }
    }
}
