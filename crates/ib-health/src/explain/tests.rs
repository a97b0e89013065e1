//! Sentences from assessments made by hand.

use super::*;
use crate::Reason;
use crate::bit_errors::BerWindow;
use crate::congestion::{HeldWait, Wait};
use crate::flap_days::RepeatedFlaps;
use crate::outage::Downtime;
use crate::testing::*;
use ib_fabric::snapshot::PortRead;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width};

/// The sentence for a reason of the link between `leaf` and `host-a`, after a change.
fn sentence(
    reason: Reason,
    change: impl FnOnce(&mut Snapshot, &mut Assessment, PortIndex, PortIndex),
) -> String {
    let mut snapshot = snapshot();
    let mut assessment = fine(&snapshot);
    let (leaf, host) = (port(&snapshot, 1, 1), port(&snapshot, 2, 1));
    change(&mut snapshot, &mut assessment, leaf, host);
    super::reason(reason, &assessment.links[0], &assessment, &snapshot)
}

#[test]
fn replacement_tells_how_the_new_cable_is() {
    for (verdict, since) in [
        (Verdict::Ok, "; no fault since then"),
        (Verdict::Unknown, "; not observed for long enough since then"),
        (Verdict::Bad, ""),
    ] {
        let text = sentence(Reason::Replaced, |snapshot, assessment, _, _| {
            snapshot.ended = Moment::default() + Duration::from_secs(7_801);
            let link = &mut assessment.links[0];
            (link.verdict, link.replaced) = (verdict, Some(Moment::default()));
        });
        assert_eq!(text, format!("the cable or a transceiver was replaced 2h 10m ago{since}"));
    }
}

#[test]
fn bit_errors_name_the_receiving_port() {
    let text = sentence(Reason::BitErrors, |_, assessment, leaf, _| {
        assessment.ports[leaf].bit_errors = over(432);
    });
    let ratio = over(432).ratio(BerWindow::Short).unwrap();
    assert_eq!(
        text,
        format!(
            "leaf port 1 receives symbol BER {ratio:.1e} (limit 1e-12): 432 symbol errors in 12m"
        )
    );
    // The plain count is shown, and the one that decides only if bursts had most of it.
    let text = sentence(Reason::BitErrors, |_, assessment, leaf, _| {
        let mut errors = over(9_432);
        errors.decided_by.as_mut().unwrap().steady = 1_432;
        assessment.ports[leaf].bit_errors = errors;
    });
    assert!(text.ends_with(": 9,432 symbol errors in 12m (1,432 without bursts)"), "{text}");
    let text = sentence(Reason::BitErrors, |_, assessment, leaf, _| {
        let before = Some(Duration::from_millis(2_400_700));
        let errors = BitErrors { level: BitErrorLevel::Raised, raised_before: before, ..over(720) };
        assessment.ports[leaf].bit_errors = errors;
    });
    assert!(
        text.ends_with("720 symbol errors in 12m; 40m ago it was above half of the limit"),
        "{text}"
    );
    // Too few to name a ratio.
    let text = sentence(Reason::BitErrors, |_, assessment, leaf, _| {
        let errors = BitErrors { bits_per_second: 1e9, ..over(1) };
        assessment.ports[leaf].bit_errors = errors;
    });
    assert_eq!(text, "leaf port 1 receives 1 symbol error in 12m (limit: symbol BER 1e-12)");
}

