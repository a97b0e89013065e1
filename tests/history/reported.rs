//! What the simulator did, compared with `history report`: every fault is reported with its time to within one
//! sweep, and nothing that did not happen.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use ib_sim::net::{Net, NodeId, PortId};
use ib_sim::scenario::{AgentBehavior, FabricChange, Overrides, Scenario, TimedChange};
use serde_json::Value;

use crate::{RecordedSimulation, SWEEP, minutes, wall};
use test_rig::Simulated;
use test_rig::program;

/// A sweep takes some time, and may repeat requests.
const SLACK: Duration = Duration::from_secs(5);

/// How long the simulation continues after its last step.
const AFTER: Duration = minutes(6);

/// A fault in a report: an event of one of these kinds, or a counter that increased.
enum Sign {
    Event(&'static [&'static str]),
    EventOrCount(&'static [&'static str], &'static str),
    Count(&'static [&'static str]),
}

/// What a report must have of a step, and where; nothing for a step that is not a fault, or that ends before it
/// has an effect.
fn sign(step: &TimedChange, all: &[TimedChange], net: &Net) -> Option<(Sign, Vec<String>)> {
    let both = |port: PortId| cable(net, step.at, all, port);
    let errors = &["symbol_errors", "fec_uncorrectable_blocks", "receive_errors"][..];
    Some(match &step.change {
        FabricChange::SetSignal { port, up: false } => {
            (Sign::EventOrCount(&["link_down", "flap"], "link_downed"), both(*port))
        }
        FabricChange::Retrain { port } => (Sign::Count(&["link_error_recoveries"]), both(*port)),
        FabricChange::CorruptBits { port, ratio } if *ratio > 1e-10 => {
            (Sign::Count(errors), both(*port))
        }
        FabricChange::LimitLink { port, width, speed } if width.is_some() || speed.is_some() => {
            (Sign::Event(&["rate_changed"]), both(*port))
        }
        FabricChange::SetPower { node, on: false }
        | FabricChange::SetAgents { node, behavior: AgentBehavior::Silent } => {
            (Sign::Event(&["node_down"]), vec![name(net, *node)])
        }
        FabricChange::SetPower { node, on: true } => {
            (Sign::Event(&["node_up"]), vec![name(net, *node)])
        }
        FabricChange::ClearCounters { ports } => {
            let mut nodes: BTreeSet<String> =
                ports.iter().map(|port| net.node_of(*port).id.clone()).collect();
            // The third one of a node and those after it are no events.
            let is_earlier = |it: &&TimedChange| it.at > Duration::ZERO && it.at < step.at;
            let clears = |node: &str| {
                let of_node = |it: &&TimedChange| match &it.change {
                    FabricChange::ClearCounters { ports } => {
                        ports.iter().any(|port| net.node_of(*port).id == node)
                    }
                    _ => false,
                };
                all.iter().filter(is_earlier).filter(of_node).count()
            };
            nodes.retain(|node| clears(node) < 2);
            if nodes.is_empty() {
                return None;
            }
            (Sign::Event(&["counter_reset"]), nodes.into_iter().collect())
        }
        FabricChange::SetCounter { port, .. } => {
            (Sign::EventOrCount(&["counter_reset"], "symbol_errors"), vec![place(net, *port)])
        }
        FabricChange::MoveCable { from, to } => {
            (Sign::Event(&["cable_moved", "link_added"]), vec![place(net, *from), place(net, *to)])
        }
        FabricChange::SetMaster { .. } => {
            (Sign::Event(&["master_changed"]), vec!["default".into()])
        }
        _ => return None,
    })
}

fn name(net: &Net, node: NodeId) -> String {
    net.node(node).id.clone()
}

/// A port as reports call it.
fn place(net: &Net, port: PortId) -> String {
    let label = net.label(port);
    label.trim_end_matches(']').replace('[', " port ")
}

/// Both ends of the cable at a port, wherever it was plugged since the beginning.
fn cable(net: &Net, at: Duration, all: &[TimedChange], port: PortId) -> Vec<String> {
    let mut ends = vec![place(net, port)];
    ends.extend(net.port(port).cable.map(|peer| place(net, peer)));
    let moves = all.iter().filter(|step| step.at <= at);
    for step in moves {
        if let FabricChange::MoveCable { from, to } = step.change {
            ends.extend([place(net, from), place(net, to)]);
        }
    }
    ends
}

/// A report and all events as JSON.
struct Read {
    report: Value,
    events: Vec<Value>,
}

