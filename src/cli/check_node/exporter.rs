//! What a running exporter knows of a host: its HCAs, its cables, the uplinks of its leaf switches, and congestion.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::de::DeserializeOwned;

use display_text::plural;
use fabric_api::model::{Condition, End, Link, Links, Nodes, Overview};
use ib_health::{Reason, Verdict};

use super::outcome::HostCheck;
use crate::cli::cells::reason;
use crate::cli::host_list::short;
use crate::remote::{Access, Remote, one_line};

/// The largest answer: the links of a switch with 200 ports are 1 MB.
const MAX_BODY: u64 = 16 << 20;

/// An exporter that sweeps the fabric.
pub struct Exporter(Remote);

/// Why an exporter has no answer.
enum NoAnswer {
    /// It does not know the host.
    NoHost,
    Problem(String),
}

impl Exporter {
    /// The exporter at an address. A request takes at most `limit`.
    pub fn new(url: &str, access: &Access, limit: Duration) -> Result<Self, String> {
        // ureq takes no limit of zero.
        let limit = limit.max(Duration::from_millis(1));
        Remote::new(url, access, limit, limit).map(Exporter)
    }

    /// Adds what it knows of a host.
    pub fn check(&self, strict: bool, found: &mut HostCheck) {
        let name = found.host.clone();
        // NodeDescriptions have names without domain, schedulers may have them with it.
        let names: BTreeSet<&str> = [short(&name), name.as_str()].into();
        let mut outcome = Err(NoAnswer::NoHost);
        for name in names {
            outcome = self.check_named(name, strict, found);
            if !matches!(outcome, Err(NoAnswer::NoHost)) {
                break;
            }
        }
        match outcome {
            Ok(()) => {}
            Err(NoAnswer::NoHost) => found.unknown("the exporter does not know this host"),
            Err(NoAnswer::Problem(problem)) => found.unknown(problem),
        }
    }

    fn check_named(&self, name: &str, strict: bool, found: &mut HostCheck) -> Result<(), NoAnswer> {
        let of_host = [("node", name.to_owned())];
        let nodes: Nodes = self.get("/api/v1/nodes", &of_host)?;
        let mut hcas = 0;
        for fabric in nodes.fabrics.iter().filter(|fabric| !fabric.nodes.is_empty()) {
            if let Some(why) = blind(&fabric.condition) {
                found.unknown(format!("fabric {}: {why}", fabric.fabric));
                continue;
            }
            hcas += fabric.nodes.len();
            for node in fabric.nodes.iter().filter(|node| !node.up) {
                let behind = node.behind.as_ref();
                let behind = behind.map(|it| format!(", behind {}", it.node)).unwrap_or_default();
                found.bad(format!("{} is down{behind}", node.node));
            }
        }
        if nodes.fabrics.iter().all(|fabric| fabric.nodes.is_empty()) {
            // A fabric that was not swept yet may have any host.
            let why = nodes.fabrics.iter().find_map(|fabric| blind(&fabric.condition));
            return Err(why.map_or(NoAnswer::NoHost, |why| NoAnswer::Problem(why.to_owned())));
        }
        if hcas == 0 {
            return Ok(());
        }
        let links: Links = self.get("/api/v1/links", &of_host)?;
        let seen = links.fabrics.iter().filter(|fabric| blind(&fabric.condition).is_none());
        let links: Vec<&Link> = seen.flat_map(|fabric| &fabric.links).collect();
        add_cables(&links, found);
        self.add_uplinks(&links, strict, found)?;
        self.add_congestion(name, strict, found)
    }

