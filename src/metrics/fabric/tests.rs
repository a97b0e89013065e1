//! The samples of assessments made by hand.

use std::time::Duration;

use super::*;
use crate::metrics::family_order::position;
use crate::metrics::rendered::tests::text_of;
use fabric_observation::SharedState;
use ib_fabric::Snapshot;
use ib_fabric::snapshot::SubnetManager;
use ib_fabric::testing::{PlaneNet, end};
use ib_health::bit_errors::BerWindow;
use ib_health::congestion::{HeldWait, Level, Region, Role, RootCause, Wait};
use ib_health::outage::{Downtime, Outages};
use ib_health::testing::{PlaneSweeps, fine, over, port, saturated, snapshot};
use ib_health::verdict::{Reason, Repair};
use ib_health::{Assessment, Verdict};
use ib_mad::smp::SmState;
use ib_mad::{Counter, Moment};

fn after(seconds: u64) -> Moment {
    Moment::default() + Duration::from_secs(seconds)
}

/// The samples of a small fabric whose assessment is changed.
fn samples(change: impl FnOnce(&Snapshot, &mut Assessment)) -> Vec<String> {
    let snapshot = snapshot();
    let mut assessment = fine(&snapshot);
    change(&snapshot, &mut assessment);
    let observation = Observation {
        fabric: "f".into(),
        snapshot: Some(snapshot.into()),
        assessment,
        ..Observation::default()
    };
    let board: SharedState = vec![Arc::new(observation)].into();
    text_of(board).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

const LINK: &str = r#"fabric="f",link="0x0000000000000001:1-0x0000000000000002:1""#;
const LEAF: &str = r#"fabric="f",guid="0x0000000000000001",port="1""#;

fn has(lines: &[String], line: &str) {
    let name = line.split('{').next().unwrap_or_default();
    let alike: Vec<_> = lines.iter().filter(|line| line.starts_with(name)).collect();
    assert!(lines.iter().any(|have| have == line), "{line}\nis not in {alike:#?}");
}

fn has_none(lines: &[String], beginning: &str) {
    let found: Vec<_> = lines.iter().filter(|line| line.starts_with(beginning)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn verdict_is_the_greatest_of_its_reasons() {
    let verdicts = |verdict, reasons: &[(Reason, Verdict)]| -> Vec<String> {
        let lines = samples(|_, assessment| {
            let link = &mut assessment.links[0];
            link.verdict = verdict;
            for &(reason, weight) in reasons {
                link.reasons.add(reason, weight);
            }
        });
        let head = format!("infiniband_link_verdict{{{LINK},reason=\"");
        let of_link = lines.iter().filter_map(|line| line.strip_prefix(&head));
        of_link.map(|rest| rest.replace("\"}", "")).collect()
    };
    let (errors, width) = (Reason::BitErrors, Reason::Width);
    for (verdict, reasons, expected) in [
        (Verdict::Ok, &[][..], &["none 0"][..]),
        (Verdict::Bad, &[], &["recent 3"]),
        (
            Verdict::Bad,
            &[(errors, Verdict::Bad), (width, Verdict::Watch)],
            &["bit_errors 3", "width 2"],
        ),
        (Verdict::Bad, &[(width, Verdict::Watch)], &["width 2", "recent 3"]),
        (
            Verdict::Unknown,
            &[(Reason::InsufficientData, Verdict::Unknown)],
            &["insufficient_data 1"],
        ),
        (Verdict::Watch, &[(errors, Verdict::Bad)], &["bit_errors 2"]),
    ] {
        assert_eq!(verdicts(verdict, reasons), expected, "{verdict:?} {reasons:?}");
    }
}

#[test]
fn outages_of_a_link() {
    let lines = samples(|_, assessment| {
        let link = &mut assessment.links[0];
        link.up = None;
        link.repair = Some(Repair::SwapCable);
        link.outages = Outages {
            flaps: 4,
            expected: [1, 2],
            down: Downtime {
                least: Duration::from_millis(12_500),
                most: Duration::from_millis(57_500),
            },
            expected_down: Downtime {
                least: Duration::from_secs(90),
                most: Duration::from_secs(120),
            },
            lengths: [1, 0, 1, 0, 0, 0, 0, 1],
            lengths_sum: Duration::from_secs(35),
            recoveries: 5,
            last_change: Some(after(900)),
        };
    });
    for (name, labels, value) in [
        ("verdict_timestamp_seconds", "", "100.000"),
        ("repair", ",repair=\"swap_cable\"", "1"),
        ("flaps_total", "", "4"),
        ("expected_outages_total", ",cause=\"reboot\"", "1"),
        ("expected_outages_total", ",cause=\"maintenance\"", "2"),
        ("down_seconds_total", "", "12.500"),
        ("down_max_seconds_total", "", "57.500"),
        ("expected_down_seconds_total", "", "90.000"),
        ("recoveries_total", "", "5"),
        ("last_change_timestamp_seconds", "", "900.000"),
        ("outage_seconds_bucket", ",le=\"1.0\"", "1"),
        ("outage_seconds_bucket", ",le=\"7.0\"", "2"),
        ("outage_seconds_bucket", ",le=\"300.0\"", "2"),
        ("outage_seconds_bucket", ",le=\"+Inf\"", "3"),
        ("outage_seconds_sum", "", "35.000"),
        ("outage_seconds_count", "", "3"),
    ] {
        has(&lines, &format!("infiniband_link_{name}{{{LINK}{labels}}} {value}"));
    }
    has_none(&lines, &format!("infiniband_link_up{{{LINK}"));
    has(&lines, &format!("infiniband_link_supported_rate_bytes_per_second{{{LINK}}} 12500000000"));
    // The other link is up, and nothing ever happened to it.
    let other = r#"fabric="f",link="0x0000000000000001:2-0x0000000000000003:1""#;
    has(&lines, &format!("infiniband_link_up{{{other}}} 1"));
    for absent in [
        "repair",
        "last_change_timestamp_seconds",
        "outage_seconds_count",
        "expected_outages_total",
        "expected_down_seconds_total",
    ] {
        has_none(&lines, &format!("infiniband_link_{absent}{{{other}"));
    }
}

#[test]
fn direction_is_labeled_by_its_receiving_port() {
    let lines = samples(|snapshot, assessment| {
        assessment.ports[port(snapshot, 1, 1)].bit_errors = over(4);
    });
    has(&lines, &format!("infiniband_link_bit_error_ratio_limit{{{LINK}}} 1e-12"));
    let ratio = over(4).ratio(BerWindow::Short);
    let of_family =
        lines.iter().filter(|line| line.starts_with("infiniband_link_bit_error_ratio{"));
    let ratios: Vec<f64> =
        of_family.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(ratios, ratio.into_iter().collect::<Vec<f64>>());
    has_none(&lines, "infiniband_link_bit_error_ratio{fabric=\"f\",link=\"0x0000000000000001:2");
}

#[test]
fn counting_of_ports() {
    let lines = samples(|snapshot, assessment| {
        let leaf = &mut assessment.ports[port(snapshot, 1, 1)].counters;
        *leaf = saturated(Counter::SymbolErrors, true);
        (leaf.resets, leaf.last_reset) = (2, Some(after(500)));
        leaf.impossible_readings = 3;
        assessment.ports[port(snapshot, 2, 1)].counters = saturated(Counter::LinkDowned, false);
    });
    let host = r#"fabric="f",guid="0x0000000000000002",port="1""#;
    for (name, labels, value) in [
        ("saturated_counters", format!("{LEAF},counter=\"symbol_errors\""), "1"),
        ("saturated_counters", format!("{host},counter=\"link_downed\""), "0"),
        ("counters_reset_total", LEAF.into(), "2"),
        ("counters_reset_timestamp_seconds", LEAF.into(), "500.000"),
    ] {
        has(&lines, &format!("infiniband_port_{name}{{{labels}}} {value}"));
    }
    has(&lines, &format!("infiniband_port_impossible_readings_total{{{LEAF}}} 3"));
    has_none(&lines, &format!("infiniband_port_impossible_readings_total{{{host}"));
    let saturated = |line: &&String| line.starts_with("infiniband_port_saturated_counters");
    assert_eq!(lines.iter().filter(saturated).count(), 2);
    has_none(&lines, &format!("infiniband_port_counters_reset_total{{{host}"));
    has_none(&lines, &format!("infiniband_port_counters_reset_timestamp_seconds{{{host}"));
}

#[test]
fn congestion_of_ports_and_regions() {
    let lines = samples(|snapshot, assessment| {
        let (root, victim) = (port(snapshot, 1, 1), port(snapshot, 3, 1));
        let root_findings = &mut assessment.ports[root];
        root_findings.role = Some(Role::Root(RootCause::Unknown));
        root_findings.wait = Some(Wait { share: 0.25, tick_reported: false });
        assessment.ports[victim].role = Some(Role::Victim { of: root });
        assessment.regions = vec![Region {
            root,
            ports: 2,
            roots: 1,
            share: 0.25,
            level: Level::Medium,
            since: after(300),
        }];
    });
    let root = r#"root_guid="0x0000000000000001",root_port="1""#;
    let victim = r#"fabric="f",guid="0x0000000000000003",port="1""#;
    for line in [
        format!("infiniband_port_transmit_wait_ratio{{{LEAF},tick=\"assumed\"}} 0.25"),
        format!("infiniband_port_congestion{{{LEAF},role=\"root\",{root}}} 1"),
        format!("infiniband_port_congestion{{{victim},role=\"victim\",{root}}} 1"),
        format!("infiniband_congestion_region_ports{{fabric=\"f\",{root},level=\"medium\"}} 2"),
        format!("infiniband_congestion_region_wait_ratio{{fabric=\"f\",{root}}} 0.25"),
        format!(
            "infiniband_congestion_region_start_timestamp_seconds{{fabric=\"f\",{root}}} 300.000"
        ),
    ] {
        has(&lines, &line);
    }
}

#[test]
fn saturated_wait_has_its_last_known_ratio() {
    let lines = samples(|snapshot, assessment| {
        let leaf = &mut assessment.ports[port(snapshot, 1, 1)];
        leaf.counters = saturated(Counter::XmitWait, true);
        leaf.held_wait = Some(HeldWait { share: 0.5, at: after(900) });
        leaf.role = Some(Role::Root(RootCause::SlowReceiver));
    });
    has_none(&lines, "infiniband_port_transmit_wait_ratio");
    for line in [
        format!("infiniband_port_transmit_wait_held_ratio{{{LEAF}}} 0.5"),
        format!("infiniband_port_transmit_wait_held_timestamp_seconds{{{LEAF}}} 900.000"),
        format!("infiniband_port_saturated_counters{{{LEAF},counter=\"transmit_wait_ticks\"}} 1"),
    ] {
        has(&lines, &line);
    }
}

#[test]
fn non_finite_ratio_has_no_sample() {
    let lines = samples(|snapshot, assessment| {
        let leaf = &mut assessment.ports[port(snapshot, 1, 1)];
        leaf.wait = Some(Wait { share: f32::NAN, tick_reported: true });
        leaf.bit_errors.limit = f32::INFINITY;
    });
    has_none(&lines, "infiniband_port_transmit_wait_ratio");
    has_none(&lines, "infiniband_link_bit_error_ratio_limit");
}

#[test]
fn fabric_without_an_assessment_has_no_findings() {
    let observation = Observation { snapshot: Some(snapshot().into()), ..Observation::default() };
    let slice = render(&[Arc::new(observation)], 1, &[]).0.remove(0);
    let is_finding = |family: &Family| findings_families().any(|(it, _)| it.name == family.name);
    let parts = slice.parts(position);
    assert!(!parts.is_empty() && !parts.iter().any(|part| is_finding(&part.family)));
}

#[test]
fn families_are_rendered_once_and_in_order() {
    let snapshot = snapshot();
    let assessment = fine(&snapshot);
    let observation =
        Observation { snapshot: Some(snapshot.into()), assessment, ..Observation::default() };
    let slice = render(&[Arc::new(observation)], 1, &[]).0.remove(0);
    let parts = slice.parts(position);
    assert!(
        parts.len() > 5 && parts.is_sorted_by(|a, b| position(&a.family) < position(&b.family))
    );
}

/// The samples when these subnet managers responded: GUID, port, state and priority.
fn manager_samples(answered: Option<&[(u64, u8, SmState, u8)]>) -> Vec<String> {
    let mut snapshot = crate::metrics::rendered::tests::snapshot();
    let manager = |&(guid, port, state, priority): &(u64, u8, SmState, u8)| {
        let port = snapshot.fabric.find(end(guid, port)).unwrap();
        SubnetManager { port, state, priority, act_count: u32::MAX }
    };
    snapshot.managers = answered.map(|answered| answered.iter().map(manager).collect());
    let snapshot = Some(snapshot.into());
    let observation = Observation { fabric: "f".into(), snapshot, ..Observation::default() };
    let text = text_of(vec![Arc::new(observation)].into());
    let ours = text.lines().filter(|line| line.starts_with("infiniband_subnet_manager"));
    ours.map(|line| line.trim_start_matches("infiniband_subnet_manager").to_owned()).collect()
}

#[test]
fn each_manager_and_the_number_in_each_state() {
    let answered = [(1, 0, SmState::Master, 14), (2, 1, SmState::Standby, 0)];
    let (one, two) = (
        r#"{fabric="f",guid="0x0000000000000001",port="0"}"#,
        r#"{fabric="f",guid="0x0000000000000002",port="1"}"#,
    );
    let expected = [
        "s{fabric=\"f\",state=\"master\"} 1".to_owned(),
        "s{fabric=\"f\",state=\"standby\"} 1".to_owned(),
        "s{fabric=\"f\",state=\"discovering\"} 0".to_owned(),
        "s{fabric=\"f\",state=\"not_active\"} 0".to_owned(),
        format!("_state{one} 3"),
        format!("_state{two} 2"),
        format!("_priority{one} 14"),
        format!("_priority{two} 0"),
        format!("_activity_total{one} 4294967295"),
        format!("_activity_total{two} 4294967295"),
        "_changes_total{fabric=\"f\"} 0".to_owned(),
    ];
    assert_eq!(manager_samples(Some(&answered)), expected);
}

#[test]
fn no_manager_is_zero_and_unknown_is_absent() {
    let none = manager_samples(Some(&[]));
    assert_eq!(none.len(), 4 + 1);
    assert!(none[..4].iter().all(|line| line.ends_with("} 0")), "{none:?}");
    assert_eq!(manager_samples(None), ["_changes_total{fabric=\"f\"} 0"]);
}

#[test]
fn planes_of_a_link_are_one_link_and_ports_of_their_own() {
    let mut planes = PlaneSweeps::sound(PlaneNet::of_four_nodes());
    planes.errors = vec![(end(0xa3, 1), 1000)];
    let (snapshot, assessment) = planes.sweeps(30);
    let snapshot = Some(Arc::new(snapshot));
    let observation =
        Observation { fabric: "f".into(), snapshot, assessment, ..Observation::default() };
    let board: SharedState = vec![Arc::new(observation)].into();
    let text = text_of(board);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let link = r#"fabric="f",link="0x00000000000000a1:1-0x00000000000000b1:1""#;
    has(&lines, &format!("infiniband_link_verdict{{{link},reason=\"bit_errors\"}} 3"));
    let count = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!(count("infiniband_link_info{"), 5 + 8, "cables, and links of the rings");
    assert_eq!(count("infiniband_link_up{"), 5 + 8);
    let ratios = lines.iter().filter(|line| {
        line.starts_with(&format!("infiniband_link_bit_error_ratio{{{link}"))
            && line.contains("window=\"12m\"")
    });
    assert_eq!(ratios.count(), 1, "of the plane that has errors");
    let info = lines.iter().find(|line| line.starts_with(&format!("infiniband_link_info{{{link}")));
    assert!(info.unwrap().contains(r#"speed="XDR",width="4x""#), "{info:?}");
    let rate = 4 * 25_000_000_000_u64;
    has(&lines, &format!("infiniband_link_supported_rate_bytes_per_second{{{link}}} {rate}"));
    let port = r#"infiniband_port_info{fabric="f",guid="0x00000000000000a3",port="1","#;
    let port = lines.iter().find(|line| line.starts_with(port)).unwrap();
    for label in [
        r#"system_guid="0x00000000000000a0",aggregated_port="1",plane="3""#,
        r#"link="0x00000000000000a1:1-0x00000000000000b1:1""#,
        r#"width="1x""#,
    ] {
        assert!(port.contains(label), "{label}: {port}");
    }
    has(
        &lines,
        "infiniband_port_symbol_errors_total{fabric=\"f\",guid=\"0x00000000000000a3\",port=\"1\"} 30000",
    );
    has(
        &lines,
        "infiniband_port_symbol_errors_total{fabric=\"f\",guid=\"0x00000000000000a1\",port=\"1\"} 0",
    );
    let ring = lines
        .iter()
        .find(|line| line.starts_with("infiniband_port_info") && line.contains("port=\"7\""));
    assert!(!ring.unwrap().contains("aggregated_port"));
}

#[test]
fn ports_without_planes_have_no_labels_of_planes() {
    let lines = samples(|_, _| ());
    assert!(
        lines.iter().all(|line| !line.contains("aggregated_port") && !line.contains("system_guid"))
    );
}
