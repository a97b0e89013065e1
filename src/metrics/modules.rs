//! Cables and modules: those of swept ports, and those of the Ethernet ports of this host, whose series have one more
//! label, `device`.

use exposition::{Family, MetricType, Samples};
use ib_mad::register::{LANES, Module, monitor, text};

use super::family_table::{families, family};

const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];
const LANE_LABELS: &[&str] = &["fabric", "guid", "port", "lane"];

/// A cable or module that is plugged.
pub(super) struct ModuleItem<'a> {
    pub module: &'a Module,
    /// The number of lanes that the link uses.
    pub lanes: usize,
    /// Whether its measurements are current: they are read only while the link is up.
    pub is_current: bool,
    /// Whether the laser's details are exported: nine series of an optical port that few sites look at.
    pub has_details: bool,
}

impl<'a> ModuleItem<'a> {
    /// The module if it has a monitor.
    fn measured(&self, monitor: u8) -> Option<&'a Module> {
        Some(self.module).filter(|module| self.is_current && module.has(monitor))
    }

    /// The module if it has a monitor whose values are details.
    fn detailed(&self, monitor: u8) -> Option<&'a Module> {
        self.measured(monitor).filter(|_| self.has_details)
    }
}

families! {
    /// What is known of a cable or module.
    pub(super) MODULES: ModuleItem<'_>;
    "infiniband_module_info" Gauge
        ["fabric", "guid", "port", "vendor", "part_number", "serial_number", "revision", "kind",
         "form_factor", "length_meters"]
        "Cable or module of a port as labels, always 1. Both ends of a cable have the same serial number."
        => |item, samples| {
            let module = item.module;
            for (name, field) in [
                ("vendor", &module.vendor[..]),
                ("part_number", &module.part_number),
                ("serial_number", &module.serial_number),
                ("revision", &module.revision),
            ] {
                write_field(samples, name, field);
            }
            samples.label("kind", module.technology_label());
            samples.label("form_factor", module.form_factor());
            if let Some(meters) = module.meters() {
                let bytes = meters.to_ne_bytes();
                samples.label_from("length_meters", &bytes, || meters.to_string());
            }
            samples.value(1);
        };
    "infiniband_module_temperature_celsius" Gauge PORT_LABELS
        "Temperature of the module, if it measures it."
        => |item, samples| if let Some(module) = item.measured(monitor::TEMPERATURE) {
            samples.float_if_known(module.celsius(module.temperature));
        };
    "infiniband_module_temperature_alarm_celsius" Gauge PORT_LABELS
        "The module's own high temperature alarm threshold."
        => |item, samples| if let Some(module) = item.measured(monitor::TEMPERATURE) {
            samples.float_if_known(module.temperature_alarm());
        };
    "infiniband_module_rx_power_dbm" Gauge LANE_LABELS
        "Received optical power by lane. Absent without light."
        => |item, samples| if let Some(module) = item.measured(monitor::RX_POWER) {
            write_lanes(item, samples, &module.rx_power);
        };
    "infiniband_module_tx_power_dbm" Gauge LANE_LABELS
        "Transmitted optical power by lane. Absent without light. In a fabric: needs --fabric.lanes."
        => |item, samples| if let Some(module) = item.detailed(monitor::TX_POWER) {
            write_lanes(item, samples, &module.tx_power);
        };
    "infiniband_module_tx_bias_amperes" Gauge LANE_LABELS
        "Bias current of the laser by lane. In a fabric: needs --fabric.lanes."
        => |item, samples| if let Some(module) = item.detailed(monitor::BIAS) {
            for (lane, bias) in module.tx_bias.iter().enumerate().take(item.lanes) {
                samples.label("lane", itoa::Buffer::new().format(lane)).float(module.amperes(*bias));
            }
        };
    "infiniband_module_voltage_volts" Gauge PORT_LABELS
        "Supply voltage of the module, if it measures it. In a fabric: needs --fabric.lanes."
        => |item, samples| if let Some(module) = item.detailed(monitor::VOLTAGE) {
            samples.float(f64::from(module.voltage) / 10_000.0);
        };
}

/// Writes the text of a field.
pub(super) fn write_field(samples: &mut Samples<'_>, name: &str, field: &[u8]) {
    samples.label_from(name, field, || text(field));
}

/// Writes the power of the lanes that the link uses.
fn write_lanes(item: &ModuleItem<'_>, samples: &mut Samples<'_>, powers: &[u16; LANES]) {
    for (lane, power) in powers.iter().enumerate().take(item.lanes) {
        if let Some(dbm) = item.module.dbm(*power) {
            let hundredths = (dbm * 100.0).round() / 100.0;
            samples.label("lane", itoa::Buffer::new().format(lane)).float(hundredths);
        }
    }
}
