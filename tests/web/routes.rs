//! Routes of data packets: the API, the commands and the pages on a simulated fabric, against its tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::Duration;

use ib_mad::{Lid, NodeKind};
use ib_sim::net::PortId;
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use serde_json::Value;
use test_rig::{Exporter, program, wait_until};

const STORY: &str = "
fabric: {fat-tree: {radix: 6, hosts: 8, down: 2, up: 2}}
traffic: {pattern: none}
timeline:
  - bad-cable: {at: 10s, into: 'leaf-0-1[3]', ratio: 1e-6}
";

fn demo(flags: &[&str]) -> (Exporter, tempfile::NamedTempFile) {
    let scenario = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(scenario.path(), STORY).unwrap();
    let story = format!("--scenario={}", scenario.path().display());
    let mut exporter =
        Exporter::demo(&[&[&*story, "--clock=30", "--fabric.interval=15s"], flags].concat());
    exporter.wait_ready();
    (exporter, scenario)
}

fn json(exporter: &Exporter, path: &str) -> Value {
    let answer = exporter.get(path, &[]);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    serde_json::from_str(answer.text()).unwrap()
}

fn run(exporter: &Exporter, args: &[&str]) -> Output {
    let url = format!("--url=http://{}", exporter.address());
    Command::new(program()).args(args).arg(url).output().unwrap()
}

