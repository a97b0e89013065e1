//! What a monitor does with forwarding tables between two sweeps: it answers questions about routes, and reads by itself
//! which hosts' packets cross the bad links.
//!
//! All of it shares one cache and one limit of requests per fabric. Each question has a limit of requests and of time,
//! so that it delays no sweep; one whose caller has gone is dropped. Bad links wait while questions do, and leave half of
//! the requests of a minute to questions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, SystemTime};

use fabric_api::model::{CrossedLinks, HostsOfLink, Routes};
use fabric_api::route_desk::{self, Question, Unanswered};
use fabric_api::routes::{self, AnswerContext};
use fabric_api::{Filter, links};
use fabric_observation::{LinkHosts, Observation};
use ib_fabric::Fabric;
use ib_fabric::PortIndex;
use ib_fabric::forwarding::budget::SmpBudget;
use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::link_users_query::LinkUsersQuery;
use ib_fabric::forwarding::route_query::RouteQuery;
use ib_fabric::forwarding::tables_read::TablesRead;
use ib_fabric::topology::{Link, LinkId};
use ib_health::Verdict;
use ib_mad::m_key::MKeys;
use ib_mad::{Mad, Moment};
use ib_umad::plan::{QueryPlan, RunError};
use ib_umad::{QueuePair, Request, RequestError};

/// The most requests of one question, not counting retries: a minute has twice as many by default.
const MAX_REQUESTS: usize = 2_000;
/// The longest time of one question. It takes a second in a fabric of 5,000 hosts.
const MAX_TIME: Duration = Duration::from_secs(5);
/// The time that a question gets at least, once it has begun.
const MIN_TIME: Duration = Duration::from_millis(500);
/// Of so many bad links the hosts are read.
const MAX_BAD_LINKS: usize = 20;
/// After this time they are read again.
const REREAD: Duration = Duration::from_secs(600);
/// After this time, if the limit of requests ended the reading: what was read is still known then.
const CONTINUE: Duration = Duration::from_secs(60);
/// How often it is continued.
const MAX_PARTS: u8 = 3;

/// What the answers are read with.
pub(super) struct Desk<'a> {
    /// The fabric of the latest discovery.
    pub fabric: &'a Fabric,
    /// The latest observation.
    pub observation: &'a Observation,
    pub keys: &'a MKeys,
    /// When reading has to end.
    pub until: Moment,
}

/// Runs plans on the monitor's device.
pub(super) trait Wire {
    fn now(&self) -> Moment;
    fn anchor(&self) -> ib_mad::moment::Anchor;
    fn run(&mut self, plan: &mut impl QueryPlan) -> Result<(), RunError>;
}

/// A plan that sends no more after a moment.
struct Bounded<P> {
    plan: P,
    now: Moment,
    until: Moment,
}

impl<P: QueryPlan> QueryPlan for Bounded<P> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if self.is_over() { None } else { self.plan.next_request(qp) }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.now = self.now.max(at);
        self.plan.handle_outcome(tag, outcome, at);
    }

    fn is_over(&self) -> bool {
        self.now >= self.until
    }
}

fn run<P: QueryPlan>(wire: &mut impl Wire, plan: P, until: Moment) -> Result<P, RunError> {
    let mut bounded = Bounded { plan, now: wire.now(), until };
    wire.run(&mut bounded)?;
    Ok(bounded.plan)
}

/// What was read of the hosts that cross a bad link.
#[derive(Debug)]
struct Crossing {
    /// The routes that it is valid for.
    generation: u64,
    at: Moment,
    /// The limit of requests ended the reading.
    is_cut: bool,
    parts: u8,
}

/// The answers of a monitor about routes.
#[derive(Debug)]
pub(super) struct RouteAnswers {
    pub sender: SyncSender<Question>,
    questions: Receiver<Question>,
    cache: ForwardingCache,
    /// The limit of requests per minute.
    per_minute: u32,
    /// How often all routes changed.
    generation: u64,
    /// The bad links, the worst first.
    bad: Vec<LinkId>,
    read: BTreeMap<LinkId, Crossing>,
    /// What is published.
    pub crossing: Arc<BTreeMap<LinkId, LinkHosts>>,
}

/// An answer, or why there is none.
type Answer<T> = Result<Result<T, Unanswered>, RunError>;

impl RouteAnswers {
    pub fn new(per_minute: u32) -> Self {
        let (sender, questions) = route_desk::channel();
        let budget = SmpBudget::new(per_minute);
        RouteAnswers {
            sender,
            questions,
            cache: ForwardingCache::new(budget, ForwardingCache::DEFAULT_MAX_AGE),
            per_minute,
            generation: 0,
            bad: Vec::new(),
            read: BTreeMap::new(),
            crossing: Arc::default(),
        }
    }

    /// A discovery has found this fabric.
    pub fn on_discovery(&mut self, fabric: &Fabric, now: Moment) {
        self.generation += u64::from(self.cache.on_discovery(fabric, now));
    }

