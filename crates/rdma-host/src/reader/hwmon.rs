//! Temperatures of a device from hwmon: files `tempN_input`, `tempN_label` and `tempN_crit` in millidegrees Celsius
//! (kernel: Documentation/hwmon/sysfs-interface.rst). mlx5 has those of the ASIC and of modules since Linux 6.7, bnxt_en
//! and ice those of the ASIC.

use std::time::Duration;

use ib_mad::Moment;

use crate::model::Sensor;

use super::sysfs::Directory;

/// Time between two readings: drivers ask the firmware each time.
const INTERVAL: Duration = Duration::from_secs(60);

/// The highest number of a sensor. A device has one of its ASIC and one of each module.
const MAX_SENSORS: u8 = 32;

/// Reads the sensors of a device.
#[derive(Debug, Default)]
pub(super) struct HwmonReader {
    latest: Vec<Sensor>,
    next: Moment,
}

impl HwmonReader {
    /// The temperatures of a device, by the directory of its RDMA device.
    pub fn read(&mut self, device: &Directory, now: Moment) -> &[Sensor] {
        if now >= self.next {
            self.next = now + INTERVAL;
            self.latest = read(device);
        }
        &self.latest
    }
}

fn read(device: &Directory) -> Vec<Sensor> {
    let Ok(hwmon) = device.open_below("device/hwmon") else { return Vec::new() };
    let names = hwmon.names().unwrap_or_default();
    let monitors = names.iter().filter_map(|name| hwmon.open_below(name).ok());
    let mut sensors: Vec<Sensor> = Vec::new();
    for monitor in monitors {
        for number in 1..=MAX_SENSORS {
            let celsius = |name: &str| {
                let millidegrees: i32 =
                    monitor.text(&format!("temp{number}_{name}")).parse().ok()?;
                Some(f64::from(millidegrees) / 1_000.0)
            };
            let Some(temperature) = celsius("input") else { continue };
            let label = monitor.text(&format!("temp{number}_label"));
            let label = if label.is_empty() { format!("temp{number}") } else { label };
            // Two monitors of a device may have the same labels: the first one counts.
            if !sensors.iter().any(|sensor| sensor.label == label) {
                sensors.push(Sensor { label, celsius: temperature, critical: celsius("crit") });
            }
        }
    }
    sensors
}
