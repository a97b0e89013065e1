//! All that the program tells a person about a fabric in a time: each subject once, with what to do about it.
//!
//! Links by their verdicts, the condition, and alerts. Alerts on cables and nodes follow from verdicts and the condition;
//! of the others it is here when they fire, from the values that their rules read, grouped as by
//! `alerts/alertmanager.yml`: those of severity `info` are one message a day for each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use fabric_api::FabricView;
use fabric_api::condition::{self, DownNode, DownNodes, FindingKind};
use fabric_observation::Observation;
use ib_fabric::PortIndex;
use ib_health::{Reason, Verdict};
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;
use ib_mad::{Counter, Moment, PortKey};
use ib_umad::stats::MadOutcome;

/// For so long an HCA that is down may reboot: `InfinibandNodeDown` waits as long.
const REBOOT: Duration = Duration::from_secs(15 * 60);

/// Counters whose saturation is no alert: of InfinibandCountersSaturated.
const FILL: [Counter; 13] = [
    Counter::XmitWait,
    Counter::FecCorrectedBlocks,
    Counter::FecCorrectedSymbols,
    Counter::RcvLocalPhysicalErrors,
    Counter::RcvMalformedPacketErrors,
    Counter::RcvBufferOverrunErrors,
    Counter::RcvDlidMappingErrors,
    Counter::RcvVlMappingErrors,
    Counter::RcvLoopingErrors,
    Counter::XmitInactiveDiscards,
    Counter::XmitNeighborMtuDiscards,
    Counter::XmitLifetimeLimitDiscards,
    Counter::XmitHoqLimitDiscards,
];

/// Something that somebody was told.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is about: the ends of a link, a host, or a part of the condition.
    pub about: String,
    /// The worst verdict.
    pub verdict: Verdict,
    /// Why, when it was worst.
    pub why: String,
    /// What to do.
    pub repair: String,
    /// The first time.
    pub from: Duration,
    /// The first time of the worst verdict.
    pub worst_from: Duration,
    /// The last time.
    pub until: Duration,
    /// In how many sweeps.
    pub sweeps: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { about, verdict, why, repair, from, until, sweeps, .. } = self;
        let time = |at: &Duration| {
            let minutes = at.as_secs() / 60;
            format!("{:02}:{:02}", minutes / 60, minutes % 60)
        };
        let word = if *verdict == Verdict::Ok { "info" } else { Verdict::word(verdict.label()) };
        let (from, until) = (time(from), time(until));
        write!(f, "{word:<8} {from} to {until} ({sweeps} sweeps)  {about}: {why}. {repair}")
    }
}

/// The findings so far, by subject.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    by_subject: BTreeMap<String, Finding>,
    /// The links, nodes and switches of the latest sweep.
    pub links: usize,
    /// Nodes.
    pub nodes: usize,
    /// Switches among them.
    pub switches: usize,
    /// The link verdicts of the latest sweep: ok, unknown, watch and bad.
    pub verdicts: [usize; 4],
    /// Since when an expression of a rule has a result, by alert and port.
    pending: BTreeMap<(&'static str, PortKey), Duration>,
    /// PortXmitDiscards of each port, and when it was read.
    discards: BTreeMap<PortKey, (u64, Moment)>,
    /// Requests that timed out, and all, with the time: of the latest quarter of an hour.
    mads: Vec<(Duration, u64, u64)>,
}

impl Findings {
    /// Adds what is told after a sweep.
    pub fn add(&mut self, at: Duration, seen: &Observation) {
        let Some(view) = FabricView::new(seen) else { return };
        let fabric = &view.snapshot.fabric;
        self.links = self.links.max(view.links().count());
        self.nodes = self.nodes.max(fabric.nodes.len());
        let is_switch = |kind: NodeKind| kind == NodeKind::Switch;
        let switches = fabric.nodes.iter().filter(|it| is_switch(it.identity.kind)).count();
        self.switches = self.switches.max(switches);
        self.verdicts = [0; 4];
        for row in view.links() {
            let verdict = row.verdict();
            self.verdicts[verdict as usize] += 1;
            if verdict < Verdict::Watch {
                continue;
            }
            let ends = row.ports().map(|port| fabric.port_label(port));
            let link = row.link();
            let reasons = link.reasons.iter().filter(|it| it.verdict == link.verdict);
            let why: Vec<&str> = reasons.map(|it| &*it.evidence).collect();
            // A verdict lasts for some minutes after its reasons.
            let why = if why.is_empty() { "it was until now".to_owned() } else { why.join("; ") };
            let repair = link.repair.map(|it| it.description.to_string()).unwrap_or_default();
            self.tell(at, &ends.join(" to "), verdict, why, repair);
        }
        self.add_condition(at, seen, view);
        self.add_alerts(at, seen, view);
    }

