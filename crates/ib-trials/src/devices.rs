//! Generations of devices: which counters they have, and how wide these are.

use ib_mad::counter::COUNT;
use ib_mad::fec::Fec::{self, ReedSolomon, ReedSolomon2, Rs271Plr, Rs544Plr};
use ib_mad::node::NodeKind;
use ib_mad::pma::{AgentProfile, DetailPolicy, OptionalCounters, read_plan};
use ib_mad::port_state::{PhysicalState, PortState, PortStatus};
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::{Counter, Lid};
use ib_sim::device::DeviceModel;
use std::time::Duration;

/// The interval at which details are read by default.
const DETAILS: Duration = Duration::from_secs(120);

/// Switches and adapters that are installed together.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Generation {
    pub name: &'static str,
    pub speed: Speed,
    /// Names of device models of the simulator.
    pub switch: &'static str,
    pub adapter: &'static str,
    pub fec: Option<Fec>,
    /// Its share of the fabrics: an assumption.
    pub share: f64,
    /// Its modules are optical, and the devices report them and their physical layer.
    pub reports: bool,
}

const fn generation(
    name: &'static str,
    speed: Speed,
    (switch, adapter): (&'static str, &'static str),
    fec: Option<Fec>,
    share: f64,
    reports: bool,
) -> Generation {
    Generation { name, speed, switch, adapter, fec, share, reports }
}

/// The generations of the trial. XDR is missing: its ports are groups of one-lane links.
pub const GENERATIONS: [Generation; 6] = [
    generation("QDR", Speed::Qdr, ("infiniscale-4", "connectx-3"), None, 0.05, false),
    generation("FDR", Speed::Fdr, ("switchx", "connectx-3"), None, 0.05, false),
    generation("EDR", Speed::Edr, ("switch-ib-2", "connectx-5"), Some(ReedSolomon), 0.2, false),
    generation("HDR", Speed::Hdr, ("quantum", "connectx-6"), Some(ReedSolomon2), 0.25, false),
    generation("NDR copper", Speed::Ndr, ("quantum-2", "connectx-7"), Some(Rs271Plr), 0.2, false),
    generation("NDR optical", Speed::Ndr, ("quantum-2", "connectx-7"), Some(Rs544Plr), 0.25, true),
];

/// What an agent has of each counter.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The highest value by counter; 0 where there is none.
    pub max: [u64; COUNT],
    /// Counters that are read on a slower interval.
    pub details: Vec<Counter>,
}

impl Fields {
    /// The fields that a sweep reads of a device model, by the exporter's own read plan.
    pub fn of(model: &DeviceModel) -> Fields {
        let is_switch = model.kind == NodeKind::Switch;
        let profile = AgentProfile {
            capabilities: model.performance,
            options: Some(model.options),
            is_switch,
            refused: Vec::new(),
        };
        let details =
            if model.options == 0 { DetailPolicy::Never } else { DetailPolicy::Every(DETAILS) };
        let plan = read_plan(&profile, OptionalCounters { details, fec: model.fec });
        let mut fields = Fields { max: [0; COUNT], details: Vec::new() };
        for attribute in &plan {
            for (counter, field) in &attribute.counters {
                let known = &mut fields.max[*counter as usize];
                let max = u64::MAX >> (64 - u32::from(field.width));
                // Where the 64-bit field stays at 0, the classic one counts.
                let is_dead = model.unused64.contains(counter);
                if !attribute.is_fallback && !is_dead || attribute.is_fallback && is_dead {
                    *known = max;
                }
                if attribute.is_detail() {
                    fields.details.push(*counter);
                }
            }
        }
        fields
    }

    /// Whether the device has a counter.
    pub fn has(&self, counter: Counter) -> bool {
        self.max[counter as usize] > 0
    }
}

impl Generation {
    /// The state of a port with a link.
    pub fn status(&self, lid: u16) -> PortStatus {
        let speeds: SpeedSet = Speed::ALL.into_iter().collect::<SpeedSet>().up_to(self.speed);
        let widths = Width::X1.code() | Width::X4.code();
        PortStatus {
            lid: Lid(lid),
            sm_lid: Lid(1),
            state: PortState::Active,
            physical_state: PhysicalState::LinkUp,
            width: Some(Width::X4),
            speed: Some(self.speed),
            widths_supported: widths,
            widths_enabled: widths,
            speeds_supported: speeds,
            speeds_enabled: speeds,
            ..PortStatus::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &str) -> Fields {
        Fields::of(DeviceModel::by_name(name).unwrap())
    }

    #[test]
    fn fields_are_as_wide_as_devices_count() {
        let classic = fields("connectx-3");
        assert_eq!(classic.max[Counter::SymbolErrors as usize], 65_535);
        assert_eq!(classic.max[Counter::LinkDowned as usize], 255);
        assert_eq!(classic.max[Counter::XmitData as usize], u64::MAX);
        assert!(!classic.has(Counter::FecCorrectedSymbols));
        let observed = fields("connectx-7");
        assert_eq!(observed.max[Counter::SymbolErrors as usize], 65_535);
        assert_eq!(observed.max[Counter::RcvErrors as usize], u64::MAX);
        assert!(observed.details.contains(&Counter::RcvLocalPhysicalErrors));
        assert_eq!(fields("quantum-2").max[Counter::SymbolErrors as usize], u64::MAX);
        assert_eq!(fields("quantum").max[Counter::FecCorrectedSymbols as usize], 0xffff_ffff);
    }
}
