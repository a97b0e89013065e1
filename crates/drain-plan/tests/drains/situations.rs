//! What is lost in situations that operators know.

use std::collections::BTreeSet;

use drain_plan::{Link, Net, Repair, Share, UnknownPart, WindowCount, assess, plan};

use crate::fabric_text::Fabric;

struct Situation {
    name: &'static str,
    fabric: &'static str,
    repairs: &'static str,
    drained: &'static str,
    /// As in `Fabric::describe`.
    lost: &'static str,
}

const PAIR: &str = "h1-h2";
const SINGLE_LEAF: &str = "h1-L1 h2-L1 h3-L1";
const ONE_SPINE: &str = "h1-L1 h2-L1 h3-L2 L1-S1 L2-S1";
const FAT_TREE: &str = "h1-L1 h2-L2 h3-L3 L1-S1 L1-S2 L2-S1 L2-S2 L3-S1 L3-S2";
const TWO_RAILS: &str = "h1.1-A1 h2.1-A1 h3.1-A2 A1-AS A2-AS h1.2-B1 h2.2-B1 h3.2-B2 B1-BS B2-BS";
const PARALLEL: &str = "h1-L1 h2-L2 L1-S1 L1-S1 L1-S1 L1-S1 L2-S1 L2-S1 L2-S1 L2-S1";

