//! `/api/v1/traffic`: the traffic of a fabric between its latest two sweeps, and its busiest links.

use ib_fabric::topology::Link as Cable;
use ib_fabric::{NodeMap, PortIndex};
use ib_health::PortAssessment;
use ib_health::assessment::Flow as PortFlow;
use ib_mad::node::NodeKind;

use crate::filter::{Fabrics, Filter, selected};
use crate::link_row::{LinkRow, wait_ratio};
use crate::links::selected_nodes;
use crate::model::{BusyLink, FabricTraffic, Flow, Traffic, Traffics};
use crate::view::FabricView;

/// How many directions are listed by default.
const DEFAULT_LIMIT: usize = 20;

pub(crate) fn flow(flow: PortFlow) -> Flow {
    Flow { bytes_per_second: flow.rate.into(), utilization: flow.used }
}

impl FabricView<'_> {
    /// What a port sends: by itself, or else by the other end of its link.
    pub fn sent(&self, port: PortIndex) -> Option<PortFlow> {
        let peer = self.snapshot.fabric.port(port).peer;
        self.port(port)?.tx.or_else(|| self.port(peer?.port)?.rx)
    }

    /// What a port receives, in the same way.
    pub fn received(&self, port: PortIndex) -> Option<PortFlow> {
        let peer = self.snapshot.fabric.port(port).peer;
        self.port(port)?.rx.or_else(|| self.port(peer?.port)?.tx)
    }

    /// The utilization of the busier direction of a port.
    pub fn used(&self, port: PortIndex) -> Option<f32> {
        let flows = [self.sent(port), self.received(port)];
        flows.into_iter().flatten().map(|flow| flow.used).reduce(f32::max)
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

/// The busiest directions of links: of each selected fabric as many as the filter's limit.
pub fn traffics(fabrics: &Fabrics, filter: &Filter) -> Traffics {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let view = FabricView::new(observation);
        let traffic = view.and_then(|view| {
            let nodes = selected_nodes(view.snapshot, filter);
            busiest(view, filter.limit.unwrap_or(DEFAULT_LIMIT), nodes.as_ref())
        });
        let (fabric, swept_at) = (observation.fabric.clone(), view.and_then(FabricView::swept_at));
        FabricTraffic { fabric, swept_at, traffic }
    });
    Traffics { fabrics: fabrics.collect() }
}

/// The traffic of a fabric with the busiest directions of its links, as many as `most`.
pub fn traffic(view: FabricView<'_>, most: usize) -> Option<Traffic> {
    busiest(view, most, None)
}

/// The same of the links of some nodes.
fn busiest(view: FabricView<'_>, most: usize, nodes: Option<&NodeMap<bool>>) -> Option<Traffic> {
    let [sent, received] = view.throughput()?;
    let mut busiest: Vec<(f32, PortIndex, PortIndex, LinkRow<'_>)> = Vec::new();
    for link in view.links().filter(|link| nodes.is_none_or(|nodes| link.is_at(nodes))) {
        let directions = link.cables().map(Cable::ports);
        for (from, to) in directions.flat_map(|[near, far]| [(near, far), (far, near)]) {
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
    let busy = |(_, from, to, link): (f32, PortIndex, PortIndex, LinkRow<'_>)| BusyLink {
        link: link.id(),
        verdict: link.verdict().label().into(),
        from: view.port_name(from),
        to: view.port_name(to),
        flow: view.sent(from).map(flow).unwrap_or_default(),
        learning: link.learning(),
        wait_ratio: view.port(from).and_then(wait_ratio),
        wait_saturated: view.port(from).is_some_and(PortAssessment::is_wait_saturated),
    };
    Some(Traffic { sent, received, busiest: busiest.into_iter().map(busy).collect() })
}

/// Traffic as a rate of bits, with three digits that matter.
pub fn bit_rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    let (value, unit) = match bits {
        bits if bits >= 1e12 => (bits / 1e12, "Tb/s"),
        bits if bits >= 1e9 => (bits / 1e9, "Gb/s"),
        bits if bits >= 1e6 => (bits / 1e6, "Mb/s"),
        bits if bits > 0.0 => (bits / 1e3, "kb/s"),
        _ => return "0".into(),
    };
    // The digits are those of the rounded value.
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use fabric_observation::Observation;
    use ib_health::testing::{fine, port, snapshot};

    #[test]
    fn traffic_is_given_in_bits() {
        for (bytes, text) in [
            (0.0, "0"),
            (100.0, "0.80 kb/s"),
            (1.5e6, "12.0 Mb/s"),
            (1.2499e10, "100 Gb/s"),
            (2.5e11, "2.00 Tb/s"),
        ] {
            assert_eq!(bit_rate(bytes), text);
        }
    }

    #[test]
    fn directions_are_ranked_by_utilization_and_selected_by_name() {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        let flow = |used: f32| Some(PortFlow { rate: used * 1e10, used });
        let [leaf, host] = [(1, 1), (2, 1)].map(|(guid, number)| port(&snapshot, guid, number));
        assessment.ports[leaf].tx = flow(0.5);
        assessment.ports[leaf].rx = flow(0.25);
        // What a host that cannot be read sends is what the switch receives.
        assessment.ports[host].rx = flow(0.5);
        let fabric = "f".into();
        let swept = Observation {
            fabric,
            snapshot: Some(snapshot.into()),
            assessment,
            ..Observation::default()
        };
        let unswept = Observation { fabric: "g".into(), ..Observation::default() };
        let fabrics = [Arc::new(swept), Arc::new(unswept)];
        let listed = |limit, name: &str| {
            let filter = Filter { limit, name: name.into(), ..Filter::default() };
            let busiest = traffics(&fabrics, &filter).fabrics[0].traffic.clone().unwrap().busiest;
            let directions = busiest.iter().map(|it| (it.from.label(), it.flow.utilization));
            directions.collect::<Vec<_>>()
        };
        let [from_leaf, from_host] = [("leaf port 1".into(), 0.5), ("host-a port 1".into(), 0.25)];
        assert_eq!(listed(None, ""), [from_leaf.clone(), from_host]);
        assert_eq!(listed(Some(1), "HOST-A"), [from_leaf]);
        assert_eq!(listed(None, "host-b"), []);
        assert_eq!(traffics(&fabrics, &Filter::default()).fabrics[1].traffic, None);
    }
}
