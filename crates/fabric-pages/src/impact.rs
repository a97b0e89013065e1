//! The jobs that bad links may hurt: a section of the overview, and one of a link's page.

use std::time::SystemTime;

use fabric_api::impact::{impact, jobs_state, of_link};
use fabric_api::model::{Impact, JobAtRisk, JobsState, Link, LinkImpact};
use fabric_api::{Filter, address};
use fabric_history::local_clock::LocalClock;
use fabric_observation::SharedState;
use ib_health::Verdict;
use maud::{Markup, html};

use crate::components::{self, grouped, plural};

/// The most repairs that the overview lists.
const MAX_REPAIRS: usize = 10;
/// The path of all, for programs.
const ALL: &str = fabric_api::impact::IMPACT;

/// The repairs, those that free most first; nothing if jobs are not read.
pub(crate) fn repairs(state: &SharedState, clock: &LocalClock) -> Markup {
    if state.jobs.is_none() {
        return html! {};
    }
    let found = impact(state, &Filter::default(), SystemTime::now());
    html! { section aria-labelledby="repairs" {
        h2 #repairs { "Repairs by what they free" }
        (known_jobs(&found.jobs, clock))
        @if found.jobs.known { (table(&found, state.fabrics.len() > 1)) }
    } }
}

/// What is known of the jobs.
fn known_jobs(jobs: &JobsState, clock: &LocalClock) -> Markup {
    html! { p .quiet {
        @if jobs.known { (plural(jobs.running, "running job")) } @else { "Running jobs are not known" }
        @if let Some(at) = &jobs.read_at { ", last read " (components::ago(clock, at)) }
        @if let Some(problem) = &jobs.problem { ". " strong { "Reading fails: " } (problem) }
        @if jobs.unreadable > 0 { ". Not readable: " (grouped(jobs.unreadable as u64)) }
        @if jobs.unknown_hosts > 0 { ". " (plural(jobs.unknown_hosts, "host")) " of jobs not found in any fabric" }
        "."
    } }
}

fn table(found: &Impact, are_several: bool) -> Markup {
    html! {
        @if found.repairs.is_empty() { p { "No link is bad." } } @else {
            p { "Upper bounds: a job counts with all of its nodes if one of them is at the link, or sends over it." }
            div .wide tabindex="0" role="group" aria-label="Repairs" { table .stack {
                thead { tr {
                    @if are_several { th scope="col" { "Fabric" } }
                    th scope="col" { "Link" } th .n scope="col" { "Jobs" } th .n scope="col" { "Nodes" }
                    th .n scope="col" { "Node hours left" } th .n scope="col" { "GPU hours left" }
                    th scope="col" { "Try first" }
                } }
                tbody { @for it in found.repairs.iter().take(MAX_REPAIRS) { tr {
                    @if are_several { td data-label="Fabric" { bdi { (it.fabric) } } }
                    th scope="row" data-label="Link" { a href=(address::link(&it.fabric, &it.link)) { bdi { (it.ends.join(" – ")) } } }
                    td .n data-label="Jobs" { (grouped(it.jobs_at_risk as u64)) }
                    td .n data-label="Nodes" { (grouped(it.nodes_at_risk as u64)) }
                    td .n data-label="Node hours left" { (known_hours(it.node_hours_left)) }
                    td .n data-label="GPU hours left" { (known_hours(it.gpu_hours_left)) }
                    td data-label="Try first" { @if let Some(repair) = &it.repair { (repair.description) } }
                } } }
            } }
            @if found.repairs.len() > MAX_REPAIRS {
                p { a href=(ALL) { "All " (grouped(found.repairs.len() as u64)) " repairs (JSON)" } }
            }
        }
    }
}

/// A number of hours: short ones with a digit behind the point.
fn known_hours(hours: Option<f64>) -> String {
    let text =
        |hours: f64| if hours < 10.0 { format!("{hours:.1}") } else { format!("{hours:.0}") };
    hours.map_or_else(|| "unknown".to_owned(), text)
}

/// The jobs that a bad or degraded link may hurt; nothing if jobs are not read.
pub(crate) fn of_page(state: &SharedState, link: &Link, clock: &LocalClock) -> Markup {
    let is_suspect = [Verdict::Bad, Verdict::Watch].iter().any(|it| it.label() == link.verdict);
    if state.jobs.is_none() || !is_suspect {
        return html! {};
    }
    let now = SystemTime::now();
    let id = link.link.parse().ok();
    let found = id.and_then(|id| of_link(state, &link.fabric, id, now));
    html! {
        h2 #jobs { "Jobs that it may hurt" }
        @match &found {
            Some(found) => (jobs_of(found, clock)),
            None => (known_jobs(&jobs_state(state, now), clock)),
        }
    }
}

