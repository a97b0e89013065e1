//! The alerts that a fault must raise, and when: the times are those of the rules.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use super::host::Minute;
use super::series;

/// The labels by which two alerts are distinguished. The others are the same for each of these, or say more about it.
pub const KEY: &str = "alertname, severity, instance, fabric, guid, port, device, netdev";

/// How long after the latest moment by the rule an alert may begin or end: failed scrapes, and rules that read what
/// others record, which may be a minute old.
const LATE: Minute = 3;

/// A kind of alert.
#[derive(Debug)]
pub struct Alert {
    pub name: &'static str,
    pub severity: &'static str,
    /// The labels that it has.
    pub labels: &'static [Label],
    /// Minutes from the fault until it may, and until it must fire.
    pub begins: [Minute; 2],
    /// Minutes from the repair until it has ended.
    pub ends: Minute,
    /// Whether the link is one of those that InfinibandManyLinksBad counts.
    pub is_bad_link: bool,
}

/// A label of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Instance,
    Fabric,
    Guid,
    Port,
    Device,
    Netdev,
}
use Label::{Device, Fabric, Guid, Instance, Netdev, Port};

const LINK: &[Label] = &[Fabric, Guid, Port, Device];
const NETDEV: &[Label] = &[Instance, Fabric, Guid, Port, Device, Netdev];
const DEVICE_PORT: &[Label] = &[Instance, Fabric, Guid, Port, Device];

const fn alert(
    name: &'static str,
    severity: &'static str,
    labels: &'static [Label],
    begins: [Minute; 2],
    ends: Minute,
) -> Alert {
    Alert { name, severity, labels, begins, ends, is_bad_link: false }
}

const fn link(name: &'static str, begins: [Minute; 2], ends: Minute) -> Alert {
    Alert { is_bad_link: true, ..alert(name, "warning", LINK, begins, ends) }
}

// Begin: `for`, and what a rate needs to exceed the threshold. End: what it needs to fall below, and `keep_firing_for`.
pub const LINK_DOWN: Alert = link("InfinibandLinkDown", [5, 5], 2);
/// From the third loss of a link until the first of the three is 12 hours old.
pub const LINK_FLAPPING: Alert = link("InfinibandLinkFlapping", [0, 1], 5);
pub const WIDTH_REDUCED: Alert = link("InfinibandLinkWidthReduced", [5, 5], 2);
pub const CABLE_BAD: Alert = link("InfinibandCableBad", [1, 8], 10);
pub const MANY_LINKS_BAD: Alert = alert("InfinibandManyLinksBad", "critical", &[Fabric], [5, 6], 7);
pub const NO_SUBNET_MANAGER: Alert =
    alert("InfinibandNoSubnetManager", "critical", &[Fabric], [3, 3], 1);
pub const PORTS_WAIT: Alert = alert("InfinibandPortsInInit", "warning", &[Fabric], [3, 3], 1);
pub const DEVICE_DOWN: Alert =
    alert("InfinibandDeviceDown", "warning", &[Instance, Fabric, Guid, Device], [5, 5], 5);
pub const BOND_MEMBER_DOWN: Alert = alert("RoceBondMemberDown", "warning", NETDEV, [5, 5], 2);
pub const PFC_STORM: Alert = alert("RocePfcStorm", "critical", NETDEV, [2, 6], 6);
pub const PAUSED: Alert = alert("RocePaused", "info", NETDEV, [10, 13], 10);
pub const CNP_RATE_HIGH: Alert = alert("RoceCnpRateHigh", "info", DEVICE_PORT, [10, 14], 10);
pub const RETRANSMISSIONS: Alert =
    alert("RdmaRetransmissions", "warning", DEVICE_PORT, [10, 14], 10);
/// The fault and its repair are one moment: it fires while the increase of 10 minutes has it.
pub const CONNECTIONS_LOST: Alert =
    alert("RdmaConnectionsLost", "warning", DEVICE_PORT, [0, 1], 15);
pub const IPOIB_DATAGRAM: Alert = alert("IpoibDatagramMode", "info", NETDEV, [60, 60], 10);
pub const PACKETS_DISCARDED: Alert =
    alert("InfinibandPacketsDiscarded", "warning", LINK, [10, 12], 10);
pub const COUNTERS_SATURATED: Alert =
    alert("InfinibandCountersSaturated", "info", LINK, [60, 61], 10);
pub const EXPORTER_DOWN: Alert = alert("FabricExporterDown", "warning", &[Instance], [15, 15], 1);

/// The end of a link, or what of it an alert names.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub instance: String,
    pub fabric: String,
    pub guid: String,
    pub port: String,
    pub device: String,
    pub netdev: String,
}

/// An alert that is expected.
#[derive(Clone, Debug)]
pub struct Expected {
    pub alert: &'static Alert,
    pub place: Place,
    /// When it must fire, and when it may.
    pub must: Range<Minute>,
    pub may: Range<Minute>,
}

impl Expected {
    /// The alert about a fault from one minute until another one, when it is repaired.
    pub fn new(alert: &'static Alert, place: Place, fault: Range<Minute>) -> Self {
        let [earliest, latest] = alert.begins;
        let must = fault.start + latest + LATE..fault.end;
        let may = fault.start + earliest..fault.end + alert.ends + LATE;
        Expected { alert, place, must, may }
    }

    /// Its labels, those of [`KEY`].
    pub fn labels(&self) -> String {
        let Expected { alert: Alert { name, severity, labels, .. }, place, .. } = self;
        let mut text = format!("alertname=\"{name}\",severity=\"{severity}\"");
        for label in *labels {
            let (name, value) = match label {
                Instance => ("instance", &place.instance),
                Fabric => ("fabric", &place.fabric),
                Guid => ("guid", &place.guid),
                Port => ("port", &place.port),
                Device => ("device", &place.device),
                Netdev => ("netdev", &place.netdev),
            };
            write!(text, ",{name}=\"{value}\"").unwrap();
        }
        text
    }
}

/// A series for each alert: 1 while it may fire, and 2 while it must. Promtool compares it with the alerts.
pub fn series(all: &[Expected]) -> Vec<(String, String)> {
    let mut by_labels: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    for expected in all {
        by_labels.entry(expected.labels()).or_default().push(expected);
    }
    let texts = by_labels.into_iter().map(|(labels, mut all)| {
        all.sort_by_key(|it| it.may.start);
        let mut ranges = Vec::new();
        let mut from = 0;
        for Expected { may, must, .. } in all {
            // The alert of a fault before may last until this one's.
            let begin = may.start.max(from);
            let must = must.start.max(begin)..must.end.max(begin).max(must.start);
            ranges.extend([
                (begin..must.start, 1.0),
                (must.clone(), 2.0),
                (must.end..may.end, 1.0),
            ]);
            from = may.end;
        }
        (format!("week_expected{{{labels}}}"), series::of_ranges(&ranges))
    });
    texts.collect()
}
