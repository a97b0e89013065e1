use std::time::{Duration, SystemTime};

use super::*;
use crate::settings::NodeRef;
use crate::{Reason, Verdict};
use ib_fabric::testing::{end, fabric, found};
use ib_mad::Reading;
use ib_mad::node::PortRole;
use ib_mad::port_state::PortStatus;
use ib_mad::port_state::testing::up;
use ib_mad::rate::{Speed, Width};

/// Switch 1 with host 2 at its port 1.
fn pair(connected: bool) -> Arc<Fabric> {
    let nodes = || vec![found(1, NodeKind::Switch, 2), found(2, NodeKind::Ca, 1)];
    let whole = fabric(nodes(), &[(end(1, 1), end(2, 1))], None);
    Arc::new(if connected { whole } else { fabric(nodes(), &[], Some((&whole, Moment(0)))) })
}

/// A fabric that is swept each 15 s; a sweep takes 4 s.
struct Story {
    judge: Judge,
    fabric: Arc<Fabric>,
    sweep: u64,
    /// What the switch says of its port's state; nothing while the discovery's word counts.
    told: Option<PortStatus>,
    /// What the host says of its own.
    far: Option<PortStatus>,
    /// LinkDowned of the switch and of the host.
    downed: [u64; 2],
    /// The field of the host's is full.
    full: bool,
    /// Nobody answers.
    silent: bool,
    /// SymbolErrorCounter of the host.
    symbols: u64,
    /// PortRcvErrors and PortRcvRemotePhysicalErrors of the host.
    received: [u64; 2],
    /// PortXmitData of the host, if that is read: words of four bytes.
    sent: Option<u64>,
    /// PortFECCorrectedSymbolCtr of the switch, if that is read: 32 bits that stick.
    corrected: Option<u64>,
}

impl Story {
    fn new() -> Self {
        Story::counting([0; 2], false)
    }

    fn counting(downed: [u64; 2], full: bool) -> Self {
        let mut story = Story::unseen(downed, full);
        story.sweeps(2);
        story
    }

    /// Before the first sweep, with a link that runs as the switch's port says.
    fn running(width: Width, speed: Speed) -> Self {
        let mut story = Story::unseen([0; 2], false);
        story.told = Some(running(width, speed));
        story
    }

    fn unseen(downed: [u64; 2], full: bool) -> Self {
        Story {
            judge: Judge::new(HealthSettings::default()),
            fabric: pair(true),
            sweep: 0,
            told: None,
            far: None,
            downed,
            full,
            silent: false,
            symbols: 0,
            received: [0; 2],
            sent: None,
            corrected: None,
        }
    }

    fn began(&self) -> Moment {
        Moment::default() + Duration::from_secs(15 * self.sweep)
    }

    fn sweep(&mut self) -> LinkFindings {
        self.sweep += 1;
        let anchor = Anchor { moment: self.began(), wall: SystemTime::UNIX_EPOCH };
        let mut snapshot = Snapshot::blank(Arc::clone(&self.fabric), anchor);
        snapshot.ended = snapshot.began + Duration::from_secs(4);
        for (nth, at) in [end(1, 1), end(2, 1)].into_iter().enumerate() {
            let mut reading = Reading::empty(snapshot.ended);
            reading.set(Counter::SymbolErrors, self.symbols * nth as u64);
            reading.set(Counter::LinkDowned, self.downed[nth]);
            if nth == 1 {
                reading.set(Counter::RcvErrors, self.received[0]);
                reading.set(Counter::RcvRemotePhysicalErrors, self.received[1]);
                if let Some(sent) = self.sent {
                    reading.set(Counter::XmitData, sent);
                }
            }
            if let Some(corrected) = self.corrected.filter(|_| nth == 0) {
                let most = u64::from(u32::MAX);
                reading.set(Counter::FecCorrectedSymbols, corrected.min(most));
                if corrected >= most {
                    reading.set_stuck(Counter::FecCorrectedSymbols);
                }
            }
            if self.full && nth == 1 {
                reading.set_stuck(Counter::LinkDowned);
            }
            snapshot.readings[self.fabric.find(at).unwrap().0 as usize] = Some(reading);
        }
        for (told, at) in [(self.told, end(1, 1)), (self.far, end(2, 1))] {
            if let Some(told) = told {
                let port = self.fabric.find(at).unwrap();
                snapshot.statuses[port.0 as usize] = PortRead::Ok(told);
            }
        }
        if self.silent {
            snapshot.readings.fill(None);
            snapshot.silent.fill(true);
        }
        self.judge.judge(&mut snapshot).links.remove(0)
    }

