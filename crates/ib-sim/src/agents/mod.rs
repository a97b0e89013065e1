//! The agents of a device: who answers a MAD, and how.

mod pma;
mod sma;

use ib_mad::smp::SmInfo;
use ib_mad::{Class, Mad, method, status};

use super::net::PortId;
use super::world::World;

/// The answer to a request that came in at a port: an adapter's, or any of a switch's. `None` where
/// nobody says anything: no agent of its class is there, or it is no request at all.
pub fn answer(world: &World, at: PortId, request: &Mad) -> Option<Mad> {
    respond(world, at, request, false)
}

/// Whether a node's subnet management agent drops a request for its M_Key. SMInfo is the subnet
/// manager's, which looks at no M_Key. A port also drops what its own host asks by the empty route:
/// the kernel passes it on without IB_MAD_IGNORE_MKEY (handle_outgoing_dr_smp in
/// drivers/infiniband/core/mad.c; mlx4 leaves the check to the firmware, qib checks it itself).
fn is_refused(world: &World, at: PortId, request: &Mad) -> bool {
    let protection = world.protection(world.net().port(at).node);
    let is_checked = request.is_smp() && request.attribute() != SmInfo::ID;
    is_checked && !protection.admits(request.m_key())
}

/// Does what a request says, and answers as [`answer`] does: counters are set, as any tool may that
/// clears them. The answer tells how they are after that.
pub fn obey(world: &mut World, at: PortId, request: &Mad) -> Option<Mad> {
    let sets = request.class() == Class::Performance as u8
        && request.method() == method::SET
        && request.versions() == [1, 1];
    if is_refused(world, at, request) {
        world.count_m_key_violation(world.net().port(at).node);
        return None;
    }
    let obeyed = sets && pma::set(world, at, request);
    respond(world, at, request, obeyed)
}

fn respond(world: &World, at: PortId, request: &Mad, obeyed: bool) -> Option<Mad> {
    let is_response = request.method() & 0x80 != 0;
    let known = Class::ALL.iter().any(|class| *class as u8 == request.class());
    if is_response || !known || is_refused(world, at, request) {
        return None;
    }
    let mut answer = request.response();
    let status = if request.versions() != [1, 1] {
        status::UNSUPPORTED_VERSION
    } else if request.method() != method::GET && !obeyed {
        // But for counters the fabric is only read: it changes by its story alone.
        status::UNSUPPORTED_METHOD
    } else if request.is_smp() {
        sma::fill(world, at, request, &mut answer)
    } else {
        pma::fill(world, at, request, &mut answer)
    };
    answer.set_status(status);
    Some(answer)
}

/// What an agent says that has filled its answer in.
const FINE: u16 = 0;

#[cfg(test)]
mod tests;
