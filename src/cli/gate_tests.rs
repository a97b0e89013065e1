//! The table of `docs/configuration.md` that explains `--verdict`, `--suspect`, `--down` and `--fail-on`: each row is a
//! case, and each case has a row.

use clap::Parser;

use super::gate::{self, FailOn, Gate};
use super::links::LinksArgs;
use super::node_match::NodeMatch;
use super::nodes::NodesArgs;
use super::{Cli, Verb};
use fabric_api::model::{
    Condition, End, FabricLinks, FabricNodes, Finding, Learning, Link, LinkReason, Links, Node,
    NodeName, Nodes, SuggestedRepair, Verdicts,
};
use ib_health::Verdict;

const LEVELS: [FailOn; 3] = [FailOn::Bad, FailOn::Watch, FailOn::Unknown];

/// What is selected.
enum Case {
    Link(Box<Link>),
    Node(Box<Node>),
    Blind,
    Pattern,
}

fn link(verdict: &'static str) -> Link {
    let evidence = "evidence".to_owned();
    let reason = LinkReason { reason: "width".into(), verdict: verdict.into(), evidence };
    let repair = SuggestedRepair { repair: "reseat".into(), description: "Reseat it.".into() };
    let end = |node: &str| End { node: node.into(), port: 1, ..End::default() };
    Link {
        verdict: verdict.into(),
        reasons: vec![reason],
        repair: (verdict == "bad").then_some(repair),
        ends: [end("leaf"), end("host")],
        ..Link::default()
    }
}

fn node(up: bool) -> Node {
    let mut verdicts = Verdicts::default();
    verdicts.add(if up { Verdict::Ok } else { Verdict::Unknown });
    let (node, down_since) = ("host".into(), Some("2026-11-28T05:10:00Z".into()));
    Node { node, up, verdicts, down_since, node_type: "ca".into(), ..Node::default() }
}

fn cases() -> Vec<(&'static str, Case)> {
    let learns = Link { learning: Some(Learning::default()), ..link("unknown") };
    let mut counted = link("unknown");
    counted.ends[0].counters.insert("symbol_errors".into(), 1);
    let leaf = NodeName { node: "leaf".into(), ..NodeName::default() };
    let behind = Node { behind: Some(leaf), ..node(false) };
    vec![
        ("a link that is ok", Case::Link(link("ok").into())),
        ("a link that is learning", Case::Link(learns.into())),
        ("a link that is unknown", Case::Link(link("unknown").into())),
        ("a link that is unknown, with errors", Case::Link(counted.into())),
        ("a link that is degraded", Case::Link(link("watch").into())),
        ("a link that is bad", Case::Link(link("bad").into())),
        ("a node that is up", Case::Node(node(true).into())),
        ("a node that is down", Case::Node(node(false).into())),
        ("a node behind one that is down", Case::Node(behind.into())),
        ("a fabric of which nothing is known now", Case::Blind),
        ("a pattern that no node matches", Case::Pattern),
    ]
}

fn links_args(options: &[&str]) -> LinksArgs {
    match Cli::try_parse_from([&["fabric-exporter", "links"], options].concat()).unwrap().verb {
        Verb::Links(args) => args,
        _ => panic!("another verb"),
    }
}

fn nodes_args(options: &[&str]) -> NodesArgs {
    match Cli::try_parse_from([&["fabric-exporter", "nodes"], options].concat()).unwrap().verb {
        Verb::Nodes(args) => args,
        _ => panic!("another verb"),
    }
}

fn of_link(link: &Link) -> Links {
    let links = vec![link.clone()];
    let (fabric, condition) = ("f".into(), seen());
    Links { fabrics: vec![FabricLinks { fabric, condition, links, ..FabricLinks::default() }] }
}

fn of_node(node: &Node) -> Nodes {
    let nodes = vec![node.clone()];
    let (fabric, condition) = ("f".into(), seen());
    Nodes { fabrics: vec![FabricNodes { fabric, condition, nodes, ..FabricNodes::default() }] }
}

fn seen() -> Condition {
    Condition { verdict: "bad".into(), ..Condition::default() }
}

/// That of an exporter from before conditions has no verdict.
#[test]
fn exporter_that_does_not_say_what_it_sees_fails_a_gate() {
    let mut gate = Gate::default();
    assert!(!gate.sees("f", &Condition::default()));
    let (code, line) = end(&gate, FailOn::Bad);
    assert_eq!(code, 1);
    assert!(line.contains("fabric f: the exporter is too old to say"), "{line}");
}

fn blind() -> Condition {
    let (kind, text) = ("no_view".into(), "no view of the fabric".into());
    let finding = Finding { kind, text, verdict: "unknown".into(), ..Finding::default() };
    Condition { findings: vec![finding], ..Condition::default() }
}

/// The exit code, and the line on standard error.
fn end(gate: &Gate, level: FailOn) -> (u8, String) {
    gate.check(level)
        .map_or_else(|fatal| (fatal.exit as u8, fatal.message), |()| (0, String::new()))
}

fn code(gate: &Gate, level: FailOn) -> String {
    end(gate, level).0.to_string()
}

