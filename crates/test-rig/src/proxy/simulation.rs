//! Our simulation in the place of ibsim's fabric: it responds to all MADs of a proxy's clients, so that programs of
//! infiniband-diags and others run on every scenario. ibsim still serves their control messages.

use std::time::{Duration, SystemTime};

use ib_mad::{Class, Lid, Mad};
use ib_sim::net::PortId;
use ib_sim::transport::{SharedSimulation, SimClock, SimTransport};
use ib_umad::{MadTransport, OutgoingMad, Received};

use super::batch::Packet;

/// Where an ibsim packet has the LIDs, the QPs, the status and the MAD. LIDs have 16 bits, the highest byte first, in
/// fields of 32.
const DLID: usize = 0;
const SLID: usize = 4;
const DQP: usize = 8;
const SQP: usize = 12;
const STATUS: usize = 16;
const MAD: usize = 32;

/// The status of a request without a response: ETIMEDOUT, as the kernel reports it.
const TIMED_OUT: u32 = 110;

/// How long a client waits for a response.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Access to configuration space (attribute 0x50), by which mstflint's library finds out what a device is. Real devices
/// respond to it; no request of ours has it.
const CONFIG_SPACE: u16 = 0x0050;
/// The hardware ID that it reads: Quantum-2.
const HARDWARE_ID: u32 = 0x0257;

/// What serves the MADs of clients. It stands still at the moment to which it has advanced, so that all responses are of
/// one moment.
#[derive(Clone, Debug)]
pub struct Served {
    /// The simulated fabric.
    pub simulation: SharedSimulation,
    /// The port that the clients send from.
    pub port: PortId,
}

/// The responses to one client's requests.
pub(super) struct Responder(SimTransport);

impl Responder {
    pub fn new(served: &Served) -> Self {
        // It begins at 0, and advances by round-trip times only: the simulation is later than that.
        let clock = SimClock::Virtual { began: SystemTime::UNIX_EPOCH };
        Responder(SimTransport::new(served.simulation.clone(), served.port, clock))
    }

    /// The response to a request; one that cannot be delivered comes back with a status.
    pub fn respond(&mut self, request: &Packet) -> Packet {
        let mut packet = *request;
        swap(&mut packet, DLID, SLID);
        swap(&mut packet, DQP, SQP);
        let mut bytes = [0; ib_mad::LEN];
        bytes.copy_from_slice(&request[MAD..]);
        let mad = Mad(bytes);
        match self.response(mad, Lid(u16::from_be_bytes([request[DLID], request[DLID + 1]]))) {
            Some(response) => packet[MAD..].copy_from_slice(&response.0),
            None => packet[STATUS..STATUS + 4].copy_from_slice(&TIMED_OUT.to_be_bytes()),
        }
        packet
    }

    fn response(&mut self, mad: Mad, lid: Lid) -> Option<Mad> {
        let class = Class::ALL.into_iter().find(|class| *class as u8 == mad.class())?;
        if class == Class::Vendor && mad.attribute() == CONFIG_SPACE {
            let mut response = mad.response();
            response.put_be(ib_mad::mad::VENDOR_DATA, 4, HARDWARE_ID.into());
            return Some(response);
        }
        let lid = if mad.is_directed() { Lid::PERMISSIVE } else { lid };
        let (route, qp, qkey, sl, p_key) = (None, 1, 0, 0, None);
        let (plane, timeout) = (0, TIMEOUT);
        let request = OutgoingMad { class, plane, lid, route, qp, qkey, sl, p_key, timeout, mad };
        self.0.send(&request).ok()?;
        let until = self.0.now() + TIMEOUT + Duration::from_secs(1);
        match self.0.receive(until).ok()?? {
            Received::Mad { mad, .. } => Some(mad),
            _ => None,
        }
    }
}

fn swap(packet: &mut Packet, one: usize, other: usize) {
    for byte in 0..4 {
        packet.swap(one + byte, other + byte);
    }
}