    fn sweeps(&mut self, count: usize) -> LinkFindings {
        for _ in 1..count {
            self.sweep();
        }
        self.sweep()
    }
}

/// A port of a switch that can do 4x NDR, as of one that is not split, and runs so.
fn running(width: Width, speed: Speed) -> PortStatus {
    let speeds = Speed::ALL.into_iter().filter(|speed| *speed <= Speed::Ndr).collect();
    PortStatus {
        width: Some(width),
        speed: Some(speed),
        widths_supported: Width::X4.up_to(),
        widths_enabled: Width::X4.up_to(),
        speeds_supported: speeds,
        speeds_enabled: speeds,
        ..up(1)
    }
}

fn polling() -> PortStatus {
    PortStatus {
        state: state::DOWN,
        physical_state: physical::POLLING,
        width: None,
        speed: None,
        ..up(1)
    }
}

#[test]
fn a_port_that_is_back_before_the_discovery_has_seen_it_is_lost_once() {
    let mut story = Story::new();
    story.told = Some(polling());
    story.sweep();
    story.fabric = pair(false);
    story.sweeps(2);
    let back = story.began() + Duration::from_secs(10);
    story.judge.hear(end(2, 1), true, back);
    story.told = Some(up(1));
    story.downed = [1, 1];
    story.sweeps(2);
    story.fabric = pair(true);
    let found = story.sweeps(5);
    assert_eq!((found.up, found.outages.flaps), (Some(true), 1), "{:?}", found.outages);
}

#[test]
fn an_internal_link_is_not_judged() {
    for (role, reason) in [
        (Some(PortRole::Fnm), Some(Reason::Internal)),
        (Some(PortRole::Router), Some(Reason::Internal)),
        (Some(PortRole::Other), None),
        (Some(PortRole::Cable), None),
        (None, None),
    ] {
        let mut story = Story::new();
        let mut fabric = (*story.fabric).clone();
        let port = fabric.find(end(1, 1)).unwrap();
        fabric.ports[port.0 as usize].role = role;
        story.fabric = Arc::new(fabric);
        // It is lost for 10 minutes, with thousands of errors.
        story.sweeps(50);
        story.symbols = 100_000;
        story.told = Some(polling());
        let lost = story.sweeps(40);
        let reasons: Vec<Reason> = lost.reasons.iter().map(|(reason, _)| reason).collect();
        match reason {
            Some(reason) => {
                assert_eq!((lost.verdict, lost.repair), (Verdict::Unknown, None), "{role:?}");
                assert_eq!((reasons, lost.up), (vec![reason], Some(false)), "{role:?}");
            }
            None => assert!(lost.verdict >= Verdict::Watch, "{role:?}: {reasons:?}"),
        }
    }
}

#[test]
fn a_device_that_says_it_sent_more_bytes_than_can_be_counted_is_judged_all_the_same() {
    let mut story = Story::new();
    story.sent = Some(1);
    story.sweeps(2);
    story.sent = Some(u64::MAX - 1);
    assert_eq!(story.sweep().verdict, Verdict::Unknown);
}

