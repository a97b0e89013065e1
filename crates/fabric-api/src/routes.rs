//! `/api/v1/route`, `/api/v1/links/{id}/hosts` and `/api/v1/crossed`: which routes a question is about, and the models of
//! what was found, with the verdicts of the cables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fabric_observation::{LinkHosts, Observation};
use ib_fabric::forwarding::route::{Hop, RouteBreak};
use ib_fabric::forwarding::route_query::{self, Endpoints, FoundRoute};
use ib_fabric::forwarding::tables_read;
use ib_fabric::topology::LinkId;
use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_health::Verdict;
use ib_mad::moment::Anchor;
use ib_mad::{Lid, Moment, NodeKind};

use crate::link_row::{LinkRow, worst_first};
use crate::model::{
    self, CrossedLink, CrossedLinks, HostsOfDirection, HostsOfLink, NodeName, Route, RouteCable,
    RouteEnd, RouteHop, Routes, SuggestedRepair, TablesRead, UnreadTable,
};
use crate::places::{FabricPlace, lids, places};
use crate::route_desk::Unanswered;
use crate::view::{FabricView, port_name, rfc3339};

/// How many routes between two nodes are followed: eight adapters with eight others, each with four LIDs.
const MAX_ROUTES: usize = 256;
/// How many routes from or to a host are followed, each in a few microseconds.
const MAX_CROSSED: usize = 50_000;

/// What answers are made of besides the tables: the fabric whose switches were asked, and its latest evaluation.
#[derive(Clone, Copy, Debug)]
pub struct AnswerContext<'a> {
    /// The fabric of the latest discovery.
    pub fabric: &'a Fabric,
    /// The latest observation, with the verdicts.
    pub observation: &'a Observation,
    /// Converts moments to the time of day.
    pub anchor: Anchor,
    /// When the answer is made.
    pub now: Moment,
}

fn not_found(text: &str) -> Unanswered {
    let problem = "no present node, host or port has this name, GUID or LID";
    Unanswered::NotFound(format!("{text:?}: {problem}"))
}

fn places_of(fabric: &Fabric, text: &str) -> Result<Vec<FabricPlace>, Unanswered> {
    Some(places(fabric, text)).filter(|places| !places.is_empty()).ok_or_else(|| not_found(text))
}

/// The routes from one node or port to another. An error if a text means nothing, or too much.
pub fn endpoints(fabric: &Fabric, from: &str, to: &str) -> Result<Vec<Endpoints>, Unanswered> {
    let mut wanted = Vec::new();
    let (sources, targets) = (places_of(fabric, from)?, places_of(fabric, to)?);
    for source in &sources {
        for target in &targets {
            let between = Endpoints::between(fabric, source.node, target.node);
            wanted.extend(
                between.into_iter().filter(|ends| is_meant(fabric, *ends, [*source, *target])),
            );
        }
    }
    match wanted.len() {
        0 => Err(Unanswered::NotFound(format!(
            "{from:?} and {to:?}: one of them has no port with a link and a LID"
        ))),
        1..=MAX_ROUTES => Ok(wanted),
        many => Err(Unanswered::TooMany(format!(
            "{many} routes lead from {from:?} to {to:?}: name one adapter or port of each instead of the host"
        ))),
    }
}

/// Whether a route begins and ends at the ports that were named. All ports of a switch have the LID of port 0.
fn is_meant(fabric: &Fabric, ends: Endpoints, [source, target]: [FabricPlace; 2]) -> bool {
    let of_adapter =
        |place: FabricPlace| place.port.filter(|port| !fabric.node_of(*port).is_switch());
    of_adapter(source).is_none_or(|port| port == ends.from)
        && of_adapter(target).is_none_or(|port| lids(fabric, port).any(|lid| lid == ends.to.0))
}

/// The routes of all packets that a host receives, and of all that it sends: the first ones begin at the switches that
/// have other hosts, since those of all hosts at a switch are the same.
#[derive(Clone, Debug)]
pub struct HostRoutes {
    /// The adapters.
    pub nodes: Vec<NodeIndex>,
    /// What it receives.
    pub to: Vec<Endpoints>,
    /// What it sends.
    pub from: Vec<Endpoints>,
}

