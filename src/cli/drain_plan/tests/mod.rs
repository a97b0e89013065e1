//! What an operator is told in known situations.

mod fabric;

use clap::Parser;
use fabric_api::model::{Finding, LinkReason};
use ib_mad::Guid;

use super::net::FabricNet;
use super::{drained_hosts, ensure_known, output, select, share};
use crate::cli::node_match::NodeMatch;
use crate::cli::table::Style;
use crate::cli::{Cli, Verb};
use fabric::{Fabric, answer, planes, told};

const FOUR_SPINES: &str = "h1-L1 h2-L1 h3-L2 h4-L2 \
                           L1-S1 L1-S2 L1-S3 L1-S4 L2-S1 L2-S2 L2-S3 L2-S4";
const ONE_UPLINK: &str = "h1-L1 h2-L2 h3-L2 h4-L3 L1-S1 L2-S1 L3-S1";
const PARALLEL: &str = "h1-L1 h2-L2 L1-S1 L1-S1 L1-S1 L1-S1 L2-S1 L2-S1 L2-S1 L2-S1";
const RAILS: &str = "h1.1-A1 h2.1-A1 h3.1-A2 h4.1-A3 A1-AS A2-AS A3-AS \
                     h1.2-B1 h2.2-B1 h3.2-B2 h4.2-B3 B1-BS B2-BS B3-BS";
const RAILS_OF_TWO: &str =
    "h1.1-A1 h2.1-A1 h3.1-A2 A1-AS A2-AS h1.2-B1 h2.2-B1 h3.2-B2 B1-BS B2-BS";

