//! Pictures of small trees.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use fabric_api::FabricView;
use fabric_api::topology::Wiring;
use fabric_history::local_clock::LocalClock;
use fabric_observation::Observation;
use ib_fabric::assembly::DiscoveredFabric;
use ib_fabric::names::Naming;
use ib_fabric::testing::{end, found};
use ib_fabric::{Fabric, Snapshot};
use ib_health::assessment::Flow;
use ib_health::bit_errors::BerWindow;
use ib_health::congestion::{Role, RootCause};
use ib_health::testing::fine;
use ib_health::{Assessment, Reason, Verdict};
use ib_mad::moment::Anchor;
use ib_mad::{Guid, Moment, NodeKind, PortKey};

use super::changes::Compared;
use super::choice::{MapChoice, Mask, Opened};
use super::coloring::{Class, Coloring, Look, Scale, Step};
use super::layout::{Panel, Subject, panels};
use super::map::{Map, Members};
use super::masks::{Errors, coloring};
use super::picture::{Medium, draw};

const LEAF: u64 = 0x10_000;
const SPINE: u64 = 0x20_000;
const CORE: u64 = 0x30_000;
const HOST: u64 = 0x40_000;

/// A tree: in each pod each leaf is connected to each spine, and each spine of a place in its pod to one core.
#[derive(Clone, Copy, Default)]
struct Tree {
    pods: u64,
    /// Of each pod.
    leaves: u64,
    spines: u64,
    has_cores: bool,
    /// Of each leaf.
    hosts: u64,
}

impl Tree {
    fn observation(self) -> Observation {
        let mut found_fabric = DiscoveredFabric::default();
        let mut add = |guid: u64, kind: NodeKind, ports: u64, name: String| {
            let mut node = found(guid, kind, u8::try_from(ports).unwrap());
            node.identity.description = name;
            found_fabric.nodes.push(node);
        };
        let mut links: Vec<(PortKey, PortKey)> = Vec::new();
        let port = |guid: u64, number: u64| end(guid, u8::try_from(number).unwrap());
        let cores = if self.has_cores { self.spines } else { 0 };
        for pod in 0..self.pods {
            for leaf in 0..self.leaves {
                let guid = LEAF + pod * self.leaves + leaf;
                add(guid, NodeKind::Switch, self.hosts + self.spines, format!("leaf-{pod}-{leaf}"));
                for host in 0..self.hosts {
                    let of = HOST + (guid - LEAF) * self.hosts + host;
                    add(of, NodeKind::Ca, 1, format!("host-{}", of - HOST));
                    links.push((port(guid, host + 1), end(of, 1)));
                }
                for spine in 0..self.spines {
                    let of = SPINE + pod * self.spines + spine;
                    links.push((port(guid, self.hosts + spine + 1), port(of, leaf + 1)));
                }
            }
            for spine in 0..self.spines {
                let guid = SPINE + pod * self.spines + spine;
                add(guid, NodeKind::Switch, self.leaves + 1, format!("spine-{pod}-{spine}"));
                if self.has_cores {
                    links.push((port(guid, self.leaves + 1), port(CORE + spine, pod + 1)));
                }
            }
        }
        for core in 0..cores {
            add(CORE + core, NodeKind::Switch, self.pods, format!("core-{core}"));
        }
        found_fabric.links = links;
        let fabric = Fabric::assemble(found_fabric, &Naming::default(), Moment(0), None);
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        let snapshot = Snapshot::blank(Arc::new(fabric), anchor);
        let assessment = fine(&snapshot);
        Observation {
            fabric: "f".into(),
            snapshot: Some(snapshot.into()),
            assessment,
            ..Observation::default()
        }
    }
}

fn map(observation: &Observation, choice: MapChoice) -> Map<'_> {
    let view = FabricView::new(observation).unwrap();
    let errors = Errors::Evaluated(BerWindow::Short);
    let coloring = coloring(view, choice.mask, &errors, &Compared::default(), &LocalClock::now());
    Map::new(Wiring::new(view), coloring, choice)
}

fn open(opened: &[Opened]) -> MapChoice {
    MapChoice { open: opened.to_vec(), ..MapChoice::default() }
}

