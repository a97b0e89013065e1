//! The scenarios and their expected verdicts.

use std::time::Duration;

use fabric_observation::Observation;
use ib_health::congestion::Role;
use ib_health::verdict::Repair;
use ib_health::{Reason, Verdict};
use ib_mad::rate::Width;

use crate::verdicts::watch::{label, link, summary};

/// A scenario and its expected verdicts.
pub struct Case {
    pub name: String,
    /// A scenario, in YAML.
    pub story: String,
    pub minutes: u64,
    /// When the fault begins.
    pub onset: Duration,
    pub wanted: Vec<Wanted>,
    /// Further expectations at the end.
    pub check: fn(&Observation) -> Result<(), String>,
}

/// The expected verdict of a link.
pub struct Wanted {
    /// The link, by one of its ends.
    pub link: &'static str,
    pub verdict: Verdict,
    pub reason: Option<Reason>,
    /// The verdict is lifted before the end.
    pub passes: bool,
}

impl Case {
    fn new(name: impl Into<String>, minutes: u64, story: impl Into<String>) -> Case {
        Case {
            name: name.into(),
            story: story.into(),
            minutes,
            onset: Duration::ZERO,
            wanted: Vec::new(),
            check: |_| Ok(()),
        }
    }

    fn from(mut self, seconds: u64) -> Case {
        self.onset = Duration::from_secs(seconds);
        self
    }

    fn wants(mut self, link: &'static str, verdict: Verdict, reason: Reason) -> Case {
        self.wanted.push(Wanted { link, verdict, reason: Some(reason), passes: false });
        self
    }

    fn passing(mut self) -> Case {
        for wanted in &mut self.wanted {
            wanted.passes = true;
        }
        self
    }

    fn then(mut self, check: fn(&Observation) -> Result<(), String>) -> Case {
        self.check = check;
        self
    }
}

fn ensure(is: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(what()) }
}

/// All other links are ok.
fn all_fine_but(observation: &Observation, but: &[&str]) -> Result<(), String> {
    let fabric = &observation.snapshot.as_ref().ok_or("no sweep")?.fabric;
    for it in &observation.assessment.links {
        let ends = it.link.ports().map(|port| label(fabric, port));
        let fine = it.verdict == Verdict::Ok || but.iter().any(|but| ends.contains(&(*but).into()));
        ensure(fine, || format!("{ends:?} ends as {}", summary(it)))?;
    }
    Ok(())
}

/// The generations of a speed.
const SPEEDS: [(&str, &str, &str, f64); 4] = [
    ("QDR", "infiniscale-4", "connectx-3", 1e-12),
    ("EDR", "switch-ib-2", "connectx-5", 1e-13),
    ("HDR", "quantum", "connectx-6", 1e-13),
    ("NDR", "quantum-2", "connectx-7", 1e-14),
];

/// A bad cable of each speed: far above its limit, above it, and below it.
fn bad_cables() -> impl Iterator<Item = Case> {
    SPEEDS.into_iter().flat_map(|(speed, switch, hca, limit)| {
        let case = move |factor: f64, minutes| {
            let ratio = limit * factor;
            let story = format!(
                "fabric: {{fat-tree: {{switch: {switch}, hca: {hca}}}}}\n\
                 timeline: [bad-cable: {{at: 30m, into: \"leaf-0-1[9]\", ratio: {ratio:e}}}]"
            );
            Case::new(format!("{speed} cable at {ratio:.0e}, limit {limit:.0e}"), minutes, story)
                .from(1800)
        };
        let bad = move |factor, minutes| {
            case(factor, minutes).wants("leaf-0-1[9]", Verdict::Bad, Reason::BitErrors).then(
                |seen| {
                    let bad = link(seen, "leaf-0-1[9]").ok_or("no link")?;
                    ensure(matches!(bad.repair, Some(Repair::Reseat)), || summary(bad))?;
                    all_fine_but(seen, &["leaf-0-1[9]"])
                },
            )
        };
        [
            bad(1e4, 60),
            bad(100.0, 90),
            bad(5.0, 180),
            case(0.3, 360).then(|seen| all_fine_but(seen, &[])),
        ]
    })
}

