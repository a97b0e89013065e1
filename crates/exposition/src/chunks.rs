//! Families rendered in chunks of things, of which only those are written and compressed again whose samples differ
//! from the last rendering.
//!
//! Most samples of a fabric do not change from one sweep to the next: names, states and the counts of errors. What
//! writes the samples of a chunk runs first for their fingerprint. So nothing that a text depends on can be
//! forgotten, and what is left to do for an unchanged chunk is a few nanoseconds a sample.

use super::document::Block;
use super::family::Family;
use super::fingerprint::Fingerprint;
use super::labeled::Labeled;
use super::line_deflate::{Line, LineDeflate};
use super::part::{Families, Part};
use super::samples::Samples;

/// The samples of a family of one chunk of things.
#[derive(Clone, Debug)]
pub struct Chunk {
    fingerprint: Fingerprint,
    /// `None` if there are no samples.
    block: Option<Block>,
}

impl Chunk {
    /// The samples; `None` if there are none.
    pub fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }
}

#[cfg(test)]
impl From<Block> for Chunk {
    fn from(block: Block) -> Self {
        Chunk { fingerprint: Fingerprint::default(), block: Some(block) }
    }
}

/// How much was rendered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Chunks of families.
    pub chunks: u64,
    /// Their text, in bytes.
    pub bytes: u64,
}

/// Renders chunks of things.
#[derive(Debug, Default)]
pub struct ChunkRenderer {
    text: Vec<u8>,
    lines: Vec<Line>,
    deflate: LineDeflate,
    rendered: Rendered,
}

impl ChunkRenderer {
    /// Adds the families of the next things to the chunks so far. `previous` are all chunks of the last rendering.
    pub fn chunk<'a>(
        &'a mut self,
        families: &'a mut Vec<Part<Vec<Chunk>>>,
        previous: &'a [Part<Vec<Chunk>>],
    ) -> impl Families + 'a {
        ChunkFamilies { renderer: self, families, previous, next: 0 }
    }

    /// How much was rendered so far.
    pub fn rendered(&self) -> Rendered {
        self.rendered
    }
}

/// The families of one chunk.
struct ChunkFamilies<'a> {
    renderer: &'a mut ChunkRenderer,
    families: &'a mut Vec<Part<Vec<Chunk>>>,
    previous: &'a [Part<Vec<Chunk>>],
    /// The index of the next family: they are the same, in the same order, in each chunk.
    next: usize,
}

impl ChunkFamilies<'_> {
    /// Adds the next family, and writes it if it has another fingerprint than the last time.
    fn add<'t, I>(
        &mut self,
        family: &Family,
        things: &'t Labeled<I>,
        fingerprint: Fingerprint,
        write: impl Fn(&'t I, &mut Samples<'_>),
    ) {
        let index = self.next;
        self.next += 1;
        if self.families.len() == index {
            self.families.push(Part { family: family.clone(), samples: Vec::new() });
        }
        let chunks = &mut self.families[index].samples;
        let previous = self.previous.get(index).and_then(|part| part.samples.get(chunks.len()));
        if let Some(same) = previous.filter(|chunk| chunk.fingerprint == fingerprint) {
            chunks.push(same.clone());
            return;
        }
        let ChunkRenderer { text, lines, deflate, rendered } = &mut *self.renderer;
        text.clear();
        lines.clear();
        let name = family.sample_name();
        for (number, (labels, thing)) in things.iter().enumerate() {
            write(thing, &mut Samples::of_thing(number, labels, &name, text, lines));
        }
        let has_any = !text.is_empty();
        let block = has_any.then(|| deflate.samples(text, name.len(), lines, things.likeness()));
        rendered.chunks += u64::from(has_any);
        rendered.bytes += text.len() as u64;
        chunks.push(Chunk { fingerprint, block });
    }
}

impl Families for ChunkFamilies<'_> {
    fn of_things<'t, I>(
        &mut self,
        family: &Family,
        things: &'t Labeled<I>,
        write: impl Fn(&'t I, &mut Samples<'_>),
    ) {
        let fingerprint = things.fingerprint(&write);
        self.add(family, things, fingerprint, write);
    }

    /// Most families are of numbers, and most do not change: their fingerprint is made without samples.
    fn numbers<I>(
        &mut self,
        family: &Family,
        things: &Labeled<I>,
        value: impl Fn(&I) -> Option<u64>,
    ) {
        let fingerprint = things.fingerprint_of_numbers(&value);
        self.add(family, things, fingerprint, |thing, samples| {
            samples.value_if_known(value(thing));
        });
    }
}
