//! Totals and states with the times at which a scrape would have told them, for a Prometheus to keep.
//!
//! Family by family, and in each series by series. What the file does not know exactly as a scrape tells
//! it is left out.

use std::io::Write;
use std::ops::Range;

use crate::file::growth::Swept;
use crate::file::ledger::Ledger;
use crate::file::reader::Reader;
use crate::file::stretch::Stretch;
use crate::file::tier::part_of;
use crate::file::timeline::{Led, Timeline};
use exposition::Format;
use exposition::family::{Head, push_label};
use fabric_observation::families::{LINK_INFO, LINK_UP, NODE_UP, PORT_INFO, counter_head};
use ib_fabric::topology::{End, LinkId};
use ib_mad::counter::{Attribute, CounterField, CounterRow, TABLE, scaled};
use ib_mad::rate::{Speed, Width};

use super::{Asked, ExportError};

/// Numbers that are held at once: 32 MB.
const AT_ONCE: usize = 4 << 20;

/// The fewest ports, and the most, that are read at once.
const PORTS: Range<usize> = 64..1_024;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many samples.
    pub samples: u64,
    /// Of how many series.
    pub series: u64,
    /// With how many sweeps.
    pub sweeps: usize,
}

/// A fabric and its sweeps.
struct Lived {
    name: String,
    /// Those that are told.
    sweeps: Vec<Swept>,
    /// The ends of the lines of each: its time.
    times: Vec<String>,
    stretch: Stretch,
    timeline: Timeline,
    /// What counters had come to in the end.
    ledger: Ledger,
}

/// Text in the making.
struct Lines<'a> {
    out: &'a mut dyn Write,
    text: Vec<u8>,
    /// What is to stand before the next sample.
    head: Option<Head>,
    name: String,
    written: Written,
}

/// Writes totals and states, a sample a sweep.
pub fn openmetrics(
    reader: &Reader,
    asked: &Asked,
    out: &mut dyn Write,
) -> Result<Written, ExportError> {
    reader.at_once(|| {
        let failed = |error| ExportError::from(reader.failed()(error));
        let fabrics = lived(reader, asked).map_err(failed)?;
        let sweeps = fabrics.iter().map(|fabric| fabric.sweeps.len()).sum();
        let written = Written { sweeps, ..Written::default() };
        let mut lines = Lines { out, text: Vec::new(), head: None, name: String::new(), written };
        lines.family(NODE_UP.into());
        fabrics.iter().try_for_each(|fabric| fabric.node_up(asked, &mut lines))?;
        lines.family(PORT_INFO.into());
        fabrics.iter().try_for_each(|fabric| fabric.port_info(asked, &mut lines))?;
        for row in TABLE {
            lines.family(counter_head(row.counter));
            for fabric in &fabrics {
                fabric.counter(row, reader, asked, &mut lines)?;
            }
        }
        lines.family(LINK_INFO.into());
        fabrics.iter().try_for_each(|fabric| fabric.link_info(asked, &mut lines))?;
        lines.family(LINK_UP.into());
        fabrics.iter().try_for_each(|fabric| fabric.link_up(asked, &mut lines))?;
        lines.text.extend_from_slice(b"# EOF\n");
        lines.flush()?;
        lines.out.flush()?;
        Ok(lines.written)
    })
}

fn lived(reader: &Reader, asked: &Asked) -> rusqlite::Result<Vec<Lived>> {
    let mut all = Vec::new();
    for (fabric, name) in reader.fabric_ids()? {
        let Some(reach) = reader.reach(fabric, asked.window)? else { continue };
        let mut sweeps = reader.swept(fabric, asked.window)?;
        if let Some(step) = asked.step {
            let step = i64::try_from(step.as_micros()).unwrap_or(i64::MAX).max(1);
            sweeps.dedup_by_key(|sweep| sweep.ended / step);
        }
        let Some(first) = sweeps.first() else { continue };
        let stretch = reader.stretch(fabric, first.began, reach.last, false)?;
        let timeline = reader.timeline(fabric, &sweeps)?;
        let ledger = reader.totals_at(fabric, reach.last)?;
        let time = |sweep: &Swept| {
            let millis = sweep.ended / 1_000;
            format!(" {}.{:03}\n", millis / 1_000, millis % 1_000)
        };
        let times = sweeps.iter().map(time).collect();
        all.push(Lived { name, sweeps, times, stretch, timeline, ledger });
    }
    Ok(all)
}

impl Lived {
    fn end(&self, port: u32) -> Option<End> {
        let port = self.timeline.ports.get(&port)?;
        Some((self.timeline.nodes.get(&port.node)?.guid, port.number))
    }

    /// The ports that are told of, by their numbers in the file.
    fn ports(&self, asked: &Asked) -> Vec<u32> {
        let ports = self.timeline.ports.keys().copied();
        let mut ports: Vec<u32> =
            ports.filter(|port| self.end(*port).is_some_and(|end| asked.has(end))).collect();
        ports.sort_unstable();
        ports
    }

