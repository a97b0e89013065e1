//! Logs the discoveries and sweeps of a fabric's monitor.

use std::time::Duration;

use fabric_observation::MonitorStats;
use ib_fabric::collect::unresponsive::MKeySuspicion;
use ib_fabric::topology::End;
use ib_fabric::{Fabric, change};
use ib_mad::Moment;

use super::Monitor;
use super::log_limiter::NewWarnings;

impl Monitor {
    /// Logs new warnings, and how many more there are.
    pub(super) fn warn(&self, new: &NewWarnings, what_more: &str) {
        let fabric = &self.settings.name;
        for warning in &new.each {
            tracing::warn!(fabric, "{warning}");
        }
        if new.more > 0 {
            tracing::warn!(fabric, more = new.more, "{what_more}");
        }
    }

    /// Logs neighbors that do not respond, each once a day, and the likely cause when it changes.
    pub(super) fn log_unresponsive(
        &mut self,
        new: &[End],
        suspicion: Option<MKeySuspicion>,
        now: Moment,
    ) {
        self.stats.unanswered_ports = self.unanswered.count();
        self.stats.m_key_suspected = suspicion.is_some();
        let warnings = new.iter().map(|(node, port)| {
            format!(
                "the neighbor of node {node} port {port} has a link and answers no subnet management: its agent \
                 hangs, or an M_Key protects it"
            )
        });
        let new = self.log_limiter.filter(warnings, now);
        self.warn(&new, "more neighbors answer no subnet management");
        let fabric = &self.settings.name;
        if suspicion == self.suspicion {
            return;
        }
        self.suspicion = suspicion;
        let remedy = if self.keys.is_empty() {
            "give the M_Key of the subnet manager with --fabric.m-key-file, or set m_key_protection_level 1 in \
             opensm.conf"
        } else {
            "the key of --fabric.m-key-file is not the one that its ports have: compare it with m_key in \
             opensm.conf"
        };
        match suspicion {
            None => tracing::info!(fabric, "an M_Key no longer seems to keep nodes from answering"),
            Some(MKeySuspicion::LocalPort) => tracing::error!(
                fabric,
                "our own port does not answer subnet management from its own host: M_Key protection \
                 (level 2 or 3) is the likely cause; {remedy}; if counters are not answered either, look \
                 at dmesg for an error of the adapter"
            ),
            Some(MKeySuspicion::FirstHop) => tracing::error!(
                fabric,
                "no node beyond our own port answers subnet management, though its link is active: M_Key \
                 protection (level 2 or 3) is the likely cause; {remedy}"
            ),
            Some(MKeySuspicion::ProtectBits(level)) => tracing::error!(
                fabric,
                level,
                unanswered = self.stats.unanswered_ports,
                "our own port has M_Key protection level {level}, and neighbors answer no subnet management: \
                 an M_Key is the likely cause; {remedy}"
            ),
        }
    }

    /// Logs a suspected partition. `has_p_key`: our port has the P_Key of requests; otherwise the transport
    /// has logged it.
    pub(super) fn log_partition(&mut self, adapters_silent: bool, has_p_key: bool) {
        let fabric = &self.settings.name;
        let suspected = adapters_silent || !has_p_key;
        if suspected && has_p_key && !self.stats.partition_suspected {
            tracing::error!(
                fabric,
                "switches answer performance management, and at least 9 of 10 channel adapters do not: our port \
                 is likely a limited member of their partition, or a member of another; doctor shows its P_Keys, \
                 and --fabric.pkey chooses one"
            );
        } else if !suspected && self.stats.partition_suspected {
            tracing::info!(fabric, "channel adapters answer performance management again");
        }
        self.stats.partition_suspected = suspected;
    }
}

/// Logs what a discovery found that is different from the one before, and counts it.
pub(super) fn log_changes(
    stats: &mut MonitorStats,
    name: &str,
    before: Option<&Fabric>,
    after: &Fabric,
    took: Duration,
) {
    let known = before.map_or(&[][..], |before| &before.duplicates);
    for duplicate in
        after.duplicates.iter().filter(|duplicate| known.iter().all(|it| it.guid != duplicate.guid))
    {
        let place = duplicate.location(after);
        tracing::warn!(fabric = name, guid = %duplicate.guid, "a second node with this GUID {place} is left out");
    }
    let present = after.nodes.iter().filter(|node| node.present());
    let switches = present.clone().filter(|node| node.is_switch()).count();
    let (nodes, links) = (present.count(), after.links().count());
    let Some(before) = before else {
        tracing::info!(fabric = name, nodes, switches, links, ?took, "discovered");
        return;
    };
    tracing::debug!(fabric = name, nodes, switches, links, ?took, "discovered");
    for change in change::diff(before, after) {
        tracing::info!(fabric = name, kind = change::CHANGE_KINDS[change.kind()], "{change}");
        stats.changes[change.kind()] += 1;
    }
}
