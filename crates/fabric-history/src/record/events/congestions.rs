//! Congestions that begin and end, with what is needed to find their cause later: by then nothing of it is live.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::event::EventKind;
use crate::record::events::sweep::Sweep;
use display_text::plural;
use ib_fabric::topology::Node;
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_health::congestion::{GRACE, Level, Region, Role, RootCause};
use ib_health::outage::duration;
use ib_health::{Assessment, PortAssessment};
use ib_mad::node::NodeKind;
use ib_mad::{Counter, Moment, PortKey};

/// How many victims an event names.
const MAX_VICTIMS: usize = 10;

/// The congestions that have not ended, by their roots.
#[derive(Debug, Default)]
pub(super) struct OpenCongestions(BTreeMap<PortKey, OpenCongestion>);

/// A congestion that has not ended.
#[derive(Clone, Debug)]
struct OpenCongestion {
    place: String,
    began: Moment,
    last_seen: Moment,
    /// What was discarded at the root until it began, if that is known.
    discarded_before: Option<u64>,
    discarded: Option<u64>,
    /// The sweep with the most waiting ports; its other numbers are the highest of all sweeps.
    worst: Extent,
}

/// The root of a congestion, and how far the congestion extends.
#[derive(Clone, Debug)]
struct Extent {
    cause: RootCause,
    /// The host and the node at the link of an edge port.
    host: Option<String>,
    node: Option<String>,
    /// The port at the other end of the root's link.
    peer: Option<String>,
    ports: u32,
    share: f32,
    level: Level,
    used: Option<f32>,
    victims: Vec<String>,
    victim_count: usize,
}

impl OpenCongestions {
    /// Jobs communicate in bursts: a congestion that was absent for no longer than [`GRACE`] is the same one.
    pub fn update(&mut self, sweep: &mut Sweep) {
        let (snapshot, at) = (sweep.snapshot, sweep.snapshot.ended);
        for region in &sweep.assessment.regions {
            let discarded = discarded(sweep, region.root);
            let find = || Extent::find(region, snapshot, sweep.assessment);
            let end = snapshot.fabric.port_key(region.root);
            if let Some(open) = self.0.get_mut(&end) {
                open.last_seen = at;
                open.discarded = discarded.or(open.discarded);
                open.discarded_before = open.discarded_before.or(discarded);
                open.worst.grow(region, used(sweep, region.root), find);
                continue;
            }
            let (place, extent) = (snapshot.fabric.port_label(region.root), find());
            let (text, detail) = (extent.text(), extent.detail());
            let kind = EventKind::CongestionStart;
            sweep.push_detailed(kind, end.into(), &place, text, at, detail.into());
            let open = OpenCongestion {
                place,
                began: at,
                last_seen: at,
                discarded_before: discarded,
                discarded,
                worst: extent,
            };
            self.0.insert(end, open);
        }
        self.0.retain(|end, open| {
            let is_over = at.since(open.last_seen) > GRACE;
            if is_over {
                let (text, detail) = open.end();
                let kind = EventKind::CongestionEnd;
                sweep.push_detailed(kind, (*end).into(), &open.place, text, open.last_seen, detail);
            }
            !is_over
        });
    }
}

impl OpenCongestion {
    /// The text and detail of its end.
    fn end(&self) -> (String, Value) {
        let (worst, length) = (&self.worst, self.last_seen.since(self.began));
        let discarded = self.discarded.zip(self.discarded_before);
        let discarded = discarded.map(|(now, before)| now.saturating_sub(before));
        let after = if length.is_zero() { "one sweep".into() } else { duration(length) };
        let mut text = format!(
            "over after {after}: up to {} waited, up to {}",
            plural(worst.ports as usize, "port"),
            of_the_time(worst.share)
        );
        if let Some(discarded) = discarded.filter(|discarded| *discarded > 0) {
            let _ = write!(text, "; {} discarded", plural(discarded, "packet"));
        }
        let mut detail = worst.detail();
        detail.insert("seconds".into(), length.as_secs().into());
        detail.insert("discarded_packets".into(), discarded.into());
        (text, Value::Object(detail))
    }
}

