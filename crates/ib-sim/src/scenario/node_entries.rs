//! Entries of the timeline about nodes, their agents and their traffic.

use super::file::{
    Burst, Busy, Clear, LimitedMember, LoseMads, MKey as MKeyEntry, NewMaster, Reboot, Registers,
    Set, Silent, Slow, SlowReceiver, VsKey,
};
use super::index::FabricIndex;
use super::resolve::flow;
use super::source::Problem;
use super::timeline::{FLOW, Target, Timeline};
use super::value::{OneOrMore, Time};
use super::{Action, AgentBehavior, MadDelivery, value};
use crate::load::Flow;
use crate::net::{NodeId, PortId};
use crate::rng::Rng;
use ib_mad::m_key::MKey;
use ib_mad::node::NodeKind;

/// Key of the random numbers of senders: no other use draws the same.
const SENDERS: u64 = 2;

pub fn slow_receiver(entry: &SlowReceiver, timeline: &mut Timeline) -> Result<String, Problem> {
    let SlowReceiver { host, takes, .. } = entry;
    let (node, port) = timeline.lookup("host", host, FabricIndex::host)?;
    let mut ports: Vec<PortId> = match port {
        Some(port) => vec![port],
        None => timeline.net().cable_ports(node).collect(),
    };
    ports.retain(|port| timeline.index.peer(*port, timeline.at).is_some());
    timeline.require(!ports.is_empty(), "host", format!("{host} has no cable"))?;
    let mut lasting = String::new();
    for port in ports {
        let start = Action::LimitIntake { port, fraction: takes.0 };
        lasting = timeline.add_effect(Target::Intake(port), start, entry.r#for)?;
    }
    let percent = value::percent(takes.0);
    Ok(format!("{host} receives at most {percent} of the rate of its link{lasting}"))
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

/// The hosts that send in a burst: some number of them, or those of a list.
fn senders(entry: &Burst, timeline: &Timeline, to: PortId) -> Result<Vec<PortId>, Problem> {
    let (index, net) = (&timeline.index, timeline.net());
    let plane = index.plane(to);
    let receiver = net.port(to).node;
    let names = match &entry.from {
        OneOrMore::More(names) => names,
        OneOrMore::One(count) => {
            let Ok(count) = count.parse::<u64>() else {
                let problem = "from: must be a number of hosts or a list of hosts";
                return Err(timeline.error("from", problem));
            };
            timeline.require(count > 0, "from", "from: must be more than 0")?;
            let is_other = |port: &PortId| net.port(*port).node != receiver;
            let others: Vec<PortId> = index.host_ports_in(plane).filter(is_other).collect();
            let most = others.len();
            let problem = format!("from: {count} is more than the {most} other hosts");
            timeline.require(count <= most as u64, "from", problem)?;
            let rng = Rng::keyed(timeline.seed, &[SENDERS, timeline.at.1 as u64]);
            return Ok(draw(others, count as usize, rng));
        }
    };
    timeline.require(!names.is_empty(), "from", "from: at least one host is required")?;
    let mut ports = Vec::new();
    for (nth, name) in names.iter().enumerate() {
        let key = format!("from[{nth}]");
        let (node, port) = timeline.lookup(&key, name, FabricIndex::host)?;
        let port = match port {
            Some(port) => Some(port).filter(|port| index.plane(*port) == plane),
            None => index.port_in(plane, node),
        };
        let to = &entry.to;
        let problem = match port.filter(|port| net.port(*port).cable.is_some()) {
            None => format!("no path from {name} to {to}: they have no cable in the same fabric"),
            Some(port) if net.port(port).node == receiver => format!("{name} would send to itself"),
            Some(port) if ports.contains(&port) => format!("{name} is listed twice"),
            Some(port) => {
                ports.push(port);
                continue;
            }
        };
        return Err(timeline.error(&key, problem));
    }
    Ok(ports)
}

pub fn burst(entry: &Burst, timeline: &mut Timeline) -> Result<String, Problem> {
    let net = timeline.net();
    let place = timeline.lookup("to", &entry.to, FabricIndex::host)?;
    let to = timeline.index.cabled_port(place);
    let to = to.ok_or_else(|| timeline.error("to", format!("{} has no cable", entry.to)))?;
    let from = senders(entry, timeline, to)?;
    let load = entry.load.0;
    timeline.require(load > 0.0, "load", "load: must be more than 0")?;
    let packet = entry.packet.map_or(timeline.packet, |packet| packet.0);
    timeline.charge(1, from.len() * FLOW)?;
    let flows: Vec<Flow> = from.iter().map(|port| flow(net, (*port, to), load, packet)).collect();
    // Each entry has a name of its own: their flows add up.
    let name = format!("burst-{}", timeline.at.1);
    let target = Target::Flows(name.clone());
    let lasting = timeline.add_effect(target, Action::SetTraffic { name, flows }, entry.r#for)?;
    let names: Vec<String> = from.iter().map(|port| net.node_of(*port).id.clone()).collect();
    let (send, whose) =
        if names.len() == 1 { ("sends", "its link's") } else { ("each send", "their links'") };
    let (names, percent) = (value::few(&names, "hosts"), value::percent(load));
    let to = &net.node_of(to).id;
    Ok(format!("{names} {send} to {to}, at {percent} of {whose} rate{lasting}"))
}

pub fn reboot(entry: &Reboot, timeline: &mut Timeline) -> Result<String, Problem> {
    let name = &entry.node;
    let node = timeline.node("node", name)?;
    let down = timeline.positive("down", entry.down)?;
    for node in timeline.index.machine(node) {
        let off = Action::SetPower { node, on: false };
        timeline.add_effect(Target::Power(node), off, Some(entry.down))?;
    }
    let down = timeline.time(down);
    Ok(format!("{name} reboots: it is up again after {down}, with its counters at 0"))
}

/// The ports of a node that have counters.
fn counter_ports(timeline: &Timeline, node: NodeId) -> impl Iterator<Item = PortId> {
    let net = timeline.net();
    let zero = net.node(node).enhanced_port0.then(|| net.port_by_number(node, 0)).flatten();
    zero.into_iter().chain(net.cable_ports(node))
}

/// The port of the key `port`, which must have counters.
fn counter_port(timeline: &Timeline, text: &str) -> Result<PortId, Problem> {
    let port = timeline.lookup("port", text, FabricIndex::port)?;
    let net = timeline.net();
    let has_counters = net.port(port).number != 0 || net.node_of(port).enhanced_port0;
    timeline.require(has_counters, "port", format!("{} has no counters", net.label(port)))?;
    Ok(port)
}

pub fn clear(entry: &Clear, timeline: &mut Timeline) -> Result<String, Problem> {
    let (ports, whose) = match (&entry.node, &entry.port) {
        (Some(_), Some(_)) => {
            return Err(timeline.error("port", "set either node or port, not both"));
        }
        (None, Some(port)) => (vec![counter_port(timeline, port)?], port.clone()),
        (Some(name), None) => {
            let node = timeline.node("node", name)?;
            (counter_ports(timeline, node).collect(), format!("all ports of {name}"))
        }
        (None, None) => {
            let ports = timeline.net().node_ids().flat_map(|node| counter_ports(timeline, node));
            (ports.collect(), "all ports of the fabric".into())
        }
    };
    let times = entry.times.map(|times| (times, "times"));
    let (turns, repeated) = timeline.repeats(times, entry.every, 1, ports.len())?;
    let action = |turn| (turn, Action::ClearCounters { ports: ports.clone() });
    timeline.actions.extend(turns.into_iter().map(action));
    Ok(format!("the counters of {whose} are cleared{repeated}"))
}

pub fn set(entry: &Set, timeline: &mut Timeline) -> Result<String, Problem> {
    let port = counter_port(timeline, &entry.port)?;
    let counters = &entry.counters.0;
    timeline.require(!counters.is_empty(), "counters", "counters: at least one is required")?;
    let mut words = Vec::new();
    for &(ref name, value) in counters {
        let key = format!("counters.{name}");
        let counter = value::counter(name).map_err(|problem| timeline.error(&key, problem))?;
        // The widest of its fields comes first.
        let width = counter.row().fields.first().map_or(64, |place| place.width);
        if width < 64 && value >> width != 0 {
            let problem = format!("{name}: {value} does not fit its {width} bits");
            return Err(timeline.error(&key, problem));
        }
        timeline.add_action(Action::SetCounter { port, counter, value })?;
        words.push(format!("{name} to {value}"));
    }
    let (port, words) = (timeline.label(port), value::few(&words, "counters"));
    Ok(format!("counters of {port} are set: {words}"))
}

/// A node's agents behave like this for some time.
fn set_agents(
    timeline: &mut Timeline,
    name: &str,
    behavior: AgentBehavior,
    lasts: Option<Time>,
    words: &str,
) -> Result<String, Problem> {
    let node = timeline.node("node", name)?;
    let start = Action::SetAgents { node, behavior };
    let lasting = timeline.add_effect(Target::Agents(node), start, lasts)?;
    Ok(format!("{name} {words}{lasting}"))
}

pub fn silent(entry: &Silent, timeline: &mut Timeline) -> Result<String, Problem> {
    let kind = timeline.net().node(timeline.node("node", &entry.node)?).kind;
    let goes_on = if kind == NodeKind::Switch { "forwards packets" } else { "runs traffic" };
    let words = format!("{goes_on}, but does not respond to MADs");
    set_agents(timeline, &entry.node, AgentBehavior::Silent, entry.r#for, &words)
}

pub fn slow(entry: &Slow, timeline: &mut Timeline) -> Result<String, Problem> {
    // The delay is not sped up: it counts against the timeouts of the requester.
    let by = timeline.positive("by", entry.by)?;
    let words = format!("responds {} later", value::words(by));
    set_agents(timeline, &entry.node, AgentBehavior::Delayed(by), entry.r#for, &words)
}

pub fn busy(entry: &Busy, timeline: &mut Timeline) -> Result<String, Problem> {
    let share = entry.share.0;
    let words = format!("responds with \"busy\" to {} of requests", value::percent(share));
    set_agents(timeline, &entry.node, AgentBehavior::Busy(share), entry.r#for, &words)
}

pub fn lose_mads(entry: &LoseMads, timeline: &mut Timeline) -> Result<String, Problem> {
    let loss = entry.share.0;
    let percent = value::percent(loss);
    if let Some(node) = &entry.node {
        let words = format!("does not respond to {percent} of requests");
        return set_agents(timeline, node, AgentBehavior::Lossy(loss), entry.r#for, &words);
    }
    let lossy = Action::SetDelivery(MadDelivery { loss, ..timeline.delivery });
    let lasting = timeline.add_effect(Target::Delivery, lossy, entry.r#for)?;
    Ok(format!("{percent} of all MADs are lost{lasting}"))
}

pub fn m_key(entry: &MKeyEntry, timeline: &mut Timeline) -> Result<String, Problem> {
    let level = entry.level;
    timeline.require(level <= 3, "level", format!("level: {level} is not between 0 and 3"))?;
    let (nodes, whose) = timeline.nodes(entry.node.as_deref())?;
    let m_key = MKey(entry.key.0);
    timeline.add_action(Action::SetMKey { nodes, m_key, level })?;
    let what = if m_key.is_set() { "an M_Key" } else { "no M_Key" };
    Ok(format!("the subnet manager gives {whose} {what}, protection level {level}"))
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

pub fn limited_member(entry: &LimitedMember, timeline: &mut Timeline) -> Result<String, Problem> {
    let net = timeline.net();
    let (mut nodes, mut words): (Vec<NodeId>, String) = if let Some(name) = &entry.node {
        let node = timeline.node("node", name)?;
        (timeline.index.machine(node), format!("{name} becomes a limited member"))
    } else {
        let hosts = net.node_ids().filter(|node| net.node(*node).kind == NodeKind::Ca);
        (hosts.collect(), "all hosts become limited members".into())
    };
    if let Some(name) = &entry.except {
        let problem = "except: cannot be combined with node";
        timeline.require(entry.node.is_none(), "except", problem)?;
        let full = timeline.index.machine(timeline.node("except", name)?);
        nodes.retain(|node| !full.contains(node));
        words = format!("all hosts but {name} become limited members");
    }
    timeline.add_action(Action::SetMembership { nodes, full: false })?;
    Ok(format!("{words} of the default partition"))
}

pub fn new_master(entry: &NewMaster, timeline: &mut Timeline) -> Result<String, Problem> {
    let host = &entry.host;
    let (node, port) = timeline.lookup("host", host, FabricIndex::sm_location)?;
    let reassign_lids = entry.readdress.unwrap_or(false);
    let index = &timeline.index;
    let planes = index.host_planes.iter();
    let ports: Vec<PortId> = match port {
        Some(port) => vec![port],
        // A host becomes the master of all planes that it has a port in.
        None => planes.filter_map(|plane| index.port_in(*plane, node)).collect(),
    };
    timeline.require(!ports.is_empty(), "host", format!("{host} has no cable"))?;
    for port in ports {
        timeline.add_action(Action::SetMaster { port, reassign_lids })?;
    }
    let lids = if reassign_lids { ", and assigns another LID to every port" } else { "" };
    Ok(format!("the subnet manager at {host} becomes the master{lids}"))
}
