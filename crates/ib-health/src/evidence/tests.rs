//! Sentences from assessments made by hand.

use super::*;
use crate::Reason;
use crate::bit_errors::BerWindow;
use crate::congestion::Wait;
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
    describe(reason, &assessment.links[0], &assessment, &snapshot)
}

#[test]
fn bit_errors_name_the_receiving_port() {
    let text = sentence(Reason::BitErrors, |_, assessment, leaf, _| {
        assessment.ports[leaf.0 as usize].bit_errors = over(432);
    });
    let ratio =
        over(432).ratio(BerWindow::Short).map(|ratio| format!("bit error ratio {ratio:.1e}"));
    for part in
        ["432 errors in 720 s", "into leaf port 1", "limit 1e-12", &ratio.unwrap_or_default()]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("host-a"), "{text}");
}

#[test]
fn losses_have_count_and_duration() {
    for (flaps, down, says) in [
        (3, (44, 44), "went down 3 times, for 44 s in all"),
        (3, (15, 45), "went down 3 times, for 15 to 45 s in all"),
        (5, (0, 75), "went down 5 times, for at most 75 s in all"),
        (1, (0, 0), "went down once"),
        (2, (90, 3_720), "went down twice, for 90 s to 1h 2m in all"),
    ] {
        let text = sentence(Reason::Flapping, |_, assessment, _, _| {
            let outages = &mut assessment.links[0].outages;
            let (least, most) = (Duration::from_secs(down.0), Duration::from_secs(down.1));
            (outages.flaps, outages.down) = (flaps, Downtime { least, most });
        });
        assert_eq!(text, says);
    }
    let text = sentence(Reason::NodeFlapping, |snapshot, _, leaf, _| {
        count(snapshot, leaf, Counter::LinkDowned, 4);
    });
    assert_eq!(text, "leaf port 1 counted 4 losses; host-a port 1 counted 0 losses");
}

#[test]
fn slower_link_names_its_reference() {
    let at_1x = |snapshot: &mut Snapshot, port: PortIndex| {
        let mut status = *snapshot.status(port).unwrap();
        status.width = Width::widest(1);
        snapshot.statuses[port.0 as usize] = PortRead::Ok(status);
    };
    let run = (Width::X4, Speed::Edr);
    for (reason, reference, says) in [
        (Reason::Width, RateReference::Past(run), "it ran at 4x EDR before"),
        (Reason::Width, RateReference::Peers(run), "links between such devices run at 4x EDR"),
        (Reason::BelowCapability, RateReference::Capability(run), "both ends can do 4x EDR"),
    ] {
        let text = sentence(reason, |snapshot, assessment, leaf, host| {
            at_1x(snapshot, leaf);
            at_1x(snapshot, host);
            assessment.links[0].reference = Some(reference);
        });
        assert_eq!(text, format!("runs at 1x EDR, and {says}"));
    }
}

#[test]
fn down_disabled_and_unanswered_links() {
    let down = |snapshot: &mut Snapshot, port: PortIndex, physical_state| {
        let status = *snapshot.status(port).unwrap();
        snapshot.statuses[port.0 as usize] =
            PortRead::Ok(PortStatus { state: state::DOWN, physical_state, ..status });
    };
    let gone = sentence(Reason::Down, |snapshot, assessment, leaf, host| {
        down(snapshot, leaf, physical::POLLING);
        down(snapshot, host, physical::POLLING);
        assessment.links[0].outages.last_change =
            Some(snapshot.ended.before(Duration::from_secs(30)));
    });
    assert_eq!(gone, "no link for 30 s: leaf port 1 is Down; host-a port 1 is Down");
    let off = sentence(Reason::Disabled, |snapshot, _, leaf, _| {
        down(snapshot, leaf, physical::DISABLED);
    });
    assert_eq!(off, "leaf port 1 is switched off");
    let silent = sentence(Reason::Unresponsive, |snapshot, _, _, host| {
        let node = snapshot.fabric.port(host).node;
        snapshot.silent[node.0 as usize] = true;
    });
    assert_eq!(silent, "host-a does not answer");
}

