//! A file and a net brought together: the story.

use std::time::Duration;

use super::error::Problem;
use super::file::{Entry, File, PatternEntry, TrafficEntry, WayEntry};
use super::planes::Planes;
use super::stage::{Scene, Stage, found, wrong};
use super::value::{Time, line_of};
use super::wiring::When;
use super::{Action, Step, Story, Way, entry, spell, traffic};
use crate::net::{Net, PortId};
use ib_mad::node::NodeKind;
use site_config::near::quoted;
use site_config::yaml::Spanned;

/// The name of the flows that are there from the beginning.
const FROM_THE_BEGINNING: &str = "traffic";
/// No MAD is under way for longer than this, whatever the file says.
const SLOWEST: Duration = Duration::from_secs(60);

/// The speed-ups that can be wished for. An entry may begin after ten years, be repeated for ten and
/// last for ten: ten times as long is 300 years, and the clock goes on for 584.
pub(super) const SPEEDUPS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// The most planes: each is watched by threads of its own.
const MOST_PLANES: usize = 16;
/// So many unicast LIDs are there (IBTA 1.4, 4.1.3).
const MOST_LIDS: usize = 0xbfff;

/// Brings them together. `speedup` is one of [`SPEEDUPS`].
pub(super) fn resolve(file: &File, net: Net, speedup: f64) -> Result<Story, Problem> {
    let way = way(file.way.as_ref())?;
    let seed = file.seed.unwrap_or(1);
    let traffic = file.traffic.clone().unwrap_or_default();
    let packet = traffic.packet.map_or(4096, |packet| packet.0);
    let mut stage = Stage::new(&net, seed, way, packet, speedup);
    fits(&stage.planes)
        .map_err(|text| Problem::at(file.fabric.as_ref().map(line_of), text).of("fabric"))?;
    let seats = seats(&stage, file)?;
    let masters = masters(&stage, file, &seats)?;
    let mut actions = flowing(&stage, &traffic)?;
    play(&mut stage, file)?;
    let mut spells = std::mem::take(&mut stage.spells);
    spell::cut(&mut spells, &stage.cuts);
    // Before a cable is moved, what its link went through is over.
    actions.append(&mut spell::actions(spells));
    actions.append(&mut stage.points);
    // What is of one time and one entry stays in its order.
    actions.sort_by_key(|(when, _)| *when);
    stage.told.sort_by_key(|(when, _)| *when);
    let played = |at| stage.played(at);
    let steps =
        actions.into_iter().map(|((at, _), action)| Step { at: played(at), action }).collect();
    let told = stage.told.iter().map(|((at, _), words)| (played(*at), words.clone())).collect();
    Ok(Story { net, seats, masters, seed, way, steps, told })
}

/// Whether every port can be addressed, and every plane be watched.
fn fits(planes: &Planes<'_>) -> Result<(), String> {
    let (count, lids) = (planes.count(), planes.most_lids());
    if count > MOST_PLANES {
        return Err(format!(
            "it is {count} fabrics side by side, and at most {MOST_PLANES} can be watched"
        ));
    }
    if lids > MOST_LIDS {
        return Err(format!(
            "its switches and its adapters' ports need {lids} LIDs, and a fabric has {MOST_LIDS}"
        ));
    }
    Ok(())
}

fn way(entry: Option<&WayEntry>) -> Result<Way, Problem> {
    let usual = WayEntry::default();
    let entry = entry.unwrap_or(&usual);
    let time = |name: &str, given: Option<&Spanned<Time>>, usual: u64| match given {
        None => Ok(Duration::from_micros(usual)),
        Some(given) if given.value.0 <= SLOWEST => Ok(given.value.0),
        Some(given) => wrong(given, format!("way: {name}: it is more than a minute")),
    };
    Ok(Way {
        round_trip: time("round-trip", entry.round_trip.as_ref(), 20)?,
        per_hop: time("per-hop", entry.per_hop.as_ref(), 1)?,
        jitter: time("jitter", entry.jitter.as_ref(), 10)?,
        loss: entry.loss.map_or(0.0, |share| share.0),
    })
}

/// The port that a name leads to, of which the plane is known; of a host the first with a cable.
fn port_of(
    stage: &Stage<'_>,
    (node, port): (crate::net::NodeId, Option<PortId>),
) -> Option<PortId> {
    match port {
        Some(port) => {
            let of = stage.net.port(port);
            let is_zero = of.number == 0 && stage.net.node_of(port).kind == NodeKind::Switch;
            (is_zero || of.cable.is_some()).then_some(port)
        }
        None => {
            stage.planes.hosts().iter().copied().find(|port| stage.net.port(*port).node == node)
        }
    }
}

