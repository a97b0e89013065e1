//! Makes a report: windows, and for repairs that are not safe what to do.

use std::collections::BTreeSet;

use display_text::{natural_key, plural};
use drain_plan::{
    Assessment, Baseline, CutHost, HostId, LeafCapacity, Net, Repair, Share, UnknownPart,
    WindowCount, assess,
};

use super::net::FabricNet;
use super::parts::Target;
use super::report::{Cut, Leaf, Left, Refused, Repaired, Report, What, Window};

/// Which hosts to drain is computed for so many repairs that are not safe: each takes the time of several assessments.
const MAX_ADVISED: usize = 50;

/// The most leaves whose hosts are proposed to be drained because the leaves keep too little.
const MAX_DRAINED_LEAVES: usize = 2;

/// How often hosts are added to those to drain. Each time, the repair is judged again.
const MAX_ROUNDS: usize = 8;

/// What is asked.
pub(super) struct Question<'a> {
    pub net: &'a FabricNet,
    pub targets: &'a [Target],
    /// Indexes of hosts.
    pub drained: &'a BTreeSet<usize>,
    pub min_capacity: Share,
}

/// The answer. Fails only if the net is inconsistent.
pub(super) fn report(question: &Question<'_>) -> Result<Report, UnknownPart> {
    let Question { net, targets, min_capacity, .. } = *question;
    let (known, repairs) = net.net(targets, |_| true)?;
    let drained = FabricNet::host_ids(&known, question.drained);
    let judge = Judge {
        question,
        baseline: Baseline::new(&known, &drained)?,
        drained,
        repairs,
        net: &known,
    };
    let plan = judge.baseline.plan(&judge.repairs, min_capacity)?;
    let mut windows = Vec::new();
    for window in &plan.windows {
        let places = judge.places(&window.repairs);
        let repairs = places.iter().map(|place| judge.repaired(*place));
        windows.push(Window {
            repairs: repairs.collect::<Result<_, _>>()?,
            left: judge.left(&window.assessment),
            rails_lost: judge.rails_lost(&window.assessment),
            doubt: judge.doubt(&places)?,
        });
    }
    let mut unsafe_repairs = Vec::new();
    for (nth, refused) in plan.unsafe_repairs.iter().enumerate() {
        for place in judge.places(&[refused.repair]) {
            unsafe_repairs.push(judge.refused(place, &refused.assessment, nth < MAX_ADVISED)?);
        }
    }
    let certain = net.gaps.is_empty() && windows.iter().all(|window| window.doubt.is_none());
    let gaps = net.gaps.iter().map(|gap| format!("{gap}: what was not found is not judged"));
    Ok(Report {
        fabrics: net.fabrics.clone(),
        min_capacity: min_capacity.get(),
        drained: judge.folded(question.drained),
        repairs: targets.len(),
        window_count: match plan.window_count {
            WindowCount::Smallest => "smallest",
            WindowCount::UpperBound => "at_most",
        },
        windows,
        unsafe_repairs,
        certain,
        notes: gaps.chain(net.notes.iter().cloned()).collect(),
    })
}

struct Judge<'a> {
    question: &'a Question<'a>,
    net: &'a Net,
    baseline: Baseline<'a>,
    drained: BTreeSet<HostId>,
    /// By target.
    repairs: Vec<Repair>,
}

