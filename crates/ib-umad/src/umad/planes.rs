//! The SMI side of a multi-plane HCA: a device that has QP0 only, with a port for each plane (kernel: "plane device" of
//! drivers/infiniband/hw/mlx5, Linux 6.11).
//!
//! In sysfs its ports have the state of the whole port. That of a plane is only in the PortInfo that the plane's own port
//! answers to.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use ib_mad::port_info::PortInfo;
use ib_mad::port_state::PortState;
use ib_mad::{Class, DirectedRoute, smp};
use process_clock::Clock;

use super::device::UmadPort;
use super::error::DeviceError;
use super::open_port::OpenPort;
use super::sys::{self, Waited};
use super::system::System;
use crate::plane_set::PlaneSet;
use crate::request::{Address, Request};
use crate::transport::{OutgoingMad, Received, TransportError};

/// How long the ports may take to answer their own host. Firmware does it at once, or, with an M_Key, never.
const TIMEOUT: Duration = Duration::from_millis(100);

/// A plane of a multi-plane HCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneStatus {
    /// Its number, from 1 on.
    pub plane: u8,
    /// The state of its own port; `None` if it does not answer, as with an M_Key.
    pub state: Option<PortState>,
}

impl PlaneStatus {
    /// Whether directed routes may start from it.
    pub fn is_usable(self) -> bool {
        self.state.is_none_or(PortState::is_active)
    }
}

impl fmt::Display for PlaneStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.map_or("state unknown", PortState::name);
        write!(f, "plane {} {state}", self.plane)
    }
}

/// The device through which SMPs are sent, and its planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmiSide {
    /// Its name.
    pub hca: String,
    /// Its planes, by number.
    pub planes: Vec<PlaneStatus>,
}

/// The open planes; at least one.
#[derive(Debug)]
pub(super) struct Planes {
    pub ports: Vec<OpenPort>,
    states: Vec<Option<PortState>>,
    /// The transaction id of the latest check.
    transaction_id: u32,
}

impl Planes {
    /// Opens the ports of a device. Those that cannot be opened are left out, unless none can.
    pub fn open(
        system: &dyn System,
        sysfs: &Path,
        ports: &[UmadPort],
    ) -> Result<Planes, DeviceError> {
        let classes = [Class::SubnetDirected, Class::SubnetLid];
        let (mut opened, mut failure) = (Vec::new(), None);
        for port in ports.iter().filter(|port| (1..=PlaneSet::MAX).contains(&port.port)) {
            match OpenPort::open(system, sysfs, port, &classes) {
                Ok(port) => opened.push(port),
                Err(error @ DeviceError::NoQp0 { .. }) => return Err(error),
                Err(error) => {
                    let (hca, plane) = (&port.hca, port.port);
                    tracing::warn!(hca, plane, %error, "plane skipped: its umad device cannot be opened");
                    failure.get_or_insert(error);
                }
            }
        }
        match (opened.is_empty(), failure) {
            (false, _) => {
                let states = vec![None; opened.len()];
                Ok(Planes { ports: opened, states, transaction_id: u32::MAX })
            }
            (true, Some(error)) => Err(error),
            (true, None) => Err(DeviceError::NoDevice { directory: sysfs.display().to_string() }),
        }
    }

    fn statuses(&self) -> impl Iterator<Item = PlaneStatus> {
        self.ports
            .iter()
            .zip(&self.states)
            .map(|(open, state)| PlaneStatus { plane: open.port.port, state: *state })
    }

    /// The device and its planes.
    pub fn side(&self) -> SmiSide {
        let hca = self.ports.first().map(|open| open.port.hca.clone()).unwrap_or_default();
        SmiSide { hca, planes: self.statuses().collect() }
    }

    /// The planes that are not known to have another state than Active.
    pub fn usable(&self) -> PlaneSet {
        let usable = self.statuses().filter(|status| status.is_usable());
        usable.fold(PlaneSet::EMPTY, |set, status| set.with(status.plane))
    }

    /// The index of a plane's port, if the plane is usable. Plane 0 is the first one that is, and the first of all if none
    /// is: before a subnet manager has configured them, SMPs pass nevertheless.
    pub fn find(&self, plane: u8) -> Option<usize> {
        let mut usable = self.statuses().map(PlaneStatus::is_usable);
        match plane {
            0 => Some(usable.position(|is_usable| is_usable).unwrap_or(0)),
            _ => self.statuses().position(|status| status.plane == plane && status.is_usable()),
        }
    }

    /// Asks each port for its state. What else arrives meanwhile goes to `others`, with the index of the port.
    pub fn check(
        &mut self,
        clock: Clock,
        mut others: impl FnMut(usize, Received),
    ) -> Result<(), TransportError> {
        let before = self.states.clone();
        self.transaction_id = self.transaction_id.wrapping_sub(1);
        let to = Address::Directed(DirectedRoute::LOCAL);
        // Port 0 is the receiving port.
        let request = Request { to, query: smp::port_info(0) };
        let outgoing = OutgoingMad::new(&request, None, self.transaction_id, TIMEOUT, 0);
        let sent = self.ports.iter().map(|port| port.send(&outgoing, 0).is_ok());
        let mut is_open: Vec<bool> = sent.collect();
        self.states.fill(None);
        let until = clock.now() + TIMEOUT;
        while is_open.contains(&true) {
            let is_last = clock.now() >= until;
            self.wait(until.since(clock.now()))?;
            for (index, port) in self.ports.iter_mut().enumerate() {
                while let Some(received) = port.read()? {
                    match received {
                        Received::Mad { mad, .. }
                            if mad.transaction_id() == self.transaction_id
                                && request.query.matches_response(&mad, true) =>
                        {
                            is_open[index] = false;
                            let state = (mad.status() == 0).then(|| PortInfo::decode(&mad).state);
                            self.states[index] = state;
                        }
                        Received::Expired { transaction_id, .. }
                            if transaction_id == self.transaction_id =>
                        {
                            is_open[index] = false;
                        }
                        other => others(index, other),
                    }
                }
            }
            // After the time-out once more: this thread may have been suspended meanwhile.
            if is_last {
                break;
            }
        }
        self.log_changes(&before);
        Ok(())
    }

    fn wait(&self, limit: Duration) -> Result<(), TransportError> {
        let numbers = self.ports.iter().map(OpenPort::number);
        match sys::wait_readable(numbers, limit) {
            Ok(Waited::Gone(index)) => Err(self.gone(index)),
            Err(error) => Err(self.ports[0].gone(&error)),
            Ok(Waited::Readable | Waited::TimedOut) => Ok(()),
        }
    }

    fn gone(&self, index: usize) -> TransportError {
        self.ports[index].gone(&std::io::Error::from_raw_os_error(libc::ENODEV))
    }

    fn log_changes(&self, before: &[Option<PortState>]) {
        let SmiSide { hca, planes } = self.side();
        for (now, before) in planes.into_iter().zip(before) {
            let (plane, before) = (now.plane, PlaneStatus { state: *before, ..now });
            match (before.is_usable(), now.is_usable()) {
                (true, false) => {
                    let state = now.state.map_or("unknown", PortState::name);
                    tracing::warn!(
                        hca,
                        plane,
                        state,
                        "plane skipped: its port is not Active, so the fabric is not discovered from it"
                    );
                }
                (false, true) => tracing::info!(hca, plane, "plane is usable again"),
                _ => {}
            }
        }
    }
}
