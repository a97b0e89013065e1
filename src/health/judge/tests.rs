use std::time::{Duration, SystemTime};

use super::*;
use crate::fabric::Reading;
use crate::fabric::status::PortStatus;
use crate::fabric::status::tests::up;
use crate::fabric::topology::PortRole;
use crate::fabric::topology::tests::{end, fabric, found};
use crate::health::{Reason, Verdict};

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
}

impl Story {
    fn new() -> Self {
        Story::counting([0; 2], false)
    }

    fn counting(downed: [u64; 2], full: bool) -> Self {
        let mut story = Story {
            judge: Judge::new(HealthSettings::default()),
            fabric: pair(true),
            sweep: 0,
            told: None,
            downed,
            full,
            silent: false,
            symbols: 0,
            received: [0; 2],
            sent: None,
        };
        story.sweeps(2);
        story
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
            if self.full && nth == 1 {
                reading.set_stuck(Counter::LinkDowned);
            }
            snapshot.readings[self.fabric.find(at).unwrap().0 as usize] = Some(reading);
        }
        if let Some(told) = self.told {
            let port = self.fabric.find(end(1, 1)).unwrap();
            snapshot.statuses[port.0 as usize] = Fresh::Told(told);
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
