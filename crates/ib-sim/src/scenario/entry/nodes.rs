//! What happens to nodes and their agents.

use super::super::error::Problem;
use super::super::file::{
    Busy, Clear, LimitedMember, LoseMads, MKey as MKeyEntry, NewMaster, Reboot, Set, Silent, Slow,
};
use super::super::spell::Thing;
use super::super::stage::{Scene, for_how_long, found, repeats, some_time, wrong};
use super::super::value::{Time, counter, line_of};
use super::super::{Action, Manner, Way, words};
use crate::net::{NodeId, PortId};
use ib_mad::m_key::MKey;
use ib_mad::node::NodeKind;
use site_config::yaml::Spanned;

pub(super) fn reboot(scene: &mut Scene<'_, '_>, entry: &Reboot) -> Result<(), Problem> {
    let nodes = scene.machine(&entry.node)?;
    let down = some_time("down", &entry.down)?;
    for node in nodes {
        let power = |on| Action::Power { node, on };
        scene.holds(Thing::Power(node), Some(down), power(false), power(true))?;
    }
    let (node, down) = (&entry.node.value, scene.stage.time(down));
    scene.tell(format!("{node} goes off, and comes back after {down} with its counters at zero"));
    Ok(())
}

/// The ports of a node that have counters.
fn counting(scene: &Scene<'_, '_>, node: NodeId) -> impl Iterator<Item = PortId> {
    let net = scene.stage.net;
    let zero = net.node(node).enhanced_port0.then(|| net.port_of(node, 0)).flatten();
    zero.into_iter().chain(net.plugs_of(node))
}

/// A port that has counters.
fn counted(scene: &Scene<'_, '_>, text: &Spanned<String>) -> Result<PortId, Problem> {
    let port = found(text, |text| scene.stage.places.port(text))?;
    if scene.stage.net.port(port).number == 0 && !scene.stage.net.node_of(port).enhanced_port0 {
        return wrong(text, format!("{} has no counters", scene.label(port)));
    }
    Ok(port)
}

pub(super) fn clear(scene: &mut Scene<'_, '_>, entry: &Clear) -> Result<(), Problem> {
    let (ports, whose) = match (&entry.node, &entry.port) {
        (Some(_), Some(port)) => {
            return wrong(
                port,
                "a node or a port is cleared, and not both: the port names its node",
            );
        }
        (None, Some(port)) => (vec![counted(scene, port)?], port.value.clone()),
        (Some(name), None) => {
            let node = scene.node(name)?;
            (counting(scene, node).collect(), format!("all ports of {}", name.value))
        }
        (None, None) => {
            let nodes = scene.stage.net.node_ids();
            let ports: Vec<PortId> = nodes.flat_map(|node| counting(scene, node)).collect();
            (ports, "all ports of the fabric".into())
        }
    };
    let times = entry.times.as_ref().map(|times| (times.value, line_of(times)));
    let repeats = repeats(times, entry.every.as_ref())?;
    scene.spend(u64::from(repeats.times), ports.len())?;
    for turn in 0..repeats.times {
        let when = scene.turn(repeats, turn);
        scene.stage.points.push((when, Action::Clear { ports: ports.clone() }));
    }
    let times = words::repeated(repeats.times, scene.stage.played(repeats.every));
    scene.tell(format!("somebody clears the counters of {whose}{times}"));
    Ok(())
}

pub(super) fn set(scene: &mut Scene<'_, '_>, entry: &Set) -> Result<(), Problem> {
    let port = counted(scene, &entry.port)?;
    if entry.counters.value.0.is_empty() {
        return wrong(&entry.counters, "counters: there must be at least one");
    }
    let mut told = Vec::new();
    for (name, value) in &entry.counters.value.0 {
        let counter = found(name, |name| counter(name))?;
        // Of its places the widest comes first.
        let width = counter.row().fields.first().map_or(64, |field| field.width);
        let value_set = value.value;
        if width < 64 && value_set >> width != 0 {
            return wrong(
                value,
                format!("{}: {value_set} does not fit its {width} bits", name.value),
            );
        }
        scene.happens(Action::Set { port, counter, value: value_set })?;
        told.push(format!("{} to {value_set}", name.value));
    }
    let (port, told) = (scene.label(port), words::few(&told, "counters"));
    scene.tell(format!("somebody sets at {port} {told}"));
    Ok(())
}

/// A node's agents answer in some manner for a while.
fn answers(
    scene: &mut Scene<'_, '_>,
    node: &Spanned<String>,
    manner: Manner,
    lasts: Option<&Spanned<Time>>,
    words: &str,
) -> Result<(), Problem> {
    let id = scene.node(node)?;
    let lasts = for_how_long(lasts)?;
    let agents = |manner| Action::Agents { node: id, manner };
    scene.holds(Thing::Agents(id), lasts, agents(manner), agents(Manner::Well))?;
    let lasting = scene.lasting(lasts);
    scene.tell(format!("{} {words}{lasting}", node.value));
    Ok(())
}

