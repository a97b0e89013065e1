//! The agent of the vendor class: GeneralInfo and registers of NVIDIA devices. Its values follow the state of the
//! simulation; none was compared with a real device.

use ib_mad::counter::Counter;
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;
use ib_mad::register::{
    ACCESS_REGISTER, LANES, Module, PhysicalStatistics, RegisterQuery, Temperature, monitor,
};
use ib_mad::vendor::{GeneralInfo, status};
use ib_mad::{Mad, PortNumber, status as mad_status};

use crate::device::{DeviceModel, VendorClass};
use crate::net::{Net, NodeId, PortId};
use crate::simulation::Simulation;

/// Degrees Celsius of an ASIC and of a module in a cool hall.
const ASIC_DEGREES: u16 = 52;
const MODULE_DEGREES: u16 = 41;
/// The alarm thresholds of modules, as data sheets of optical modules have them.
const MODULE_HOT: u16 = 75;
const MODULE_COLD: i16 = -5;
/// Microwatts: -2 dBm, 5 dBm and -10 dBm.
const POWER: u16 = 631;
const POWER_HIGH: u16 = 3_162;
const POWER_LOW: u16 = 100;

/// Fills in a response; the error is its status.
pub(super) fn fill(
    simulation: &Simulation,
    at: PortId,
    request: &Mad,
    response: &mut Mad,
) -> Result<(), u16> {
    let net = simulation.net();
    let model = net.node_of(at).model;
    match request.attribute() {
        GeneralInfo::ID if model.vendor_class != VendorClass::None => {
            general_info(simulation, net.port(at).node).encode(response);
            Ok(())
        }
        ACCESS_REGISTER if model.vendor_class == VendorClass::Registers => {
            let query = RegisterQuery::decode(request).ok_or(status::UNSUPPORTED_REGISTER)?;
            register(simulation, at, query, response)
        }
        _ => Err(mad_status::UNSUPPORTED_ATTRIBUTE),
    }
}

fn general_info(simulation: &Simulation, node: NodeId) -> GeneralInfo {
    let about = simulation.net().node(node);
    let uptime = simulation.now().since(simulation.node(node).booted).as_secs();
    let registers = about.model.vendor_class == VendorClass::Registers;
    let [major, minor, subminor] = about.model.firmware;
    let mut psid = [0; 16];
    let board = format!("MT_{:010}", about.device_id);
    psid[..board.len()].copy_from_slice(board.as_bytes());
    GeneralInfo {
        revision: 0xa0,
        device_id: about.device_id,
        uptime: uptime.try_into().unwrap_or(u32::MAX),
        major: major as u8,
        minor: minor as u8,
        subminor: subminor as u8,
        psid,
        extended: about.model.firmware,
        capabilities: [u32::from(registers) << GeneralInfo::ACCESS_REGISTER, 0, 0, 0],
    }
}

fn register(
    simulation: &Simulation,
    at: PortId,
    query: RegisterQuery,
    response: &mut Mad,
) -> Result<(), u16> {
    let net = simulation.net();
    let port = |number: PortNumber| {
        let port = net.port_by_number(net.port(at).node, number).filter(|_| number != 0);
        port.ok_or(status::BAD_PARAMETER)
    };
    match query {
        RegisterQuery::PhysicalStatistics(number) => {
            physical_statistics(simulation, port(number)?).encode(response);
        }
        RegisterQuery::Module(number) => module(simulation, port(number)?).encode(response),
        RegisterQuery::Temperature(0) => {
            let degrees = ASIC_DEGREES * 8;
            let name = *b"asic\0\0\0\0";
            Temperature { degrees, high: 105 * 8, name, ..Temperature::default() }.encode(response);
        }
        RegisterQuery::Temperature(_) => return Err(status::BAD_PARAMETER),
        _ => return Err(status::UNSUPPORTED_REGISTER),
    }
    Ok(())
}

/// A bit error ratio as coefficient and magnitude; 15e-255 for none.
fn coded(ratio: f64) -> (u8, u8) {
    if ratio <= 0.0 {
        return (15, 255);
    }
    let magnitude = (-ratio.log10()).ceil().clamp(1.0, 254.0);
    let coefficient = (ratio * 10f64.powf(magnitude)).round().clamp(1.0, 15.0);
    #[expect(clippy::cast_sign_loss, reason = "both are clamped")]
    (coefficient as u8, magnitude as u8)
}

