//! What it comes to: verdicts on cables, what they went through, and what stands between counters and
//! the truth.
//!
//! Rendered once a sweep, as the ports are: a thing's labels are written once and copied for each
//! family.

mod cables;
mod families;
#[cfg(test)]
mod tests;

pub(super) use families::{COUNTING, Counted};

use std::ops::Range;
use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_health::{Findings, PortFindings};

use super::deflated::{Block, BlockWriter};
use super::family::{Family, push_label};
use super::line::{Line, Tell};
use super::part::{Part, Place};
use cables::LINKS;
use families::{Cable, DIRECTIONS, PORTS, REGIONS, Spot, Waiting};

/// All families of this part.
pub fn families() -> impl Iterator<Item = Family> {
    (COUNTING.iter().map(|(family, _)| *family))
        .chain(LINKS.iter().map(|(family, _)| *family))
        .chain(DIRECTIONS.iter().map(|(family, _)| *family))
        .chain(PORTS.iter().map(|(family, _)| *family))
        .chain(REGIONS.iter().map(|(family, _)| *family))
}

/// Renders what was found out about the fabrics; families without samples are left out.
pub fn render(observations: &[Arc<Observation>]) -> Vec<Part<Block>> {
    let judged: Vec<Judged<'_>> = observations.iter().filter_map(|it| Judged::new(it)).collect();
    let mut done = Done::default();
    let ports = Labelled::of(&judged, Judged::ports);
    done.each(&ports, Place::Counting, |spot| &spot.counted, COUNTING);
    done.findings(&Labelled::of(&judged, Judged::cables), LINKS);
    done.findings(&Labelled::of(&judged, Judged::directions), DIRECTIONS);
    done.findings(&ports, PORTS);
    done.findings(&Labelled::of(&judged, Judged::regions), REGIONS);
    done.parts
}

/// The families that are done.
#[derive(Default)]
struct Done {
    parts: Vec<Part<Block>>,
    writer: BlockWriter,
    /// How many families of findings there were, those without samples included.
    findings: usize,
}

impl Done {
    /// Adds families of things, or of what there is `of` them, each with its place among its kind.
    fn each<T, U>(
        &mut self,
        things: &Labelled<T>,
        place: impl Fn(usize) -> Place,
        of: impl Fn(&T) -> &U,
        families: &[(Family, Tell<U>)],
    ) {
        for (index, (family, tell)) in families.iter().enumerate() {
            let name = family.sample_name();
            for (labels, thing) in &things.all {
                let labels = &things.text[labels.clone()];
                tell(of(thing), &mut Line::new(self.writer.buffer(), &name, labels));
                self.writer.settle();
            }
            let samples = self.writer.finish();
            if !samples.is_empty() {
                self.parts.push(Part { place: place(index), head: (*family).into(), samples });
            }
        }
    }

    fn findings<T>(&mut self, things: &Labelled<T>, families: &[(Family, Tell<T>)]) {
        let before = self.findings;
        self.findings += families.len();
        self.each(things, |index| Place::Finding(before + index), |thing| thing, families);
    }
}

/// Things with their labels, up to where a family's own begin.
struct Labelled<T> {
    all: Vec<(Range<usize>, T)>,
    text: Vec<u8>,
}

impl<T> Labelled<T> {
    fn of<'a>(judged: &[Judged<'a>], add: impl Fn(&Judged<'a>, &mut Labelled<T>)) -> Labelled<T> {
        let mut labelled = Labelled { all: Vec::new(), text: Vec::new() };
        for fabric in judged {
            add(fabric, &mut labelled);
        }
        labelled
    }

    fn add(&mut self, thing: T, labels: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        labels(&mut self.text);
        self.all.push((start..self.text.len(), thing));
    }
}

/// A fabric with a sweep, and what that came to.
struct Judged<'a> {
    name: &'a str,
    snapshot: &'a Snapshot,
    fabric: &'a Fabric,
    findings: &'a Findings,
}

impl<'a> Judged<'a> {
    fn new(observation: &'a Observation) -> Option<Self> {
        let snapshot = observation.snapshot.as_ref()?;
        let (name, findings) = (&*observation.fabric, &observation.findings);
        Some(Judged { name, snapshot, fabric: &snapshot.fabric, findings })
    }

    /// What was found out about a port; nothing of one that is not told of.
    fn spot(&self, port: PortIndex) -> Option<Spot<'a>> {
        let findings: &PortFindings = self.findings.ports.get(port.0 as usize)?;
        let told = self.fabric.node_of(port).present() && self.fabric.is_monitored(port);
        told.then(|| Spot {
            fabric: self.fabric,
            port,
            findings,
            counted: Counted {
                anchor: &self.snapshot.anchor,
                // Nobody knows how counters fare that were not read.
                counting: self.snapshot.reading(port).map(|_| &findings.counting),
            },
        })
    }

    fn ports(&self, ports: &mut Labelled<Spot<'a>>) {
        for port in self.fabric.port_indexes() {
            let Some(spot) = self.spot(port) else { continue };
            ports.add(spot, |text| {
                push_label(text, b'{', "fabric", self.name);
                self.push_end(text, ["guid", "port"], port);
            });
        }
    }

    fn cables(&self, cables: &mut Labelled<Cable<'a>>) {
        for findings in &self.findings.links {
            let snapshot = self.snapshot;
            let cable = Cable { anchor: &snapshot.anchor, snapshot, findings };
            cables.add(cable, |text| self.push_link(text, findings.link.0));
        }
    }

    fn directions(&self, directions: &mut Labelled<Spot<'a>>) {
        for findings in &self.findings.links {
            let link = findings.link;
            // A loopback plug has one direction.
            let far = Some(link.1).filter(|far| *far != link.0);
            for receiver in [Some(link.0), far].into_iter().flatten() {
                let Some(spot) = self.spot(receiver) else { continue };
                directions.add(spot, |text| {
                    self.push_link(text, link.0);
                    self.push_end(text, ["guid", "port"], receiver);
                });
            }
        }
    }

    fn regions(&self, regions: &mut Labelled<Waiting<'a>>) {
        for region in &self.findings.regions {
            let waiting = Waiting { anchor: &self.snapshot.anchor, region };
            regions.add(waiting, |text| {
                push_label(text, b'{', "fabric", self.name);
                self.push_end(text, ["root_guid", "root_port"], region.root);
            });
        }
    }

    /// `{fabric="…",link="…"`
    fn push_link(&self, text: &mut Vec<u8>, port: PortIndex) {
        push_label(text, b'{', "fabric", self.name);
        if let Some(link) = self.fabric.link_id(port) {
            push_label(text, b',', "link", &link.to_string());
        }
    }

    fn push_end(&self, text: &mut Vec<u8>, names: [&str; 2], port: PortIndex) {
        let (guid, number) = self.fabric.end(port);
        push_label(text, b',', names[0], &guid.to_string());
        push_label(text, b',', names[1], itoa::Buffer::new().format(number));
    }
}