/// Events of links.
fn of_links() -> Vec<Case> {
    vec![
            Case::new(
                "a link flaps every 10 min, for 500 ms, 3 s or 40 s",
                180,
                "timeline: [flap: {at: 30m 7s, link: \"leaf-0-2[3]\", down: [500ms, 3s, 40s], every: 10m, times: 12}]",
            )
            .from(1800)
            .wants("leaf-0-2[3]", Verdict::Bad, Reason::Flapping)
            .then(|seen| {
                let it = link(seen, "leaf-0-2[3]").ok_or("no link")?;
                ensure(it.outages.flaps == 12 && it.outages.expected == [0, 0], || summary(it))?;
                // 174 s without a signal, and up to a second each until the link is Active again. Of four
                // of 40 s at least 25 s are seen; the other bound is an interval wider at each side.
                let down = it.outages.down;
                ensure((100..=186).contains(&down.least.as_secs()), || summary(it))?;
                ensure((174..=174 + 12 * 30).contains(&down.most.as_secs()), || summary(it))?;
                all_fine_but(seen, &["leaf-0-2[3]"])
            }),
            Case::new(
                "a link retrains every 20 s without a link down",
                120,
                "timeline: [flap: {at: 30m, link: \"leaf-0-2[3]\", down: 5ms, every: 20s, times: 200}]",
            )
            .from(1800)
            .wants("leaf-0-2[3]", Verdict::Watch, Reason::Recoveries)
            .passing(),
            Case::new(
                "a link falls back to one of four lanes",
                90,
                "timeline: [degrade: {at: 30m, link: \"leaf-0-0[9]\", width: 1x}]",
            )
            .from(1800)
            .wants("leaf-0-0[9]", Verdict::Bad, Reason::Width),
            Case::new(
                "a link comes up at EDR instead of NDR",
                90,
                "timeline: [degrade: {at: 30m, link: \"leaf-0-1[2]\", speed: EDR}]",
            )
            .from(1800)
            .wants("leaf-0-1[2]", Verdict::Watch, Reason::Speed),
            Case::new(
                "a cable is unplugged for 20 minutes",
                120,
                "timeline: [unplug: {at: 30m, link: \"leaf-0-0[9]\", for: 20m}]",
            )
            .from(1800)
            .wants("leaf-0-0[9]", Verdict::Bad, Reason::Down)
            .passing(),
    ]
}

/// Links that run below the capability of both ends from the first sweep on.
fn of_rates() -> Vec<Case> {
    let degraded =
        |host: usize, limit: &str| format!("degrade: {{at: 0s, link: host-{host}, {limit}}}");
    let all = |limit: &str| (0..24).map(|host| degraded(host, limit)).collect::<Vec<_>>();
    let story = |entries: Vec<String>| format!("timeline: [{}]", entries.join(", "));
    let mut one_lane = all("width: 2x");
    one_lane[5] = degraded(5, "width: 1x");
    vec![
        Case::new("all hosts use 2 of 4 lanes by design", 90, story(all("width: 2x"))).then(
            |seen| {
                let it = link(seen, "host-5[1]").ok_or("no link")?;
                let weight = it.reasons.weight(Reason::BelowCapability);
                ensure(weight == Some(Verdict::Ok) && it.repair.is_none(), || summary(it))?;
                let snapshot = seen.snapshot.as_ref().ok_or("no sweep")?;
                let width = snapshot.status(it.link.low).and_then(|status| status.width);
                ensure(width == Some(Width::X2), || format!("{width:?}"))?;
                all_fine_but(seen, &[])
            },
        ),
        Case::new("all hosts run at HDR by design", 90, story(all("speed: HDR")))
            .then(|seen| all_fine_but(seen, &[])),
        Case::new("all hosts use 2 lanes, one of them uses 1", 90, story(one_lane))
            .wants("host-5[1]", Verdict::Bad, Reason::Width)
            .then(|seen| all_fine_but(seen, &["host-5[1]"])),
        Case::new(
            "one host runs at HDR, all others at NDR",
            90,
            story(vec![degraded(5, "speed: HDR")]),
        )
        .wants("host-5[1]", Verdict::Watch, Reason::Speed)
        .then(|seen| all_fine_but(seen, &["host-5[1]"])),
        Case::new(
            "a link with 4 lanes comes up with 2",
            90,
            "timeline: [degrade: {at: 30m, link: \"leaf-0-0[9]\", width: 2x}]",
        )
        .from(1800)
        .wants("leaf-0-0[9]", Verdict::Bad, Reason::Width)
        .then(|seen| all_fine_but(seen, &["leaf-0-0[9]"])),
    ]
}