    /// Adds the parts of the condition that are not links with a verdict, and no progress.
    fn add_condition(&mut self, at: Duration, seen: &Observation, view: FabricView<'_>) {
        let down = DownNodes::find(view);
        let fabric = &view.snapshot.fabric;
        for found in condition::latest(seen).findings {
            let kind = FindingKind::from_label(&found.kind).unwrap();
            let verdict = found.verdict();
            match kind {
                FindingKind::Links if verdict >= Verdict::Watch => {}
                FindingKind::Learning | FindingKind::Maintenance => {}
                // That a host reboots is no finding as long as the condition does not say so.
                FindingKind::NodesDown | FindingKind::SwitchesDown if verdict < Verdict::Watch => {}
                FindingKind::NodesDown | FindingKind::SwitchesDown => {
                    let is_switch = kind == FindingKind::SwitchesDown;
                    let alone = |it: &&DownNode| it.behind.is_none() && !it.in_maintenance;
                    for node in down.iter().filter(alone) {
                        let known = fabric.node(node.index);
                        let age = node.since.map(|since| view.snapshot.began.since(since));
                        let is_new = age.is_some_and(|age| age < REBOOT);
                        let is_its = (known.identity.kind == NodeKind::Switch) == is_switch
                            && known.identity.kind != NodeKind::AggregationNode
                            && (is_switch || is_new == (verdict == Verdict::Watch));
                        if is_its {
                            let about = known.host.as_deref().unwrap_or(&known.name);
                            let why = format!("down ({})", kind.label());
                            let repair = "Check whether it is up: its power and console.".into();
                            self.tell(at, about, verdict, why, repair);
                        }
                    }
                }
                FindingKind::Links => {
                    let why = format!("{} ({})", found.text, unknown_reasons(view));
                    let repair = "See the pages of the links.".to_owned();
                    self.tell(at, "the fabric, links", verdict, why, repair);
                }
                _ => {
                    let about = format!("the fabric, {}", kind.label());
                    let repair = "See the page of the fabric.".to_owned();
                    self.tell(at, &about, verdict, found.text, repair);
                }
            }
        }
    }

    /// Whether a port has been in the result of the expression of a rule for so long.
    fn lasts(&mut self, alert: &'static str, port: PortKey, at: Duration, wait: Duration) -> bool {
        let since = *self.pending.entry((alert, port)).or_insert(at);
        at.saturating_sub(since) >= wait
    }

    /// Drops from what is pending the ports that are not in the result any more.
    fn retain(&mut self, alert: &'static str, present: &BTreeSet<PortKey>) {
        self.pending.retain(|(of, port), _| *of != alert || present.contains(port));
    }

    /// Adds the alerts on ports, congestion and the exporter itself.
    fn add_alerts(&mut self, at: Duration, seen: &Observation, view: FabricView<'_>) {
        let (fabric, assessment) = (&view.snapshot.fabric, &view.assessment);
        let key = |port: PortIndex| fabric.port_key(port);
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let is_full = |port: &PortIndex| {
            let full = assessment.ports[*port].counters.saturated_now;
            Counter::all().any(|counter| full.contains(counter) && !FILL.contains(&counter))
        };
        let full: BTreeSet<PortKey> = fabric.port_indexes().filter(is_full).map(key).collect();
        self.retain("saturated", &full);
        let lasting = full.iter().filter(|port| self.lasts("saturated", **port, at, minutes(60)));
        let lasting = lasting.count();
        if lasting > 0 {
            let why =
                format!("InfinibandCountersSaturated for {lasting} ports, in one message a day");
            let repair =
                "Check the links, then clear the counters (perfquery -R LID PORT).".to_owned();
            self.tell(at, "full counters", Verdict::Ok, why, repair);
        }
        let roots = assessment.regions.iter().filter(|region| region.share > 0.15);
        let roots: BTreeSet<PortKey> = roots.map(|region| key(region.root)).collect();
        self.retain("congestion", &roots);
        let congested =
            roots.iter().filter(|port| self.lasts("congestion", **port, at, minutes(5)));
        let congested = congested.count();
        if congested > 0 {
            let why =
                format!("InfinibandCongestionRoot at {congested} ports, in one message a day");
            let repair = "Find the jobs that send there.".to_owned();
            self.tell(at, "congestion", Verdict::Ok, why, repair);
        }
        // A congestion root inhibits these.
        let discarding = self.discarding(view);
        self.retain("discards", &discarding);
        for port in discarding {
            if self.lasts("discards", port, at, minutes(10)) && roots.is_empty() {
                let about =
                    fabric.find(port).map(|port| fabric.port_label(port)).unwrap_or_default();
                let why = "InfinibandPacketsDiscarded or InfinibandCreditDiscards".to_owned();
                let repair =
                    "Read the reasons at the port (perfquery --xmtdisc LID PORT).".to_owned();
                self.tell(at, &about, Verdict::Watch, why, repair);
            }
        }
        self.add_timeouts(at, seen);
    }