    /// Bad cables between the leaf switches of the host and others.
    fn add_uplinks(
        &self,
        links: &[&Link],
        strict: bool,
        found: &mut HostCheck,
    ) -> Result<(), NoAnswer> {
        let ends = links.iter().flat_map(|link| &link.ends);
        let leaves: BTreeSet<&str> =
            ends.filter(|end| end.node_type == "switch").map(|end| &*end.guid).collect();
        for leaf in leaves {
            let pairs = [("node", leaf.to_owned()), ("verdict", "bad".to_owned())];
            let bad: Links = self.get("/api/v1/links", &pairs)?;
            let between = |link: &&Link| link.ends.iter().all(|end| end.node_type == "switch");
            let links = bad.fabrics.iter().flat_map(|fabric| &fabric.links);
            let uplinks: Vec<&Link> = links.filter(between).collect();
            let Some(first) = uplinks.first() else { continue };
            let text =
                format!("{} of its leaf: {}", plural(uplinks.len(), "bad uplink"), place(first));
            if strict { found.bad(text) } else { found.fine(text) }
        }
        Ok(())
    }

    /// Congestion whose root is at the host.
    fn add_congestion(
        &self,
        name: &str,
        strict: bool,
        found: &mut HostCheck,
    ) -> Result<(), NoAnswer> {
        let overview: Overview = self.get("/api/v1/overview", &[])?;
        for region in overview.fabrics.iter().flat_map(|fabric| &fabric.congestion) {
            let ends = [Some(&region.root), region.peer.as_ref()];
            let is_host = ends.into_iter().flatten().any(|port| port.host.as_deref() == Some(name));
            if is_host {
                let text =
                    format!("{} wait for it ({})", plural(region.ports, "port"), region.cause);
                if strict { found.bad(text) } else { found.fine(text) }
            }
        }
        Ok(())
    }

    fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        pairs: &[(&str, String)],
    ) -> Result<T, NoAnswer> {
        let problem = |text: String| NoAnswer::Problem(format!("exporter: {text}"));
        let read = self.0.read(path, pairs, MAX_BODY);
        let (status, body) = read.map_err(|error| problem(one_line(&Remote::reason(&error))))?;
        match status {
            200 => serde_json::from_slice(&body)
                .map_err(|_| problem("the answer is not that of an exporter".to_owned())),
            400 if String::from_utf8_lossy(&body).contains("no node or host has the name") => {
                Err(NoAnswer::NoHost)
            }
            401 => Err(problem("login required".to_owned())),
            status => Err(problem(format!("HTTP status {status}"))),
        }
    }
}

/// Why nothing is known of a fabric now.
fn blind(condition: &Condition) -> Option<&str> {
    match condition.blind() {
        Some(why) => Some(&*why.text),
        None if condition.verdict.is_empty() => Some("the exporter is too old to say"),
        None => None,
    }
}

/// The end of a cable at a switch: the shortest that finds it. Of any other link both ends.
fn place(link: &Link) -> String {
    match link.ends.iter().find(|end| end.node_type == "switch") {
        Some(end) => end.label(),
        None => link.ends.each_ref().map(End::label).join(" – "),
    }
}

/// Whether a link has no verdict on purpose.
fn is_left_out(link: &Link) -> bool {
    let labels = [Reason::Disabled, Reason::Maintenance, Reason::Internal, Reason::NvLink];
    link.reasons.iter().any(|it| labels.iter().any(|reason| it.reason == reason.label()))
}

/// The cables of the host.
fn add_cables(links: &[&Link], found: &mut HostCheck) {
    let (mut ok, mut unknown) = (0, Vec::new());
    for link in links {
        match link.verdict() {
            Verdict::Bad => found.bad(format!("cable {} bad: {}", place(link), reason(link))),
            Verdict::Watch => {
                found.degraded(format!("cable {} degraded: {}", place(link), reason(link)));
            }
            Verdict::Unknown if is_left_out(link) => {
                found.fine(format!("cable {} not judged: {}", place(link), reason(link)));
            }
            Verdict::Unknown => unknown.push(link),
            Verdict::Ok => ok += 1,
        }
    }
    if let Some(first) = unknown.first() {
        let count = plural(unknown.len(), "cable");
        found.unknown(format!("{count} not judged: {} is {}", place(first), first.word()));
    }
    if ok > 0 {
        found.fine(format!("{} ok", plural(ok, "cable")));
    }
}
