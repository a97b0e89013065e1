//! Logs the discoveries and sweeps of a fabric's monitor. A problem that each of them finds is logged once a day.

use std::collections::HashMap;
use std::time::Duration;

use crate::config::FabricSettings;
use fabric_observation::{MonitorStats, NewMaster};
use ib_fabric::collect::unresponsive::MKeySuspicion;
use ib_fabric::{Fabric, change};
use ib_mad::{Moment, PortKey};

/// The time in which a warning is not logged again.
const PERIOD: Duration = Duration::from_secs(24 * 3600);
/// How many warnings are logged one by one at a time.
const MAX_AT_ONCE: usize = 8;
/// How many different warnings are kept: 1 MB. Further ones are not logged.
const MAX_KNOWN: usize = 8192;

/// The warnings of the last day, and when each was logged.
#[derive(Debug, Default)]
pub(super) struct LogLimiter {
    logged: HashMap<String, Moment>,
}

impl LogLimiter {
    /// The warnings that were not logged within the last day, and how many more there are.
    pub(super) fn filter(&mut self, warnings: Vec<String>, now: Moment) -> (Vec<String>, usize) {
        self.logged.retain(|_, at| now.since(*at) < PERIOD);
        let (mut each, mut more) = (Vec::new(), 0);
        for warning in warnings {
            if self.logged.len() >= MAX_KNOWN || self.logged.contains_key(&warning) {
                continue;
            }
            self.logged.insert(warning.clone(), now);
            if each.len() < MAX_AT_ONCE {
                each.push(warning);
            } else {
                more += 1;
            }
        }
        (each, more)
    }

    /// Logs those of some warnings that are new, and how many more there are.
    pub(super) fn warn(&mut self, warnings: Vec<String>, now: Moment, what_more: &str) {
        let (each, more) = self.filter(warnings, now);
        for warning in each {
            tracing::warn!("{warning}");
        }
        if more > 0 {
            tracing::warn!(more, "{what_more}");
        }
    }

    /// Whether this warning was not logged within the last day.
    pub(super) fn is_new(&mut self, warning: &str, now: Moment) -> bool {
        !self.filter(vec![warning.to_owned()], now).0.is_empty()
    }
}

/// What is said of neighbors that do not respond.
pub(super) fn unresponsive_neighbors(ports: &[PortKey]) -> Vec<String> {
    let warnings = ports.iter().map(|PortKey { guid: node, number: port }| {
        format!(
            "neighbor of node {node} port {port} does not respond to subnet management: its agent hangs, \
             or an M_Key protects it"
        )
    });
    warnings.collect()
}

/// Logs a suspicion that changed. `has_keys`: the exporter has M_Keys, which must be wrong then.
pub(super) fn log_m_key_suspicion(
    suspicion: Option<MKeySuspicion>,
    has_keys: bool,
    unresponsive: usize,
) {
    let remedy = if has_keys {
        "the M_Key in --fabric.m-key-file differs from that of the ports: compare it with m_key in \
         opensm.conf"
    } else {
        "set --fabric.m-key-file to a file with the M_Key of the subnet manager, or set \
         m_key_protection_level 1 in opensm.conf"
    };
    match suspicion {
        None => tracing::info!("M_Key protection no longer suspected"),
        Some(MKeySuspicion::LocalPort) => tracing::error!(
            "M_Key protection suspected (level 2 or 3): this host's own port does not respond to subnet \
             management; {remedy}; if its counters cannot be read either, check dmesg for adapter errors"
        ),
        Some(MKeySuspicion::LocalDriver) => tracing::error!(
            "M_Key protection suspected (level 2 or 3): the driver of this host's own port refuses its subnet \
             management; {remedy}; if the port is a virtual function, which may have none, monitor the fabric \
             from a physical one"
        ),
        Some(MKeySuspicion::FirstHop) => tracing::error!(
            "M_Key protection suspected (level 2 or 3): the link of this port is active, but no other node \
             responds to subnet management; {remedy}"
        ),
        Some(MKeySuspicion::ProtectBits(level)) => tracing::error!(
            level,
            unresponsive,
            "M_Key protection suspected: this port has M_Key protection level {level}, and neighbors do \
             not respond to subnet management; {remedy}"
        ),
    }
}