#[test]
fn what_a_sweep_asked_before_an_event_says_nothing_about_it() {
    let mut story = Story::new();
    // While the sweep goes on: its states were asked before.
    let lost = story.began() + Duration::from_secs(16);
    story.judge.hear(end(2, 1), false, lost);
    story.told = Some(up(1));
    story.downed = [1, 1];
    assert_eq!(story.sweep().up, Some(false));
    story.told = Some(polling());
    story.sweeps(2);
    story.told = Some(up(1));
    let found = story.sweeps(5);
    assert_eq!((found.up, found.outages.flaps), (Some(true), 1), "{:?}", found.outages);
}

#[test]
fn a_counter_that_is_full_does_not_blame_the_node() {
    let mut story = Story::counting([0, 255], true);
    for _ in 0..3 {
        story.downed[0] += 1;
        story.sweeps(6);
    }
    let found = story.sweep();
    assert_eq!(found.outages.flaps, 3);
    let weight = |reason| found.reasons.weight(reason);
    assert_eq!(
        (weight(Reason::Flapping), weight(Reason::NodeFlapping)),
        (Some(Verdict::Bad), None)
    );
}

#[test]
fn a_link_that_waits_for_its_subnet_manager_is_no_bad_cable() {
    let mut story = Story::new();
    story.told = Some(PortStatus { state: state::INIT, ..up(1) });
    let found = story.sweeps(60);
    assert_eq!(found.reasons.weight(Reason::Down), Some(Verdict::Watch));
    assert_eq!((found.verdict, found.repair), (Verdict::Watch, None));
    story.told = Some(polling());
    assert_eq!(story.sweep().verdict, Verdict::Bad);
}

#[test]
fn packets_that_were_marked_upstream_are_no_errors_of_this_link() {
    // Devices count them twice.
    let mut story = Story::new();
    story.received = [50, 50];
    let found = story.sweep();
    let weight = |reason| found.reasons.weight(reason);
    assert_eq!((weight(Reason::Marked), weight(Reason::ReceiveErrors)), (Some(Verdict::Ok), None));
    story.received = [80, 55];
    assert_eq!(story.sweep().reasons.weight(Reason::ReceiveErrors), Some(Verdict::Watch));
}

#[test]
fn what_is_not_known_of_the_sound_end_keeps_no_cable_bad() {
    // It will never be known: the field is full, and nobody clears it.
    let mut story = Story::counting([0, 255], true);
    story.sweeps(10);
    for _ in 0..10 {
        story.symbols += 1_000;
        story.sweep();
    }
    assert_eq!(story.sweep().verdict, Verdict::Bad);
    let found = story.sweeps(4 * 300);
    assert_eq!(found.verdict, Verdict::Unknown, "{:?}", found.reasons);
}

#[test]
fn whether_a_link_is_up_is_not_known_while_nobody_answers() {
    let mut story = Story::new();
    assert_eq!(story.sweep().up, Some(true));
    story.silent = true;
    assert_eq!(story.sweep().up, None);
    story.silent = false;
    let found = story.sweep();
    assert_eq!((found.up, found.outages.flaps), (Some(true), 0));
}

/// The weight of a reason, by the word that metrics have for it.
fn weight(found: &LinkFindings, label: &str) -> Option<Verdict> {
    let mut reasons = found.reasons.iter();
    reasons.find(|(reason, _)| reason.label() == label).map(|(_, weight)| weight)
}

#[test]
fn an_impossible_value_is_no_evidence_against_a_link() {
    let mut story = Story::new();
    story.sweeps(60);
    // As a ConnectX-7 was seen to report it.
    story.received[0] = u64::MAX - 39;
    let found = story.sweep();
    assert_eq!(weight(&found, "receive_errors"), None, "{:?}", found.reasons);
    assert_eq!(found.verdict, Verdict::Ok, "judged by its other counters");
    assert_eq!(weight(&found, "impossible_value"), Some(Verdict::Ok), "{:?}", found.reasons);
    // Back to sense: what was counted since the latest valid reading counts.
    story.received[0] = 30;
    assert_eq!(weight(&story.sweep(), "receive_errors"), Some(Verdict::Watch));
}

