//! Renders families as text, and merges those of several sources.

use super::Format;
use super::chunks::Chunk;
use super::document::{Block, Document};
use super::family::Family;
use super::labeled::Labeled;
use super::line_deflate::deflate_lines;
use super::part::{Families, Part};
use super::samples::Samples;

/// Renders families as text, one after the other; those without samples are left out.
#[derive(Debug, Default)]
pub struct Parts {
    done: Vec<Part<Vec<u8>>>,
}

impl Parts {
    /// Adds a family.
    pub fn add(&mut self, family: Family, write: impl FnOnce(&mut FamilyWriter<'_>)) {
        let mut samples = Vec::new();
        write(&mut FamilyWriter { name: family.sample_name(), text: &mut samples });
        if !samples.is_empty() {
            self.done.push(Part { family, samples });
        }
    }

    /// The families, in the order in which they were added.
    pub fn finish(self) -> Vec<Part<Vec<u8>>> {
        self.done
    }
}

impl Families for Parts {
    fn of_things<'t, I>(
        &mut self,
        family: &Family,
        things: &'t Labeled<I>,
        write: impl Fn(&'t I, &mut Samples<'_>),
    ) {
        self.add(family.clone(), |writer| {
            for (labels, thing) in things.iter() {
                write(thing, &mut writer.samples(labels));
            }
        });
    }
}

/// Writes the samples of one family.
#[derive(Debug)]
pub struct FamilyWriter<'a> {
    name: String,
    text: &'a mut Vec<u8>,
}

impl FamilyWriter<'_> {
    /// The samples of a thing with these labels, whose brace is not closed; without any it is empty.
    pub fn samples<'s>(&'s mut self, labels: &'s [u8]) -> Samples<'s> {
        Samples::new(self.text, &self.name, labels)
    }
}

/// Minimum size of a text that is compressed separately: below it, a restart costs more than it saves.
const WORTH_PACKING: usize = 4096;

/// Merges families by their positions: those of several slices, each in order and with at least one block, and those of
/// the host. A family has one header. Neighboring texts are compressed as one.
pub fn join<'a>(
    slices: Vec<impl Iterator<Item = &'a Part<Vec<Chunk>>>>,
    host: impl Iterator<Item = &'a Part<Vec<u8>>>,
    position: impl Fn(&Family) -> usize,
    format: Format,
) -> Document {
    let mut slices: Vec<_> = slices.into_iter().map(Iterator::peekable).collect();
    let mut host = host.peekable();
    let mut document = Document::default();
    let mut text = Vec::new();
    loop {
        let next = slices.iter_mut().filter_map(|it| it.peek()).map(|it| &it.family);
        let next = next.chain(host.peek().map(|it| &it.family));
        let Some(family) = next.min_by_key(|it| position(it)) else { break };
        family.write_header(&mut text, format);
        for slice in &mut slices {
            if let Some(part) = slice.next_if(|part| part.family.name == family.name) {
                for block in part.samples.iter().filter_map(Chunk::block) {
                    if !text.is_empty() {
                        document.push(&pack(&text));
                        text.clear();
                    }
                    document.push(block);
                }
            }
        }
        if let Some(part) = host.next_if(|part| part.family.name == family.name) {
            text.extend_from_slice(&part.samples);
        }
    }
    if !text.is_empty() {
        document.push(&pack(&text));
    }
    document
}

/// Compresses a text, if it is long enough.
fn pack(text: &[u8]) -> Block {
    if text.len() < WORTH_PACKING { Block::stored(text) } else { deflate_lines(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part<S>(name: &'static str, samples: S) -> Part<S> {
        Part { family: Family::gauge(name, &[], "A value."), samples }
    }

    fn chunks<const N: usize>(texts: [&[u8]; N]) -> Vec<Chunk> {
        texts.map(|text| Chunk::from(Block::stored(text))).into()
    }

    #[test]
    fn family_of_several_sources_has_one_header() {
        let one = [part("n", chunks([b"n 1\n"])), part("s", chunks([b"s 1\n"]))];
        let two = [part("s", chunks([b"s 3\n", b"s 4\n"]))];
        let long = format!("h{} 3\n", "x".repeat(2 * WORTH_PACKING));
        let host = [part("s", b"s 2\n".to_vec()), part("h", long.clone().into_bytes())];
        let position = |it: &Family| ["n", "s"].iter().position(|name| *name == it.name);
        let position = |it: &Family| position(it).unwrap_or(usize::MAX);
        let header = |name| format!("# HELP {name} A value.\n# TYPE {name} gauge\n");
        let (n, s, h) = (header("n"), header("s"), header("h"));
        for (slices, host, expected) in [
            (vec![&one[..]], &host[..], format!("{n}n 1\n{s}s 1\ns 2\n{h}{long}")),
            (vec![&two, &one], &host, format!("{n}n 1\n{s}s 3\ns 4\ns 1\ns 2\n{h}{long}")),
            (vec![&one, &[], &two], &[], format!("{n}n 1\n{s}s 1\ns 3\ns 4\n")),
            (vec![], &host[..], format!("{s}s 2\n{h}{long}")),
            (vec![], &[], String::new()),
        ] {
            let slices = slices.into_iter().map(<[_]>::iter).collect();
            let joined = join(slices, host.iter(), position, Format::Text);
            assert_eq!(joined.to_text().unwrap(), expected);
        }
    }
}