    fn port_labels(&self, (guid, number): End) -> Vec<u8> {
        let mut labels = Vec::new();
        push_label(&mut labels, b'{', "fabric", &self.name);
        push_label(&mut labels, b',', "guid", &guid.to_string());
        push_label(&mut labels, b',', "port", itoa::Buffer::new().format(number));
        labels
    }

    fn node_up(&self, asked: &Asked, lines: &mut Lines<'_>) -> Result<(), ExportError> {
        let mut nodes: Vec<_> = self.timeline.nodes.iter().collect();
        nodes.retain(|(_, node)| asked.has_node(node.guid));
        nodes.sort_unstable_by_key(|(_, node)| node.guid);
        for (id, node) in nodes {
            let mut labels = Vec::new();
            push_label(&mut labels, b'{', "fabric", &self.name);
            push_label(&mut labels, b',', "guid", &node.guid.to_string());
            lines.series(
                &labels,
                self.sweeps.iter().zip(&self.times).filter_map(|(sweep, time)| {
                    Some((self.timeline.is_up(*id, sweep.began)?.into(), time))
                }),
            )?;
        }
        Ok(())
    }

    fn counter(
        &self,
        row: &CounterRow,
        reader: &Reader,
        asked: &Asked,
        lines: &mut Lines<'_>,
    ) -> Result<(), ExportError> {
        let is_of_link =
            |place: &CounterField| place.attribute == Attribute::PortExtendedSpeedsCounters;
        let of_link = row.fields.iter().any(is_of_link);
        let ports = self.ports(asked);
        let most = (AT_ONCE / self.sweeps.len().max(1)).clamp(PORTS.start, PORTS.end) as u32;
        let chunk = |port: u32| (part_of(port), port / most);
        for some in ports.chunk_by(|a, b| chunk(*a) == chunk(*b)) {
            let end = |port: u32| self.ledger.find(port)?.get(row.counter);
            let known: Vec<(u32, u64)> =
                some.iter().filter_map(|port| Some((*port, end(*port)?))).collect();
            let (Some((first, _)), Some((last, _))) = (known.first(), known.last()) else {
                continue;
            };
            let growth = reader
                .growth(&self.stretch, row.counter, *first..last + 1, &self.sweeps)
                .map_err(reader.failed())?;
            for (port, end) in known {
                let Some(place) = self.timeline.ports.get(&port) else { continue };
                let Some(of) = self.end(port) else { continue };
                let totals = growth.totals(port, end);
                let told = self.sweeps.iter().zip(&self.times).zip(totals);
                lines.series(
                    &self.port_labels(of),
                    told.filter_map(|((sweep, time), total)| {
                        // What error correction mends is asked where there was a link before.
                        let is_read = self.timeline.is_read(place.node, sweep.began)
                            && (!of_link || self.timeline.had_link(port, sweep.began));
                        Some((scaled(total.filter(|_| is_read)?, row.scale), time))
                    }),
                )?;
            }
        }
        Ok(())
    }

