//! One fabric as each tool writes it: a switch, and two hosts whose port GUIDs differ from their node GUIDs. The files
//! follow real ones in their form; names and numbers are made up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fabric_dumps::{Dump, Format, formats, from_texts, read};
use ib_fabric::names::Naming;
use ib_mad::fec::Fec;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, Width};
use ib_mad::register::text;
use ib_mad::{Counter, Guid, Moment, PortKey};

const LEAF: Guid = Guid(0xa00);
const HOSTS: [Guid; 2] = [Guid(0xb10), Guid(0xb20)];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(format!("fabric.{name}"))
}

fn dump(names: &[&str]) -> Dump {
    let paths: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
    let dumps = read(&paths).unwrap_or_else(|error| panic!("{error}")).dumps;
    assert_eq!(dumps.len(), 1, "{names:?}");
    dumps.into_iter().next().unwrap()
}

fn count(dump: &Dump, guid: Guid, counter: Counter) -> Option<(u64, bool)> {
    let mut values = dump.ports.get(&PortKey::new(guid, 1))?.counters.values();
    values.find(|(of, ..)| *of == counter).map(|(_, value, is_full)| (value, is_full))
}

#[test]
fn each_format_has_nodes_cables_and_rates() {
    for (name, format) in [
        ("db_csv", Format::DbCsv),
        ("lst", Format::Lst),
        ("net_dump", Format::NetDump),
        ("ibnetdiscover", Format::IbNetDiscover),
        ("portlist", Format::IbNetDiscoverPorts),
        ("iblinkinfo", Format::IbLinkInfo),
    ] {
        let found = dump(&[name]);
        assert_eq!(found.files[0].1, format);
        let kinds = |kind| found.nodes.values().filter(|node| node.kind == Some(kind)).count();
        assert_eq!((kinds(NodeKind::Switch), kinds(NodeKind::Ca)), (1, 2), "{name}");
        assert_eq!(found.links.len(), 2, "{name}: {:?}", found.links);
        let rates = [1, 2].map(|number| {
            let port = &found.ports[&PortKey::new(LEAF, number)];
            (port.width, port.speed)
        });
        let ndr = |width| (Some(width), Some(Speed::Ndr));
        assert_eq!(rates, [ndr(Width::X4), ndr(Width::X2)], "{name}");
        assert_eq!(found.nodes[&LEAF].description, "MF0;leaf-1:MQM9700/U1", "{name}");
        assert!(!found.remarks.iter().any(|it| it.is_unused), "{name}: {:?}", found.remarks);
    }
}

/// ibnetdiscover names a peer before or after its own block, without the vendor.
#[test]
fn naming_a_node_as_a_peer_keeps_its_vendor() {
    let block = |own: u8, peer: u8| {
        format!(
            "vendid=0x2c9\ndevid=0x0\nswitchguid=0x{own}({own})\n\
             Switch 2 \"S-000000000000000{own}\" # \"s{own}\" base port 0 lid {own} lmc 0\n\
             [1] \"S-000000000000000{peer}\"[1] # \"s{peer}\" lid {peer} 4xHDR\n\n"
        )
    };
    let dumps = from_texts(&[&(block(1, 2) + &block(2, 1))]).unwrap().dumps;
    let vendors: Vec<u32> = dumps[0].nodes.values().map(|node| node.vendor_id).collect();
    assert_eq!(vendors, [0x2c9, 0x2c9]);
}

#[test]
fn counters_of_all_formats_are_the_same() {
    for names in [
        &["db_csv"][..],
        &["lst", "pm"],
        &["net_dump", "ibnetdiscover", "pm"],
        &["ibnetdiscover", "ibqueryerrors"],
        &["iblinkinfo", "perfquery"],
        &["portlist", "ibqueryerrors"],
        &["ufm_csv"],
        &["ufm_metrics"],
    ] {
        let found = dump(names);
        // Without another file a host is known by its port only.
        let host =
            HOSTS.into_iter().find(|guid| found.nodes.contains_key(guid)).unwrap_or(Guid(0xb11));
        assert_eq!(count(&found, host, Counter::SymbolErrors), Some((65_535, true)), "{names:?}");
        assert_eq!(count(&found, host, Counter::LinkDowned), Some((3, false)), "{names:?}");
        assert_eq!(count(&found, host, Counter::RcvErrors), Some((12, false)), "{names:?}");
        assert_eq!(found.nodes.len(), 3, "{names:?}");
    }
}