#[test]
fn losses_have_count_and_duration() {
    for (flaps, down, says) in [
        (3, (44, 44), "went down 3 times, 44s in total"),
        (3, (15, 45), "went down 3 times, 15s to 45s in total"),
        (5, (0, 75), "went down 5 times, at most 75s in total"),
        (1, (0, 0), "went down once"),
        (1, (2, 9), "went down once for 2s to 9s"),
        (2, (90, 3_720), "went down twice, 90s to 1h 2m in total"),
    ] {
        let text = sentence(Reason::Flapping, |_, assessment, _, _| {
            let outages = &mut assessment.links[0].outages;
            let (least, most) = (Duration::from_secs(down.0), Duration::from_secs(down.1));
            (outages.flaps, outages.down) = (flaps, Downtime { least, most });
        });
        assert_eq!(text, format!("{says} since the exporter started"));
    }
    let text = sentence(Reason::RepeatedFlaps, |snapshot, assessment, _, _| {
        snapshot.anchor.wall += Duration::from_secs(1_000_000_000);
        let (within, last) = (Duration::from_secs(14 * 86_400), Duration::from_secs(50_000));
        assessment.links[0].repeated_flaps = Some(RepeatedFlaps { days: 3, within, last });
    });
    let says = "went down unexpectedly on 3 of the last 14 days: last on 2001-09-08T12:10:00Z";
    assert_eq!(text, says);
    let text = sentence(Reason::NodeFlapping, |snapshot, _, leaf, _| {
        count(snapshot, leaf, Counter::LinkDowned, 4);
    });
    assert_eq!(text, "LinkDowned: leaf port 1 counted 4; host-a port 1 counted 0");
}

#[test]
fn slower_link_names_its_reference() {
    let at_1x = |snapshot: &mut Snapshot, port: PortIndex| {
        let mut status = *snapshot.status(port).unwrap();
        status.width = Width::widest(1);
        snapshot.statuses[port] = PortRead::Ok(status);
    };
    let run = (Width::X4, Speed::Edr);
    for (reason, reference, says) in [
        (Reason::Width, RateReference::Past(run), "ran at 4x EDR before"),
        (Reason::Width, RateReference::Peers(run), "its peers run at 4x EDR"),
        (
            Reason::BelowCapability,
            RateReference::Capability(run),
            "both ends support and enable 4x EDR",
        ),
    ] {
        let text = sentence(reason, |snapshot, assessment, leaf, host| {
            at_1x(snapshot, leaf);
            at_1x(snapshot, host);
            assessment.links[0].reference = Some(reference);
        });
        assert_eq!(text, format!("runs at 1x EDR; {says}"));
    }
}

#[test]
fn down_disabled_and_unresponsive_links() {
    let down = |snapshot: &mut Snapshot, port: PortIndex, physical_state| {
        let status = *snapshot.status(port).unwrap();
        snapshot.statuses[port] =
            PortRead::Ok(PortStatus { state: PortState::Down, physical_state, ..status });
    };
    let lost = sentence(Reason::Down, |snapshot, assessment, leaf, host| {
        down(snapshot, leaf, PhysicalState::Polling);
        down(snapshot, host, PhysicalState::Polling);
        assessment.links[0].outages.last_change =
            Some(snapshot.ended.before(Duration::from_secs(30)));
    });
    assert_eq!(lost, "not Active for 30s: leaf port 1 Down, host-a port 1 Down");
    let one_end = sentence(Reason::Down, |snapshot, _, leaf, _| {
        down(snapshot, leaf, PhysicalState::Polling);
    });
    let says = "not Active: leaf port 1 Down, host-a port 1 Active (ends read at different times)";
    assert_eq!(one_end, says);
    let off = sentence(Reason::Disabled, |snapshot, _, leaf, _| {
        down(snapshot, leaf, PhysicalState::Disabled);
    });
    assert_eq!(off, "leaf port 1 is disabled");
    let unresponsive = sentence(Reason::Unresponsive, |snapshot, _, _, host| {
        let node = snapshot.fabric.port(host).node;
        snapshot.silent[node] = true;
    });
    assert_eq!(unresponsive, "host-a does not respond");
}