/// Logs that a VSKey is suspected, or not any longer. `has_keys`: the exporter has VSKeys, which must be wrong then.
pub(super) fn log_vs_key_suspicion(is_suspected: bool, has_keys: bool) {
    let remedy = if has_keys {
        "the VSKey in --fabric.vs-key-file differs from that of the devices: compare it with that of the key manager"
    } else {
        "set --fabric.vs-key-file to a file with the VSKey of the key manager, or --no-fabric.registers"
    };
    if is_suspected {
        tracing::error!(
            "VSKey suspected: at least 32 devices do not respond to the vendor class, and fewer do; registers are not \
             read, and three devices a minute are probed; {remedy}"
        );
    } else {
        tracing::info!("VSKey no longer suspected: devices respond to the vendor class");
    }
}

/// Logs that another subnet manager is the master.
pub(super) fn log_new_master(new: NewMaster, fabric: &Fabric) {
    let node = &fabric.node_of(new.port).name;
    if let Some(PortKey { guid: before, number: port }) = new.before {
        tracing::info!(node, %before, port, "master SM changed");
    } else {
        tracing::info!(node, "master SM found");
    }
}

/// Logs that a wrong partition is suspected, or not any longer.
pub(super) fn log_partition_suspicion(is_suspected: bool) {
    if is_suspected {
        tracing::error!(
            "wrong partition suspected: switches respond to performance management, but at least 9 of 10 \
             channel adapters do not: this port is likely a limited member of their partition, or not a \
             member; list its P_Keys with doctor, and select one with --fabric.pkey"
        );
    } else {
        tracing::info!(
            "wrong partition no longer suspected: channel adapters respond to performance management"
        );
    }
}

/// Warns if a sweep of so many MADs cannot end in its interval, with the limit of MADs per second.
pub(super) fn warn_of_limit(
    limiter: &mut LogLimiter,
    settings: &FabricSettings,
    mads: usize,
    now: Moment,
) {
    let (takes, interval) = (settings.pace.least_time(mads), settings.interval);
    let warning = "sweep may take longer than its interval: --fabric.max-mads-per-second is too low (logged once a \
                   day)";
    if takes > interval && limiter.is_new(warning, now) {
        tracing::warn!(mads, ?takes, ?interval, "{warning}");
    }
}

/// Logs what a discovery found that is different from the one before, and counts it.
pub(super) fn log_changes(
    stats: &mut MonitorStats,
    before: Option<&Fabric>,
    after: &Fabric,
    took: Duration,
) {
    let known = before.map_or(&[][..], |before| &before.duplicates);
    for duplicate in
        after.duplicates.iter().filter(|duplicate| known.iter().all(|it| it.guid != duplicate.guid))
    {
        let place = duplicate.location(after);
        tracing::warn!(guid = %duplicate.guid, "duplicate GUID: ignoring the second node {place}");
    }
    let present = after.nodes.iter().filter(|node| node.present());
    let switches = present.clone().filter(|node| node.is_switch()).count();
    let (nodes, links) = (present.count(), after.links().count());
    let Some(before) = before else {
        tracing::info!(nodes, switches, links, ?took, "discovery finished");
        return;
    };
    tracing::debug!(nodes, switches, links, ?took, "discovery finished");
    for change in change::diff(before, after) {
        let (kind, text) = change.describe();
        tracing::info!(kind = change::CHANGE_KINDS[kind], "{text}");
        stats.changes[kind] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Moment {
        Moment::default() + Duration::from_secs(hours * 3600)
    }

    #[test]
    fn warning_is_new_once_a_day_and_few_at_a_time() {
        let mut limiter = LogLimiter::default();
        let warnings = |count: usize| (0..count).map(|n| format!("node {n}")).collect::<Vec<_>>();
        let (first, more) = limiter.filter(warnings(100), at(0));
        assert_eq!((first.len(), more), (8, 92));
        assert_eq!(limiter.filter(warnings(100), at(1)), (vec![], 0));
        assert_eq!(limiter.filter(warnings(101), at(23)), (vec!["node 100".into()], 0));
        assert_eq!(limiter.filter(warnings(101), at(24)).0.len(), 8);
        assert!(limiter.is_new("another", at(24)) && !limiter.is_new("another", at(24)));
    }
}
