//! Mistakes are reported in one line, with their place.

use super::super::index::FabricIndex;
use super::super::{FabricChange, Overrides, Scenario};
use super::{net, resolve, resolve_on};
use crate::net::{Net, file};
use ib_mad::rate::{Speed, Width};

/// A timeline with one entry, on line 3.
fn one(entry: &str) -> String {
    format!("about: x\ntimeline:\n  - {entry}\n")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_are_one_line_with_their_place() {
    for (text, says) in [
        // Syntax.
        ("about: [".to_owned(), "x.yml: line 1: "),
        (
            "about: x\nabout: y".into(),
            "x.yml: line 2: about: the key is given twice (first in line 1)",
        ),
        ("- 1".into(), "x.yml: line 1: "),
        ("seat: *x".into(), "x.yml: line 1: seat: the alias (*) has no anchor"),
        ("about: x\nsaet: host-1".into(), "line 2: saet: unknown key (did you mean \"seat\"?)"),
        ("seed: -1".into(), "line 1: seed: \"-1\" is not a whole number that is not negative"),
        ("timeline: {flap: {}}".into(), "line 1: "),
        (
            one("flip: {at: 1s}"),
            "line 3: timeline[0].flip: \"flip\" is not one of: bad-cable, dirty-connector, ",
        ),
        (one("flip: {at: 1s}"), "(did you mean \"flap\"?)"),
        (
            one("bad-cable: {at: 1s,\n     intoo: x}"),
            "line 4: bad-cable: intoo: unknown key (did you mean \"into\"?); known: at, into, ratio, for",
        ),
        (one("bad-cable: {ratio: 1e-9}"), "line 3: bad-cable: the key \"into\" is missing"),
        (
            one("flap: {link: x, down: 1s}\n    clear: {}"),
            "line 4: clear: too many keys: only one name is allowed here",
        ),
        // Values.
        (
            one("bad-cable: {at: soon, into: x, ratio: 1e-9}"),
            "line 3: bad-cable: at: \"soon\" is not a duration such as 15s or 5m",
        ),
        (one("clear: {at: -3s}"), "line 3: clear: at: \"-3s\" is not a duration"),
        (one("clear: {at: 11years}"), "line 3: clear: at: \"11years\" is more than ten years"),
        (
            one("bad-cable: {into: x,\n     ratio: 2}"),
            "line 4: bad-cable: ratio: \"2\" is not a ratio between 0 and 1",
        ),
        (
            one("lose-mads: {share: 101%}"),
            "line 3: lose-mads: share: \"101%\" is more than 100% or 1",
        ),
        (
            one("dirty-connector: {into: \"leaf-0-0[1]\", lane: 8, ratio: 1e-5}"),
            "line 3: dirty-connector: lane: 8 is not between 0 and 7",
        ),
        (
            one("hot-module: {port: \"leaf-0-0[1]\", celsius: 80}"),
            "line 3: hot-module: port: passive cables have no temperature",
        ),
        (
            one("registers: {node: leaf-0-0, behavior: sloow}"),
            "line 3: registers: behavior: unknown behavior \"sloow\"; known: normal, absent, refused, slow, hung",
        ),
        (one("m-key: {key: 0x1, level: 4}"), "line 3: m-key: level: 4 is not between 0 and 3"),
        (
            one("m-key: {key: secret, level: 2}"),
            "line 3: m-key: key: \"secret\" is not an M_Key such as 0x1234",
        ),
        ("way:\n  loss: 200%".into(), "line 2: way.loss: \"200%\" is more than 100%"),
        ("way:\n  jitter: 5m".into(), "line 2: way: jitter: must be at most 1m"),
        (
            "traffic: {pattern: sideways}".into(),
            "line 1: traffic.pattern: \"sideways\" is not one of: none, neighbours",
        ),
        ("traffic: {packet: 9GB}".into(), "line 1: traffic.packet: \"9GB\" is not a size"),
        ("traffic: {to: host-1}".into(), "line 1: traffic: to: valid only with pattern all-to-one"),
        (
            "traffic: {pattern: all-to-one, to: host-9}".into(),
            "line 1: traffic: to: no node \"host-9\"",
        ),
        (
            one("degrade: {link: host-1, width: 3x}"),
            "line 3: degrade: width: unknown width \"3x\"; known: 1x,",
        ),
        (
            one("degrade: {link: host-1, speed: PDR}"),
            "line 3: degrade: speed: unknown speed \"PDR\"; known: SDR,",
        ),
        (one("degrade: {link: host-1}"), "line 3: degrade: width or speed, or both, are required"),
        (
            one("set: {port: host-1,\n      counters: {SymbolErorCounter: 1}}"),
            "line 4: set: unknown counter \"SymbolErorCounter\" (did you mean \"SymbolErrorCounter\"?)",
        ),
        (
            one("set: {port: host-1, counters: {PortLoopingErrors: 65536}}"),
            "line 3: set: PortLoopingErrors: 65536 does not fit its 16 bits",
        ),
        (
            one("set: {port: host-1, counters: {PortXmitWait: -1}}"),
            "line 3: set: counters.PortXmitWait: \"-1\" is not a whole number that is not negative",
        ),
        (one("set: {port: host-1, counters: {}}"), "line 3: set: counters: at least one"),
        (
            one("set: {port: 'leaf-0-0[0]', counters: {PortXmitWait: 1}}"),
            "line 3: set: leaf-0-0[0] has no counters",
        ),
        // Names.
        (
            one("bad-cable: {into: 'leaf-0[7]', ratio: 1e-9}"),
            "line 3: bad-cable: no node \"leaf-0\" (did you mean \"leaf-0-0\" or \"leaf-0-1\"?)",
        ),
        (one("silent:\n      at: 1s\n      node: host-77"), "line 5: silent: no node \"host-77\""),
        (
            one("unplug: {link: 'leaf-0-0[99]'}"),
            "line 3: unplug: leaf-0-0 has ports 1 to 8, but no port 99",
        ),
        (one("unplug: {link: 'leaf-0-0[8]'}"), "line 3: unplug: leaf-0-0[8] has no cable"),
        (
            one("unplug: {link: leaf-0-0}"),
            "line 3: unplug: port number is missing: leaf-0-0[1] to leaf-0-0[8]",
        ),
        ("seat: leaf-0-0".into(), "line 1: seat: \"leaf-0-0\" is a switch, not a host"),
        ("about: x\nseat: host-9".into(), "line 2: seat: no node \"host-9\""),
        (
            "master: 'leaf-0-0[3]'".into(),
            "line 1: master: \"leaf-0-0[3]\": the SM of a switch is at port 0",
        ),
        (
            one("slow-receiver: {host: leaf-0-0, takes: 1%}"),
            "line 3: slow-receiver: \"leaf-0-0\" is a switch",
        ),
        (one("new-master: {host: nobody}"), "line 3: new-master: no node \"nobody\""),
        // Combinations.
        (
            one("flap: {link: host-1, down: 3s,\n     every: 3s, times: 2}"),
            "line 4: flap: every 3s is not longer than down 3s: the link would never be up",
        ),
        (
            one("flap: {link: host-1, down: []}"),
            "line 3: flap: down: at least one time is required",
        ),
        (one("flap: {link: host-1, down: 0s}"), "line 3: flap: down: must be more than 0"),
        (one("flap: {link: host-1, down: 1s, times: 2}"), "line 3: flap: times is 2, but `every`"),
        (one("flap: {link: host-1, down: [1s, 2s]}"), "line 3: flap: times is 2, but `every`"),
        (
            one("flap: {link: host-1, down: 1s, every: 5s, times: 0}"),
            "line 3: flap: times: must be more",
        ),
        (one("clear: {every: 1s}"), "line 3: clear: `every` requires `times`"),
        (one("clear: {every: 0s, times: 2}"), "line 3: clear: every: must be more than 0"),
        (
            one("clear: {every: 1year, times: 11}"),
            "line 3: clear: 11 times are more than ten years",
        ),
        (
            one("clear: {node: host-1, every: 1ms, times: 100001}"),
            "line 3: clear: the timeline has more than 100000 steps",
        ),
        (
            one("flap: {link: host-1, down: 2s, every: 3s, times: 4000000000}"),
            "line 3: flap: 4000000000 times are more than ten years",
        ),
        (
            one("clear: {node: host-1,\n     port: host-1}"),
            "line 4: clear: set either node or port",
        ),
        (one("unplug: {link: host-1, for: 0s}"), "line 3: unplug: for: must be more than 0"),
        (one("reboot: {node: host-1, down: 0s}"), "line 3: reboot: down: must be more than 0"),
        (one("slow: {node: host-1, by: 0s}"), "line 3: slow: by: must be more than 0"),
        (
            one("move-cable: {from: 'leaf-0-0[8]', to: 'leaf-0-0[7]'}"),
            "line 3: move-cable: leaf-0-0[8] has no cable",
        ),
        (
            one("move-cable: {from: 'leaf-0-0[1]', to: 'host-0[1]'}"),
            "line 3: move-cable: host-0[1] is the other end of the same cable",
        ),
        (
            one("burst: {from: 9, to: host-1, load: 1%}"),
            "line 3: burst: from: 9 is more than the 5 other hosts",
        ),
        (one("burst: {from: 0, to: host-1, load: 1%}"), "line 3: burst: from: must be more than 0"),
        (one("burst: {from: [], to: host-1, load: 1%}"), "line 3: burst: from: at least one host"),
        (
            one("burst: {from: [host-1], to: host-1, load: 1%}"),
            "line 3: burst: host-1 would send to itself",
        ),
        (
            one("burst: {from: [host-2,\n      host-2], to: host-1, load: 1%}"),
            "line 4: burst: host-2 is listed twice",
        ),
        (
            one("burst: {from: 2, to: leaf-0-0, load: 1%}"),
            "line 3: burst: \"leaf-0-0\" is a switch",
        ),
        (one("burst: {from: 2, to: host-1, load: 0}"), "line 3: burst: load: must be more than 0"),
        (one("burst: {from: x, to: host-1, load: 1%}"), "line 3: burst: "),
        // Fabrics.
        (
            "fabric:\n  back-to-back: {radix: 3}".into(),
            "line 2: fabric.back-to-back.radix: unknown key; known: hca",
        ),
        (
            "fabric: {fattree: {}}".into(),
            "line 1: fabric.fattree: \"fattree\" is not one of: fat-tree, back-to-back, dragonfly-plus, xdr, file (did you mean",
        ),
        (
            "fabric:\n  fat-tree: {}\n  back-to-back: {}".into(),
            "line 3: fabric.back-to-back: too many keys",
        ),
        (
            "fabric:\n  fat-tree:\n    hosts: -4".into(),
            "line 3: fabric.fat-tree.hosts: \"-4\" is not a whole number between 0 and 4294967295",
        ),
    ] {
        let error = resolve(&text).map(|_| ()).expect_err(&text);
        assert!(error.contains(says), "{text}\n  says: {error}\n  not:  {says}");
        assert!(error.starts_with("x.yml: line ") && !error.contains('\n'), "{error}");
        assert!(error.chars().count() < 400, "{error}");
    }
}

#[test]
fn unusable_fabrics_are_refused() {
    let error = resolve_on("seed: 1", Net::default(), &Overrides::default()).unwrap_err();
    // No line is wrong in a scenario without a fabric, or in a topology file.
    assert_eq!(error, "x.yml: seat: the fabric has no host with a cable");
    let mut pair = net("{back-to-back: {}}");
    for port in &mut pair.ports {
        port.cable = None;
    }
    assert!(resolve_on("", pair, &Overrides::default()).is_err());
    // The link could not come up again.
    let mut pair = net("{back-to-back: {}}");
    for port in &mut pair.ports {
        (port.rates.widths, port.rates.speeds) = (2, std::iter::once(Speed::Ndr).collect());
    }
    for (limit, says) in [
        ("width: 1x", "degrade: width: the two ends support no width up to 1x"),
        ("speed: SDR", "degrade: speed: the two ends support no speed up to SDR"),
    ] {
        let text = one(&format!("degrade: {{link: host-0, {limit}}}"));
        let error = resolve_on(&text, pair.clone(), &Overrides::default()).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let fine = one("degrade: {link: host-0, width: 8x}");
    let story = resolve_on(&fine, pair, &Overrides::default()).unwrap();
    assert!(matches!(
        story.changes.last().unwrap().change,
        FabricChange::LimitLink { width: Some(Width::X8), .. }
    ));
}

#[test]
fn cable_stays_in_its_plane() {
    let mut planes = net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}");
    // An adapter's port that never had a cable is in no plane.
    let place = |text| FabricIndex::new(&planes).port(text).unwrap().0 as usize;
    let (free, peer) = (place("host-0-mlx5_1"), place("p1-leaf-0-0[1]"));
    (planes.ports[free].cable, planes.ports[peer].cable) = (None, None);
    let says = "x.yml: line 2: move-cable: a cable cannot be moved to another fabric";
    let (into, back) = ("'p0-leaf-0-0[1]', to: host-0-mlx5_1", "host-0-mlx5_1, to: ");
    for (moves, wrong) in [
        (vec!["'p0-leaf-0-0[1]', to: 'p1-leaf-0-0[1]'".to_owned()], Some(2)),
        (vec!["'p0-leaf-0-0[1]', to: host-1-mlx5_1".to_owned()], Some(2)),
        (vec![into.to_owned()], None),
        (vec![into.to_owned(), format!("{back}'p0-leaf-0-0[1]'")], None),
        // It is in the plane that its first cable brought.
        (vec![into.to_owned(), format!("{back}'p1-leaf-0-0[1]'")], Some(3)),
        (vec![into.to_owned(), "host-1-mlx5_1, to: host-0-mlx5_1".to_owned()], Some(3)),
    ] {
        let entry = |(at, ends): (usize, &String)| {
            format!("- move-cable: {{at: {}s, from: {ends}}}\n", at + 1)
        };
        let entries: String = moves.iter().enumerate().map(entry).collect();
        let story =
            resolve_on(&format!("timeline:\n{entries}"), planes.clone(), &Overrides::default());
        let expected = wrong.map(|line| says.replace("line 2", &format!("line {line}")));
        assert_eq!(story.err(), expected, "{moves:?}");
    }
}

#[test]
fn too_large_fabrics_are_refused() {
    for (fabric, says) in [
        (
            "{fat-tree: {hosts: 49151, levels: 3, radix: 64}}",
            "x.yml: line 2: fabric: its switches and adapter ports need 5",
        ),
        (
            "{file: x}",
            "x.yml: line 2: fabric: it consists of 17 separate fabrics; at most 16 can be monitored",
        ),
    ] {
        let net = match fabric {
            "{file: x}" => pairs(17),
            _ => net(fabric),
        };
        let text = format!("traffic: {{pattern: none}}\nfabric: {fabric}");
        let error = resolve_on(&text, net, &Overrides::default()).map(|_| ()).unwrap_err();
        assert!(error.starts_with(says), "{error}");
    }
    assert!(resolve_on("", pairs(16), &Overrides::default()).is_ok());
}

/// Pairs of hosts, each with a cable between them.
fn pairs(count: u32) -> Net {
    let pair = |n| format!("Ca 1 \"a{n}\"\n[1] \"b{n}\"[1]\n\nCa 1 \"b{n}\"\n\n");
    file::parse(&(0..count).map(pair).collect::<String>()).unwrap()
}

#[test]
fn aggregation_node_is_no_host() {
    let named = "Mellanox Technologies Aggregation Node";
    let text = format!(
        "Switch 8 \"s\"\n[1] \"an\"[1]\n[2] \"h1\"[1]\n[3] \"h2\"[1]\n\n\
         vendid=0x2c9\nCa 1 \"an\" # \"{named}\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n"
    );
    let net = || file::parse(&text).unwrap();
    let usual = Overrides::default();
    let story = resolve_on("", net(), &usual).unwrap();
    let label = |port| story.net.label(port);
    assert_eq!(
        (label(story.local_ports[0]), label(story.sm_ports[0])),
        ("h1[1]".into(), "h2[1]".into())
    );
    let flows: Vec<_> = story
        .changes
        .iter()
        .filter_map(|step| match &step.change {
            FabricChange::SetTraffic { flows, .. } => Some(flows.iter()),
            _ => None,
        })
        .flatten()
        .map(|flow| (label(flow.from), label(flow.to)))
        .collect();
    assert_eq!(flows, [("h1[1]".into(), "h2[1]".into()), ("h2[1]".into(), "h1[1]".to_owned())]);
    for text in ["seat: an", "master: an", "timeline: [slow-receiver: {host: an, takes: 1%}]"] {
        let error = resolve_on(text, net(), &usual).map(|_| ()).unwrap_err();
        assert!(error.contains("\"an\" is a part of a switch, not a host"), "{error}");
    }
}

#[test]
fn overrides_are_checked() {
    let file = || Some("a.topo".into());
    let usual = Overrides::default;
    for (text, overrides, says) in [
        ("", Overrides { speedup: 0.0, ..usual() }, "--speedup: 0 is not between 0.1 and 10000"),
        ("", Overrides { speedup: f64::NAN, ..usual() }, "--speedup: NaN is not"),
        ("", Overrides { hosts: Some(0), ..usual() }, "--hosts: 0 is not between 1 and 49151"),
        (
            "",
            Overrides { hosts: Some(40_000), ..usual() },
            "--hosts: 40000 hosts are too many: with 32",
        ),
        (
            "fabric: {back-to-back: {}}",
            Overrides { hosts: Some(3), ..usual() },
            "--hosts: valid only for fat trees",
        ),
        (
            "",
            Overrides { hosts: Some(3), fabric: file(), ..usual() },
            "--hosts: cannot be combined with a topology file, which sets the number of hosts",
        ),
    ] {
        let scenario = Scenario::parse("x.yml", text).unwrap();
        let error = scenario.resolve(&overrides).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
    let missing = Overrides { fabric: Some("/nowhere/a.topo".into()), ..usual() };
    let error = Scenario::parse("x.yml", "").unwrap().resolve(&missing).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/a.topo: "), "{error}");
    let error = Scenario::read("/nowhere/x.yml".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/x.yml: "), "{error}");
}
