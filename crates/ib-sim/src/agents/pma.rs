//! The performance management agent: the counters of a port in the saturating fields of its device
//! model.

use std::sync::LazyLock;

use crate::device::{DeviceModel, MODELS};
use crate::net::PortId;
use crate::scenario::Action;
use crate::simulation::Simulation;
use ib_mad::PortNumber;
use ib_mad::class_port_info;
use ib_mad::class_port_info::ClassPortInfo;
use ib_mad::clear::CounterSelect;
use ib_mad::counter::{Attribute, Counter, CounterField, TABLE};
use ib_mad::fec::PortExtendedSpeedsCounters;
use ib_mad::node::NodeKind;
use ib_mad::pma::{OptionMask, PortSamplesControl};
use ib_mad::{Mad, status};

use super::SUCCESS;

/// PortSelect for all ports together.
const ALL_PORTS: PortNumber = 255;
/// CapabilityMask bit 8: AllPortSelect is supported.
const ALL_PORT_SELECT: u16 = 1 << 8;
/// RespTimeValue as ibsim has it: about a second.
const RESPONSE_TIME: u8 = 0x12;

/// The counters of an attribute, and their fields.
type Layout = Vec<(Counter, CounterField)>;

/// The layouts of all models, by attribute. They are computed once: a sweep uses them a hundred
/// thousand times.
static LAYOUTS: LazyLock<Vec<[Layout; ATTRIBUTES.len()]>> =
    LazyLock::new(|| MODELS.iter().map(|model| ATTRIBUTES.map(|it| layout(model, it))).collect());

/// The attributes with counters of the table. PortExtendedSpeedsCounters is computed instead.
const ATTRIBUTES: [Attribute; 4] = [
    Attribute::PortCounters,
    Attribute::PortCountersExtended,
    Attribute::PortRcvErrorDetails,
    Attribute::PortXmitDiscardDetails,
];

fn layout(model: &DeviceModel, attribute: Attribute) -> Layout {
    let places = TABLE.iter().flat_map(|row| row.fields.iter().map(|place| (row.counter, *place)));
    places
        .filter(|(_, place)| place.attribute == attribute)
        .filter(|(_, place)| model.performance.meets(place.needs))
        .filter(|(_, place)| OptionMask::new(model.options).allows(place.needs))
        .filter(|(counter, place)| place.width < 64 || !model.unused64.contains(counter))
        .collect()
}

/// Whether a model has an attribute of counters.
fn has(model: &DeviceModel, attribute: Attribute) -> bool {
    match attribute {
        Attribute::PortCounters => true,
        Attribute::PortCountersExtended => model.performance.has_extended(),
        Attribute::PortRcvErrorDetails | Attribute::PortXmitDiscardDetails => model.details,
        Attribute::PortExtendedSpeedsCounters => model.fec,
    }
}

/// Fills in a response, and returns its status.
pub(super) fn fill(simulation: &Simulation, at: PortId, request: &Mad, response: &mut Mad) -> u16 {
    let net = simulation.net();
    let model = net.node_of(at).model;
    let attribute_id = request.attribute();
    if attribute_id == class_port_info::ID {
        ClassPortInfo::new(model.performance, RESPONSE_TIME).encode(response);
        return SUCCESS;
    }
    let counters = ATTRIBUTES.iter().position(|attribute| *attribute as u16 == attribute_id);
    let known = counters.is_some_and(|index| has(model, ATTRIBUTES[index]))
        || (attribute_id == PortExtendedSpeedsCounters::ID
            && has(model, Attribute::PortExtendedSpeedsCounters))
        || (attribute_id == PortSamplesControl::ID && model.tick.is_some());
    if !known {
        return status::UNSUPPORTED_ATTRIBUTE;
    }
    let Some(ports) = selected(simulation, at, request.port_select()) else {
        return status::INVALID_FIELD;
    };
    match counters {
        Some(index) => {
            for (counter, place) in &LAYOUTS[model.index()][index] {
                let count = ports
                    .clone()
                    .map(|port| simulation.count(port, *counter))
                    .fold(0, u64::saturating_add);
                place.write(response.data_mut(), count);
            }
        }
        None if attribute_id == PortSamplesControl::ID => {
            let tick = model.tick.unwrap_or_default();
            let option_mask = model.options;
            PortSamplesControl { tick, option_mask, ..PortSamplesControl::default() }
                .encode(response);
        }
        None => {
            let Some(port) = ports.clone().next() else { return status::INVALID_FIELD };
            extended_speeds_counters(simulation, port).encode(response);
        }
    }
    SUCCESS
}

/// Sets the counters that a request selects; false if the attribute cannot be set.
pub(super) fn set(simulation: &mut Simulation, at: PortId, request: &Mad) -> bool {
    if request.attribute() == PortExtendedSpeedsCounters::ID {
        return set_fec_counters(simulation, at, request);
    }
    if request.attribute() != CounterSelect::ID {
        return false;
    }
    let layout = &LAYOUTS[simulation.net().node_of(at).model.index()][0];
    let Some(ports) = selected(simulation, at, request.port_select()) else { return true };
    let ports: Vec<PortId> = ports.collect();
    let now = simulation.now();
    for counter in CounterSelect::decode(request).counters() {
        // Counters that the model does not have do not change.
        let Some((_, place)) = layout.iter().find(|(of, _)| *of == counter) else { continue };
        let value = place.read(request.data());
        for &port in &ports {
            simulation.apply(now, Action::SetCounter { port, counter, value });
        }
    }
    true
}

/// Sets the counters of error correction, if a request selects all of them.
fn set_fec_counters(simulation: &mut Simulation, at: PortId, request: &Mad) -> bool {
    let requested = PortExtendedSpeedsCounters::decode(request);
    let has_it = has(simulation.net().node_of(at).model, Attribute::PortExtendedSpeedsCounters);
    if !has_it || requested.counter_select != u64::MAX {
        return false;
    }
    let Some(ports) = selected(simulation, at, request.port_select()) else { return true };
    let ports: Vec<PortId> = ports.collect();
    let now = simulation.now();
    for port in ports {
        for (counter, value) in [
            (Counter::FecCorrectedSymbols, requested.port_corrected_symbols),
            (Counter::FecUncorrectableBlocks, requested.port_uncorrectable_blocks),
        ] {
            simulation.apply(now, Action::SetCounter { port, counter, value: value.into() });
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

/// The counters of forward error correction. They stay when a port loses its link, or runs without
/// correction.
fn extended_speeds_counters(simulation: &Simulation, port: PortId) -> PortExtendedSpeedsCounters {
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let mut counters = PortExtendedSpeedsCounters::default();
    let corrected = simulation.fec_corrected(port);
    // At the error ratios of a working link, a block with two wrong symbols is rare.
    counters.port_corrected_blocks = narrow(corrected);
    counters.port_corrected_symbols = narrow(corrected);
    counters.port_uncorrectable_blocks =
        narrow(simulation.count(port, Counter::FecUncorrectableBlocks));
    let lanes = simulation.port(port).trained.map_or(1, |(width, _)| usize::from(width.lanes()));
    for lane in counters.corrected.iter_mut().take(lanes) {
        *lane = narrow(corrected / lanes as u64);
    }
    counters
}
