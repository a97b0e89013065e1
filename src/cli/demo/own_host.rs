//! The own host of a demo: its InfiniBand devices are adapters of the simulated fabric, with the counters that sweeps
//! read there, too; its RoCE device has counters of its own.

use std::sync::Arc;

use ib_mad::counter::{CounterKind, TABLE};
use ib_mad::moment::Anchor;
use ib_mad::port_state::PortState;
use ib_mad::rate::Width;
use ib_mad::{Moment, Reading};
use ib_sim::net::PortId;
use ib_sim::scenario::OwnHost;
use ib_sim::simulation::{SimulatedPort, Simulation};
use ib_sim::transport::{SharedSimulation, lock};
use process_clock::Clock;
use rdma_host::model::{
    Device, DeviceInfo, HostSnapshot, HwReading, IpoibMode, Netdev, Port, PortKind,
};
use rdma_host::reader::DeviceSource;

use super::mlx5::{hw, mlx5};
use super::roce::Roce;

/// Counters of mlx5's queues that are 0 on a good network (kernel: drivers/infiniband/hw/mlx5/counters.c).
const QUEUE_ERRORS: [&str; 7] = [
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_transport_retries_exceeded",
];
/// IPoIB with the largest MTU of a datagram: 4 KiB without its header.
const IPOIB_MTU: u64 = 4092;

/// What the inodes of SMI devices differ by from those of their parents.
const SMI_INSTANCES: u64 = 1_000;

/// The devices of the exporter's host.
pub struct SimulatedHost {
    simulation: SharedSimulation,
    clock: Clock,
    /// The ports of its adapters, in the order of the devices.
    ports: Vec<PortId>,
    roce: Option<Roce>,
}

impl SimulatedHost {
    /// The host of a scenario.
    pub fn new(simulation: SharedSimulation, own_host: OwnHost, clock: Clock) -> Self {
        let OwnHost { ports, roce, pfc_storm } = own_host;
        let description =
            |port: &PortId| lock(&simulation).net().node_of(*port).description.clone();
        let host = ports.first().map(description).unwrap_or_default();
        let host = host.split(' ').next().unwrap_or_default();
        let roce = roce.map(|name| Roce::new(host, &name, pfc_storm));
        SimulatedHost { simulation, clock, ports, roce }
    }
}

impl SimulatedHost {
    /// What a reading finds. Its time is that of a clock while nobody else advances the simulation.
    pub fn at(&self, anchor: Anchor, clock: impl FnOnce() -> Moment) -> HostSnapshot {
        let mut simulation = lock(&self.simulation);
        let now = clock();
        simulation.advance(now);
        let ports = self.ports.iter().enumerate();
        let mut devices: Vec<Device> =
            ports.flat_map(|(index, &port)| adapter(&simulation, port, index, now)).collect();
        drop(simulation);
        devices.extend(self.roce.iter().map(|roce| roce.device(now)));
        devices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        HostSnapshot { anchor, began: now, ended: now, devices, excluded: 0, problem: None }
    }
}

impl DeviceSource for SimulatedHost {
    fn read(&mut self) -> HostSnapshot {
        let snapshot = self.at(self.clock.anchor(), || self.clock.now());
        HostSnapshot { ended: self.clock.now(), ..snapshot }
    }

    /// Nothing is cached.
    fn refresh(&mut self, _device: Option<&str>) {}
}