/// The picture on a page.
fn page(observation: &Observation, choice: MapChoice) -> String {
    let map = map(observation, choice);
    draw(&map, &panels(&map, &map.choice.open), Medium::Page, 0.0).0.into_string()
}

/// The number of boxes of each row, and whether any has several switches.
fn rows(panel: &Panel<'_>) -> (Vec<usize>, bool) {
    let rows = panel.boxes.chunk_by(|a, b| a.row == b.row).map(<[_]>::len).collect();
    let is_shared =
        |members: &Members<'_>| matches!(members, Members::Switches(of) if of.len() > 1);
    (rows, panel.boxes.iter().any(|it| is_shared(&it.members)))
}

/// The place of the link at a port.
fn link_at(observation: &Observation, guid: u64, number: u8) -> usize {
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    let port = fabric.find(end(guid, number)).unwrap();
    fabric.whole_links().position(|link| link.ports().contains(&port)).unwrap()
}

fn set_verdict(observation: &mut Observation, guid: u64, number: u8, verdict: Verdict) {
    let place = link_at(observation, guid, number);
    let link = &mut observation.assessment.links[place];
    link.verdict = verdict;
    link.reasons.add(Reason::BitErrors, verdict);
}

const TWO_LEVELS: Tree = Tree { pods: 1, leaves: 3, spines: 2, has_cores: false, hosts: 2 };

#[test]
fn rows_that_would_be_too_wide_have_groups() {
    let tree = |pods, leaves, spines, has_cores| Tree { pods, leaves, spines, has_cores, hosts: 1 };
    for (tree, expected, is_shared) in [
        (tree(1, 4, 2, false), &[2, 4][..], false),
        (tree(1, 44, 4, false), &[4, 44], false),
        // No groups: neighbors share a box.
        (tree(1, 60, 4, false), &[4, 30], true),
        // With a line between each spine and each leaf there would be too many of them.
        (Tree { hosts: 5, ..tree(1, 30, 30, false) }, &[15, 15], true),
        // Pods.
        (tree(12, 4, 3, true), &[3, 36, 12], true),
        (tree(50, 1, 2, true), &[2, 25, 25], true),
    ] {
        let observation = tree.observation();
        let map = map(&observation, MapChoice::default());
        let whole = panels(&map, &[]).remove(0);
        assert_eq!(rows(&whole), (expected.to_vec(), is_shared), "{} leaves", tree.leaves);
        let members = whole.boxes.iter().map(|it| match &it.members {
            Members::Switches(of) => of.len(),
            Members::Host(_) => 0,
        });
        assert_eq!(members.sum::<usize>(), map.wiring.switches.len(), "each switch is in a box");
        assert!(whole.lines.len() <= 600, "{} lines", whole.lines.len());
    }
}

#[test]
fn group_opens_with_all_of_its_levels_and_a_switch_with_its_hosts() {
    let observation =
        Tree { pods: 12, leaves: 4, spines: 3, has_cores: true, hosts: 5 }.observation();
    // Any leaf of the second pod opens it.
    let [pod, leaf] = [Opened::Group(Guid(LEAF + 6)), Opened::Switch(Guid(LEAF + 6))];
    let absent = Opened::Switch(Guid(99));
    let map = map(&observation, open(&[pod, leaf, absent]));
    let panels = panels(&map, &map.choice.open);
    let subjects: Vec<Subject> = panels.iter().map(|panel| panel.subject).collect();
    assert_eq!(subjects, [Subject::Fabric, Subject::Opened(pod), Subject::Opened(leaf)]);
    // The cores, and the spines and leaves of the pod.
    assert_eq!(rows(&panels[1]), (vec![3, 3, 4], false));
    assert_eq!(panels[1].lines.len(), 3 + 3 * 4);
    // The spines, the leaf, its hosts.
    assert_eq!(rows(&panels[2]), (vec![3, 1, 5], false));
    assert_eq!(panels[2].lines.len(), 3 + 5);
    let drawn = draw(&map, &panels, Medium::Page, 0.0).0.into_string();
    for (text, count) in [
        ("leaf-1-2 and its 5 hosts", 2),
        ("id=\"open-0x0000000000010006\"", 1),
        ("id=\"group-0x0000000000010006\"", 1),
        // The box of the pod closes what any of its switches opened.
        ("▾ 4 switches", 1),
        ("▸ 4 switches", 11),
        (">host-30<", 1),
    ] {
        assert_eq!(drawn.matches(text).count(), count, "{text}");
    }
    let closed = map.choice.closed(pod).replace('&', "&amp;");
    assert!(drawn.contains(&format!("href=\"{closed}\"")), "{closed}");
}

