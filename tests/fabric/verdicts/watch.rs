//! Watches a story and takes down what its links were said to be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fabric_observation::Observation;
use ib_fabric::{Fabric, PortIndex};
use ib_health::{LinkFindings, Verdict};
use ib_mad::rate::Width;
use ib_sim::scenario::{Overrides, ResolvedScenario, Scenario};

use crate::verdicts::cases::Case;
use test_rig::Simulated;

/// From one sweep to the next.
const SWEEP: Duration = Duration::from_secs(15);

/// What came of a case.
#[derive(Debug)]
pub struct Outcome {
    /// After how long the verdict that was wanted came; `None` where none was wanted.
    pub found_after: Option<Duration>,
    /// Healthy links that were called bad at any time.
    pub false_alarms: usize,
    pub links: usize,
}

/// A port as people call it.
pub fn label(fabric: &Fabric, port: PortIndex) -> String {
    format!("{}[{}]", fabric.node_of(port).name, fabric.port(port).number)
}

/// The link at a port, by the port's label.
pub fn link<'a>(observation: &'a Observation, at: &str) -> Option<&'a LinkFindings> {
    let fabric = &observation.snapshot.as_ref()?.fabric;
    let is_its = |port: PortIndex| label(fabric, port) == at;
    observation.findings.links.iter().find(|it| is_its(it.link.0) || is_its(it.link.1))
}

/// A link's findings as one line.
pub fn told(found: &LinkFindings) -> String {
    let reasons: Vec<String> = (found.reasons.iter())
        .map(|(reason, weight)| format!("{} {}", weight.label(), reason.label()))
        .collect();
    let repair = found.repair.map_or("", ib_health::verdict::Repair::label);
    format!("{} ({}) {repair} {:?}", found.verdict.label(), reasons.join(", "), found.outages)
}

/// A story in which ports are allowed all widths that their devices have, as real ones are: 2x is one of
/// them from HDR on. (ibsim knows no 2x, so built nets do without.)
fn story(text: &str) -> ResolvedScenario {
    let scenario = Scenario::parse("test", text).unwrap();
    let mut story = scenario.resolve(&Overrides::default()).unwrap();
    let net = &story.net;
    let devices: Vec<u8> =
        net.port_ids().map(|port| net.node_of(port).model.widths & Width::X2.code()).collect();
    for (port, two_lanes) in story.net.ports.iter_mut().zip(devices) {
        port.widths |= two_lanes;
    }
    story
}

/// Runs a case. Tells what came of it, and what is not as it should be.
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
        links = links.max(observation.findings.links.len());
        for it in &observation.findings.links {
            let ends = [it.link.0, it.link.1].map(|port| label(&snapshot.fabric, port));
            let wanted = case.wanted.iter().position(|wanted| ends.contains(&wanted.link.into()));
            let Some(nth) = wanted else {
                let most = seen.entry(ends.join("-")).or_insert(it.verdict);
                if it.verdict == Verdict::Bad && *most < Verdict::Bad {
                    let (name, at) = (&case.name, now.as_secs());
                    problems.push(format!("{name}: at {at} s {ends:?} is {}", told(it)));
                }
                *most = (*most).max(it.verdict);
                continue;
            };
            let wanted = &case.wanted[nth];
            if it.verdict > wanted.verdict {
                problems.push(format!("{}: {} is {}", case.name, wanted.link, told(it)));
            }
            let as_wanted = it.verdict == wanted.verdict;
            let why = wanted.reason.is_none_or(|reason| it.reasons.weight(reason).is_some());
            if as_wanted && (why || found[nth].is_some()) {
                found[nth].get_or_insert(now);
                lost.remove(&nth);
            } else if found[nth].is_some() && lost.insert(nth) && !wanted.passes {
                let (name, link) = (&case.name, wanted.link);
                problems.push(format!("{name}: at {now:?} {link} became {}", told(it)));
            }
        }
        now += SWEEP;
    }
    let observation = simulated.observation();
    for (wanted, found) in case.wanted.iter().zip(&found) {
        let it = link(&observation, wanted.link);
        if found.is_none() {
            let is = it.map(told);
            problems.push(format!("{}: {} is only {is:?}", case.name, wanted.link));
        }
        if wanted.passes && it.is_some_and(|it| it.verdict >= Verdict::Watch) {
            problems.push(format!("{}: {} stays {:?}", case.name, wanted.link, it.map(told)));
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