/// The routes of a host, or of one of its adapters or ports.
pub fn host_routes(fabric: &Fabric, host: &str) -> Result<HostRoutes, Unanswered> {
    let places = places_of(fabric, host)?;
    let is_host = |node: NodeIndex| {
        fabric.node(node).identity.kind == NodeKind::Ca && fabric.node(node).present()
    };
    let nodes: BTreeSet<NodeIndex> = places.iter().map(|place| place.node).collect();
    if !nodes.iter().all(|node| is_host(*node)) {
        let problem = format!("{host:?} is not a host: name a host, or an adapter or port of one");
        return Err(Unanswered::NotFound(problem));
    }
    let is_own = |port: PortIndex| {
        let place = places.iter().find(|place| place.node == fabric.port(port).node);
        place.is_some_and(|place| place.port.is_none_or(|only| only == port))
    };
    let connected = fabric.port_indexes().filter(|port| {
        is_host(fabric.port(*port).node) && fabric.port(*port).connected_peer().is_some()
    });
    let (own, others): (Vec<_>, Vec<_>) = connected.partition(|port| is_own(*port));
    let lids_of = |ports: &[PortIndex]| -> BTreeSet<u16> {
        ports.iter().flat_map(|port| lids(fabric, *port)).collect()
    };
    let others: Vec<PortIndex> =
        others.into_iter().filter(|port| !nodes.contains(&fabric.port(*port).node)).collect();
    let switches = others.iter().filter_map(|port| {
        let far = fabric.port(fabric.port(*port).connected_peer()?).node;
        fabric.node(far).is_switch().then(|| fabric.ports_of(far).next()).flatten()
    });
    let switches: BTreeSet<PortIndex> = switches.collect();
    let between = |from: &[PortIndex], to: &BTreeSet<u16>| -> Vec<Endpoints> {
        let to_each = |from: &PortIndex| {
            let from = *from;
            to.iter().map(move |lid| Endpoints { from, to: Lid(*lid) })
        };
        from.iter().flat_map(to_each).collect()
    };
    let (own_lids, other_lids) = (lids_of(&own), lids_of(&others));
    let many = own.len() * other_lids.len() + switches.len() * own_lids.len();
    if many > MAX_CROSSED {
        return Err(Unanswered::TooMany(format!(
            "{many} routes lead from and to {host:?}: name one of its adapters or ports instead of the host"
        )));
    }
    Ok(HostRoutes {
        nodes: nodes.into_iter().collect(),
        to: between(&switches.into_iter().collect::<Vec<_>>(), &own_lids),
        from: between(&own, &other_lids),
    })
}

/// The links with some ids and their assessments.
fn rows<'a>(
    observation: &'a Observation,
    wanted: &BTreeSet<LinkId>,
) -> HashMap<LinkId, LinkRow<'a>> {
    let rows = FabricView::new(observation).into_iter().flat_map(FabricView::links);
    let with_id = rows.filter_map(|row| {
        let id = row.view.snapshot.fabric.link_id(row.cable.low)?;
        wanted.contains(&id).then_some((id, row))
    });
    with_id.collect()
}

/// The cables that are sent over from ports.
struct Cables<'a> {
    fabric: &'a Fabric,
    rows: HashMap<LinkId, LinkRow<'a>>,
}

impl<'a> Cables<'a> {
    fn of(context: AnswerContext<'a>, ports: impl Iterator<Item = PortIndex>) -> Self {
        let fabric = context.fabric;
        let wanted = ports.filter_map(|port| fabric.link_id(port)).collect();
        Cables { fabric, rows: rows(context.observation, &wanted) }
    }