#[test]
fn worst_links_show_on_the_box_of_their_group_and_in_its_card() {
    let mut observation =
        Tree { pods: 12, leaves: 4, spines: 3, has_cores: true, hosts: 5 }.observation();
    set_verdict(&mut observation, LEAF + 6, 1, Verdict::Bad);
    set_verdict(&mut observation, LEAF + 7, 2, Verdict::Watch);
    let map = map(&observation, MapChoice::default());
    let whole = panels(&map, &[]).remove(0);
    let looks: Vec<Look> = whole
        .boxes
        .iter()
        .filter(|it| it.row == 2)
        .map(|it| map.coloring.look(map.worst(&map.tally(&it.members))))
        .collect();
    assert_eq!(looks.iter().position(|look| *look == Look::Bad), Some(1), "{looks:?}");
    assert_eq!(looks.iter().filter(|look| **look != Look::Ok).count(), 1, "{looks:?}");
    let drawn = page(&observation, MapChoice::default());
    let link = "/link/0x0000000000010006:1-0x000000000004001e:1?fabric=f";
    let card = format!("<a href=\"{link}\"><tspan x=\"8\" dy=\"15\">leaf-1-2 port 1 – host-30");
    assert!(drawn.contains(&card), "{card}");
    assert!(drawn.contains("bad, bit errors</tspan>"));
    assert!(drawn.contains("<tspan class=\"sign bad\">✕</tspan>"), "not by color alone");
}

#[test]
fn names_are_escaped_and_what_is_not_known_is_said() {
    let mut observation = TWO_LEVELS.observation();
    let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
    let mut fabric = (*snapshot.fabric).clone();
    for node in &mut fabric.nodes {
        node.name = "</title><script>".into();
    }
    snapshot.fabric = Arc::new(fabric);
    for mask in Mask::ALL {
        let choice = MapChoice { mask, ..open(&[Opened::Switch(Guid(LEAF))]) };
        let map = map(&observation, choice);
        let panels = panels(&map, &map.choice.open);
        for medium in [Medium::Page, Medium::File] {
            let drawn = draw(&map, &panels, medium, 0.0).0.into_string();
            assert!(!drawn.contains("<script>") && !drawn.contains(" style="), "{mask:?}");
            let unknown = "utilization unknown";
            assert!(drawn.contains(unknown) && drawn.contains("Bit errors: unknown"), "{mask:?}");
            assert_eq!(drawn.contains("<a "), medium == Medium::Page, "a file leads nowhere");
            assert_eq!(drawn.contains("<title>&lt;/title&gt;"), medium == Medium::File);
        }
    }
}

#[test]
fn switch_that_is_down_is_drawn_stronger_than_any_link() {
    let mut observation = TWO_LEVELS.observation();
    for link in &mut observation.assessment.links {
        link.verdict = Verdict::Bad;
    }
    let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
    let spine = snapshot.fabric.node_by_guid(Guid(SPINE)).unwrap();
    snapshot.silent[spine] = true;
    for mask in Mask::ALL {
        let drawn = page(&observation, MapChoice { mask, ..MapChoice::default() });
        for (text, count) in [
            ("class=\"box down\"", 1),
            ("class=\"cable down\"", 3),
            ("<tspan class=\"sign down\">✕</tspan> down", 1),
            ("aria-label=\"spine-0-0, down;", 1),
        ] {
            assert_eq!(drawn.matches(text).count(), count, "{mask:?} {text}: {drawn}");
        }
    }
}