fn stdout(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The ports that packets to a LID leave by, from a host on, by the tables of the same fabric.
fn truth(simulation: &Simulation, from: PortId, lid: Lid) -> Vec<String> {
    let net = simulation.net();
    let mut ports = vec![net.label(from)];
    let mut at = net.port(simulation.port(from).cable.unwrap()).node;
    loop {
        let number = simulation.egress(at, lid).unwrap();
        let egress = net.port_by_number(at, number).unwrap();
        ports.push(net.label(egress));
        let far = simulation.port(egress).cable.unwrap();
        if net.node_of(far).kind != NodeKind::Switch {
            return ports;
        }
        at = net.port(far).node;
    }
}

fn egress(route: &Value) -> Vec<String> {
    let hops = route["hops"].as_array().unwrap().iter();
    let sends = hops.filter(|hop| !hop["port"].is_null());
    sends.map(|hop| format!("{}[{}]", hop["node"].as_str().unwrap(), hop["port"])).collect()
}

#[test]
fn api_commands_and_pages_know_the_routes_of_the_tables() {
    let (mut exporter, _scenario) = demo(&[]);
    let scenario = Scenario::parse("test", STORY).unwrap();
    let simulation = Simulation::new(scenario.resolve(&Overrides::default()).unwrap());
    let net = simulation.net();
    let has_cable = |port: &PortId| simulation.port(*port).cable.is_some();
    let ports = net.port_ids().filter(|port| net.node_of(*port).kind == NodeKind::Ca);
    let hosts: Vec<PortId> = ports.filter(has_cable).collect();
    let name = |port: PortId| net.node_of(port).id.clone();
    for &from in &hosts {
        for &to in hosts.iter().filter(|to| **to != from) {
            let path = format!("/api/v1/route?from={}&to={}", name(from), name(to));
            let found = json(&exporter, &path);
            let route = &found["routes"][0];
            let lid = Lid(u16::try_from(route["lid"].as_u64().unwrap()).unwrap());
            assert_eq!(egress(route), truth(&simulation, from, lid), "{path}");
            assert_eq!(found["may_differ"], false);
        }
    }
    // The bad cable is on the routes that cross it, for those who ask and by itself.
    wait_until(Duration::from_secs(60), "the hosts of the bad cable", || {
        exporter.metrics().all("infiniband_link_hosts_crossing").next().map(|_| ())
    });
    let metrics = exporter.metrics();
    let (labels, count) = metrics.all("infiniband_link_hosts_crossing").next().unwrap();
    let link = labels["link"].clone();
    let asked = json(&exporter, &format!("/api/v1/links/{link}/hosts"));
    let hosts = asked["hosts"].as_array().unwrap().len();
    assert_eq!(hosts.to_string(), count.to_string());
    assert_eq!((&asked["incomplete"], &asked["may_differ"]), (&false.into(), &false.into()));
    let crossing: BTreeSet<String> =
        asked["hosts"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().into()).collect();

    let listed: Value = serde_json::from_str(&stdout(&run(
        &exporter,
        &["nodes", "--crosses", "leaf-0-1/3", "--json"],
    )))
    .unwrap();
    let nodes = listed["fabrics"][0]["nodes"].as_array().unwrap().iter();
    let nodes: BTreeSet<String> = nodes.map(|it| it["node"].as_str().unwrap().into()).collect();
    assert_eq!(nodes, crossing);

    let host = crossing.first().unwrap();
    let crossed = json(&exporter, &format!("/api/v1/crossed?host={host}"));
    let links = crossed["links"].as_array().unwrap();
    assert_eq!(
        (&links[0]["link"], &links[0]["verdict"]),
        (&link.clone().into(), &"bad".into()),
        "worst first"
    );
    let listed: Value =
        serde_json::from_str(&stdout(&run(&exporter, &["links", "--crossed-by", host, "--json"])))
            .unwrap();
    let ids = |links: &Value| -> BTreeSet<String> {
        links.as_array().unwrap().iter().map(|it| it["link"].as_str().unwrap().into()).collect()
    };
    assert_eq!(ids(&listed["fabrics"][0]["links"]), ids(&crossed["links"]));

    let table = stdout(&run(&exporter, &["route", "host-0", "host-7"]));
    assert_eq!(table.lines().count(), 1 + 4, "four cables:\n{table}");
    let model: Value =
        serde_json::from_str(&stdout(&run(&exporter, &["route", "host-0", "host-7", "--json"])))
            .unwrap();
    assert_eq!(egress(&model["routes"][0]).len(), 4);

    let page = |path: &str| {
        let answer = exporter.get(path, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(
            answer.header("refresh"),
            None,
            "a page that asks is not loaded again by itself"
        );
        answer.text().to_owned()
    };
    assert!(page("/route").contains("<form"), "without nodes it asks for them");
    assert!(page("/route?from=host-0&to=host-7").contains("host-7"));
    assert!(page(&format!("/crossed?host={host}")).contains(">bad<"));
    assert!(page(&format!("/link/{link}/hosts")).contains(host.as_str()));
    let of_link = exporter.get(&format!("/link/{link}"), &[]).text().to_owned();
    let all = hostlist::fold(crossing.iter().map(String::as_str));
    assert!(of_link.contains(&format!("cross this link: {all}.")), "{of_link}");
    assert!(exporter.stop().success());
}

#[test]
fn mistakes_and_a_budget_of_nothing_say_what_to_do() {
    let (mut exporter, _scenario) = demo(&["--fabric.forwarding-smps-per-minute=0"]);
    for (path, status, says) in [
        ("/api/v1/route?from=host-0&to=host-7", 503, "set it to 1 or more"),
        ("/api/v1/crossed?host=host-0", 503, "set it to 1 or more"),
        ("/api/v1/route?from=host-0", 400, "to"),
        ("/api/v1/route?from=host-0&to=host-1&x=1", 400, "x"),
        ("/api/v1/route?from=host-0&to=host-7&fabric=g", 400, "unknown fabric"),
        ("/api/v1/links/x/hosts", 404, "not a link ID"),
        ("/route?from=host-0&to=host-7", 503, "set it to 1 or more"),
    ] {
        let answer = exporter.get(path, &[]);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(says), "{path}: {}", answer.text());
    }
    let output = run(&exporter, &["route", "host-0", "host-7"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("set it to 1 or more"), "{output:?}");
    assert!(exporter.stop().success());

    let (mut exporter, _scenario) = demo(&[]);
    let output = run(&exporter, &["route", "host-0", "host-99"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("\"host-99\""), "{output:?}");
    assert!(exporter.stop().success());
}