const SITUATIONS: &[Situation] = &[
    Situation {
        name: "two hosts back to back, the cable",
        fabric: PAIR,
        repairs: "h1-h2",
        drained: "",
        lost: "cut h1 h2",
    },
    Situation {
        name: "two hosts back to back, one is drained",
        fabric: PAIR,
        repairs: "h1-h2",
        drained: "h2",
        lost: "",
    },
    Situation {
        name: "two hosts back to back with two cables",
        fabric: "h1-h2 h1-h2",
        repairs: "h1-h2#2",
        drained: "",
        lost: "",
    },
    Situation {
        name: "a host is no way for two others",
        fabric: "h1-h2 h2-h3 h1-L1 h3-L1",
        repairs: "h1-L1",
        drained: "",
        lost: "cut h1 h3",
    },
    Situation {
        name: "an HCA with two ports does not join two fabrics",
        fabric: "h1-L1 h2-L1 h2-L2 h3-L2 L1-L2",
        repairs: "L1-L2",
        drained: "",
        lost: "cut h1 h3 | L1 0/400, L2 0/400",
    },
    Situation {
        name: "single leaf, the cable of a host",
        fabric: SINGLE_LEAF,
        repairs: "h1-L1",
        drained: "",
        lost: "cut h1",
    },
    Situation {
        name: "single leaf, the switch",
        fabric: SINGLE_LEAF,
        repairs: "L1",
        drained: "",
        lost: "cut h1 h2 h3",
    },
    Situation {
        name: "single leaf, the switch, all hosts but one drained",
        fabric: SINGLE_LEAF,
        repairs: "L1",
        drained: "h1 h2",
        lost: "",
    },
    Situation {
        name: "the cable of a drained host",
        fabric: SINGLE_LEAF,
        repairs: "h1-L1",
        drained: "h1",
        lost: "",
    },
    Situation { name: "an HCA", fabric: SINGLE_LEAF, repairs: "h2", drained: "", lost: "cut h2" },
    Situation {
        name: "fat tree with one spine, the only uplink of a leaf: the smaller part is named",
        fabric: ONE_SPINE,
        repairs: "L2-S1",
        drained: "",
        lost: "cut h3 | L1 0/400, L2 0/400",
    },
    Situation {
        name: "fat tree with one spine, the spine",
        fabric: ONE_SPINE,
        repairs: "S1",
        drained: "",
        lost: "cut h3 | L1 0/400, L2 0/400",
    },
    Situation {
        name: "fat tree with one spine, the only uplink of a leaf whose hosts are drained",
        fabric: ONE_SPINE,
        repairs: "L2-S1",
        drained: "h3",
        lost: "",
    },
    Situation {
        name: "three leaves in a row, the one in the middle is drained and forwards",
        fabric: "h1-L1 h2-L2 h3-L3 L1-L2 L1-L2 L2-L3 L2-L3",
        repairs: "L1-L2",
        drained: "h2",
        lost: "L1 400/800, L3 400/800",
    },
    Situation {
        name: "fat tree, one uplink",
        fabric: FAT_TREE,
        repairs: "L1-S1",
        drained: "",
        lost: "L1 400/800",
    },
    Situation {
        name: "fat tree, both uplinks of a leaf",
        fabric: FAT_TREE,
        repairs: "L1-S1 L1-S2",
        drained: "",
        lost: "cut h1 | L1 0/800",
    },
    Situation {
        name: "fat tree, uplinks of two leaves to the same spine",
        fabric: FAT_TREE,
        repairs: "L1-S1 L2-S1",
        drained: "",
        lost: "L1 400/800, L2 400/800, L3 400/800",
    },
    Situation {
        name: "fat tree, uplinks of two leaves to both spines",
        fabric: FAT_TREE,
        repairs: "L1-S1 L2-S2",
        drained: "",
        lost: "L1 400/800, L2 400/800",
    },
    Situation {
        name: "fat tree, a spine",
        fabric: FAT_TREE,
        repairs: "S2",
        drained: "",
        lost: "L1 400/800, L2 400/800, L3 400/800",
    },
    Situation {
        name: "fat tree, a leaf: others keep their capacity",
        fabric: FAT_TREE,
        repairs: "L1",
        drained: "h1",
        lost: "",
    },
    Situation {
        name: "fat tree, a leaf and one uplink of another",
        fabric: FAT_TREE,
        repairs: "L1 L2-S2",
        drained: "h1",
        lost: "L2 400/800, L3 400/800",
    },
    Situation {
        name: "two rails, the cable of a host to one",
        fabric: TWO_RAILS,
        repairs: "h1.2-B1",
        drained: "",
        lost: "rails h1.2",
    },
    Situation {
        name: "two rails, both cables of a host",
        fabric: TWO_RAILS,
        repairs: "h1.1-A1 h1.2-B1",
        drained: "",
        lost: "cut h1",
    },
    Situation {
        name: "two rails, a leaf of one: its own capacity does not count while it is off",
        fabric: TWO_RAILS,
        repairs: "A2",
        drained: "",
        lost: "rails h3.1 | A1 0/400",
    },
    Situation {
        name: "two rails, cables of two hosts to different rails: they have no path to each other",
        fabric: TWO_RAILS,
        repairs: "h1.1-A1 h2.2-B1",
        drained: "",
        lost: "cut h1 h2 | rails h1.1 h2.2",
    },
    Situation {
        name: "loopback plug of a switch",
        fabric: "h1-L1 h2-L1 L1-L1",
        repairs: "L1-L1",
        drained: "",
        lost: "",
    },
    Situation {
        name: "loopback plug of a host",
        fabric: "h1-h1 h1-L1 h2-L1",
        repairs: "h1-L1",
        drained: "",
        lost: "cut h1 h2",
    },
    Situation {
        name: "parallel cables, one",
        fabric: PARALLEL,
        repairs: "L1-S1#3",
        drained: "",
        lost: "L1 1200/1600, L2 1200/1600",
    },
    Situation {
        name: "parallel cables, three of different capacity",
        fabric: "h1-L1 h2-L2 L1-L2:100 L1-L2:200 L1-L2:400",
        repairs: "L1-L2",
        drained: "",
        lost: "L1 600/700, L2 600/700",
    },
    Situation {
        name: "a link that is down",
        fabric: "h1-L1 h2-L2 L1-S1 L1xS1 L2-S1",
        repairs: "L1-S1#2",
        drained: "",
        lost: "",
    },
    Situation {
        name: "the last uplink, the other is down already",
        fabric: "h1-L1 h2-L1 h3-L2 L1-S1 L2-S1 L2xS2 L1-S2",
        repairs: "L2-S1",
        drained: "",
        lost: "cut h3 | L1 0/400, L2 0/400",
    },
    Situation {
        name: "a host whose link is down already has nothing to lose",
        fabric: "h1-L1 h2-L1 h3xL1",
        repairs: "h3-L1",
        drained: "",
        lost: "",
    },
    Situation {
        name: "a switch without hosts and links",
        fabric: "h1-L1 h2-L1 L1xS1",
        repairs: "S1",
        drained: "",
        lost: "",
    },
];