/// What it is about, the fabric, repairs, drained hosts, the share that leaves must keep, and what is told.
const SITUATIONS: &[(&str, &str, &str, &str, f64, &str)] = &[
    ("a cable to a spine", FOUR_SPINES, "L1-S1", "", 0.75, "L1-S1, L1 75%"),
    ("a spine", FOUR_SPINES, "S1", "", 0.75, "S1, L1 75%"),
    (
        "two uplinks of a leaf",
        FOUR_SPINES,
        "L1-S1 L1-S2",
        "",
        0.75,
        "L1-S1, L1 75% | L1-S2, L1 75%",
    ),
    ("the same with less capacity", FOUR_SPINES, "L1-S1 L1-S2", "", 0.5, "L1-S1 L1-S2, L1 50%"),
    (
        "cables of two leaves to one spine",
        FOUR_SPINES,
        "L1-S1 L2-S1",
        "",
        0.75,
        "L1-S1 L2-S1, L1 75%",
    ),
    (
        "more capacity than a spine leaves",
        FOUR_SPINES,
        "S1",
        "",
        0.9,
        "; unsafe S1: L1 keeps 75% (1200 of 1600 Gb/s): drain h[1-2], or accept less capacity with --min-capacity \
             75%",
    ),
    (
        "the only uplink of a leaf with one host",
        ONE_UPLINK,
        "L1-S1",
        "",
        0.75,
        "; unsafe L1-S1: cuts h1 off from all hosts; L1 reaches no other leaf meanwhile: drain h1",
    ),
    ("the same with the host drained", ONE_UPLINK, "L1-S1", "h1", 0.75, "L1-S1"),
    (
        "the cable of a host",
        FOUR_SPINES,
        "h3-L2",
        "",
        0.75,
        "; unsafe h3-L2: cuts h3 off from all hosts: drain h3",
    ),
    ("the cable of a drained host", FOUR_SPINES, "h3-L2", "h3", 0.75, "h3-L2"),
    ("the same with its domain", FOUR_SPINES, "h3-L2", "H3.cluster", 0.75, "h3-L2"),
    ("a host", FOUR_SPINES, "h3", "", 0.75, "; unsafe h3: cuts h3 off from all hosts: drain h3"),
    (
        "a leaf",
        FOUR_SPINES,
        "L1",
        "",
        0.75,
        "; unsafe L1: cuts 2 hosts off from others: h[1-2]; L2 reaches no other leaf meanwhile: drain h[1-2]",
    ),
    ("the cable of a host with two rails", RAILS, "h1.1-A1", "", 0.75, "h1.1-A1, rail h1"),
    ("a leaf of one of two rails", RAILS, "A1", "", 0.75, "A1, rail h[1-2]"),
    (
        "both HCAs of a host",
        RAILS,
        "h1",
        "",
        0.75,
        "; unsafe h1: cuts h1 off from all hosts: drain h1",
    ),
    ("one of them", RAILS, "h1.2", "", 0.75, "h1.2, rail h1"),
    (
        "a leaf of a rail with two leaves",
        RAILS_OF_TWO,
        "A1",
        "",
        0.75,
        "; unsafe A1: A2 reaches no other leaf meanwhile: drain h3, or accept less capacity with --min-capacity 0%",
    ),
    ("the same, accepted", RAILS_OF_TWO, "A1", "", 0.0, "A1, A2 0%, rail h[1-3]"),
    ("one of four parallel cables", PARALLEL, "L1-S1#2", "", 0.75, "L1-S1, L1 75%"),
    (
        "four parallel cables, two at a time",
        PARALLEL,
        "L1-S1 L1-S1#2 L1-S1#3 L1-S1#4",
        "",
        0.5,
        "L1-S1 L1-S1, L1 50% | L1-S1 L1-S1, L1 50%",
    ),
    (
        "the only cable of a leaf that is not down",
        "h1-L1 h2-L2 L1-S1 L1xS1 L2-S1",
        "L1-S1#1",
        "",
        0.75,
        "; unsafe L1-S1: cuts 2 hosts off from others: h[1-2]; L1 reaches no other leaf meanwhile: drain h[1-2]",
    ),
    (
        "a router must keep its path, and its leaf its capacity",
        "h1-L1 h2-L1 r1-L2 L1-L2",
        "r1-L2",
        "",
        0.75,
        "; unsafe r1-L2: cuts r1 off from all hosts: drain r1",
    ),
    (
        "an uplink of unknown state may be the only other one",
        "h1-L1 h2-L2 h3-L2 L1-S1 L1?S1 L2-S1 L2-S1",
        "L1-S1",
        "",
        0.5,
        "L1-S1, L1 50%, if the links of unknown state are down: cuts h1 off from all hosts; L1 reaches no other \
             leaf meanwhile",
    ),
    (
        "the repair of a link of unknown state may take something",
        "h1?L1 h2-L1 h3-L1",
        "h1-L1",
        "",
        0.5,
        "; unsafe h1-L1: cuts h1 off from all hosts: drain h1",
    ),
];

#[test]
fn operators_are_told_what_is_safe_and_what_to_do() {
    for &(about, fabric, repairs, drained, min_capacity, says) in SITUATIONS {
        let fabric = Fabric::parse(fabric);
        assert_eq!(told(&fabric.report(repairs, drained, min_capacity)), says, "{about}");
    }
}

#[test]
fn links_that_are_down_fit_into_the_first_window() {
    let mut fabric = Fabric::parse(FOUR_SPINES);
    fabric.add("L1xS1!");
    let net = fabric.net();
    let bad = select::with_verdicts(&net, &[ib_health::Verdict::Bad]);
    assert_eq!(bad.len(), 1);
    let report = answer(&mut fabric.net(), &bad, "", 0.75);
    let [window] = &report.windows[..] else { panic!("{report:#?}") };
    assert!(window.repairs[0].what.down && window.left.worst_leaf.is_none());
    assert_eq!(
        output::summary(&report),
        "1 window (smallest) for 1 repair, in which each leaf keeps 75% or more"
    );
}

