//! The agents of a device: the responses to MADs.

mod forwarding;
mod hierarchy;
mod pma;
mod port_role;
mod sma;
mod vendor;

use std::time::Duration;

use ib_mad::hierarchy::HierarchyInfo;
use ib_mad::smp::{SmInfo, SwitchPortStateTable};
use ib_mad::{Class, Mad, method, status};

use super::net::PortId;
use super::simulation::Simulation;
use crate::change::{FrontPanelBehavior, RegisterBehavior, TableBehavior};

/// How much later a node with [slow](RegisterBehavior::Slow) registers responds to requests of module pages.
const SLOW: Duration = Duration::from_secs(5);

/// The response to a request that came in at a port: an adapter's, or any of a switch's. Nothing is
/// set. `None` without an agent of its class, or if it is not a request.
pub fn response(simulation: &Simulation, at: PortId, request: &Mad) -> Option<Mad> {
    respond(simulation, at, request, false)
}

/// How much later than usual an agent responds; `None` if it does not respond.
pub(crate) fn delay(simulation: &Simulation, at: PortId, request: &Mad) -> Option<Duration> {
    let node = simulation.node(simulation.net().port(at).node);
    let is_table = request.is_smp() && request.attribute() == SwitchPortStateTable::ID;
    if is_table && node.state_table == TableBehavior::Hung {
        return None;
    }
    let is_hierarchy = request.is_smp() && request.attribute() == HierarchyInfo::ID;
    if is_hierarchy && node.front_panel == FrontPanelBehavior::Hung {
        return None;
    }
    match node.registers {
        RegisterBehavior::Slow if vendor::is_module_page(request) => Some(SLOW),
        RegisterBehavior::Hung if vendor::is_module_page(request) => None,
        RegisterBehavior::Normal
        | RegisterBehavior::Absent
        | RegisterBehavior::Refused
        | RegisterBehavior::Slow
        | RegisterBehavior::Hung => Some(Duration::ZERO),
    }
}

/// Whether a node's subnet management agent drops a request for its M_Key. The subnet manager responds to
/// SMInfo, and does not check the M_Key. A port also drops requests of its own host with the empty route: the
/// kernel passes them on without IB_MAD_IGNORE_MKEY (handle_outgoing_dr_smp in drivers/infiniband/core/mad.c;
/// mlx4 leaves the check to the firmware, qib checks it itself).
fn is_refused(simulation: &Simulation, at: PortId, request: &Mad) -> bool {
    let protection = simulation.protection(simulation.net().port(at).node);
    let is_checked = request.is_smp() && request.attribute() != SmInfo::ID;
    is_checked && !protection.admits(request.m_key())
}

/// Whether a node drops a request of the vendor class for its VSKey.
fn lacks_vs_key(simulation: &Simulation, at: PortId, request: &Mad) -> bool {
    request.class() == Class::Vendor as u8 && !vendor::has_vs_key(simulation, at, request)
}

/// Executes a request and makes the [`response`]: a Set of counters, as of tools that clear them,
/// sets them. The response has the new values.
pub fn execute(simulation: &mut Simulation, at: PortId, request: &Mad) -> Option<Mad> {
    let sets = request.class() == Class::Performance as u8
        && request.method() == method::SET
        && request.versions() == [1, 1];
    if is_refused(simulation, at, request) {
        simulation.count_m_key_violation(simulation.net().port(at).node);
        return None;
    }
    if lacks_vs_key(simulation, at, request) {
        simulation.refusals.vs_key += 1;
        return None;
    }
    let is_executed = sets && pma::set(simulation, at, request);
    respond(simulation, at, request, is_executed)
}

fn respond(simulation: &Simulation, at: PortId, request: &Mad, is_executed: bool) -> Option<Mad> {
    let class = Class::from_discriminant(request.class())?;
    let is_response = request.method() & 0x80 != 0;
    let lacks_key = lacks_vs_key(simulation, at, request);
    if is_response || lacks_key || is_refused(simulation, at, request) {
        return None;
    }
    let mut response = request.response();
    let filled = if request.versions() != [1, 1] {
        Err(status::UNSUPPORTED_VERSION)
    } else if request.method() != method::GET && !is_executed {
        // Only counters can be set: the rest changes by the scenario.
        Err(status::UNSUPPORTED_METHOD)
    } else if class.is_smp() {
        sma::fill(simulation, at, request, &mut response)
    } else if class == Class::Vendor {
        vendor::fill(simulation, at, request, &mut response)
    } else {
        pma::fill(simulation, at, request, &mut response)
    };
    response.set_status(filled.err().unwrap_or_default());
    Some(response)
}

#[cfg(test)]
mod tests;