#[test]
fn situations_lose_what_operators_expect() {
    for Situation { name, fabric, repairs, drained, lost } in SITUATIONS {
        let fabric = Fabric::parse(fabric);
        let assessment = fabric.assess(repairs, drained);
        assert_eq!(fabric.describe(&assessment), *lost, "{name}");
    }
}

#[test]
fn cut_hosts_have_the_numbers_of_hosts_that_they_lose_and_keep() {
    let fabric = Fabric::parse("h1-L1 h2-L1 h3-L1 h4-L2 h5-L2 L1-L2");
    let assessment = fabric.assess("L1-L2", "");
    assert_eq!(fabric.describe(&assessment), "cut h4 h5 | L1 0/400, L2 0/400");
    for cut in &assessment.cut_hosts {
        assert_eq!((cut.lost, cut.kept), (3, 1));
    }
}

struct Planned {
    name: &'static str,
    fabric: &'static str,
    repairs: &'static str,
    drained: &'static str,
    min_capacity: f64,
    /// As in `Fabric::plan`.
    windows: &'static str,
}

const PLANS: &[Planned] = &[
    Planned {
        name: "both uplinks of a leaf need two windows",
        fabric: FAT_TREE,
        repairs: "L1-S1 L1-S2",
        drained: "",
        min_capacity: 0.5,
        windows: "L1-S1 | L1-S2",
    },
    Planned {
        name: "uplinks to the same spine are repaired together",
        fabric: FAT_TREE,
        repairs: "L1-S1 L1-S2 L2-S1 L2-S2 L3-S1",
        drained: "",
        min_capacity: 0.5,
        windows: "L1-S1 L2-S1 L3-S1 | L1-S2 L2-S2",
    },
    Planned {
        name: "a minimum of all capacity refuses each uplink",
        fabric: FAT_TREE,
        repairs: "L1-S1",
        drained: "",
        min_capacity: 1.0,
        windows: "; unsafe L1-S1 (L1 400/800)",
    },
    Planned {
        name: "the cable of a host is safe once the host is drained",
        fabric: FAT_TREE,
        repairs: "h1-L1 h2-L2",
        drained: "h2",
        min_capacity: 0.5,
        windows: "h2-L2; unsafe h1-L1 (cut h1 h3)",
    },
    Planned {
        name: "one of four parallel cables each, at 0.75",
        fabric: PARALLEL,
        repairs: "L1-S1 L1-S1#2 L2-S1",
        drained: "",
        min_capacity: 0.75,
        windows: "L1-S1 L2-S1 | L1-S1#2",
    },
    Planned {
        name: "rails of different hosts are not repaired together",
        fabric: TWO_RAILS,
        repairs: "h1.1-A1 h2.2-B1 h3.1-A2",
        drained: "",
        min_capacity: 0.5,
        windows: "h1.1-A1 h3.1-A2 | h2.2-B1",
    },
    Planned {
        name: "a link that is down joins any window",
        fabric: "h1-L1 h2-L2 L1-S1 L1-S2 L2-S1 L2-S2 L1xS1",
        repairs: "L1-S1 L1-S1#2 L1-S2",
        drained: "",
        min_capacity: 0.5,
        windows: "L1-S1 L1-S1#2 | L1-S2",
    },
    Planned {
        name: "nothing to repair",
        fabric: FAT_TREE,
        repairs: "",
        drained: "",
        min_capacity: 1.0,
        windows: "",
    },
];

