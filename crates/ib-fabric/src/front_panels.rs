//! Front-panel names of ports, as HierarchyInfo reports them: kept from discovery to discovery, because they change
//! only with a device's firmware or its configuration.

use std::collections::HashMap;
use std::sync::Arc;

use ib_mad::ids::PortNumber;
use ib_mad::{FrontPanel, Guid, PortKey};

use super::backoff::Backoff;

/// What is known of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    panel: Option<FrontPanel>,
    /// The port need not be asked.
    is_current: bool,
}

/// Why a device is not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Silence {
    /// It refuses the attribute.
    is_refused: bool,
    backoff: Backoff,
}

/// What is known of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Device {
    /// By port number.
    ports: Vec<Answer>,
    silence: Silence,
    /// The version of the firmware that reported them, if it is known.
    firmware: Option<[u32; 3]>,
}

/// The front-panel names of a fabric's ports.
#[derive(Clone, Debug, Default)]
pub struct FrontPanels {
    /// Shared by the fabrics between which nothing of a device changed.
    devices: HashMap<Guid, Arc<Device>>,
}

impl FrontPanels {
    /// The front-panel name of a port.
    pub fn get(&self, PortKey { guid, number }: PortKey) -> Option<&FrontPanel> {
        self.devices.get(&guid)?.ports.get(usize::from(number))?.panel.as_ref()
    }

    /// Whether a port has responded, be it that it has no name.
    pub fn has_answered(&self, PortKey { guid, number }: PortKey) -> bool {
        let known = self.devices.get(&guid).and_then(|it| it.ports.get(usize::from(number)));
        known.is_some_and(|answer| answer.is_current || answer.panel.is_some())
    }

    /// Whether nothing is known of any device.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// The front-panel names that are known.
    pub fn iter(&self) -> impl Iterator<Item = (PortKey, &FrontPanel)> {
        self.devices.iter().flat_map(|(guid, device)| {
            let ports = (0..=PortNumber::MAX).zip(&device.ports);
            ports.filter_map(|(number, known)| {
                Some((PortKey::new(*guid, number), known.panel.as_ref()?))
            })
        })
    }

    /// Whether a port is a plane of several.
    pub fn has_planes(&self) -> bool {
        self.iter().any(|(_, panel)| panel.is_plane())
    }

    /// Whether a port is to be asked.
    pub(crate) fn is_due(&self, PortKey { guid, number }: PortKey) -> bool {
        let Some(device) = self.devices.get(&guid) else { return true };
        let Silence { is_refused, backoff } = device.silence;
        let is_current = |answer: &Answer| answer.is_current;
        !is_refused
            && backoff.is_due()
            && !device.ports.get(usize::from(number)).is_some_and(is_current)
    }

    fn device_mut(&mut self, guid: Guid) -> &mut Device {
        Arc::make_mut(self.devices.entry(guid).or_default())
    }

    /// A port has responded; `None` if it has no name.
    pub fn insert(&mut self, PortKey { guid, number }: PortKey, panel: Option<FrontPanel>) {
        let device = self.device_mut(guid);
        let index = usize::from(number);
        if device.ports.len() <= index {
            device.ports.reserve_exact(index + 1 - device.ports.len());
            device.ports.resize(index + 1, Answer::default());
        }
        device.ports[index] = Answer { panel, is_current: true };
        device.silence = Silence::default();
    }

    /// A device refuses the attribute: it is not asked again until it returns or has other firmware.
    pub(crate) fn refuse(&mut self, guid: Guid) {
        let device = self.device_mut(guid);
        device.ports = Vec::new();
        device.silence = Silence { is_refused: true, ..Silence::default() };
    }

    /// A device did not respond: it is asked again in a later discovery, each time later.
    pub(crate) fn lose(&mut self, guid: Guid) {
        let silence = &mut self.device_mut(guid).silence;
        silence.backoff = silence.backoff.lost();
    }

    /// A discovery begins: devices that did not respond are a discovery closer to the next try.
    pub(crate) fn on_discovery(&mut self) {
        let is_skipped = |device: &&mut Arc<Device>| !device.silence.backoff.is_due();
        for device in self.devices.values_mut().filter(is_skipped) {
            let silence = &mut Arc::make_mut(device).silence;
            silence.backoff = silence.backoff.at_discovery();
        }
    }

    /// A device may have other names now: each of its ports is asked again, and known until it responds.
    pub(crate) fn expire(&mut self, guid: Guid) {
        let is_known = |device: &&mut Arc<Device>| {
            device.silence != Silence::default() || device.ports.iter().any(|it| it.is_current)
        };
        if let Some(device) = self.devices.get_mut(&guid).filter(is_known) {
            let device = Arc::make_mut(device);
            device.silence = Silence::default();
            for answer in &mut device.ports {
                answer.is_current = false;
            }
        }
    }

    /// The version of a device's firmware is known. Another one than before may have other names.
    pub(crate) fn on_firmware(&mut self, guid: Guid, version: [u32; 3]) {
        let Some(device) = self.devices.get(&guid) else { return };
        let before = device.firmware;
        if before == Some(version) {
            return;
        }
        self.device_mut(guid).firmware = Some(version);
        if before.is_some() {
            self.expire(guid);
        }
    }

    /// Forgets all devices but these.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&Guid) -> bool) {
        self.devices.retain(|guid, _| is_kept(guid));
    }
}