#[test]
fn snapshot_has_what_the_files_say_and_nothing_else() {
    let found = dump(&["db_csv", "cables"]);
    let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_527_200);
    assert!(found.has_time && found.taken_at == expected, "{:?}", found.taken_at);
    let anchor = Anchor { moment: Moment(1_000_000_000), wall: found.taken_at };
    let snapshot = found.snapshot(None, &Naming::default(), anchor);
    let port = |guid, number| snapshot.fabric.find(PortKey::new(guid, number)).unwrap();
    let full = snapshot.reading(port(HOSTS[0], 1)).unwrap();
    assert_eq!(full.get(Counter::XmitData), Some(6_000_000_000));
    assert!(full.saturated.contains(Counter::SymbolErrors));
    assert_eq!(full.get(Counter::RcvLoopingErrors), None, "not supported");
    let without = snapshot.reading(port(HOSTS[1], 1)).unwrap();
    assert!(without.is_empty(), "no counters are no zeros");
    assert_eq!(snapshot.fec[port(LEAF, 1)], Some(Fec::ReedSolomon2));
    assert_eq!(snapshot.fec[port(LEAF, 2)], None);
    assert!(snapshot.status(port(LEAF, 1)).unwrap().link_up());
    let hardware = &snapshot.hardware;
    let temperature = hardware.node(LEAF).unwrap().temperature.unwrap().value;
    assert!((temperature - 52.0).abs() < 1e-6, "{temperature}");
    let module = hardware.port(PortKey::new(LEAF, 1)).unwrap().plugged().unwrap();
    assert_eq!((text(&module.serial_number), module.meters()), ("S001".into(), Some(3.0)));
    assert_eq!((module.kind, module.temperature_alarm()), (1, Some(75.0)));
}

#[test]
fn front_panel_names_are_those_of_the_file() {
    let csv = std::fs::read_to_string(path("db_csv")).unwrap()
        + "START_PORT_HIERARCHY_INFO\nNodeGUID,PortGUID,TemplateGUID,PortNum,Label,ASIC,Cage,Port,Split\n\
           0xa00,0xa00,0x3,1,1/1/1,1,1,1,N/A\nEND_PORT_HIERARCHY_INFO\n";
    let dumps = from_texts(&[&csv]).unwrap().dumps;
    let anchor = Anchor { moment: Moment(1_000_000_000), wall: dumps[0].taken_at };
    let fabric = dumps[0].snapshot(None, &Naming::default(), anchor).fabric;
    let label = |number| fabric.port_label(fabric.find(PortKey::new(LEAF, number)).unwrap());
    assert!(label(1).ends_with("port 1 (1/1/1)"), "{}", label(1));
    assert!(label(2).ends_with("port 2"), "{}", label(2));
}

#[test]
fn aggregated_ports_are_not_read_beside_their_planes() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["net_dump", "net_dump_agg"] {
        std::fs::copy(path("net_dump"), folder.path().join(format!("x.{name}"))).unwrap();
    }
    let found = read(&[folder.path().to_owned()]).unwrap();
    let files = |dumps: &[Dump]| dumps.iter().flat_map(|it| &it.files).count();
    assert_eq!((found.dumps.len(), files(&found.dumps)), (1, 1));
    let remarks: Vec<String> = found.remarks.iter().map(ToString::to_string).collect();
    assert!(remarks.concat().contains("without _agg"), "{remarks:?}");
    std::fs::remove_file(folder.path().join("x.net_dump")).unwrap();
    assert_eq!(read(&[folder.path().to_owned()]).unwrap().dumps.len(), 1, "the only file");
}

