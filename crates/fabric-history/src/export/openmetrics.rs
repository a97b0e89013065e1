//! Totals and states in OpenMetrics, with the times at which a scrape would have returned them, for import into a
//! Prometheus.
//!
//! Ordered by family, and in each by series. Samples that the file does not have exactly as a scrape would return
//! them are left out.

use std::io::Write;
use std::ops::Range;

use crate::export::{ExportError, ExportFilter};
use crate::file::reader::Reader;
use crate::file::record_kind::part_of;
use crate::file::sql::CablePresence;
use crate::file::timeline::{PortOfNode, Timeline};
use crate::file::totals::{
    CounterGrowth, SegmentRange, SweepTimes, TotalsTable, sweep_range, totals_at,
};
use exposition::{Family, Format, Labels, Samples};
use fabric_observation::families::{LINK_INFO, LINK_UP, NODE_UP, PORT_INFO, counter_family};
use ib_fabric::topology::LinkId;
use ib_mad::PortKey;
use ib_mad::counter::{Attribute, CounterField, CounterRow, TABLE, scaled};
use ib_mad::rate::{Speed, Width};

/// Values that are held at once: 32 MB.
const MAX_VALUES: usize = 4 << 20;

/// The least and the largest number of ports that are read at once.
const PORTS_AT_ONCE: Range<usize> = 64..1_024;

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Samples.
    pub samples: u64,
    /// Series.
    pub series: u64,
    /// Sweeps.
    pub sweeps: usize,
}

/// A fabric in the window.
struct ExportedFabric<'a> {
    reader: &'a Reader,
    filter: &'a ExportFilter,
    name: String,
    /// The sweeps with samples.
    sweeps: Vec<SweepTimes>,
    /// The end of a sample's line for each sweep: its time.
    times: Vec<String>,
    range: SegmentRange<'a>,
    timeline: Timeline,
    /// The totals at the end.
    totals: TotalsTable,
    /// The ids of the exported ports.
    ports: Vec<u32>,
}

struct SampleWriter<'a> {
    out: &'a mut dyn Write,
    text: Vec<u8>,
    /// The family's metadata, until it is written before the first sample.
    header: Option<Family>,
    name: String,
    counts: ExportCounts,
}

/// Writes totals and states, a sample per sweep.
pub fn openmetrics(
    reader: &Reader,
    filter: &ExportFilter,
    out: &mut dyn Write,
) -> Result<ExportCounts, ExportError> {
    reader.in_one_transaction(|| {
        let failed = |error| ExportError::from(reader.failed()(error));
        let fabrics = fabrics(reader, filter).map_err(failed)?;
        let sweeps = fabrics.iter().map(|fabric| fabric.sweeps.len()).sum();
        let counts = ExportCounts { sweeps, ..ExportCounts::default() };
        let (text, name) = (Vec::new(), String::new());
        let mut lines = SampleWriter { out, text, header: None, name, counts };
        let lines = &mut lines;
        lines.family(NODE_UP);
        fabrics.iter().try_for_each(|fabric| fabric.node_up(lines))?;
        lines.family(PORT_INFO);
        fabrics.iter().try_for_each(|fabric| fabric.port_info(lines))?;
        for row in TABLE {
            lines.family(counter_family(row.counter));
            fabrics.iter().try_for_each(|fabric| fabric.counter(row, lines))?;
        }
        lines.family(LINK_INFO);
        fabrics.iter().try_for_each(|fabric| fabric.link_info(lines))?;
        lines.family(LINK_UP);
        fabrics.iter().try_for_each(|fabric| fabric.link_up(lines))?;
        lines.text.extend_from_slice(b"# EOF\n");
        lines.flush()?;
        lines.out.flush()?;
        Ok(lines.counts)
    })
}

fn fabrics<'a>(
    reader: &'a Reader,
    filter: &'a ExportFilter,
) -> rusqlite::Result<Vec<ExportedFabric<'a>>> {
    let mut all = Vec::new();
    let sql = reader.sql();
    for (fabric, name) in sql.fabrics()? {
        let Some(all_sweeps) = sweep_range(sql, fabric, filter.window)? else { continue };
        let mut sweeps = SweepTimes::read(sql, fabric, filter.window)?;
        if let Some(step) = filter.step {
            let step = i64::try_from(step.as_micros()).unwrap_or(i64::MAX).max(1);
            sweeps.dedup_by_key(|sweep| sweep.ended / step);
        }
        let (Some(first), Some(last)) = (sweeps.first(), sweeps.last()) else { continue };
        let range = SegmentRange::read(sql, fabric, first.began, *all_sweeps.end(), false)?;
        let timeline = Timeline::read(sql, fabric, first.began, last.began)?;
        let totals = totals_at(sql, &reader.counter_ids, fabric, *all_sweeps.end())?;
        let time = |sweep: &SweepTimes| {
            let millis = sweep.ended / 1_000;
            format!(" {}.{:03}\n", millis / 1_000, millis % 1_000)
        };
        let times = sweeps.iter().map(time).collect();
        let mut fabric = ExportedFabric {
            reader,
            filter,
            name,
            sweeps,
            times,
            range,
            timeline,
            totals,
            ports: Vec::new(),
        };
        let is_exported =
            |port: &u32| fabric.timeline.end(*port).is_some_and(|end| filter.has_port(end));
        fabric.ports = fabric.timeline.ports.iter().map(|(id, _)| id).filter(is_exported).collect();
        fabric.ports.sort_unstable();
        all.push(fabric);
    }
    Ok(all)
}