/// An adapter as mlx5 exposes it; a multi-plane one with the device that has its planes as ports.
fn adapter(simulation: &Simulation, port: PortId, index: usize, now: Moment) -> Vec<Device> {
    let node = simulation.net().node_of(port);
    // As in the NodeDescription, if that has the name of a device.
    let name = node.description.split_once(' ').map(|(_, device)| device.to_owned());
    let [major, minor, subminor] = node.model.firmware;
    let info = DeviceInfo {
        guid: Some(node.guid),
        system_guid: Some(node.system_guid),
        description: node.description.clone(),
        firmware: format!("{major}.{minor}.{subminor:04}"),
        // As in GeneralInfo.
        board: format!("MT_{:010}", node.device_id),
        hca_type: format!("MT{}", node.device_id),
        ..DeviceInfo::default()
    };
    let name: Arc<str> = name.unwrap_or_else(|| format!("mlx5_{index}")).into();
    let planes: Vec<PortId> = simulation.net().plane_ports(port).collect();
    let all = with_netdev(ib_port(simulation, &planes, now), index);
    let device = mlx5(Arc::clone(&name), index as u64, info, all.clone(), 49.0 + index as f64);
    if planes.len() == 1 {
        return vec![device];
    }
    let plane = |plane: &PortId| Port {
        kind: PortKind::Smi,
        // The kernel reports those of the whole port for each plane, also if this one has no link.
        state: all.state,
        physical_state: all.physical_state,
        ..ib_port(simulation, &[*plane], now)
    };
    let smi = Device {
        name: format!("smi{index}").into(),
        instance: device.instance.map(|instance| instance + SMI_INSTANCES),
        kind: PortKind::Smi,
        parent: Some(name),
        ports: planes.iter().map(plane).collect(),
        sensors: Vec::new(),
        ..device.clone()
    };
    vec![device, smi]
}

/// The port of a device with a network interface: that of an SMI device has none, and no queues.
fn with_netdev(port: Port, index: usize) -> Port {
    let operstate = if port.rate.is_some() { "up" } else { "down" };
    let netdev = Netdev {
        name: format!("ib{index}").into(),
        ipoib: Some(IpoibMode::Datagram),
        operstate: operstate.into(),
        mtu: Some(IPOIB_MTU),
        carrier_changes: Some(1),
        ..Netdev::default()
    };
    let hw = hw(QUEUE_ERRORS.iter().map(|&file| (file, 0)));
    Port { hw, netdevs: vec![netdev], ..port }
}

/// A port with all of its planes.
fn ib_port(simulation: &Simulation, planes: &[PortId], now: Moment) -> Port {
    let (first, states) = (planes[0], planes.iter().map(|plane| simulation.port(*plane)));
    let mut reading = Reading::empty(now);
    for row in TABLE.iter().filter(|row| !row.sysfs_files.is_empty()) {
        // Only those of traffic have 64 bits (kernel: drivers/infiniband/core/sysfs.c).
        let mut fields = row.fields.iter();
        let field = if row.kind == CounterKind::Traffic { fields.next() } else { fields.last() };
        let most = field.map_or(u64::MAX, |field| field.max());
        let counts = planes.iter().map(|plane| simulation.count(*plane, row.counter));
        let value = counts.fold(0, u64::saturating_add).min(most);
        reading.set(row.counter, value);
        if value == most {
            reading.saturated.insert(row.counter);
        }
    }
    let rate = states.clone().map(SimulatedPort::bytes_per_second).sum();
    let lanes = states.clone().filter_map(|port| port.trained).map(|(width, _)| width.lanes());
    let lanes = lanes.sum::<u8>();
    let best = states.clone().max_by_key(|port| port.state == PortState::Active);
    Port {
        number: simulation.net().port(first).number,
        kind: PortKind::Physical,
        at: now,
        link_layer: "InfiniBand".into(),
        state: best.map(|port| port.state),
        physical_state: best.map(SimulatedPort::physical_state),
        rate: Some(rate).filter(|rate| *rate > 0),
        width: Width::ALL.into_iter().filter(|width| width.lanes() <= lanes).max(),
        speed: states.filter_map(|port| port.trained).map(|(_, speed)| speed).max(),
        lid: Some(simulation.port(first).lid).filter(|lid| lid.is_unicast()),
        sm_lid: Some(simulation.sm_lid(first)).filter(|lid| lid.is_unicast()),
        reading,
        hw: HwReading::default(),
        cm: None,
        netdevs: Vec::new(),
    }
}