#[test]
fn second_reading_is_another_dump_with_the_same_topology() {
    let net = std::fs::read_to_string(path("ibnetdiscover")).unwrap();
    let first = std::fs::read_to_string(path("ibqueryerrors")).unwrap();
    let second = first.replace("PortRcvErrors == 12", "PortRcvErrors == 20");
    let dumps = from_texts(&[&net, &first, &second]).unwrap().dumps;
    assert_eq!(dumps.len(), 2);
    let errors =
        [0, 1].map(|nth: usize| count(&dumps[nth], HOSTS[0], Counter::RcvErrors).unwrap().0);
    assert_eq!(errors, [12, 20]);
    assert_eq!(dumps[0].links, dumps[1].links);
}

#[test]
fn damaged_dump_is_one_line_with_its_place() {
    let csv = std::fs::read_to_string(path("db_csv")).unwrap();
    let error = |text: &str| from_texts(&[text]).map(|_| ()).unwrap_err().to_string();
    for (text, says) in [
        (
            csv[..csv.find("END_LINKS").unwrap()].to_owned(),
            "line 30: section LINKS has no end: the file is truncated",
        ),
        (csv.replace("END_PORTS", "END_POR"), "line 24: section PORTS ends with \"END_POR\""),
        (csv.replace("END_PORTS\n", ""), "section PORTS has no end: the file is damaged"),
        (
            csv.replace(",4129,128,0,713,1\n", "\n"),
            "line 12: section NODES has 13 columns, this row 8",
        ),
        (csv.replace("0x0000000000000b20", "0xhost2"), "line 13: \"0xhost2\" is not a GUID"),
        (
            csv.replace(",1,0x0000000000000b10,1", ",1,0x0000000000000b10,900"),
            "\"900\" is not a port number",
        ),
        (
            "Switch\t8 \"leaf\"\t# \"leaf\"\n".into(),
            "line 1: expected a GUID in hexadecimal digits: node id \"leaf\" contains no GUID",
        ),
        (
            "{ CA Ports:01 NodeGUID:b10 PN:01 }\n".into(),
            "line 1: expected two ends in a line of *.lst",
        ),
        ("hello\n".into(), "unknown format"),
        (
            "# Port counters: Lid 3 port 1\nSymbolErrorCounter:....1\n".into(),
            "add a file with the topology",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(says) && !error.contains('\n'), "{says}: {error}");
    }
}

#[test]
fn more_nodes_than_a_subnet_can_have_are_refused() {
    let net = |nodes: u64| {
        let node = |id| format!("Switch\t1 \"S-{id:016x}\"\t# \"s\" enhanced port 0 lid 1 lmc 0\n");
        (1..=nodes).map(node).collect::<String>()
    };
    let list = (1..=100_001).map(|id| format!("SW 1 1 0x{id:016x} 1x SDR 's'\n"));
    for text in [net(100_001), list.collect()] {
        let error = from_texts(&[&text]).unwrap_err().to_string();
        assert!(error.contains("contains more than 100000 nodes"), "{error}");
    }
    assert_eq!(from_texts(&[&net(100_000)]).unwrap().dumps[0].nodes.len(), 100_000);
}

#[test]
fn every_prefix_is_read_or_refused() {
    for format in Format::ALL {
        let name = match format {
            Format::IbNetDiscoverPorts => "portlist",
            other => other.label(),
        };
        let text = std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(formats(text.as_bytes()), [format]);
        for end in 0..text.len() {
            let Some(prefix) = text.get(..end) else { continue };
            if let Err(error) = from_texts(&[prefix]) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}

#[test]
fn topology_survives_conversion() {
    for name in [
        "db_csv",
        "lst",
        "net_dump",
        "ibnetdiscover",
        "portlist",
        "iblinkinfo",
        "ufm_csv",
        "ufm_metrics",
    ] {
        let found = dump(&[name]);
        let again = from_texts(&[&found.to_ibnetdiscover()]).unwrap().dumps;
        assert_eq!(again[0].links, found.links, "{name}");
        assert_eq!(again[0].nodes.len(), found.nodes.len(), "{name}");
        let rate = |dump: &Dump| {
            dump.ports[&PortKey::new(LEAF, 2)].width.zip(dump.ports[&PortKey::new(LEAF, 2)].speed)
        };
        assert_eq!(rate(&again[0]), rate(&found), "{name}");
    }
}
