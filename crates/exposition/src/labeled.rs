//! Things with their labels.

use std::cell::OnceCell;
use std::ops::Range;

use super::family::Labels;
use super::fingerprint::Fingerprint;
use super::likeness::Likeness;
use super::samples::Samples;

/// A thing with its labels.
#[derive(Debug)]
struct Item<T> {
    labels: Range<usize>,
    /// Of the labels.
    fingerprint: Fingerprint,
    thing: T,
}

/// Things with their labels, which are written once and copied for each family.
#[derive(Debug)]
pub struct Labeled<T> {
    all: Vec<Item<T>>,
    /// The labels of all, one after the other.
    text: Vec<u8>,
    likeness: OnceCell<Likeness>,
}

impl<T> Default for Labeled<T> {
    fn default() -> Self {
        Labeled { all: Vec::new(), text: Vec::new(), likeness: OnceCell::new() }
    }
}

impl<T> Labeled<T> {
    /// Adds a thing.
    pub fn push(&mut self, thing: T, labels: impl FnOnce(&mut Labels<'_>)) {
        let start = self.text.len();
        labels(&mut Labels::new(&mut self.text));
        let mut fingerprint = Fingerprint::default();
        fingerprint.text(&self.text[start..]);
        self.all.push(Item { labels: start..self.text.len(), fingerprint, thing });
    }

    /// The things, each with its labels.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &T)> {
        self.all.iter().map(|item| (&self.text[item.labels.clone()], &item.thing))
    }

    /// The number of things.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Removes all things; their space is kept.
    pub fn clear(&mut self) {
        self.all.clear();
        self.text.clear();
        self.likeness.take();
    }

    /// How the labels are like those of the thing before.
    pub(super) fn likeness(&self) -> &Likeness {
        self.likeness.get_or_init(|| Likeness::new(self.iter().map(|(labels, _)| labels)))
    }

    /// The fingerprint of what a function writes of the things.
    pub(super) fn fingerprint<'t>(
        &'t self,
        write: impl Fn(&'t T, &mut Samples<'_>),
    ) -> Fingerprint {
        let mut all = Fingerprint::default();
        for item in &self.all {
            write(&item.thing, &mut Samples::fingerprint(&mut all, item.fingerprint));
        }
        all
    }

    /// The same of at most one whole number of each thing.
    pub(super) fn fingerprint_of_numbers(&self, value: impl Fn(&T) -> Option<u64>) -> Fingerprint {
        let mut all = Fingerprint::default();
        for item in &self.all {
            if let Some(value) = value(&item.thing) {
                all.all_of(item.fingerprint);
                all.number(value);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_of_numbers_is_that_of_their_samples() {
        let mut things = Labeled::default();
        for number in [None, Some(7), Some(0), None, Some(7)] {
            things.push(number, |labels| {
                labels.push("port", if number.is_some() { "1" } else { "2" });
            });
        }
        let of_samples = things.fingerprint(|number, samples| samples.value_if_known(*number));
        assert_eq!(things.fingerprint_of_numbers(|number| *number), of_samples);
    }

    #[test]
    fn value_of_a_label_is_not_made_for_a_fingerprint() {
        let of = |bytes: &'static [u8]| {
            let mut things = Labeled::default();
            things.push((), |labels| {
                labels.push("port", "1");
            });
            things.fingerprint(|(), samples| {
                samples.label_from("guid", bytes, || unreachable!("a fingerprint")).value(1);
            })
        };
        assert_eq!(of(b"12"), of(b"12"));
        assert_ne!(of(b"12"), of(b"13"));
    }
}