#[test]
fn without_arguments_bad_links_are_repaired_and_degraded_ones_if_wanted() {
    use ib_health::Verdict::{Bad, Watch};
    let fabric = Fabric::parse("h1-L1! h2-L1~ h3-L1");
    let net = fabric.net();
    let names = |verdicts: &[_]| {
        let targets = select::with_verdicts(&net, verdicts);
        targets.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[Bad]), ["h1 port 1 – L1 port 1"]);
    assert_eq!(names(&[Bad, Watch]), ["h1 port 1 – L1 port 1", "h2 port 1 – L1 port 2"]);
}

#[test]
fn patterns_name_devices_and_nothing_is_named_twice() {
    let fabric = Fabric::parse(RAILS);
    let net = fabric.net();
    let of = |pattern: &str| {
        let found = select::of_pattern(&net, &NodeMatch::Pattern(pattern.into()));
        found.map(|it| it.into_iter().map(|it| it.name).collect::<Vec<_>>())
    };
    assert_eq!(of("a*").unwrap(), ["A1", "A2", "A3", "AS"]);
    assert_eq!(of("h1*").unwrap(), ["h1"], "both HCAs of the host");
    assert_eq!(of("h1.1*").unwrap(), ["h1.1"]);
    assert_eq!(of("x*"), Err("no node matches"));
    let unlinked = select::of_places(&net, "A1/40", &[(Guid(2), Some(40))]);
    assert_eq!(unlinked, Err("the port has no link"));
}

#[test]
fn cable_of_several_planes_is_one_repair_and_so_is_a_switch() {
    let fabric = planes();
    let net = fabric.net();
    let targets = fabric.targets(&net, "L1p1-S1p1 S2p3 S2p1");
    let sizes: Vec<_> = targets.iter().map(|it| (it.wires.len(), it.nodes.len())).collect();
    assert_eq!(sizes, [(4, 0), (0, 4), (0, 4)]);
    let report = fabric.report("L1p1-S1p1", "", 0.5);
    assert_eq!(told(&report), "L1p1-S1p1, L1p1 50%");
    assert_eq!(report.windows[0].left.reduced_leaves, 8, "each plane of both leaves");
    // The spine is powered off as a whole.
    let report = fabric.report("S1p2", "", 0.5);
    assert_eq!(told(&report), "S1p2, L1p1 50%");
    assert_eq!(report.windows[0].left.reduced_leaves, 8);
    // All planes of a host's cable.
    let report = fabric.report("h1-L1p1", "", 0.5);
    assert!(told(&report).starts_with("; unsafe h1-L1p1: cuts 2 hosts off"), "{}", told(&report));
}

#[test]
fn one_plane_that_is_down_is_less_capacity() {
    let mut fabric = planes();
    // The other uplink of the leaf has lost its first plane.
    let other = fabric.links.iter_mut().find(|link| link.ends[1].node == "S2p1").unwrap();
    other.planes[0].up = Some(false);
    let report = fabric.report("L1p1-S1p1", "", 0.5);
    let says = told(&report);
    assert!(says.starts_with("; unsafe L1p1-S1p1: L1p1 reaches no other leaf meanwhile"), "{says}");
}

#[test]
fn what_is_no_cable_or_no_host_is_left_out() {
    let mut fabric = Fabric::parse("h1-L1 h2-L2 a1-S1 L1-S1 L2-S1 L1-L2");
    let reason = LinkReason { reason: "internal".into(), ..LinkReason::default() };
    fabric.links.last_mut().unwrap().reasons = vec![reason];
    let net = fabric.net();
    assert_eq!((net.wires.len(), net.hosts.len()), (4, 2));
    let place = |name: &str, port| [(fabric.node(name).guid.parse().unwrap(), port)];
    let refused = |place: &[_]| select::of_places(&net, "x", place).unwrap_err();
    assert_eq!(refused(&place("L1", Some(3))), "the link is inside a switch: it has no cable");
    assert!(refused(&place("a1", None)).contains("name the switch"));
    // S1 is no leaf, although its aggregation node looks like a host; so L1 has no other way to L2.
    let says = told(&fabric.report("S1", "", 0.0));
    assert_eq!(says, "; unsafe S1: cuts 2 hosts off from others: h[1-2]: drain h[1-2]");
}

