//! `/api/v1/modules`: the cables and modules that devices report, and the spares that bad links need.

use display_text::natural_key;
use ib_fabric::hardware::PortHardware;
use ib_fabric::{NodeIndex, PortIndex, PortMap};
use ib_health::Verdict;
use ib_mad::port_state::PortStatus;
use ib_mad::register::{self, monitor, text};

use crate::filter::{Fabrics, Filter, selected};
use crate::link_row::LinkRow;
use crate::links::ranked;
use crate::model::{FabricModules, LEARNING, Module, Modules, PortModule, ReportedBer, Spare};
use crate::spares;
use crate::view::FabricView;

/// The cables and modules of the fabrics that a filter selects, by fabric, ordered by port.
pub fn modules(fabrics: &Fabrics, filter: &Filter) -> Modules {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let view = FabricView::new(observation);
        let modules = view.map(|view| port_modules(view, filter)).unwrap_or_default();
        FabricModules {
            fabric: observation.fabric.clone(),
            swept_at: view.and_then(FabricView::swept_at),
            spares: spares_needed(std::slice::from_ref(observation), filter),
            parts: spares::parts(modules.iter()),
            modules,
        }
    });
    Modules { fabrics: fabrics.collect() }
}

/// The spares that the links of the fabrics and nodes that a filter selects need now.
pub fn spares_needed(fabrics: &Fabrics, filter: &Filter) -> Vec<Spare> {
    // All other links are fine: their models are not built.
    let verdicts = vec![Verdict::Bad, Verdict::Watch];
    let (fabric, node) = (filter.fabric.clone(), filter.node.clone());
    let filter = Filter { fabric, node, verdicts, ..Filter::default() };
    let links = ranked(fabrics, &filter, 0, usize::MAX).1;
    let links: Vec<_> = links.iter().map(LinkRow::link).collect();
    spares::spares(links.iter())
}

fn port_modules(view: FabricView<'_>, filter: &Filter) -> Vec<PortModule> {
    module_rows_of(view, filter).iter().map(ModuleRow::module).collect()
}

/// The verdict of a link, and whether it only lacks time for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// It is learned.
    pub is_learning: bool,
}

impl LinkVerdict {
    /// The verdict, or `learning`.
    pub fn label(self) -> &'static str {
        if self.is_learning { LEARNING } else { self.verdict.label() }
    }
}

/// A cable or module of a list, before its model is built.
#[derive(Clone, Copy, Debug)]
pub struct ModuleRow<'a> {
    /// Its fabric.
    pub view: FabricView<'a>,
    port: PortIndex,
    plugged: &'a register::Module,
    /// Of its link, which may still be learned.
    pub verdict: Option<LinkVerdict>,
}

impl ModuleRow<'_> {
    /// Its model.
    pub fn module(&self) -> PortModule {
        let ModuleRow { view, port, plugged, verdict } = *self;
        PortModule {
            verdict: verdict.map(|verdict| verdict.label().into()),
            module: module(plugged, has_link(view, port), lanes(view, port)),
            name: view.port_name(port),
            link: view.snapshot.fabric.link_id(port).map(|id| id.to_string()),
            reported_ber: reported_ber(view, port),
        }
    }
}

/// The cables and modules of the fabrics that a filter selects, by fabric, ordered by port.
pub fn module_rows<'a>(fabrics: &'a Fabrics, filter: &Filter) -> Vec<ModuleRow<'a>> {
    let views = selected(fabrics, filter.fabric.as_deref()).filter_map(|it| FabricView::new(it));
    views.flat_map(|view| module_rows_of(view, filter)).collect()
}