fn jobs_of(found: &LinkImpact, clock: &LocalClock) -> Markup {
    html! {
        p {
            @if found.jobs_at_risk == 0 { "No running job" } @else {
                "At most " (plural(found.jobs_at_risk, "running job")) " on " (plural(found.nodes_at_risk, "node"))
            }
            @if found.hosts.is_empty() { ". It is no host’s own cable. " } @else {
                ". It is the cable of " bdi { (found.hosts.join(", ")) } ". "
            }
            @match found.crossing_hosts {
                Some(count) => {
                    "Packets of " (plural(count, "other host")) " cross it"
                    @if found.crossing_incomplete { ", maybe of more" }
                    "."
                },
                None => "Which other hosts’ packets cross it is not known.",
            }
        }
        @if !found.jobs.is_empty() { div .wide tabindex="0" role="group" aria-label="Jobs" { table .stack {
            thead { tr {
                th scope="col" { "Job" } th scope="col" { "User" } th scope="col" { "Partition" }
                th .n scope="col" { "Nodes" } th .n scope="col" { "At the link" } th .n scope="col" { "Crossing" }
                th .n scope="col" { "GPUs" } th scope="col" { "Started" } th scope="col" { "Time limit" }
            } }
            tbody { @for job in &found.jobs { (row(job, clock)) } }
        } } }
        @if found.jobs_at_risk > found.jobs.len() {
            p .quiet { "and " (plural(found.jobs_at_risk - found.jobs.len(), "other job")) }
        }
    }
}

fn row(job: &JobAtRisk, clock: &LocalClock) -> Markup {
    let time = |at: &Option<String>| {
        let Some(at) = at else { return html! { "unknown" } };
        components::timestamp_and_age(clock, at, None)
    };
    html! { tr {
        th scope="row" data-label="Job" { bdi { (job.id) } }
        td data-label="User" { bdi { (job.user.as_deref().unwrap_or_default()) } }
        td data-label="Partition" { bdi { (job.partition.as_deref().unwrap_or_default()) } }
        td .n data-label="Nodes" { (grouped(job.nodes as u64)) }
        td .n data-label="At the link" { (grouped(job.nodes_at_link as u64)) }
        td .n data-label="Crossing" { (grouped(job.nodes_crossing as u64)) }
        td .n data-label="GPUs" { @match job.gpus { Some(gpus) => (grouped(gpus)), None => "unknown" } }
        td data-label="Started" { (time(&job.started_at)) }
        td data-label="Time limit" { (time(&job.ends_at)) }
    } }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use fabric_api::links::links;
    use fabric_observation::{JobsObservation, JobsSource, Observation};
    use ib_health::testing::{fine, snapshot};
    use job_list::{Job, JobList};

    fn state(jobs: Option<JobsObservation>) -> SharedState {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        assessment.links[0].verdict = Verdict::Bad;
        let (fabric, snapshot) = ("f".to_owned(), Some(Arc::new(snapshot)));
        let observation = Observation { fabric, snapshot, assessment, ..Observation::default() };
        SharedState { jobs: jobs.map(Arc::new), ..vec![Arc::new(observation)].into() }
    }

    fn read() -> JobsObservation {
        let job = Job {
            id: "4711".into(),
            user: Some("<alice>".into()),
            hosts: vec!["host-a".into(), "host-z".into()],
            ..Job::default()
        };
        let mut jobs = JobsObservation::new(JobsSource::Slurm, Duration::from_secs(60));
        jobs.list = Arc::new(JobList { jobs: vec![job], unreadable: 0 });
        jobs.read_at = Some(SystemTime::now());
        jobs
    }

    fn pages(state: &SharedState) -> [String; 3] {
        let clock = LocalClock::now();
        let links = links(&state.fabrics, &Filter::default()).fabrics.remove(0).links;
        let page = |link| of_page(state, link, &clock).into_string();
        [repairs(state, &clock).into_string(), page(&links[0]), page(&links[1])]
    }

    #[test]
    fn jobs_are_on_the_overview_and_on_the_page_of_the_bad_link() {
        let [overview, bad, fine] = pages(&state(Some(read())));
        assert!(overview.contains("leaf port 1 – host-a port 1"), "{overview}");
        assert!(
            overview.contains("1 running job") && overview.contains("1 host of jobs not found")
        );
        assert!(bad.contains("At most 1 running job on 2 nodes. It is the cable of"), "{bad}");
        assert!(bad.contains("4711") && bad.contains("&lt;alice&gt;") && !bad.contains("<alice>"));
        assert!(bad.contains("is not known"), "no forwarding table was read: {bad}");
        assert_eq!(fine, "");
    }

    #[test]
    fn without_jobs_nothing_changes_and_old_ones_are_not_shown() {
        assert_eq!(pages(&state(None)), ["", "", ""]);
        let mut old = read();
        old.read_at = Some(SystemTime::now() - Duration::from_secs(400));
        old.problem = Some("squeue: no answer within 30 s".into());
        let [overview, bad, _] = pages(&state(Some(old)));
        for page in [overview, bad] {
            assert!(page.contains("Running jobs are not known"), "{page}");
            assert!(page.contains("no answer within 30 s") && !page.contains("4711"), "{page}");
        }
    }
}
