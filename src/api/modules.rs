//! `/api/v1/modules`: the cables and modules that devices report, with what they measure.

use fabric_observation::Observation;
use ib_fabric::NodeIndex;
use ib_mad::label::natural_key;

use super::links::FabricView;
use super::model::{FabricModules, Modules, PortModule};
use super::{Fabrics, Filter, ports, selected};

/// The cables and modules of the fabrics that a filter selects, by fabric, ordered by port.
pub fn modules(fabrics: &Fabrics, filter: &Filter) -> Modules {
    let fabrics = selected(fabrics, filter.fabric.as_deref());
    Modules { fabrics: fabrics.map(|it| of_fabric(it, filter)).collect() }
}

fn of_fabric(observation: &Observation, filter: &Filter) -> FabricModules {
    let view = FabricView::new(observation);
    FabricModules {
        fabric: observation.fabric.clone(),
        swept_at: view.and_then(FabricView::swept_at),
        modules: view.map(|view| of_view(view, filter)).unwrap_or_default(),
    }
}

fn of_view(view: FabricView<'_>, filter: &Filter) -> Vec<PortModule> {
    let fabric = &view.snapshot.fabric;
    let is_selected = |index: &NodeIndex| {
        filter.node.as_ref().is_none_or(|name| fabric.node(*index).is_called(name))
    };
    let mut nodes: Vec<NodeIndex> = fabric.node_indexes().filter(is_selected).collect();
    nodes.sort_by_cached_key(|node| natural_key(&fabric.node(*node).name));
    let module = |port| {
        Some(PortModule {
            module: ports::module_of(view, port)?,
            name: ports::name(view, port),
            link: fabric.link_id(port).map(|id| id.to_string()),
            reported_ber: ports::reported_ber(view, port),
        })
    };
    nodes.into_iter().flat_map(|node| fabric.ports_of(node)).filter_map(module).collect()
}
