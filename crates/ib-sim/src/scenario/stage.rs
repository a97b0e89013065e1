//! The stage on which a timeline is played: the fabric's names and cables, and what was said so
//! far. An [`entry`](super::entry) speaks to it.

use std::collections::HashMap;
use std::time::Duration;

use super::error::Problem;
use super::places::{Places, same_host};
use super::planes::Planes;
use super::spell::{Spell, Thing};
use super::value::{LONGEST, Time, line_of};
use super::wiring::{When, Wiring};
use super::{Action, Way, words};
use crate::load::Flow;
use crate::net::{Net, NodeId, PortId};
use site_config::yaml::Spanned;

/// So many actions may come of a timeline.
const MOST_ACTIONS: u64 = 100_000;
/// And so many ports may stand in them: a fabric of 40,000 ports can be cleared 250 times.
const MOST_PLACES: u64 = 10_000_000;
/// A flow takes the room of so many ports.
pub(super) const FLOW: usize = size_of::<Flow>() / size_of::<PortId>();

/// What happens, and where.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) net: &'a Net,
    pub(super) places: Places<'a>,
    pub(super) wiring: Wiring<'a>,
    pub(super) planes: Planes<'a>,
    /// What all chance is drawn from.
    pub(super) seed: u64,
    /// How MADs travel when nothing else is said.
    pub(super) way: Way,
    /// The size of packets when nothing else is said.
    pub(super) packet: u32,
    /// How many times faster than written everything happens.
    pub(super) speedup: f64,
    /// When the cable of a link is moved, by the lower end of the link.
    pub(super) cuts: HashMap<PortId, Vec<When>>,
    /// What begins and ends.
    pub(super) spells: Vec<Spell>,
    /// What happens at once.
    pub(super) points: Vec<(When, Action)>,
    /// What was said in words.
    pub(super) told: Vec<(When, String)>,
    actions: u64,
    things: u64,
}

impl<'a> Stage<'a> {
    pub(super) fn new(net: &'a Net, seed: u64, way: Way, packet: u32, speedup: f64) -> Stage<'a> {
        Stage {
            net,
            places: Places::new(net),
            wiring: Wiring::new(net),
            planes: Planes::new(net),
            seed,
            way,
            packet,
            speedup,
            cuts: HashMap::new(),
            spells: Vec::new(),
            points: Vec::new(),
            told: Vec::new(),
            actions: 0,
            things: 0,
        }
    }

    /// A time of the timeline as it will be.
    pub(super) fn played(&self, time: Duration) -> Duration {
        // The speed-up is checked, so this always fits.
        Duration::try_from_secs_f64(time.as_secs_f64() / self.speedup).unwrap_or(time)
    }

    /// In words.
    pub(super) fn time(&self, time: Duration) -> String {
        words::time(self.played(time))
    }
}

/// One entry of the timeline on its stage.
#[derive(Debug)]
pub(super) struct Scene<'s, 'a> {
    pub(super) stage: &'s mut Stage<'a>,
    /// When, and in which place of the file.
    pub(super) when: When,
    /// The line of the entry.
    pub(super) line: u64,
}

/// A value of the file that is wrong on this fabric.
pub(super) fn wrong<T, V>(value: &Spanned<V>, problem: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::at(line_of(value), problem))
}

/// A name of the file, looked up.
pub(super) fn found<T, V>(
    value: &Spanned<V>,
    look_up: impl FnOnce(&V) -> Result<T, String>,
) -> Result<T, Problem> {
    look_up(&value.value).map_err(|problem| Problem::at(line_of(value), problem))
}

/// A time that must be more than nothing.
pub(super) fn some_time(name: &str, time: &Spanned<Time>) -> Result<Duration, Problem> {
    match time.value.0 {
        Duration::ZERO => wrong(time, format!("{name}: it must be more than 0")),
        time => Ok(time),
    }
}

/// How often, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeats {
    pub(super) times: u32,
    pub(super) every: Duration,
}

/// How long something lasts, by its key `for`.
pub(super) fn for_how_long(lasts: Option<&Spanned<Time>>) -> Result<Option<Duration>, Problem> {
    lasts.map(|time| some_time("for", time)).transpose()
}

/// How often, by the keys `times` and `every`, of which each needs the other.
pub(super) fn repeats(
    times: Option<(u32, u64)>,
    every: Option<&Spanned<Time>>,
) -> Result<Repeats, Problem> {
    match (times, every) {
        (Some((0, line)), _) => Err(Problem::at(line, "times: it must be more than 0")),
        (Some((times, line)), None) if times > 1 => {
            Err(Problem::at(line, format!("{times} times, but no `every` says how far apart")))
        }
        (None, Some(every)) => wrong(every, "`every` needs `times`: how often"),
        (None | Some(_), None) => Ok(Repeats { times: 1, every: Duration::ZERO }),
        (Some((times, _)), Some(every)) => {
            let apart = some_time("every", every)?;
            match apart.checked_mul(times) {
                Some(all) if all <= LONGEST => Ok(Repeats { times, every: apart }),
                _ => wrong(every, format!("{times} times are more than ten years")),
            }
        }
    }
}

