//! A port as a row of telemetry describes it.

use std::time::{Duration, SystemTime};

use ib_mad::fec::Fec;
use ib_mad::node::{NodeKind, device};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width};
use ib_mad::register::LANES;
use ib_mad::{Counter, Guid, PortNumber};

use super::fields::{Field, Physical};
use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName, PortRecord, PortSample};
use crate::modules::ModuleText;
use crate::text;

/// The vendor of all devices that UFM reads; rows do not have it.
const MELLANOX: u32 = 0x02c9;

/// The most rows of a text, which need some 1 KB each: a fabric of 60,000 ports has 120,000.
pub const MAX_ROWS: usize = 500_000;

/// What is known of a port, field by field.
#[derive(Clone, Debug, Default)]
pub struct Row {
    guid: Option<Guid>,
    number: Option<PortNumber>,
    peer: (Option<Guid>, Option<PortNumber>),
    peer_description: String,
    is_aggregated: bool,
    node: NodeRecord,
    port: PortRecord,
    fallbacks: Vec<(Counter, u64)>,
    sample: PortSample,
    module: ModuleText,
    /// LinkSpeedActive as a number, of which two encodings are in use.
    speed_code: Option<u64>,
}

/// Whether a cell says that there is no value.
fn is_absent(text: &str) -> bool {
    let words = ["", "na", "n/a", "nan", "-1", "null", "none", "-"];
    words.contains(&&*text.to_ascii_lowercase())
}

/// A number without a sign. Programs that read and write CSV make `12.0` of 12, and Prometheus knows only such numbers.
fn whole(text: &str) -> Option<u64> {
    text::number(text).or_else(|| {
        let number: f64 = text.parse().ok()?;
        // 2^64 is the first that does not fit.
        let fits = number.is_finite() && (0.0..18_446_744_073_709_551_616.0).contains(&number);
        #[expect(clippy::cast_sign_loss, reason = "not negative")]
        fits.then_some(number as u64)
    })
}

/// The same of a number without a fraction: 2.5 is a speed.
fn integer(text: &str) -> Option<u64> {
    let is_whole = |number: &f64| number.fract() == 0.0;
    text::number(text).or_else(|| text.parse().ok().filter(is_whole).and_then(|_| whole(text)))
}

