//! Entries of the timeline about counters.

use super::super::index::FabricIndex;
use super::super::problem::Problem;
use super::super::timeline::Timeline;
use super::super::value::{self, Numbers, Time};
use super::keys::keys;
use crate::change::FabricChange;
use crate::net::{NodeId, PortId};

keys! {
    Clear {
        node: Option<String>,
        port: Option<String>,
        every: Option<Time>,
        times: Option<u32>,
    }
    Set { port: String, counters: Numbers, }
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
    let change = |turn| (turn, FabricChange::ClearCounters { ports: ports.clone() });
    timeline.changes.extend(turns.into_iter().map(change));
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
        timeline.add_change(FabricChange::SetCounter { port, counter, value })?;
        words.push(format!("{name} to {value}"));
    }
    let (port, words) = (timeline.label(port), value::few(&words, "counters"));
    Ok(format!("counters of {port} are set: {words}"))
}
