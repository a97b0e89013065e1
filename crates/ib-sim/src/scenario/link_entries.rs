//! Entries of the timeline about links and cables.

use std::collections::HashMap;
use std::time::Duration;

use super::file::{BadCable, Degrade, Entry, Flap, MoveCable, Unplug};
use super::index::{EventTime, FabricIndex};
use super::source::{Lines, Problem};
use super::timeline::{ActiveEffect, Context, Target, Timeline};
use super::{Action, text};
use crate::net::PortId;

/// A link without a signal for no longer than this retrains by itself and does not go down. A
/// simulation needs a fixed limit; `docs/dev/scenarios.md` documents it.
const RETRAINS: Duration = Duration::from_millis(100);

impl BadCable {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (port, from) = context.link("into", &self.into)?;
        let (lasts, lasting) = context.duration(self.r#for)?;
        let ratio = self.ratio.0;
        let corrupt = |ratio| Action::CorruptBits { port, ratio };
        context.add_effect(Target::Bits(port), lasts, corrupt(ratio), corrupt(0.0))?;
        let (from, into) = (context.label(from), context.label(port));
        context.describe(format!(
            "the cable from {from} into {into} begins to corrupt bits ({ratio:e}){lasting}"
        ));
        Ok(())
    }
}

/// The loss of a link's signal and its return. A link has the name of its lower port.
fn signal_loss(end: PortId, peer: PortId) -> (Target, Action, Action) {
    let port = end.min(peer);
    let signal = |up| Action::SetSignal { port, up };
    (Target::Signal(port), signal(false), signal(true))
}

impl Flap {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (end, peer) = context.link("link", &self.link)?;
        let downs: Vec<Duration> = self.down.as_slice().iter().map(|down| down.0).collect();
        let Some(longest) = downs.iter().max().copied() else {
            return Err(context.error("down", "down: there must be at least one time"));
        };
        if downs.iter().any(Duration::is_zero) {
            return Err(context.error("down", "down: it must be more than 0"));
        }
        // Without `times`, each of several has one turn.
        let times = match self.times {
            Some(times) => Some((times, "times")),
            None if downs.len() > 1 || self.every.is_some() => Some((downs.len() as u32, "down")),
            None => None,
        };
        let repeats = context.repeats(times, self.every)?;
        if let Some(every) = self.every.filter(|every| every.0 <= longest) {
            let (every, down) = (text::time(every.0), text::time(longest));
            let problem =
                format!("every {every} is not longer than down for {down}: it would never be up");
            return Err(context.error("every", problem));
        }
        context.charge(u64::from(repeats.times) * 2, 0)?;
        for (turn, down) in (0..repeats.times).zip(downs.iter().cycle()) {
            let from = context.turn(repeats, turn);
            // A cable that has been moved away by then takes its link with it.
            let Some(peer) = context.timeline.index.peer(end, from) else {
                continue;
            };
            if *down <= RETRAINS {
                context.timeline.actions.push((from, Action::Retrain { port: end }));
            } else {
                let (target, start, end) = signal_loss(end, peer);
                let until = Some((from.0 + *down, from.1));
                let effect = ActiveEffect { target, from, until, start, end };
                context.timeline.effects.push(effect);
            }
        }
        let mut words: Vec<String> = downs.iter().map(|down| context.time(*down)).collect();
        words.truncate(repeats.times as usize);
        let in_turn = if words.len() > 1 { " in turn" } else { "" };
        let retrains = if longest <= RETRAINS { ", and recovers by itself" } else { "" };
        let (times, words) = (context.repeated(repeats), text::few(&words, "different times"));
        let (end, peer) = (context.label(end), context.label(peer));
        context.describe(format!(
            "the link between {end} and {peer} loses its signal for {words}{in_turn}{times}{retrains}"
        ));
        Ok(())
    }
}

impl Unplug {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (end, peer) = context.link("link", &self.link)?;
        let (lasts, _) = context.duration(self.r#for)?;
        let (target, start, stop) = signal_loss(end, peer);
        context.add_effect(target, lasts, start, stop)?;
        let again = lasts.map_or_else(String::new, |lasts| {
            format!(", and plugged in again after {}", context.time(lasts))
        });
        let (end, peer) = (context.label(end), context.label(peer));
        context.describe(format!("the cable between {end} and {peer} is unplugged{again}"));
        Ok(())
    }
}