#[test]
fn congestion_shows_among_verdicts_and_by_its_own_mask() {
    let mut observation = TWO_LEVELS.observation();
    let fabric = Arc::clone(&observation.snapshot.as_ref().unwrap().fabric);
    let [root, victim] =
        [(LEAF, 1), (LEAF, 3)].map(|(guid, it)| fabric.find(end(guid, it)).unwrap());
    let Assessment { ports, .. } = &mut observation.assessment;
    ports[root].role = Some(Role::Root(RootCause::SlowReceiver));
    ports[victim].role = Some(Role::Victim { of: root });
    let of = |mask| page(&observation, MapChoice { mask, ..MapChoice::default() });
    let verdicts = of(Mask::Verdict);
    assert_eq!(verdicts.matches("class=\"congested\"").count(), 1, "{verdicts}");
    assert!(verdicts.contains("◆1◇1") && verdicts.contains("Congestion: 1 root, 1 victim"));
    let congested = of(Mask::Congestion);
    assert!(!congested.contains("class=\"congested\""), "{congested}");
    assert_eq!(congested.matches("class=\"cable s2\"").count(), 1, "the victim: {congested}");
    assert!(congested.contains("<tspan class=\"sign s4\">◆</tspan>"), "{congested}");
    assert!(of(Mask::Speed).contains("By color:"));
}

#[test]
fn utilization_is_that_of_the_busier_direction() {
    let mut observation = TWO_LEVELS.observation();
    let fabric = Arc::clone(&observation.snapshot.as_ref().unwrap().fabric);
    let ports = &mut observation.assessment.ports;
    for port in fabric.port_indexes() {
        (ports[port].tx, ports[port].rx) = (Some(Flow::default()), Some(Flow::default()));
    }
    let busy = fabric.find(end(LEAF, 3)).unwrap();
    ports[busy].rx = Some(Flow { rate: 1e9, used: 0.97 });
    let drawn = page(&observation, MapChoice { mask: Mask::Utilization, ..MapChoice::default() });
    assert_eq!(drawn.matches("class=\"cable s4\"").count(), 1, "{drawn}");
    assert_eq!(drawn.matches("class=\"cable s0\"").count(), 5, "{drawn}");
    assert!(drawn.contains("utilization 97%") && drawn.contains("class=\"sign s4\">≥90%"));
}

/// A mask is no more than a scale and the classes of links and nodes: whatever compares two moments gives these.
#[test]
fn any_classes_of_links_and_nodes_color_the_map() {
    let observation = TWO_LEVELS.observation();
    let view = FabricView::new(&observation).unwrap();
    let fabric = &view.snapshot.fabric;
    let step = |look, sign: &'static str, label: &str| Step { look, sign, label: label.into() };
    let scale = Scale {
        steps: vec![step(Look::Step0, "", "as before"), step(Look::Bad, "↓", "worse")],
        harmless: 1,
        unknown: "not there before",
        notes: vec!["Since yesterday.".into()],
    };
    let ids = fabric.links().filter_map(|link| fabric.link_id(link.low));
    let links = ids.map(|id| (id, Class(0))).collect();
    let nodes = HashMap::from([(Guid(SPINE), Class(1))]);
    let coloring = Coloring::new(scale, links, nodes);
    let map = Map::new(Wiring::new(view), coloring, MapChoice::default());
    let drawn = draw(&map, &panels(&map, &[]), Medium::Page, 0.0).0.into_string();
    assert_eq!(drawn.matches("class=\"box bad\"").count(), 1, "{drawn}");
    assert_eq!(drawn.matches("class=\"cable s0\"").count(), 6, "{drawn}");
    let legend = super::legend::on_page(&map).into_string();
    assert!(legend.contains("worse: 0") && legend.contains("Since yesterday."), "{legend}");
    assert!(legend.contains("unknown (not there before): 0"), "{legend}");
}

/// 5,200 hosts and 540 switches.
#[test]
fn page_of_a_large_fabric_is_below_a_megabyte() {
    let observation =
        Tree { pods: 13, leaves: 20, spines: 20, has_cores: true, hosts: 20 }.observation();
    let condition = fabric_api::condition::condition(&observation);
    for mask in Mask::ALL {
        for opened in [&[][..], &[Opened::Group(Guid(LEAF)), Opened::Switch(Guid(LEAF))]] {
            let map = map(&observation, MapChoice { mask, ..open(opened) });
            let page = super::section(&map, &condition, &LocalClock::now()).into_string();
            assert!(page.len() < 1_000_000, "{mask:?}, {} open: {}", opened.len(), page.len());
        }
    }
}