/// Nodes that reboot.
fn of_nodes() -> Vec<Case> {
    vec![
            Case::new(
                "a host reboots three times",
                120,
                "timeline: [reboot: {at: 30m, node: host-13, down: 90s}, reboot: {at: 50m, node: host-13, down: 5m}, reboot: {at: 80m, node: host-13, down: 90s}]",
            )
            .then(|seen| {
                let it = link(seen, "host-13[1]").ok_or("no link")?;
                ensure((it.outages.flaps, it.outages.expected) == (0, [3, 0]), || summary(it))?;
                all_fine_but(seen, &[])
            }),
            Case::new(
                "a leaf switch reboots",
                120,
                "timeline: [reboot: {at: 30m, node: leaf-0-2, down: 2m}]",
            )
            .then(|seen| {
                for at in ["leaf-0-2[1]", "leaf-0-2[9]"] {
                    let it = link(seen, at).ok_or("no link")?;
                    ensure((it.outages.flaps, it.outages.expected) == (0, [1, 0]), || summary(it))?;
                }
                all_fine_but(seen, &[])
            }),
    ]
}

/// Resets the LinkDowned count of a lost link on the HCA of host-13: ConnectX-7 with firmware 28.40 leaves
/// its 64-bit LinkDownedCounter at 0.
fn uncounted(at: &str) -> String {
    format!("set: {{at: {at}, port: host-13, counters: {{LinkDownedCounter: 0}}}}")
}

/// Cables of hosts whose HCA does not count LinkDowned.
fn of_silent_hcas() -> Vec<Case> {
    let timeline = |entries: Vec<String>| format!("timeline: [{}]", entries.join(", "));
    let bad = |name: &str, minutes, story: String| {
        Case::new(name, minutes, story)
            .from(1800)
            .wants("host-13[1]", Verdict::Bad, Reason::Flapping)
            .then(|seen| {
                let it = link(seen, "host-13[1]").ok_or("no link")?;
                ensure((it.outages.flaps, it.outages.expected) == (3, [0, 0]), || summary(it))?;
                all_fine_but(seen, &["host-13[1]"])
            })
    };
    let flaps = |minute: u32| {
        let flap = format!("flap: {{at: {minute}m 7s, link: \"host-13[1]\", down: 2s}}");
        [flap, uncounted(&format!("{minute}m 8s"))]
    };
    let drops = |minute: u32| {
        let drop = format!("unplug: {{at: {minute}m, link: \"host-13[1]\", for: 1m}}");
        [drop, uncounted(&format!("{minute}m 1s"))]
    };
    let hourly = || [30, 90, 150].into_iter().flat_map(drops).collect::<Vec<_>>();
    let clear = |minute: u32| format!("clear: {{at: {minute}m 20s, node: leaf-0-1}}");
    let cleared = [[30, 90, 150].map(clear).to_vec(), hourly()].concat();
    vec![
        bad(
            "a host's cable flaps, its HCA does not count LinkDowned",
            90,
            timeline([30, 40, 50].into_iter().flat_map(flaps).collect()),
        ),
        bad("a cable loses its link for a minute every hour", 240, timeline(hourly())),
        bad("the same, while a tool clears the switch counters", 240, timeline(cleared)),
    ]
}

