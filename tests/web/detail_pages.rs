//! The pages of links, nodes, topology and events, and the API routes with the same content.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::path::Path;
use std::time::Duration;

use fabric_api::model::{Congestion, LinkDetail, Node, NodeDetail, Nodes, Topologies, Topology};
use fabric_api::topology::topology;
use rig::{Exporter, Simulated, wait_until};
use serde::de::DeserializeOwned;

const LIMIT: Duration = Duration::from_secs(120);

/// Faults among four leaves and two spines.
const STORY: &str = "
about: All that a page may have to tell
fabric:
  fat-tree: {levels: 2, hosts: 36, radix: 16, down: 9, up: 6}
timeline:
  - bad-cable: {at: 1s, into: 'leaf-0-1[10]', ratio: 2e-9}
  - flap: {at: 20s, link: 'leaf-0-2[3]', down: 12s, every: 60s, times: 5}
  - move-cable: {at: 90s, from: 'leaf-0-3[1]', to: 'leaf-0-3[2]'}
  - reboot: {at: 150s, node: spine-1, down: 1000h}
  - reboot: {at: 150s, node: host-20, down: 1000h}
";

fn json<T: DeserializeOwned>(exporter: &Exporter, path: &str) -> T {
    let response = exporter.get(path, &[]);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    assert_eq!(response.header("content-type"), Some("application/json"));
    serde_json::from_str(response.text()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The HTML of a page, after a check of its status and headers.
fn page(exporter: &Exporter, path: &str, status: u16) -> String {
    let response = exporter.get(path, &[]);
    let text = response.text().to_owned();
    assert_eq!(response.status, status, "{path}: {text}");
    assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
    assert!(response.header("content-security-policy").is_some(), "{path}");
    assert!(!text.contains(" style=") && !text.contains("<script"), "{path}: {text}");
    text
}

fn assert_contains(page: &str, what: &[&str]) {
    for what in what {
        assert!(page.contains(what), "{what}: {page}");
    }
}

/// A page once it has all of these texts. Events are recorded and read back with a delay.
fn wait_for_page(exporter: &Exporter, path: &str, status: u16, what: &[&str]) -> String {
    wait_until(LIMIT, &format!("{path} to say {what:?}"), || {
        let page = page(exporter, path, status);
        what.iter().all(|what| page.contains(what)).then_some(page)
    })
}

fn nodes(exporter: &Exporter) -> Vec<Node> {
    json::<Nodes>(exporter, "/api/v1/nodes").fabrics.remove(0).nodes
}

/// The node with this name, with its ports.
fn node(exporter: &Exporter, name: &str) -> NodeDetail {
    let nodes = nodes(exporter);
    let node = nodes.iter().find(|node| node.node == name).unwrap_or_else(|| panic!("no {name}"));
    json(exporter, &format!("/api/v1/nodes/{}", node.guid))
}

/// The id of the link at a port.
fn link_at(exporter: &Exporter, name: &str, port: u8) -> String {
    let node = node(exporter, name);
    let port = node.ports.into_iter().find(|it| it.name.port == port).unwrap();
    port.link.unwrap_or_else(|| panic!("{name} has no cable there"))
}

fn scenario(exporter_dir: &Path, text: &str) -> String {
    let path = exporter_dir.join("story.yml");
    std::fs::write(&path, text).unwrap();
    format!("--scenario={}", path.display())
}

#[test]
fn faults_are_on_the_pages_and_in_the_api() {
    let dir = tempfile::tempdir().unwrap();
    let story = scenario(dir.path(), STORY);
    let file = format!("--history.file={}", dir.path().join("history.db").display());
    let mut exporter = Exporter::demo_uncaptured(&[&story, &file, "--clock=30"]);
    exporter.wait_ready();

    // The first port of the leaf was connected to the first of its nine hosts.
    let (leaf, host) =
        (node(&exporter, "leaf-0-3").node.guid, node(&exporter, "host-27").node.guid);
    let moved_from = format!("{leaf}:1-{host}:1");
    let moved = wait_until(LIMIT, "the cable to be found moved", || {
        let now = link_at(&exporter, "leaf-0-3", 1);
        (now != moved_from).then_some(now)
    });
    let way = format!("/link/{moved}");
    let now = ["Link not found", "leaf-0-3 port 1", "is connected to", &way];
    // The history still has it.
    let then = ["cable moved", "<svg class=\"plot\""];
    wait_for_page(&exporter, &format!("/link/{moved_from}"), 404, &[&now[..], &then].concat());
    let refusal = exporter.get(&format!("/api/v1/links/{moved_from}"), &[]);
    assert_eq!((refusal.status, refusal.text().lines().count()), (404, 1), "{}", refusal.text());

    let bad = link_at(&exporter, "leaf-0-1", 10);
    wait_until(LIMIT, "the cable to be bad", || {
        let link: LinkDetail = json(&exporter, &format!("/api/v1/links/{bad}"));
        (link.link.verdict == "bad").then_some(())
    });
    let link: LinkDetail = json(&exporter, &format!("/api/v1/links/{bad}?fabric=default"));
    let near = &link.ports[0];
    assert_eq!(near.name.label(), "leaf-0-1 port 10");
    assert!(near.counters["symbol_errors"] > 0 && near.errors > Some(0), "{near:?}");
    assert_eq!((near.state.as_deref(), near.speed.as_deref()), (Some("Active"), Some("NDR")));
    assert_eq!(near.supported_rate, Some(50_000_000_000));
    let path = format!("/link/{bad}?window=1h");
    let heading = "leaf-0-1 port 10 – spine-0 port 4";
    wait_for_page(&exporter, &path, 200, &[heading, "bit errors", "bit error ratio", "Try first"]);
    let counted = ["SymbolErrorCounter", "Minor link errors", "<svg class=\"plot\"", "window=24h"];
    wait_for_page(&exporter, &path, 200, &counted);

    let flapping = link_at(&exporter, "leaf-0-2", 3);
    wait_until(LIMIT, "the link to have flapped", || {
        let link: LinkDetail = json(&exporter, &format!("/api/v1/links/{flapping}"));
        (link.link.flaps > 0).then_some(())
    });
    let path = format!("/link/{flapping}");
    wait_for_page(&exporter, &path, 200, &["flapping", "went down", "flap</td>"]);

    // The switch that is off: its page, its row on a neighbor's page, and the picture.
    let dead = node(&exporter, "spine-1").node.guid;
    wait_for_page(
        &exporter,
        &format!("/node/{dead}"),
        200,
        &["spine-1", "missing from the fabric", "Events", "node down"],
    );
    let [dead, up] = ["host-20", "host-21"].map(|name| {
        let guid = node(&exporter, name).node.guid;
        format!("/node/{guid}")
    });
    wait_for_page(&exporter, &dead, 200, &["missing from the fabric"]);
    let [dead, up] = [dead, up].map(|path| page(&exporter, &path, 200));
    let way = "/crossed?host=";
    assert!(up.contains(way) && !dead.contains(way), "what is down has no routes: {dead}");
    let leaf = node(&exporter, "leaf-0-1").node.guid;
    let rows = [
        "Quantum-2",
        "spine-0 port 4</a>",
        "<span class=\"verdict bad\">bad</span></a><span class=\"quiet\"> bit errors",
        "spine-1 port 4</a><span class=\"quiet\"> (link down)",
        "id=\"port-16\"",
        "not connected",
    ];
    wait_for_page(&exporter, &format!("/node/{leaf}"), 200, &rows);
    let picture = ["6 switches", "spine-1, down", "leaf-0-1 port 10 – spine-0 port 4"];
    wait_for_page(&exporter, "/topology", 200, &picture);
    let wiring: Topologies = json(&exporter, "/api/v1/topology");
    assert_eq!(wiring.fabrics[0].switches.len(), 6, "missing switches are kept");

    // `/port/…` redirects to the link, or else to the port on the page of its node.
    for (port, heading) in [(10, "leaf-0-1 port 10 – spine-0 port 4"), (16, "leaf-0-1")] {
        let html = page(&exporter, &format!("/port/{leaf}/{port}"), 200);
        assert_contains(&html, &[&format!("<h1>{heading}</h1>")]);
    }

    wait_for_page(&exporter, "/events", 200, &["link down", "node down", "spine-1", "cable moved"]);
    let html = page(&exporter, "/events?kind=node_down&q=SPINE-1&window=1h", 200);
    assert_contains(&html, &["node down</td>", "selected"]);
    assert!(!html.contains("link down</td>") && !html.contains("cable moved</td>"), "{html}");
    let html = page(&exporter, &format!("/events?q={flapping}"), 200);
    assert_contains(&html, &["leaf-0-2 port 3"]);
    assert!(!html.contains("leaf-0-3 port 1"), "{html}");
    assert_contains(&page(&exporter, "/events?page=400", 200), &["There is no page 400"]);
    assert!(exporter.stop().success());
}

/// Most hosts send to one that receives at a third of the rate: its leaf discards packets, and all cables are sound.
const INCAST: &str = "
about: One host takes in too little
fabric: {fat-tree: {hosts: 32, radix: 16}}
traffic: {pattern: none}
timeline:
  - burst: {at: 10s, from: 24, to: host-3, load: 20%}
  - slow-receiver: {at: 10s, host: host-3, takes: 30%}
";

#[test]
fn pages_agree_on_errors_discards_and_congestion() {
    let dir = tempfile::tempdir().unwrap();
    let story = scenario(dir.path(), INCAST);
    let mut exporter = Exporter::demo_uncaptured(&[&story, "--clock=30"]);
    exporter.wait_ready();
    let leaf = node(&exporter, "leaf-0-0").node.guid;
    let is_root = |part: &Option<Congestion>| part.as_ref().is_some_and(|part| part.role == "root");
    let root = wait_until(LIMIT, "a root that discards packets", || {
        let node: NodeDetail = json(&exporter, &format!("/api/v1/nodes/{leaf}"));
        let root = node.ports.into_iter().find(|port| is_root(&port.congestion))?;
        root.discards.is_some_and(|discards| discards > 0).then_some(root)
    });
    let (id, number) = (root.link.clone().unwrap(), root.name.port);
    // Counters grow: both responses have to be of the same sweep.
    let (node, link) = wait_until(LIMIT, "both answers from one sweep", || {
        let node: NodeDetail = json(&exporter, &format!("/api/v1/nodes/{leaf}"));
        let link: LinkDetail = json(&exporter, &format!("/api/v1/links/{id}"));
        (node.swept_at == link.swept_at).then_some((node, link))
    });
    let of_node = node.ports.iter().find(|port| port.name.port == number).unwrap();
    let of_link = link.ports.iter().find(|port| port.name == of_node.name).unwrap();
    assert_eq!((of_node.errors, of_node.discards), (of_link.errors, of_link.discards));
    let end = link.link.ends.iter().find(|end| end.guid == leaf).unwrap();
    assert_eq!(end.counters.get("transmit_discards").copied(), of_link.discards);

    let rows = ["Link errors</abbr>", "Discards</th>", "root: slow receiver"];
    assert_contains(&page(&exporter, &format!("/node/{leaf}"), 200), &rows);
    let ends = ["Link error counters, sum", "Discards", "transmit discards", "root: slow receiver"];
    assert_contains(&page(&exporter, &format!("/link/{id}"), 200), &ends);
    let wiring: Topologies = json(&exporter, "/api/v1/topology");
    let switch = wiring.fabrics[0].switches.iter().find(|switch| switch.guid == leaf).unwrap();
    assert_eq!(
        (switch.host_congestion.roots, switch.worst_verdict.as_deref() == Some("bad")),
        (1, false)
    );
    assert_contains(
        &page(&exporter, "/topology", 200),
        &["Congestion: 1 root", "path class=\"congested\""],
    );
}

#[test]
fn missing_objects_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let story = scenario(dir.path(), "fabric: {back-to-back: {}}");
    let names = dir.path().join("names");
    std::fs::write(&names, "0x0002c90300000000 \"<script>alert('1')</script> & co\"\n").unwrap();
    let names = format!("--fabric.node-name-map={}", names.display());
    let mut exporter = Exporter::demo(&[&story, &names, "--no-history"]);
    exporter.wait_ready();
    let host = &nodes(&exporter)[0];
    assert_eq!(host.node, "<script>alert('1')</script> & co");
    let guid = &host.guid;
    let link = link_at(&exporter, "host-1", 1);
    let nobody = "0x00000000000000aa";

    // Without a history the pages say how to record one.
    for path in [format!("/link/{link}"), format!("/node/{guid}"), "/events".into()] {
        assert_contains(&page(&exporter, &path, 200), &["--history.file"]);
    }
    let html = page(&exporter, "/topology", 200);
    assert_contains(
        &html,
        &["Links without a switch", "&lt;script&gt;alert", &format!("/link/{link}")],
    );
    assert_contains(
        &page(&exporter, &format!("/link/{link}"), 200),
        &["&lt;script&gt;alert", "HCA"],
    );

    for (path, help) in [
        ("/link/what".to_owned(), "0x00aa000000000001:5-0x00aa000000000002:1"),
        (format!("/link/{nobody}:1-{guid}:1"), "No node has the GUID"),
        (format!("/link/{guid}:1-{guid}:9"), "has no port 9"),
        (format!("/link/{link}?fabric=other"), "known: default"),
        ("/node/host-0".into(), "is not a GUID"),
        (format!("/node/{nobody}"), "No node has the GUID"),
        (format!("/node/{guid}?fabric=other"), "known: default"),
        (format!("/port/{guid}/9"), "has ports 1 to 1"),
        (format!("/port/{guid}/many"), "has ports 1 to 1"),
        ("/port/0xno/1".into(), "is not a GUID"),
        ("/topology?fabric=other".into(), "known: default"),
    ] {
        assert_contains(&page(&exporter, &path, 404), &[help]);
    }
    for (path, status, help) in [
        ("/api/v1/links/what".to_owned(), 404, "is not a link ID such as"),
        (format!("/api/v1/links/{nobody}:1-{guid}:1"), 404, "no link has the ID"),
        (format!("/api/v1/links/{link}?fabric=other"), 400, "known: default"),
        (format!("/api/v1/links/{link}?colour=red"), 400, "colour"),
        ("/api/v1/nodes/host-0".into(), 404, "is not a GUID such as"),
        (format!("/api/v1/nodes/{nobody}"), 404, "no node has the GUID"),
        ("/api/v1/nodes?fabric=other".into(), 400, "known: default"),
        ("/api/v1/nodes?kind=toaster".into(), 400, "must be one of: switch, ca"),
        ("/api/v1/topology?fabric=other".into(), 400, "known: default"),
    ] {
        let refusal = exporter.get(&path, &[]);
        assert_eq!(refusal.status, status, "{path}: {}", refusal.text());
        assert!(refusal.text().contains(help), "{path}: {}", refusal.text());
        assert_eq!(refusal.text().lines().count(), 1, "{path}: {}", refusal.text());
    }
    let none: Nodes = json(&exporter, "/api/v1/nodes?kind=switch&fabric=default");
    assert!(none.fabrics[0].nodes.is_empty());
    assert!(exporter.stop().success());
}

/// The topology of a scenario's fabric after some sweeps.
fn wired(fabric: &str) -> Topology {
    let simulated = Simulated::text(&format!("fabric: {{{fabric}}}\ntraffic: {{pattern: none}}"));
    simulated.run_to(Duration::from_secs(40));
    topology(&simulated.observation())
}

#[test]
fn topology_has_the_levels_and_groups_that_were_built() {
    for (fabric, of_levels, groups, cables) in [
        ("back-to-back: {}", &[][..], 0, 0),
        ("fat-tree: {levels: 2, hosts: 4, radix: 8, down: 4, up: 2}", &[1, 1], 2, 2),
        ("fat-tree: {levels: 2, hosts: 36, radix: 16, down: 9, up: 6}", &[4, 2], 2, 24),
        // Two pods of four leaves and four aggregation switches; four planes of one core each.
        ("fat-tree: {levels: 3, hosts: 32, radix: 8, down: 4, up: 4}", &[8, 8, 4], 8, 64),
        // The leaves and the spines of each group.
        ("dragonfly-plus: {groups: 3, leaves: 2, spines: 2}", &[6, 6], 6, 15),
    ] {
        let topology = wired(fabric);
        let mut counts = Vec::new();
        for level in 1..=3 {
            let of_level = topology.switches.iter().filter(|switch| switch.level == Some(level));
            counts.extend(Some(of_level.count()).filter(|count| *count > 0));
        }
        let mut known: Vec<_> =
            topology.switches.iter().map(|switch| (switch.level, switch.group)).collect();
        known.dedup();
        let between: usize = topology.bundles.iter().map(|it| it.verdicts.count()).sum();
        assert_eq!((&*counts, known.len(), between), (of_levels, groups, cables), "{fabric}");
        let hosts: usize = topology.switches.iter().map(|switch| switch.hosts).sum();
        assert_eq!(hosts == 0, !topology.switchless.is_empty(), "{fabric}");
    }
}