    /// A sweep has given the links these verdicts: the bad ones are read, and others are forgotten.
    pub fn on_sweep(&mut self, observation: &Arc<Observation>) {
        if self.per_minute == 0 {
            return;
        }
        let filter = Filter { verdicts: vec![Verdict::Bad], ..Filter::default() };
        let one = std::slice::from_ref(observation);
        let (_, worst) = links::ranked(one, &filter, 0, MAX_BAD_LINKS);
        let ids = worst.iter().filter_map(|row| row.id().parse().ok());
        self.bad = ids.collect();
        let kept: BTreeSet<LinkId> = self.bad.iter().copied().collect();
        self.read.retain(|link, _| kept.contains(link));
        if self.crossing.keys().any(|link| !kept.contains(link)) {
            Arc::make_mut(&mut self.crossing).retain(|link, _| kept.contains(link));
        }
    }

    /// Answers that there is no device.
    pub fn refuse_all(&self, fabric: &str) {
        for question in self.questions.try_iter() {
            question.refuse(Unanswered::Gone(fabric.to_owned()));
        }
    }

    /// Until when a question may be read that begins now, if the next sweep is due then: requests that time out must have
    /// ended. `None` if too little time is left.
    pub fn time_until(now: Moment, due: Moment, overrun: Duration) -> Option<Moment> {
        let until = due.before(overrun).min(now + MAX_TIME);
        (until >= now + MIN_TIME).then_some(until)
    }

    /// The same for the first question after a sweep, which always gets some time: otherwise none would be answered where
    /// sweeps take as long as their interval.
    pub fn least_time(now: Moment, due: Moment, overrun: Duration) -> Moment {
        due.before(overrun).min(now + MAX_TIME).max(now + MIN_TIME)
    }

    /// Answers the next question, if there is one.
    pub fn answer_next(&mut self, desk: &Desk<'_>, wire: &mut impl Wire) -> Result<bool, RunError> {
        let Some(question) = self.questions.try_iter().find(|it| !it.is_abandoned()) else {
            return Ok(false);
        };
        if self.per_minute == 0 {
            question.refuse(Unanswered::Disabled(desk.observation.fabric.clone()));
            return Ok(true);
        }
        match question {
            Question::Routes { from, to, reply } => {
                reply.send(self.routes(desk, wire, &from, &to)?);
            }
            Question::Hosts { link, reply } => reply.send(self.hosts(desk, wire, link)?),
            Question::Crossed { host, reply } => reply.send(self.crossed(desk, wire, &host)?),
        }
        Ok(true)
    }

    fn routes(
        &mut self,
        desk: &Desk<'_>,
        wire: &mut impl Wire,
        from: &str,
        to: &str,
    ) -> Answer<Routes> {
        let wanted = match routes::endpoints(desk.fabric, from, to) {
            Ok(wanted) => wanted,
            Err(problem) => return Ok(Err(problem)),
        };
        let now = wire.now();
        let query = RouteQuery::new(desk.fabric, &mut self.cache, desk.keys, wanted, now)
            .max_requests(MAX_REQUESTS);
        let found = run(wire, query, desk.until)?.finish();
        Ok(Ok(routes::routes(context(desk, wire), &found)))
    }

    fn crossed(
        &mut self,
        desk: &Desk<'_>,
        wire: &mut impl Wire,
        host: &str,
    ) -> Answer<CrossedLinks> {
        let wanted = match routes::host_routes(desk.fabric, host) {
            Ok(wanted) => wanted,
            Err(problem) => return Ok(Err(problem)),
        };
        // What it receives takes one block of each switch, and so comes first.
        let mut left = MAX_REQUESTS;
        let mut found = Vec::new();
        for ends in [&wanted.to, &wanted.from] {
            let now = wire.now();
            let query = RouteQuery::new(desk.fabric, &mut self.cache, desk.keys, ends.clone(), now)
                .max_requests(left);
            let routes = run(wire, query, desk.until)?.finish();
            left = left.saturating_sub(routes.read.requests);
            found.push(routes);
        }
        Ok(Ok(routes::crossed(context(desk, wire), &wanted, [&found[0], &found[1]])))
    }

    fn hosts(
        &mut self,
        desk: &Desk<'_>,
        wire: &mut impl Wire,
        link: LinkId,
    ) -> Answer<HostsOfLink> {
        let Some((whole, cable)) = find(desk.fabric, link) else {
            let problem = format!("no link has the ID {link}, or it is down");
            return Ok(Err(Unanswered::NotFound(problem)));
        };
        let (hosts, read) = self.read_hosts(desk, wire, cable, MAX_REQUESTS)?;
        let read: Vec<&TablesRead> = read.iter().collect();
        Ok(Ok(routes::hosts_of_link(context(desk, wire), whole, &hosts, &read)))
    }

