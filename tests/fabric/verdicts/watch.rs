//! Watches a scenario and records the verdicts of its links.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fabric_observation::Observation;
use ib_fabric::{Fabric, PortIndex};
use ib_health::{LinkAssessment, Verdict};
use ib_mad::rate::Width;
use ib_sim::scenario::{Overrides, ResolvedScenario, Scenario};

use crate::verdicts::cases::Case;
use test_rig::Simulated;

/// The sweep interval.
const SWEEP: Duration = Duration::from_secs(15);

/// The result of a case.
#[derive(Debug)]
pub struct Outcome {
    /// The time until the expected verdict; `None` where none was expected.
    pub found_after: Option<Duration>,
    /// Healthy links that were called bad at any time.
    pub false_alarms: usize,
    pub links: usize,
}

/// The label of a port.
pub fn label(fabric: &Fabric, port: PortIndex) -> String {
    format!("{}[{}]", fabric.node_of(port).name, fabric.port(port).number)
}

/// The link at a port, by the port's label.
pub fn link<'a>(observation: &'a Observation, at: &str) -> Option<&'a LinkAssessment> {
    let fabric = &observation.snapshot.as_ref()?.fabric;
    let is_its = |port: PortIndex| label(fabric, port) == at;
    observation.assessment.links.iter().find(|it| is_its(it.link.low) || is_its(it.link.high))
}

/// The reasons of a link in one line.
pub fn summary(found: &LinkAssessment) -> String {
    let reasons: Vec<String> = (found.reasons.iter())
        .map(|(reason, weight)| format!("{} {}", weight.label(), reason.label()))
        .collect();
    let repair = found.repair.map_or("", ib_health::verdict::Repair::label);
    format!("{} ({}) {repair} {:?}", found.verdict.label(), reasons.join(", "), found.outages)
}

/// A scenario in which all widths of the devices are enabled on ports, as on real ones: 2x is one of them
/// from HDR on. (ibsim does not know 2x, so generated nets do not have it.)
fn story(text: &str) -> ResolvedScenario {
    let scenario = Scenario::parse("test", text).unwrap();
    let mut story = scenario.resolve(&Overrides::default()).unwrap();
    let net = &story.net;
    let devices: Vec<u8> =
        net.port_ids().map(|port| net.node_of(port).model.widths & Width::X2.code()).collect();
    for (port, two_lanes) in story.net.ports.iter_mut().zip(devices) {
        port.rates.widths |= two_lanes;
    }
    story
}

/// Runs a case. Returns its result, and the problems.
pub fn watch(case: &Case) -> (Outcome, Vec<String>) {
    let simulated = Simulated::new(story(&case.story));
    let mut problems = Vec::new();
    let mut seen: BTreeMap<String, Verdict> = BTreeMap::new();
    let mut found = vec![None; case.wanted.len()];
    let mut lost = BTreeSet::new();
    let mut links = 0;
    let end = Duration::from_secs(60 * case.minutes);
    let mut now = Duration::from_secs(5);
    while now <= end {
        simulated.run_to(now);
        let observation = simulated.observation();
        let Some(snapshot) = &observation.snapshot else { continue };
        links = links.max(observation.assessment.links.len());
        for it in &observation.assessment.links {
            let ends = it.link.ports().map(|port| label(&snapshot.fabric, port));
            let wanted = case.wanted.iter().position(|wanted| ends.contains(&wanted.link.into()));
            let Some(nth) = wanted else {
                let most = seen.entry(ends.join("-")).or_insert(it.verdict);
                if it.verdict == Verdict::Bad && *most < Verdict::Bad {
                    let (name, at) = (&case.name, now.as_secs());
                    problems.push(format!("{name}: at {at} s {ends:?} is {}", summary(it)));
                }
                *most = (*most).max(it.verdict);
                continue;
            };
            let wanted = &case.wanted[nth];
            if it.verdict > wanted.verdict {
                problems.push(format!("{}: {} is {}", case.name, wanted.link, summary(it)));
            }
            let as_wanted = it.verdict == wanted.verdict;
            let why = wanted.reason.is_none_or(|reason| it.reasons.weight(reason).is_some());
            if as_wanted && (why || found[nth].is_some()) {
                found[nth].get_or_insert(now);
                lost.remove(&nth);
            } else if found[nth].is_some() && lost.insert(nth) && !wanted.passes {
                let (name, link) = (&case.name, wanted.link);
                problems.push(format!("{name}: at {now:?} {link} became {}", summary(it)));
            }
        }
        now += SWEEP;
    }
    let observation = simulated.observation();
    for (wanted, found) in case.wanted.iter().zip(&found) {
        let it = link(&observation, wanted.link);
        if found.is_none() {
            let is = it.map(summary);
            problems.push(format!("{}: {} is only {is:?}", case.name, wanted.link));
        }
        if wanted.passes && it.is_some_and(|it| it.verdict >= Verdict::Watch) {
            problems.push(format!("{}: {} stays {:?}", case.name, wanted.link, it.map(summary)));
        }
    }
    if let Err(problem) = (case.check)(&observation) {
        problems.push(format!("{}: {problem}", case.name));
    }
    let outcome = Outcome {
        found_after: found.iter().flatten().max().map(|at| at.saturating_sub(case.onset)),
        false_alarms: seen.values().filter(|most| **most == Verdict::Bad).count(),
        links,
    };
    (outcome, problems)
}
