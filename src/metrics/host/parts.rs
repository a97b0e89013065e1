//! Families in the making.

use crate::metrics::family::{Family, Head};
use crate::metrics::line::{Line, Tell, With};
use crate::metrics::part::{Part, Place};

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
