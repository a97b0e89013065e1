//! The agent of the vendor class: GeneralInfo and registers of NVIDIA devices. Its values follow the state of the
//! simulation; none was compared with a real device.

use ib_mad::class_port_info::ClassPortInfo;
use ib_mad::mad::{VENDOR_DATA, VENDOR_KEY};
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::rate::Speed;
use ib_mad::register::{
    BINS, FanLimits, FanSpeed, Fans, FecHistogram, LANES, Module, PhysicalStatistics,
    PowerSupplies, RegisterQuery, START, Temperature, Temperatures, Troubleshooting, monitor,
};
use ib_mad::vendor::{ACCESS_REGISTER, GeneralInfo, status};
use ib_mad::{Mad, PortNumber, status as mad_status};

use crate::change::{ModuleReport, RegisterBehavior};
use crate::net::{NodeId, PortId};
use crate::simulation::Simulation;

/// The register MGIR, and its part that GeneralInfo has, too. The exporter does not read it; mstflint does.
const MGIR: u32 = 0x9020;
const MGIR_LEN: usize = 0x80;

/// Degrees Celsius of an ASIC and of a module in a cool hall.
const ASIC_DEGREES: u16 = 52;
const MODULE_DEGREES: u8 = 41;
/// The alarm thresholds of modules, as data sheets of optical modules have them.
const MODULE_HOT: u16 = 75;
const MODULE_COLD: i16 = -5;
/// Microwatts: -2 dBm, 5 dBm and -10 dBm.
const POWER: u16 = 631;
const POWER_HIGH: u16 = 3_162;
const POWER_LOW: u16 = 100;

/// The fans of a switch: a bit each; the lowest index is 1 as in real ones, and their speed.
const FANS: u16 = 0x01fe;
const RPM: u16 = 6_200;

/// Whether a request has the VSKey that its destination requires.
pub(super) fn has_vs_key(simulation: &Simulation, at: PortId, request: &Mad) -> bool {
    let key = simulation.node(simulation.net().port(at).node).vs_key;
    key == 0 || request.be(VENDOR_KEY, 8) == key
}

/// Whether firmware reads the module itself for this request.
pub(super) fn is_module_page(request: &Mad) -> bool {
    matches!(register_of(request), Some(RegisterQuery::Module(_)))
}

fn register_of(request: &Mad) -> Option<RegisterQuery> {
    let is_register = request.attribute() == ACCESS_REGISTER;
    RegisterQuery::decode(request).filter(|_| is_register)
}

/// Fills in a response; the error is its status.
pub(super) fn fill(
    simulation: &Simulation,
    at: PortId,
    request: &Mad,
    response: &mut Mad,
) -> Result<(), u16> {
    let node = simulation.net().port(at).node;
    if !simulation.net().node(node).model.general_info {
        return Err(mad_status::UNSUPPORTED_ATTRIBUTE);
    }
    match request.attribute() {
        // BaseVersion and ClassVersion, where this class has its data.
        ClassPortInfo::ID => response.put_be(VENDOR_KEY, 2, 0x0101),
        GeneralInfo::ID => general_info(simulation, node).encode(response),
        ACCESS_REGISTER if has_registers(simulation, node) => {
            if request.modifier() != MGIR {
                let is_refused = simulation.node(node).registers == RegisterBehavior::Refused;
                let query = register_of(request).filter(|_| !is_refused);
                let query = query.ok_or(status::UNSUPPORTED_REGISTER)?;
                return register(simulation, at, query, response);
            }
            // The same as the first part of GeneralInfo.
            general_info(simulation, node).encode(response);
            response.0.copy_within(VENDOR_DATA..VENDOR_DATA + MGIR_LEN, START);
            response.0[VENDOR_DATA..START].fill(0);
            response.0[START + MGIR_LEN..].fill(0);
        }
        _ => return Err(mad_status::UNSUPPORTED_ATTRIBUTE),
    }
    Ok(())
}

fn has_registers(simulation: &Simulation, node: NodeId) -> bool {
    simulation.net().node(node).model.registers
        && simulation.node(node).registers != RegisterBehavior::Absent
}

