//! `/api/v1/impact`: which running jobs a link may hurt, and bad links by what their repair frees.
//!
//! A job is at risk if one of its hosts is at the link, or sends or receives packets over it. All of its hosts count then:
//! those of a parallel job wait for the slowest. That is an upper bound, and is called so: many errors are corrected, and
//! not every packet of a host crosses a link that some of them cross.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fabric_observation::{LinkHosts, Observation, SharedState};
use ib_fabric::Node;
use ib_fabric::host_names::HostNames;
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::node::NodeKind;
use job_list::{Job, JobList};

use crate::filter::{Filter, selected};
use crate::link_row::LinkRow;
use crate::model::{Impact, JobAtRisk, JobsState, LinkImpact, SuggestedRepair};
use crate::view::FabricView;

/// The path of the list of repairs.
pub const IMPACT: &str = "/api/v1/impact";

/// The most jobs that are listed of a link.
const MAX_LISTED: usize = 100;

const HOUR: f64 = 3600.0;

/// What a bad link may hurt, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkCounts {
    /// The fabric.
    pub fabric: String,
    /// The id of the link.
    pub link: String,
    /// The running jobs.
    pub jobs: usize,
    /// Their hosts.
    pub nodes: usize,
}

/// The jobs of a fabric by its hosts.
struct JobIndex<'a> {
    list: &'a JobList,
    by_host: HashMap<&'a str, Vec<usize>>,
}

/// The hosts of a job that have something to do with a link.
#[derive(Clone, Copy, Default)]
struct AtLink {
    own: usize,
    crossing: usize,
}

/// The name of the host of a node, if it is a channel adapter: forwarding tables have the same.
fn host_of(node: &Node) -> Option<&str> {
    let is_adapter = node.identity.kind == NodeKind::Ca;
    is_adapter.then(|| node.host.as_deref().unwrap_or(&node.name))
}

impl<'a> JobIndex<'a> {
    fn new(view: FabricView<'a>, list: &'a JobList) -> Self {
        let names = HostNames::new(view.snapshot.fabric.nodes.iter().filter_map(host_of));
        let mut by_host: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, job) in list.jobs.iter().enumerate() {
            for host in job.hosts.iter().filter_map(|host| names.find(host)) {
                by_host.entry(host).or_default().push(index);
            }
        }
        JobIndex { list, by_host }
    }

    fn jobs_of(&self, host: &str) -> &[usize] {
        self.by_host.get(host).map(Vec::as_slice).unwrap_or_default()
    }

    /// The jobs that a link may hurt.
    fn at_risk(&self, hosts: &HostsAtLink<'_>) -> BTreeMap<usize, AtLink> {
        let mut found: BTreeMap<usize, AtLink> = BTreeMap::new();
        for host in &hosts.own {
            for job in self.jobs_of(host) {
                found.entry(*job).or_default().own += 1;
            }
        }
        for host in hosts.crossing.iter().flatten() {
            for job in self.jobs_of(host) {
                found.entry(*job).or_default().crossing += 1;
            }
        }
        found
    }

    /// The hosts of some jobs, each once.
    fn nodes(&self, jobs: &BTreeMap<usize, AtLink>) -> usize {
        let hosts = jobs.keys().flat_map(|job| &self.list.jobs[*job].hosts);
        hosts.collect::<HashSet<_>>().len()
    }
}

/// The hosts that have something to do with a link.
struct HostsAtLink<'a> {
    /// Those whose cable it is.
    own: BTreeSet<&'a str>,
    /// The others whose packets cross it; `None` if no forwarding table was read.
    crossing: Option<BTreeSet<&'a str>>,
    is_incomplete: bool,
}

