//! From the text to the story, on a small fabric.

mod any_text;
mod entries;
mod mistakes;
mod order;
mod waits;

use std::time::Duration;

use super::{Action, Overrides, Scenario, Story};
use crate::net::Net;
use ib_mad::node::NodeKind;

/// Two leaves (`leaf-0-0`, `leaf-0-1`) of 8 ports each with `host-0` to `host-5`, and
/// a spine, with two cables to each.
const TREE: &str = "{fat-tree: {hosts: 6, radix: 8, down: 4, up: 2}}";

/// The net that a scenario's `fabric` describes.
pub(super) fn net(fabric: &str) -> Net {
    let scenario = Scenario::parse("x.yml", &format!("fabric: {fabric}")).unwrap();
    scenario.net(&Overrides::default()).unwrap()
}

fn story_of(text: &str, net: Net, overrides: &Overrides) -> Result<Story, String> {
    Scenario::parse("x.yml", text)
        .and_then(|scenario| {
            scenario.shape(overrides)?;
            scenario.story_on(net, overrides)
        })
        .map_err(|error| error.to_string())
}

fn story(text: &str) -> Result<Story, String> {
    story_of(text, net(TREE), &Overrides::default())
}

/// The story of a timeline without any traffic.
fn played(timeline: &str) -> Story {
    story(&format!("traffic: {{pattern: none}}\ntimeline:\n{timeline}")).unwrap()
}

/// What happens, in short: the time, and the action with labels in place of ids.
fn short(story: &Story) -> Vec<String> {
    let label = |port| story.net.label(port);
    story
        .steps
        .iter()
        .map(|step| {
            let told = match &step.action {
                Action::Corrupt { into, ratio } => format!("corrupt {} {ratio:e}", label(*into)),
                Action::Signal { end, up } => format!("signal {} {up}", label(*end)),
                Action::Retrain { end } => format!("retrain {}", label(*end)),
                Action::Limit { end, width, speed } => {
                    format!("limit {} {width:?} {speed:?}", label(*end))
                }
                Action::Intake { port, share } => format!("intake {} {share}", label(*port)),
                Action::Power { node, on } => format!("power {} {on}", story.net.node(*node).id),
                Action::Clear { ports } => format!("clear {}", ports.len()),
                Action::Set { port, counter, value } => {
                    format!("set {} {counter:?} {value}", label(*port))
                }
                Action::Agents { node, manner } => {
                    format!("agents {} {manner:?}", story.net.node(*node).id)
                }
                Action::Protect { nodes, m_key, level } => {
                    format!("protect {} {:#x} {level}", nodes.len(), m_key.0)
                }
                Action::Membership { nodes, full } => format!("membership {} {full}", nodes.len()),
                Action::Way(way) => format!("way {}", way.loss),
                Action::Move { from, to } => format!("move {} {}", label(*from), label(*to)),
                Action::Master { port, readdresses } => {
                    format!("master {} {readdresses}", label(*port))
                }
                Action::Traffic { name, flows } => format!("traffic {name} {}", flows.len()),
            };
            format!("{} {told}", step.at.as_millis())
        })
        .collect()
}

#[test]
fn nothing_said_is_the_defaults() {
    let story = story("").unwrap();
    assert_eq!(short(&story), ["0 traffic traffic 6"]);
    let labels = |ports: &[_]| ports.iter().map(|port| story.net.label(*port)).collect::<Vec<_>>();
    assert_eq!(
        (labels(&story.seats), labels(&story.masters)),
        (vec!["host-0[1]".into()], vec!["host-1[1]".into()])
    );
    assert_eq!((story.seed, story.told.len()), (1, 0));
    assert_eq!(story.way.round_trip, Duration::from_micros(20));
    assert_eq!(story.way.per_hop, Duration::from_micros(1));
    assert_eq!(story.way.jitter, Duration::from_micros(10));
    let Action::Traffic { flows, .. } = &story.steps[0].action else { panic!("traffic") };
    // 20% of NDR on four lanes.
    assert!(flows.iter().all(|flow| (flow.offered - 10e9).abs() < 1.0 && flow.packet == 4096));
}

#[test]
fn what_is_said_of_seats_way_and_traffic_arrives() {
    let story = story(
        "seat: 'host-2[1]'\nmaster: leaf-0-1\nseed: 9\n\
         way: {round-trip: 1ms, per-hop: 2us, jitter: 0, loss: 0.5%}\n\
         traffic: {pattern: all-to-one, to: host-3, load: 0.5, packet: 256}\n",
    )
    .unwrap();
    assert_eq!(story.net.label(story.seats[0]), "host-2[1]");
    assert_eq!(story.net.label(story.masters[0]), "leaf-0-1[0]");
    assert_eq!(story.way.round_trip, Duration::from_millis(1));
    assert_eq!((story.seed, story.way.jitter, story.way.loss), (9, Duration::ZERO, 0.005));
    let Action::Traffic { flows, .. } = &story.steps[0].action else { panic!("traffic") };
    assert!(flows.iter().all(|flow| story.net.label(flow.to) == "host-3[1]"));
    assert!(flows.iter().all(|flow| flow.packet == 256 && (flow.offered - 25e9).abs() < 1.0));
    assert_eq!(flows.len(), 5);
}