/// Events of counters.
fn of_counters() -> Vec<Case> {
    vec![
            Case::new(
                "bad cable while a tool clears all counters every minute",
                180,
                "timeline: [bad-cable: {at: 30m, into: \"leaf-0-0[9]\", ratio: 1e-12}, clear: {at: 1m, every: 1m, times: 175}]",
            )
            .from(1800)
            .wants("leaf-0-0[9]", Verdict::Bad, Reason::BitErrors)
            .then(|seen| all_fine_but(seen, &["leaf-0-0[9]"])),
            Case::new(
                "old HCAs: bad cable until its 16-bit counter saturates",
                240,
                "fabric: {fat-tree: {switch: infiniscale-4, hca: infinihost-3}}\n\
                 timeline: [bad-cable: {at: 30m, into: host-5, ratio: 1e-9}]",
            )
            .from(1800)
            .wants("host-5[1]", Verdict::Bad, Reason::BitErrors),
            Case::new(
                "old HCAs: saturated 8-bit counters",
                90,
                "fabric: {fat-tree: {switch: infiniscale-4, hca: infinihost-3}}\n\
                 timeline: [set: {at: 0s, port: host-5, counters: {LinkErrorRecoveryCounter: 255, LinkDownedCounter: 255}}]",
            )
            .then(|seen| {
                let it = link(seen, "host-5[1]").ok_or("no link")?;
                ensure(it.reasons.weight(Reason::CounterSaturated).is_some(), || summary(it))
            }),
            Case::new(
                "NDR: bad cable until the FEC counters saturate",
                90,
                "timeline: [bad-cable: {at: 30m, into: \"leaf-0-1[9]\", ratio: 1e-12}]",
            )
            .from(1800)
            .wants("leaf-0-1[9]", Verdict::Bad, Reason::PreFec)
            .then(|seen| {
                let it = link(seen, "leaf-0-1[9]").ok_or("no link")?;
                let weight = |reason| it.reasons.weight(reason);
                let full = weight(Reason::CounterSaturated) == Some(Verdict::Ok);
                ensure(full && weight(Reason::PreFec).is_some(), || summary(it))?;
                all_fine_but(seen, &["leaf-0-1[9]"])
            }),
            Case::new(
                "NDR: saturated FEC counters of healthy links",
                90,
                "timeline: [set: {at: 0s, port: 'host-5[1]', counters: {PortFECCorrectedSymbolCtr: 4294967295}}, \
                 set: {at: 0s, port: 'leaf-0-1[9]', counters: {PortFECCorrectedSymbolCtr: 4294967295}}]",
            )
            .then(|seen| {
                for at in ["host-5[1]", "leaf-0-1[9]"] {
                    let it = link(seen, at).ok_or("no link")?;
                    let weight = it.reasons.weight(Reason::CounterSaturated);
                    ensure(weight == Some(Verdict::Ok), || summary(it))?;
                }
                all_fine_but(seen, &[])
            }),
            Case::new(
                "an adapter reports 2^64 - 40 receive errors",
                90,
                "timeline: [set: {at: 30m, port: 'host-5[1]', counters: {PortRcvErrors: 18446744073709551576}}]",
            )
            .then(|seen| {
                let found = link(seen, "host-5[1]").ok_or("no link")?.link;
                let of = |port: ib_fabric::PortIndex| &seen.assessment.ports[port];
                let times = found.ports().map(|port| of(port).counters.impossible_readings).iter().sum::<u32>();
                ensure(times > 200, || format!("{times} impossible readings"))?;
                all_fine_but(seen, &[])
            }),
    ]
}

/// Every connected switch port of the usual tree, and that of a real Quantum-2 without faults: inactive
/// discards for each discard, and mapping errors for each relay error, until their 16 bits are
/// saturated.
fn benign() -> String {
    use std::fmt::Write;
    let leaves = (0..3).flat_map(|leaf| (1..=16).map(move |port| format!("leaf-0-{leaf}[{port}]")));
    let spines =
        (0..2).flat_map(|spine| (1..=12).map(move |port| format!("spine-{spine}[{port}]")));
    let ports: Vec<String> = leaves.chain(spines).collect();
    let mut story = "timeline:\n".to_owned();
    for (minute, count) in [(30, 2_000u32), (45, 40_000), (60, 90_000)] {
        let cause = count.min(65_535);
        for port in &ports {
            writeln!(
                story,
                "- set: {{at: {minute}m, port: \"{port}\", counters: {{PortXmitDiscards: {count}, \
                 PortInactiveDiscards: {cause}, PortRcvSwitchRelayErrors: {count}, \
                 PortDLIDMappingErrors: {cause}}}}}"
            )
            .unwrap();
        }
    }
    story
}

/// No link has a reason, not even that its counters are saturated.
fn nothing_said(observation: &Observation) -> Result<(), String> {
    for it in &observation.assessment.links {
        ensure(it.reasons.iter().next().is_none(), || summary(it))?;
    }
    all_fine_but(observation, &[])
}

/// Observed device behavior: counters that stay at 0, and counters that mean no harm.
fn of_devices() -> Vec<Case> {
    vec![
        // At EDR, where there are no uncorrectable FEC blocks.
        Case::new(
            "bad cable to a ConnectX-7, whose 64-bit symbol errors stay at 0",
            120,
            "fabric: {fat-tree: {switch: switch-ib-2, hca: connectx-7}}\n\
             timeline: [bad-cable: {at: 30m, into: host-5, ratio: 1e-11}]",
        )
        .from(1800)
        .wants("host-5[1]", Verdict::Bad, Reason::BitErrors)
        .then(|seen| all_fine_but(seen, &["host-5[1]"])),
        Case::new(
            "bad cable to a ConnectX-4 until its 16-bit counter saturates",
            180,
            "fabric: {fat-tree: {switch: switch-ib-2, hca: connectx-4}}\n\
             timeline: [bad-cable: {at: 30m, into: host-5, ratio: 1e-10}]",
        )
        .from(1800)
        .wants("host-5[1]", Verdict::Bad, Reason::BitErrors),
        Case::new("discards and relay errors of Quantum-2 on all ports", 120, benign())
            .then(nothing_said),
        Case::new(
            "switches with aggregation nodes, one switch reboots",
            90,
            "fabric: {fat-tree: {aggregation-nodes: true}}\n\
             timeline: [reboot: {at: 30m, node: leaf-0-2, down: 2m}]",
        )
        .then(|seen| all_fine_but(seen, &[])),
    ]
}

