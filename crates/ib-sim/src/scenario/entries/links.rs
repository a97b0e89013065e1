//! Entries of the timeline about links.

use std::time::Duration;

use super::super::problem::Problem;
use super::super::timeline::{Target, Timeline};
use super::super::value::{self, LinkSpeed, LinkWidth, OneOrMore, Time};
use super::keys::keys;
use crate::change::FabricChange;
use ib_mad::rate::{Speed, Width};

keys! {
    Flap {
        link: String,
        down: OneOrMore<Time>,
        every: Option<Time>,
        times: Option<u32>,
    }
    Unplug { link: String, r#for: Option<Time>, }
    Degrade {
        link: String,
        width: Option<LinkWidth>,
        speed: Option<LinkSpeed>,
        r#for: Option<Time>,
    }
}

/// A link without a signal for no longer than this retrains by itself and does not go down. A
/// simulation needs a fixed limit; `docs/dev/scenarios.md` documents it.
const RETRAINS: Duration = Duration::from_millis(100);

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
            timeline.changes.push((from, FabricChange::Retrain { port: end }));
        } else {
            let port = end.min(peer);
            let start = FabricChange::SetSignal { port, up: false };
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
    let start = FabricChange::SetSignal { port, up: false };
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
    let start = FabricChange::LimitLink { port, width, speed };
    let lasting = timeline.add_effect(Target::Limit(port), start, entry.r#for)?;
    let (end, peer) = (timeline.label(end), timeline.label(peer));
    Ok(format!("the link between {end} and {peer} retrains and comes up {limit}{lasting}"))
}