    /// The cable at a port that sends; `None` of a port without one.
    fn at(&self, from: PortIndex) -> Option<RouteCable> {
        let to = self.fabric.port(from).peer?.port;
        let id = self.fabric.link_id(from)?;
        let row = self.rows.get(&id);
        let assessment = row.and_then(|row| row.assessment);
        let verdict = row.map_or(Verdict::Unknown, LinkRow::verdict);
        let reasons = assessment.into_iter().flat_map(worst_first);
        Some(RouteCable {
            link: id.to_string(),
            from: port_name(self.fabric, from),
            to: port_name(self.fabric, to),
            verdict: verdict.label().into(),
            reasons: reasons.map(|(reason, _)| reason.label().into()).collect(),
            repair: assessment.and_then(|link| link.repair).map(|repair| SuggestedRepair {
                repair: repair.label().into(),
                description: repair.help().into(),
            }),
            learning: row.and_then(LinkRow::learning),
        })
    }

    /// The place of a link in a list that begins with the worst.
    fn severity(&self, id: LinkId) -> impl Ord + use<> {
        let unknown = || model::severity(Verdict::Unknown, 0.0, 0);
        self.rows.get(&id).map_or_else(unknown, LinkRow::severity)
    }
}

/// The model of routes that were found.
pub fn routes(context: AnswerContext<'_>, found: &route_query::Routes) -> Routes {
    let hops = |found: &FoundRoute| -> Vec<Hop> { hops_of(found).to_vec() };
    let egress = found.routes.iter().flat_map(hops).filter_map(|hop| hop.egress);
    let cables = Cables::of(context, egress);
    let route = |found: &FoundRoute| Route {
        lid: found.ends.to.0,
        hops: hops_of(found).iter().map(|hop| route_hop(&cables, *hop)).collect(),
        broken: found.route.as_ref().err().map(|broken| RouteEnd {
            node: broken.end().map(|node| context.fabric.node(node).name.clone()),
            cause: cause_label(broken.cause).into(),
            description: broken.cause.to_string(),
        }),
    };
    Routes {
        fabric: context.observation.fabric.clone(),
        routes: found.routes.iter().map(route).collect(),
        may_differ: found.may_differ,
        tables: tables(context, &[&found.read]),
    }
}

fn hops_of(found: &FoundRoute) -> &[Hop] {
    found.route.as_ref().map_or_else(|broken| &broken.hops, |route| &route.hops)
}

fn route_hop(cables: &Cables<'_>, hop: Hop) -> RouteHop {
    let node = cables.fabric.node(hop.node);
    let number = |port: PortIndex| cables.fabric.port(port).number;
    RouteHop {
        guid: node.identity.guid.to_string(),
        node: node.name.clone(),
        host: node.host.clone(),
        node_type: node.identity.kind.label().into(),
        in_port: hop.ingress.map(number),
        port: hop.egress.map(number),
        cable: hop.egress.and_then(|port| cables.at(port)),
    }
}

fn cause_label(cause: RouteBreak) -> &'static str {
    match cause {
        RouteBreak::NoEntry => "no_entry",
        RouteBreak::NoSuchPort(_) => "no_such_port",
        RouteBreak::NoLink(_) => "no_link",
        RouteBreak::Loop => "loop",
        RouteBreak::OtherNode => "other_node",
        RouteBreak::NotRead(_) => "not_read",
    }
}

fn node_name(fabric: &Fabric, node: NodeIndex) -> NodeName {
    let node = fabric.node(node);
    NodeName { guid: node.identity.guid.to_string(), node: node.name.clone() }
}

/// What several queries have read, together.
pub fn tables(context: AnswerContext<'_>, read: &[&tables_read::TablesRead]) -> TablesRead {
    let oldest = read.iter().filter_map(|read| read.oldest).min();
    let mut unread = BTreeMap::new();
    for failed in read.iter().flat_map(|read| &read.failed) {
        unread.entry(failed.switch).or_insert(failed.cause);
    }
    let unread = unread.into_iter().map(|(switch, cause)| UnreadTable {
        switch: node_name(context.fabric, switch),
        cause: cause.to_string(),
    });
    TablesRead {
        read_at: oldest.and_then(|oldest| rfc3339(&context.anchor, oldest)),
        age_seconds: oldest.map(|oldest| context.now.since(oldest).as_secs_f64()),
        requests: read.iter().map(|read| read.requests).sum(),
        unread: unread.collect(),
        limit: read.iter().find_map(|read| read.limit).map(|limit| limit.to_string()),
    }
}