fn physical_statistics(simulation: &Simulation, port: PortId) -> PhysicalStatistics {
    let state = simulation.port(port);
    let up_since = state.trained_at.unwrap_or_default();
    let since_clear = simulation.now().since(up_since);
    let received_bits = state.bytes_per_second() as f64 * 8.0 * since_clear.as_secs_f64();
    let corrected = simulation.count(port, Counter::FecCorrectedSymbols);
    let symbol_errors = simulation.count(port, Counter::SymbolErrors);
    let lanes = state.trained.map_or(1, |(width, _)| usize::from(width.lanes())).min(LANES);
    let mut lane_errors = [0; LANES];
    lane_errors[..lanes].fill((corrected + symbol_errors) / lanes as u64);
    let ber =
        |errors: u64| coded(if received_bits > 0.0 { errors as f64 / received_bits } else { 0.0 });
    let (raw_coefficient, raw_magnitude) = ber(corrected + symbol_errors);
    let (coefficient, magnitude) = ber(symbol_errors);
    #[expect(clippy::cast_sign_loss, reason = "a number of bits")]
    PhysicalStatistics {
        since_clear: since_clear.as_millis() as u64,
        received_bits: received_bits as u64,
        symbol_errors,
        corrected_bits: corrected,
        lane_errors,
        raw_magnitude,
        raw_coefficient,
        effective_magnitude: magnitude,
        effective_coefficient: coefficient,
        symbol_magnitude: magnitude,
        symbol_coefficient: coefficient,
        effective_errors: symbol_errors,
    }
}

/// The module of a port: passive copper to hosts, active optical cables between switches. Both ends of a cable have one
/// serial number.
fn module(simulation: &Simulation, port: PortId) -> Module {
    let net = simulation.net();
    let Some(peer) = simulation.port(port).cable else {
        return Module { kind: 4, ..Module::default() };
    };
    let is_optical = [port, peer].iter().all(|end| net.node_of(*end).kind == NodeKind::Switch);
    let fastest = fastest(net, port).min(fastest(net, peer));
    let (identifier, part_number) = match (fastest, is_optical) {
        (Speed::Ndr | Speed::Xdr, true) => (8, "MFA7U10-H010"),
        (Speed::Ndr | Speed::Xdr, false) => (8, "MCP4Y10-N002"),
        (_, true) => (0, "MFS1S00-H010E"),
        (_, false) => (0, "MCP1650-H002E30"),
    };
    let mut module = Module {
        technology: if is_optical { 0 } else { 0xa },
        kind: if is_optical { 1 } else { 3 },
        length_code: if is_optical { 10 } else { 2 },
        identifier,
        vendor: padded("Mellanox"),
        part_number: padded(part_number),
        revision: padded("A2"),
        serial_number: padded(&format!("MT2512FT{:05}", port.0.min(peer.0))),
        ..Module::default()
    };
    if identifier == 8 {
        // CMIS modules: the unit is a meter.
        module.length_code |= 1 << 6;
    }
    if is_optical {
        let lanes = simulation.port(port).trained.map_or(4, |(width, _)| width.lanes().into());
        module.rx_power[..lanes].fill(POWER);
        module.tx_power[..lanes].fill(POWER);
        module.tx_bias[..lanes].fill(3_500);
        (module.temperature, module.voltage) = (MODULE_DEGREES << 8, 33_000);
        (module.temperature_high, module.temperature_low) =
            (MODULE_HOT << 8, (MODULE_COLD << 8).cast_unsigned());
        (module.voltage_high, module.voltage_low) = (36_300, 29_700);
        (module.rx_power_high, module.rx_power_low) = (POWER_HIGH, POWER_LOW);
        (module.tx_power_high, module.tx_power_low) = (POWER_HIGH, POWER_LOW);
        module.wavelength = 850;
        module.monitors = monitor::TEMPERATURE
            | monitor::VOLTAGE
            | monitor::TX_POWER
            | monitor::RX_POWER
            | monitor::BIAS;
    }
    module
}

fn fastest(net: &Net, port: PortId) -> Speed {
    let model: &DeviceModel = net.node_of(port).model;
    model.fastest
}

/// A text padded with blanks, as modules have it.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    bytes.iter_mut().zip(text.bytes()).for_each(|(byte, of)| *byte = of);
    bytes
}
