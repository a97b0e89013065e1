//! The rails of a host, in `/api/v1/nodes/{guid}`: its HCAs side by side.

use std::collections::HashMap;

use display_text::natural_key;
use ib_fabric::{NodeIndex, PortIndex};
use ib_health::assessment::Flow;

use crate::model::{NodeName, Rail, Verdicts};
use crate::view::FabricView;

/// The rails of the host that a node is in, by name; none if the node is no rail.
pub(crate) fn rails_of(view: FabricView<'_>, node: NodeIndex) -> Vec<Rail> {
    let fabric = &view.snapshot.fabric;
    let Some(host) = fabric.node(node).rail.as_ref().and(fabric.node(node).host.as_deref()) else {
        return Vec::new();
    };
    let is_sibling = |index: &NodeIndex| fabric.node(*index).host.as_deref() == Some(host);
    let mut verdicts: HashMap<NodeIndex, Verdicts> = fabric
        .node_indexes()
        .filter(is_sibling)
        .map(|index| (index, Verdicts::default()))
        .collect();
    for link in view.links() {
        for port in link.ports() {
            if let Some(verdicts) = verdicts.get_mut(&fabric.port(port).node) {
                verdicts.add_link(&link);
            }
        }
    }
    let mut rails: Vec<Rail> =
        verdicts.into_iter().filter_map(|(index, verdicts)| rail(view, index, verdicts)).collect();
    rails.sort_by(|a, b| {
        let [a, b] = [a, b].map(|rail| (natural_key(&rail.rail), &rail.name.guid));
        a.cmp(&b)
    });
    compare(&mut rails);
    rails
}

fn rail(view: FabricView<'_>, index: NodeIndex, verdicts: Verdicts) -> Option<Rail> {
    let fabric = &view.snapshot.fabric;
    let node = fabric.node(index);
    let name_of = |index: NodeIndex| NodeName {
        guid: fabric.node(index).identity.guid.to_string(),
        node: fabric.node(index).name.clone(),
    };
    let mut switches: Vec<NodeName> = Vec::new();
    for peer in fabric.ports_of(index).filter_map(|port| fabric.port(port).peer) {
        let name = name_of(fabric.port(peer.port).node);
        if !switches.contains(&name) {
            switches.push(name);
        }
    }
    let sum = |flow: &dyn Fn(PortIndex) -> Option<Flow>| {
        let rates = fabric.ports_of(index).filter_map(flow).map(|flow| f64::from(flow.rate));
        rates.reduce(|a, b| a + b)
    };
    Some(Rail {
        rail: node.rail.clone()?,
        name: name_of(index),
        up: view.snapshot.is_up(index),
        switches,
        verdicts,
        sent: sum(&|port| view.sent(port)),
        received: sum(&|port| view.received(port)),
        ratio: None,
    })
}

/// Compares the traffic of each rail with the median.
fn compare(rails: &mut [Rail]) {
    let both = |rail: &Rail| Some(rail.sent? + rail.received?);
    let mut all: Vec<f64> = rails.iter().filter_map(both).collect();
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    let median = match all.len() {
        0 => return,
        even if even % 2 == 0 => f64::midpoint(all[middle - 1], all[middle]),
        _ => all[middle],
    };
    if median > 0.0 {
        for rail in rails {
            rail.ratio = both(rail).map(|bytes| bytes / median);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(traffic: &[Option<f64>]) -> Vec<Option<f64>> {
        let rail = |sent: &Option<f64>| Rail { sent: *sent, received: *sent, ..Rail::default() };
        let mut rails: Vec<Rail> = traffic.iter().map(rail).collect();
        compare(&mut rails);
        rails.into_iter().map(|rail| rail.ratio).collect()
    }

    #[test]
    fn rails_are_compared_with_the_median() {
        let some = |all: &[f64]| all.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(ratios(&some(&[10.0, 10.0, 1.0, 10.0])), some(&[1.0, 1.0, 0.1, 1.0]));
        assert_eq!(ratios(&some(&[2.0, 6.0])), some(&[0.5, 1.5]));
        let unknown = [Some(4.0), None, Some(2.0), Some(8.0)];
        assert_eq!(ratios(&unknown), [Some(1.0), None, Some(0.5), Some(2.0)]);
        assert_eq!(ratios(&some(&[5.0, 0.0, 0.0])), [None; 3], "most are idle");
        assert_eq!(ratios(&[None]), [None]);
    }
}
