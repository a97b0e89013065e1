//! Sentences from findings made by hand, and a small fabric for whoever else tells of findings.

use std::sync::Arc;
use std::time::SystemTime;

use super::*;
use crate::bit_errors::{Measured, Window};
use crate::congestion::Wait;
use crate::findings::Counting;
use crate::outage::{Downtime, Outages};
use crate::testing::*;
use crate::{Reason, Verdict};
use ib_fabric::Fabric;
use ib_fabric::assembly::DiscoveredFabric;
use ib_fabric::names::NodeNameMap;
use ib_fabric::snapshot::PortRead;
use ib_fabric::testing::{end, found};
use ib_fabric::topology::Link;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;
use ib_mad::{Moment, Reading};

/// What is said for a reason of the link between `leaf` and `host-a`, once it is so.
fn told(
    reason: Reason,
    so: impl FnOnce(&mut Snapshot, &mut Findings, PortIndex, PortIndex),
) -> String {
    let mut snapshot = snapshot();
    let mut findings = fine(&snapshot);
    let (leaf, host) = (port(&snapshot, 1, 1), port(&snapshot, 2, 1));
    so(&mut snapshot, &mut findings, leaf, host);
    of(reason, &findings.links[0], &findings, &snapshot)
}

#[test]
fn bit_errors_are_told_of_the_direction_that_has_them() {
    let told = told(Reason::BitErrors, |_, findings, leaf, _| {
        findings.ports[leaf.0 as usize].bit_errors = over(432);
    });
    let ratio = over(432).ratio(Window::Short).map(|ratio| format!("bit error ratio {ratio:.1e}"));
    for part in
        ["432 errors in 720 s", "into leaf port 1", "limit 1e-12", &ratio.unwrap_or_default()]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("host-a"), "{told}");
}

#[test]
fn losses_are_told_with_how_often_and_how_long() {
    for (flaps, down, says) in [
        (3, (44, 44), "went down 3 times, for 44 s in all"),
        (3, (15, 45), "went down 3 times, for 15 to 45 s in all"),
        (5, (0, 75), "went down 5 times, for at most 75 s in all"),
        (1, (0, 0), "went down once"),
        (2, (90, 3_720), "went down twice, for 90 s to 1h 2m in all"),
    ] {
        let told = told(Reason::Flapping, |_, findings, _, _| {
            let outages = &mut findings.links[0].outages;
            let (least, most) = (Duration::from_secs(down.0), Duration::from_secs(down.1));
            (outages.flaps, outages.down) = (flaps, Downtime { least, most });
        });
        assert_eq!(told, says);
    }
    let told = told(Reason::NodeFlapping, |snapshot, _, leaf, _| {
        count(snapshot, leaf, Counter::LinkDowned, 4);
    });
    assert_eq!(told, "leaf port 1 counted 4 losses; host-a port 1 counted 0 losses");
}

#[test]
fn a_link_below_what_it_can_do() {
    let at_1x = |snapshot: &mut Snapshot, port: PortIndex| {
        let mut status = *snapshot.status(port).unwrap();
        status.width = Width::widest(1);
        snapshot.statuses[port.0 as usize] = PortRead::Ok(status);
    };
    let run = (Width::X4, Speed::Edr);
    for (reason, reference, says) in [
        (Reason::Width, Reference::Past(run), "it ran at 4x EDR before"),
        (Reason::Width, Reference::Peers(run), "links between such devices run at 4x EDR"),
        (Reason::BelowCapability, Reference::Capability(run), "both ends can do 4x EDR"),
    ] {
        let told = told(reason, |snapshot, findings, leaf, host| {
            at_1x(snapshot, leaf);
            at_1x(snapshot, host);
            findings.links[0].reference = Some(reference);
        });
        assert_eq!(told, format!("runs at 1x EDR, and {says}"));
    }
}

#[test]
fn a_link_that_is_down_or_off() {
    let down = |snapshot: &mut Snapshot, port: PortIndex, physical_state| {
        let status = *snapshot.status(port).unwrap();
        snapshot.statuses[port.0 as usize] =
            PortRead::Ok(PortStatus { state: state::DOWN, physical_state, ..status });
    };
    let gone = told(Reason::Down, |snapshot, findings, leaf, host| {
        down(snapshot, leaf, physical::POLLING);
        down(snapshot, host, physical::POLLING);
        findings.links[0].outages.last_change =
            Some(snapshot.ended.before(Duration::from_secs(30)));
    });
    assert_eq!(gone, "no link for 30 s: leaf port 1 is Down; host-a port 1 is Down");
    let off = told(Reason::Disabled, |snapshot, _, leaf, _| {
        down(snapshot, leaf, physical::DISABLED);
    });
    assert_eq!(off, "leaf port 1 is switched off");
    let silent = told(Reason::Unanswered, |snapshot, _, _, host| {
        let node = snapshot.fabric.port(host).node;
        snapshot.silent[node.0 as usize] = true;
    });
    assert_eq!(silent, "host-a does not answer");
}