impl Read {
    fn of(file: &Path, to: Duration) -> Self {
        let time = |at| humantime::format_rfc3339_millis(wall(at)).to_string();
        let read = |command: &[&str]| {
            let output = Command::new(program())
                .arg("history")
                .args(command)
                .args(["--since", &time(Duration::ZERO), "--until", &time(to), "--file"])
                .arg(file)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice::<Value>(&output.stdout).unwrap()
        };
        let events = read(&["events", "--json"]);
        Read {
            report: read(&["report", "--format=json"]),
            events: events.as_array().unwrap().clone(),
        }
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &Value> {
        self.report[key].as_array().unwrap().iter()
    }

    /// Whether an event of one of these kinds and places is there at its time.
    fn has_event(&self, kinds: &[&str], places: &[String], at: Duration) -> bool {
        self.events.iter().any(|event| {
            let of = event["place"].as_str().unwrap();
            kinds.contains(&event["kind"].as_str().unwrap())
                && places.iter().any(|place| is_of(of, place))
                && is_soon(time(&event["at"]), at)
        })
    }

    /// Whether a counter grew at one of these places at its time.
    fn has_count(&self, counters: &[&str], places: &[String], at: Duration) -> bool {
        let is_there = |port: &Value| {
            let label = format!("{} port {}", port["node"].as_str().unwrap(), port["port"]);
            places.contains(&label)
        };
        let is_one = |counter: &Value| counters.contains(&counter.as_str().unwrap());
        let in_findings = self.list("findings").any(|finding| {
            finding["series"].as_array().unwrap().iter().any(|series| {
                let steps = series["steps"].as_array().unwrap();
                is_there(&series["port"])
                    && is_one(&series["counter"])
                    && steps.iter().any(|step| {
                        let millis = step[1].as_u64().unwrap();
                        is_soon(SystemTime::UNIX_EPOCH + Duration::from_millis(millis), at)
                    })
            })
        });
        // Of the others, the first and the last reading are listed.
        in_findings
            || self.list("others").any(|moved| {
                is_there(&moved["port"])
                    && moved["sums"].as_array().unwrap().iter().any(|sum| {
                        let span = (time(&sum["first"]), time(&sum["last"]));
                        is_one(&sum["counter"])
                            && span.0 <= wall(at + SWEEP + SLACK)
                            && span.1 >= wall(at)
                    })
            })
    }
}

fn time(text: &Value) -> SystemTime {
    humantime::parse_rfc3339(text.as_str().unwrap()).unwrap()
}

fn is_soon(told: SystemTime, at: Duration) -> bool {
    // Times have milliseconds.
    told + Duration::from_millis(1) >= wall(at) && told <= wall(at + SWEEP + SLACK)
}

/// Whether a text is about a place: `host-1` is not part of `host-13`.
fn is_of(told: &str, place: &str) -> bool {
    let is_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    told.match_indices(place).any(|(at, _)| {
        !is_word(told[..at].chars().next_back())
            && !is_word(told[at + place.len()..].chars().next())
    })
}

/// The places at which a step may have been felt: its own, and for a node all that it is cabled to.
fn felt(step: &TimedChange, all: &[TimedChange], net: &Net) -> Vec<String> {
    let around = |node: NodeId| {
        let mut names = vec![name(net, node)];
        let plugs = net.cable_ports(node).filter_map(|port| net.port(port).cable);
        names.extend(plugs.map(|peer| net.node_of(peer).id.clone()));
        names
    };
    match &step.change {
        FabricChange::CorruptBits { port, .. }
        | FabricChange::SetDirt { port, .. }
        | FabricChange::SetModuleTemperature { port, .. }
        | FabricChange::SwapCable { port }
        | FabricChange::SetSignal { port, .. }
        | FabricChange::Retrain { port }
        | FabricChange::LimitLink { port, .. }
        | FabricChange::LimitIntake { port, .. }
        | FabricChange::SetModuleReport { port, .. }
        | FabricChange::SetDisabled { port, .. }
        | FabricChange::AddToCounter { port, .. }
        | FabricChange::SetCounter { port, .. } => {
            let mut places = cable(net, step.at, all, *port);
            // A host whose only cable is pulled is gone.
            let nodes = [Some(*port), net.port(*port).cable].into_iter().flatten();
            let hosts = nodes.map(|port| net.node_of(port)).filter(|node| node.is_host());
            places.extend(hosts.map(|node| node.id.clone()));
            places
        }
        FabricChange::MoveCable { from, to } => {
            let ends = [Some(*from), Some(*to), net.port(*from).cable, net.port(*to).cable];
            let ends = || ends.into_iter().flatten();
            let hosts = ends().map(|port| net.node_of(port)).filter(|node| node.is_host());
            let mut places: Vec<String> = hosts.map(|node| node.id.clone()).collect();
            places.extend(ends().map(|port| place(net, port)));
            places
        }
        FabricChange::SetPower { node, .. }
        | FabricChange::SetAgents { node, .. }
        | FabricChange::SetRegisters { node, .. } => around(*node),
        FabricChange::ClearCounters { ports } => {
            ports.iter().map(|port| net.node_of(*port).id.clone()).collect()
        }
        FabricChange::SetMaster { .. } => vec!["default".into()],
        FabricChange::SetTraffic { .. }
        | FabricChange::SetDelivery(_)
        | FabricChange::SetMKey { .. }
        | FabricChange::SetVsKey { .. }
        | FabricChange::SetMembership { .. }
        | FabricChange::SetFrontPanel { .. }
        | FabricChange::SetStateTable { .. } => Vec::new(),
    }
}

fn holds(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scenarios/{name}.yml"));
    let scenario = Scenario::read(&path).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::of(Simulated::of(&scenario), &file);
    let end = story.changes.iter().map(|step| step.at).max().unwrap() + AFTER;
    simulation.run_to(end);
    simulation.recorder.finish(wall(end));
    let read = Read::of(&file, end);
    let net = &story.net;
    let listed = || serde_json::to_string_pretty(&read.events).unwrap();
    for step in story.changes.iter().filter(|step| !step.at.is_zero()) {
        let Some((sign, places)) = sign(step, &story.changes, net) else { continue };
        let at = step.at;
        let is_there = match sign {
            Sign::Event(kinds) => read.has_event(kinds, &places, at),
            Sign::EventOrCount(kinds, counter) => {
                read.has_event(kinds, &places, at) || read.has_count(&[counter], &places, at)
            }
            Sign::Count(counters) => read.has_count(counters, &places, at),
        };
        assert!(is_there, "{name}: {step:?} at {places:?} is not in\n{}", listed());
    }
    let is_explained = |told: &str, at: SystemTime, kind: &str| {
        let is_congestion = kind.starts_with("congestion");
        // Where responses are lost, it is not known which node is silent.
        let is_loss = kind.starts_with("node_") || kind.starts_with("reads_");
        story.changes.iter().any(|step| {
            let began = wall(step.at) <= at + Duration::from_millis(1);
            let is_load = matches!(
                step.change,
                FabricChange::SetTraffic { .. } | FabricChange::LimitIntake { .. }
            );
            let loses = match step.change {
                FabricChange::SetDelivery(delivery) => delivery.loss > 0.0,
                FabricChange::SetAgents { behavior, .. } => behavior != AgentBehavior::Normal,
                _ => false,
            };
            began
                && (felt(step, &story.changes, net).iter().any(|place| is_of(told, place))
                    || is_congestion && is_load
                    || is_loss && loses)
        })
    };
    for event in &read.events {
        let (kind, at) = (event["kind"].as_str().unwrap(), time(&event["at"]));
        let is_own = ["exporter_start", "exporter_stop"].contains(&kind);
        let told = event["place"].as_str().unwrap();
        assert!(is_own || is_explained(told, at, kind), "{name}: invented: {event}");
    }
    for finding in read.list("findings") {
        let (kind, told) = (finding["kind"].as_str().unwrap(), finding["place"].as_str().unwrap());
        assert!(is_explained(told, wall(end), kind), "{name}: nobody did anything to {told}");
    }
    // Each event is in one incident.
    let counted = |list: &str| {
        read.list(list).map(|incident| incident["event_count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(counted("findings") + counted("incidents"), read.events.len() as u64, "{name}");
}

macro_rules! scenarios {
    ($($name:ident $file:literal)+) => {
        $(#[test] fn $name() { holds($file); })+
    };
}

scenarios! {
    a_bad_cable "bad-cable"
    cleared_counters "cleared-counters"
    congestion "congestion"
    a_dead_switch "dead-switch"
    degraded_links "degraded-link"
    a_flapping_link "flapping-link"
    a_host_that_is_rebooted "host-reboot"
    a_lossy_fabric "lossy-fabric"
    a_miswired_fabric "miswired"
    a_new_master "new-master"
    modules_and_lanes "modules"
    slow_nodes "slow-node"
    a_switch_that_is_rebooted "switch-reboot"
}