#[test]
fn each_plane_has_a_seat_and_a_master() {
    let planes = || net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}");
    for (text, seats, masters) in [
        ("", ["host-0-mlx5_0[1]", "host-0-mlx5_1[1]"], ["host-1-mlx5_0[1]", "host-1-mlx5_1[1]"]),
        (
            "seat: host-2-mlx5_1\nmaster: host-3-mlx5_0",
            ["host-2-mlx5_1[1]", "host-2-mlx5_0[1]"],
            ["host-3-mlx5_1[1]", "host-3-mlx5_0[1]"],
        ),
    ] {
        let story = story_of(text, planes(), &Overrides::default()).unwrap();
        let labels =
            |ports: &[_]| ports.iter().map(|port| story.net.label(*port)).collect::<Vec<_>>();
        assert_eq!(
            (labels(&story.seats), labels(&story.masters)),
            (seats.map(String::from).to_vec(), masters.map(String::from).to_vec())
        );
    }
    // A host goes off with all of its adapters, and is the master of all its planes.
    let text = "traffic: {pattern: none}\ntimeline:\n- reboot: {node: host-2-mlx5_0, down: 1s}\n- new-master: {at: 3s, host: host-3-mlx5_0}\n";
    let told = short(&story_of(text, planes(), &Overrides::default()).unwrap());
    assert_eq!(
        told,
        [
            "0 power host-2-mlx5_0 false",
            "0 power host-2-mlx5_1 false",
            "1000 power host-2-mlx5_0 true",
            "1000 power host-2-mlx5_1 true",
            "3000 master host-3-mlx5_0[1] false",
            "3000 master host-3-mlx5_1[1] false"
        ]
    );
}

/// Each entry of the timeline: what comes of it, and how it is told.
#[test]
fn a_story_is_the_same_each_time() {
    let text = "timeline: [burst: {from: 2, to: host-0, load: 50%}]";
    let (one, other) = (story(text).unwrap(), story(text).unwrap());
    assert_eq!((one.steps, one.told), (other.steps, other.told));
    let other = story(&format!("seed: 2\n{text}")).unwrap();
    assert_ne!(story(text).unwrap().steps, other.steps);
}

fn hosts(story: &Story) -> usize {
    story.net.nodes.iter().filter(|node| node.kind == NodeKind::Ca).count()
}

#[test]
fn a_tree_can_have_another_number_of_hosts() {
    let scenario = Scenario::parse("x.yml", "fabric: {fat-tree: {hosts: 20}}").unwrap();
    for (wanted, found) in [(None, 20), (Some(9), 9)] {
        let overrides = Overrides { hosts: wanted, ..Overrides::default() };
        assert_eq!(hosts(&scenario.story(&overrides).unwrap()), found);
    }
}

#[test]
fn a_tree_of_more_hosts_gets_larger_switches() {
    for (text, wanted, leaf, ports, spines) in [
        ("{hosts: 36, radix: 16, down: 9, up: 6}", 500, "leaf-0-55", 56, 6),
        ("{}", 500, "leaf-0-62", 63, 8),
        ("{}", 30, "leaf-0-3", 16, 2),
        ("{hosts: 4, radix: 4, ports: 2}", 100, "leaf-0-99", 100, 2),
    ] {
        let scenario = Scenario::parse("x.yml", &format!("fabric: {{fat-tree: {text}}}")).unwrap();
        let overrides = Overrides { hosts: Some(wanted), ..Overrides::default() };
        let story = scenario.story(&overrides).unwrap();
        assert_eq!(hosts(&story), wanted as usize);
        let node = |id: &str| story.net.nodes.iter().find(|node| node.id == id).unwrap();
        assert_eq!(node(leaf).port_count, ports, "{text}");
        let is_spine = |id: &str| id.starts_with("spine-");
        let found = story.net.nodes.iter().filter(|node| is_spine(&node.id)).count();
        assert_eq!(found, spines, "{text}");
    }
}

#[test]
fn the_demo_unfolds_in_five_minutes() {
    let demo = Scenario::demo().unwrap();
    assert!(!demo.about().is_empty());
    let story = demo.story(&Overrides::default()).unwrap();
    assert_eq!(hosts(&story), 36);
    assert!(story.told.len() >= 4, "{:?}", story.told);
    assert!(story.told.iter().all(|(at, _)| at.as_secs() < 300), "{:?}", story.told);
    assert!(story.steps.is_sorted_by_key(|step| step.at));
}