#[test]
fn a_link_on_half_of_its_lanes_from_the_start_is_as_it_was_built() {
    let mut story = Story::running(Width::X2, Speed::Edr);
    let found = story.sweeps(60);
    assert_eq!(found.verdict, Verdict::Ok, "{:?}", found.reasons);
    assert_eq!(weight(&found, "below_capability"), Some(Verdict::Ok));
}

#[test]
fn a_full_counter_of_error_correction_does_not_acquit_a_link() {
    let mut story = Story::running(Width::X4, Speed::Ndr);
    let corrected = |story: &mut Story, sweeps: usize, a_sweep: u64| {
        for _ in 1..sweeps {
            story.corrected = Some(story.corrected.unwrap_or(0) + a_sweep);
            story.sweep();
        }
        story.sweep()
    };
    // Twice the limit: 2e-5 of the 6e12 bits of a sweep. After 36 sweeps 32 bits are full.
    let found = corrected(&mut story, 30, 120_000_000);
    assert_eq!((found.verdict, weight(&found, "pre_fec")), (Verdict::Watch, Some(Verdict::Watch)));
    let found = corrected(&mut story, 400, 120_000_000);
    assert_eq!((found.verdict, weight(&found, "pre_fec")), (Verdict::Watch, Some(Verdict::Watch)));
    assert_eq!(weight(&found, "counter_saturated"), Some(Verdict::Ok), "{:?}", found.reasons);
}

#[test]
fn a_link_that_lost_lanes_or_speed_is_no_longer_as_it_was_built() {
    for (from, to, reason, verdict) in [
        ((Width::X4, Speed::Ndr), (Width::X2, Speed::Ndr), "width", Verdict::Bad),
        ((Width::X4, Speed::Ndr), (Width::X4, Speed::Hdr), "speed", Verdict::Watch),
        ((Width::X2, Speed::Ndr), (Width::X2, Speed::Edr), "speed", Verdict::Watch),
        // One lane of four is no design.
        ((Width::X1, Speed::Edr), (Width::X1, Speed::Edr), "width", Verdict::Bad),
    ] {
        let mut story = Story::running(from.0, from.1);
        story.far = story.told;
        story.sweeps(60);
        story.told = Some(running(to.0, to.1));
        story.far = story.told;
        let found = story.sweeps(60);
        let told = (found.verdict, weight(&found, reason));
        assert_eq!(told, (verdict, Some(verdict)), "{from:?} {to:?}: {:?}", found.reasons);
    }
}

#[test]
fn a_rate_that_a_link_has_only_while_it_trains_is_none_that_it_can_lose() {
    let mut story = Story::running(Width::X4, Speed::Ndr);
    story.far = story.told;
    story.sweep();
    story.told = Some(running(Width::X4, Speed::Hdr));
    story.far = story.told;
    let found = story.sweeps(60);
    assert_eq!(weight(&found, "speed"), None, "{:?}", found.reasons);
}

#[test]
fn a_slower_cable_that_was_plugged_in_during_maintenance_is_no_loss() {
    let mut story = Story::running(Width::X4, Speed::Ndr);
    story.far = story.told;
    story.sweeps(60);
    story.told = Some(running(Width::X4, Speed::Hdr));
    story.far = story.told;
    assert_eq!(weight(&story.sweeps(4), "speed"), Some(Verdict::Watch));
    let node = NodeRef::new("0x0000000000000001");
    story.judge.set_work(vec![Work { node, port: Some(1), from: None, until: None }]);
    story.sweeps(4);
    story.judge.set_work(Vec::new());
    let found = story.sweeps(60);
    assert_eq!(weight(&found, "speed"), None, "{:?}", found.reasons);
    assert_eq!(found.verdict, Verdict::Ok);
}

