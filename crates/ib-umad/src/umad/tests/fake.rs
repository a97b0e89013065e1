//! A host whose umad devices have only the queue pairs that the test gives them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ib_mad::port_info::PortInfo;
use ib_mad::port_state::PortState;
use ib_mad::{Class, Mad};

use crate::umad::file::UmadFile;
use crate::umad::system::System;
use crate::umad::{DeviceError, HeaderFormat, PortChoice, Umad, UmadPort};
use rdma_netlink::SmiDevice;

/// The queue pairs of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePairs {
    Both,
    OnlyQp0,
    OnlyQp1,
}

/// A device of the host; all of its ports are equal.
#[derive(Clone, Debug)]
pub struct Device {
    pub name: &'static str,
    pub ports: u8,
    pub queue_pairs: QueuePairs,
    pub guid: u64,
    pub cap_mask: u32,
    pub layer: &'static str,
    /// Its PCI function.
    pub function: &'static str,
}

pub const GUID: u64 = 0xe09d_7303_0012_3456;
pub const IS_SM_DISABLED: u32 = 0x400;

impl Device {
    /// An InfiniBand device on a function of its own.
    pub fn new(name: &'static str, ports: u8, queue_pairs: QueuePairs) -> Self {
        let (guid, cap_mask, layer) = (GUID, 0x2651_e848, "InfiniBand");
        Device { name, ports, queue_pairs, guid, cap_mask, layer, function: name }
    }

    /// A multi-plane HCA without QP0, and the device that has it.
    pub fn pair() -> [Device; 2] {
        let parent = Device::new("mlx5_0", 1, QueuePairs::OnlyQp1);
        let smi = Device::new("planes", 4, QueuePairs::OnlyQp0);
        [
            Device { cap_mask: parent.cap_mask | IS_SM_DISABLED, ..parent },
            Device { function: "mlx5_0", ..smi },
        ]
    }
}

/// A port, by device and number.
pub type PortName = (String, u8);

/// What happened on the descriptors, and how ports answer.
#[derive(Debug, Default)]
pub struct Wire {
    /// The ports in the order in which they were opened.
    pub opened: Vec<PortName>,
    /// The classes in the order in which they were registered.
    pub registered: Vec<(PortName, u8)>,
    pub sent: Vec<(PortName, Mad)>,
    /// The states of ports; those without one do not answer.
    pub states: BTreeMap<PortName, PortState>,
    /// Through which port the next response comes instead.
    pub diverted_to: Option<PortName>,
    pub asked_kernel: usize,
    sockets: BTreeMap<PortName, UnixStream>,
}

/// The host.
pub struct FakeHost {
    sysfs: tempfile::TempDir,
    devices: Vec<Device>,
    pub wire: Arc<Mutex<Wire>>,
    pub smi_devices: Vec<SmiDevice>,
    pub kernel: &'static str,
    /// The error of opening the umad devices of a device.
    pub closed: Option<(&'static str, i32)>,
    /// The error of registering a class.
    pub refused: Option<(Class, i32)>,
}

impl FakeHost {
    pub fn new(devices: impl IntoIterator<Item = Device>) -> Self {
        let sysfs = tempfile::tempdir().unwrap();
        let devices: Vec<Device> = devices.into_iter().collect();
        let mut umads = 0;
        for device in &devices {
            let place = sysfs.path().join("class/infiniband").join(device.name);
            for number in 1..=device.ports {
                let port = place.join(format!("ports/{number}"));
                fs::create_dir_all(port.join("gids")).unwrap();
                let gid =
                    std::net::Ipv6Addr::from_bits(0xfe80_u128 << 112 | u128::from(device.guid));
                let write = |name: &str, text: &str| {
                    fs::write(port.join(name), format!("{text}\n")).unwrap();
                };
                write("gids/0", &gid.to_string());
                write("cap_mask", &format!("{:#x}", device.cap_mask));
                write("link_layer", device.layer);
                write("state", "4: ACTIVE");
                write("phys_state", "5: LinkUp");
                write("lid", "0x2ff");
                let umad = sysfs.path().join(format!("class/infiniband_mad/umad{umads}"));
                fs::create_dir_all(&umad).unwrap();
                fs::write(umad.join("ibdev"), format!("{}\n", device.name)).unwrap();
                fs::write(umad.join("port"), format!("{number}\n")).unwrap();
                umads += 1;
            }
            symlink(format!("../../../{}", device.function), place.join("device")).unwrap();
        }
        let ports = devices.iter().flat_map(|it| (1..=it.ports).map(|port| (it.name.into(), port)));
        let states = ports.map(|port| (port, PortState::Active)).collect();
        let wire = Arc::new(Mutex::new(Wire { states, ..Wire::default() }));
        let (smi_devices, closed, refused) = (Vec::new(), None, None);
        FakeHost { sysfs, devices, wire, smi_devices, kernel: "6.14.0", closed, refused }
    }

