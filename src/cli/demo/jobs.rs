//! The traffic of jobs in the demo: groups of hosts run one job after another, each with its own load, and are idle in
//! between. So the utilization of the fabric is that of a cluster, not a constant.

use std::ops::Range;
use std::time::Duration;

use ib_sim::load::Flow;
use ib_sim::net::PortId;
use ib_sim::rng::Rng;
use ib_sim::scenario::{FabricChange, ResolvedScenario, TimedChange};

/// The group of each of 22 pairs of hosts that send to each other. In the built-in fabric these are host-0 and host-22
/// to host-13 and host-35, and eight hosts with the HCAs of gpu-0.
const GROUPS: [usize; 22] =
    [0, 0, 0, 1, 1, 1, STORY[0], 2, 2, 2, STORY[0], 3, STORY[0], 3, 5, 5, 5, 5, 5, 5, 5, 5];
/// The groups with the hosts that the timeline of faults is about, and with those that wait for them: they run one job
/// meanwhile, with the load of the scenario.
const STORY: [usize; 2] = [4, 5];

/// How long jobs are made for, from the start of the timeline of faults. After that the last ones go on.
const SPAN: Duration = Duration::from_secs(12 * 3600);
/// That job ends so long after the start of the faults, at the earliest.
const STORY_TIME: Duration = Duration::from_secs(20 * 60);

/// How long jobs and the pauses between them last, in seconds.
const JOB: Range<f64> = 360.0..2_100.0;
const PAUSE: Range<f64> = 45.0..240.0;
/// The load of jobs as a multiple of the scenario's. Up to four hosts share a cable between switches, which must not
/// be overloaded: 4 x 1.2 x 20% is 96%.
const LOAD: Range<f64> = 0.25..1.2;
/// The load of hosts without a job: that of storage and of health checks.
const IDLE: f64 = 0.03;

/// A fabric with more hosts keeps the constant traffic of its scenario: each change of a job finds all paths again.
const MOST_HOSTS: usize = 1_000;
/// Key of the random numbers: no other use of the seed draws the same.
const KEY: u64 = 0x6a6f_6273;

/// Replaces the traffic of a scenario by jobs, from `past` before its start on. Returns the actions with their time
/// since then; they begin with the traffic at that time. Empty if the fabric is too large for that.
pub fn take_traffic(scenario: &mut ResolvedScenario, past: Duration) -> Vec<TimedChange> {
    let is_start =
        |it: &TimedChange| it.at.is_zero() && matches!(it.change, FabricChange::SetTraffic { .. });
    let Some(place) = scenario.changes.iter().position(is_start) else { return Vec::new() };
    let FabricChange::SetTraffic { flows, .. } = &scenario.changes[place].change else {
        return Vec::new();
    };
    if flows.len() > MOST_HOSTS {
        return Vec::new();
    }
    let slow: Vec<PortId> = (scenario.changes.iter())
        .filter_map(|it| match it.change {
            FabricChange::LimitIntake { port, .. } => Some(port),
            _ => None,
        })
        .collect();
    let mut groups: [Vec<Flow>; 6] = Default::default();
    for (index, &flow) in flows.iter().enumerate() {
        let is_slow = slow.contains(&flow.to) || slow.contains(&flow.from);
        groups[if is_slow { STORY[0] } else { group(index, flows.len()) }].push(flow);
    }
    scenario.changes.remove(place);
    let mut actions = Vec::new();
    for (number, flows) in groups.iter().enumerate().filter(|(_, flows)| !flows.is_empty()) {
        let mut rng = Rng::keyed(scenario.seed, &[KEY, number as u64]);
        for (at, load) in loads(&mut rng, past, STORY.contains(&number)) {
            let flows = flows.iter().map(|flow| Flow { offered: flow.offered * load, ..*flow });
            let change =
                FabricChange::SetTraffic { name: format!("job-{number}"), flows: flows.collect() };
            actions.push(TimedChange { at, change });
        }
    }
    actions.sort_by_key(|action| action.at);
    actions
}

/// The group of a flow. A host and the one that it sends to are half of the fabric apart.
fn group(index: usize, hosts: usize) -> usize {
    let half = (hosts / 2).max(1);
    GROUPS[index % half * GROUPS.len() / half]
}