#[test]
fn packets_that_are_broken_here_and_elsewhere() {
    let here = told(Reason::ReceiveErrors, |snapshot, _, leaf, _| {
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
        let told = told(Reason::ReceiveErrors, |snapshot, findings, leaf, _| {
            count(snapshot, leaf, Counter::RcvErrors, 100);
            count(snapshot, leaf, Counter::RcvLocalPhysicalErrors, local);
            let found = &mut findings.ports[leaf.0 as usize];
            found.counting = saturated(Counter::RcvLocalPhysicalErrors, full);
        });
        assert_eq!(told, says, "{local}");
    }
    let elsewhere = told(Reason::Marked, |snapshot, findings, _, host| {
        count(snapshot, host, Counter::RcvRemotePhysicalErrors, 4);
        findings.links[0].upstream = Some(port(snapshot, 1, 2));
    });
    assert_eq!(
        elsewhere,
        "marked packets come from the link into leaf port 2 (4 into host-a port 1)"
    );
}

#[test]
fn who_waits_for_whom() {
    let wait = Some(Wait { share: 0.25, tick_told: true });
    let root = told(Reason::Congested, |_, findings, leaf, _| {
        let leaf = &mut findings.ports[leaf.0 as usize];
        (leaf.wait, leaf.role) = (wait, Some(Role::Root));
    });
    assert_eq!(root, "leaf port 1 waits 25 % of the time for its receiver");
    let victim = told(Reason::Victim, |snapshot, findings, _, host| {
        let of = port(snapshot, 1, 2);
        let host = &mut findings.ports[host.0 as usize];
        (host.wait, host.role) = (wait, Some(Role::Victim { of }));
    });
    assert_eq!(victim, "host-a port 1 waits 25 % of the time because leaf port 2 does");
}

#[test]
fn discards_of_a_port_without_a_link_are_no_packets_that_waited_too_long() {
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
        let root = told(Reason::Congested, |snapshot, findings, leaf, _| {
            for &(counter, value) in counts {
                count(snapshot, leaf, counter, value);
            }
            let leaf = &mut findings.ports[leaf.0 as usize];
            (leaf.wait, leaf.role) = (wait, Some(Role::Root));
            if full {
                leaf.counting = saturated(XmitInactiveDiscards, true);
            }
        });
        assert_eq!(root, format!("{waits}{dropped} for its receiver"), "{counts:?}");
    }
}

#[test]
fn what_is_not_known_and_why() {
    let full = told(Reason::CounterSaturated, |_, findings, _, host| {
        findings.ports[host.0 as usize].counting = saturated(Counter::SymbolErrors, true);
    });
    assert_eq!(full, "symbol_errors is full at host-a port 1");
    let stale = |reason| {
        told(reason, |snapshot, findings, leaf, _| {
            let found = &mut findings.ports[leaf.0 as usize];
            found.counting = saturated(Counter::FecCorrectedSymbols, true);
            let at = snapshot.ended.before(Duration::from_secs(600));
            found.bit_errors.mended = Some(Mended { ratio: 2e-5, limit: 1e-5, at, stale: true });
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
    let unmeasured = told(Reason::CounterSaturated, |_, findings, leaf, _| {
        let found = &mut findings.ports[leaf.0 as usize];
        found.counting = saturated(Counter::FecCorrectedSymbols, true);
    });
    assert_eq!(
        unmeasured,
        "fec_corrected_symbols is full at leaf port 1 (no ratio of corrected bits is known)"
    );
    let impossible = told(Reason::ImpossibleValue, |_, findings, _, host| {
        findings.ports[host.0 as usize].counting.impossible = 1 << Counter::RcvErrors as usize;
    });
    assert_eq!(impossible, "receive_errors at host-a port 1 shows an impossible value");
    let short = told(Reason::TooShort, |_, findings, leaf, host| {
        for (port, seconds) in [(leaf, 75.0), (host, 90.0)] {
            let errors = &mut findings.ports[port.0 as usize].bit_errors;
            (errors.limit, errors.bits_a_second) = (1e-14, 1e11);
            errors.windows[Window::Long as usize].seconds = seconds;
        }
    });
    assert_eq!(short, "watched for 75 s; to tell takes 41m 40s");
    let idle = told(Reason::TooShort, |_, _, _, _| {});
    assert_eq!(idle, "it was not watched for long enough yet");
}

#[test]
fn every_reason_has_a_sentence_even_without_numbers() {
    for &reason in Reason::ALL {
        let told = told(reason, |_, _, _, _| {});
        assert!(!told.is_empty() && !told.ends_with('.'), "{reason:?}: {told}");
    }
}