#[test]
fn a_ratio_of_corrected_bits_that_is_not_read_any_more_is_not_kept() {
    let mut story = Story::running(Width::X4, Speed::Ndr);
    for sweep in 0..30 {
        // Twice the limit.
        story.corrected = Some(120_000_000 * sweep);
        story.sweep();
    }
    assert_eq!(weight(&story.sweep(), "pre_fec"), Some(Verdict::Watch));
    story.corrected = None;
    // Two periods of 2 minutes.
    let found = story.sweeps(17);
    assert_eq!(weight(&found, "pre_fec"), None, "{:?}", found.reasons);
}

#[test]
fn lanes_for_speed_at_the_same_rate_are_no_loss() {
    let mut story = Story::running(Width::X4, Speed::Edr);
    story.far = story.told;
    story.sweeps(60);
    story.told = Some(running(Width::X2, Speed::Hdr));
    story.far = story.told;
    let found = story.sweeps(60);
    assert_eq!(found.verdict, Verdict::Ok, "{:?}", found.reasons);
}

#[test]
fn what_a_link_had_says_nothing_once_its_ends_are_allowed_something_else() {
    let allowed = |widths, run: (Width, Speed)| {
        let status = PortStatus { widths_enabled: widths, ..running(run.0, run.1) };
        Some(status)
    };
    let mut story = Story::running(Width::X4, Speed::Ndr);
    story.far = story.told;
    story.sweeps(60);
    // LinkWidthEnabled is 2x: the link still runs as it did, until it trains.
    story.told = allowed(Width::X2.up_to(), (Width::X4, Speed::Ndr));
    assert_eq!(story.sweeps(4).verdict, Verdict::Ok);
    story.told = allowed(Width::X2.up_to(), (Width::X2, Speed::Ndr));
    story.far = Some(running(Width::X2, Speed::Ndr));
    let found = story.sweeps(120);
    assert_eq!((found.verdict, found.reference), (Verdict::Ok, None), "{:?}", found.reasons);
    // And it loses a lane of the two that it is allowed.
    story.told = allowed(Width::X2.up_to(), (Width::X1, Speed::Ndr));
    story.far = Some(running(Width::X1, Speed::Ndr));
    assert_eq!(story.sweeps(4).verdict, Verdict::Bad);
}

#[test]
fn a_bad_link_is_not_acquitted_by_impossible_symbol_errors() {
    let mut story = Story::new();
    story.sweeps(10);
    for _ in 0..10 {
        story.symbols += 1_000;
        story.sweep();
    }
    assert_eq!(story.sweep().verdict, Verdict::Bad);
    let known = std::mem::replace(&mut story.symbols, 1 << 63);
    let found = story.sweeps(4 * 30);
    assert_eq!(found.verdict, Verdict::Bad, "{:?}", found.reasons);
    assert_eq!(weight(&found, "impossible_value"), Some(Verdict::Unknown));
    assert_eq!(weight(&found, "too_short"), None, "{:?}", found.reasons);
    // And of a good one nothing is known until there are valid values again.
    story.symbols = known;
    assert_eq!(story.sweeps(4 * 300).verdict, Verdict::Ok);
}

#[test]
fn a_link_that_trained_since_its_counter_became_full_is_not_known_to_be_better() {
    let mut story = Story::running(Width::X4, Speed::Ndr);
    for sweep in 0..60 {
        story.corrected = Some(120_000_000 * sweep);
        story.sweep();
    }
    assert_eq!(weight(&story.sweep(), "pre_fec"), Some(Verdict::Watch));
    let up = story.told;
    story.told = Some(polling());
    story.downed = [1, 1];
    story.sweeps(2);
    story.told = up;
    let found = story.sweeps(60);
    let open = (weight(&found, "pre_fec"), weight(&found, "counter_saturated"));
    assert_eq!(open, (None, Some(Verdict::Unknown)), "{:?}", found.reasons);
    // It is cleared, and what is counted from then on is little.
    for sweep in 0..60 {
        story.corrected = Some(60_000 * sweep);
        story.sweep();
    }
    let found = story.sweep();
    assert_eq!(weight(&found, "counter_saturated"), None, "{:?}", found.reasons);
}
