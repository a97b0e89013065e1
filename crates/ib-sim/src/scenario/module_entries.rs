//! Entries of the timeline about modules, connectors and the registers that report them.

use super::Action;
use super::file::{DirtyConnector, HotModule, Registers, SwapCable, VsKey};
use super::source::Problem;
use super::timeline::{Target, Timeline};
use crate::agents::is_optical;
use crate::simulation::Dirt;
use ib_mad::rate::Speed;
use ib_mad::register::LANES;

/// The share of light that arrives through a dirty connector: 10 dB less.
const LIGHT: f64 = 0.1;

pub fn dirty_connector(entry: &DirtyConnector, timeline: &mut Timeline) -> Result<String, Problem> {
    let (port, from) = timeline.link("into", &entry.into)?;
    let (lane, ratio) = (entry.lane, entry.ratio.0);
    let has_lane = usize::from(lane) < LANES;
    timeline.require(has_lane, "lane", format!("lane: {lane} is not between 0 and 7"))?;
    let common = timeline.net().port(port).rates.common(timeline.net().port(from).rates);
    let has_fec = common.best().is_some_and(|(_, speed)| speed >= Speed::Hdr);
    timeline.require(has_fec, "into", "into: errors are corrected from HDR on only")?;
    let light = entry.light.map_or(LIGHT, |light| light.0);
    let start = Action::SetDirt { port, dirt: Some(Dirt { lane, ratio, light }) };
    let lasting = timeline.add_effect(Target::Connector(port), start, entry.r#for)?;
    let into = timeline.label(port);
    Ok(format!(
        "the connector at {into} is dirty: lane {lane} has a BER of {ratio:e} before FEC{lasting}"
    ))
}

pub fn hot_module(entry: &HotModule, timeline: &mut Timeline) -> Result<String, Problem> {
    let (port, far) = timeline.link("port", &entry.port)?;
    let has_sensor = is_optical(timeline.net(), port, far);
    timeline.require(has_sensor, "port", "port: passive cables have no temperature")?;
    let start = Action::SetModuleTemperature { port, degrees: Some(entry.celsius) };
    let lasting = timeline.add_effect(Target::Module(port), start, entry.r#for)?;
    Ok(format!("the module at {} has {} °C{lasting}", timeline.label(port), entry.celsius))
}

pub fn swap_cable(entry: &SwapCable, timeline: &mut Timeline) -> Result<String, Problem> {
    let (end, peer) = timeline.link("link", &entry.link)?;
    let down = timeline.positive("down", entry.down)?;
    let port = end.min(peer);
    let start = Action::SetSignal { port, up: false };
    timeline.add_effect(Target::Signal(port), start, Some(entry.down))?;
    timeline.add_action(Action::SwapCable { port })?;
    let (end, peer, down) = (timeline.label(end), timeline.label(peer), timeline.time(down));
    Ok(format!("the cable between {end} and {peer} is replaced by another one within {down}"))
}

pub fn registers(entry: &Registers, timeline: &mut Timeline) -> Result<String, Problem> {
    let node = timeline.node("node", &entry.node)?;
    let behavior = entry.behavior.0;
    let start = Action::SetRegisters { node, behavior };
    let lasting = timeline.add_effect(Target::Registers(node), start, entry.r#for)?;
    Ok(format!("the registers of {} are {}{lasting}", entry.node, behavior.label()))
}

pub fn vs_key(entry: &VsKey, timeline: &mut Timeline) -> Result<String, Problem> {
    let (nodes, who) = timeline.nodes(entry.node.as_deref())?;
    let key = entry.key.0;
    timeline.add_action(Action::SetVsKey { nodes, key })?;
    let gets = if entry.node.is_some() { "gets" } else { "get" };
    let what = if key == 0 { "no VSKey" } else { "a VSKey" };
    Ok(format!("{who} {gets} {what}"))
}