fn general_info(simulation: &Simulation, node: NodeId) -> GeneralInfo {
    let about = simulation.net().node(node);
    let state = simulation.node(node);
    let uptime = simulation.now().since(state.booted).as_secs();
    let registers = has_registers(simulation, node);
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
        RegisterQuery::FecHistogram(number) => {
            fec_histogram(simulation, port(number)?).encode(response);
        }
        RegisterQuery::Module(number) => module(simulation, port(number)?).encode(response),
        RegisterQuery::Temperature(0) => {
            let degrees = ASIC_DEGREES * 8;
            let name = *b"asic\0\0\0\0";
            Temperature { degrees, high: 105 * 8, name, ..Temperature::default() }.encode(response);
        }
        RegisterQuery::Temperature(_) => return Err(status::BAD_PARAMETER),
        RegisterQuery::LinkDown(number) => {
            simulation.port(port(number)?).last_down.encode(response);
        }
        RegisterQuery::Troubleshooting(number) => {
            let port = simulation.port(port(number)?);
            // No signal from the remote side, or no module.
            let code = match port.cable {
                _ if port.state != PortState::Down => 0,
                Some(_) => 57,
                None => 1024,
            };
            Troubleshooting { code }.encode(response);
        }
        _ if net.node_of(at).kind != NodeKind::Switch => return Err(status::UNSUPPORTED_REGISTER),
        RegisterQuery::Temperatures { first, count } => {
            temperatures(simulation, net.port(at).node, first, count)?.encode(response);
        }
        RegisterQuery::Fans => Fans { present: FANS }.encode(response),
        RegisterQuery::FanSpeed(fan) if FANS >> fan & 1 == 1 => {
            FanSpeed { fan, rpm: RPM + 10 * u16::from(fan) }.encode(response);
        }
        RegisterQuery::FanSpeed(_) => return Err(status::BAD_PARAMETER),
        RegisterQuery::FanLimits => FanLimits::default().encode(response),
        RegisterQuery::PowerSupplies => power_supplies(net.port(at).node).encode(response),
    }
    Ok(())
}

/// The temperatures of a switch's modules: module n is that of port n + 1.
fn temperatures(
    simulation: &Simulation,
    node: NodeId,
    first: u16,
    count: u8,
) -> Result<Temperatures, u16> {
    let net = simulation.net();
    let record = |nth: u16| {
        let number = (first + nth).checked_sub(Temperatures::MODULES).map(|module| module + 1);
        let number = number.and_then(|number| PortNumber::try_from(number).ok());
        let port = number.and_then(|number| net.port_by_number(node, number));
        // 0x8000: no connection; 0: a passive cable.
        let Some(port) = port else { return 0x8000 };
        let degrees = module(simulation, port).temperature >> 8;
        u32::from(degrees * 8) << 16 | u32::from(degrees * 8)
    };
    if first < Temperatures::MODULES || usize::from(count) > Temperatures::MAX {
        return Err(status::BAD_PARAMETER);
    }
    let records =
        std::array::from_fn(|nth| if nth < usize::from(count) { record(nth as u16) } else { 0 });
    Ok(Temperatures { first, count, records })
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
    let now = simulation.now();
    let counted = state.physical.at(now);
    let lanes = state.lanes().min(LANES);
    let mut lane_errors = [0; LANES];
    lane_errors[..lanes].fill(whole(counted.raw / lanes as f64));
    if let Some(dirt) = state.dirt.filter(|dirt| usize::from(dirt.lane) < lanes) {
        lane_errors[usize::from(dirt.lane)] += whole(counted.dirty);
    }
    let ber = |errors: f64| coded(if counted.bits > 0.0 { errors / counted.bits } else { 0.0 });
    let (raw_coefficient, raw_magnitude) = ber(counted.raw + counted.dirty);
    let (coefficient, magnitude) = ber(counted.lost);
    PhysicalStatistics {
        since_clear: now.since(state.physical.since).as_millis() as u64,
        received_bits: whole(counted.bits),
        symbol_errors: whole(counted.lost),
        corrected_bits: whole(counted.raw + counted.dirty),
        lane_errors,
        raw_magnitude,
        raw_coefficient,
        effective_magnitude: magnitude,
        effective_coefficient: coefficient,
        symbol_magnitude: magnitude,
        symbol_coefficient: coefficient,
        effective_errors: whole(counted.lost),
    }
}