#[test]
fn plans_group_repairs_as_operators_expect() {
    for Planned { name, fabric, repairs, drained, min_capacity, windows } in PLANS {
        let found = Fabric::parse(fabric).plan(repairs, drained, *min_capacity);
        assert_eq!(found, *windows, "{name}");
    }
}

/// A leaf with a host, and 14 cables to another.
fn parallel_cables() -> (Net, Vec<Repair>) {
    let mut net = Net::default();
    let leaves = [net.add_switch(), net.add_switch()];
    for leaf in leaves {
        let host = net.add_host();
        let hca = net.add_hca(host).unwrap();
        net.add_link(Link::usable([hca, leaf], 200)).unwrap();
    }
    let cables = (0..14).map(|_| Repair::Link(net.add_link(Link::usable(leaves, 200)).unwrap()));
    let cables = cables.collect();
    (net, cables)
}

#[test]
fn number_of_windows_for_fourteen_cables_is_the_smallest_up_to_two() {
    let (net, cables) = parallel_cables();
    let nobody = BTreeSet::new();
    let planned = plan(&net, &cables, &nobody, Share::new(0.5).unwrap()).unwrap();
    let sizes: Vec<usize> = planned.windows.iter().map(|window| window.repairs.len()).collect();
    assert_eq!(sizes, [7, 7]);
    // They are not safe in one window.
    assert_eq!(planned.window_count, WindowCount::Smallest);
    let planned = plan(&net, &cables, &nobody, Share::new(0.7).unwrap()).unwrap();
    let sizes: Vec<usize> = planned.windows.iter().map(|window| window.repairs.len()).collect();
    assert_eq!(sizes, [4, 4, 4, 2]);
    assert_eq!(planned.window_count, WindowCount::UpperBound);
    // Ten repairs are exact.
    let planned = plan(&net, &cables[..10], &nobody, Share::new(0.5).unwrap()).unwrap();
    assert_eq!(planned.windows.len(), 2);
    assert_eq!(planned.window_count, WindowCount::Smallest);
    // So is one window, for any number of repairs.
    let planned = plan(&net, &cables[..11], &nobody, Share::new(0.2).unwrap()).unwrap();
    assert_eq!(planned.windows.len(), 1);
    assert_eq!(planned.window_count, WindowCount::Smallest);
}

#[test]
fn repairs_of_links_that_are_down_do_not_make_the_number_uncertain() {
    let (mut net, mut cables) = parallel_cables();
    let ends = net.links()[net.links().len() - 1].ends;
    let down = (0..20).map(|_| Repair::Link(net.add_link(Link::down(ends, 400)).unwrap()));
    let down: Vec<Repair> = down.collect();
    cables.truncate(10);
    let repairs: Vec<Repair> = down.iter().chain(&cables).copied().collect();
    let nobody = BTreeSet::new();
    let planned = plan(&net, &repairs, &nobody, Share::new(0.7).unwrap()).unwrap();
    let sizes: Vec<usize> = planned.windows.iter().map(|window| window.repairs.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 30);
    assert_eq!((planned.windows.len(), planned.window_count), (3, WindowCount::Smallest));
    assert!(down.iter().all(|repair| planned.windows[0].repairs.contains(repair)));
    // Nothing else: one window, in which nothing is lost.
    let planned = plan(&net, &down, &nobody, Share::new(1.0).unwrap()).unwrap();
    assert_eq!((planned.windows.len(), planned.unsafe_repairs.len()), (1, 0));
    assert!(planned.windows[0].assessment.reduced_leaves.is_empty());
}