pub(super) fn silent(scene: &mut Scene<'_, '_>, entry: &Silent) -> Result<(), Problem> {
    let kind = scene.stage.net.node(scene.node(&entry.node)?).kind;
    let goes_on = if kind == NodeKind::Switch { "forwards packets" } else { "takes part" };
    let words = format!("still {goes_on}, but answers no MAD");
    answers(scene, &entry.node, Manner::Silent, entry.r#for.as_ref(), &words)
}

pub(super) fn slow(scene: &mut Scene<'_, '_>, entry: &Slow) -> Result<(), Problem> {
    // How late is not sped up: it is measured against the time-outs of whoever asks.
    let by = some_time("by", &entry.by)?;
    let words = format!("answers {} later", words::time(by));
    answers(scene, &entry.node, Manner::Late(by), entry.r#for.as_ref(), &words)
}

pub(super) fn busy(scene: &mut Scene<'_, '_>, entry: &Busy) -> Result<(), Problem> {
    let share = entry.share.value.0;
    let words = format!("answers {} of requests with \"busy\"", words::percent(share));
    answers(scene, &entry.node, Manner::Busy(share), entry.r#for.as_ref(), &words)
}

pub(super) fn lose_mads(scene: &mut Scene<'_, '_>, entry: &LoseMads) -> Result<(), Problem> {
    let share = entry.share.value.0;
    let percent = words::percent(share);
    if let Some(node) = &entry.node {
        let words = format!("leaves {percent} of requests without an answer");
        return answers(scene, node, Manner::Lossy(share), entry.r#for.as_ref(), &words);
    }
    let lasts = for_how_long(entry.r#for.as_ref())?;
    let usual = scene.stage.way;
    let worse = Action::Way(Way { loss: share, ..usual });
    scene.holds(Thing::Way, lasts, worse, Action::Way(usual))?;
    let lasting = scene.lasting(lasts);
    scene.tell(format!("{percent} of all MADs get lost{lasting}"));
    Ok(())
}

pub(super) fn m_key(scene: &mut Scene<'_, '_>, entry: &MKeyEntry) -> Result<(), Problem> {
    let level = entry.level.value;
    if level > 3 {
        return wrong(&entry.level, format!("level: {level} is not 0 to 3"));
    }
    let (nodes, whose) = match &entry.node {
        Some(name) => (vec![scene.node(name)?], name.value.clone()),
        None => (scene.stage.net.node_ids().collect(), "all nodes".into()),
    };
    scene.spend(0, nodes.len())?;
    let m_key = MKey(entry.key.value.0);
    scene.happens(Action::Protect { nodes, m_key, level })?;
    let what = if m_key.is_set() { "an M_Key" } else { "no M_Key" };
    scene.tell(format!("the subnet manager gives {whose} {what}, protection level {level}"));
    Ok(())
}

pub(super) fn limited_member(
    scene: &mut Scene<'_, '_>,
    entry: &LimitedMember,
) -> Result<(), Problem> {
    let net = scene.stage.net;
    let (mut nodes, mut told): (Vec<NodeId>, String) = if let Some(name) = &entry.node {
        (scene.machine(name)?, format!("{} becomes a limited member", name.value))
    } else {
        let hosts = net.node_ids().filter(|node| net.node(*node).kind == NodeKind::Ca);
        (hosts.collect(), "all hosts become limited members".into())
    };
    if let Some(name) = &entry.except {
        if entry.node.is_some() {
            return wrong(name, "except: is for all hosts, not for one node".to_owned());
        }
        let full = scene.machine(name)?;
        nodes.retain(|node| !full.contains(node));
        told = told.replacen("all hosts", &format!("all hosts but {}", name.value), 1);
    }
    scene.spend(0, nodes.len())?;
    scene.happens(Action::Membership { nodes, full: false })?;
    scene.tell(format!("{told} of the default partition"));
    Ok(())
}

pub(super) fn new_master(scene: &mut Scene<'_, '_>, entry: &NewMaster) -> Result<(), Problem> {
    let (node, port) = found(&entry.host, |text| scene.stage.places.manager(text))?;
    let readdresses = entry.readdress.unwrap_or(false);
    let planes = &scene.stage.planes;
    // A host is the master of all planes that it has a port in.
    let in_all = || {
        let all = planes.hosts().first().map_or_else(Vec::new, |port| planes.from(*port));
        all.into_iter().filter_map(|plane| planes.port_in(plane, node)).collect()
    };
    let ports: Vec<PortId> = port.map_or_else(in_all, |port| vec![port]);
    if ports.is_empty() {
        return wrong(&entry.host, format!("{} has no cable", entry.host.value));
    }
    for port in ports {
        scene.happens(Action::Master { port, readdresses })?;
    }
    let lids = if readdresses { ", and gives every port another LID" } else { "" };
    scene.tell(format!("the subnet manager at {} becomes the master{lids}", entry.host.value));
    Ok(())
}
