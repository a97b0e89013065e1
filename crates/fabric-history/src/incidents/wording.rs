//! The sentences of an incident: its title, why it happened, and what to do.

use crate::EventKind;
use crate::incidents::cage::Cage;
use crate::incidents::describe::View;
use crate::incidents::incident::{IncidentKind, whole};
use display_text::plural;
use ib_health::outage::{ExpectedCause, duration};
use ib_health::{Verdict, explain};

/// Names in a title.
const MAX_NAMED: usize = 3;

impl View<'_> {
    pub fn advice(&self, kind: IncidentKind) -> Option<String> {
        if self.is_planned() {
            return None;
        }
        let lasts = self.group.ended().is_none();
        let text = match kind {
            IncidentKind::SwitchDown if lasts => "Check its power and console.",
            IncidentKind::SwitchDown => {
                "Look in the log of the switch for the reason of its reset."
            }
            IncidentKind::HostDown if lasts => "Check whether the host is up.",
            IncidentKind::HostDown => {
                "Nothing, if its reboot was planned. Else see the log of the host."
            }
            IncidentKind::Congestion => self.congestion_advice(),
            _ => {
                let help = self.repair()?.help();
                let cage = self.group.common_cage().map(Cage::label);
                return Some(cage.map_or_else(
                    || help.to_owned(),
                    |cage| format!("Begin with what is plugged into {cage}: {}", lower(help)),
                ));
            }
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

    pub fn title(&self, kind: IncidentKind) -> String {
        let group = self.group;
        let place = self.place();
        if let Some(title) = self.cage_title(kind) {
            return title;
        }
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
                format!("Link {place} flapped: {}", explain::link_downs(times, down))
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
                format!("{} moved: {}", plural(cables, "cable"), some(&places))
            }
            IncidentKind::Congestion => self.congestion_title(),
            IncidentKind::CountersCleared => match group.cleared.len() {
                0 | 1 => format!("Counters of {place} were cleared or reset"),
                nodes => {
                    format!("Counters of {} were cleared or reset", plural(nodes, "node"))
                }
            },
            IncidentKind::CountersSaturated => {
                let ports = group.ports.len();
                let texts = group.events.first().map_or("", |event| &event.text);
                match ports {
                    0 | 1 => format!("{place}: {texts}"),
                    ports => format!("Counters of {} are saturated", plural(ports, "port")),
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
                capitalized(&some(&texts))
            }
        }
    }

    /// What happened to several links of a cage: `leaf-1 cage 19: both ports are bad (leaf-1 port 37 – …)`.
    fn cage_title(&self, kind: IncidentKind) -> Option<String> {
        let links = &self.group.links;
        let cage = self.group.common_cage()?.label();
        let what = match kind {
            IncidentKind::LinkBad if links.values().all(|it| it.worst == Verdict::Bad) => "bad",
            IncidentKind::LinkBad => "bad or degraded",
            IncidentKind::LinkDegraded => "degraded",
            IncidentKind::LinkFlap => "flapping",
            IncidentKind::LinkDown => "down",
            _ => return None,
        };
        let ports = match links.len() {
            2 => "both ports".to_owned(),
            count => plural(count, "port"),
        };
        let verb = self.verb(links.len());
        let places: Vec<&str> = links.values().map(|link| &*link.place).collect();
        Some(format!("{cage}: {ports} {verb} {what} ({})", some(&places)))
    }

    fn switch_title(&self) -> String {
        let names: Vec<String> = self.switches().map(|guid| self.places.name(guid)).collect();
        let down = self.down_for();
        let what = match &*names {
            [name] => format!("Switch {name}"),
            names => {
                format!("{} ({})", plural(names.len(), "switch"), some(names))
            }
        };
        let verb = self.verb(names.len());
        let hcas = self.hcas().count();
        let cut = match (hcas, self.group.ended().is_some()) {
            (0, _) => String::new(),
            (hcas, true) => format!(", {} cut off", plural(hcas, "HCA")),
            (hcas, false) => format!(", {} behind it", plural(hcas, "HCA")),
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
                    names => format!(" ({})", plural(names.len(), "HCA")),
                };
                format!("Host {host}{hcas} {verb} down{down}")
            }
            hosts => {
                let names = some(hosts);
                let some_still = match still {
                    0 => String::new(),
                    still if still == self.group.nodes.len() => String::new(),
                    still => format!(", {} still down", plural(still, "HCA")),
                };
                let hosts = plural(hosts.len(), "host");
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
        if is_known { format!(" for {}", duration(whole(self.length()))) } else { String::new() }
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
            Some(_) => format!(" for {}", duration(whole(self.length()))),
            None => String::new(),
        };
        let more = match self.group.roots.len() {
            0 | 1 => String::new(),
            roots => format!(", and {}", plural(roots - 1, "more root")),
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
        let ports = plural(root.ports(), "port");
        let percent = format!("{:.0}%", root.share() * 100.0);
        let level = root.level().unwrap_or("unknown");
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
            (0, links) => format!("{} discovered", plural(links, "new link")),
            (nodes, _) => format!("{} discovered", plural(nodes, "new node")),
        }
    }

    /// Why it happened.
    pub fn cause(&self, kind: IncidentKind) -> Option<String> {
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
                let reason = EventKind::LinkDownReason.label();
                let reported = group.events.iter().rfind(|event| event.kind == reason);
                reported.map(|event| format!("Reported by the device: {}", event.text))
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
}

/// Up to three names, and how many more.
fn some<S: AsRef<str>>(names: &[S]) -> String {
    let first: Vec<&str> = names.iter().take(MAX_NAMED).map(AsRef::as_ref).collect();
    match names.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A sentence behind a colon.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
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