#[test]
fn corrupted_packets_here_and_upstream() {
    let here = sentence(Reason::ReceiveErrors, |snapshot, _, leaf, _| {
        count(snapshot, leaf, Counter::RcvErrors, 10);
        count(snapshot, leaf, Counter::RcvRemotePhysicalErrors, 4);
    });
    assert_eq!(here, "6 packets came broken into leaf port 1");
    // 100 buffer overruns and one packet that came broken.
    for (local, full, says) in [
        (1, false, "1 packets came broken into leaf port 1"),
        (0, false, "packets come in broken"),
        (65_535, true, "100 packets came broken into leaf port 1"),
    ] {
        let text = sentence(Reason::ReceiveErrors, |snapshot, assessment, leaf, _| {
            count(snapshot, leaf, Counter::RcvErrors, 100);
            count(snapshot, leaf, Counter::RcvLocalPhysicalErrors, local);
            let found = &mut assessment.ports[leaf.0 as usize];
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
        "marked packets come from the link into leaf port 2 (4 into host-a port 1)"
    );
}

#[test]
fn congestion_roots_and_victims() {
    let wait = Some(Wait { share: 0.25, tick_told: true });
    let root = sentence(Reason::Congested, |_, assessment, leaf, _| {
        let leaf = &mut assessment.ports[leaf.0 as usize];
        (leaf.wait, leaf.role) = (wait, Some(Role::Root));
    });
    assert_eq!(root, "leaf port 1 waits 25 % of the time for its receiver");
    let victim = sentence(Reason::Victim, |snapshot, assessment, _, host| {
        let of = port(snapshot, 1, 2);
        let host = &mut assessment.ports[host.0 as usize];
        (host.wait, host.role) = (wait, Some(Role::Victim { of }));
    });
    assert_eq!(victim, "host-a port 1 waits 25 % of the time because leaf port 2 does");
}

#[test]
fn inactive_discards_are_not_congestion_drops() {
    use Counter::{XmitDiscards, XmitHoqLimitDiscards, XmitInactiveDiscards};
    let wait = Some(Wait { share: 0.25, tick_told: true });
    let waits = "leaf port 1 waits 25 % of the time";
    for (counts, full, dropped) in [
        (&[(XmitDiscards, 70_000)][..], false, ", dropped 70000 packets so far"),
        (&[(XmitDiscards, 900), (XmitInactiveDiscards, 900)], false, ""),
        // Read a moment before the rest.
        (&[(XmitDiscards, 900), (XmitInactiveDiscards, 950)], false, ""),
        (
            &[(XmitDiscards, 912), (XmitInactiveDiscards, 900), (XmitHoqLimitDiscards, 12)],
            false,
            ", dropped 12 packets so far (12 at the head of their queue)",
        ),
        // Full: the rest may be the same.
        (&[(XmitDiscards, 90_000), (XmitInactiveDiscards, 65_535)], true, ""),
        (
            &[(XmitDiscards, 90_000), (XmitInactiveDiscards, 65_535), (XmitHoqLimitDiscards, 5)],
            true,
            ", dropped 5 packets so far (5 at the head of their queue)",
        ),
    ] {
        let root = sentence(Reason::Congested, |snapshot, assessment, leaf, _| {
            for &(counter, value) in counts {
                count(snapshot, leaf, counter, value);
            }
            let leaf = &mut assessment.ports[leaf.0 as usize];
            (leaf.wait, leaf.role) = (wait, Some(Role::Root));
            if full {
                leaf.counters = saturated(XmitInactiveDiscards, true);
            }
        });
        assert_eq!(root, format!("{waits}{dropped} for its receiver"), "{counts:?}");
    }
}

#[test]
fn unknown_reasons_say_why() {
    let full = sentence(Reason::CounterSaturated, |_, assessment, _, host| {
        assessment.ports[host.0 as usize].counters = saturated(Counter::SymbolErrors, true);
    });
    assert_eq!(full, "symbol_errors is full at host-a port 1");
    let stale = |reason| {
        sentence(reason, |snapshot, assessment, leaf, _| {
            let found = &mut assessment.ports[leaf.0 as usize];
            found.counters = saturated(Counter::FecCorrectedSymbols, true);
            let at = snapshot.ended.before(Duration::from_secs(600));
            found.bit_errors.pre_fec =
                Some(PreFecBer { ratio: 2e-5, limit: 1e-5, at, stale: true });
        })
    };
    assert_eq!(
        stale(Reason::CounterSaturated),
        "fec_corrected_symbols is full at leaf port 1 (2.0e-5 of the bits were corrected 10m ago, limit 1e-5)"
    );
    assert_eq!(
        stale(Reason::PreFec),
        "2.0e-5 of the bits into leaf port 1 are corrected, limit 1e-5, measured 10m ago; the counter has been full since then"
    );
    let unmeasured = sentence(Reason::CounterSaturated, |_, assessment, leaf, _| {
        let found = &mut assessment.ports[leaf.0 as usize];
        found.counters = saturated(Counter::FecCorrectedSymbols, true);
    });
    assert_eq!(
        unmeasured,
        "fec_corrected_symbols is full at leaf port 1 (no ratio of corrected bits is known)"
    );
    let impossible = sentence(Reason::ImpossibleValue, |_, assessment, _, host| {
        assessment.ports[host.0 as usize].counters.impossible.insert(Counter::RcvErrors);
    });
    assert_eq!(impossible, "receive_errors at host-a port 1 shows an impossible value");
    let short = sentence(Reason::InsufficientData, |_, assessment, leaf, host| {
        for (port, seconds) in [(leaf, 75.0), (host, 90.0)] {
            let errors = &mut assessment.ports[port.0 as usize].bit_errors;
            (errors.limit, errors.bits_per_second) = (1e-14, 1e11);
            errors.windows[BerWindow::Long as usize].seconds = seconds;
        }
    });
    assert_eq!(short, "watched for 75 s; to tell takes 41m 40s");
    let idle = sentence(Reason::InsufficientData, |_, _, _, _| {});
    assert_eq!(idle, "it was not watched for long enough yet");
}

#[test]
fn every_reason_has_a_sentence_without_numbers() {
    for &reason in Reason::ALL {
        let text = sentence(reason, |_, _, _, _| {});
        assert!(!text.is_empty() && !text.ends_with('.'), "{reason:?}: {text}");
    }
}
