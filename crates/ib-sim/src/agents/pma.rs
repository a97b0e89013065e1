//! The performance management agent: what of a port's counts its generation of device tells, in
//! fields that stick at their highest value.

use std::sync::LazyLock;

use crate::device::{MODELS, Model};
use crate::net::PortId;
use crate::scenario::Action;
use crate::world::World;
use ib_mad::PortNumber;
use ib_mad::class_port_info;
use ib_mad::class_port_info::ClassPortInfo;
use ib_mad::clear::CounterSelect;
use ib_mad::counter::{Attribute, Counter, CounterField, TABLE};
use ib_mad::extended_speeds::PortExtendedSpeedsCounters;
use ib_mad::node::NodeKind;
use ib_mad::pma::{OptionMask, PortSamplesControl};
use ib_mad::{Mad, status};

use super::FINE;

/// PortSelect for all ports of a device together.
const ALL_PORTS: PortNumber = 255;
/// CapabilityMask bit 8: it knows what to do with that.
const ALL_PORT_SELECT: u16 = 1 << 8;
/// RespTimeValue as ibsim has it: about a second.
const RESPONSE_TIME: u8 = 0x12;

/// Which counters stand where in an attribute, of a generation of devices.
type Layout = Vec<(Counter, CounterField)>;

/// The layouts of all generations, attribute by attribute, worked out once: a sweep asks for them
/// a hundred thousand times.
static LAYOUTS: LazyLock<Vec<[Layout; ATTRIBUTES.len()]>> =
    LazyLock::new(|| MODELS.iter().map(|model| ATTRIBUTES.map(|it| layout(model, it))).collect());

/// Those that are their counters one by one; what error correction mended is reckoned instead.
const ATTRIBUTES: [Attribute; 4] = [
    Attribute::PortCounters,
    Attribute::PortCountersExtended,
    Attribute::PortRcvErrorDetails,
    Attribute::PortXmitDiscardDetails,
];

fn layout(model: &Model, attribute: Attribute) -> Layout {
    let places = TABLE.iter().flat_map(|row| row.fields.iter().map(|place| (row.counter, *place)));
    places
        .filter(|(_, place)| place.attribute == attribute)
        .filter(|(_, place)| model.performance.meets(place.needs))
        .filter(|(_, place)| OptionMask::new(model.options).allows(place.needs))
        .filter(|(counter, place)| place.width < 64 || !model.unused64.contains(counter))
        .collect()
}

/// Whether a generation answers an attribute of counters.
fn has(model: &Model, attribute: Attribute) -> bool {
    match attribute {
        Attribute::PortCounters => true,
        Attribute::PortCountersExtended => model.performance.has_extended(),
        Attribute::PortRcvErrorDetails | Attribute::PortXmitDiscardDetails => model.details,
        Attribute::PortExtendedSpeedsCounters => model.fec,
    }
}

/// Fills an answer in, and tells its status.
pub(super) fn fill(world: &World, at: PortId, request: &Mad, answer: &mut Mad) -> u16 {
    let net = world.net();
    let model = net.node_of(at).model;
    let asked = request.attribute();
    if asked == class_port_info::ID {
        ClassPortInfo::new(model.performance, RESPONSE_TIME).encode(answer);
        return FINE;
    }
    let counters = ATTRIBUTES.iter().position(|attribute| *attribute as u16 == asked);
    let known = counters.is_some_and(|index| has(model, ATTRIBUTES[index]))
        || (asked == PortExtendedSpeedsCounters::ID
            && has(model, Attribute::PortExtendedSpeedsCounters))
        || (asked == PortSamplesControl::ID && model.tick.is_some());
    if !known {
        return status::UNSUPPORTED_ATTRIBUTE;
    }
    let Some(ports) = selected(world, at, request.port_select()) else {
        return status::INVALID_FIELD;
    };
    match counters {
        Some(index) => {
            for (counter, place) in &LAYOUTS[model.place()][index] {
                let count = ports
                    .clone()
                    .map(|port| world.count(port, *counter))
                    .fold(0, u64::saturating_add);
                place.write(answer.data_mut(), count);
            }
        }
        None if asked == PortSamplesControl::ID => {
            let tick = model.tick.unwrap_or_default();
            let option_mask = model.options;
            PortSamplesControl { tick, option_mask, ..PortSamplesControl::default() }
                .encode(answer);
        }
        None => corrections(world, ports.start, answer),
    }
    FINE
}

