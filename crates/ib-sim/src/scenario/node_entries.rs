//! Entries of the timeline about nodes, their agents and their traffic.

use super::file::{
    Burst, Busy, Clear, LimitedMember, LoseMads, MKey as MKeyEntry, NewMaster, Reboot, Set, Silent,
    Slow, SlowReceiver,
};
use super::index::FabricIndex;
use super::source::Problem;
use super::timeline::{Context, FLOW, Target};
use super::traffic::flow;
use super::value::{OneOrMore, Time, counter};
use super::{Action, AgentBehavior, MadDelivery, text};
use crate::load::Flow;
use crate::net::{NodeId, PortId};
use crate::rng::Rng;
use ib_mad::m_key::MKey;
use ib_mad::node::NodeKind;

/// Key of the random numbers of senders: no other use draws the same.
const SENDERS: u64 = 2;

impl SlowReceiver {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (node, port) = context.lookup("host", &self.host, FabricIndex::host)?;
        let has_cable = |port: &PortId| context.timeline.index.peer(*port, context.at).is_some();
        let ports: Vec<PortId> = match port {
            Some(port) => Some(port).filter(has_cable).into_iter().collect(),
            None => context.net().cable_ports(node).filter(has_cable).collect(),
        };
        if ports.is_empty() {
            return Err(context.error("host", format!("{} has no cable", self.host)));
        }
        let (lasts, lasting) = context.duration(self.r#for)?;
        for port in ports {
            let intake = |fraction| Action::LimitIntake { port, fraction };
            context.add_effect(Target::Intake(port), lasts, intake(self.takes.0), intake(1.0))?;
        }
        let (host, percent) = (&self.host, text::percent(self.takes.0));
        context.describe(format!(
            "{host} takes in no more than {percent} of its link's rate{lasting}"
        ));
        Ok(())
    }
}

/// Draws this many ports, each with the same probability, and keeps their order.
fn draw(ports: Vec<PortId>, count: usize, mut rng: Rng) -> Vec<PortId> {
    let (mut left, mut wanted) = (ports.len() as u64, count as u64);
    let is_drawn = |_: &PortId| {
        let drawn = rng.below(left) < wanted;
        left -= 1;
        wanted -= u64::from(drawn);
        drawn
    };
    ports.into_iter().filter(is_drawn).collect()
}

impl Burst {
    fn senders(&self, context: &Context<'_, '_>, to: PortId) -> Result<Vec<PortId>, Problem> {
        let (index, net) = (&context.timeline.index, context.net());
        let plane = index.plane(to);
        let receiver = net.port(to).node;
        let names = match &self.from {
            OneOrMore::More(names) if names.is_empty() => {
                return Err(context.error("from", "from: there must be at least one host"));
            }
            OneOrMore::More(names) => names,
            OneOrMore::One(count) => {
                let Ok(count) = count.parse::<u64>() else {
                    let problem = "from: has to be how many hosts, or a list of hosts";
                    return Err(context.error("from", problem));
                };
                if count == 0 {
                    return Err(context.error("from", "from: it must be more than 0 hosts"));
                }
                let is_other = |port: &PortId| net.port(*port).node != receiver;
                let others: Vec<PortId> = index.host_ports_in(plane).filter(is_other).collect();
                if count > others.len() as u64 {
                    let others = others.len();
                    let problem = format!("from: there are but {others} other hosts, not {count}");
                    return Err(context.error("from", problem));
                }
                let rng = Rng::keyed(context.timeline.seed, &[SENDERS, context.at.1 as u64]);
                return Ok(draw(others, count as usize, rng));
            }
        };
        let mut ports = Vec::new();
        for (nth, name) in names.iter().enumerate() {
            let key = format!("from[{nth}]");
            let (node, port) = context.lookup(&key, name, FabricIndex::host)?;
            let port = match port {
                Some(port) => Some(port).filter(|port| index.plane(*port) == plane),
                None => index.port_in(plane, node),
            };
            let problem = match port.filter(|port| net.port(*port).cable.is_some()) {
                None => format!("no cable leads from {name} to {}", self.to),
                Some(port) if net.port(port).node == receiver => {
                    format!("{name} would send to itself")
                }
                Some(port) if ports.contains(&port) => format!("{name} is named twice"),
                Some(port) => {
                    ports.push(port);
                    continue;
                }
            };
            return Err(context.error(&key, problem));
        }
        Ok(ports)
    }

    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let net = context.net();
        let place = context.lookup("to", &self.to, FabricIndex::host)?;
        let Some(to) = context.timeline.index.cabled_port(place) else {
            return Err(context.error("to", format!("{} has no cable", self.to)));
        };
        let from = self.senders(context, to)?;
        let (lasts, lasting) = context.duration(self.r#for)?;
        let load = self.load.0;
        if load == 0.0 {
            return Err(context.error("load", "load: it must be more than 0"));
        }
        let packet = self.packet.map_or(context.timeline.packet, |packet| packet.0);
        context.charge(1, from.len() * FLOW)?;
        let flows: Vec<Flow> =
            from.iter().map(|port| flow(net, (*port, to), load, packet)).collect();
        // Each entry has a name of its own: their flows add up.
        let name = format!("burst-{}", context.at.1);
        let traffic = |flows| Action::SetTraffic { name: name.clone(), flows };
        let target = Target::Flows(context.at.1);
        context.add_effect(target, lasts, traffic(flows), traffic(Vec::new()))?;
        let names: Vec<String> = from.iter().map(|port| net.node_of(*port).id.clone()).collect();
        let (send, whose) =
            if names.len() == 1 { ("sends", "its link's") } else { ("each send", "their links'") };
        let (names, percent) = (text::few(&names, "hosts"), text::percent(load));
        let to = &net.node_of(to).id;
        context.describe(format!("{names} {send} to {to}, at {percent} of {whose} rate{lasting}"));
        Ok(())
    }
}