fn word(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// The value of `--verdict` that lists it alone.
fn verdict(is_listed: impl Fn(&str) -> bool) -> String {
    let labels = Verdict::ALL.map(Verdict::label).into_iter();
    let listed: Vec<_> = labels.filter(|it| is_listed(&format!("--verdict={it}"))).collect();
    format!("`{}`", listed.join(","))
}

/// The cells of a case, as the program behaves.
fn cells(case: &Case) -> Vec<String> {
    let mut cells = vec![String::new(); 3];
    let codes: Vec<String> = match case {
        Case::Link(link) => {
            cells[0] = verdict(|option| {
                let found = links_args(&[option]).select(of_link(link), &[]);
                !found.model.fabrics[0].links.is_empty()
            });
            cells[1] = word(link.is_suspect());
            let found = links_args(&[]).select(of_link(link), &[]);
            LEVELS.map(|level| code(&found.gate, level)).to_vec()
        }
        Case::Node(node) => {
            let is_listed = |option: &str| {
                let found = nodes_args(&[option]).select(of_node(node), &[]);
                !found.model.fabrics[0].nodes.is_empty()
            };
            cells[0] = verdict(is_listed);
            cells[2] = word(is_listed("--down"));
            let found = nodes_args(&[]).select(of_node(node), &[]);
            LEVELS.map(|level| code(&found.gate, level)).to_vec()
        }
        Case::Blind => {
            let mut found = of_link(&link("bad"));
            found.fabrics[0].condition = blind();
            let found = links_args(&[]).select(found, &[]);
            LEVELS.map(|level| code(&found.gate, level)).to_vec()
        }
        Case::Pattern => {
            let pattern = [NodeMatch::Pattern("no*".into())];
            let fatal = gate::check_patterns(&pattern, |_| false).unwrap_err();
            vec![(fatal.exit as u8).to_string(); LEVELS.len()]
        }
    };
    cells.extend(codes);
    cells
}

#[test]
fn gates_and_selections_do_what_their_table_says() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md"))
            .unwrap();
    let table = page.split("<!-- gates -->\n").nth(1).unwrap().split("<!-- /gates -->").next();
    let rows: Vec<Vec<String>> = table
        .unwrap()
        .lines()
        .skip(2)
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    let wanted: Vec<Vec<String>> = cases()
        .into_iter()
        .map(|(name, case)| [vec![name.to_owned()], cells(&case)].concat())
        .collect();
    assert_eq!(rows, wanted);
}

#[test]
fn line_of_a_gate_says_why_and_what_to_do() {
    let select = |found: Nodes, options: &[&str]| nodes_args(options).select(found, &[]).gate;
    let message = |gate: &Gate| end(gate, FailOn::Bad).1;
    let host = message(&select(of_node(&node(false)), &[]));
    assert!(host.starts_with("--fail-on bad: 1 node down: host since 2026-11-2"), "{host}");
    assert!(host.ends_with(". Try first: Check whether the host is up."), "{host}");
    let leaf = Node { node: "leaf".into(), node_type: "switch".into(), ..node(false) };
    let leaf = Node { nodes_behind: 1, ..leaf };
    let by = NodeName { node: "leaf".into(), ..NodeName::default() };
    let behind = Node { behind: Some(by), ..node(false) };
    let alone = message(&select(of_node(&behind), &[]));
    assert!(alone.ends_with(", behind leaf. Try first: Repair leaf."), "{alone}");
    let mut both = of_node(&behind);
    both.fabrics[0].nodes.push(leaf);
    let both = message(&select(both, &[]));
    assert!(
        both.contains("2 nodes down: leaf since ") && both.contains(", 1 node behind it."),
        "{both}"
    );
    let bad = links_args(&[]).select(of_link(&link("bad")), &[]).gate;
    let line = "--fail-on bad: 1 bad: leaf port 1 – host port 1: evidence. Try first: Reseat it.";
    assert_eq!(message(&bad), line);
    let mut unseen = Gate::default();
    assert!(!unseen.sees("f", &blind()));
    let line = "--fail-on bad: the state is not known: fabric f: no view of the fabric";
    assert_eq!(end(&unseen, FailOn::Bad), (1, line.to_owned()));
}

#[test]
fn named_node_counts_even_if_it_is_not_listed() {
    let named = [NodeMatch::Pattern("host".into())];
    for (options, names, wanted) in [
        (&["--verdict=ok"][..], &named[..], 7),
        (&["--verdict=ok"], &[], 0),
        (&["--verdict=unknown"], &[], 7),
        (&["--down"], &[], 7),
        (&[], &[NodeMatch::Pattern("other".into())], 0),
    ] {
        let gate = nodes_args(options).select(of_node(&node(false)), names).gate;
        assert_eq!(end(&gate, FailOn::Bad).0, wanted, "{options:?}");
    }
}

/// One plane of a host may be judged although another one is not seen.
#[test]
fn what_is_found_in_one_fabric_counts_although_another_is_not_seen() {
    let mut found = of_node(&node(false));
    let dark = FabricNodes { fabric: "g".into(), condition: blind(), ..FabricNodes::default() };
    found.fabrics.push(FabricNodes { nodes: vec![node(false)], ..dark });
    let gate = nodes_args(&[]).select(found.clone(), &[]).gate;
    let (code, line) = end(&gate, FailOn::Bad);
    assert!(code == 7 && line.contains("1 node down"), "{line}");
    found.fabrics[0].nodes[0].up = true;
    let gate = nodes_args(&[]).select(found, &[]).gate;
    assert_eq!(end(&gate, FailOn::Bad).0, 1);
}