/// Congestion is not a fault of a cable.
fn of_load() -> Vec<Case> {
    vec![
        Case::new(
            "120 hosts send to one",
            120,
            "fabric: {fat-tree: {hosts: 128, radix: 32}}\n\
                 traffic: {pattern: none}\n\
                 timeline: [burst: {at: 30m, from: 120, to: host-3, load: 30%, for: 60m}]",
        )
        .then(|seen| all_fine_but(seen, &[])),
        Case::new(
            "a slow host under random traffic",
            120,
            "traffic: {pattern: random, load: 20%}\n\
                 timeline: [slow-receiver: {at: 30m, host: host-12, takes: 2%}]",
        )
        .then(|seen| {
            let found = &seen.assessment;
            let fabric = &seen.snapshot.as_ref().ok_or("no sweep")?.fabric;
            let roots: Vec<String> = (fabric.port_indexes())
                .filter(|port| matches!(found.ports[*port].role, Some(Role::Root(_))))
                .map(|port| label(fabric, port))
                .collect();
            ensure(roots.iter().any(|root| root == "leaf-0-1[5]"), || format!("{roots:?}"))?;
            all_fine_but(seen, &[])
        }),
    ]
}

/// Other faults that look like a bad cable.
fn of_the_rest() -> Vec<Case> {
    vec![
            Case::new(
                "cables are moved to wrong ports",
                120,
                "timeline:\n\
                 - move-cable: {at: 30m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}\n\
                 - unplug: {at: 40m, link: \"leaf-0-0[16]\", for: 30s}\n\
                 - unplug: {at: 50m, link: host-23}\n\
                 - move-cable: {at: 51m, from: \"leaf-0-2[8]\", to: \"spine-0[16]\"}",
            )
            .then(|seen| all_fine_but(seen, &[])),
            Case::new(
                "a spine does not respond for an hour",
                180,
                "timeline: [silent: {at: 30m, node: spine-1, for: 1h}]",
            )
            .then(|seen| all_fine_but(seen, &[])),
            Case::new(
                "bad cable while 2% of the MADs are lost",
                120,
                "way: {round-trip: 50us, per-hop: 2us, jitter: 200us, loss: 2%}\n\
                 timeline: [bad-cable: {at: 30m, into: \"leaf-0-0[9]\", ratio: 1e-10}]",
            )
            .from(1800)
            .wants("leaf-0-0[9]", Verdict::Bad, Reason::BitErrors),
            Case::new(
                "another subnet manager becomes master, all LIDs change",
                120,
                "timeline: [new-master: {at: 30m, host: host-2}, new-master: {at: 60m, host: host-1, readdress: true}]",
            )
            .then(|seen| all_fine_but(seen, &[])),
            Case::new("no fault", 360, "timeline: [clear: {at: 1s}]")
                .then(|seen| all_fine_but(seen, &[])),
    ]
}

/// What modules and the physical layer report.
fn of_modules() -> Vec<Case> {
    let case = |name: &str, entry: &str, link, reason| {
        Case::new(name, 90, format!("timeline: [{entry}]")).from(1800).wants(
            link,
            Verdict::Watch,
            reason,
        )
    };
    vec![
        case(
            "a lane with a BER of 6e-5 before FEC, no uncorrectable error",
            "dirty-connector: {at: 30m, into: \"spine-0[2]\", lane: 2, ratio: 6e-5, light: 50%}",
            "spine-0[2]",
            Reason::PreFec,
        ),
        case(
            "a lane that receives 5% of the light",
            "dirty-connector: {at: 30m, into: \"spine-0[2]\", lane: 0, ratio: 1e-9, light: 5%}",
            "spine-0[2]",
            Reason::RxPower,
        ),
        case(
            "a module at 78 °C, alarm threshold 75 °C",
            "hot-module: {at: 30m, port: \"spine-0[3]\", celsius: 78}",
            "spine-0[3]",
            Reason::ModuleTemperature,
        ),
    ]
}

/// All cases.
pub fn all() -> Vec<Case> {
    let others = [
        of_links(),
        of_rates(),
        of_nodes(),
        of_silent_hcas(),
        of_counters(),
        of_devices(),
        of_load(),
        of_modules(),
        of_the_rest(),
    ];
    bad_cables().chain(others.into_iter().flatten()).collect()
}
