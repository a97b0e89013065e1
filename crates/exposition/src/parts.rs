//! Families with their samples, as they are rendered.

use std::borrow::Borrow;

use super::Format;
use super::document::Block;
use super::family::Family;
use super::output::Output;
use super::samples::{Labeled, Samples, WriteSamples};

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

/// Renders families one after the other; those without samples are left out.
#[derive(Debug)]
pub struct Parts<O: Output> {
    done: Vec<Part<O::Samples>>,
    output: O,
}

impl<O: Output> Default for Parts<O> {
    fn default() -> Self {
        Parts { done: Vec::new(), output: O::default() }
    }
}

impl<O: Output> Parts<O> {
    /// Adds a family.
    pub fn add(&mut self, family: Family, write: impl FnOnce(&mut FamilyWriter<'_, O>)) {
        write(&mut FamilyWriter { name: family.sample_name(), output: &mut self.output });
        if let Some(samples) = self.output.finish() {
            self.done.push(Part { family, samples });
        }
    }

    /// Adds families of things of one kind.
    pub fn each<T>(&mut self, families: &[(Family, WriteSamples<T>)], things: &Labeled<T>) {
        self.each_of(families, things, Some);
    }

    /// Adds families of what there may be of each thing.
    pub fn each_of<'t, T, I: 't, B: Borrow<T>>(
        &mut self,
        families: &[(Family, WriteSamples<T>)],
        things: &'t Labeled<I>,
        of: impl Fn(&'t I) -> Option<B>,
    ) {
        for (family, write) in families {
            self.add(family.clone(), |writer| {
                for (labels, thing) in things.iter() {
                    if let Some(thing) = of(thing) {
                        write(thing.borrow(), &mut writer.samples(labels));
                    }
                }
            });
        }
    }

    /// Adds a family with at most one whole number of each thing.
    pub fn numbers<I>(
        &mut self,
        family: Family,
        things: &Labeled<I>,
        value: impl Fn(&I) -> Option<u64>,
    ) {
        self.add(family, |writer| {
            for (labels, thing) in things.iter() {
                if let Some(value) = value(thing) {
                    writer.samples(labels).value(value);
                }
            }
        });
    }

    /// The families so far, in the order in which they were added; begins again, with the same output.
    pub fn take(&mut self) -> Vec<Part<O::Samples>> {
        std::mem::take(&mut self.done)
    }

    /// The families, in the order in which they were added.
    pub fn finish(mut self) -> Vec<Part<O::Samples>> {
        self.take()
    }
}

/// Writes the samples of one family.
#[derive(Debug)]
pub struct FamilyWriter<'a, O> {
    name: String,
    output: &'a mut O,
}

impl<O: Output> FamilyWriter<'_, O> {
    /// The samples of a thing with these labels, whose brace is not closed; without any it is empty.
    pub fn samples<'s>(&'s mut self, labels: &'s [u8]) -> Samples<'s> {
        self.output.settle();
        Samples::new(self.output.buffer(), &self.name, labels)
    }
}

/// Minimum size of a text that is compressed separately: below it, a restart costs more than it saves.
const WORTH_PACKING: usize = 4096;

/// Merges families by their positions: those of several slices, each in order, and those of the host. A family has one
/// header. Neighboring texts are compressed as one.
pub fn join<'a>(
    slices: Vec<impl Iterator<Item = &'a Part<Block>>>,
    host: impl Iterator<Item = &'a Part<Vec<u8>>>,
    position: impl Fn(&Family) -> usize,
    format: Format,
) -> Vec<Block> {
    let mut slices: Vec<_> = slices.into_iter().map(Iterator::peekable).collect();
    let mut host = host.peekable();
    let mut blocks = Vec::new();
    let mut text = Vec::new();
    loop {
        let next = slices.iter_mut().filter_map(|it| it.peek()).map(|it| &it.family);
        let next = next.chain(host.peek().map(|it| &it.family));
        let Some(family) = next.min_by_key(|it| position(it)) else { break };
        family.write_header(&mut text, format);
        for slice in &mut slices {
            if let Some(part) = slice.next_if(|part| part.family.name == family.name) {
                if !text.is_empty() {
                    blocks.push(pack(&text));
                    text.clear();
                }
                blocks.push(part.samples.clone());
            }
        }
        if let Some(part) = host.next_if(|part| part.family.name == family.name) {
            text.extend_from_slice(&part.samples);
        }
    }
    if !text.is_empty() {
        blocks.push(pack(&text));
    }
    blocks
}

/// Compresses a text, if it is long enough.
fn pack(text: &[u8]) -> Block {
    if text.len() < WORTH_PACKING { Block::stored(text) } else { Block::deflate(text) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn part<S>(name: &'static str, samples: S) -> Part<S> {
        Part { family: Family::gauge(name, &[], "A value."), samples }
    }

    fn text(blocks: &[Block]) -> String {
        let mut stream: Vec<u8> = blocks.iter().flat_map(|block| block.bytes.to_vec()).collect();
        stream.extend([3, 0]);
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(&stream[..]).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn family_of_several_sources_has_one_header() {
        let one = [part("n", Block::stored(b"n 1\n")), part("s", Block::stored(b"s 1\n"))];
        let two = [part("s", Block::stored(b"s 3\n"))];
        let long = format!("h{} 3\n", "x".repeat(2 * WORTH_PACKING));
        let host = [part("s", b"s 2\n".to_vec()), part("h", long.clone().into_bytes())];
        let position = |it: &Family| ["n", "s"].iter().position(|name| *name == it.name);
        let position = |it: &Family| position(it).unwrap_or(usize::MAX);
        let header = |name| format!("# HELP {name} A value.\n# TYPE {name} gauge\n");
        let (n, s, h) = (header("n"), header("s"), header("h"));
        for (slices, host, expected) in [
            (vec![&one[..]], &host[..], format!("{n}n 1\n{s}s 1\ns 2\n{h}{long}")),
            (vec![&two, &one], &host, format!("{n}n 1\n{s}s 3\ns 1\ns 2\n{h}{long}")),
            (vec![&one, &[], &two], &[], format!("{n}n 1\n{s}s 1\ns 3\n")),
            (vec![], &host[..], format!("{s}s 2\n{h}{long}")),
            (vec![], &[], String::new()),
        ] {
            let slices = slices.into_iter().map(<[_]>::iter).collect();
            assert_eq!(text(&join(slices, host.iter(), position, Format::Text)), expected);
        }
    }
}
