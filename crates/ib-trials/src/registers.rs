//! What devices report of the physical layer of their ports and of modules.

use std::sync::Arc;

use ib_fabric::hardware::ReadAt;
use ib_mad::register::{LANES, Module, PhysicalStatistics, monitor};

use crate::cell::between;
use crate::world::{World, moment};

/// The exporter reads the physical layer and modules at these intervals by default.
const PHYSICAL: f64 = 60.0;
const MODULES: f64 = 600.0;

impl World {
    /// Reads registers where devices have them.
    #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
    pub(crate) fn read_hardware(&mut self, now: f64) {
        if !self.cell.generation.reports || now - self.physical_read < PHYSICAL - 1.0 {
            return;
        }
        let since = now - self.physical_read.max(0.0);
        self.physical_read = now;
        let reads_modules = now - self.modules_read >= MODULES - 1.0;
        if reads_modules {
            self.modules_read = now;
        }
        let limit = f64::from(self.cell.limits.pre_fec.unwrap_or_default());
        let hardware = Arc::make_mut(&mut self.hardware);
        for port in 0..self.cell.ports.len() {
            let Some((cable, side)) = self.cell.ports[port].cable else { continue };
            let link = &self.cell.cables[cable];
            if !link.up
                || !self.cell.has_both_nodes(cable)
                || self.cell.nodes[self.cell.ports[port].node].silent_until > now
            {
                continue;
            }
            let bits = self.cell.bytes_per_second(cable) * 8.0;
            let mean = bits * since * limit * link.pre_fec_ratio(side);
            self.lane_errors[port] += self.rng.poisson(mean) / 4;
            let at = moment(now + 0.5);
            let known = hardware.port_mut(self.cell.end(port));
            let mut lane_errors = [0; LANES];
            lane_errors[..4].fill(self.lane_errors[port]);
            known.physical = Some(Arc::new(ReadAt {
                value: PhysicalStatistics {
                    since_clear: (now * 1000.0) as u64,
                    received_bits: (now * bits) as u64,
                    lane_errors,
                    ..PhysicalStatistics::default()
                },
                at,
            }));
            if reads_modules {
                let warm = between(&mut self.rng, 45.0, 62.0);
                let degrees = if link.hot[side] { 76.0 } else { warm };
                let usual = if link.dark[side] { 40 } else { 600 + self.rng.below(500) };
                let received = usual as f64 * 10_f64.powf(link.optics.loss[side] / -10.0);
                let sent = if link.optics.weak[side] { 50 } else { 1000 };
                let mut value = module(degrees, received as u16, sent);
                if link.optics.unreported {
                    value.monitors = monitor::TEMPERATURE;
                }
                known.module = Some(Arc::new(ReadAt { value, at }));
            }
        }
    }
}

/// An optical module with alarm thresholds of 75 °C and 0.1 mW; powers in microwatts.
#[expect(clippy::cast_sign_loss, reason = "no module is below zero")]
fn module(degrees: f64, received: u16, sent: u16) -> Module {
    Module {
        kind: 2,
        temperature: (degrees * 256.0) as u16,
        temperature_high: 75 * 256,
        temperature_low: 0,
        rx_power: [received; LANES],
        tx_power: [sent; LANES],
        rx_power_high: 3000,
        rx_power_low: 100,
        tx_power_high: 3000,
        tx_power_low: 100,
        monitors: monitor::TEMPERATURE | monitor::RX_POWER | monitor::TX_POWER,
        ..Module::default()
    }
}