/// The loads of a group of hosts, with their times from the begin of the past on.
fn loads(rng: &mut Rng, past: Duration, in_story: bool) -> Vec<(Duration, f64)> {
    let draw = |rng: &mut Rng, of: Range<f64>| of.start + (of.end - of.start) * rng.next_f64();
    let seconds = Duration::from_secs_f64;
    // The first one began earlier.
    let mut loads = vec![(Duration::ZERO, draw(rng, LOAD))];
    let mut at = seconds(draw(rng, PAUSE.start..JOB.end / 2.0));
    let (from, until) = story(rng, past);
    let before = from.saturating_sub(seconds(PAUSE.start));
    let mut told = !in_story;
    while at < past + SPAN {
        let next = at + seconds(draw(rng, PAUSE));
        let end = next + seconds(draw(rng, JOB));
        loads.push((at, IDLE));
        if told || end < before {
            loads.push((next, draw(rng, LOAD)));
            at = end;
            continue;
        }
        // The job before ends early, or there is none.
        if next < before {
            loads.push((next, draw(rng, LOAD)));
            loads.push((before, IDLE));
        }
        loads.push((from, 1.0));
        (told, at) = (true, until);
    }
    loads
}

/// When the job begins that goes on during the faults, and when it ends.
fn story(rng: &mut Rng, past: Duration) -> (Duration, Duration) {
    let before = Duration::from_secs_f64(900.0 + 1_800.0 * rng.next_f64());
    let after = Duration::from_secs_f64(1_200.0 * rng.next_f64());
    (past.saturating_sub(before), past + STORY_TIME + after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_sim::scenario::{Overrides, Scenario};

    const PAST: Duration = Duration::from_secs(9_000);

    /// The offered traffic of each group, at these minutes.
    fn offered(actions: &[TimedChange], minutes: Range<u64>) -> Vec<f64> {
        let at = |minute: u64| {
            let mut all = std::collections::BTreeMap::new();
            for action in actions.iter().filter(|it| it.at <= Duration::from_secs(60 * minute)) {
                let FabricChange::SetTraffic { name, flows } = &action.change else {
                    panic!("{action:?}")
                };
                all.insert(name, flows.iter().map(|flow| flow.offered).sum::<f64>());
            }
            all.values().sum()
        };
        minutes.map(at).collect()
    }

    #[test]
    fn jobs_start_and_end() {
        for hosts in [None, Some(2), Some(8), Some(500)] {
            let mut scenario =
                Scenario::demo(hosts).unwrap().resolve(&Overrides::default()).unwrap();
            let entries = scenario.changes.len();
            let actions = take_traffic(&mut scenario, PAST);
            assert_eq!(scenario.changes.len(), entries - 1, "the constant traffic is replaced");
            let flows = |action: &TimedChange| match &action.change {
                FabricChange::SetTraffic { flows, .. } => flows.len(),
                other => panic!("{other:?}"),
            };
            let start = actions.iter().filter(|it| it.at.is_zero()).map(flows).sum::<usize>();
            assert_eq!(start, hosts.unwrap_or(36) as usize + 8, "each host sends from the start");
            assert!(actions.is_sorted_by_key(|it| it.at));
            let loads = offered(&actions, 0..150 + 120);
            let most = loads.iter().copied().fold(0.0, f64::max);
            let least = loads.iter().copied().fold(f64::MAX, f64::min);
            assert!(least < 0.6 * most, "{hosts:?}: {least} to {most}");
            let levels = loads.windows(2).filter(|two| (two[0] - two[1]).abs() > 1.0).count();
            assert!(levels > 12, "{hosts:?}: {levels} changes");
        }
    }

    #[test]
    fn hosts_of_the_timeline_have_one_job_meanwhile() {
        for seed in 0..100 {
            let mut rng = Rng::keyed(seed, &[KEY]);
            let loads = loads(&mut rng, PAST, true);
            assert!(loads.is_sorted_by_key(|(at, _)| *at), "{loads:?}");
            let before = loads.iter().rfind(|(at, _)| *at <= PAST).unwrap();
            assert!((before.1 - 1.0).abs() < 1e-9, "{loads:?}");
            let after = loads.iter().find(|(at, _)| *at > PAST).unwrap();
            assert!(after.0 >= PAST + STORY_TIME, "{loads:?}");
        }
    }

    #[test]
    fn large_fabric_keeps_its_traffic() {
        let mut scenario =
            Scenario::demo(Some(2_000)).unwrap().resolve(&Overrides::default()).unwrap();
        let entries = scenario.changes.len();
        assert!(take_traffic(&mut scenario, PAST).is_empty());
        assert_eq!(scenario.changes.len(), entries);
    }
}
