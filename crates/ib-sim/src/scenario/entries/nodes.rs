//! Entries of the timeline about nodes and their agents.

use super::super::problem::Problem;
use super::super::timeline::{Target, Timeline};
use super::super::value::{self, Behavior, Fraction, Panel, Table, Time};
use super::keys::keys;
use crate::change::{AgentBehavior, FabricChange, MadDelivery};
use ib_mad::node::NodeKind;

keys! {
    Reboot { node: String, down: Time, }
    Silent { node: String, r#for: Option<Time>, }
    Slow { node: String, by: Time, r#for: Option<Time>, }
    Busy { node: String, share: Fraction, r#for: Option<Time>, }
    LoseMads { share: Fraction, node: Option<String>, r#for: Option<Time>, }
    Registers { node: String, behavior: Behavior, r#for: Option<Time>, }
    FrontPanel { node: Option<String>, behavior: Panel, }
    StateTable { node: Option<String>, behavior: Table, }
}

pub fn reboot(entry: &Reboot, timeline: &mut Timeline) -> Result<String, Problem> {
    let name = &entry.node;
    let node = timeline.node("node", name)?;
    let down = timeline.positive("down", entry.down)?;
    for node in timeline.index.machine(node) {
        let off = FabricChange::SetPower { node, on: false };
        timeline.add_effect(Target::Power(node), off, Some(entry.down))?;
    }
    let down = timeline.time(down);
    Ok(format!("{name} reboots: it is up again after {down}, with its counters at 0"))
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
    let start = FabricChange::SetAgents { node, behavior };
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
    let lossy = FabricChange::SetDelivery(MadDelivery { loss, ..timeline.delivery });
    let lasting = timeline.add_effect(Target::Delivery, lossy, entry.r#for)?;
    Ok(format!("{percent} of all MADs are lost{lasting}"))
}

pub fn registers(entry: &Registers, timeline: &mut Timeline) -> Result<String, Problem> {
    let node = timeline.node("node", &entry.node)?;
    let behavior = entry.behavior.0;
    let start = FabricChange::SetRegisters { node, behavior };
    let lasting = timeline.add_effect(Target::Registers(node), start, entry.r#for)?;
    Ok(format!("the registers of {} are {}{lasting}", entry.node, behavior.label()))
}

pub fn front_panel(entry: &FrontPanel, timeline: &mut Timeline) -> Result<String, Problem> {
    let behavior = entry.behavior.0;
    let (nodes, whose) = timeline.nodes(entry.node.as_deref())?;
    timeline.add_change(FabricChange::SetFrontPanel { nodes, behavior })?;
    Ok(format!("the front-panel names of {whose} are {}", behavior.label()))
}

pub fn state_table(entry: &StateTable, timeline: &mut Timeline) -> Result<String, Problem> {
    let behavior = entry.behavior.0;
    let (nodes, whose) = timeline.nodes(entry.node.as_deref())?;
    timeline.add_change(FabricChange::SetStateTable { nodes, behavior })?;
    Ok(format!("the port state table of {whose} is {}", behavior.label()))
}