    fn port_info(&self, asked: &Asked, lines: &mut Lines<'_>) -> Result<(), ExportError> {
        let timeline = &self.timeline;
        for port in self.ports(asked) {
            let Some(place) = timeline.ports.get(&port) else { continue };
            let (Some(node), Some(end)) = (timeline.nodes.get(&place.node), self.end(port)) else {
                continue;
            };
            // A switch's port 0 is told of where it is an endpoint of its own, with counters.
            if place.number == 0 && self.ledger.find(port).is_none() {
                continue;
            }
            let mut told: Vec<(Labels<'_>, Vec<usize>)> = Vec::new();
            for (at, sweep) in self.sweeps.iter().enumerate() {
                let began = sweep.began;
                if timeline.is_up(place.node, began) != Some(true) {
                    continue;
                }
                let peer = timeline.cable(port, began).and_then(|cable| {
                    let other = cable.other(port);
                    let node = timeline.nodes.get(&timeline.ports.get(&other)?.node)?;
                    Some((self.end(other)?, node.name(began)))
                });
                let runs = timeline.port(port, began).runs();
                add(&mut told, Labels { names: [node.name(began), ""], peer, runs }, at);
            }
            for (said, sweeps) in told {
                let mut labels = self.port_labels(end);
                push_label(&mut labels, b',', "node", said.names[0]);
                push_label(&mut labels, b',', "node_type", &node.kind);
                if let Some((peer, name)) = said.peer {
                    push_label(&mut labels, b',', "peer_guid", &peer.0.to_string());
                    push_label(&mut labels, b',', "peer_port", &peer.1.to_string());
                    push_label(&mut labels, b',', "peer_node", name);
                    push_label(&mut labels, b',', "link", &LinkId::between(end, peer).to_string());
                }
                push_runs(&mut labels, said.runs);
                self.ones(&labels, &sweeps, lines)?;
            }
        }
        Ok(())
    }

    /// The cables that are told of: their ids, and when they were there.
    fn cables(&self, asked: &Asked) -> Vec<([u32; 2], [End; 2], Vec<&Led>)> {
        let mut cables: Vec<&Led> = self.timeline.cables.iter().collect();
        cables.sort_by_key(|cable| cable.ends);
        let all = cables.chunk_by(|a, b| a.ends == b.ends).filter_map(|same| {
            let ends = same.first()?.ends;
            let [low, high] = ends.map(|port| self.end(port));
            let both = [low?, high?];
            both.iter().any(|end| asked.has(*end)).then(|| (ends, both, same.to_vec()))
        });
        all.collect()
    }

    fn link_labels(&self, [low, high]: [End; 2]) -> Vec<u8> {
        let mut labels = Vec::new();
        push_label(&mut labels, b'{', "fabric", &self.name);
        push_label(&mut labels, b',', "link", &LinkId::between(low, high).to_string());
        labels
    }

    fn link_info(&self, asked: &Asked, lines: &mut Lines<'_>) -> Result<(), ExportError> {
        let timeline = &self.timeline;
        for (ids, ends, there) in self.cables(asked) {
            let nodes = ids.map(|port| timeline.nodes.get(&timeline.ports.get(&port)?.node));
            let [Some(low), Some(high)] = nodes else { continue };
            let mut told: Vec<(Labels<'_>, Vec<usize>)> = Vec::new();
            for (at, sweep) in self.sweeps.iter().enumerate() {
                let began = sweep.began;
                if there.iter().any(|cable| cable.is_there(began)) {
                    let names = [low, high].map(|node| node.name(began));
                    let runs = timeline.port(ids[0], began).runs();
                    add(&mut told, Labels { names, peer: None, runs }, at);
                }
            }
            for (said, sweeps) in told {
                let mut labels = self.link_labels(ends);
                let mut push = |name: &str, value: &str| {
                    // One without a value is as good as none.
                    if !value.is_empty() {
                        push_label(&mut labels, b',', name, value);
                    }
                };
                let of = [low, high].into_iter().zip(ends).zip(said.names);
                for (prefix, ((node, (guid, number)), name)) in ["", "peer_"].into_iter().zip(of) {
                    push(&format!("{prefix}guid"), &guid.to_string());
                    push(&format!("{prefix}port"), itoa::Buffer::new().format(number));
                    push(&format!("{prefix}node"), name);
                    push(&format!("{prefix}node_type"), &node.kind);
                }
                push_runs(&mut labels, said.runs);
                self.ones(&labels, &sweeps, lines)?;
            }
        }
        Ok(())
    }

    fn link_up(&self, asked: &Asked, lines: &mut Lines<'_>) -> Result<(), ExportError> {
        for (ids, ends, there) in self.cables(asked) {
            let told = self.sweeps.iter().zip(&self.times).filter_map(|(sweep, time)| {
                there.iter().find(|cable| cable.is_there(sweep.began))?;
                Some((self.timeline.port(ids[0], sweep.began).up()?.into(), time))
            });
            lines.series(&self.link_labels(ends), told)?;
        }
        Ok(())
    }

    fn ones(
        &self,
        labels: &[u8],
        sweeps: &[usize],
        lines: &mut Lines<'_>,
    ) -> Result<(), ExportError> {
        lines.series(labels, sweeps.iter().filter_map(|at| Some((1, self.times.get(*at)?))))
    }
}

/// What changes of a series' labels from sweep to sweep.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Labels<'a> {
    names: [&'a str; 2],
    peer: Option<(End, &'a str)>,
    runs: Option<(Width, Speed)>,
}

/// Takes down that a sweep had these labels.
fn add<'a>(told: &mut Vec<(Labels<'a>, Vec<usize>)>, labels: Labels<'a>, at: usize) {
    match told.iter_mut().rev().find(|(known, _)| *known == labels) {
        Some((_, sweeps)) => sweeps.push(at),
        None => told.push((labels, vec![at])),
    }
}

fn push_runs(labels: &mut Vec<u8>, runs: Option<(Width, Speed)>) {
    if let Some((width, speed)) = runs {
        push_label(labels, b',', "speed", speed.label());
        push_label(labels, b',', "width", width.label());
    }
}

impl Lines<'_> {
    /// Begins a family: its head is written with its first sample.
    fn family(&mut self, head: Head) {
        self.name = head.sample_name();
        self.head = Some(head);
    }

    /// Writes a series; `labels` lack the brace at their end.
    fn series<'t>(
        &mut self,
        labels: &[u8],
        samples: impl Iterator<Item = (u64, &'t String)>,
    ) -> Result<(), ExportError> {
        let before = self.written.samples;
        let mut digits = itoa::Buffer::new();
        for (value, time) in samples {
            if let Some(head) = self.head.take() {
                let mut text = String::new();
                head.write(&mut text, Format::OpenMetrics);
                self.text.extend_from_slice(text.as_bytes());
            }
            for part in [self.name.as_bytes(), labels, b"} ", digits.format(value).as_bytes()] {
                self.text.extend_from_slice(part);
            }
            self.text.extend_from_slice(time.as_bytes());
            self.written.samples += 1;
        }
        self.written.series += u64::from(self.written.samples > before);
        if self.text.len() > 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}