impl ExportedFabric<'_> {
    fn port_labels(&self, PortKey { guid, number }: PortKey) -> Vec<u8> {
        let mut text = Vec::new();
        let mut labels = Labels::new(&mut text);
        labels.push("fabric", &self.name).push("guid", &guid.to_string());
        labels.push("port", itoa::Buffer::new().format(number));
        text
    }

    fn node_up(&self, lines: &mut SampleWriter<'_>) -> Result<(), ExportError> {
        let mut nodes: Vec<_> = self.timeline.nodes.iter().collect();
        nodes.retain(|(_, node)| self.filter.has_node(node.guid));
        nodes.sort_unstable_by_key(|(_, node)| node.guid);
        for (id, node) in nodes {
            let mut labels = Vec::new();
            let guid = node.guid.to_string();
            Labels::new(&mut labels).push("fabric", &self.name).push("guid", &guid);
            lines.series(
                &labels,
                self.sweeps.iter().zip(&self.times).filter_map(|(sweep, time)| {
                    Some((self.timeline.is_up(id, sweep.began)?.into(), time))
                }),
            )?;
        }
        Ok(())
    }

    fn counter(&self, row: &CounterRow, lines: &mut SampleWriter<'_>) -> Result<(), ExportError> {
        // If the file is older than the counter, no port has a total of it.
        let Some(number) = self.reader.counter_ids.number(row.counter) else { return Ok(()) };
        let is_of_link =
            |field: &CounterField| field.attribute == Attribute::PortExtendedSpeedsCounters;
        let of_link = row.fields.iter().any(is_of_link);
        let most = (MAX_VALUES / self.sweeps.len().max(1))
            .clamp(PORTS_AT_ONCE.start, PORTS_AT_ONCE.end) as u32;
        let chunk = |port: u32| (part_of(port), port / most);
        for ports in self.ports.chunk_by(|a, b| chunk(*a) == chunk(*b)) {
            let end = |port: u32| self.totals.get(port)?.get(row.counter);
            let known: Vec<(u32, u64)> =
                ports.iter().filter_map(|port| Some((*port, end(*port)?))).collect();
            let (Some((first, _)), Some((last, _))) = (known.first(), known.last()) else {
                continue;
            };
            let (counter, ports) = ((row.counter, number), *first..last + 1);
            let growth = CounterGrowth::read(&self.range, counter, ports, &self.sweeps)
                .map_err(self.reader.failed())?;
            for (port, end) in known {
                let Some(PortOfNode { node, .. }) = self.timeline.ports.get(port) else { continue };
                let Some(of) = self.timeline.end(port) else { continue };
                let totals = growth.totals(port, end);
                let samples = self.sweeps.iter().zip(&self.times).zip(totals);
                lines.series(
                    &self.port_labels(of),
                    samples.filter_map(|((sweep, time), total)| {
                        // Counters of a link (FEC) are left out if there was no link in the sweep before.
                        let is_read = self.timeline.is_up(*node, sweep.began) == Some(true)
                            && (!of_link || self.timeline.had_link(port, sweep.began));
                        Some((scaled(total.filter(|_| is_read)?, row.scale), time))
                    }),
                )?;
            }
        }
        Ok(())
    }

    fn port_info(&self, lines: &mut SampleWriter<'_>) -> Result<(), ExportError> {
        let timeline = &self.timeline;
        for &port in &self.ports {
            let Some(PortOfNode { node: node_id, .. }) = timeline.ports.get(port) else { continue };
            let (Some(node), Some(end)) = (timeline.nodes.get(*node_id), timeline.end(port)) else {
                continue;
            };
            // A switch's port 0 is exposed only if it has counters of its own (enhanced port 0).
            if end.number == 0 && self.totals.get(port).is_none() {
                continue;
            }
            let labels_at = |began| {
                timeline.is_up(*node_id, began).filter(|is_up| *is_up)?;
                let peer = timeline.cable(port, began).and_then(|cable| {
                    let other = cable.other(port);
                    Some((timeline.end(other)?, timeline.node_of(other)?.name(began)))
                });
                Some((node.name(began), peer, timeline.port(port, began).runs()))
            };
            self.info(lines, labels_at, |((name, host), peer, rate)| {
                let mut text = self.port_labels(end);
                let mut labels = Labels::more(&mut text);
                labels.push("node", name).push_if_any("host", host.unwrap_or_default());
                labels.push("node_type", &node.kind);
                if let Some((peer, (name, host))) = peer {
                    labels.push("peer_guid", &peer.guid.to_string());
                    labels.push("peer_port", &peer.number.to_string()).push("peer_node", name);
                    labels.push_if_any("peer_host", host.unwrap_or_default());
                    labels.push("link", &LinkId::between(end, *peer).to_string());
                }
                push_rate(&mut labels, *rate);
                text
            })?;
        }
        Ok(())
    }

    /// Writes a series of ones for all different labels that a port or link had in a sweep.
    fn info<L: PartialEq>(
        &self,
        lines: &mut SampleWriter<'_>,
        labels_at: impl Fn(i64) -> Option<L>,
        text_of: impl Fn(&L) -> Vec<u8>,
    ) -> Result<(), ExportError> {
        let mut series: Vec<(L, Vec<usize>)> = Vec::new();
        for (at, sweep) in self.sweeps.iter().enumerate() {
            let Some(labels) = labels_at(sweep.began) else { continue };
            match series.iter_mut().rev().find(|(known, _)| *known == labels) {
                Some((_, sweeps)) => sweeps.push(at),
                None => series.push((labels, vec![at])),
            }
        }
        for (labels, sweeps) in series {
            let ones = sweeps.iter().filter_map(|at| Some((1, self.times.get(*at)?)));
            lines.series(&text_of(&labels), ones)?;
        }
        Ok(())
    }

    /// The exported cables: the port ids of their ends, their ends, and the intervals in which they were present.
    fn cables(&self) -> Vec<([u32; 2], [PortKey; 2], Vec<&CablePresence>)> {
        let mut cables: Vec<&CablePresence> = self.timeline.cables.iter().collect();
        cables.sort_by_key(|cable| cable.ends);
        let all = cables.chunk_by(|a, b| a.ends == b.ends).filter_map(|same| {
            let ends = same.first()?.ends;
            let [low, high] = ends.map(|port| self.timeline.end(port));
            let both = [low?, high?];
            both.iter().any(|end| self.filter.has_port(*end)).then(|| (ends, both, same.to_vec()))
        });
        all.collect()
    }

    fn link_labels(&self, [low, high]: [PortKey; 2]) -> Vec<u8> {
        let mut labels = Vec::new();
        let link = LinkId::between(low, high).to_string();
        Labels::new(&mut labels).push("fabric", &self.name).push("link", &link);
        labels
    }

    fn link_info(&self, lines: &mut SampleWriter<'_>) -> Result<(), ExportError> {
        let timeline = &self.timeline;
        for (ids, ends, there) in self.cables() {
            let [Some(low), Some(high)] = ids.map(|port| timeline.node_of(port)) else { continue };
            let labels_at = |began| {
                there.iter().find(|cable| cable.is_present(began))?;
                let names = [low, high].map(|node| node.name(began));
                Some((names, timeline.port(ids[0], began).runs()))
            };
            self.info(lines, labels_at, |(names, rate)| {
                let mut text = self.link_labels(ends);
                let mut labels = Labels::more(&mut text);
                let of = [low, high].into_iter().zip(ends).zip(names);
                for (prefix, ((node, PortKey { guid, number }), (name, host))) in
                    ["", "peer_"].into_iter().zip(of)
                {
                    labels.push_if_any(&format!("{prefix}guid"), &guid.to_string());
                    labels.push(&format!("{prefix}port"), itoa::Buffer::new().format(number));
                    labels.push_if_any(&format!("{prefix}node"), name);
                    labels.push_if_any(&format!("{prefix}host"), host.unwrap_or_default());
                    labels.push_if_any(&format!("{prefix}node_type"), &node.kind);
                }
                push_rate(&mut labels, *rate);
                text
            })?;
        }
        Ok(())
    }

    fn link_up(&self, lines: &mut SampleWriter<'_>) -> Result<(), ExportError> {
        for (ids, ends, there) in self.cables() {
            let samples = self.sweeps.iter().zip(&self.times).filter_map(|(sweep, time)| {
                there.iter().find(|cable| cable.is_present(sweep.began))?;
                Some((self.timeline.port(ids[0], sweep.began).up()?.into(), time))
            });
            lines.series(&self.link_labels(ends), samples)?;
        }
        Ok(())
    }
}

fn push_rate(labels: &mut Labels<'_>, rate: Option<(Width, Speed)>) {
    if let Some((width, speed)) = rate {
        labels.push("speed", speed.label()).push("width", width.label());
    }
}

impl SampleWriter<'_> {
    /// Begins a family: its metadata is written before its first sample.
    fn family(&mut self, family: Family) {
        self.name = family.sample_name();
        self.header = Some(family);
    }

    /// Writes a series; `labels` are without the closing brace.
    fn series<'t>(
        &mut self,
        labels: &[u8],
        samples: impl Iterator<Item = (u64, &'t String)>,
    ) -> Result<(), ExportError> {
        let before = self.counts.samples;
        for (value, time) in samples {
            if let Some(header) = self.header.take() {
                header.write_header(&mut self.text, Format::OpenMetrics);
            }
            Samples::new(&mut self.text, &self.name, labels).value_at(value, time);
            self.counts.samples += 1;
        }
        self.counts.series += u64::from(self.counts.samples > before);
        if self.text.len() > 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}