    pub fn sysfs(&self) -> &Path {
        self.sysfs.path()
    }

    /// Writes a file of a device.
    pub fn put(&self, device: &str, file: &str, text: &str) {
        let place = self.sysfs().join("class/infiniband").join(device);
        fs::write(place.join(file), format!("{text}\n")).unwrap();
    }

    /// Removes the umad devices of a device, as when it is deleted.
    pub fn remove(&self, device: &str) {
        let class = self.sysfs().join("class/infiniband_mad");
        for entry in fs::read_dir(class).unwrap() {
            let path = entry.unwrap().path();
            if fs::read_to_string(path.join("ibdev")).unwrap().trim() == device {
                fs::remove_dir_all(path).unwrap();
            }
        }
    }

    pub fn open(&self, choice: PortChoice<'_>) -> Result<(UmadPort, Umad), DeviceError> {
        let clock = process_clock::Clock::start();
        Umad::open_chosen(self, self.sysfs(), choice, None, clock, &|_| None)
    }

    /// What is opened: the HCA, and the SMI side if there is one; else the error.
    pub fn chosen(&self, choice: PortChoice<'_>) -> Result<(String, Option<String>), String> {
        let opened = self.open(choice).map_err(|error| error.to_string());
        opened.map(|(port, umad)| (port.hca, umad.smi_side().map(|side| side.hca)))
    }
}

impl System for FakeHost {
    fn open(&self, device: &Path) -> io::Result<Box<dyn UmadFile>> {
        let ports = UmadPort::all(self.sysfs());
        let port = ports.into_iter().find(|port| port.device == device);
        let port = port.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        if let Some((_, code)) = self.closed.filter(|(name, _)| *name == port.hca) {
            return Err(io::Error::from_raw_os_error(code));
        }
        let device = self.devices.iter().find(|device| device.name == port.hca).unwrap();
        let name = (port.hca, port.port);
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut wire = self.wire.lock().unwrap();
        wire.opened.push(name.clone());
        wire.sockets.insert(name.clone(), theirs);
        let (queue_pairs, refused) = (device.queue_pairs, self.refused);
        Ok(Box::new(FakeFile { name, queue_pairs, refused, ours, wire: Arc::clone(&self.wire) }))
    }

    fn smi_devices(&self) -> Vec<SmiDevice> {
        self.wire.lock().unwrap().asked_kernel += 1;
        self.smi_devices.clone()
    }

    fn kernel_release(&self) -> Option<String> {
        Some(self.kernel.to_owned())
    }
}

#[derive(Debug)]
struct FakeFile {
    name: PortName,
    queue_pairs: QueuePairs,
    refused: Option<(Class, i32)>,
    ours: UnixStream,
    wire: Arc<Mutex<Wire>>,
}

const HEADER: usize = 64;

impl UmadFile for FakeFile {
    fn register(&self, _: HeaderFormat, qpn: u8, class: u8) -> io::Result<u32> {
        if let Some((_, code)) = self.refused.filter(|(refused, _)| *refused as u8 == class) {
            return Err(io::Error::from_raw_os_error(code));
        }
        match (self.queue_pairs, qpn) {
            (QueuePairs::OnlyQp0, 1) | (QueuePairs::OnlyQp1, 0) => {
                Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT))
            }
            _ => {
                let mut wire = self.wire.lock().unwrap();
                wire.registered.push((self.name.clone(), class));
                Ok(wire.registered.len() as u32)
            }
        }
    }

    /// Firmware answers at once, if it does.
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mad = Mad(*bytes[HEADER..].first_chunk().unwrap());
        let mut wire = self.wire.lock().unwrap();
        wire.sent.push((self.name.clone(), mad.clone()));
        if let Some(state) = wire.states.get(&self.name).copied() {
            let mut response = mad.response();
            if mad.is_smp() && mad.attribute() == PortInfo::ID {
                PortInfo { state, ..PortInfo::default() }.encode(&mut response);
            }
            let packet = [&bytes[..HEADER], &response.0].concat();
            let by = wire.diverted_to.take().unwrap_or_else(|| self.name.clone());
            (&wire.sockets[&by]).write_all(&packet)?;
        }
        Ok(bytes.len())
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        // Each packet has the length of the reader's buffer.
        (&self.ours).read(bytes)
    }

    fn number(&self) -> libc::c_int {
        self.ours.as_raw_fd()
    }
}
