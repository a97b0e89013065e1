//! The performance management agent: the counters of a port in the saturating fields of its device model.

use std::sync::LazyLock;

use crate::change::FabricChange;
use crate::device::{DeviceModel, MODELS};
use crate::net::PortId;
use crate::simulation::Simulation;
use ib_mad::PortNumber;
use ib_mad::class_port_info::ClassPortInfo;
use ib_mad::clear::CounterSelect;
use ib_mad::counter::{Attribute, Counter, CounterField, TABLE};
use ib_mad::fec::PortExtendedSpeedsCounters;
use ib_mad::node::NodeKind;
use ib_mad::pma::PortSamplesControl;
use ib_mad::{Mad, status};

/// PortSelect for all ports together.
const ALL_PORTS: PortNumber = 255;
/// CapabilityMask bit 8: AllPortSelect is supported.
const ALL_PORT_SELECT: u16 = 1 << 8;
/// RespTimeValue as ibsim has it: about a second.
const RESPONSE_TIME: u8 = 0x12;

/// The counters of an attribute, and their fields.
type Layout = Vec<(Counter, CounterField)>;

/// The layouts of all models. They are computed once: a sweep uses them a hundred thousand times.
static LAYOUTS: LazyLock<Vec<Vec<(Attribute, Layout)>>> =
    LazyLock::new(|| MODELS.iter().map(layouts).collect());

/// The attributes of a model with counters of the table. PortExtendedSpeedsCounters is computed instead.
fn layouts(model: &DeviceModel) -> Vec<(Attribute, Layout)> {
    let has = |attribute: &Attribute| match attribute {
        Attribute::PortCounters => true,
        Attribute::PortCountersExtended => model.performance.has_extended(),
        Attribute::PortRcvErrorDetails | Attribute::PortXmitDiscardDetails => model.details,
        Attribute::PortExtendedSpeedsCounters => false,
    };
    let layout = |attribute: Attribute| -> Layout {
        let fields = TABLE.iter().flat_map(|row| row.fields.iter().map(|it| (row.counter, *it)));
        fields
            .filter(|(_, place)| place.attribute == attribute)
            .filter(|(_, place)| model.performance.meets(place.needs, model.options))
            .filter(|(counter, place)| place.width < 64 || !model.unused64.contains(counter))
            .collect()
    };
    Attribute::ALL.into_iter().filter(has).map(|it| (it, layout(it))).collect()
}

/// Fills in a response; the error is its status.
pub(super) fn fill(
    simulation: &Simulation,
    at: PortId,
    request: &Mad,
    response: &mut Mad,
) -> Result<(), u16> {
    let model = simulation.net().node_of(at).model;
    let id = request.attribute();
    if id == ClassPortInfo::ID {
        ClassPortInfo::new(model.performance, RESPONSE_TIME).encode(response);
        return Ok(());
    }
    let layout = LAYOUTS[model.index()].iter().find(|(attribute, _)| *attribute as u16 == id);
    let is_known = match id {
        PortSamplesControl::ID => model.tick.is_some(),
        PortExtendedSpeedsCounters::ID => model.fec,
        _ => layout.is_some(),
    };
    if !is_known {
        return Err(status::UNSUPPORTED_ATTRIBUTE);
    }
    let mut ports = selected(simulation, at, request.port_select()).ok_or(status::INVALID_FIELD)?;
    if let Some((_, layout)) = layout {
        for (counter, place) in layout {
            let counts = ports.clone().map(|port| simulation.count(port, *counter));
            place.write(response, counts.fold(0, u64::saturating_add));
        }
    } else if id == PortSamplesControl::ID {
        let (tick, option_mask) = (model.tick.unwrap_or_default(), model.options);
        PortSamplesControl { tick, option_mask }.encode(response);
    } else {
        let port = ports.next().ok_or(status::INVALID_FIELD)?;
        extended_speeds_counters(simulation, port).encode(response);
    }
    Ok(())
}

/// Sets the counters that a request selects; false if the attribute cannot be set.
pub(super) fn set(simulation: &mut Simulation, at: PortId, request: &Mad) -> bool {
    let model = simulation.net().node_of(at).model;
    let values: Vec<(Counter, u64)> = match request.attribute() {
        CounterSelect::ID => {
            // Counters that the model does not have do not change.
            let (_, layout) = &LAYOUTS[model.index()][0];
            let selected = CounterSelect::decode(request).counters();
            let place = |counter| layout.iter().find(|(of, _)| *of == counter);
            selected
                .filter_map(place)
                .map(|(counter, place)| (*counter, place.read(request)))
                .collect()
        }
        PortExtendedSpeedsCounters::ID if model.fec => {
            let requested = PortExtendedSpeedsCounters::decode(request);
            // Only all of them together.
            if requested.counter_select != u64::MAX {
                return false;
            }
            vec![
                (Counter::FecCorrectedSymbols, requested.port_corrected_symbols.into()),
                (Counter::FecUncorrectableBlocks, requested.port_uncorrectable_blocks.into()),
            ]
        }
        _ => return false,
    };
    let Some(ports) = selected(simulation, at, request.port_select()) else { return true };
    let (ports, now): (Vec<PortId>, _) = (ports.collect(), simulation.now());
    for (counter, value) in values {
        for &port in &ports {
            simulation.apply(now, FabricChange::SetCounter { port, counter, value });
        }
    }
    true
}

/// The ports that PortSelect names. A switch's port 0 has counters only if it is an enhanced one.
fn selected(
    simulation: &Simulation,
    at: PortId,
    number: PortNumber,
) -> Option<impl Iterator<Item = PortId> + Clone> {
    let net = simulation.net();
    let node = net.node_of(at);
    let run = |first: u32, count: u8| (first..first + u32::from(count)).map(PortId);
    if number == ALL_PORTS && node.model.performance.mask & ALL_PORT_SELECT != 0 {
        return Some(run(node.first_port + 1, node.port_count));
    }
    let has_port0 = node.kind == NodeKind::Switch && node.enhanced_port0;
    let port =
        net.port_by_number(net.port(at).node, number).filter(|_| number != 0 || has_port0)?;
    Some(run(port.0, 1))
}

/// The counters of forward error correction. They stay when a port loses its link, or runs without correction.
fn extended_speeds_counters(simulation: &Simulation, port: PortId) -> PortExtendedSpeedsCounters {
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let corrected = simulation.count(port, Counter::FecCorrectedSymbols);
    let lanes = simulation.port(port).lanes();
    let mut counters = PortExtendedSpeedsCounters {
        // At the error ratios of a working link, a block with two wrong symbols is rare.
        port_corrected_blocks: narrow(corrected),
        port_corrected_symbols: narrow(corrected),
        port_uncorrectable_blocks: narrow(simulation.count(port, Counter::FecUncorrectableBlocks)),
        ..PortExtendedSpeedsCounters::default()
    };
    for lane in counters.corrected.iter_mut().take(lanes) {
        *lane = narrow(corrected / lanes as u64);
    }
    counters
}
