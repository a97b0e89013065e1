//! The agents of a device: who answers a MAD, and how.

mod pma;
mod sma;

use crate::mad::{Class, Mad, method, status};

use super::net::PortId;
use super::world::World;

/// The answer to a request that came in at a port: an adapter's, or any of a switch's. `None` where
/// nobody says anything: no agent of its class is there, or it is no request at all.
pub fn answer(world: &World, at: PortId, request: &Mad) -> Option<Mad> {
    respond(world, at, request, false)
}

/// Does what a request says, and answers as [`answer`] does: counters are set, as any tool may that
/// clears them. The answer tells how they are after that.
pub fn obey(world: &mut World, at: PortId, request: &Mad) -> Option<Mad> {
    let sets = request.class() == Class::Performance as u8
        && request.method() == method::SET
        && request.versions() == [1, 1];
    let obeyed = sets && pma::set(world, at, request);
    respond(world, at, request, obeyed)
}

fn respond(world: &World, at: PortId, request: &Mad, obeyed: bool) -> Option<Mad> {
    let is_response = request.method() & 0x80 != 0;
    let known = Class::ALL.iter().any(|class| *class as u8 == request.class());
    if is_response || !known {
        return None;
    }
    let mut answer = request.answer();
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
