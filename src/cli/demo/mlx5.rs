//! Devices as the driver mlx5 exposes them.

use std::sync::Arc;

use rdma_host::model::{Device, DeviceInfo, HwName, HwReading, Port, Sensor, hw_counter};

/// A device of mlx5 with one port.
pub(super) fn mlx5(
    name: Arc<str>,
    instance: u64,
    info: DeviceInfo,
    port: Port,
    celsius: f64,
) -> Device {
    let (node_type, hardware, driver) = ("ca".into(), "0".into(), "mlx5_core".into());
    Device {
        name,
        instance: Some(instance),
        info: Arc::new(DeviceInfo { node_type, hardware, driver, ..info }),
        is_readable: true,
        ports: vec![port],
        sensors: vec![Sensor { label: "asic".into(), celsius, critical: Some(105.0) }],
        ..Device::default()
    }
}

/// Counters of `hw_counters`.
pub(super) fn hw(counters: impl Iterator<Item = (&'static str, u64)>) -> HwReading {
    let name = |file: &str| HwName { file: file.into(), row: hw_counter::find(file) };
    let (names, values): (Vec<_>, _) =
        counters.map(|(file, value)| (name(file), Some(value))).unzip();
    HwReading { names: names.into(), values }
}
