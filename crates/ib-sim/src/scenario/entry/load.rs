//! What happens to traffic.

use super::super::error::Problem;
use super::super::file::{Burst, SlowReceiver};
use super::super::spell::Thing;
use super::super::stage::{FLOW, Scene, for_how_long, found, wrong};
use super::super::traffic::flow;
use super::super::value::{Senders, line_of};
use super::super::{Action, words};
use crate::chance::Chance;
use crate::load::Flow;
use crate::net::PortId;

/// What senders are drawn by, so that nothing else draws the same.
const SENDERS: u64 = 2;

pub(super) fn slow_receiver(
    scene: &mut Scene<'_, '_>,
    entry: &SlowReceiver,
) -> Result<(), Problem> {
    let ports = scene.host_ports(&entry.host)?;
    let (share, lasts) = (entry.takes.value.0, for_how_long(entry.r#for.as_ref())?);
    for port in ports {
        let takes = |share| Action::Intake { port, share };
        scene.holds(Thing::Intake(port), lasts, takes(share), takes(1.0))?;
    }
    let (host, percent) = (&entry.host.value, words::percent(share));
    let lasting = scene.lasting(lasts);
    scene.tell(format!("{host} takes in no more than {percent} of its link's rate{lasting}"));
    Ok(())
}

/// So many of these, all as likely, in their order.
fn drawn(from: Vec<PortId>, count: usize, mut chance: Chance) -> Vec<PortId> {
    let (mut left, mut wanted) = (from.len() as u64, count as u64);
    let is_drawn = |_: &PortId| {
        let drawn = chance.below(left) < wanted;
        left -= 1;
        wanted -= u64::from(drawn);
        drawn
    };
    from.into_iter().filter(is_drawn).collect()
}

fn senders(scene: &Scene<'_, '_>, entry: &Burst, to: PortId) -> Result<Vec<PortId>, Problem> {
    let (stage, from) = (&*scene.stage, &entry.from);
    let plane = stage.planes.of(to);
    let receiver = stage.net.port(to).node;
    match &from.value {
        Senders::Count(0) => wrong(from, "from: it must be more than 0 hosts"),
        Senders::Count(count) => {
            let is_other = |port: &PortId| stage.net.port(*port).node != receiver;
            let others: Vec<PortId> = stage.planes.hosts_of(plane).filter(is_other).collect();
            match usize::try_from(*count) {
                Ok(count) if count <= others.len() => {
                    let chance = Chance::at(stage.seed, &[SENDERS, scene.when.1 as u64]);
                    Ok(drawn(others, count, chance))
                }
                _ => wrong(
                    from,
                    format!("from: there are but {} other hosts, not {count}", others.len()),
                ),
            }
        }
        Senders::These(names) if names.is_empty() => {
            wrong(from, "from: there must be at least one host")
        }
        Senders::These(names) => {
            let mut ports = Vec::new();
            for name in names {
                let (node, port) = found(name, |text| stage.places.host(text))?;
                let port = match port {
                    Some(port) => Some(port).filter(|port| stage.planes.of(*port) == plane),
                    None => stage.planes.port_in(plane, node),
                };
                match port.filter(|port| stage.net.port(*port).cable.is_some()) {
                    None => {
                        return wrong(
                            name,
                            format!("no cable leads from {} to {}", name.value, entry.to.value),
                        );
                    }
                    Some(port) if stage.net.port(port).node == receiver => {
                        return wrong(name, format!("{} would send to itself", name.value));
                    }
                    Some(port) if ports.contains(&port) => {
                        return wrong(name, format!("{} is named twice", name.value));
                    }
                    Some(port) => ports.push(port),
                }
            }
            Ok(ports)
        }
    }
}

pub(super) fn burst(scene: &mut Scene<'_, '_>, entry: &Burst) -> Result<(), Problem> {
    let to = match found(&entry.to, |text| scene.stage.places.host(text))? {
        (_, Some(port)) => Some(port),
        (node, None) => scene
            .stage
            .planes
            .hosts()
            .iter()
            .copied()
            .find(|port| scene.stage.net.port(*port).node == node),
    };
    let Some(to) = to.filter(|to| scene.stage.net.port(*to).cable.is_some()) else {
        return wrong(&entry.to, format!("{} has no cable", entry.to.value));
    };
    let from = senders(scene, entry, to)?;
    let lasts = for_how_long(entry.r#for.as_ref())?;
    let load = entry.load.value.0;
    if load == 0.0 {
        return Err(Problem::at(line_of(&entry.load), "load: it must be more than 0"));
    }
    let packet = entry.packet.map_or(scene.stage.packet, |packet| packet.0);
    scene.spend(1, from.len() * FLOW)?;
    let net = scene.stage.net;
    let flows: Vec<Flow> = from.iter().map(|port| flow(net, (*port, to), load, packet)).collect();
    // No two entries have one name: they add up.
    let name = format!("burst-{}", scene.when.1);
    let traffic = |flows| Action::Traffic { name: name.clone(), flows };
    let (begins, ends) = (traffic(flows), traffic(Vec::new()));
    scene.holds(Thing::Flows(scene.when.1), lasts, begins, ends)?;
    let names: Vec<String> = from.iter().map(|port| net.node_of(*port).id.clone()).collect();
    let (verb, whose) =
        if names.len() == 1 { ("sends", "its link's") } else { ("send", "their links'") };
    let (names, percent) = (words::few(&names, "hosts"), words::percent(load));
    let (to, lasting) = (&net.node_of(to).id, scene.lasting(lasts));
    let each = if from.len() > 1 { "each " } else { "" };
    scene.tell(format!("{names} {each}{verb} to {to}, at {percent} of {whose} rate{lasting}"));
    Ok(())
}
