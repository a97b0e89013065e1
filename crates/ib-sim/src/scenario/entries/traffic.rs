//! Entries of the timeline about traffic and receivers.

use super::super::index::FabricIndex;
use super::super::initial_traffic::flows;
use super::super::problem::Problem;
use super::super::timeline::{FLOW, Target, Timeline};
use super::super::value::{self, Fraction, OneOrMore, PacketSize, Time};
use super::keys::keys;
use crate::change::FabricChange;
use crate::load::Flow;
use crate::net::PortId;
use crate::rng::Rng;

keys! {
    SlowReceiver { host: String, takes: Fraction, r#for: Option<Time>, }
    Burst {
        from: OneOrMore<String>,
        to: String,
        load: Fraction,
        packet: Option<PacketSize>,
        r#for: Option<Time>,
    }
}

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
        let start = FabricChange::LimitIntake { port, fraction: takes.0 };
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
            let rng = Rng::keyed(timeline.seed, &[SENDERS, timeline.at.entry as u64]);
            return Ok(draw(others, count as usize, rng));
        }
    };
    timeline.require(!names.is_empty(), "from", "from: at least one host is required")?;
    let mut ports = Vec::new();
    for (nth, name) in names.iter().enumerate() {
        let key = format!("from[{nth}]");
        let (node, port) = timeline.lookup(&key, name, FabricIndex::host)?;
        let port = match port {
            Some(port) => Some(net.sm_port(port)).filter(|port| index.plane(*port) == plane),
            None => index.port_in(plane, node),
        };
        let to = &entry.to;
        let problem = match port.filter(|port| net.has_lid(*port)) {
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
    let flows = from.iter().flat_map(|port| flows(net, (*port, to), load, packet));
    let flows: Vec<Flow> = flows.collect();
    timeline.charge(1, flows.len() * FLOW)?;
    // Each entry has a name of its own: their flows add up.
    let name = format!("burst-{}", timeline.at.entry);
    let target = Target::Flows(name.clone());
    let lasting =
        timeline.add_effect(target, FabricChange::SetTraffic { name, flows }, entry.r#for)?;
    let names: Vec<String> = from.iter().map(|port| net.node_of(*port).id.clone()).collect();
    let (send, whose) =
        if names.len() == 1 { ("sends", "its link's") } else { ("each send", "their links'") };
    let (names, percent) = (value::few(&names, "hosts"), value::percent(load));
    let to = &net.node_of(to).id;
    Ok(format!("{names} {send} to {to}, at {percent} of {whose} rate{lasting}"))
}
