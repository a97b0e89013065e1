//! Entries of the timeline about what subnet managers do: keys, partitions, another master.

use super::super::index::FabricIndex;
use super::super::problem::Problem;
use super::super::timeline::Timeline;
use super::super::value::Key;
use super::keys::keys;
use crate::change::FabricChange;
use crate::net::{NodeId, PortId};
use ib_mad::node::NodeKind;

keys! {
    MKey { key: Key, level: u8, node: Option<String>, }
    VsKey { key: Key, node: Option<String>, }
    // `except`: a subnet manager makes its own host a full member.
    LimitedMember { node: Option<String>, except: Option<String>, }
    NewMaster { host: String, readdress: Option<bool>, }
}

pub fn m_key(entry: &MKey, timeline: &mut Timeline) -> Result<String, Problem> {
    let level = entry.level;
    timeline.require(level <= 3, "level", format!("level: {level} is not between 0 and 3"))?;
    let (nodes, whose) = timeline.nodes(entry.node.as_deref())?;
    let m_key = ib_mad::m_key::MKey(entry.key.0);
    timeline.add_change(FabricChange::SetMKey { nodes, m_key, level })?;
    let what = if m_key.is_set() { "an M_Key" } else { "no M_Key" };
    Ok(format!("the subnet manager gives {whose} {what}, protection level {level}"))
}

pub fn vs_key(entry: &VsKey, timeline: &mut Timeline) -> Result<String, Problem> {
    let (nodes, who) = timeline.nodes(entry.node.as_deref())?;
    let key = entry.key.0;
    timeline.add_change(FabricChange::SetVsKey { nodes, key })?;
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
    timeline.add_change(FabricChange::SetMembership { nodes, full: false })?;
    Ok(format!("{words} of the default partition"))
}

pub fn new_master(entry: &NewMaster, timeline: &mut Timeline) -> Result<String, Problem> {
    let host = &entry.host;
    let (node, port) = timeline.lookup("host", host, FabricIndex::sm_location)?;
    let reassign_lids = entry.readdress.unwrap_or(false);
    let index = &timeline.index;
    let planes = index.host_planes.iter();
    let ports: Vec<PortId> = match port {
        Some(port) => vec![index.net.sm_port(port)],
        // A host becomes the master of all planes that it has a port in.
        None => planes.filter_map(|plane| index.port_in(*plane, node)).collect(),
    };
    timeline.require(!ports.is_empty(), "host", format!("{host} has no cable"))?;
    for port in ports {
        timeline.add_change(FabricChange::SetMaster { port, reassign_lids })?;
    }
    let lids = if reassign_lids { ", and assigns another LID to every port" } else { "" };
    Ok(format!("the subnet manager at {host} becomes the master{lids}"))
}