impl<'a> HostsAtLink<'a> {
    fn of(row: &LinkRow<'a>, crossing: &'a BTreeMap<LinkId, LinkHosts>) -> Self {
        let fabric = &row.view.snapshot.fabric;
        let nodes = row.all_ports().map(|port| fabric.node_of(port));
        let own: BTreeSet<&str> = nodes.filter_map(host_of).collect();
        let ids = row.cables().filter_map(|cable| fabric.link_id(cable.low));
        let read: Vec<&LinkHosts> = ids.filter_map(|id| crossing.get(&id)).collect();
        let others = || {
            let hosts = read.iter().flat_map(|read| read.hosts());
            hosts.filter(|host| !own.contains(host)).collect()
        };
        let crossing = (!read.is_empty()).then(others);
        let is_incomplete = read.iter().any(|read| read.may_differ || read.is_incomplete());
        HostsAtLink { own, crossing, is_incomplete }
    }
}

/// A time in seconds since 1970 as RFC 3339, if a calendar has it.
fn rfc3339(seconds: Option<u64>) -> Option<String> {
    // The end of the year 9999.
    let seconds = seconds.filter(|seconds| *seconds < 253_402_300_800)?;
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The jobs, if they are read and known at this time.
fn known(state: &SharedState, now: SystemTime) -> Option<&JobList> {
    state.jobs.as_ref()?.known(now).map(|list| &**list)
}

/// The bad links of a fabric, which has jobs.
fn bad_links(view: FabricView<'_>) -> impl Iterator<Item = LinkRow<'_>> {
    view.links().filter(|row| row.verdict() == Verdict::Bad)
}

/// What is known of the jobs at a time.
pub fn jobs_state(state: &SharedState, now: SystemTime) -> JobsState {
    let Some(jobs) = &state.jobs else { return JobsState::default() };
    let list = known(state, now);
    let read_at = jobs.read_at.map(unix);
    let age = jobs.age(now).map(|age| age.as_secs_f64());
    JobsState {
        source: Some(jobs.source.label().into()),
        read_at: rfc3339(read_at),
        age_seconds: age,
        known: list.is_some(),
        problem: jobs.problem.clone(),
        running: list.map_or(0, |list| list.jobs.len()),
        unreadable: list.map_or(0, |list| list.unreadable),
        unknown_hosts: list.map_or(0, |list| unknown_hosts(state, list)),
    }
}

/// How many hosts of jobs are in no fabric.
fn unknown_hosts(state: &SharedState, list: &JobList) -> usize {
    let views = state.fabrics.iter().filter_map(|fabric| FabricView::new(fabric));
    let nodes = views.flat_map(|view| view.snapshot.fabric.nodes.iter());
    let names = HostNames::new(nodes.filter_map(host_of));
    let hosts: HashSet<&String> = list.jobs.iter().flat_map(|job| &job.hosts).collect();
    hosts.into_iter().filter(|host| names.find(host).is_none()).count()
}

/// The bad links of the selected fabrics by what their repair frees.
pub fn impact(state: &SharedState, filter: &Filter, now: SystemTime) -> Impact {
    let jobs = jobs_state(state, now);
    let mut repairs = Vec::new();
    let Some(list) = known(state, now) else { return Impact { jobs, repairs } };
    for observation in selected(&state.fabrics, filter.fabric.as_deref()) {
        let Some(view) = FabricView::new(observation) else { continue };
        let mut rows = bad_links(view).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let index = JobIndex::new(view, list);
        repairs.extend(rows.map(|row| link_impact(&row, observation, &index, now)));
    }
    repairs.sort_by(|a, b| {
        let size = |it: &LinkImpact| Reverse((it.nodes_at_risk, it.jobs_at_risk));
        let hours = || b.node_hours_left.partial_cmp(&a.node_hours_left).unwrap_or(Ordering::Equal);
        let place = |it: &LinkImpact| (it.fabric.clone(), it.link.clone());
        size(a).cmp(&size(b)).then_with(hours).then_with(|| place(a).cmp(&place(b)))
    });
    Impact { jobs, repairs }
}

/// The jobs that one link may hurt, whatever its verdict is. `None` if jobs are not read or not known, or if the fabric
/// has no such link.
pub fn of_link(
    state: &SharedState,
    fabric: &str,
    link: LinkId,
    now: SystemTime,
) -> Option<LinkImpact> {
    let list = known(state, now)?;
    let observation = selected(&state.fabrics, Some(fabric)).next()?;
    let view = FabricView::new(observation)?;
    let id_of = |row: &LinkRow<'_>| view.snapshot.fabric.link_id(row.cable.low);
    let row = view.links().find(|row| id_of(row) == Some(link))?;
    Some(link_impact(&row, observation, &JobIndex::new(view, list), now))
}

/// The bad links of all fabrics in numbers, for metrics; none if jobs are not read or not known.
pub fn counts(state: &SharedState, now: SystemTime) -> Vec<LinkCounts> {
    let Some(list) = known(state, now) else { return Vec::new() };
    let mut counts = Vec::new();
    for observation in &state.fabrics {
        let Some(view) = FabricView::new(observation) else { continue };
        let mut rows = bad_links(view).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let index = JobIndex::new(view, list);
        counts.extend(rows.map(|row| {
            let jobs = index.at_risk(&HostsAtLink::of(&row, &observation.crossing));
            let (fabric, link) = (view.name.to_owned(), row.id());
            LinkCounts { fabric, link, jobs: jobs.len(), nodes: index.nodes(&jobs) }
        }));
    }
    counts
}

fn link_impact(
    row: &LinkRow<'_>,
    observation: &Observation,
    index: &JobIndex<'_>,
    now: SystemTime,
) -> LinkImpact {
    let view = row.view;
    let hosts = HostsAtLink::of(row, &observation.crossing);
    let jobs = index.at_risk(&hosts);
    let since = row.assessment.map(|link| view.snapshot.anchor.wall_of(link.since));
    let mut listed: Vec<JobAtRisk> =
        jobs.iter().map(|(job, at_link)| at_risk(&index.list.jobs[*job], *at_link)).collect();
    listed.sort_by(|a, b| b.nodes.cmp(&a.nodes).then_with(|| a.id.cmp(&b.id)));
    listed.truncate(MAX_LISTED);
    let all = || jobs.keys().map(|job| &index.list.jobs[*job]);
    let left = |job: &Job| hours(Some(unix(now)), job.end);
    let begun = since.map(unix);
    let lost = |job: &Job| hours(begun.max(job.start), Some(unix(now)));
    LinkImpact {
        fabric: view.name.to_owned(),
        link: row.id(),
        ends: row.ports().map(|port| view.snapshot.fabric.port_label(port)),
        verdict: row.verdict().label().into(),
        since: row.assessment.and_then(|link| view.time(link.since)),
        repair: row.assessment.and_then(|link| link.repair).map(|repair| SuggestedRepair {
            repair: repair.label().into(),
            description: repair.help().into(),
        }),
        crossing_hosts: hosts.crossing.as_ref().map(BTreeSet::len),
        crossing_incomplete: hosts.is_incomplete,
        hosts: hosts.own.iter().map(|host| (*host).to_owned()).collect(),
        jobs_at_risk: jobs.len(),
        nodes_at_risk: index.nodes(&jobs),
        node_hours_left: (jobs.is_empty() || all().any(|job| job.end.is_some()))
            .then(|| node_hours(all(), left)),
        node_hours_since: node_hours(all(), lost),
        gpu_hours_left: gpu_hours(all().filter(|job| job.end.is_some()), left),
        gpu_hours_since: gpu_hours(all(), lost),
        jobs_without_end: all().filter(|job| job.end.is_none()).count(),
        jobs: listed,
    }
}

/// The hours between two times; 0 if one is not known, or if the second is not later.
fn hours(from: Option<u64>, to: Option<u64>) -> f64 {
    from.zip(to).map_or(0.0, |(from, to)| to.saturating_sub(from) as f64 / HOUR)
}

fn node_hours<'a>(jobs: impl Iterator<Item = &'a Job>, hours: impl Fn(&Job) -> f64) -> f64 {
    // Not the sum of nothing, which is -0.
    jobs.fold(0.0, |sum, job| sum + job.hosts.len() as f64 * hours(job))
}

fn gpu_hours<'a>(jobs: impl Iterator<Item = &'a Job>, hours: impl Fn(&Job) -> f64) -> Option<f64> {
    let of_job = |job: &Job| job.gpus.map(|gpus| gpus as f64 * hours(job));
    jobs.filter_map(of_job).reduce(|sum, own| sum + own)
}

