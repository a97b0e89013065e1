//! One slice of the fabrics: its things by kind, which are rendered in chunks as soon as a chunk is full.

use std::sync::LazyLock;

use exposition::{Chunk, ChunkRenderer, Families, Family, Labeled, Labels, Part};
use fabric_observation::Observation;
use fabric_observation::families::counter_family;
use ib_health::bit_errors::BitErrors;
use ib_mad::counter::{CounterRow, TABLE, scaled};

use super::families::{
    COUNTING, HARDWARE, LIMITS, LINKS, LinkItem, MANAGERS, NODE_HARDWARE, NODES, NodeItem, OUTAGES,
    PORT_INFOS, PORT_STATES, PORTS, PortItem, RECEIVERS, REGIONS, RegionItem,
};
use crate::metrics::modules::MODULES;

/// The number of things of one kind that are rendered together: of more, more is rendered again when one changes; of
/// fewer, the compressed text is larger, for each chunk begins without knowing the text before it. The fabrics of tests
/// are small, and should have several chunks.
const CHUNK: usize = if cfg!(test) { 16 } else { 512 };

/// The families of things of one kind, in chunks of things.
type Chunked = Vec<Part<Vec<Chunk>>>;

/// The families of one slice, by the kind of thing that has them.
#[derive(Debug, Default)]
pub struct Slice {
    fabrics: Chunked,
    nodes: Chunked,
    ports: Chunked,
    links: Chunked,
    directions: Chunked,
    regions: Chunked,
}

impl Slice {
    /// The families that have samples, by their positions.
    pub fn parts(&self, position: fn(&Family) -> usize) -> Vec<&Part<Vec<Chunk>>> {
        let Slice { fabrics, nodes, ports, links, directions, regions } = self;
        let all = [nodes, ports, links, directions, regions, fabrics].into_iter().flatten();
        let has_samples =
            |part: &&Part<Vec<Chunk>>| part.samples.iter().any(|chunk| chunk.block().is_some());
        let mut parts: Vec<_> = all.filter(has_samples).collect();
        parts.sort_by_key(|part| position(&part.family));
        parts
    }
}

/// Things of one kind.
pub(super) trait Kind: Sized {
    /// Adds their families.
    fn add(things: &Labeled<Self>, families: &mut impl Families);
}

impl Kind for &Observation {
    fn add(things: &Labeled<Self>, families: &mut impl Families) {
        families.each(MANAGERS, things);
    }
}

impl Kind for NodeItem<'_> {
    fn add(things: &Labeled<Self>, families: &mut impl Families) {
        families.each(NODES, things);
        families.each(NODE_HARDWARE, things);
    }
}

/// The counters' families: their names are made of several parts.
static COUNTERS: LazyLock<Vec<(Family, &CounterRow)>> =
    LazyLock::new(|| TABLE.iter().map(|row| (counter_family(row.counter), row)).collect());

impl Kind for PortItem<'_> {
    fn add(things: &Labeled<Self>, families: &mut impl Families) {
        families.each(PORT_INFOS, things);
        families.each(HARDWARE, things);
        families.each_of(MODULES, things, PortItem::module);
        families.each(PORT_STATES, things);
        for (family, row) in &*COUNTERS {
            // Causes of errors and discards are parts of counters that are always there. Nearly all are 0 for ever.
            let is_cause = row.fields.iter().all(|it| it.attribute.is_details());
            families.numbers(family, things, |item| {
                let total = item.reading?.get(row.counter).filter(|total| *total > 0 || !is_cause);
                total.map(|total| scaled(total, row.scale))
            });
        }
        families.each_of(COUNTING, things, PortItem::counted);
        families.each(PORTS, things);
    }
}

impl Kind for LinkItem<'_> {
    fn add(things: &Labeled<Self>, families: &mut impl Families) {
        families.each(LINKS, things);
        families.each(OUTAGES, things);
        families.each(LIMITS, things);
    }
}

impl Kind for &BitErrors {
    fn add(things: &Labeled<Self>, families: &mut impl Families) {
        families.each_of(RECEIVERS, things, |errors| Some(*errors));
    }
}

impl Kind for RegionItem<'_> {
    fn add(things: &Labeled<Self>, families: &mut impl Families) {
        families.each(REGIONS, things);
    }
}

/// Things of one kind: the chunks that were rendered, and the things of the next.
pub(super) struct Things<'a, T> {
    done: Chunked,
    next: Labeled<T>,
    /// The chunks of the previous rendering.
    previous: &'a [Part<Vec<Chunk>>],
}

impl<'a, T: Kind> Things<'a, T> {
    fn new(previous: Option<&'a Chunked>) -> Self {
        let previous = previous.map(Vec::as_slice).unwrap_or_default();
        Things { done: Chunked::new(), next: Labeled::default(), previous }
    }

    pub fn push(
        &mut self,
        renderer: &mut ChunkRenderer,
        thing: T,
        labels: impl FnOnce(&mut Labels<'_>),
    ) {
        self.next.push(thing, labels);
        if self.next.len() == CHUNK {
            self.render(renderer);
        }
    }

    fn render(&mut self, renderer: &mut ChunkRenderer) {
        T::add(&self.next, &mut renderer.chunk(&mut self.done, self.previous));
        self.next.clear();
    }

    fn finish(mut self, renderer: &mut ChunkRenderer) -> Chunked {
        if !self.next.is_empty() {
            self.render(renderer);
        }
        self.done
    }
}

/// The things of one slice.
pub(super) struct SliceItems<'a> {
    pub fabrics: Things<'a, &'a Observation>,
    pub nodes: Things<'a, NodeItem<'a>>,
    /// Monitored ports of nodes that are present.
    pub ports: Things<'a, PortItem<'a>>,
    pub links: Things<'a, LinkItem<'a>>,
    /// Links by the port that receives.
    pub directions: Things<'a, &'a BitErrors>,
    pub regions: Things<'a, RegionItem<'a>>,
}

impl<'a> SliceItems<'a> {
    pub fn new(previous: Option<&'a Slice>) -> Self {
        SliceItems {
            fabrics: Things::new(previous.map(|it| &it.fabrics)),
            nodes: Things::new(previous.map(|it| &it.nodes)),
            ports: Things::new(previous.map(|it| &it.ports)),
            links: Things::new(previous.map(|it| &it.links)),
            directions: Things::new(previous.map(|it| &it.directions)),
            regions: Things::new(previous.map(|it| &it.regions)),
        }
    }

    /// Renders the things that are left.
    pub fn finish(self, renderer: &mut ChunkRenderer) -> Slice {
        Slice {
            fabrics: self.fabrics.finish(renderer),
            nodes: self.nodes.finish(renderer),
            ports: self.ports.finish(renderer),
            links: self.links.finish(renderer),
            directions: self.directions.finish(renderer),
            regions: self.regions.finish(renderer),
        }
    }
}