impl Reboot {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let node = context.node("node", &self.node)?;
        let down = context.positive("down", self.down)?;
        for node in context.timeline.index.machine(node) {
            let power = |on| Action::SetPower { node, on };
            context.add_effect(Target::Power(node), Some(down), power(false), power(true))?;
        }
        let (node, down) = (&self.node, context.time(down));
        context.describe(format!(
            "{node} goes off, and comes back after {down} with its counters at zero"
        ));
        Ok(())
    }
}

/// The ports of a node that have counters.
fn counter_ports(context: &Context<'_, '_>, node: NodeId) -> impl Iterator<Item = PortId> {
    let net = context.net();
    let zero = net.node(node).enhanced_port0.then(|| net.port_by_number(node, 0)).flatten();
    zero.into_iter().chain(net.cable_ports(node))
}

/// The port of the key `port`, which must have counters.
fn counter_port(context: &Context<'_, '_>, text: &str) -> Result<PortId, Problem> {
    let port = context.lookup("port", text, FabricIndex::port)?;
    let net = context.net();
    if net.port(port).number == 0 && !net.node_of(port).enhanced_port0 {
        return Err(context.error("port", format!("{} has no counters", net.label(port))));
    }
    Ok(port)
}

impl Clear {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (ports, whose) = match (&self.node, &self.port) {
            (Some(_), Some(_)) => {
                let problem = "a node or a port is cleared, and not both: the port names its node";
                return Err(context.error("port", problem));
            }
            (None, Some(port)) => (vec![counter_port(context, port)?], port.clone()),
            (Some(name), None) => {
                let node = context.node("node", name)?;
                (counter_ports(context, node).collect(), format!("all ports of {name}"))
            }
            (None, None) => {
                let nodes = context.net().node_ids();
                let ports: Vec<PortId> =
                    nodes.flat_map(|node| counter_ports(context, node)).collect();
                (ports, "all ports of the fabric".into())
            }
        };
        let repeats = context.repeats(self.times.map(|times| (times, "times")), self.every)?;
        context.charge(u64::from(repeats.times), ports.len())?;
        for turn in 0..repeats.times {
            let action = Action::ClearCounters { ports: ports.clone() };
            context.timeline.actions.push((context.turn(repeats, turn), action));
        }
        let times = context.repeated(repeats);
        context.describe(format!("somebody clears the counters of {whose}{times}"));
        Ok(())
    }
}

impl Set {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let port = counter_port(context, &self.port)?;
        if self.counters.0.is_empty() {
            return Err(context.error("counters", "counters: there must be at least one"));
        }
        let mut words = Vec::new();
        for (name, number) in &self.counters.0 {
            let (name, name_line, value) = (&name.value, name.line, number.value);
            let counter =
                counter(name).map_err(|problem| Problem::new(Some(name_line), problem))?;
            // The widest of its fields comes first.
            let width = counter.row().fields.first().map_or(64, |place| place.width);
            if width < 64 && value >> width != 0 {
                let problem = format!("{name}: {value} does not fit its {width} bits");
                return Err(Problem::new(Some(number.line), problem));
            }
            context.add_action(Action::SetCounter { port, counter, value })?;
            words.push(format!("{name} to {value}"));
        }
        let (port, words) = (context.label(port), text::few(&words, "counters"));
        context.describe(format!("somebody sets at {port} {words}"));
        Ok(())
    }
}