#[test]
fn corrupted_packets_here_and_upstream() {
    let here = sentence(Reason::ReceiveErrors, |snapshot, _, leaf, _| {
        count(snapshot, leaf, Counter::RcvErrors, 10);
        count(snapshot, leaf, Counter::RcvRemotePhysicalErrors, 4);
    });
    assert_eq!(here, "leaf port 1 received 6 corrupt packets");
    // 100 buffer overruns and one corrupt packet.
    for (local, full, says) in [
        (1, false, "leaf port 1 received 1 corrupt packet"),
        (0, false, "leaf port 1 counted 100 receive errors"),
        (65_535, true, "leaf port 1 received 100 corrupt packets"),
    ] {
        let text = sentence(Reason::ReceiveErrors, |snapshot, assessment, leaf, _| {
            count(snapshot, leaf, Counter::RcvErrors, 100);
            count(snapshot, leaf, Counter::RcvLocalPhysicalErrors, local);
            let found = &mut assessment.ports[leaf];
            found.counters = saturated(Counter::RcvLocalPhysicalErrors, full);
        });
        assert_eq!(text, says, "{local}");
    }
    let elsewhere = sentence(Reason::UpstreamErrors, |snapshot, assessment, _, host| {
        count(snapshot, host, Counter::RcvRemotePhysicalErrors, 4);
        assessment.links[0].upstream = Some(port(snapshot, 1, 2));
    });
    assert_eq!(
        elsewhere,
        "host-a port 1 received 4 packets marked bad, corrupted on the link into leaf port 2"
    );
}

#[test]
fn congestion_roots_and_victims() {
    let wait = Some(Wait { share: 0.25, tick_reported: true });
    let root = sentence(Reason::Congested, |_, assessment, leaf, _| {
        let leaf = &mut assessment.ports[leaf];
        (leaf.wait, leaf.role) = (wait, Some(Role::Root(RootCause::SlowReceiver)));
    });
    assert_eq!(root, "leaf port 1 waits 25% of the time: its receiver is slow");
    let victim = sentence(Reason::Victim, |snapshot, assessment, _, host| {
        let of = port(snapshot, 1, 2);
        let host = &mut assessment.ports[host];
        (host.wait, host.role) = (wait, Some(Role::Victim { of }));
    });
    assert_eq!(victim, "host-a port 1 waits 25% of the time: leaf port 2 is congested");
}

#[test]
fn wait_that_is_not_known_is_said() {
    let root = |saturated: bool, held: Option<HeldWait>| {
        sentence(Reason::Congested, |_, assessment, leaf, _| {
            let leaf = &mut assessment.ports[leaf];
            leaf.role = Some(Role::Root(RootCause::SlowReceiver));
            leaf.held_wait = held;
            leaf.counters.saturated_now.set(Counter::XmitWait, saturated);
        })
    };
    let at = Moment::default() + Duration::from_secs(880);
    let held = Some(HeldWait { share: 0.83, at });
    for (saturated, held, waits) in [
        (true, held, "waited 83% of the time (measured 2m ago; PortXmitWait is saturated)"),
        (false, held, "waited 83% of the time (measured 2m ago)"),
        (true, None, "waits for an unknown time (PortXmitWait is saturated)"),
        (false, None, "waits for an unknown time"),
    ] {
        let expected = format!("leaf port 1 {waits}: its receiver is slow");
        assert_eq!(root(saturated, held), expected);
    }
}

#[test]
fn clears_are_said_where_they_make_a_ratio_an_estimate() {
    let text = sentence(Reason::BitErrors, |_, assessment, leaf, _| {
        let leaf = &mut assessment.ports[leaf];
        leaf.bit_errors = over(432);
        leaf.cleared_every = Some(Duration::from_secs(6));
    });
    let clears = "; a tool clears these counters every 6s or more often, so the time is estimated";
    assert!(text.ends_with(clears), "{text}");
}