impl Degrade {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (end, peer) = context.link("link", &self.link)?;
        let (lasts, lasting) = context.duration(self.r#for)?;
        let (width, speed) = (self.width.map(|width| width.0), self.speed.map(|speed| speed.0));
        let (here, there) = (context.net().port(end), context.net().port(peer));
        // With a limit below all that both ends have enabled the link would never come up again.
        if let Some(width) = width
            && here.widths & there.widths & width.up_to() == 0
        {
            let width = width.label();
            let problem = format!("width: the two ends have nothing as narrow as {width}");
            return Err(context.error("width", problem));
        }
        if let Some(speed) = speed
            && here.speeds.intersection(there.speeds).up_to(speed).fastest().is_none()
        {
            let speed = speed.label();
            let problem = format!("speed: the two ends have nothing as slow as {speed}");
            return Err(context.error("speed", problem));
        }
        let limit = match (width, speed) {
            (None, None) => {
                return Err(context.error("", "there must be a width or a speed, or both"));
            }
            (Some(width), None) => format!("no wider than {}", width.label()),
            (None, Some(speed)) => format!("no faster than {}", speed.label()),
            (Some(width), Some(speed)) => {
                format!("at {} {} at the most", width.label(), speed.label())
            }
        };
        let port = end.min(peer);
        context.add_effect(
            Target::Limit(port),
            lasts,
            Action::LimitLink { port, width, speed },
            Action::LimitLink { port, width: None, speed: None },
        )?;
        let (end, peer) = (context.label(end), context.label(peer));
        context.describe(format!(
            "the link between {end} and {peer} trains anew, and comes up {limit}{lasting}"
        ));
        Ok(())
    }
}

impl MoveCable {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (from, far) = context.link("from", &self.from)?;
        let to = context.lookup("to", &self.to, FabricIndex::port)?;
        context.add_action(Action::MoveCable { from, to })?;
        let other = context.timeline.index.peer(to, context.at).map_or_else(String::new, |other| {
            let (other, from) = (context.label(other), context.label(from));
            format!(", and the one from {other} from there to {from}")
        });
        let (far, from, to) = (context.label(far), context.label(from), context.label(to));
        context.describe(format!("the cable from {far} is moved from {from} to {to}{other}"));
        Ok(())
    }
}

/// Makes all moves of cables known to the index in order of time, before other entries look up
/// peers.
pub(super) fn move_cables<'e>(
    timeline: &mut Timeline<'_>,
    lines: &Lines,
    entries: impl Iterator<Item = (EventTime, &'e Entry)>,
) -> Result<(), Problem> {
    let mut moves: Vec<(EventTime, &MoveCable)> = entries
        .filter_map(|(at, entry)| match entry {
            Entry::MoveCable(entry) => Some((at, entry)),
            _ => None,
        })
        .collect();
    moves.sort_by_key(|(at, _)| *at);
    // Adapters' ports that had no cable, and the plane that their first cable brought.
    let mut joined: HashMap<PortId, PortId> = HashMap::new();
    for (at, entry) in moves {
        let context = Context::new(timeline, at, lines, "move-cable");
        let (from, far) = context.link("from", &entry.from)?;
        let to = context.lookup("to", &entry.to, FabricIndex::port)?;
        let index = &context.timeline.index;
        let other = index.peer(to, at);
        let ends = [Some(from), Some(far), Some(to), other].into_iter().flatten();
        let mut planes: Vec<PortId> = ends
            .clone()
            .filter_map(|end| index.built_plane(end).or_else(|| joined.get(&end).copied()))
            .collect();
        planes.dedup();
        let [plane] = planes[..] else {
            return Err(context.error("to", "a cable cannot be moved to another fabric"));
        };
        joined.extend(ends.map(|end| (end, plane)));
        let moves = &mut context.timeline.cable_moves;
        moves.entry(from.min(far)).or_default().push(at);
        if let Some(other) = other {
            moves.entry(to.min(other)).or_default().push(at);
        }
        if let Err(problem) = context.timeline.index.move_cable(from, to, at) {
            return Err(context.error("to", problem));
        }
    }
    Ok(())
}
