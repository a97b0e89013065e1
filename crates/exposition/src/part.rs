//! A family with its samples, and what families of things are added to: text, or compressed chunks.

use std::borrow::Borrow;

use super::Format;
use super::family::Family;
use super::labeled::Labeled;
use super::samples::{Samples, WriteSamples};

/// A family with the samples of one source.
#[derive(Clone, Debug)]
pub struct Part<S> {
    /// The family.
    pub family: Family,
    /// The samples: lines that are the same in both formats.
    pub samples: S,
}

impl Part<Vec<u8>> {
    /// Writes header and samples.
    pub fn write(&self, out: &mut Vec<u8>, format: Format) {
        self.family.write_header(out, format);
        out.extend_from_slice(&self.samples);
    }
}

/// What families of things are added to.
pub trait Families {
    /// Adds a family with what a function writes of each thing.
    fn of_things<'t, I>(
        &mut self,
        family: &Family,
        things: &'t Labeled<I>,
        write: impl Fn(&'t I, &mut Samples<'_>),
    );

    /// Adds families of things of one kind.
    fn each<T>(&mut self, families: &[(Family, WriteSamples<T>)], things: &Labeled<T>) {
        for (family, write) in families {
            self.of_things(family, things, write);
        }
    }

    /// Adds families of what there may be of each thing.
    fn each_of<'t, T, I: 't, B: Borrow<T>>(
        &mut self,
        families: &[(Family, WriteSamples<T>)],
        things: &'t Labeled<I>,
        of: impl Fn(&'t I) -> Option<B>,
    ) {
        for (family, write) in families {
            self.of_things(family, things, |thing, samples| {
                if let Some(thing) = of(thing) {
                    write(thing.borrow(), samples);
                }
            });
        }
    }

    /// Adds a family with at most one whole number of each thing.
    fn numbers<I>(
        &mut self,
        family: &Family,
        things: &Labeled<I>,
        value: impl Fn(&I) -> Option<u64>,
    ) {
        self.of_things(family, things, |thing, samples| samples.value_if_known(value(thing)));
    }
}