impl Extent {
    fn find(region: &Region, snapshot: &Snapshot, assessment: &Assessment) -> Extent {
        let fabric = &snapshot.fabric;
        let root = assessment.ports.get(region.root);
        let cause = match root.and_then(|root| root.role) {
            Some(Role::Root(cause)) => cause,
            Some(Role::Victim { .. }) | None => RootCause::Unknown,
        };
        let edge = edge_node(fabric, region.root);
        let peer = fabric.port(region.root).connected_peer();
        let mut victims: Vec<(PortIndex, &PortAssessment)> = fabric
            .port_indexes()
            .zip(&assessment.ports)
            .filter(|(_, port)| port.role == Some(Role::Victim { of: region.root }))
            .collect();
        // Hosts first: jobs run there. Of these the ones that wait most.
        let is_host = |port: PortIndex| fabric.node_of(port).identity.kind == NodeKind::Ca;
        victims.sort_by(|(a, a_found), (b, b_found)| {
            let waits = waited(b_found).total_cmp(&waited(a_found));
            is_host(*b).cmp(&is_host(*a)).then(waits)
        });
        let name = |(port, _): &(PortIndex, _)| match &fabric.node_of(*port).host {
            Some(host) => host.clone(),
            None => snapshot.fabric.port_label(*port),
        };
        let mut names: Vec<String> = Vec::new();
        for name in victims.iter().map(name) {
            if names.len() < MAX_VICTIMS && !names.contains(&name) {
                names.push(name);
            }
        }
        Extent {
            cause,
            host: edge.and_then(|node| node.host.clone()),
            node: edge.map(|node| node.name.clone()),
            peer: peer.map(|peer| snapshot.fabric.port_label(peer)),
            ports: region.ports,
            share: region.share,
            level: region.level,
            used: root.and_then(|root| root.tx).map(|tx| tx.used),
            victims: names,
            victim_count: victims.len(),
        }
    }

    /// Takes over what a later sweep found, where that is worse.
    fn grow(&mut self, region: &Region, used: Option<f32>, find: impl FnOnce() -> Extent) {
        let (share, level) = (self.share.max(region.share), self.level.max(region.level));
        let used = match (self.used, used) {
            (Some(before), Some(now)) => Some(before.max(now)),
            (before, now) => before.or(now),
        };
        if region.ports > self.ports {
            *self = find();
        }
        (self.share, self.level, self.used) = (share, level, used);
    }

    /// `slow receiver host-200: 68 ports wait, up to 90% of the time (high)`.
    fn text(&self) -> String {
        let edge = self.host.as_ref().or(self.node.as_ref());
        let root = match (self.cause, edge.or(self.peer.as_ref()), edge) {
            (RootCause::SlowReceiver, Some(name), _) => format!("slow receiver {name}"),
            (RootCause::SlowReceiver, None, _) => "slow receiver".into(),
            (RootCause::FullLink, Some(name), _) => format!("full link to {name}"),
            (RootCause::FullLink, None, _) => "full link".into(),
            (RootCause::Unknown, _, Some(name)) => format!("{name} (cause unknown)"),
            (RootCause::Unknown, _, None) => "cause unknown".into(),
        };
        let verb = if self.ports == 1 { "waits" } else { "wait" };
        let (ports, share) = (plural(self.ports as usize, "port"), of_the_time(self.share));
        format!("{root}: {ports} {verb}, up to {share} ({})", self.level.label())
    }

    fn detail(&self) -> Map<String, Value> {
        let share = |share: f32| (f64::from(share) * 1e4).round() / 1e4;
        let detail = json!({
            "cause": self.cause.label(),
            "host": self.host,
            "node": self.node,
            "ports": self.ports,
            "share": share(self.share),
            "level": self.level.label(),
            "utilization": self.used.map(share),
            "victims": self.victims,
            "victim_count": self.victim_count,
        });
        match detail {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// The node at the edge of the fabric that a port leads to, or that it belongs to: the host that receives, or sends,
/// what waits. `None` between switches.
fn edge_node(fabric: &Fabric, port: PortIndex) -> Option<&Node> {
    let peer = fabric.port(port).connected_peer();
    let ends = peer.into_iter().chain([port]).map(|port| fabric.node_of(port));
    ends.into_iter().find(|node| !node.is_switch())
}

fn waited(found: &PortAssessment) -> f32 {
    found.wait.map(|wait| wait.share).or(found.held_wait.map(|held| held.share)).unwrap_or(0.0)
}

fn used(sweep: &Sweep, port: PortIndex) -> Option<f32> {
    sweep.assessment.ports.get(port)?.tx.map(|tx| tx.used)
}

/// What a port has discarded so far, other than while it had no link. Not known once one of the counters is saturated.
fn discarded(sweep: &Sweep, port: PortIndex) -> Option<u64> {
    let [all, inactive] = [Counter::XmitDiscards, Counter::XmitInactiveDiscards];
    let saturated = sweep.assessment.ports.get(port)?.counters.saturated_now;
    let reading = sweep.snapshot.reading(port)?;
    let known = !saturated.contains(all) && !saturated.contains(inactive);
    Some(reading.get(all)?.saturating_sub(reading.get(inactive).unwrap_or(0))).filter(|_| known)
}

fn of_the_time(share: f32) -> String {
    format!("{:.0}% of the time", f64::from(share) * 100.0)
}
