//! Entries of the timeline about cables, connectors and modules.

use std::collections::HashMap;

use super::super::index::{EventTime, FabricIndex};
use super::super::problem::Problem;
use super::super::timeline::{Target, Timeline};
use super::super::value::{Fraction, Ratio, Time};
use super::keys::keys;
use crate::change::{Dirt, FabricChange};
use crate::net::PortId;
use ib_mad::rate::Speed;
use ib_mad::register::LANES;

keys! {
    BadCable { into: String, ratio: Ratio, r#for: Option<Time>, }
    DirtyConnector {
        into: String,
        lane: u8,
        ratio: Ratio,
        light: Option<Fraction>,
        r#for: Option<Time>,
    }
    HotModule { port: String, celsius: u8, r#for: Option<Time>, }
    SwapCable { link: String, down: Time, }
    MoveCable { from: String, to: String, }
}

/// The share of light that arrives through a dirty connector: 10 dB less.
const LIGHT: f64 = 0.1;

pub fn bad_cable(entry: &BadCable, timeline: &mut Timeline) -> Result<String, Problem> {
    let (port, from) = timeline.link("into", &entry.into)?;
    let ratio = entry.ratio.0;
    let start = FabricChange::CorruptBits { port, ratio };
    let lasting = timeline.add_effect(Target::Bits(port), start, entry.r#for)?;
    let (from, into) = (timeline.label(from), timeline.label(port));
    Ok(format!("the cable from {from} to {into} has a BER of {ratio:e} after FEC{lasting}"))
}

pub fn dirty_connector(entry: &DirtyConnector, timeline: &mut Timeline) -> Result<String, Problem> {
    let (port, from) = timeline.link("into", &entry.into)?;
    let (lane, ratio) = (entry.lane, entry.ratio.0);
    let has_lane = usize::from(lane) < LANES;
    timeline.require(has_lane, "lane", format!("lane: {lane} is not between 0 and 7"))?;
    let common = timeline.net().port(port).rates.common(timeline.net().port(from).rates);
    let has_fec = common.best().is_some_and(|(_, speed)| speed >= Speed::Hdr);
    timeline.require(has_fec, "into", "into: errors are corrected from HDR on only")?;
    let light = entry.light.map_or(LIGHT, |light| light.0);
    let start = FabricChange::SetDirt { port, dirt: Some(Dirt { lane, ratio, light }) };
    let lasting = timeline.add_effect(Target::Connector(port), start, entry.r#for)?;
    let into = timeline.label(port);
    Ok(format!(
        "the connector at {into} is dirty: lane {lane} has a BER of {ratio:e} before FEC{lasting}"
    ))
}

pub fn hot_module(entry: &HotModule, timeline: &mut Timeline) -> Result<String, Problem> {
    let (port, far) = timeline.link("port", &entry.port)?;
    let has_sensor = timeline.net().is_optical(port, far);
    timeline.require(has_sensor, "port", "port: passive cables have no temperature")?;
    let start = FabricChange::SetModuleTemperature { port, degrees: Some(entry.celsius) };
    let lasting = timeline.add_effect(Target::Module(port), start, entry.r#for)?;
    Ok(format!("the module at {} has {} °C{lasting}", timeline.label(port), entry.celsius))
}

pub fn swap_cable(entry: &SwapCable, timeline: &mut Timeline) -> Result<String, Problem> {
    let (end, peer) = timeline.link("link", &entry.link)?;
    let down = timeline.positive("down", entry.down)?;
    let port = end.min(peer);
    let start = FabricChange::SetSignal { port, up: false };
    timeline.add_effect(Target::Signal(port), start, Some(entry.down))?;
    timeline.add_change(FabricChange::SwapCable { port })?;
    let (end, peer, down) = (timeline.label(end), timeline.label(peer), timeline.time(down));
    Ok(format!("the cable between {end} and {peer} is replaced by another one within {down}"))
}

pub fn move_cable(entry: &MoveCable, timeline: &mut Timeline) -> Result<String, Problem> {
    let (from, far) = timeline.link("from", &entry.from)?;
    let to = timeline.lookup("to", &entry.to, FabricIndex::port)?;
    timeline.add_change(FabricChange::MoveCable { from, to })?;
    let other = timeline.index.peer(to, timeline.at).map_or_else(String::new, |other| {
        let (other, from) = (timeline.label(other), timeline.label(from));
        format!(", and the cable from {other} from there to {from}")
    });
    let (far, from, to) = (timeline.label(far), timeline.label(from), timeline.label(to));
    Ok(format!("the cable from {far} is moved from {from} to {to}{other}"))
}

/// Makes all moves of cables known to the index in order of time, before other entries look up peers.
pub fn move_cables<'e>(
    timeline: &mut Timeline,
    moves: impl Iterator<Item = (EventTime, &'e MoveCable)>,
) -> Result<(), Problem> {
    let mut moves: Vec<(EventTime, &MoveCable)> = moves.collect();
    moves.sort_by_key(|(at, _)| *at);
    // Adapters' ports that had no cable, and the plane that their first cable brought.
    let mut joined: HashMap<PortId, PortId> = HashMap::new();
    for (at, entry) in moves {
        (timeline.at, timeline.name) = (at, "move-cable");
        let (from, far) = timeline.link("from", &entry.from)?;
        let to = timeline.lookup("to", &entry.to, FabricIndex::port)?;
        let index = &timeline.index;
        let other = index.peer(to, at);
        let ends = [Some(from), Some(far), Some(to), other].into_iter().flatten();
        let plane = |end| index.built_plane(end).or_else(|| joined.get(&end).copied());
        let mut planes: Vec<PortId> = ends.clone().filter_map(plane).collect();
        planes.dedup();
        let [plane] = planes[..] else {
            return Err(timeline.error("to", "a cable cannot be moved to another fabric"));
        };
        joined.extend(ends.map(|end| (end, plane)));
        let plugged = timeline.index.move_cable(from, to, at);
        plugged.map_err(|problem| timeline.error("to", problem))?;
    }
    Ok(())
}
