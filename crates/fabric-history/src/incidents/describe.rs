//! What an incident is called, how severe it is, why it happened, and how much harm it did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::EventKind;
use crate::incidents::group::{Cause, Group, LinkFacts, Root};
use crate::incidents::places::Places;
use crate::incidents::{Harm, HarmClass, Incident, IncidentKind, Severity};
use crate::model::Window;
use ib_fabric::topology::LinkId;
use ib_health::outage::ExpectedCause;
use ib_health::verdict::Repair;
use ib_health::{Verdict, evidence};
use ib_mad::{Guid, label};

/// Names of hosts that an incident lists; further ones are only counted.
const MAX_HOSTS: usize = 20;

/// Names in a title.
const MAX_NAMED: usize = 3;

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
struct View<'a> {
    group: &'a Group,
    places: &'a Places,
    fabric: &'a str,
    /// The end of the period.
    now: SystemTime,
}

impl View<'_> {
    fn link(&self) -> Option<&LinkFacts> {
        let mut links = self.group.links.values();
        let first = links.next()?;
        (self.group.cause == Cause::Link && links.next().is_none()).then_some(first)
    }

    /// The link that it is about: that of a flap took an HCA away.
    fn link_id(&self, kind: IncidentKind) -> Option<LinkId> {
        let mut links = self.group.links.iter();
        match self.group.cause {
            Cause::Link => links.next().map(|(id, _)| *id),
            Cause::Outage if kind == IncidentKind::LinkFlap => {
                links.find(|(_, facts)| facts.flaps > 0).map(|(id, _)| *id)
            }
            _ => None,
        }
    }

    /// What the latest verdict advises, unless it was done: a cable that was replaced is another one.
    fn repair(&self) -> Option<Repair> {
        let facts = self.link()?;
        let is_replaced = self.group.replaced.is_some() && facts.verdict < Verdict::Watch;
        let repair = facts.repair.as_deref().filter(|_| !is_replaced)?;
        Repair::from_label(repair)
    }

    fn advice(&self, kind: IncidentKind) -> Option<String> {
        let lasts = self.group.ended().is_none();
        let text = match kind {
            _ if self.is_planned() => return None,
            IncidentKind::SwitchDown if lasts => "Check its power and console.",
            IncidentKind::SwitchDown => {
                "Look in the log of the switch for the reason of its reset."
            }
            IncidentKind::HostDown if lasts => "Check whether the host is up.",
            IncidentKind::HostDown => {
                "Nothing, if its reboot was planned. Else see the log of the host."
            }
            IncidentKind::Congestion => self.congestion_advice(),
            _ => return self.repair().map(|repair| repair.help().to_owned()),
        };
        Some(text.to_owned())
    }

    fn congestion_advice(&self) -> &'static str {
        let root = self.worst_root().map(|(_, root)| root);
        match root.and_then(|root| root.detail["cause"].as_str()) {
            Some(cause) if cause.contains("receiver") => {
                "Check the receiving host: its PCIe slot, memory and CPU load."
            }
            Some(_) => {
                "Spread the traffic over more links, or start fewer jobs that send to one host."
            }
            None => "See which jobs used the ports at that time.",
        }
    }

    fn switches(&self) -> impl Iterator<Item = Guid> {
        self.group.nodes.keys().copied().filter(|guid| self.places.is_switch(*guid))
    }

    fn hcas(&self) -> impl Iterator<Item = Guid> {
        self.group.nodes.keys().copied().filter(|guid| !self.places.is_switch(*guid))
    }

    fn hosts(&self) -> Vec<String> {
        let of_roots = self.group.roots.values().filter_map(|root| root.detail["host"].as_str());
        let mut hosts: BTreeSet<String> = of_roots.map(str::to_owned).collect();
        hosts.extend(self.hcas().filter_map(|guid| self.places.host(guid)));
        if self.group.cause == Cause::Link {
            let ends = self.group.links.keys().flat_map(|link| link.ends());
            hosts.extend(ends.filter_map(|(guid, _)| self.places.host(guid)));
        }
        let mut hosts: Vec<String> = hosts.into_iter().collect();
        hosts.sort_by(|a, b| label::natural_key(a).cmp(&label::natural_key(b)));
        hosts
    }

    /// An outage of one HCA whose link was lost is a flap: the link took the HCA away, not the HCA the link.
    fn is_flap(&self) -> bool {
        self.group.cause == Cause::Link
            || self.switches().next().is_none() && self.group.count(EventKind::Flap) > 0
    }

    fn kind(&self) -> IncidentKind {
        let group = self.group;
        match group.cause {
            Cause::Outage if self.switches().next().is_some() => IncidentKind::SwitchDown,
            Cause::Outage if self.is_flap() => IncidentKind::LinkFlap,
            Cause::Outage => IncidentKind::HostDown,
            Cause::Link => self.link_kind(),
            Cause::Recabling => IncidentKind::CableMoved,
            Cause::Congestion => IncidentKind::Congestion,
            Cause::Clear => IncidentKind::CountersCleared,
            Cause::Saturation => IncidentKind::CountersSaturated,
            Cause::Master => IncidentKind::SubnetManager,
            Cause::Growth => IncidentKind::FabricGrew,
            Cause::Monitoring => IncidentKind::Monitoring,
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
        match kind {
            IncidentKind::SwitchDown | IncidentKind::LinkBad => Severity::Critical,
            _ if group.count(EventKind::DeviceFatal) > 0 => Severity::Critical,
            IncidentKind::HostDown => warning(length >= LONG_OUTAGE || hosts >= MANY_HOSTS),
            IncidentKind::LinkDegraded | IncidentKind::LinkFlap | IncidentKind::LinkDown => {
                Severity::Warning
            }
            IncidentKind::Congestion => {
                let is_high = group.roots.values().any(|root| level(root) == Some("high"));
                warning(is_high && length >= LONG_CONGESTION)
            }
            IncidentKind::Monitoring => warning(
                group.count(EventKind::SweepFailed) + group.count(EventKind::HistoryDisplaced) > 0,
            ),
            _ => Severity::Info,
        }
    }

    fn length(&self) -> Duration {
        let end = self.group.ended().unwrap_or(self.now);
        end.duration_since(self.group.began).unwrap_or_default()
    }

    fn is_planned(&self) -> bool {
        self.group.expected.contains(ExpectedCause::Maintenance.label())
    }

    /// The node and port that it is about.
    fn subject(&self) -> (Option<Guid>, Option<u8>) {
        let node = self.switches().next().or_else(|| self.hcas().next());
        match self.group.cause {
            Cause::Outage => (node, None),
            Cause::Congestion => match self.worst_root() {
                Some(((guid, port), _)) => (Some(guid), Some(port)),
                None => (None, None),
            },
            _ => (None, None),
        }
    }

    /// The root for which ports waited most.
    fn worst_root(&self) -> Option<((Guid, u8), &Root)> {
        // Of equal ones that with a host says more.
        let waited = |root: &Root| {
            let has_host = root.detail["host"].is_string();
            ((share(root) * 100.0).round(), has_host, ports_of(root))
        };
        let roots = self.group.roots.iter();
        let worst = roots.max_by(|(_, a), (_, b)| {
            waited(a).partial_cmp(&waited(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        worst.map(|(end, root)| (*end, root))
    }

    fn place(&self) -> String {
        let name = |guid| self.places.name(guid);
        let of_node = self.switches().next().or_else(|| self.hcas().next()).map(name);
        let of_link = self.group.links.values().map(|link| link.place.clone());
        let of_link = of_link.filter(|place| !place.is_empty());
        let of_root = self.worst_root().map(|(_, root)| root.place.clone());
        let of_event = self.group.events.first().map(|event| event.place.clone());
        match self.group.cause {
            Cause::Outage => of_node,
            Cause::Link => of_link.chain(of_event).next(),
            Cause::Congestion => of_root,
            Cause::Clear if self.group.cleared.len() > 1 => Some(self.fabric.to_owned()),
            _ => of_event,
        }
        .unwrap_or_else(|| self.fabric.to_owned())
    }

    fn title(&self, kind: IncidentKind) -> String {
        let group = self.group;
        let place = self.place();
        match kind {
            IncidentKind::SwitchDown => self.switch_title(),
            IncidentKind::HostDown => self.host_title(),
            IncidentKind::LinkFlap => {
                let flaps =
                    group.links.values().map(|link| link.flaps).fold(0, u64::saturating_add);
                let facts = group.links.values().find(|link| link.flaps > 0);
                let down = facts.and_then(|link| link.down).unwrap_or_default();
                let place = facts.map_or(place, |link| link.place.clone());
                let times = u32::try_from(flaps.max(1)).unwrap_or(u32::MAX);
                format!("Link {place} flapped: {}", evidence::link_downs(times, down))
            }
            IncidentKind::LinkBad => format!("Bad link {place}"),
            IncidentKind::LinkDegraded => format!("Degraded link {place}"),
            IncidentKind::LinkDown if group.ended().is_none() => format!("Link {place} is down"),
            IncidentKind::LinkDown => format!("Link {place} was down"),
            IncidentKind::LinkChanged => self.changed_title(&place),
            IncidentKind::CableReplaced => {
                let (at, what) = group.replaced.clone().unwrap_or_default();
                format!("Cable or module replaced at {at}: {what}")
            }
            IncidentKind::CableMoved => {
                let mut places: Vec<&str> = Vec::new();
                for event in &group.events {
                    if event.kind == EventKind::CableMoved.label()
                        && !places.contains(&&*event.place)
                    {
                        places.push(&event.place);
                    }
                }
                // Both ends of each cable have an event.
                let cables = group.count(EventKind::CableMoved).div_ceil(2);
                format!("{} moved: {}", label::plural(cables, "cable"), some(&places, places.len()))
            }
            IncidentKind::Congestion => self.congestion_title(),
            IncidentKind::CountersCleared => match group.cleared.len() {
                0 | 1 => format!("Counters of {place} were cleared or reset"),
                nodes => {
                    format!("Counters of {} were cleared or reset", label::plural(nodes, "node"))
                }
            },
            IncidentKind::CountersSaturated => {
                let ports = group.ports.len();
                let texts = group.events.first().map_or("", |event| &event.text);
                match ports {
                    0 | 1 => format!("{place}: {texts}"),
                    ports => format!("Counters of {} are saturated", label::plural(ports, "port")),
                }
            }
            IncidentKind::SubnetManager => {
                let last = group.events.last().map_or("", |event| &event.text);
                match group.count(EventKind::MasterChanged) {
                    0 | 1 => format!("Master subnet manager changed {last}"),
                    times => format!("Master subnet manager changed {times} times, last {last}"),
                }
            }
            IncidentKind::FabricGrew => self.growth_title(),
            IncidentKind::Monitoring => {
                let texts: Vec<&str> = group.events.iter().map(|event| &*event.text).collect();
                capitalized(&some(&texts, texts.len()))
            }
        }
    }

    fn switch_title(&self) -> String {
        let names: Vec<String> = self.switches().map(|guid| self.places.name(guid)).collect();
        let down = self.down_for();
        let what = match &*names {
            [name] => format!("Switch {name}"),
            names => {
                format!("{} ({})", label::plural(names.len(), "switch"), some(names, names.len()))
            }
        };
        let verb = self.verb(names.len());
        let hcas = self.hcas().count();
        let cut = match (hcas, self.group.ended().is_some()) {
            (0, _) => String::new(),
            (hcas, true) => format!(", {} cut off", label::plural(hcas, "HCA")),
            (hcas, false) => format!(", {} behind it", label::plural(hcas, "HCA")),
        };
        format!("{what} {verb} down{down}{cut}")
    }

    fn host_title(&self) -> String {
        let hosts = self.hosts();
        let (down, verb) = (self.down_for(), self.verb(hosts.len()));
        let still = self.group.nodes.values().filter(|node| node.up.is_none()).count();
        match &*hosts {
            [] => format!("A node {verb} down{down}"),
            [host] => {
                let names: Vec<String> = self.hcas().map(|guid| self.places.name(guid)).collect();
                let hcas = match &*names {
                    [name] if name == host => String::new(),
                    // `node-7 mlx5_0`: the host is named already.
                    [name] => {
                        let hca = name.strip_prefix(&**host).unwrap_or(name).trim_start();
                        format!(" ({hca})")
                    }
                    names => format!(" ({})", label::plural(names.len(), "HCA")),
                };
                format!("Host {host}{hcas} {verb} down{down}")
            }
            hosts => {
                let names = some(hosts, hosts.len());
                let some_still = match still {
                    0 => String::new(),
                    still if still == self.group.nodes.len() => String::new(),
                    still => format!(", {} still down", label::plural(still, "HCA")),
                };
                let hosts = label::plural(hosts.len(), "host");
                format!("{hosts} ({names}) {verb} down{down}{some_still}")
            }
        }
    }

    /// `is`, `was`, `are` or `were`.
    fn verb(&self, count: usize) -> &'static str {
        match (self.group.ended().is_some(), count) {
            (false, 0 | 1) => "is",
            (false, _) => "are",
            (true, 0 | 1) => "was",
            (true, _) => "were",
        }
    }

    /// ` for 4m`, if its end and its beginning are known.
    fn down_for(&self) -> String {
        let is_known = self.group.ended().is_some() && !self.group.began_earlier;
        if is_known {
            format!(" for {}", evidence::duration(whole(self.length())))
        } else {
            String::new()
        }
    }

    fn changed_title(&self, place: &str) -> String {
        let facts = self.group.links.values().next();
        if let Some(rate) = facts.and_then(|facts| facts.rate.as_ref()) {
            return format!("Rate of link {place} changed {rate}");
        }
        let last = self.group.events.last().map_or("", |event| &event.text);
        if self.group.count(EventKind::ExpectedLinkDown) > 0 {
            return format!("Link {place} {last}");
        }
        format!("Link {place}: {last}")
    }

    fn congestion_title(&self) -> String {
        let Some((_, root)) = self.worst_root() else { return "Congestion".into() };
        let length = match self.group.ended() {
            Some(_) => format!(" for {}", evidence::duration(whole(self.length()))),
            None => String::new(),
        };
        let more = match self.group.roots.len() {
            0 | 1 => String::new(),
            roots => format!(", and {}", label::plural(roots - 1, "more root")),
        };
        let host = root.detail["host"].as_str().or(root.detail["node"].as_str());
        let what = match (root.detail["cause"].as_str(), host) {
            (Some("slow_receiver"), Some(host)) => format!("slow receiver {host}"),
            (Some("slow_receiver"), None) => "slow receiver".into(),
            (Some("full_link"), Some(host)) => format!("full link to {host}"),
            (Some("full_link"), None) => "full link".into(),
            (Some(_), Some(host)) => host.to_owned(),
            (Some(_), None) => "cause unknown".into(),
            // Events of earlier versions have a text only.
            (None, _) => {
                let text = root.text.strip_prefix("congestion root: ").unwrap_or(&root.text);
                return format!("Congestion at {}{length}: {text}{more}", root.place);
            }
        };
        let waited = if self.group.ended().is_some() { "waited" } else { "wait" };
        let ports = label::plural(ports_of(root), "port");
        let percent = format!("{:.0}%", share(root) * 100.0);
        let level = level(root).unwrap_or("unknown");
        let place = &root.place;
        format!(
            "Congestion{length}: {what} ({place}): {ports} {waited} up to {percent} of the time ({level}){more}"
        )
    }

    fn growth_title(&self) -> String {
        let nodes = self.group.count(EventKind::NodeAdded);
        let links = self.group.count(EventKind::LinkAdded);
        let place = self.place();
        match (nodes, links) {
            (1, _) => format!("New node {place}"),
            (0, 1) => format!("New link {place}"),
            (0, links) => format!("{} discovered", label::plural(links, "new link")),
            (nodes, _) => format!("{} discovered", label::plural(nodes, "new node")),
        }
    }

    /// Why it happened.
    fn cause(&self, kind: IncidentKind) -> Option<String> {
        let group = self.group;
        if self.is_planned() {
            return Some("Announced as maintenance".into());
        }
        match kind {
            IncidentKind::SwitchDown | IncidentKind::HostDown => {
                if group.count(EventKind::DeviceFatal) > 0 {
                    return Some("The kernel reported a fatal error of the device".into());
                }
                let rebooted = group.expected.contains(ExpectedCause::Reboot.label());
                let reset = self.has_reason("device reset");
                match (rebooted || !group.cleared.is_empty(), reset) {
                    (true, _) => Some("It was reset or rebooted: its counters began again".into()),
                    (false, true) => Some("Its neighbors report a reset of the device".into()),
                    (false, false) => None,
                }
            }
            IncidentKind::LinkBad | IncidentKind::LinkDegraded => {
                let facts = group.links.values().max_by_key(|facts| facts.worst)?;
                let reasons = facts.decisive["reasons"].as_array()?.iter();
                let reasons = reasons.filter_map(|reason| reason["evidence"].as_str());
                let reasons: Vec<&str> = reasons.collect();
                (!reasons.is_empty()).then(|| capitalized(&reasons.join("; ")))
            }
            IncidentKind::LinkFlap | IncidentKind::LinkDown => {
                let mut reported = group.links.values().filter_map(|link| link.reported.as_ref());
                let of_events = (group.events.iter())
                    .filter(|event| event.kind == EventKind::LinkDownReason.label())
                    .map(|event| &event.text);
                let reported = reported.next().or(of_events.into_iter().next());
                reported.map(|text| format!("Reported by the device: {text}"))
            }
            IncidentKind::SubnetManager if group.is_master_down => {
                Some("The node of the former master went down".into())
            }
            IncidentKind::SubnetManager => Some(
                "The node of the former master responds: its subnet manager stopped, or handed over".into(),
            ),
            IncidentKind::CountersCleared if group.cleared.len() > 1 => Some(
                "A tool cleared them: perfquery -R, ibqueryerrors -k, or a monitor that clears"
                    .into(),
            ),
            IncidentKind::CableMoved | IncidentKind::CableReplaced => {
                Some("A technician worked on the cabling".into())
            }
            IncidentKind::Congestion => {
                let (_, root) = self.worst_root()?;
                let cause = root.detail["cause"].as_str().filter(|cause| *cause != "unknown")?;
                Some(capitalized(&cause.replace('_', " ")))
            }
            _ => None,
        }
    }

    fn has_reason(&self, text: &str) -> bool {
        let reason = EventKind::LinkDownReason.label();
        self.group.events.iter().any(|event| event.kind == reason && event.text.contains(text))
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
        } else if group.cause == Cause::Congestion {
            let waiting = group.roots.values().map(ports_of).fold(0, u64::saturating_add);
            (HarmClass::Congestion, waiting.max(1).saturating_mul(lasted))
        } else if flaps > 0 {
            (HarmClass::Flaps, flaps)
        } else {
            (HarmClass::None, lasted)
        };
        Harm { class, amount }
    }
}

/// Up to three names, and how many more.
fn some<S: AsRef<str>>(names: &[S], count: usize) -> String {
    let first: Vec<&str> = names.iter().take(MAX_NAMED).map(AsRef::as_ref).collect();
    match count.saturating_sub(first.len()) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn capitalized(text: &str) -> String {
    // Names keep their case: only a word without digits is one of a sentence.
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = first.chars().all(|char| char.is_ascii_lowercase());
    match text.chars().next().filter(|_| is_word) {
        Some(char) => char.to_ascii_uppercase().to_string() + &text[1..],
        None => text.to_owned(),
    }
}

/// To the second.
fn whole(length: Duration) -> Duration {
    Duration::from_secs(length.as_secs())
}

/// The level of a congestion: from its detail, or, of old events, from its text, which ends with it.
fn level(root: &Root) -> Option<&str> {
    let of_text = || root.text.rsplit_once('(')?.1.strip_suffix(')');
    root.detail["level"].as_str().or_else(of_text)
}

/// How many ports waited: old events have it in their text only, `9 ports waiting, up to 6% of the time`.
fn ports_of(root: &Root) -> u64 {
    let of_text = || {
        let mut words =
            root.text.split(' ').skip_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
        words.next()?.replace(',', "").parse().ok()
    };
    root.detail["ports"].as_u64().or_else(of_text).unwrap_or(1)
}

/// The share of time that they waited.
fn share(root: &Root) -> f64 {
    let of_text = || {
        let percent = root.text.split_once('%')?.0.rsplit(' ').next()?;
        percent.parse::<f64>().ok().map(|percent| percent / 100.0)
    };
    root.detail["share"].as_f64().or_else(of_text).unwrap_or(0.0)
}