fn module_rows_of<'a>(view: FabricView<'a>, filter: &Filter) -> Vec<ModuleRow<'a>> {
    let fabric = &view.snapshot.fabric;
    let mut nodes: Vec<NodeIndex> = filter.nodes(view).collect();
    nodes.sort_by_cached_key(|node| natural_key(&fabric.node(*node).name));
    let mut verdicts = PortMap::filled(fabric.ports.len(), None);
    for link in view.links() {
        for port in link.all_ports() {
            let is_learning = link.learning().is_some();
            verdicts[port] = Some(LinkVerdict { verdict: link.verdict(), is_learning });
        }
    }
    let ports = nodes.into_iter().flat_map(|node| fabric.ports_of(node));
    let row = |port: PortIndex| {
        let plugged = view.hardware(port).and_then(PortHardware::plugged)?;
        Some(ModuleRow { view, port, plugged, verdict: verdicts[port] })
    };
    ports.filter_map(row).collect()
}

/// Whether a port has a link: without one the physical layer is not read.
pub(crate) fn has_link(view: FabricView<'_>, port: PortIndex) -> bool {
    view.snapshot.status(port).is_some_and(PortStatus::link_up)
}

/// The number of lanes that the link of a port uses.
fn lanes(view: FabricView<'_>, port: PortIndex) -> usize {
    let width = view.snapshot.status(port).and_then(|status| status.width);
    width.map_or(0, |width| width.lanes().into())
}

/// The bit error ratios that a device reports of a port.
pub(crate) fn reported_ber(view: FabricView<'_>, port: PortIndex) -> Option<ReportedBer> {
    let read = &view.hardware(port)?.physical.as_ref().filter(|_| has_link(view, port))?.value;
    Some(ReportedBer {
        raw: read.raw_ber(),
        effective: read.effective_ber(),
        symbol: read.symbol_ber(),
        lane_errors: read.lane_errors.iter().take(lanes(view, port)).copied().collect(),
        since_clear_seconds: Some(read.since_clear / 1_000).filter(|seconds| *seconds > 0),
    })
}

/// The cable or module of a port.
pub(crate) fn module_of(view: FabricView<'_>, port: PortIndex) -> Option<Module> {
    Some(module(view.hardware(port)?.plugged()?, has_link(view, port), lanes(view, port)))
}

/// The temperature of a cable or module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModuleTemperature {
    /// In degrees Celsius.
    pub celsius: f64,
    /// Its own alarm threshold, if it has one.
    pub alarm: Option<f64>,
}

impl ModuleTemperature {
    /// Whether it is at or above its own alarm threshold.
    pub fn is_alarm(&self) -> bool {
        self.alarm.is_some_and(|alarm| self.celsius >= alarm)
    }
}

/// The temperature of the cable or module of a port, while it has a link.
pub(crate) fn module_temperature(
    view: FabricView<'_>,
    port: PortIndex,
) -> Option<ModuleTemperature> {
    let module = view.hardware(port)?.plugged()?;
    let is_measured = module.has(monitor::TEMPERATURE) && has_link(view, port);
    let celsius = module.celsius(module.temperature).filter(|_| is_measured)?;
    Some(ModuleTemperature { celsius, alarm: module.temperature_alarm() })
}

/// A cable or module; what it measures only if that `is_read`, of the lanes that the link uses.
pub(crate) fn module(module: &register::Module, is_read: bool, lanes: usize) -> Module {
    let has = |monitor| is_read && module.has(monitor);
    let measured = |value| has(monitor::TEMPERATURE).then(|| module.celsius(value)).flatten();
    let powers = |monitor, powers: &[u16]| {
        let is_known = has(monitor) && module.has_power_unit();
        let used = powers.iter().take(lanes).filter(|_| is_known);
        used.map(|power| module.dbm(*power)).collect()
    };
    Module {
        kind: module.technology_label().into(),
        form_factor: module.form_factor().into(),
        vendor: text(&module.vendor),
        part_number: text(&module.part_number),
        serial_number: text(&module.serial_number),
        revision: text(&module.revision),
        length_meters: module.meters(),
        temperature: measured(module.temperature),
        temperature_alarm: module.temperature_alarm(),
        rx_power: powers(monitor::RX_POWER, &module.rx_power),
        tx_power: powers(monitor::TX_POWER, &module.tx_power),
        rx_power_alarm: module.rx_power_alarm(),
    }
}
