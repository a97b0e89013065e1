//! LinearForwardingTable of a switch.

use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::{Lid, Mad, status};

use crate::net::PortId;
use crate::simulation::Simulation;

/// The largest linear forwarding table: an entry for each unicast LID, up to 0xbfff.
pub(super) const ENTRIES: u16 = 0xc000;

/// A block of the table of the switch of a port. LIDs that no port of its subnet has are without a route.
pub(super) fn table(
    simulation: &Simulation,
    at: PortId,
    request: &Mad,
) -> Result<LinearForwardingTable, u16> {
    let block = u16::try_from(request.modifier()).map_err(|_| status::INVALID_FIELD)?;
    let blocks = ENTRIES / LinearForwardingTable::PER_BLOCK;
    if block >= blocks {
        return Err(status::INVALID_FIELD);
    }
    let node = simulation.net().port(at).node;
    let first = block * LinearForwardingTable::PER_BLOCK;
    let lids = (first..first + LinearForwardingTable::PER_BLOCK).map(Lid);
    Ok(lids.fold(LinearForwardingTable::EMPTY, |table, lid| match simulation.egress(node, lid) {
        Some(port) => table.with_port(lid, port),
        None => table,
    }))
}
