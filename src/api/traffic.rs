//! The traffic of a fabric between its latest two sweeps.

use ib_fabric::PortIndex;
use ib_fabric::topology::Link as Cable;
use ib_health::LinkAssessment;
use ib_health::assessment::Flow as PortFlow;
use ib_mad::node::NodeKind;

use super::learning;
use super::links::FabricView;
use super::model::{BusyLink, Flow, Traffic};
use super::ports::name;

pub(super) fn flow(flow: PortFlow) -> Flow {
    Flow { bytes_per_second: flow.rate.into(), utilization: flow.used }
}

impl FabricView<'_> {
    /// What a port sends: by itself, or else by the other end of its link.
    pub fn sent(&self, port: PortIndex) -> Option<PortFlow> {
        let found = |port: PortIndex| self.assessment.ports.get(port.0 as usize);
        let peer = || self.snapshot.fabric.port(port).peer.map(|peer| peer.port);
        found(port)?.tx.or_else(|| found(peer()?)?.rx)
    }

    /// What a port receives, in the same way.
    pub fn received(&self, port: PortIndex) -> Option<PortFlow> {
        let found = |port: PortIndex| self.assessment.ports.get(port.0 as usize);
        let peer = || self.snapshot.fabric.port(port).peer.map(|peer| peer.port);
        found(port)?.rx.or_else(|| found(peer()?)?.tx)
    }

    /// What all hosts and routers send and receive, in bytes per second; `None` where nothing is known yet.
    pub fn throughput(&self) -> Option<[f64; 2]> {
        let fabric = &self.snapshot.fabric;
        let hosts = fabric.port_indexes().zip(&self.assessment.ports).filter(|(port, found)| {
            let is_host =
                || matches!(fabric.node_of(*port).identity.kind, NodeKind::Ca | NodeKind::Router);
            (found.tx.is_some() || found.rx.is_some()) && is_host()
        });
        let rate = |flow: Option<PortFlow>| flow.map_or(0.0, |flow| f64::from(flow.rate));
        let rates = hosts.map(|(_, found)| [rate(found.tx), rate(found.rx)]);
        rates.reduce(|a, b| [a[0] + b[0], a[1] + b[1]])
    }
}

/// The traffic of a fabric with the busiest directions of its links, as many as `most`.
pub fn traffic(view: FabricView<'_>, most: usize) -> Option<Traffic> {
    let [sent, received] = view.throughput()?;
    let fabric = &view.snapshot.fabric;
    let links = fabric.links().zip(view.assessment.links.iter());
    let mut busiest: Vec<(f32, PortIndex, PortIndex, &LinkAssessment)> = Vec::new();
    for (Cable(near, far), link) in links {
        for (from, to) in [(near, far), (far, near)] {
            if let Some(flow) = view.sent(from).filter(|flow| flow.used > 0.0) {
                busiest.push((flow.used, from, to, link));
            }
        }
    }
    let order = |a: &(f32, PortIndex, _, _), b: &(f32, PortIndex, _, _)| {
        b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
    };
    if most < busiest.len() {
        busiest.select_nth_unstable_by(most, order);
        busiest.truncate(most);
    }
    busiest.sort_by(order);
    let busy = |(_, from, to, link): (f32, PortIndex, PortIndex, &LinkAssessment)| BusyLink {
        link: fabric.link_id(from).map(|id| id.to_string()).unwrap_or_default(),
        verdict: link.verdict.label().into(),
        learning: learning::of_link(view, link),
        from: name(view, from),
        to: name(view, to),
        flow: view.sent(from).map(flow).unwrap_or_default(),
    };
    Some(Traffic { sent, received, busiest: busiest.into_iter().map(busy).collect() })
}