/// Sets the counters that a request selects, if it is a request that may.
pub(super) fn set(world: &mut World, at: PortId, request: &Mad) -> bool {
    if request.attribute() == PortExtendedSpeedsCounters::ID {
        return set_corrections(world, at, request);
    }
    if request.attribute() != CounterSelect::ID {
        return false;
    }
    let layout = &LAYOUTS[world.net().node_of(at).model.place()][0];
    let Some(ports) = selected(world, at, request.port_select()) else { return true };
    let ports: Vec<PortId> = ports.map(|port| port).collect();
    let now = world.now();
    for counter in CounterSelect::decode(request).counters() {
        // What the generation does not have stays what it is.
        let Some((_, place)) = layout.iter().find(|(of, _)| *of == counter) else { continue };
        let value = place.read(request.data());
        for &port in &ports {
            world.act(now, Action::Set { port, counter, value });
        }
    }
    true
}

/// Sets what error correction counted, if a request selects all of it.
fn set_corrections(world: &mut World, at: PortId, request: &Mad) -> bool {
    let asked = PortExtendedSpeedsCounters::decode(request);
    let has_it = has(world.net().node_of(at).model, Attribute::PortExtendedSpeedsCounters);
    if !has_it || asked.counter_select != u64::MAX {
        return false;
    }
    let Some(ports) = selected(world, at, request.port_select()) else { return true };
    let ports: Vec<PortId> = ports.map(|port| port).collect();
    let now = world.now();
    for port in ports {
        for (counter, value) in [
            (Counter::FecCorrectedSymbols, asked.port_corrected_symbols),
            (Counter::FecUncorrectableBlocks, asked.port_uncorrectable_blocks),
        ] {
            world.act(now, Action::Set { port, counter, value: value.into() });
        }
    }
    true
}

/// A run of ports.
#[derive(Clone)]
struct Ports {
    start: PortId,
    count: u8,
}

impl Ports {
    fn map<T>(self, each: impl FnMut(PortId) -> T) -> impl Iterator<Item = T> {
        (0..u32::from(self.count)).map(move |nth| PortId(self.start.0 + nth)).map(each)
    }
}

/// The ports that PortSelect names. A switch's port 0 has counters only if it is an endpoint of its
/// own.
fn selected(world: &World, at: PortId, number: PortNumber) -> Option<Ports> {
    let net = world.net();
    let node = net.node_of(at);
    if number == ALL_PORTS && node.model.performance.mask & ALL_PORT_SELECT != 0 {
        return Some(Ports { start: PortId(node.first_port + 1), count: node.port_count });
    }
    let has_port0 = node.kind == NodeKind::Switch && node.enhanced_port0;
    let port = net.port_of(net.port(at).node, number).filter(|_| number != 0 || has_port0)?;
    Some(Ports { start: port, count: 1 })
}

/// What forward error correction did. A port that has lost its link, or runs without correction for
/// now, still tells what it counted before: counters do not come and go.
fn corrections(world: &World, port: PortId, answer: &mut Mad) {
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let mut counters = PortExtendedSpeedsCounters::default();
    let mended = world.mended(port);
    // At the error ratios of a link that works, a block with two wrong symbols is rare.
    counters.port_corrected_blocks = narrow(mended);
    counters.port_corrected_symbols = narrow(mended);
    counters.port_uncorrectable_blocks = narrow(world.count(port, Counter::FecUncorrectableBlocks));
    let lanes = world.port(port).trained.map_or(1, |(width, _)| usize::from(width.lanes()));
    for lane in counters.corrected.iter_mut().take(lanes) {
        *lane = narrow(mended / lanes as u64);
    }
    counters.encode(answer);
}