fn owned(names: &[Arc<str>]) -> Vec<String> {
    names.iter().map(|name| (**name).to_owned()).collect()
}

/// The model of the hosts whose packets cross a link.
pub fn hosts_of_link(
    context: AnswerContext<'_>,
    link: LinkId,
    found: &LinkHosts,
    read: &[&tables_read::TablesRead],
) -> HostsOfLink {
    let port = |key| context.fabric.find(key).map(|port| port_name(context.fabric, port));
    let ends = link.ends();
    let direction = |nth: usize| {
        let hosts = &found.hosts[nth];
        Some(HostsOfDirection {
            from: port(ends[nth])?,
            to: port(ends[1 - nth])?,
            senders: owned(&hosts.senders),
            receivers: owned(&hosts.receivers),
            undecided: hosts.undecided,
        })
    };
    HostsOfLink {
        fabric: context.observation.fabric.clone(),
        link: link.to_string(),
        directions: (0..2).filter_map(direction).collect(),
        hosts: found.hosts().into_iter().map(str::to_owned).collect(),
        may_differ: found.may_differ,
        incomplete: found.is_incomplete(),
        tables: tables(context, read),
    }
}

/// A link that is crossed: a port that sends, and what crosses it.
#[derive(Clone, Copy)]
struct Crossed {
    from: PortIndex,
    sends: bool,
    receives: bool,
}

/// The model of the links that the packets of a host cross: of those that it receives, and of those that it sends.
pub fn crossed(
    context: AnswerContext<'_>,
    of: &HostRoutes,
    [to, from]: [&route_query::Routes; 2],
) -> CrossedLinks {
    let fabric = context.fabric;
    let is_of_other_host = |port: &PortIndex| {
        let node = fabric.port(*port).node;
        fabric.node(node).identity.kind == NodeKind::Ca && !of.nodes.contains(&node)
    };
    let mut links: BTreeMap<LinkId, Crossed> = BTreeMap::new();
    for (found, is_sent) in [(from, true), (to, false)] {
        let hops = found.routes.iter().flat_map(hops_of);
        for egress in hops.filter_map(|hop| hop.egress) {
            let ends = [Some(egress), fabric.port(egress).connected_peer()];
            if ends.iter().flatten().any(is_of_other_host) {
                continue;
            }
            let Some(id) = fabric.link_id(egress) else { continue };
            let none = Crossed { from: egress, sends: false, receives: false };
            let link = links.entry(id).or_insert(none);
            *(if is_sent { &mut link.sends } else { &mut link.receives }) = true;
        }
    }
    let cables = Cables::of(context, links.values().map(|link| link.from));
    let mut links: Vec<(LinkId, Crossed)> = links.into_iter().collect();
    links.sort_by_key(|(id, _)| (cables.severity(*id), *id));
    let listed = links.into_iter().filter_map(|(_, Crossed { from, sends, receives })| {
        Some(CrossedLink { cable: cables.at(from)?, sends, receives })
    });
    let broken = || {
        [to, from].into_iter().flat_map(|it| &it.routes).filter_map(|it| it.route.as_ref().err())
    };
    let is_unread = |cause| matches!(cause, RouteBreak::NotRead(_));
    CrossedLinks {
        fabric: context.observation.fabric.clone(),
        nodes: of.nodes.iter().map(|node| node_name(fabric, *node)).collect(),
        links: listed.collect(),
        may_differ: to.may_differ || from.may_differ,
        unknown_routes: broken().filter(|broken| is_unread(broken.cause)).count(),
        broken_routes: broken().filter(|broken| !is_unread(broken.cause)).count(),
        tables: tables(context, &[&to.read, &from.read]),
    }
}
