//! What happens to links and cables.

use std::collections::HashMap;
use std::time::Duration;

use super::super::error::Problem;
use super::super::file::{BadCable, Degrade, Flap, MoveCable, Unplug};
use super::super::spell::{Spell, Thing};
use super::super::stage::{Scene, Stage, for_how_long, found, repeats, wrong};
use super::super::value::line_of;
use super::super::wiring::When;
use super::super::{Action, words};
use crate::net::PortId;
use ib_mad::rate::{Speed, Width};

/// A link without a signal for no longer than this retrains by itself and does not go down: the line
/// that a simulation has to draw somewhere, as docs/scenarios.md tells it.
const RECOVERS: Duration = Duration::from_millis(100);

pub(super) fn bad_cable(scene: &mut Scene<'_, '_>, entry: &BadCable) -> Result<(), Problem> {
    let (into, from) = scene.link(&entry.into)?;
    let (ratio, lasts) = (entry.ratio.value.0, for_how_long(entry.r#for.as_ref())?);
    scene.holds(
        Thing::Bits(into),
        lasts,
        Action::Corrupt { into, ratio },
        Action::Corrupt { into, ratio: 0.0 },
    )?;
    let (from, into) = (scene.label(from), scene.label(into));
    let lasting = scene.lasting(lasts);
    scene.tell(format!(
        "the cable from {from} into {into} begins to corrupt bits ({ratio:e}){lasting}"
    ));
    Ok(())
}

/// A link is the same from both of its ends: it is called by the lower one.
fn signal(end: PortId, peer: PortId) -> (Thing, Action, Action) {
    let end = end.min(peer);
    let up = |up| Action::Signal { end, up };
    (Thing::Signal(end), up(false), up(true))
}

pub(super) fn flap(scene: &mut Scene<'_, '_>, entry: &Flap) -> Result<(), Problem> {
    let (end, peer) = scene.link(&entry.link)?;
    let downs = &entry.down.value.0;
    if downs.is_empty() {
        return wrong(&entry.down, "down: there must be at least one time");
    }
    if downs.iter().any(|down| down.0.is_zero()) {
        return wrong(&entry.down, "down: it must be more than 0");
    }
    // Each of several has its turn, if nothing says how often.
    let times = match &entry.times {
        Some(times) => Some((times.value, line_of(times))),
        None if downs.len() > 1 || entry.every.is_some() => {
            Some((downs.len() as u32, line_of(&entry.down)))
        }
        None => None,
    };
    let repeats = repeats(times, entry.every.as_ref())?;
    let longest = downs.iter().map(|down| down.0).max().unwrap_or_default();
    if let Some(every) = entry.every.as_ref().filter(|every| every.value.0 <= longest) {
        let (every_told, down) = (words::time(every.value.0), words::time(longest));
        return wrong(
            every,
            format!("every {every_told} is not longer than down for {down}: it would never be up"),
        );
    }
    scene.spend(u64::from(repeats.times) * 2, 0)?;
    for (turn, down) in (0..repeats.times).zip(downs.iter().cycle()) {
        let from = scene.turn(repeats, turn);
        // A cable that has been moved away by then takes its link with it.
        let Some(peer) = scene.stage.wiring.peer(end, from) else {
            continue;
        };
        if down.0 <= RECOVERS {
            scene.stage.points.push((from, Action::Retrain { end }));
        } else {
            let (thing, begins, ends) = signal(end, peer);
            let until = Some((from.0 + down.0, from.1));
            scene.stage.spells.push(Spell { thing, from, until, begins, ends });
        }
    }
    let mut told: Vec<String> = downs.iter().map(|down| scene.stage.time(down.0)).collect();
    told.truncate(repeats.times as usize);
    let in_turn = if told.len() > 1 { " in turn" } else { "" };
    let times = words::repeated(repeats.times, scene.stage.played(repeats.every));
    let recovers = if longest <= RECOVERS { ", and recovers by itself" } else { "" };
    let (end, peer, told) =
        (scene.label(end), scene.label(peer), words::few(&told, "different times"));
    scene.tell(format!(
        "the link between {end} and {peer} loses its signal for {told}{in_turn}{times}{recovers}"
    ));
    Ok(())
}

pub(super) fn unplug(scene: &mut Scene<'_, '_>, entry: &Unplug) -> Result<(), Problem> {
    let (end, peer) = scene.link(&entry.link)?;
    let lasts = for_how_long(entry.r#for.as_ref())?;
    let (thing, begins, ends) = signal(end, peer);
    scene.holds(thing, lasts, begins, ends)?;
    let again = lasts.map_or_else(String::new, |lasts| {
        format!(", and plugged in again after {}", scene.stage.time(lasts))
    });
    let (end, peer) = (scene.label(end), scene.label(peer));
    scene.tell(format!("the cable between {end} and {peer} is unplugged{again}"));
    Ok(())
}

pub(super) fn degrade(scene: &mut Scene<'_, '_>, entry: &Degrade) -> Result<(), Problem> {
    let (end, peer) = scene.link(&entry.link)?;
    let lasts = for_how_long(entry.r#for.as_ref())?;
    let width: Option<Width> = entry.width.as_ref().map(|width| width.value.0);
    let speed: Option<Speed> = entry.speed.as_ref().map(|speed| speed.value.0);
    let (here, there) = (scene.stage.net.port(end), scene.stage.net.port(peer));
    // A limit below all that both ends have enabled would be a link that never comes up again.
    if let Some(given) = &entry.width
        && here.widths & there.widths & given.value.0.up_to() == 0
    {
        let label = given.value.0.label();
        return wrong(given, format!("width: the two ends have nothing as narrow as {label}"));
    }
    if let Some(given) = &entry.speed
        && here.speeds.intersection(there.speeds).up_to(given.value.0).fastest().is_none()
    {
        let label = given.value.0.label();
        return wrong(given, format!("speed: the two ends have nothing as slow as {label}"));
    }
    let limit = match (width, speed) {
        (None, None) => {
            return Err(Problem::at(scene.line, "there must be a width or a speed, or both"));
        }
        (Some(width), None) => format!("no wider than {}", width.label()),
        (None, Some(speed)) => format!("no faster than {}", speed.label()),
        (Some(width), Some(speed)) => format!("at {} {} at the most", width.label(), speed.label()),
    };
    let lower = end.min(peer);
    scene.holds(
        Thing::Limit(lower),
        lasts,
        Action::Limit { end: lower, width, speed },
        Action::Limit { end: lower, width: None, speed: None },
    )?;
    let (end, peer) = (scene.label(end), scene.label(peer));
    let lasting = scene.lasting(lasts);
    scene.tell(format!(
        "the link between {end} and {peer} trains anew, and comes up {limit}{lasting}"
    ));
    Ok(())
}

/// Moves all cables in the order of time, before anything asks where they are.
pub(in super::super) fn moves(
    stage: &mut Stage<'_>,
    mut entries: Vec<(When, &MoveCable)>,
) -> Result<(), Problem> {
    entries.sort_by_key(|(when, _)| *when);
    // Adapters' ports that had no cable, and the fabric that the first one brought.
    let mut joined: HashMap<PortId, PortId> = HashMap::new();
    for (when, entry) in entries {
        let from = found(&entry.from, |text| stage.places.port(text))?;
        let to = found(&entry.to, |text| stage.places.port(text))?;
        let Some(far) = stage.wiring.peer(from, when) else {
            return wrong(&entry.from, format!("{} has no cable", stage.net.label(from)));
        };
        let other = stage.wiring.peer(to, when);
        let ends = [Some(from), Some(far), Some(to), other].into_iter().flatten();
        let mut fabrics: Vec<PortId> = ends
            .clone()
            .filter_map(|end| stage.planes.built(end).or_else(|| joined.get(&end).copied()))
            .collect();
        fabrics.dedup();
        if let [fabric] = fabrics[..] {
            joined.extend(ends.map(|end| (end, fabric)));
        } else {
            return wrong(&entry.to, "a cable cannot be moved to another fabric");
        }
        stage.cuts.entry(from.min(far)).or_default().push(when);
        if let Some(other) = other {
            stage.cuts.entry(to.min(other)).or_default().push(when);
        }
        found(&entry.to, |_| stage.wiring.plug(from, to, when))?;
    }
    Ok(())
}

pub(super) fn move_cable(scene: &mut Scene<'_, '_>, entry: &MoveCable) -> Result<(), Problem> {
    let (from, far) = scene.link(&entry.from)?;
    let to = found(&entry.to, |text| scene.stage.places.port(text))?;
    scene.happens(Action::Move { from, to })?;
    let other = scene.stage.wiring.peer(to, scene.when).map_or_else(String::new, |other| {
        format!(", and the one from {} from there to {}", scene.label(other), scene.label(from))
    });
    let (far, from, to) = (scene.label(far), scene.label(from), scene.label(to));
    scene.tell(format!("the cable from {far} is moved from {from} to {to}{other}"));
    Ok(())
}
