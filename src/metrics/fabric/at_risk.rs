//! Families of the running jobs that bad links may hurt. Few links are bad, and jobs change without a sweep: so these are
//! counted once for each state, and written at each scrape.

use std::time::SystemTime;

use exposition::{Families, Family, Labeled, MetricType, Part, Parts, Samples};
use fabric_api::impact::{LinkCounts, counts};
use fabric_observation::SharedState;
use fabric_observation::families::LINK_LABELS;

use crate::metrics::family_table::grouped;
use crate::metrics::family_table::{families, family};
use crate::metrics::selection::Group;

families! {
    AT_RISK: &LinkCounts;
    "infiniband_link_jobs_at_risk" Gauge LINK_LABELS
        "Running jobs that a bad link may hurt: those with a host at the link, or with one whose packets cross it. An upper bound. Needs --jobs.from; absent of links that are not bad, and while no read of the jobs has succeeded for 5 intervals."
        => |counts, samples| samples.value(counts.jobs as u64);
    "infiniband_link_nodes_at_risk" Gauge LINK_LABELS
        "Hosts of the jobs of infiniband_link_jobs_at_risk, at the link or not: a job waits for its slowest host. An upper bound. Absent under the same conditions."
        => |counts, samples| samples.value(counts.nodes as u64);
}

/// The families with their group.
pub fn families() -> impl Iterator<Item = (Family, Group)> {
    grouped(AT_RISK, Group::Links)
}

/// Counts them for the jobs that were last read, however old that is: [`render`] knows the time.
pub(in crate::metrics) fn count(state: &SharedState) -> Vec<LinkCounts> {
    let read_at = state.jobs.as_ref().and_then(|jobs| jobs.read_at);
    read_at.map(|read_at| counts(state, read_at)).unwrap_or_default()
}

/// Renders what was counted, if the jobs are known at this time.
pub(in crate::metrics) fn render(
    state: &SharedState,
    links: &[LinkCounts],
    now: SystemTime,
) -> Vec<Part<Vec<u8>>> {
    let is_known = state.jobs.as_ref().is_some_and(|jobs| jobs.known(now).is_some());
    let mut labeled = Labeled::default();
    for link in links.iter().filter(|_| is_known) {
        labeled.push(link, |labels| {
            labels.push("fabric", &link.fabric).push_if_any("link", &link.link);
        });
    }
    let mut parts = Parts::default();
    parts.each(AT_RISK, &labeled);
    parts.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use exposition::Format;
    use fabric_observation::{JobsObservation, JobsSource, Observation};
    use ib_health::Verdict;
    use ib_health::testing::{fine, snapshot};
    use job_list::{Job, JobList};

    fn state() -> SharedState {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        assessment.links[0].verdict = Verdict::Bad;
        let (fabric, snapshot) = ("f".to_owned(), Some(Arc::new(snapshot)));
        let observation = Observation { fabric, snapshot, assessment, ..Observation::default() };
        let hosts = ["host-a", "host-b"].map(str::to_owned).to_vec();
        let job = Job { id: "4711".into(), hosts, ..Job::default() };
        let mut jobs = JobsObservation::new(JobsSource::Directory, Duration::from_secs(60));
        jobs.list = Arc::new(JobList { jobs: vec![job], unreadable: 0 });
        jobs.read_at = Some(SystemTime::UNIX_EPOCH);
        SharedState { jobs: Some(Arc::new(jobs)), ..vec![Arc::new(observation)].into() }
    }

    fn text(state: &SharedState, after: u64) -> String {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(after);
        let mut text = Vec::new();
        for part in render(state, &count(state), now) {
            part.write(&mut text, Format::Text);
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn only_bad_links_have_counts_and_only_while_jobs_are_known() {
        let mut state = state();
        let link = "fabric=\"f\",link=\"0x0000000000000001:1-0x0000000000000002:1\"";
        let shown = text(&state, 300);
        let samples: Vec<&str> = shown.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            format!("infiniband_link_jobs_at_risk{{{link}}} 1"),
            format!("infiniband_link_nodes_at_risk{{{link}}} 2"),
        ];
        assert_eq!(samples, expected);
        assert_eq!(text(&state, 301), "");
        state.jobs = None;
        assert_eq!(text(&state, 0), "");
    }
}
