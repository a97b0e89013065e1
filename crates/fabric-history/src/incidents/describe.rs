//! What kind of incident a group of events is, how severe it is, where it was, and how much harm it did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::EventKind;
use crate::incidents::cage::Cage;
use crate::incidents::congestion::Root;
use crate::incidents::group::{Group, GroupKind, LinkFacts, NodeOutage};
use crate::incidents::grouper::NEAR;
use crate::incidents::incident::{Harm, HarmClass, Incident, IncidentKind, Severity};
use crate::incidents::places::Places;
use crate::model::Window;
use display_text::natural_key;
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_health::outage::ExpectedCause;
use ib_health::verdict::Repair;
use ib_mad::{Guid, PortKey};

/// Names of hosts that an incident lists; further ones are only counted.
const MAX_HOSTS: usize = 20;

/// A host that is down for longer has not rebooted: firmware updates take up to half an hour.
const LONG_OUTAGE: Duration = Duration::from_secs(3600);

/// So many hosts at once are more than a reboot.
const MANY_HOSTS: usize = 10;

/// Congestion for longer is no burst of a job.
const LONG_CONGESTION: Duration = Duration::from_secs(30 * 60);

/// The seconds for which a host that is cut off counts: a scheduler takes it out of service within an hour. Then it
/// costs one host, and no jobs.
const COUNTED_OUTAGE: Duration = LONG_OUTAGE;

/// Describes a group.
pub fn describe(group: &Group, places: &Places, fabric: &str, window: Window) -> Incident {
    let view = View { group, places, fabric, now: window.to };
    let hosts = view.hosts();
    let host_count = hosts.len();
    let kind = view.kind();
    let severity = view.severity(kind, host_count);
    let (node, port) = view.subject();
    Incident {
        kind,
        severity,
        fabric: fabric.to_owned(),
        began: group.began,
        began_earlier: group.began_earlier,
        ended: group.ended().filter(|end| *end <= window.to),
        place: view.place(),
        title: view.title(kind),
        cause: view.cause(kind),
        planned: view.is_planned(),
        repair: view.repair().map(|repair| repair.label().to_owned()),
        advice: view.advice(kind),
        node,
        port,
        link: view.link_id(kind),
        hosts: hosts.into_iter().take(MAX_HOSTS).collect(),
        host_count,
        nodes: group.nodes.len().max(group.cleared.len()),
        links: group.links.len(),
        event_count: group.counts.values().sum(),
        counts: group.counts.iter().map(|(kind, n)| (kind.label().to_owned(), *n)).collect(),
        events: group.events.clone(),
        harm: view.harm(window),
    }
}

/// A group in its fabric.
pub struct View<'a> {
    pub group: &'a Group,
    pub places: &'a Places,
    fabric: &'a str,
    /// The end of the period.
    now: SystemTime,
}