#[test]
fn nvlink_fabrics_are_left_out_and_said() {
    let fabric = Fabric::parse(ONE_UPLINK);
    let mut nvlink = Fabric::parse("h8-N1");
    let reason = LinkReason { reason: "nvlink".into(), ..LinkReason::default() };
    nvlink.links[0].reasons = vec![reason];
    let ((mut links, mut nodes), (more_links, more_nodes)) =
        (fabric.models("f"), nvlink.models("nv"));
    links.fabrics.extend(more_links.fabrics);
    nodes.fabrics.extend(more_nodes.fabrics);
    let net = FabricNet::new(&links, &nodes);
    assert_eq!(net.fabrics, ["f"]);
    assert!(net.notes[0].starts_with("nv is an NVLink fabric"), "{:?}", net.notes);
}

#[test]
fn net_that_two_fabrics_have_is_there_once() {
    let fabric = Fabric::parse(ONE_UPLINK);
    let (mut links, mut nodes) = fabric.models("f");
    let (mut twin_links, twin_nodes) = fabric.models("g");
    // The other one knows more.
    links.fabrics[0].links[0].up = None;
    twin_links.fabrics[0].links[1].up = None;
    links.fabrics.extend(twin_links.fabrics);
    nodes.fabrics.extend(twin_nodes.fabrics);
    let mut net = FabricNet::new(&links, &nodes);
    assert_eq!((net.cables.len(), net.wires.len(), net.hosts.len()), (7, 7, 4));
    assert!(net.wires.iter().all(|wire| wire.up == Some(true)));
    let targets = fabric.targets(&net, "L1-S1");
    let report = answer(&mut net, &targets, "", 0.75);
    assert_eq!(report.unsafe_repairs.len(), 1, "its twin does not replace it");
}

#[test]
fn hosts_that_share_a_name_are_no_single_host() {
    let mut fabric = Fabric::parse("h1.1-A1 h1.2-B1 h2.1-A1 h2.2-B1");
    assert_eq!(told(&fabric.report("h1.1-A1", "", 0.75)), "h1.1-A1, rail h[1-2]");
    fabric.node_mut("h1.1").description = "localhost HCA-1".into();
    fabric.node_mut("h1.2").description = "localhost HCA-1".into();
    let report = fabric.report("h1.1-A1", "", 0.75);
    assert!(told(&report).starts_with("; unsafe h1.1-A1: cuts h1.1 off"), "{}", told(&report));
    assert!(report.notes[0].starts_with("2 HCAs of h1 have the same name"), "{:?}", report.notes);
}

#[test]
fn hosts_that_the_site_has_drained_may_be_cut_off_but_not_those_of_a_switch_in_maintenance() {
    let mut fabric = Fabric::parse(RAILS);
    fabric.node_mut("A1").drained = true;
    assert!(told(&fabric.report("h1", "", 0.75)).starts_with("; unsafe h1"));
    fabric.node_mut("h1.1").drained = true;
    assert!(told(&fabric.report("h1", "", 0.75)).starts_with("; unsafe h1"), "one HCA of two");
    fabric.node_mut("h1.2").drained = true;
    let report = fabric.report("h1", "h2", 0.75);
    assert_eq!((told(&report).as_str(), report.drained.as_str()), ("h1", "h[1-2]"));
}

#[test]
fn drained_hosts_that_are_not_found_are_said() {
    let mut net = Fabric::parse(ONE_UPLINK).net();
    let names = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(drained_hosts(&mut net, &names(&["h1", "cpu7", "cpu8"])).unwrap().len(), 1);
    assert_eq!(net.notes, ["--drained: not found in the fabric: cpu[7-8]"]);
    let error = drained_hosts(&mut net, &names(&["cpu7"])).unwrap_err();
    assert_eq!(error.message, "--drained: cpu7: not found in the fabric");
}