impl Scene<'_, '_> {
    /// Tells of the entry.
    pub(super) fn tell(&mut self, words: String) {
        self.stage.told.push((self.when, words));
    }

    /// For how long, in words.
    pub(super) fn lasting(&self, lasts: Option<Duration>) -> String {
        words::lasting(lasts.map(|time| self.stage.played(time)))
    }

    /// When it is the how-manieth time.
    pub(super) fn turn(&self, repeats: Repeats, turn: u32) -> When {
        (self.when.0 + repeats.every * turn, self.when.1)
    }

    /// Takes note of what comes of the entry, before it does.
    pub(super) fn spend(&mut self, actions: u64, things_each: usize) -> Result<(), Problem> {
        let stage = &mut *self.stage;
        stage.actions = stage.actions.saturating_add(actions);
        stage.things = stage.things.saturating_add(actions.saturating_mul(things_each as u64));
        if stage.actions > MOST_ACTIONS {
            let text = format!("with this the timeline has more than {MOST_ACTIONS} steps");
            return Err(Problem::at(self.line, text));
        }
        if stage.things > MOST_PLACES {
            let text = format!(
                "with this more than {MOST_PLACES} ports, of which a flow counts as {FLOW}, are in \
                 the timeline"
            );
            return Err(Problem::at(self.line, text));
        }
        Ok(())
    }

    /// Something happens.
    pub(super) fn happens(&mut self, action: Action) -> Result<(), Problem> {
        self.spend(1, 0)?;
        self.stage.points.push((self.when, action));
        Ok(())
    }

    /// Something begins, and ends after a while.
    pub(super) fn holds(
        &mut self,
        thing: Thing,
        lasts: Option<Duration>,
        begins: Action,
        ends: Action,
    ) -> Result<(), Problem> {
        self.spend(2, 0)?;
        let until = lasts.map(|lasts| (self.when.0 + lasts, self.when.1));
        self.stage.spells.push(Spell { thing, from: self.when, until, begins, ends });
        Ok(())
    }

    /// A port that has a cable, and the cable's other end.
    pub(super) fn link(&self, text: &Spanned<String>) -> Result<(PortId, PortId), Problem> {
        let port = found(text, |text| self.stage.places.port(text))?;
        match self.stage.wiring.peer(port, self.when) {
            Some(peer) => Ok((port, peer)),
            None => wrong(text, format!("{} has no cable", self.stage.net.label(port))),
        }
    }

    /// A host's ports that have a cable: the one that is named, or all.
    pub(super) fn host_ports(&self, text: &Spanned<String>) -> Result<Vec<PortId>, Problem> {
        let (node, port) = found(text, |text| self.stage.places.host(text))?;
        let wired = |port: &PortId| self.stage.wiring.peer(*port, self.when).is_some();
        let ports: Vec<PortId> = match port {
            Some(port) => Some(port).filter(wired).into_iter().collect(),
            None => self.stage.net.plugs_of(node).filter(wired).collect(),
        };
        if ports.is_empty() {
            return wrong(text, format!("{} has no cable", text.value));
        }
        Ok(ports)
    }

    /// A node.
    pub(super) fn node(&self, text: &Spanned<String>) -> Result<NodeId, Problem> {
        found(text, |text| self.stage.places.node(text))
    }

    /// A node with all that goes off and on with it: a host has all of its adapters.
    pub(super) fn machine(&self, text: &Spanned<String>) -> Result<Vec<NodeId>, Problem> {
        let node = self.node(text)?;
        let net = self.stage.net;
        let is = |other: &NodeId| *other == node || same_host(net, node, *other);
        Ok(net.node_ids().filter(is).collect())
    }

    pub(super) fn label(&self, port: PortId) -> String {
        self.stage.net.label(port)
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::SPEEDUPS;
    use super::super::tests::net;
    use super::*;

    fn way() -> Way {
        Way {
            round_trip: Duration::ZERO,
            per_hop: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
        }
    }

    #[test]
    fn flows_take_more_room_than_ports() {
        assert_eq!(FLOW, 6);
        let net = net("{back-to-back: {}}");
        let mut stage = Stage::new(&net, 1, way(), 4096, 1.0);
        let mut scene = Scene { stage: &mut stage, when: (Duration::ZERO, 1), line: 7 };
        let most = MOST_PLACES as usize / FLOW;
        scene.spend(1, most * FLOW).unwrap();
        let problem = scene.spend(1, FLOW).unwrap_err();
        assert_eq!(problem.line, Some(7));
        assert!(problem.text.starts_with("with this more than 10000000 ports"), "{problem:?}");
    }

    #[test]
    fn the_slowest_story_ends_before_the_clock_does() {
        let net = net("{back-to-back: {}}");
        let stage = Stage::new(&net, 1, way(), 4096, *SPEEDUPS.start());
        // It begins late, is repeated for long, and lasts.
        let end = stage.played(LONGEST * 3);
        assert!(end > LONGEST * 29 && end.as_nanos() < u128::from(u64::MAX) * 3 / 4, "{end:?}");
    }
}
