//! Entries of the timeline about links, cables, connectors and modules.

use std::collections::HashMap;
use std::time::Duration;

use super::file::{
    BadCable, Degrade, DirtyConnector, Entry, Flap, HotModule, MoveCable, SwapCable, Unplug,
};
use super::index::{EventTime, FabricIndex};
use super::source::Problem;
use super::timeline::{Target, Timeline};
use super::{Action, value};
use crate::agents::is_optical;
use crate::net::PortId;
use crate::simulation::Dirt;
use ib_mad::rate::{Speed, Width};
use ib_mad::register::LANES;

/// A link without a signal for no longer than this retrains by itself and does not go down. A
/// simulation needs a fixed limit; `docs/dev/scenarios.md` documents it.
const RETRAINS: Duration = Duration::from_millis(100);
/// The share of light that arrives through a dirty connector: 10 dB less.
const LIGHT: f64 = 0.1;

pub fn bad_cable(entry: &BadCable, timeline: &mut Timeline) -> Result<String, Problem> {
    let (port, from) = timeline.link("into", &entry.into)?;
    let ratio = entry.ratio.0;
    let start = Action::CorruptBits { port, ratio };
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

pub fn flap(entry: &Flap, timeline: &mut Timeline) -> Result<String, Problem> {
    let (end, peer) = timeline.link("link", &entry.link)?;
    let downs: Vec<Duration> = entry.down.as_slice().iter().map(|down| down.0).collect();
    let Some(longest) = downs.iter().max().copied() else {
        return Err(timeline.error("down", "down: at least one time is required"));
    };
    let is_positive = !downs.iter().any(Duration::is_zero);
    timeline.require(is_positive, "down", "down: must be more than 0")?;
    // Without `times`, each of several has one turn.
    let each = (downs.len() > 1 || entry.every.is_some()).then_some((downs.len() as u32, "down"));
    let times = entry.times.map(|times| (times, "times")).or(each);
    let (turns, repeated) = timeline.repeats(times, entry.every, 2, 0)?;
    if let Some(every) = entry.every.filter(|every| every.0 <= longest) {
        let (every, down) = (value::words(every.0), value::words(longest));
        let problem =
            format!("every {every} is not longer than down {down}: the link would never be up");
        return Err(timeline.error("every", problem));
    }
    let mut words: Vec<String> = downs.iter().map(|down| timeline.time(*down)).collect();
    words.truncate(turns.len());
    for (from, down) in turns.into_iter().zip(downs.iter().cycle()) {
        // A cable that has been moved away by then takes its link with it.
        let Some(peer) = timeline.index.peer(end, from) else { continue };
        if *down <= RETRAINS {
            timeline.actions.push((from, Action::Retrain { port: end }));
        } else {
            let port = end.min(peer);
            let start = Action::SetSignal { port, up: false };
            timeline.add_effect_at(from, Target::Signal(port), start, Some(*down));
        }
    }
    let in_turn = if words.len() > 1 { " in turn" } else { "" };
    let retrains = if longest <= RETRAINS { ", and retrains" } else { "" };
    let words = value::few(&words, "different times");
    let (end, peer) = (timeline.label(end), timeline.label(peer));
    Ok(format!(
        "the link between {end} and {peer} loses its signal for {words}{in_turn}{repeated}{retrains}"
    ))
}

pub fn unplug(entry: &Unplug, timeline: &mut Timeline) -> Result<String, Problem> {
    let (end, peer) = timeline.link("link", &entry.link)?;
    let port = end.min(peer);
    let start = Action::SetSignal { port, up: false };
    timeline.add_effect(Target::Signal(port), start, entry.r#for)?;
    let time = entry.r#for.map(|time| timeline.time(time.0));
    let again = time.map_or(String::new(), |time| format!(", and plugged in again after {time}"));
    let (end, peer) = (timeline.label(end), timeline.label(peer));
    Ok(format!("the cable between {end} and {peer} is unplugged{again}"))
}

pub fn degrade(entry: &Degrade, timeline: &mut Timeline) -> Result<String, Problem> {
    let (end, peer) = timeline.link("link", &entry.link)?;
    let (width, speed) = (entry.width.map(|width| width.0), entry.speed.map(|speed| speed.0));
    // With a limit below all that both ends have enabled the link would never come up again.
    let common = timeline.net().port(end).rates.common(timeline.net().port(peer).rates);
    let limited = common.up_to(width, speed);
    let (width_label, speed_label) = (width.map(Width::label), speed.map(Speed::label));
    for (key, label, is_supported) in [
        ("width", width_label, limited.widths != 0),
        ("speed", speed_label, limited.speeds.fastest().is_some()),
    ] {
        let label = label.unwrap_or_default();
        let problem = format!("{key}: the two ends support no {key} up to {label}");
        timeline.require(is_supported || label.is_empty(), key, problem)?;
    }
    let limit = match (width_label, speed_label) {
        (None, None) => {
            return Err(timeline.error("", "width or speed, or both, are required"));
        }
        (Some(width), None) => format!("no wider than {width}"),
        (None, Some(speed)) => format!("no faster than {speed}"),
        (Some(width), Some(speed)) => format!("at no more than {width} {speed}"),
    };
    let port = end.min(peer);
    let start = Action::LimitLink { port, width, speed };
    let lasting = timeline.add_effect(Target::Limit(port), start, entry.r#for)?;
    let (end, peer) = (timeline.label(end), timeline.label(peer));
    Ok(format!("the link between {end} and {peer} retrains and comes up {limit}{lasting}"))
}

pub fn move_cable(entry: &MoveCable, timeline: &mut Timeline) -> Result<String, Problem> {
    let (from, far) = timeline.link("from", &entry.from)?;
    let to = timeline.lookup("to", &entry.to, FabricIndex::port)?;
    timeline.add_action(Action::MoveCable { from, to })?;
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
    entries: impl Iterator<Item = (EventTime, &'e Entry)>,
) -> Result<(), Problem> {
    let moves = entries.filter_map(|(at, entry)| match entry {
        Entry::MoveCable(entry) => Some((at, entry)),
        _ => None,
    });
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