fn seats(stage: &Stage<'_>, file: &File) -> Result<Vec<PortId>, Problem> {
    let first = match &file.seat {
        None => stage.planes.hosts().first().copied().ok_or_else(|| {
            let line = file.fabric.as_ref().map(line_of);
            Problem::at(line, "seat: the fabric has no host with a cable to sit at")
        })?,
        Some(seat) => {
            let place = found(seat, |text| stage.places.host(text));
            match port_of(stage, place.map_err(|problem| problem.of("seat"))?) {
                Some(port) => port,
                None => return wrong(seat, format!("seat: {} has no cable", quoted(&seat.value))),
            }
        }
    };
    let planes = stage.planes.from(first).into_iter();
    Ok(planes.filter_map(|plane| stage.planes.counterpart(plane, first)).collect())
}

fn masters(stage: &Stage<'_>, file: &File, seats: &[PortId]) -> Result<Vec<PortId>, Problem> {
    let plane_of = |seat: &PortId| stage.planes.of(*seat);
    let named = match &file.master {
        None => {
            // The second host, or else the only one.
            let nodes = |port: &PortId| stage.net.port(*port).node;
            let plane = seats.first().map(plane_of);
            let hosts: Vec<PortId> =
                plane.map_or_else(Vec::new, |plane| stage.planes.hosts_of(plane).collect());
            let first = hosts.first().map(nodes);
            hosts.iter().find(|port| Some(nodes(port)) != first).or(hosts.first()).copied()
        }
        Some(master) => {
            let place = found(master, |text| stage.places.manager(text));
            match port_of(stage, place.map_err(|problem| problem.of("master"))?) {
                Some(port) => Some(port),
                None => {
                    return wrong(
                        master,
                        format!("master: {} has no cable", quoted(&master.value)),
                    );
                }
            }
        }
    };
    let in_plane = |seat| {
        named.and_then(|port| stage.planes.counterpart(plane_of(seat), port)).unwrap_or(*seat)
    };
    Ok(seats.iter().map(in_plane).collect())
}

/// What flows from the beginning.
fn flowing(stage: &Stage<'_>, entry: &TrafficEntry) -> Result<Vec<(When, Action)>, Problem> {
    // Shifts of all hosts by one number spread evenly in a fat tree, and random pairs do not: so
    // nobody waits before something happens.
    let pattern = entry.pattern.unwrap_or(PatternEntry::Across);
    let load = entry.load.map_or(0.2, |share| share.0);
    let to = match &entry.to {
        None => None,
        Some(to) if pattern != PatternEntry::AllToOne => {
            return wrong(to, "traffic: to: only the pattern all-to-one has it");
        }
        Some(to) => {
            let place = found(to, |text| stage.places.host(text));
            match port_of(stage, place.map_err(|problem| problem.of("traffic: to"))?) {
                Some(port) => Some(port),
                None => {
                    return wrong(to, format!("traffic: to: {} has no cable", quoted(&to.value)));
                }
            }
        }
    };
    let flow = |pair| traffic::flow(stage.net, pair, load, stage.packet);
    let pairs = traffic::pairs(pattern, &stage.planes, stage.seed, to);
    if pairs.is_empty() || load == 0.0 {
        return Ok(Vec::new());
    }
    let flows = pairs.into_iter().map(flow).collect();
    let action = Action::Traffic { name: FROM_THE_BEGINNING.into(), flows };
    Ok(vec![((Duration::ZERO, 0), action)])
}

fn play(stage: &mut Stage<'_>, file: &File) -> Result<(), Problem> {
    let timeline = file.timeline.as_deref().unwrap_or_default();
    // What flows from the beginning comes before the first entry.
    let when = |index: usize, entry: &Entry| {
        (entry.at().map_or(Duration::ZERO, |at| at.value.0), index + 1)
    };
    let moves = timeline.iter().enumerate().filter_map(|(index, entry)| match &entry.value {
        Entry::MoveCable(cable) => Some((when(index, &entry.value), cable)),
        _ => None,
    });
    entry::moves(stage, moves.collect()).map_err(|problem| problem.of("move-cable"))?;
    for (index, written) in timeline.iter().enumerate() {
        let when = when(index, &written.value);
        let mut scene = Scene { stage: &mut *stage, when, line: line_of(written) };
        entry::play(&mut scene, &written.value)
            .map_err(|problem| problem.of(written.value.name()))?;
    }
    Ok(())
}