fn at_risk(job: &Job, at_link: AtLink) -> JobAtRisk {
    JobAtRisk {
        id: job.id.clone(),
        user: job.user.clone(),
        partition: job.partition.clone(),
        nodes: job.hosts.len(),
        nodes_at_link: at_link.own,
        nodes_crossing: at_link.crossing,
        gpus: job.gpus,
        started_at: rfc3339(job.start),
        ends_at: rfc3339(job.end),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use fabric_observation::{DirectionHosts, JobsObservation, JobsSource};
    use ib_health::testing::{fine, snapshot};

    const NOW: u64 = 100_000;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn job(id: &str, hosts: &[&str], gpus: Option<u64>, start: u64, end: Option<u64>) -> Job {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Job { id: id.into(), hosts, gpus, start: Some(start), end, ..Job::default() }
    }

    /// A leaf with two hosts; the links to both are bad since 100 s, and so it is for this job list.
    fn state(jobs: Vec<Job>, crossing: &[(usize, &[&str])]) -> SharedState {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        for link in &mut assessment.links {
            link.verdict = Verdict::Bad;
        }
        let fabric = &snapshot.fabric;
        let ids: Vec<LinkId> =
            assessment.links.iter().filter_map(|it| fabric.link_id(it.link.low)).collect();
        let hosts = |names: &[&str]| LinkHosts {
            hosts: [
                DirectionHosts {
                    senders: names.iter().map(|name| Arc::from(*name)).collect(),
                    ..DirectionHosts::default()
                },
                DirectionHosts::default(),
            ],
            may_differ: true,
            read_at: at(NOW),
            unread_switches: 0,
        };
        let crossing = crossing.iter().map(|(link, names)| (ids[*link], hosts(names)));
        let crossing = Arc::new(crossing.collect());
        let (fabric, snapshot) = ("f".to_owned(), Some(Arc::new(snapshot)));
        let observation =
            Observation { fabric, snapshot, assessment, crossing, ..Observation::default() };
        let mut read = JobsObservation::new(JobsSource::Slurm, Duration::from_secs(60));
        (read.list, read.read_at) = (Arc::new(JobList { jobs, unreadable: 0 }), Some(at(NOW)));
        SharedState { jobs: Some(Arc::new(read)), ..vec![Arc::new(observation)].into() }
    }

    fn told(state: &SharedState) -> Vec<(String, usize, usize)> {
        let repairs = impact(state, &Filter::default(), at(NOW)).repairs.into_iter();
        repairs.map(|it| (it.ends[1].clone(), it.jobs_at_risk, it.nodes_at_risk)).collect()
    }

    #[test]
    fn repair_that_frees_most_is_first() {
        let jobs = vec![
            job("1", &["host-a"], Some(4), 0, None),
            job("2", &["host-b.example", "far-1", "far-2"], Some(8), NOW - 7200, Some(NOW + 3600)),
            job("3", &["host-b.example"], None, NOW - 3600, Some(NOW - 5)),
        ];
        let state = state(jobs, &[]);
        let expected = [("host-b port 1", 2, 3), ("host-a port 1", 1, 1)];
        assert_eq!(told(&state), expected.map(|(end, jobs, nodes)| (end.to_owned(), jobs, nodes)));
        let impact = impact(&state, &Filter::default(), at(NOW));
        let first = &impact.repairs[0];
        assert_eq!((&first.hosts[..], first.crossing_hosts), (&["host-b".to_owned()][..], None));
        // Three hosts for an hour; and for two hours, and one host for one.
        assert!((first.node_hours_left.unwrap() - 3.0).abs() < 1e-9, "{first:?}");
        assert!((first.node_hours_since - 7.0).abs() < 1e-9, "{first:?}");
        assert_eq!((first.gpu_hours_left, first.gpu_hours_since), (Some(8.0), Some(16.0)));
        assert_eq!((&*first.jobs[0].id, first.jobs[0].nodes_at_link), ("2", 1));
        let second = &impact.repairs[1];
        assert_eq!((second.jobs_without_end, second.gpu_hours_left), (1, None));
        assert_eq!(second.node_hours_left, None, "its only job has no time limit");
        // It is bad since 100 s after the beginning of time.
        assert!((second.node_hours_since - (NOW - 100) as f64 / HOUR).abs() < 1e-9, "{second:?}");
        let JobsState { running, unknown_hosts, known, .. } = impact.jobs;
        assert_eq!((running, unknown_hosts, known), (3, 2, true));
        let json = serde_json::to_string(&impact).unwrap();
        assert_eq!(serde_json::from_str::<Impact>(&json).unwrap(), impact);
    }

    #[test]
    fn hosts_whose_packets_cross_the_link_count_once() {
        let jobs = vec![job("1", &["host-a", "host-b"], None, 0, None)];
        let state = state(jobs, &[(0, &["host-a", "host-b"][..])]);
        let repairs = impact(&state, &Filter::default(), at(NOW)).repairs;
        let first = repairs.iter().find(|it| it.crossing_hosts.is_some()).unwrap();
        assert_eq!((first.crossing_hosts, first.crossing_incomplete), (Some(1), true));
        let JobAtRisk { nodes, nodes_at_link, nodes_crossing, .. } = first.jobs[0];
        assert_eq!((nodes, nodes_at_link, nodes_crossing), (2, 1, 1));
        let counted = counts(&state, at(NOW));
        assert_eq!(counted.len(), 2);
        assert!(counted.iter().all(|it| (it.jobs, it.nodes) == (1, 2)), "{counted:?}");
    }

    #[test]
    fn unknown_jobs_are_not_called_zero() {
        let mut state = state(vec![job("1", &["host-a"], None, 0, None)], &[]);
        let late = at(NOW + 301);
        assert!(counts(&state, late).is_empty() && !counts(&state, at(NOW + 300)).is_empty());
        let old = impact(&state, &Filter::default(), late);
        assert_eq!((old.jobs.known, old.jobs.running, old.repairs.len()), (false, 0, 0));
        assert_eq!(old.jobs.age_seconds, Some(301.0));
        let id = "0x0000000000000001:1-0x0000000000000002:1".parse().unwrap();
        assert_eq!(of_link(&state, "f", id, at(NOW)).unwrap().jobs_at_risk, 1);
        assert_eq!(of_link(&state, "f", id, late), None);
        assert_eq!(of_link(&state, "g", id, at(NOW)), None);
        state.jobs = None;
        assert_eq!(impact(&state, &Filter::default(), at(NOW)).jobs, JobsState::default());
        assert!(counts(&state, at(NOW)).is_empty());
    }

    #[test]
    fn absurd_times_are_null() {
        let jobs = vec![job("1", &["host-a"], Some(u64::MAX), u64::MAX, Some(u64::MAX))];
        let found = impact(&state(jobs, &[]), &Filter::default(), at(NOW));
        let job = &found.repairs[0].jobs[0];
        assert_eq!((&job.started_at, &job.ends_at), (&None, &None));
    }
}