    /// Reads who crosses a link: of several planes, each.
    fn read_hosts(
        &mut self,
        desk: &Desk<'_>,
        wire: &mut impl Wire,
        link: Link,
        max_requests: usize,
    ) -> Result<(LinkHosts, Vec<TablesRead>), RunError> {
        let fabric = desk.fabric;
        let anchor = wire.anchor();
        let wall = |moment| -> SystemTime { anchor.wall_of(moment) };
        if let Some(hosts) = LinkHosts::of_adapter(fabric, link, wall(wire.now())) {
            return Ok((hosts, Vec::new()));
        }
        let mut left = max_requests;
        let mut planes = Vec::new();
        for (plane, ports) in planes_of(fabric, link) {
            let now = wire.now();
            let query = LinkUsersQuery::new(fabric, &mut self.cache, desk.keys, plane, now)
                .max_requests(left);
            let users = run(wire, query, desk.until)?.finish();
            left = left.saturating_sub(users.read.requests);
            planes.push((ports, users));
        }
        let oldest = planes.iter().filter_map(|(_, users)| users.read.oldest).min();
        let read_at = wall(oldest.unwrap_or_else(|| wire.now()));
        let hosts = LinkHosts::of_planes(fabric, &planes, read_at);
        Ok((hosts, planes.into_iter().map(|(_, users)| users.read).collect()))
    }

    /// Reads who crosses the next bad link, if one is due and enough requests are left. Returns whether it did.
    pub fn read_next(&mut self, desk: &Desk<'_>, wire: &mut impl Wire) -> Result<bool, RunError> {
        let now = wire.now();
        let reserve = self.per_minute / 2;
        let spare = self.cache.budget.available(now).saturating_sub(reserve);
        if spare == 0 || spare < reserve / 4 {
            return Ok(false);
        }
        let due = self.bad.iter().copied().find(|link| self.is_due(*link, now));
        let Some(id) = due else { return Ok(false) };
        let parts = match self.read.get(&id) {
            Some(known) if known.generation == self.generation && known.is_cut => known.parts + 1,
            _ => 1,
        };
        let mut crossing = Crossing { generation: self.generation, at: now, is_cut: false, parts };
        match find(desk.fabric, id) {
            Some((_, cable)) => {
                let most = MAX_REQUESTS.min(spare as usize);
                let (hosts, read) = self.read_hosts(desk, wire, cable, most)?;
                let is_cut = |read: &TablesRead| read.limit.is_some();
                let is_over = wire.now() >= desk.until;
                crossing.is_cut = hosts.is_incomplete() && (is_over || read.iter().any(is_cut));
                Arc::make_mut(&mut self.crossing).insert(id, hosts);
            }
            // Nothing crosses it while it is down.
            None => {
                Arc::make_mut(&mut self.crossing).remove(&id);
            }
        }
        self.read.insert(id, crossing);
        Ok(true)
    }

    fn is_due(&self, link: LinkId, now: Moment) -> bool {
        let Some(known) = self.read.get(&link) else { return true };
        let is_continued = known.is_cut && known.parts < MAX_PARTS;
        let after = if is_continued { CONTINUE } else { REREAD };
        known.generation != self.generation || now.since(known.at) >= after
    }
}

fn context<'a>(desk: &'a Desk<'_>, wire: &impl Wire) -> AnswerContext<'a> {
    AnswerContext {
        fabric: desk.fabric,
        observation: desk.observation,
        anchor: wire.anchor(),
        now: wire.now(),
    }
}

/// A link that is up, with the id of the whole link if it is a plane.
fn find(fabric: &Fabric, id: LinkId) -> Option<(LinkId, Link)> {
    let low = fabric.find(id.low)?;
    let peer = fabric.port(low).connected_peer()?;
    let is_its = fabric.port_key(peer) == id.high;
    let link = Link { low: low.min(peer), high: low.max(peer) };
    is_its.then(|| Some((fabric.link_id(low)?, fabric.whole_link(link)))).flatten()
}

/// The links of the subnet that a link is of, each with its ports in the order of the link's ends.
fn planes_of(fabric: &Fabric, link: Link) -> Vec<(Link, [PortIndex; 2])> {
    match fabric.aggregated_link(link.low) {
        Some(whole) => whole.planes.iter().map(|plane| (plane.link, plane.ports)).collect(),
        None => vec![(link, link.ports())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn question_ends_before_the_next_sweep_is_due() {
        let overrun = Duration::from_millis(1_500);
        let until = RouteAnswers::time_until(at(0), at(15), overrun);
        assert_eq!(until, Some(at(5)), "no question takes longer");
        let until = RouteAnswers::time_until(at(11), at(15), overrun);
        assert_eq!(until, Some(at(15).before(overrun)));
        assert_eq!(RouteAnswers::time_until(at(14), at(15), overrun), None);
        let least = RouteAnswers::least_time(at(14), at(15), overrun);
        assert_eq!(least, at(14) + MIN_TIME, "one of them gets some time after each sweep");
    }
}
