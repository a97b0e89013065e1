//! A route of data packets: the nodes that they pass from a port to a LID, and where it ends if it does not get there.

use std::collections::HashSet;

use ib_mad::forwarding_table::ForwardingEntry;
use ib_mad::{Lid, PortKey, PortNumber};
use thiserror::Error;

use super::lids::{lids_of_port, may_have_lid};
use super::reader::Lookup;
use super::tables_read::Unread;
use crate::topology::Fabric;
use crate::{NodeIndex, PortIndex};

/// A node on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node.
    pub node: NodeIndex,
    /// The port by which packets come in; `None` where the route begins.
    pub ingress: Option<PortIndex>,
    /// The port by which they leave; `None` where the route ends.
    pub egress: Option<PortIndex>,
}

/// The route from a port to a LID, by the linear forwarding tables of the switches between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination LID, DLID. A port with an LMC has several, each with a route of its own.
    pub lid: Lid,
    /// From the node that sends to the one that has the LID, both included. Of a node to itself it is one hop.
    pub hops: Vec<Hop>,
}

impl Route {
    /// The ports by which packets are sent, in order: each names a link in the direction that the route takes.
    pub fn egress_ports(&self) -> impl Iterator<Item = PortIndex> + '_ {
        self.hops.iter().filter_map(|hop| hop.egress)
    }
}

/// A route that does not reach its LID, or of which a table was not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no route to LID {lid} was found: {cause}")]
pub struct BrokenRoute {
    /// The destination LID.
    pub lid: Lid,
    /// The nodes up to the one where it ends.
    pub hops: Vec<Hop>,
    /// Why it ends there.
    pub cause: RouteBreak,
}

/// Why a route ends before its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RouteBreak {
    /// The forwarding table has no entry for the LID (255): the switch discards its packets.
    #[error("the switch has no entry for the LID")]
    NoEntry,
    /// The entry names a port that the switch does not have.
    #[error("the entry names port {0}, which the switch does not have")]
    NoSuchPort(PortNumber),
    /// The latest discovery found no link at the port by which the packets leave.
    #[error("port {0} has no link")]
    NoLink(PortNumber),
    /// The packets come back to a switch where they have been, and so circle until their lifetime ends.
    #[error("the tables lead back to this switch")]
    Loop,
    /// The packets arrive at a node that does not have the LID and does not forward them.
    #[error("this node does not have the LID")]
    OtherNode,
    /// The table of the switch was not read.
    #[error("the table of the switch was not read: {0}")]
    NotRead(Unread),
}

impl BrokenRoute {
    /// The node where it ends; `None` if it does not even begin.
    pub fn end(&self) -> Option<NodeIndex> {
        self.hops.last().map(|hop| hop.node)
    }

    /// Where it ends and why, with the name of the node.
    pub fn describe(&self, fabric: &Fabric) -> String {
        let place = self.end().map(|node| fabric.node(node).name.clone());
        let place = place.map_or_else(String::new, |name| format!("{name}: "));
        format!("{place}{}", self.cause)
    }
}

/// Follows the tables from a port to a LID.
pub(super) fn trace(
    fabric: &Fabric,
    look_up: impl Fn(NodeIndex, Lid) -> Lookup,
    from: PortIndex,
    lid: Lid,
) -> Result<Route, BrokenRoute> {
    let mut hops = Vec::new();
    match follow(fabric, look_up, from, lid, &mut hops) {
        Ok(()) => Ok(Route { lid, hops }),
        Err(cause) => Err(BrokenRoute { lid, hops, cause }),
    }
}

fn follow(
    fabric: &Fabric,
    look_up: impl Fn(NodeIndex, Lid) -> Lookup,
    from: PortIndex,
    lid: Lid,
    hops: &mut Vec<Hop>,
) -> Result<(), RouteBreak> {
    let mut seen = HashSet::new();
    let mut at = fabric.port(from).node;
    let mut ingress = None;
    loop {
        hops.push(Hop { node: at, ingress, egress: None });
        let is_switch = fabric.node(at).is_switch();
        // An adapter has a LID for each port, a switch one for all.
        let port0 = fabric.ports_of(at).next().filter(|_| is_switch);
        let has_lid = |port| lids_of_port(fabric, port).contains(&u32::from(lid.0));
        let has_arrived = match ingress.filter(|_| !is_switch) {
            Some(ingress) => may_have_lid(fabric, ingress, lid),
            None => has_lid(port0.unwrap_or(from)),
        };
        if has_arrived {
            return Ok(());
        }
        let egress = if is_switch {
            if !seen.insert(at) {
                return Err(RouteBreak::Loop);
            }
            let number = match look_up(at, lid) {
                // Port 0 is the switch itself.
                Lookup::Entry(ForwardingEntry::Port(0)) => {
                    let is_here = port0.is_some_and(|port| may_have_lid(fabric, port, lid));
                    return if is_here { Ok(()) } else { Err(RouteBreak::OtherNode) };
                }
                Lookup::Entry(ForwardingEntry::Port(number)) => number,
                Lookup::Entry(ForwardingEntry::NoRoute) => return Err(RouteBreak::NoEntry),
                Lookup::Unread => return Err(RouteBreak::NotRead(Unread::Ended)),
            };
            let key = PortKey::new(fabric.node(at).identity.guid, number);
            fabric.find(key).ok_or(RouteBreak::NoSuchPort(number))?
        } else if ingress.is_none() {
            from
        } else {
            return Err(RouteBreak::OtherNode);
        };
        if let Some(hop) = hops.last_mut() {
            hop.egress = Some(egress);
        }
        let peer = fabric.port(egress).connected_peer();
        let peer = peer.ok_or(RouteBreak::NoLink(fabric.port(egress).number))?;
        (at, ingress) = (fabric.port(peer).node, Some(peer));
    }
}