impl Judge<'_> {
    /// The indexes of the targets of some repairs.
    fn places(&self, repairs: &[Repair]) -> Vec<usize> {
        let place = |repair: &Repair| self.repairs.iter().position(|it| it == repair);
        repairs.iter().filter_map(place).collect()
    }

    fn host(&self, id: HostId) -> &str {
        &self.question.net.hosts[id.index()].name
    }

    fn folded(&self, hosts: &BTreeSet<usize>) -> String {
        hostlist::fold(hosts.iter().map(|host| &*self.question.net.hosts[*host].name))
    }

    fn what(&self, place: usize) -> What {
        let net = self.question.net;
        let target = &self.question.targets[place];
        What {
            kind: target.kind.label(),
            name: target.name.clone(),
            fabric: target.fabric.clone(),
            link: target.link.clone(),
            verdict: target.verdict.clone(),
            nodes: target.nodes.iter().map(|node| net.nodes[*node].guid.to_string()).collect(),
            down: net.is_down(target),
        }
    }

    fn left(&self, assessment: &Assessment) -> Left {
        let leaf = |worst: &LeafCapacity| {
            let node = &self.question.net.nodes[worst.leaf.index()];
            Leaf {
                guid: node.guid.to_string(),
                node: node.name.clone(),
                now_gbps: worst.before_gbps,
                left_gbps: worst.after_gbps,
            }
        };
        Left {
            remaining_capacity: assessment.remaining_capacity().get(),
            worst_leaf: assessment.worst_leaf().map(leaf),
            reduced_leaves: assessment.reduced_leaves.len(),
        }
    }

    /// Hosts that are not cut, and lose a rail.
    fn rails_lost(&self, assessment: &Assessment) -> String {
        let hosts: BTreeSet<&str> =
            assessment.cut_hcas.iter().map(|cut| self.host(cut.host)).collect();
        hostlist::fold(hosts)
    }

    fn repaired(&self, place: usize) -> Result<Repaired, UnknownPart> {
        let alone = self.baseline.assess(&[self.repairs[place]])?;
        let rails_lost = self.rails_lost(&alone);
        Ok(Repaired { what: self.what(place), left: self.left(&alone), rails_lost })
    }

    /// Why a window may not be safe: links whose state is not known count as up. If they are down, others may be the only
    /// ones; those that are repaired count as up, because a repair takes nothing of what is down.
    fn doubt(&self, window: &[usize]) -> Result<Option<String>, UnknownPart> {
        let net = self.question.net;
        if net.wires.iter().all(|wire| wire.up.is_some()) {
            return Ok(None);
        }
        let targets = window.iter().map(|place| &self.question.targets[*place]);
        let taken: BTreeSet<usize> = targets.flat_map(|it| net.wires_of_target(it)).collect();
        let (other, repairs) = net.net(self.question.targets, |wire| taken.contains(&wire))?;
        let repairs: Vec<Repair> = window.iter().map(|place| repairs[*place]).collect();
        let drained = FabricNet::host_ids(&other, self.question.drained);
        let assessment = assess(&other, &repairs, &drained)?;
        if assessment.is_safe(self.question.min_capacity) {
            return Ok(None);
        }
        Ok(Some(format!("if the links of unknown state are down: {}", self.why(&assessment))))
    }

    /// Why repairs are not safe.
    fn why(&self, assessment: &Assessment) -> String {
        let mut parts = Vec::new();
        match &assessment.cut_hosts[..] {
            [] => {}
            [cut] => {
                let to = if cut.kept == 0 { "all hosts".into() } else { plural(cut.lost, "host") };
                parts.push(format!("cuts {} off from {to}", self.host(cut.host)));
            }
            cuts => {
                let names = hostlist::fold(cuts.iter().map(|cut| self.host(cut.host)));
                parts.push(format!("cuts {} off from others: {names}", plural(cuts.len(), "host")));
            }
        }
        if assessment.remaining_capacity() < self.question.min_capacity
            && let Some(leaf) = self.left(assessment).worst_leaf
        {
            parts.push(if leaf.left_gbps == 0 {
                format!("{} reaches no other leaf meanwhile", leaf.node)
            } else {
                let share = percent(assessment.remaining_capacity().get());
                format!(
                    "{} keeps {share} ({} of {} Gb/s)",
                    leaf.node, leaf.left_gbps, leaf.now_gbps
                )
            });
        }
        parts.join("; ")
    }

    fn refused(
        &self,
        place: usize,
        assessment: &Assessment,
        is_advised: bool,
    ) -> Result<Refused, UnknownPart> {
        let mut cuts: Vec<_> = assessment.cut_hosts.iter().collect();
        cuts.sort_by_cached_key(|cut| natural_key(self.host(cut.host)));
        let cut = |cut: &&CutHost| Cut {
            host: self.host(cut.host).to_owned(),
            lost: cut.lost,
            kept: cut.kept,
        };
        let drain = if is_advised { self.to_drain(place)? } else { None };
        let drain = drain.map(|hosts| self.folded(&hosts));
        Ok(Refused {
            what: self.what(place),
            left: self.left(assessment),
            cut_hosts: cuts.iter().map(cut).collect(),
            why: self.why(assessment),
            advice: self.advice(assessment, drain.as_deref()),
            drain,
        })
    }

    /// The hosts to drain, so that a repair is safe.
    fn to_drain(&self, place: usize) -> Result<Option<BTreeSet<usize>>, UnknownPart> {
        let mut more = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let ids = FabricNet::host_ids(self.net, &more);
            let drained = self.drained.union(&ids).copied().collect();
            let assessment = assess(self.net, &[self.repairs[place]], &drained)?;
            if assessment.is_safe(self.question.min_capacity) {
                return Ok(Some(more));
            }
            let cut = assessment.cut_hosts.iter().map(|cut| cut.host.index());
            let mut next: BTreeSet<usize> = cut.collect();
            // Those that are cut off may be all that the leaves carry.
            if next.is_empty() {
                let is_short = |leaf: &&LeafCapacity| leaf.share() < self.question.min_capacity;
                let short: Vec<_> = assessment.reduced_leaves.iter().filter(is_short).collect();
                // To drain the hosts of many leaves is no way to power off a spine.
                if short.len() > MAX_DRAINED_LEAVES {
                    break;
                }
                let worst = short.first().map(|leaf| leaf.leaf.index());
                next.extend(worst.into_iter().flat_map(|leaf| self.question.net.hosts_at(leaf)));
            }
            let count = more.len();
            more.extend(next.difference(self.question.drained));
            if more.len() == count {
                break;
            }
        }
        Ok(None)
    }

    fn advice(&self, assessment: &Assessment, drain: Option<&str>) -> String {
        let mut ways = Vec::new();
        ways.extend(drain.map(|hosts| format!("drain {hosts}")));
        if assessment.cut_hosts.is_empty() {
            if assessment.worst_leaf().is_some_and(|leaf| self.has_down(leaf.leaf.index())) {
                ways.push("first repair the links of this leaf that are down".to_owned());
            }
            let share = (assessment.remaining_capacity().get() * 100.0).floor();
            ways.push(format!("accept less capacity with --min-capacity {share}%"));
        } else if drain.is_none() {
            let cut = assessment.cut_hosts.iter().map(|cut| self.host(cut.host));
            ways.push(format!("drain {}, and ask again", hostlist::fold(cut)));
        }
        ways.join(", or ")
    }

    /// Whether links between a switch and others are down.
    fn has_down(&self, switch: usize) -> bool {
        let net = self.question.net;
        let mut wires = net.wires_of(switch).filter(|wire| wire.up == Some(false));
        wires.any(|wire| wire.ends.iter().all(|end| net.nodes[*end].is_switch()))
    }
}

/// A share as a percentage, rounded down: what is less than a limit does not look like it.
pub(super) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0 + 1e-9).floor() / 10.0;
    format!("{tenths}%")
}