    /// The ports that discard more than a packet in 10 s.
    fn discarding(&mut self, view: FabricView<'_>) -> BTreeSet<PortKey> {
        let (fabric, mut found) = (&view.snapshot.fabric, BTreeSet::new());
        for port in fabric.port_indexes() {
            let Some(reading) = view.snapshot.reading(port) else { continue };
            let Some(count) = reading.get(Counter::XmitDiscards) else { continue };
            let key = fabric.port_key(port);
            let before = self.discards.insert(key, (count, reading.at));
            let Some((before, since)) = before.filter(|(before, _)| *before < count) else {
                continue;
            };
            let seconds = reading.at.since(since).as_secs_f64();
            // Packets to a port without a link have the reason `inactive`.
            let is_up = view.snapshot.status(port).is_some_and(PortStatus::link_up);
            if is_up && seconds > 0.0 && (count - before) as f64 / seconds > 0.1 {
                found.insert(key);
            }
        }
        found
    }

    /// More than one of 100 requests of a quarter of an hour timed out.
    fn add_timeouts(&mut self, at: Duration, seen: &Observation) {
        let outcomes = [
            MadOutcome::Answered,
            MadOutcome::Busy,
            MadOutcome::Redirected,
            MadOutcome::Refused,
            MadOutcome::TimedOut,
        ];
        let all = outcomes.into_iter().map(|outcome| seen.mads.total(outcome)).sum();
        self.mads.push((at, seen.mads.total(MadOutcome::TimedOut), all));
        self.mads.retain(|(then, _, _)| at.saturating_sub(*then) <= REBOOT);
        let (first, last) = (self.mads[0], self.mads[self.mads.len() - 1]);
        let (timed_out, all) = (last.1 - first.1, last.2 - first.2);
        if timed_out * 100 > all && last.0.saturating_sub(first.0) + REBOOT / 5 > REBOOT {
            let why = format!("FabricExporterMadTimeouts: {timed_out} of {all} in 15 minutes");
            let repair = "Find the nodes that do not respond.".to_owned();
            self.tell(at, "timeouts", Verdict::Ok, why, repair);
        }
    }

    pub(super) fn tell(
        &mut self,
        at: Duration,
        about: &str,
        verdict: Verdict,
        why: String,
        repair: String,
    ) {
        let known = self.by_subject.entry(about.to_owned()).or_insert_with(|| Finding {
            about: about.to_owned(),
            verdict,
            why: why.clone(),
            repair: repair.clone(),
            from: at,
            worst_from: at,
            until: at,
            sweeps: 0,
        });
        known.until = at;
        known.sweeps += 1;
        if verdict > known.verdict {
            (known.verdict, known.why, known.repair) = (verdict, why, repair);
            known.worst_from = at;
        }
    }

    /// All of them, the worst first, and notices that are no verdicts at the end.
    pub fn all(&self) -> Vec<&Finding> {
        let mut all: Vec<&Finding> = self.by_subject.values().collect();
        all.sort_by_key(|it| (std::cmp::Reverse(it.verdict), it.from));
        all
    }
}

/// The reasons of links that are unknown, with how many have each.
fn unknown_reasons(view: FabricView<'_>) -> String {
    let mut counts: BTreeMap<Reason, usize> = BTreeMap::new();
    for row in view.links().filter(|row| row.verdict() == Verdict::Unknown) {
        let reasons = row.assessment.into_iter().flat_map(|it| it.reasons.iter());
        for (reason, _) in reasons.filter(|(_, weight)| *weight == Verdict::Unknown) {
            *counts.entry(reason).or_default() += 1;
        }
    }
    let texts = counts.iter().map(|(reason, count)| format!("{count} {}", reason.label()));
    texts.collect::<Vec<_>>().join(", ")
}
