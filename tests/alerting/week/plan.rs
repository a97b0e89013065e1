//! What happens on a host, and what must be alerted.

use std::ops::Range;

use ib_mad::{Guid, PortNumber};
use ib_sim::rng::Rng;
use rdma_host::model::PortKind;

use super::expected::{Alert, Expected, Place};
use super::hardware::{self, Role};
use super::host::{Minute, Presence, SimHost, Slot};

/// Something that is done to a host.
pub type Action = Box<dyn Fn(&mut SimHost)>;

/// A kind of event, of faults or of everyday life.
#[derive(Clone, Copy)]
pub struct Happening {
    pub name: &'static str,
    /// On which hosts it can happen.
    pub roles: &'static [Role],
    /// How long the host has nothing else to do with it.
    pub minutes: Minute,
    /// How often a link is lost by it: three times within 12 hours are flapping. 1 also if it would end the alert about
    /// flapping, or give it another name.
    pub losses: u32,
    pub scope: Scope,
    pub plan: fn(&mut Plan<'_>),
}

/// How many hosts have part in a happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Host,
    /// A host, and at the same time no other one of the fabric.
    OnlyHost,
    /// All hosts of a role.
    Fabric,
}

/// What happens on a host from some minute on.
pub struct Plan<'a> {
    pub role: Role,
    /// Which of the hosts that have part in it.
    pub nth: usize,
    pub start: Minute,
    /// The host as it is then: its names and GUIDs. Only reading it has a meaning.
    pub host: &'a mut SimHost,
    pub rng: &'a mut Rng,
    pub actions: Vec<(Minute, Action)>,
    pub expected: Vec<Expected>,
    /// The device that has another GUID from then on.
    pub swapped: Option<(Slot, Guid)>,
}

impl Plan<'_> {
    /// Does something to the host so many minutes after the start.
    pub fn at(&mut self, after: Minute, action: impl Fn(&mut SimHost) + 'static) {
        self.actions.push((self.start + after, Box::new(action)));
    }

    /// A number in a range.
    pub fn minutes(&mut self, range: Range<Minute>) -> Minute {
        let size = u64::from(range.end - range.start);
        range.start + self.rng.below(size) as Minute
    }

    /// One of the adapters that have a cable of their own.
    pub fn adapter(&mut self) -> Slot {
        let all = adapters(self.role);
        all[self.rng.below(all.len() as u64) as usize]
    }

    /// An alert about a port or device, whose fault is there for these minutes after the start.
    pub fn expect(&mut self, alert: &'static Alert, slot: Slot, fault: Range<Minute>) {
        self.expect_at(alert, slot, 0, fault);
    }

    /// The same, about one of the interfaces of the port.
    pub fn expect_at(
        &mut self,
        alert: &'static Alert,
        slot: Slot,
        netdev: usize,
        fault: Range<Minute>,
    ) {
        let (instance, fabric) = (self.host.instance(), self.host.fabric.to_string());
        let device = &self.host.at(slot).device;
        let port = &device.ports[0];
        let place = Place {
            instance,
            fabric,
            guid: device.info.guid.unwrap().to_string(),
            port: port.number.to_string(),
            device: device.name.to_string(),
            netdev: port.netdevs.get(netdev).map(|it| it.name.to_string()).unwrap_or_default(),
        };
        let fault = self.start + fault.start..self.start + fault.end;
        self.expected.push(Expected::new(alert, place, fault));
    }

    /// Loses the link of a port for a minute.
    pub fn flap(&mut self, slot: Slot, after: Minute) {
        self.at(after, move |host| host.set_cable(slot, FIRST_PORT, false));
        self.at(after + 1, move |host| host.set_cable(slot, FIRST_PORT, true));
    }

    /// Shuts the host down, and boots it again some minutes later. Its ports with a subnet manager are Active later.
    pub fn reboot(&mut self, after: Minute, down: Minute, managed: Minute) {
        let role = self.role;
        // The drivers end before the exporter does, and some readings see it.
        self.at(after, |host| host.hidden = host.slots());
        self.at(after + 1, |host| host.set_exporter(false));
        self.at(after + down, move |host| {
            host.set_exporter(true);
            host.slots().into_iter().for_each(|slot| host.renew(slot));
            host.hidden = host.slots().split_off(1);
            set_booting(host, role, true);
        });
        self.at(after + down + 1, |host| host.hidden = host.slots().split_off(2));
        self.at(after + down + 2, move |host| {
            host.hidden.clear();
            if role == Role::Lag {
                set_bonded(host, true);
            }
        });
        self.at(after + managed, move |host| set_booting(host, role, false));
    }
}

/// The port of devices that have one.
pub const FIRST_PORT: PortNumber = 1;

/// The places of adapters with a cable of their own, whose interfaces are in no bond.
fn adapters(role: Role) -> &'static [Slot] {
    match role {
        Role::InfiniBand | Role::Small | Role::Mlx5 | Role::Edge | Role::Bnxt | Role::Irdma => {
            &[Slot(0), Slot(1)]
        }
        Role::Lag => &[Slot(3)],
        Role::Switchdev => &[Slot(0), Slot(2)],
        Role::MultiPlane | Role::SocketDirect => &[Slot(2)],
        Role::Nvlink => &[Slot(4), Slot(5)],
    }
}

/// Whether the interfaces of a host with RoCE LAG have joined their bond.
fn set_bonded(host: &mut SimHost, is: bool) {
    host.set_present(Slot(0), is);
    for slot in hardware::UNBONDED {
        host.set_present(slot, !is);
    }
}

/// Whether a host boots: then ports of InfiniBand wait for the subnet manager, interfaces are not set up, and there are
/// no virtual functions.
fn set_booting(host: &mut SimHost, role: Role, is: bool) {
    for slot in host.slots() {
        let kind = host.at(slot).device.kind;
        match kind {
            PortKind::Physical => {
                let device = host.at(slot);
                for (port, line) in device.device.ports.iter().zip(&mut device.lines) {
                    match &*port.link_layer {
                        "Ethernet" => line.is_enabled = !is,
                        _ => line.is_activated = !is,
                    }
                }
            }
            PortKind::VirtualFunction | PortKind::SubFunction if is => {
                host.at(slot).presence = Presence::Absent;
            }
            _ => {}
        }
    }
    if is && role == Role::Lag {
        set_bonded(host, false);
    }
}
