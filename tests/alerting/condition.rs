//! The condition of a fabric and the alerts on its nodes agree: at each minute at which one of these alerts is pending or
//! firing for a node that is down, the headline is not green, a finding names the node or the one that cuts it off, and
//! once the alert fires, it is red.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, SystemTime};

use fabric_api::model::{Condition, Node};
use fabric_api::nodes::nodes;
use fabric_api::{Filter, condition};
use test_rig::simulated::BEGAN;
use test_rig::{Metrics, Simulated, require, rules};

/// A leaf that is off for long, a host that reboots, one that stays off, and a spine that does not respond.
const STORY: &str = "
timeline:
  - reboot: {at: 2m, node: leaf-0-2, down: 20m}
  - reboot: {at: 3m, node: host-3, down: 4m}
  - reboot: {at: 4m, node: host-4, down: 24m}
  - silent: {at: 25m, node: spine-1, for: 6m}
";
const MINUTES: u64 = 50;

/// The metrics that the rules on nodes read.
const READ: [&str; 4] = [
    "infiniband_node_up",
    "infiniband_node_info",
    "infiniband_link_info",
    "fabric_exporter_collector_success",
];

/// An alert and the GUID of its node.
type Alert = (&'static str, String);

/// The alert that watches a node.
fn alert(node: &Node) -> Alert {
    let name =
        if node.node_type == "switch" { "InfinibandSwitchDown" } else { "InfinibandNodeDown" };
    (name, node.guid.clone())
}

/// The minutes after which an alert fires, as its rule has it.
fn wait(name: &str) -> u64 {
    let mut all = rules::all().into_iter().map(|(_, rule)| rule);
    let rule = all.find(|rule| rule.alert.as_deref() == Some(name)).unwrap();
    rule.wait.unwrap().strip_suffix('m').unwrap().parse().unwrap()
}

/// The series of all scrapes, as input of promtool: `_` where a scrape does not have it.
#[derive(Default)]
struct Series(BTreeMap<String, Vec<String>>);

impl Series {
    fn add(&mut self, minute: usize, metrics: &Metrics) {
        for sample in metrics.samples.iter().filter(|it| READ.contains(&&*it.name)) {
            let labels: Vec<String> =
                sample.labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            let name = format!("{}{{job=\"j\",instance=\"i\",{}}}", sample.name, labels.join(","));
            let values = self.0.entry(name).or_default();
            values.resize(minute, "_".to_owned());
            values.push(sample.raw.clone());
        }
    }
}

/// What the condition says of the nodes that are down: not green, and each of them named or counted.
fn check(minute: u64, found: &Condition, down: &[Node], firing: &BTreeSet<Alert>) {
    let shown = format!("minute {minute}: {found:?}");
    assert!(down.is_empty() || found.verdict != "ok", "{shown}");
    let named: BTreeMap<&str, &str> = (found.findings.iter())
        .flat_map(|finding| finding.nodes.iter().map(|node| (&*node.guid, &*finding.verdict)))
        .collect();
    for node in down {
        let cause = node.behind.as_ref().map_or(&*node.guid, |by| &*by.guid);
        let verdict = named.get(cause).unwrap_or_else(|| panic!("{}: {shown}", node.node));
        assert!(found.findings[0].verdict == found.verdict, "{shown}");
        if firing.contains(&alert(node)) {
            assert_eq!((*verdict, &*found.verdict), ("bad", "bad"), "{}: {shown}", node.node);
        }
    }
}

/// Compares the alerts at each minute with the expected ones.
fn compare(series: &Series, expected: &[[BTreeSet<Alert>; 2]]) {
    let file = rules::files("alerts", "nodes.rules.yml").remove(0);
    let mut text = format!(
        "rule_files: [{}]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n",
        file.display()
    );
    for (name, values) in &series.0 {
        writeln!(text, "  - series: '{name}'\n    values: '{}'", values.join(" ")).unwrap();
    }
    text += "  promql_expr_test:\n";
    // Alerts last for some minutes after the node is up again.
    let alerts = |states: &str| {
        format!(
            "count by (alertname, guid) (ALERTS{{alertname=~\"Infiniband(Switch|Node)Down\",alertstate=~\"{states}\"}} \
             and on (guid) infiniband_node_up == 0)"
        )
    };
    for (minute, expected) in expected.iter().enumerate() {
        for (states, expected) in ["pending|firing", "firing"].iter().zip(expected) {
            let expr = alerts(states);
            writeln!(text, "  - expr: '{expr}'\n    eval_time: {minute}m\n    exp_samples:")
                .unwrap();
            for (name, guid) in expected {
                let labels = format!("{{alertname=\"{name}\",guid=\"{guid}\"}}");
                writeln!(text, "    - {{labels: '{labels}', value: 1}}").unwrap();
            }
        }
    }
    let file = tempfile::Builder::new().suffix(".test.yml").tempfile().unwrap();
    std::fs::write(&file, text).unwrap();
    let output = Command::new(require("promtool"))
        .args(["test", "rules"])
        .arg(file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
}

#[test]
fn headline_is_not_green_while_an_alert_on_a_node_is_pending_or_firing() {
    let simulated = Simulated::text(STORY);
    let (mut series, mut expected) = (Series::default(), Vec::new());
    let mut since: BTreeMap<Alert, u64> = BTreeMap::new();
    let mut headlines = BTreeSet::new();
    for minute in 0..MINUTES {
        let at = Duration::from_secs(60 * minute + 10);
        simulated.run_to(at);
        let observation = simulated.observation();
        series.add(usize::try_from(minute).unwrap(), &simulated.metrics());
        let found = condition::at(&observation, SystemTime::UNIX_EPOCH + BEGAN + at);
        let filter = Filter { down: true, ..Filter::default() };
        let down = nodes(&[observation], &filter).fabrics.remove(0).nodes;
        let active: BTreeSet<Alert> = down.iter().map(alert).collect();
        since.retain(|alert, _| active.contains(alert));
        for alert in &active {
            since.entry(alert.clone()).or_insert(minute);
        }
        let lasting = since.iter().filter(|((name, _), from)| minute >= *from + wait(name));
        let firing: BTreeSet<Alert> = lasting.map(|(alert, _)| alert.clone()).collect();
        check(minute, &found, &down, &firing);
        headlines.insert(found.headline);
        expected.push([active, firing]);
    }
    compare(&series, &expected);
    // The story was what it seems to be.
    for headline in [
        "1 switch down (leaf-0-2), 8 HCAs behind it",
        "1 switch down (leaf-0-2), 8 HCAs behind it; 1 HCA down (host-4)",
        "1 switch down (spine-1); 1 HCA down (host-4)",
        "1 switch down (spine-1)",
        // Time is what the first minutes, and those after the outages, lack.
        "learning for 48 links",
        "all ok: 48 links, 29 nodes",
    ] {
        assert!(headlines.contains(headline), "{headline}: {headlines:?}");
    }
}