#[test]
fn inactive_discards_are_not_congestion_discards() {
    use Counter::{XmitDiscards, XmitHoqLimitDiscards, XmitInactiveDiscards};
    let wait = Some(Wait { share: 0.25, tick_reported: true });
    let waits = "leaf port 1 waits 25% of the time: cause unknown";
    for (counts, saturates, discarded) in [
        (&[(XmitDiscards, 70_000)][..], false, "; discarded 70,000 packets"),
        (&[(XmitDiscards, 900), (XmitInactiveDiscards, 900)], false, ""),
        // Read a moment before the rest.
        (&[(XmitDiscards, 900), (XmitInactiveDiscards, 950)], false, ""),
        (
            &[(XmitDiscards, 912), (XmitInactiveDiscards, 900), (XmitHoqLimitDiscards, 12)],
            false,
            "; discarded 12 packets (12 by the HOQ limit)",
        ),
        // Saturated: the rest may be the same.
        (&[(XmitDiscards, 90_000), (XmitInactiveDiscards, 65_535)], true, ""),
        (
            &[(XmitDiscards, 90_000), (XmitInactiveDiscards, 65_535), (XmitHoqLimitDiscards, 5)],
            true,
            "; discarded 5 packets (5 by the HOQ limit)",
        ),
    ] {
        let root = sentence(Reason::Congested, |snapshot, assessment, leaf, _| {
            for &(counter, value) in counts {
                count(snapshot, leaf, counter, value);
            }
            let leaf = &mut assessment.ports[leaf];
            (leaf.wait, leaf.role) = (wait, Some(Role::Root(RootCause::Unknown)));
            if saturates {
                leaf.counters = saturated(XmitInactiveDiscards, true);
            }
        });
        assert_eq!(root, format!("{waits}{discarded}"), "{counts:?}");
    }
}

#[test]
fn unknown_reasons_say_why() {
    let full = sentence(Reason::CounterSaturated, |_, assessment, _, host| {
        assessment.ports[host].counters = saturated(Counter::SymbolErrors, true);
    });
    assert_eq!(full, "symbol_errors at host-a port 1 is saturated");
    let stale = |reason| {
        sentence(reason, |snapshot, assessment, leaf, _| {
            let found = &mut assessment.ports[leaf];
            found.counters = saturated(Counter::FecCorrectedSymbols, true);
            let at = snapshot.ended.before(Duration::from_secs(600));
            found.bit_errors.pre_fec = Some(PreFecBer {
                ratio: 2e-5,
                limit: 1e-5,
                at,
                stale: true,
                lane: None,
                over_at: None,
            });
        })
    };
    assert_eq!(
        stale(Reason::CounterSaturated),
        "fec_corrected_symbols at leaf port 1 is saturated (pre-FEC BER 2.0e-5 10m ago, limit 1e-5)"
    );
    assert_eq!(
        stale(Reason::PreFec),
        "leaf port 1 receives pre-FEC BER 2.0e-5 (limit 1e-5), measured 10m ago; the counter has been saturated since then"
    );
    let unmeasured = sentence(Reason::CounterSaturated, |_, assessment, leaf, _| {
        let found = &mut assessment.ports[leaf];
        found.counters = saturated(Counter::FecCorrectedSymbols, true);
    });
    assert_eq!(
        unmeasured,
        "fec_corrected_symbols at leaf port 1 is saturated (pre-FEC BER unknown)"
    );
    let impossible = sentence(Reason::ImpossibleValue, |_, assessment, _, host| {
        assessment.ports[host].counters.impossible.insert(Counter::RcvErrors);
    });
    assert_eq!(impossible, "receive_errors at host-a port 1 shows an impossible value");
    let short = sentence(Reason::InsufficientData, |_, assessment, leaf, host| {
        for (port, seconds) in [(leaf, 75.0), (host, 90.0)] {
            let errors = &mut assessment.ports[port].bit_errors;
            (errors.limit, errors.bits_per_second) = (1e-14, 1e11);
            errors.windows[BerWindow::Long as usize].seconds = seconds;
        }
    });
    assert_eq!(
        short,
        "leaf port 1 was observed for 75s; proving a BER below the limit takes 41m 40s"
    );
    let idle = sentence(Reason::InsufficientData, |_, _, _, _| {});
    assert_eq!(idle, "the link was not observed for long enough");
}

#[test]
fn every_reason_has_a_sentence_without_numbers() {
    for reason in Reason::ALL {
        let text = sentence(reason, |_, _, _, _| {});
        assert!(!text.is_empty() && !text.ends_with('.'), "{reason:?}: {text}");
    }
}