/// Bits of a block of RS(544,514): 544 symbols of 10 bits.
const BLOCK_BITS: f64 = 5_440.0;

/// Errors are rare and apart from each other: nearly all of them in a block of their own, and one in 16 in a block with
/// another one.
fn fec_histogram(simulation: &Simulation, port: PortId) -> FecHistogram {
    let counted = simulation.port(port).physical.at(simulation.now());
    let errors = counted.raw + counted.dirty;
    let (one, two) = (whole(errors * 15.0 / 16.0), whole(errors / 32.0));
    let mut blocks = [0; BINS];
    blocks[..3].copy_from_slice(&[
        whole(counted.bits / BLOCK_BITS).saturating_sub(one + two),
        one,
        two,
    ]);
    FecHistogram { blocks }
}

/// Two, with serial numbers of their own.
fn power_supplies(node: NodeId) -> PowerSupplies {
    let [first, second] = [1, 2].map(|number| {
        let mut record = [0; PowerSupplies::WORDS];
        record[0] = PowerSupplies::PRESENT << 28 | 0x10;
        let mut write = |first: usize, text: &str| {
            for (word, bytes) in record[first..].iter_mut().zip(text.as_bytes().chunks_exact(4)) {
                *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        };
        write(4, &format!("MT25PS{:05}{number}", node.0));
        write(12, "MTEF-PSF-AC-C   ");
        record
    });
    PowerSupplies { first, second }
}

#[expect(clippy::cast_sign_loss, reason = "counts are not negative")]
fn whole(count: f64) -> u64 {
    count as u64
}

/// The module of a port: passive copper to hosts, active optical cables between switches. Both ends of a cable have one
/// serial number.
fn module(simulation: &Simulation, port: PortId) -> Module {
    let net = simulation.net();
    let state = simulation.port(port);
    let Some(peer) = state.cable.filter(|peer| !net.is_fnm_link(port, *peer)) else {
        return Module { kind: 4, ..Module::default() };
    };
    let is_optical = net.is_optical(port, peer);
    let fastest = net.node_of(port).model.fastest.min(net.node_of(peer).model.fastest);
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
        serial_number: padded(&format!("MT2512FT{:05}", state.serial)),
        ..Module::default()
    };
    if identifier == 8 {
        // CMIS modules: the unit is a meter.
        module.length_code |= 1 << 6;
    }
    if is_optical {
        let lanes = state.trained.map_or(4, |_| state.lanes());
        module.rx_power[..lanes].fill(POWER);
        if let Some(dirt) = state.dirt.filter(|dirt| usize::from(dirt.lane) < lanes) {
            let power = &mut module.rx_power[usize::from(dirt.lane)];
            *power = whole(f64::from(*power) * dirt.light) as u16;
        }
        module.tx_power[..lanes].fill(POWER);
        module.tx_bias[..lanes].fill(3_500);
        let degrees = state.module_temperature.unwrap_or(MODULE_DEGREES);
        (module.temperature, module.voltage) = (u16::from(degrees.min(127)) << 8, 33_000);
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
        let is_zero = state.module_report == ModuleReport::Zero;
        if is_zero || state.module_report == ModuleReport::NoThresholds {
            for (high, low) in [
                (&mut module.temperature_high, &mut module.temperature_low),
                (&mut module.voltage_high, &mut module.voltage_low),
                (&mut module.rx_power_high, &mut module.rx_power_low),
                (&mut module.tx_power_high, &mut module.tx_power_low),
                (&mut module.bias_high, &mut module.bias_low),
            ] {
                (*high, *low) = (0, 0);
            }
        }
        if is_zero {
            (module.temperature, module.voltage) = (0, 0);
            for values in [&mut module.rx_power, &mut module.tx_power, &mut module.tx_bias] {
                *values = [0; LANES];
            }
        }
    }
    module
}

/// A text padded with blanks, as modules have it.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    bytes.iter_mut().zip(text.bytes()).for_each(|(byte, of)| *byte = of);
    bytes
}