impl View<'_> {
    /// The link that it is about; of several in one cage, the worst one.
    fn link(&self) -> Option<(LinkId, &LinkFacts)> {
        let links = self.group.links.iter().map(|(id, facts)| (*id, facts));
        let is_one = self.group.links.len() == 1 || self.group.common_cage().is_some();
        // The first of equal ones.
        let worst =
            links.reduce(|worst, next| if next.1.worst > worst.1.worst { next } else { worst });
        worst.filter(|_| self.group.kind == GroupKind::Link && is_one)
    }

    /// The link that it is about: that of a flap took an HCA away.
    fn link_id(&self, kind: IncidentKind) -> Option<LinkId> {
        let mut links = self.group.links.iter();
        match self.group.kind {
            GroupKind::Link => self.link().map(|(id, _)| id).or(links.next().map(|(id, _)| *id)),
            GroupKind::Outage if kind == IncidentKind::LinkFlap => {
                links.find(|(_, facts)| facts.flaps > 0).map(|(id, _)| *id)
            }
            _ => None,
        }
    }

    /// What the latest verdict advises, unless it was done: a cable that was replaced is another one.
    pub fn repair(&self) -> Option<Repair> {
        let (_, facts) = self.link()?;
        let is_replaced = self.group.replaced.is_some() && facts.verdict < Verdict::Watch;
        let repair = facts.repair.as_deref().filter(|_| !is_replaced)?;
        Repair::from_label(repair)
    }

    pub fn switches(&self) -> impl Iterator<Item = Guid> {
        self.group.nodes.keys().copied().filter(|guid| self.places.is_switch(*guid))
    }

    pub fn hcas(&self) -> impl Iterator<Item = Guid> {
        self.group.nodes.keys().copied().filter(|guid| !self.places.is_switch(*guid))
    }

    pub fn hosts(&self) -> Vec<String> {
        let of_roots = self.group.roots.values().filter_map(|root| root.detail["host"].as_str());
        let mut hosts: BTreeSet<String> = of_roots.map(str::to_owned).collect();
        hosts.extend(self.hcas().filter_map(|guid| self.places.host(guid)));
        if self.group.kind == GroupKind::Link {
            let ends = self.group.links.keys().flat_map(|link| link.ends());
            hosts.extend(ends.filter_map(|end| self.places.host(end.guid)));
        }
        let mut hosts: Vec<String> = hosts.into_iter().collect();
        hosts.sort_by(|a, b| natural_key(a).cmp(&natural_key(b)));
        hosts
    }

    /// An outage of one HCA whose link was lost is a flap: the link took the HCA away, not the HCA the link.
    fn is_flap(&self) -> bool {
        let has_switch = self.switches().next().is_some();
        self.group.kind == GroupKind::Link
            || self.group.is_flapping() && !has_switch && !self.is_gone()
    }

    /// Whether a node has stayed away, so that it is no matter of flaps any more.
    fn is_gone(&self) -> bool {
        let is_gone = |node: &NodeOutage| {
            node.up.is_none() && node.down.is_some_and(|down| down + NEAR < self.now)
        };
        self.group.nodes.values().any(is_gone)
    }

    fn kind(&self) -> IncidentKind {
        let group = self.group;
        match group.kind {
            GroupKind::Outage if self.switches().next().is_some() => IncidentKind::SwitchDown,
            GroupKind::Outage if self.is_flap() => IncidentKind::LinkFlap,
            GroupKind::Outage => IncidentKind::HostDown,
            GroupKind::Link => self.link_kind(),
            GroupKind::Recabling => IncidentKind::CableMoved,
            GroupKind::Congestion => IncidentKind::Congestion,
            GroupKind::Clear => IncidentKind::CountersCleared,
            GroupKind::Saturation => IncidentKind::CountersSaturated,
            GroupKind::Master => IncidentKind::SubnetManager,
            GroupKind::Growth => IncidentKind::FabricGrew,
            GroupKind::Monitoring => IncidentKind::Monitoring,
        }
    }

    fn link_kind(&self) -> IncidentKind {
        let group = self.group;
        let worst = group.links.values().map(|link| link.worst).max().unwrap_or_default();
        let only_down = group.links.values().all(LinkFacts::only_went_down);
        let is_down = group.links.values().any(|link| link.down_since.is_some());
        match worst {
            Verdict::Bad => IncidentKind::LinkBad,
            Verdict::Watch if !only_down => IncidentKind::LinkDegraded,
            _ if group.replaced.is_some() => IncidentKind::CableReplaced,
            _ if is_down => IncidentKind::LinkDown,
            _ if group.count(EventKind::Flap) > 0 => IncidentKind::LinkFlap,
            Verdict::Watch => IncidentKind::LinkDegraded,
            _ if !group.expected.is_empty() => IncidentKind::LinkChanged,
            _ if group.count(EventKind::LinkDown) + group.count(EventKind::LinkDownReason) > 0 => {
                IncidentKind::LinkDown
            }
            _ => IncidentKind::LinkChanged,
        }
    }

    fn severity(&self, kind: IncidentKind, hosts: usize) -> Severity {
        let group = self.group;
        let length = self.length();
        let warning = |is_one| if is_one { Severity::Warning } else { Severity::Info };
        if self.is_planned() {
            return Severity::Info;
        }
        if group.count(EventKind::DeviceFatal) > 0 {
            return Severity::Critical;
        }
        match kind {
            IncidentKind::SwitchDown | IncidentKind::LinkBad => Severity::Critical,
            IncidentKind::HostDown => warning(length >= LONG_OUTAGE || hosts >= MANY_HOSTS),
            IncidentKind::LinkDegraded | IncidentKind::LinkFlap | IncidentKind::LinkDown => {
                Severity::Warning
            }
            IncidentKind::Congestion => {
                let is_high = group.roots.values().any(|root| root.level() == Some("high"));
                warning(is_high && length >= LONG_CONGESTION)
            }
            IncidentKind::Monitoring => warning(
                group.count(EventKind::SweepFailed) + group.count(EventKind::HistoryDisplaced) > 0,
            ),
            IncidentKind::LinkChanged
            | IncidentKind::CableReplaced
            | IncidentKind::CableMoved
            | IncidentKind::CountersCleared
            | IncidentKind::CountersSaturated
            | IncidentKind::SubnetManager
            | IncidentKind::FabricGrew => Severity::Info,
        }
    }

    pub fn length(&self) -> Duration {
        let end = self.group.ended().unwrap_or(self.now);
        end.duration_since(self.group.began).unwrap_or_default()
    }

    pub fn is_planned(&self) -> bool {
        self.group.expected.contains(ExpectedCause::Maintenance.label())
    }

    /// The node and port that it is about.
    fn subject(&self) -> (Option<Guid>, Option<u8>) {
        let node = self.switches().next().or_else(|| self.hcas().next());
        match self.group.kind {
            GroupKind::Outage => (node, None),
            GroupKind::Congestion => match self.worst_root() {
                Some((port, _)) => (Some(port.guid), Some(port.number)),
                None => (None, None),
            },
            _ => (None, None),
        }
    }

    /// The root for which ports waited most.
    pub fn worst_root(&self) -> Option<(PortKey, &Root)> {
        // Of equal ones that with a host says more.
        let waited = |root: &Root| {
            let has_host = root.detail["host"].is_string();
            ((root.share() * 100.0).round(), has_host, root.ports())
        };
        let roots = self.group.roots.iter();
        let worst = roots.max_by(|(_, a), (_, b)| {
            waited(a).partial_cmp(&waited(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        worst.map(|(end, root)| (*end, root))
    }

    pub fn place(&self) -> String {
        let name = |guid| self.places.name(guid);
        let of_node = self.switches().next().or_else(|| self.hcas().next()).map(name);
        let of_link = self.group.links.values().map(|link| link.place.clone());
        let of_link = of_link.filter(|place| !place.is_empty());
        let of_root = self.worst_root().map(|(_, root)| root.place.clone());
        let of_event = self.group.events.first().map(|event| event.place.clone());
        match self.group.kind {
            GroupKind::Outage => of_node,
            GroupKind::Link => {
                let of_cage = self.group.common_cage().map(Cage::label);
                of_cage.or(of_link.chain(of_event).next())
            }
            GroupKind::Congestion => of_root,
            GroupKind::Clear if self.group.cleared.len() > 1 => Some(self.fabric.to_owned()),
            _ => of_event,
        }
        .unwrap_or_else(|| self.fabric.to_owned())
    }

    /// The harm in a period.
    fn harm(&self, window: Window) -> Harm {
        let group = self.group;
        let within = |from: SystemTime, to: SystemTime| {
            let (from, to) = (from.max(window.from), to.min(window.to));
            to.duration_since(from).unwrap_or_default()
        };
        let outage = |down: SystemTime, up: Option<SystemTime>| {
            within(down, up.unwrap_or(window.to)).min(COUNTED_OUTAGE).as_secs()
        };
        // By host: one that loses two HCAs is one host. A switch counts like one, if there is no host behind it.
        let mut by_host: BTreeMap<String, u64> = BTreeMap::new();
        for (guid, node) in &group.nodes {
            let time = outage(node.down.unwrap_or(window.from), node.up);
            let host = self.places.host(*guid).unwrap_or_default();
            let longest = by_host.entry(host).or_default();
            *longest = time.max(*longest);
        }
        let of_switches = by_host.remove("").unwrap_or(0);
        let cut_off = by_host.into_values().fold(0, u64::saturating_add).max(of_switches);
        let is_judged =
            group.links.values().any(|link| link.worst >= Verdict::Watch && !link.only_went_down());
        let lasted = within(group.began, group.ended().unwrap_or(window.to)).as_secs();
        let flaps = group.links.values().map(|link| link.flaps).fold(0, u64::saturating_add);
        let (class, amount) = if cut_off > 0 && !self.is_flap() {
            (HarmClass::CutOff, cut_off)
        } else if is_judged {
            // Any bad cable is worse than a degraded one.
            let is_bad = group.links.values().any(|link| link.worst == Verdict::Bad);
            (HarmClass::Cable, lasted.saturating_add(if is_bad { 1 << 40 } else { 0 }))
        } else if group.kind == GroupKind::Congestion {
            let waiting = group.roots.values().map(Root::ports).fold(0, u64::saturating_add);
            (HarmClass::Congestion, waiting.max(1).saturating_mul(lasted))
        } else if flaps > 0 {
            (HarmClass::Flaps, flaps)
        } else {
            (HarmClass::None, lasted)
        };
        Harm { class, amount }
    }
}