/// A node's agents behave like this for some time.
fn set_agents(
    context: &mut Context<'_, '_>,
    name: &str,
    behavior: AgentBehavior,
    lasts: Option<Time>,
    words: &str,
) -> Result<(), Problem> {
    let node = context.node("node", name)?;
    let (lasts, lasting) = context.duration(lasts)?;
    let agents = |behavior| Action::SetAgents { node, behavior };
    let normal = agents(AgentBehavior::Normal);
    context.add_effect(Target::Agents(node), lasts, agents(behavior), normal)?;
    context.describe(format!("{name} {words}{lasting}"));
    Ok(())
}

impl Silent {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let kind = context.net().node(context.node("node", &self.node)?).kind;
        let goes_on = if kind == NodeKind::Switch { "forwards packets" } else { "takes part" };
        let words = format!("still {goes_on}, but answers no MAD");
        set_agents(context, &self.node, AgentBehavior::Silent, self.r#for, &words)
    }
}

impl Slow {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        // The delay is not sped up: it counts against the timeouts of the requester.
        let by = context.positive("by", self.by)?;
        let words = format!("answers {} later", text::time(by));
        set_agents(context, &self.node, AgentBehavior::Delayed(by), self.r#for, &words)
    }
}

impl Busy {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let share = self.share.0;
        let words = format!("answers {} of requests with \"busy\"", text::percent(share));
        set_agents(context, &self.node, AgentBehavior::Busy(share), self.r#for, &words)
    }
}

impl LoseMads {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let loss = self.share.0;
        let percent = text::percent(loss);
        if let Some(node) = &self.node {
            let words = format!("leaves {percent} of requests without an answer");
            return set_agents(context, node, AgentBehavior::Lossy(loss), self.r#for, &words);
        }
        let (lasts, lasting) = context.duration(self.r#for)?;
        let normal = context.timeline.delivery;
        let lossy = Action::SetDelivery(MadDelivery { loss, ..normal });
        context.add_effect(Target::Delivery, lasts, lossy, Action::SetDelivery(normal))?;
        context.describe(format!("{percent} of all MADs get lost{lasting}"));
        Ok(())
    }
}

impl MKeyEntry {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let level = self.level;
        if level > 3 {
            return Err(context.error("level", format!("level: {level} is not 0 to 3")));
        }
        let (nodes, whose) = match &self.node {
            Some(name) => (vec![context.node("node", name)?], name.clone()),
            None => (context.net().node_ids().collect(), "all nodes".into()),
        };
        context.charge(0, nodes.len())?;
        let m_key = MKey(self.key.0);
        context.add_action(Action::SetMKey { nodes, m_key, level })?;
        let what = if m_key.is_set() { "an M_Key" } else { "no M_Key" };
        context
            .describe(format!("the subnet manager gives {whose} {what}, protection level {level}"));
        Ok(())
    }
}

impl LimitedMember {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let net = context.net();
        let (mut nodes, mut words): (Vec<NodeId>, String) = if let Some(name) = &self.node {
            let node = context.node("node", name)?;
            (context.timeline.index.machine(node), format!("{name} becomes a limited member"))
        } else {
            let hosts = net.node_ids().filter(|node| net.node(*node).kind == NodeKind::Ca);
            (hosts.collect(), "all hosts become limited members".into())
        };
        if let Some(name) = &self.except {
            if self.node.is_some() {
                return Err(context.error("except", "except: is for all hosts, not for one node"));
            }
            let full = context.timeline.index.machine(context.node("except", name)?);
            nodes.retain(|node| !full.contains(node));
            words = format!("all hosts but {name} become limited members");
        }
        context.charge(0, nodes.len())?;
        context.add_action(Action::SetMembership { nodes, full: false })?;
        context.describe(format!("{words} of the default partition"));
        Ok(())
    }
}

impl NewMaster {
    pub(super) fn apply(&self, context: &mut Context<'_, '_>) -> Result<(), Problem> {
        let (node, port) = context.lookup("host", &self.host, FabricIndex::sm_place)?;
        let reassign_lids = self.readdress.unwrap_or(false);
        let index = &context.timeline.index;
        // A host becomes the master of all planes that it has a port in.
        let in_all_planes = || {
            let first = index.host_ports().first();
            let all = first.map_or_else(Vec::new, |port| index.planes_from(*port));
            all.into_iter().filter_map(|plane| index.port_in(plane, node)).collect()
        };
        let ports: Vec<PortId> = port.map_or_else(in_all_planes, |port| vec![port]);
        if ports.is_empty() {
            return Err(context.error("host", format!("{} has no cable", self.host)));
        }
        for port in ports {
            context.add_action(Action::SetMaster { port, reassign_lids })?;
        }
        let lids = if reassign_lids { ", and gives every port another LID" } else { "" };
        context.describe(format!("the subnet manager at {} becomes the master{lids}", self.host));
        Ok(())
    }
}