#[test]
fn what_is_not_known_is_never_called_safe() {
    let fabric = Fabric::parse(FOUR_SPINES);
    let (mut links, nodes) = fabric.models("f");
    let finding = |kind: &'static str| Finding {
        kind: kind.into(),
        text: "2 requests had no response".into(),
        ..Finding::default()
    };
    links.fabrics[0].condition.findings = vec![finding("discovery_gaps")];
    assert!(ensure_known(&links).is_ok());
    let mut net = FabricNet::new(&links, &nodes);
    let targets = fabric.targets(&net, "L1-S1");
    let report = answer(&mut net, &targets, "", 0.75);
    assert!(!report.certain);
    let says = "1 window (smallest) for 1 repair, in which each leaf keeps 75% or more; not certain, because not all \
                is known";
    assert_eq!(output::summary(&report), says);
    let fault = output::fault(&report).unwrap();
    assert!(fault.starts_with("not certain: f: 2 requests had no response"), "{fault}");
    // Nothing is known: no answer.
    links.fabrics[0].condition.findings = vec![finding("stale")];
    let error = ensure_known(&links).unwrap_err();
    assert!(error.message.contains("the state of fabric f is not known"), "{}", error.message);
    // A link without a rate counts as most others do.
    let (mut links, nodes) = fabric.models("f");
    links.fabrics[0].links[4].rate = None;
    let net = FabricNet::new(&links, &nodes);
    assert_eq!(
        net.notes,
        ["the rate of 1 link is not known: taken to be 400 Gb/s, as of most others"]
    );
}

#[test]
fn tables_have_a_row_for_each_repair() {
    let fabric = Fabric::parse(FOUR_SPINES);
    let report = fabric.report("L1-S1 L1-S2 h3-L2 h4", "h4", 0.75);
    let mut out = Vec::new();
    output::write(&report, &mut out, Style::default()).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        "\
Window 1: 2 repairs; each leaf keeps at least 75% (worst: L1, 1200 of 1600 Gb/s)
REPAIR                 VERDICT  KEEPS  WORST LEAF  MEANWHILE
L1 port 3 – S1 port 1  ok       75%    L1
host h4                         100%

Window 2: 1 repair; each leaf keeps at least 75% (worst: L1, 1200 of 1600 Gb/s)
REPAIR                 VERDICT  KEEPS  WORST LEAF  MEANWHILE
L1 port 4 – S2 port 1  ok       75%    L1

Not safe, even alone:
REPAIR                 VERDICT  KEEPS  WHY, AND WHAT TO DO
h3 port 1 – L2 port 1  ok       100%   cuts h3 off from all hosts: drain h3
"
    );
    assert_eq!(
        output::summary(&report),
        "2 windows (smallest) for 3 repairs, in which each leaf keeps 75% or more; 1 repair is not safe"
    );
    let fault = output::fault(&report).unwrap();
    assert_eq!(fault, "1 repair not safe: h3 port 1 – L2 port 1: cuts h3 off from all hosts");
}

#[test]
fn share_is_a_number_or_a_percentage() {
    for (text, value) in [("0.9", 0.9), ("90%", 0.9), ("1", 1.0), ("0", 0.0), (" 75 % ", 0.75)] {
        let share = share(text).unwrap().get();
        assert!((share - value).abs() < 1e-12, "{text}");
    }
    for text in ["75", "-1", "101%", "", "%", "NaN", "a"] {
        assert!(share(text).is_err(), "{text}");
    }
    let cli = Cli::try_parse_from(["fabric-exporter", "drain-plan", "leaf-1"]).unwrap();
    let Verb::DrainPlan(args) = cli.verb else { panic!("another verb") };
    assert!((args.min_capacity.get() - 0.75).abs() < f64::EPSILON);
}