#[test]
fn group_is_repaired_as_a_whole() {
    // A host with an HCA on each of two rails, and two others.
    let mut net = Net::default();
    let hosts = [0; 3].map(|_| net.add_host());
    let leaves = [net.add_switch(), net.add_switch()];
    let (mut hcas, mut links) = (Vec::new(), Vec::new());
    for host in hosts {
        for leaf in leaves {
            hcas.push(net.add_hca(host).unwrap());
            links.push(net.add_link(Link::usable([hcas[hcas.len() - 1], leaf], 400)).unwrap());
        }
    }
    let both_hcas = Repair::Group(net.add_group(&[], &hcas[..2]).unwrap());
    let both_links = Repair::Group(net.add_group(&links[..2], &[]).unwrap());
    let one_of_each = Repair::Group(net.add_group(&links[..1], &hcas[..1]).unwrap());
    let nobody = BTreeSet::new();
    for (repair, cut) in [(both_hcas, &hosts[..1]), (both_links, &hosts[..1]), (one_of_each, &[])] {
        let assessment = assess(&net, &[repair], &nobody).unwrap();
        let found: Vec<_> = assessment.cut_hosts.iter().map(|cut| cut.host).collect();
        assert_eq!(found, cut, "{repair:?}");
    }
    let unknown = assess(&Net::default(), &[both_hcas], &nobody).unwrap_err();
    assert_eq!(unknown.to_string(), "the net has no group 0");
    assert!(matches!(Net::default().add_group(&links, &[]), Err(UnknownPart::Link(_))));
}

#[test]
fn links_without_capacity_are_paths_and_nothing_more() {
    let mut net = Net::default();
    let (hosts, leaves) = ([net.add_host(), net.add_host()], [net.add_switch(), net.add_switch()]);
    for (host, leaf) in hosts.into_iter().zip(leaves) {
        let hca = net.add_hca(host).unwrap();
        net.add_link(Link::usable([hca, leaf], 0)).unwrap();
    }
    let trunk = Repair::Link(net.add_link(Link::usable(leaves, 0)).unwrap());
    let assessment = assess(&net, &[trunk], &BTreeSet::new()).unwrap();
    assert_eq!((assessment.cut_hosts.len(), assessment.reduced_leaves.len()), (2, 0));
    assert!((assessment.remaining_capacity().get() - 1.0).abs() < f64::EPSILON);
}

#[test]
fn share_that_remains_is_compared_as_it_is_written() {
    let (net, cables) = parallel_cables();
    // 0.9 of 10 cables is exactly 9.
    let ten = assess(&net, &cables[..4], &BTreeSet::new()).unwrap();
    assert!((ten.remaining_capacity().get() - 10.0 / 14.0).abs() < 1e-12);
    assert!(ten.is_safe(Share::new(10.0 / 14.0).unwrap()));
    assert!(!ten.is_safe(Share::new(0.715).unwrap()));
    assert!(Share::new(f64::NAN).is_none());
    assert!(Share::new(1.01).is_none() && Share::new(-0.01).is_none());
}

#[test]
fn ids_of_another_net_are_refused() {
    let (net, cables) = parallel_cables();
    let mut other = Net::default();
    let nobody = BTreeSet::new();
    let unknown = assess(&other, &cables[..1], &nobody).unwrap_err();
    assert_eq!(unknown.to_string(), "the net has no link 2");
    let drained = net.host_ids().collect();
    let unknown = plan(&other, &[], &drained, Share::new(0.5).unwrap()).unwrap_err();
    assert!(matches!(unknown, UnknownPart::Host(_)), "{unknown}");
    let host = net.host_ids().next().unwrap();
    assert_eq!(other.add_hca(host), Err(UnknownPart::Host(host)));
    let (node, _) = net.node_ids().next().unwrap();
    assert_eq!(other.add_link(Link::usable([node, node], 1)), Err(UnknownPart::Node(node)));
}