/// A time since 1970. Its unit follows from its size: seconds, milliseconds (Prometheus, old versions), microseconds (UFM
/// Telemetry) or nanoseconds.
pub fn timestamp(text: &str) -> Option<SystemTime> {
    let value = whole(text)?;
    let nanoseconds = match value {
        // Before 2001, and a number of another kind.
        0..1_000_000_000 => return None,
        1_000_000_000..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    let since = u128::from(value) * nanoseconds;
    let since = Duration::from_nanos(u64::try_from(since).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// A FEC mode as mlxlink names it, and so do its libraries: `Standard RS-FEC - (544,514)`, `LL_RS-FEC_PLR (271,257)`.
fn fec(text: &str) -> Option<Fec> {
    if let Some(known) = text::fec(text) {
        return Some(known);
    }
    let words = text.to_ascii_uppercase();
    let has = |word: &str| words.contains(word);
    Some(match () {
        () if has("NO FEC") || has("NO_FEC") => Fec::None,
        () if has("FIRE") => Fec::FireCode,
        () if has("PLR") && has("544") => Fec::Rs544Plr,
        () if has("PLR") && (has("271") || has("272")) => Fec::Rs271Plr,
        () if has("ZERO") => Fec::ZeroLatency,
        () if has("COD") => Fec::Cod,
        () if has("ADAPT") => Fec::Adaptive,
        () if has("STRONG") => Fec::StrongReedSolomon,
        () if has("544") => Fec::ReedSolomon2,
        () if has("271") || has("272") => Fec::LowLatency,
        () if has("528") => Fec::ReedSolomon,
        () => return None,
    })
}

/// A bit error ratio as registers have it: coefficient and magnitude.
fn ratio(text: &str) -> Option<(u8, u8)> {
    let ratio: f64 = text.parse().ok().filter(|ratio| (0.0..1.0).contains(ratio))?;
    // 15e-255, or less than a float of 64 bits can have.
    if ratio < 1e-250 {
        return Some((0, 255));
    }
    let magnitude = ratio.log10().floor().abs();
    let coefficient = (ratio * 10f64.powf(magnitude)).round();
    #[expect(clippy::cast_sign_loss, reason = "both are positive")]
    Some((coefficient as u8, magnitude as u8))
}

/// What a device is by its id, or by its name.
fn device_kind(id: Option<u16>, text: &str) -> Option<NodeKind> {
    let is_switch = |id: u16| device::is_infiniband_switch(MELLANOX, id) || id == device::QUANTUM_3;
    let name = id.and_then(|id| device::name(MELLANOX, id)).unwrap_or(text);
    let has = |word: &str| name.contains(word);
    match id {
        Some(id) if is_switch(id) => Some(NodeKind::Switch),
        _ if has("Connect") || has("BlueField") => Some(NodeKind::Ca),
        _ if has("Quantum") || has("Switch") => Some(NodeKind::Switch),
        _ => None,
    }
}

impl Row {
    /// Sets a field from its text. False if that should be a number and is none: then the field is unknown, and the row
    /// has its others.
    pub fn set(&mut self, field: Field, text: &str) -> bool {
        let text = text.trim();
        if is_absent(text) {
            return true;
        }
        match field {
            Field::Timestamp => {
                let at = timestamp(text);
                self.sample.read_at = self.sample.read_at.max(at);
                return at.is_some();
            }
            Field::NodeGuid => return set(&mut self.guid, text::guid(text)),
            Field::PortGuid => return set(&mut self.port.guid, text::guid(text)),
            Field::PortNumber => return set(&mut self.number, small(text)),
            Field::SystemGuid => return set(&mut self.node.system_guid, text::guid(text)),
            Field::NodeType => {
                let kind = match small(text) {
                    Some(1) => Some(NodeKind::Ca),
                    Some(2) => Some(NodeKind::Switch),
                    Some(3) => Some(NodeKind::Router),
                    _ => text::kind(text),
                };
                self.node.kind = kind.or(self.node.kind);
            }
            Field::PortType => self.is_aggregated = text.eq_ignore_ascii_case("aggregated"),
            Field::Description => {
                self.node.description = text::description(text);
                self.node.rank = NameRank::Device;
            }
            Field::Device => {
                let id = whole(text).and_then(|id| u16::try_from(id).ok()).filter(|id| *id > 0);
                self.node.kind = self.node.kind.or(device_kind(id, text));
                if let Some(id) = id {
                    (self.node.vendor_id, self.node.device_id) = (MELLANOX, id);
                }
            }
            Field::Lid => {
                let lid = whole(text).and_then(|lid| u16::try_from(lid).ok());
                self.port.lid = lid.filter(|lid| text::is_unicast(*lid));
                return lid.is_some();
            }
            Field::PhysicalState => {
                let code = small(text).filter(|code| *code > 0).map(PhysicalState::from_code);
                self.port.physical_state = code.or_else(|| text::physical_state(text));
            }
            Field::LogicalState => {
                let code = small(text).filter(|code| *code > 0).map(PortState::from_code);
                self.port.state = code.or_else(|| text::port_state(text));
            }
            Field::Speed => match integer(text).filter(|code| code.is_power_of_two()) {
                Some(code) => self.speed_code = Some(code),
                None => self.port.speed = text::speed(text),
            },
            Field::Width => {
                self.port.width = small(text).map_or_else(|| text::width(text), Width::from_code);
            }
            Field::Fec => self.port.fec = fec(text),
            Field::PeerNode => self.peer.0 = text::guid(text),
            Field::PeerPort => self.peer.1 = small(text).filter(|number| *number > 0),
            Field::PeerDescription => self.peer_description = text::description(text),
            Field::ChipTemperature => {
                let degrees = text.trim_end_matches(['C', 'c', ' ']).parse().ok();
                // What is no temperature of silicon is no measurement.
                self.node.temperature =
                    degrees.filter(|degrees: &f64| (1.0..=125.0).contains(degrees));
            }
            Field::Module(name) => self.module.set(name, text),
            Field::Counter(counter, is_wide) => {
                let value = whole(text);
                if let Some(value) = value.filter(|value| *value < u64::MAX - 1) {
                    self.port.counters.set(counter, is_wide, value);
                }
                return value.is_some();
            }
            Field::Fallback(counter) => {
                let value = whole(text);
                self.fallbacks.extend(value.map(|value| (counter, value)));
                return value.is_some();
            }
            Field::Physical(what) => return self.set_physical(what, text),
        }
        true
    }

    fn set_physical(&mut self, what: Physical, text: &str) -> bool {
        let physical = self.sample.physical.get_or_insert_default();
        match what {
            Physical::RawBer | Physical::EffectiveBer | Physical::SymbolBer => {
                let Some((coefficient, magnitude)) = ratio(text) else { return false };
                let of = match what {
                    Physical::RawBer => {
                        (&mut physical.raw_coefficient, &mut physical.raw_magnitude)
                    }
                    Physical::EffectiveBer => {
                        (&mut physical.effective_coefficient, &mut physical.effective_magnitude)
                    }
                    _ => (&mut physical.symbol_coefficient, &mut physical.symbol_magnitude),
                };
                (*of.0, *of.1) = (coefficient, magnitude);
            }
            Physical::SinceClearMinutes => {
                let minutes = text.parse().ok().filter(|it: &f64| (0.0..1e12).contains(it));
                let Some(minutes) = minutes else { return false };
                #[expect(clippy::cast_sign_loss, reason = "not negative")]
                let milliseconds = (minutes * 60_000.0) as u64;
                physical.since_clear = milliseconds;
            }
            what => {
                let Some(value) = whole(text) else { return false };
                match what {
                    Physical::SinceClear => physical.since_clear = value,
                    Physical::ReceivedBits => physical.received_bits = value,
                    Physical::SymbolErrors => {
                        physical.symbol_errors = value;
                        self.fallbacks.push((Counter::SymbolErrors, value));
                    }
                    Physical::EffectiveErrors => physical.effective_errors = value,
                    Physical::CorrectedBits => physical.corrected_bits = value,
                    Physical::LaneErrors(lane) => {
                        if let Some(errors) = physical.lane_errors.get_mut(usize::from(lane)) {
                            *errors = value;
                        }
                    }
                    _ => {}
                }
            }
        }
        true
    }

    /// The node and the number of the port, if both are known.
    pub fn key(&self) -> Option<(Guid, PortNumber)> {
        self.guid.zip(self.number)
    }

    /// The number that stands for its speed, if one does.
    pub fn speed_code(&self) -> Option<u64> {
        self.speed_code
    }

    /// Adds the port to a reading. Several rows of one port complete each other; of two times the later one counts.
    /// Returns false for a row without a port.
    pub fn add_to(mut self, found: &mut Contents, codes: SpeedCodes) -> bool {
        let Some((guid, number)) = self.key().filter(|_| !self.is_aggregated) else {
            return false;
        };
        let name = PortName::node(guid, number);
        let known = self.port.counters.values().map(|(counter, ..)| counter).collect::<Vec<_>>();
        for (counter, value) in self.fallbacks {
            if !known.contains(&counter) {
                self.port.counters.set(counter, false, value);
            }
        }
        self.port.speed = self.port.speed.or(self.speed_code.and_then(|code| codes.speed(code)));
        self.port.module = self.module.into_module().map(Box::new);
        let read_at = self.sample.read_at;
        if read_at.is_some() || self.sample.physical.is_some() {
            self.port.sample = Some(Box::new(self.sample));
        }
        // The port of an adapter has a GUID of its own; those of a switch have the switch's.
        if self.node.kind == Some(NodeKind::Switch) {
            self.node.lid = self.port.lid.take();
        }
        found.taken_at = found.taken_at.max(read_at);
        found.node(NodeName::Node(guid)).merge(self.node);
        // A port that is down may still name whom it was connected with.
        let is_down = self.port.state == Some(PortState::Down);
        if let (Some(peer), Some(peer_number), false) = (self.peer.0, self.peer.1, is_down) {
            let record = NodeRecord::named(None, self.peer_description, NameRank::Peer);
            found.node(NodeName::Node(peer)).merge(record);
            found.links.push((name, PortName::node(peer, peer_number)));
            found.is_topology = true;
        }
        let port = found.port(name);
        match read_at.cmp(&port.read_at()) {
            std::cmp::Ordering::Greater => {
                let mut before = std::mem::replace(port, self.port);
                before.counters = crate::counters::Counters::default();
                port.merge(before);
            }
            std::cmp::Ordering::Equal => port.merge(self.port),
            std::cmp::Ordering::Less => {
                self.port.counters = crate::counters::Counters::default();
                port.merge(self.port);
            }
        }
        true
    }
}

/// How LinkSpeedActive is encoded where it is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeedCodes {
    /// As ibdiagnet packs it, which collects for UFM: 512 is EDR, 2048 is NDR (a comment in `*.db_csv`).
    Packed,
    /// As the register PTYS has it: 32 is EDR, 128 is NDR (mstflint).
    Register,
}

impl SpeedCodes {
    /// The encoding of a reading, by the codes in it: 8 to 128 are codes of PTYS only. Where there are none, 256 is FDR, not
    /// XDR: links of XDR alone are not known apart from links of FDR alone.
    pub fn of(codes: impl IntoIterator<Item = u64>) -> SpeedCodes {
        let mut codes = codes.into_iter();
        if codes.any(|code| (8..=128).contains(&code)) {
            SpeedCodes::Register
        } else {
            SpeedCodes::Packed
        }
    }

    fn speed(self, code: u64) -> Option<Speed> {
        match self {
            SpeedCodes::Packed => text::packed_speeds(code).fastest(),
            SpeedCodes::Register => Some(match code {
                1 => Speed::Sdr,
                2 => Speed::Ddr,
                4 => Speed::Qdr,
                8 => Speed::Fdr10,
                16 => Speed::Fdr,
                32 => Speed::Edr,
                64 => Speed::Hdr,
                128 => Speed::Ndr,
                256 => Speed::Xdr,
                _ => return None,
            }),
        }
    }
}

fn small(text: &str) -> Option<u8> {
    whole(text).and_then(|number| u8::try_from(number).ok())
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    *place = value;
    place.is_some()
}

const _: () = assert!(LANES >= 4, "UFM has the errors of four lanes");
