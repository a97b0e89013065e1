//! Dumps as people paste them, from public notes, mails and test data. Each is a kind of text or fabric that others have,
//! too: one switch only, indented, quoted, port GUIDs beside node GUIDs, names with blanks, planes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use fabric_dumps::{Dump, Dumps, from_files};
use ib_mad::fec::Fec;
use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, Width};
use ib_mad::{Counter, Guid, PortKey};

fn text(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pasted").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn all(names: &[&str]) -> Dumps {
    let files = names.iter().map(|name| (PathBuf::from(name), text(name))).collect();
    from_files(files).unwrap_or_else(|error| panic!("{error}"))
}

fn one(names: &[&str]) -> Dump {
    let found = all(names);
    assert_eq!(found.dumps.len(), 1, "{names:?}");
    found.dumps.into_iter().next().unwrap()
}

fn name(dump: &Dump, end: PortKey) -> String {
    format!("{}/{}", dump.nodes[&end.guid].description, end.number)
}

/// The links by the names of their ends.
fn links(dump: &Dump) -> Vec<String> {
    let mut links: Vec<String> = dump
        .links
        .iter()
        .map(|(a, b)| format!("{} - {}", name(dump, *a), name(dump, *b)))
        .collect();
    links.sort();
    links
}

type Rate = (Option<Width>, Option<Speed>);

fn rates(dump: &Dump, end: &str) -> Vec<Rate> {
    let ports = dump.ports.iter().filter(|(key, _)| name(dump, **key) == end);
    ports.map(|(_, port)| (port.width, port.speed)).collect()
}

fn is_nothing_unused(dump: &Dump) -> bool {
    !dump.remarks.iter().any(|remark| remark.is_unused)
}

fn kinds(dump: &Dump) -> BTreeMap<&str, NodeKind> {
    dump.nodes.values().map(|node| (&*node.description, node.kind.unwrap())).collect()
}

fn count(dump: &Dump, end: &str, counter: Counter) -> Option<(u64, bool)> {
    let (_, port) = dump
        .ports
        .iter()
        .find(|(key, port)| name(dump, **key) == end && !port.counters.is_empty())?;
    port.counters
        .values()
        .find(|(of, ..)| *of == counter)
        .map(|(_, value, is_full)| (value, is_full))
}

const EDR: Rate = (Some(Width::X4), Some(Speed::Edr));

#[test]
fn far_ends_without_guids_are_nodes() {
    let dump = one(&["one-switch.iblinkinfo"]);
    let switch = "Quantum Mellanox Technologies";
    assert_eq!(
        links(&dump),
        [
            format!("MF0;rack-03-1:MQM8700/U1/40 - {switch}/40"),
            format!("Mellanox Technologies Aggregation Node/1 - {switch}/41"),
            format!("node1 HCA-2/1 - {switch}/24"),
            format!("node2 HCA-2/1 - {switch}/23"),
            format!("node3 HCA-2/1 - {switch}/21"),
            format!("node4 HCA-2/1 - {switch}/22"),
        ]
        .map(|link| {
            // The lower GUID is first; a made-up one is above all others.
            let (a, b) = link.split_once(" - ").unwrap();
            format!("{b} - {a}")
        })
        .iter()
        .map(String::as_str)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
    assert_eq!(rates(&dump, "node3 HCA-2/1"), [EDR]);
    assert_eq!(rates(&dump, "MF0;rack-03-1:MQM8700/U1/40"), [(Some(Width::X4), Some(Speed::Hdr))]);
    assert_eq!(kinds(&dump)["MF0;rack-03-1:MQM8700/U1"], NodeKind::Switch);
    assert_eq!(kinds(&dump)["node3 HCA-2"], NodeKind::Ca);
    let down =
        dump.ports.values().filter(|port| port.state == Some(ib_mad::port_state::PortState::Down));
    assert_eq!(down.count(), 35);
    // The hint: both ends support HDR.
    let port = &dump.ports[&PortKey::new(Guid(0x08c0_eb03_00ad_d04e), 21)];
    assert_eq!(port.speeds_supported.fastest(), Some(Speed::Hdr));
}

#[test]
fn fdr10_is_not_qdr() {
    let dump = one(&["fdr10.iblinkinfo"]);
    let switch = "MF0;ib-sw-1:SX6036/U1";
    assert_eq!(rates(&dump, &format!("{switch}/33")), [(Some(Width::X4), Some(Speed::Fdr10))]);
    assert_eq!(rates(&dump, &format!("{switch}/34")), [(Some(Width::X4), Some(Speed::Qdr))]);
    let slow = &dump.ports[&PortKey::new(Guid(0x0002_c903_00a1_b2c0), 34)];
    assert!(slow.speeds_supported.contains(Speed::Fdr10));
    assert!(is_nothing_unused(&dump), "{:?}", dump.remarks);
    // So is it for the simulator.
    assert!(dump.to_ibnetdiscover().contains("4xFDR10"));
}

#[test]
fn port_guid_and_node_guid_are_one_node() {
    let all = ["mixed-guids.lines", "mixed-guids.ports", "mixed-guids.errors"];
    let (leaf, host) = ("hxa-su1-leaf-r1/1", "hxa-gpu01 mlx5_0/1");
    for (files, nodes, count_of_links) in
        [(&all[..], 13, 9), (&[all[0], all[2]][..], 5, 3), (&[all[1], all[2]][..], 12, 8)]
    {
        let dump = one(files);
        assert_eq!((dump.nodes.len(), dump.links.len()), (nodes, count_of_links), "{files:?}");
        assert!(is_nothing_unused(&dump), "{files:?}: {:?}", dump.remarks);
        assert_eq!(count(&dump, leaf, Counter::SymbolErrors), Some((250, false)), "{files:?}");
        assert_eq!(count(&dump, host, Counter::SymbolErrors), Some((12, false)), "{files:?}");
        let counted: Vec<_> =
            dump.ports.iter().filter(|(_, port)| !port.counters.is_empty()).collect();
        assert_eq!(counted.len(), 2, "{files:?}");
        let is_linked = |end: &PortKey| dump.links.iter().any(|(a, b)| a == end || b == end);
        assert!(counted.iter().all(|(end, _)| is_linked(end)), "{files:?}");
    }
    // Line mode does not say what a node is.
    let kinds_of = one(&all[..1]);
    for switch in ["hxa-su1-leaf-r1", "hxa-su2-leaf-r2", "hxa-spine01"] {
        assert_eq!(kinds(&kinds_of)[switch], NodeKind::Switch);
    }
}

#[test]
fn indented_and_quoted_texts_are_the_same() {
    let prefixed = |name: &str, prefix: &str| {
        let text = String::from_utf8(text(name)).unwrap();
        let lines = text.lines().map(|line| format!("{prefix}{line}\n"));
        from_files(vec![(PathBuf::from("text"), lines.collect::<String>().into_bytes())]).unwrap()
    };
    for (name, nodes, count_of_links) in
        [("man-page.net", 6, 7), ("mail.iblinkinfo", 4, 3), ("back-to-back.iblinkinfo", 2, 1)]
    {
        for prefix in ["", "   ", "> ", ">> ", "\t", "| ", "   > "] {
            let found = prefixed(name, prefix);
            let dump = &found.dumps[0];
            assert_eq!(
                (dump.nodes.len(), dump.links.len()),
                (nodes, count_of_links),
                "{name} {prefix:?}"
            );
            assert!(is_nothing_unused(dump), "{name} {prefix:?}: {:?}", dump.remarks);
        }
    }
}

#[test]
fn ends_that_contradict_each_other_keep_what_each_says() {
    let dump = one(&["man-page.net"]);
    let sdr = |width| (Some(width), Some(Speed::Sdr));
    assert_eq!(rates(&dump, "ISR9024 Voltaire/10"), [sdr(Width::X4)]);
    assert_eq!(rates(&dump, "SW-6IB4 Voltaire/1"), [sdr(Width::X1)]);
    assert_eq!(dump.nodes[&Guid(0x0054_42ba_0000_3080)].lid, Some(6));
    assert_eq!(dump.ports[&PortKey::new(Guid(0x0008_f104_0396_0984), 1)].lmc, 1);
}

#[test]
fn ports_of_a_block_are_one_adapter() {
    let dump = one(&["dual-port.iblinkinfo"]);
    assert_eq!((dump.nodes.len(), dump.links.len()), (9, 9));
    let hosts: Vec<_> =
        dump.nodes.iter().filter(|(_, node)| node.description == "host-9 HCA-1").collect();
    assert_eq!(hosts.len(), 1);
    assert_eq!(hosts[0].1.port_count, 2);
}

#[test]
fn report_without_errors_is_a_reading() {
    let found = all(&["later.ports", "healthy.errors", "later.errors"]);
    assert_eq!(found.dumps.len(), 2);
    let port = "node-3002 HCA-1/1";
    assert_eq!(count(&found.dumps[0], port, Counter::XmitData), None);
    assert_eq!(count(&found.dumps[1], port, Counter::XmitData), Some((6_399_401, false)));
    assert_eq!(count(&found.dumps[1], port, Counter::RcvData), Some((1_758_872, false)));
    let alone = one(&["healthy.errors"]);
    assert!(
        alone.nodes.is_empty()
            && alone.remarks[0].to_string().contains("1 nodes checked, 0 bad nodes found")
    );
}

#[test]
fn warnings_between_the_lines_and_lost_headers_are_no_loss() {
    let ports = [Guid(0x0c42_a103_00dc_f8e2), Guid(0x0c42_a103_00dd_0bea)];
    let symbols = |dump: &Dump| {
        ports.map(|guid| {
            let port = &dump.ports[&PortKey::new(guid, 1)];
            port.counters.values().find(|(of, ..)| *of == Counter::SymbolErrors).map(|it| it.1)
        })
    };
    for file in ["with-warnings.errors", "without-headers.errors"] {
        assert_eq!(symbols(&one(&[file])), [Some(3), Some(4)], "{file}");
    }
    // The header of the second node is lost: it has not the name of the first one.
    let dump = one(&["with-warnings.errors"]);
    assert_eq!(ports.map(|guid| dump.nodes[&guid].description.clone()), ["HOSTXXX HCA-1", ""]);
    let net = "CA 1 1 0xc42a10300dd0bea 4x HDR - SW 2 7 0xa0 ( 'HOSTYYY HCA-1' - 'leaf' )\n";
    for net_name in ["a.txt", "z.txt"] {
        let mut files = vec![
            (PathBuf::from("errors"), text("with-warnings.errors")),
            (PathBuf::from(net_name), net.as_bytes().to_vec()),
        ];
        files.sort();
        let found = from_files(files).unwrap();
        assert_eq!(
            count(&found.dumps[0], "HOSTYYY HCA-1/1", Counter::SymbolErrors),
            Some((4, false))
        );
    }
}

#[test]
fn free_ports_and_old_forms_of_port_lists_are_read() {
    let dump = one(&["free-ports.ports"]);
    let names: Vec<&str> = dump.nodes.values().map(|node| &*node.description).collect();
    for name in [
        "RCK0406-spine-IB01",
        "RCK0406-spine-IB02",
        "RCK0406-spine-IB03",
        "Infiniscale-IV Mellanox Technologies",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    // The port of the aggregation node has two peers in this file.
    assert_eq!(dump.links.len(), 2);
    let told = dump.remarks.iter().find(|remark| remark.is_unused).unwrap().to_string();
    assert!(told.contains("link left out: ") && told.contains("RCK0406-spine-IB03/81"), "{told}");

    let dump = one(&["unquoted.ports"]);
    let names: Vec<&str> = dump.nodes.values().map(|node| &*node.description).collect();
    assert_eq!(names, ["Infiniscale-IV Mellanox Technologies", "SwitchX -  Mellanox Technologies"]);
    assert!(dump.links.is_empty() && is_nothing_unused(&dump));
}

#[test]
fn tables_with_a_header_at_the_beginning_of_the_line_are_read() {
    let dump = one(&["ndr.net_dump"]);
    assert_eq!(links(&dump), ["MF0;ib-leaf-08:MQM9700/U1/1 - worker20 mlx5_3/1"]);
    let port = &dump.ports[&PortKey::new(Guid(0x9c05_9103_0012_a340), 1)];
    assert_eq!(
        (port.width, port.speed, port.fec),
        (Some(Width::X4), Some(Speed::Ndr), Some(Fec::ReedSolomon2))
    );
    let dump = one(&["no-indent.net_dump"]);
    assert_eq!(links(&dump), ["MF0;leaf01:MQM9700/U1/1 - server01 mlx5_0/1"]);
    assert_eq!(rates(&dump, "server01 mlx5_0/1"), [(Some(Width::X4), Some(Speed::Xdr))]);
}

#[test]
fn planes_are_links_of_their_own() {
    let dump = one(&["planes.net_dump"]);
    assert_eq!((dump.nodes.len(), dump.links.len()), (6, 8));
    for plane in 1..=4 {
        let link = format!("MF0;xdr-leaf-10:Q3400_RA/U{plane}/2 - pg-1-2-hpc mlx5_0/{plane}");
        assert!(links(&dump).contains(&link), "{link}: {:?}", links(&dump));
    }
    assert_eq!(rates(&dump, "pg-1-1-hpc mlx5_0/3"), [(Some(Width::X1), Some(Speed::Xdr))]);
    let port = &dump.ports[&PortKey::new(Guid(0xa088_c203_003f_11c0), 1)];
    assert_eq!(port.fec, Some(Fec::Rs544Plr));
    assert!(is_nothing_unused(&dump), "{:?}", dump.remarks);

    // All planes on one node: a table for each, and an unknown speed.
    let text = String::from_utf8(text("planes.net_dump")).unwrap();
    let mut prism = String::new();
    let mut table = 0;
    for line in text.lines() {
        if line.starts_with('"') {
            table += 1;
            let header = "Mellanox, 0xa088c203003f1100, LID 2001";
            writeln!(prism, "\"MF0;xdr-1:Q3401_RD/U{table}\", {header}").unwrap();
        } else {
            let line = line.replace(": 200 :", ": ? :");
            let line = line.replace("sw1p1 : 1 ", &format!("sw1p1 : {} ", 4 * table - 3));
            prism.push_str(&line.replace("sw1p2 : 2 ", &format!("sw1p2 : {} ", 4 * table - 2)));
            prism.push('\n');
        }
    }
    let found = from_files(vec![(PathBuf::from("prism"), prism.into_bytes())]).unwrap();
    let dump = &found.dumps[0];
    assert_eq!((dump.nodes.len(), dump.links.len()), (3, 8), "{:?}", dump.remarks);
    assert_eq!(dump.nodes[&Guid(0xa088_c203_003f_1100)].description, "MF0;xdr-1:Q3401_RD");
}

#[test]
fn numbers_of_lst_are_hexadecimal() {
    let dump = one(&["one-slow.lst"]);
    let switch = Guid(0x0002_c903_0068_8830);
    assert_eq!((dump.nodes.len(), dump.links.len(), dump.nodes[&switch].port_count), (6, 5, 36));
    let port = &dump.ports[&PortKey::new(switch, 20)];
    assert_eq!((port.width, port.speed), (Some(Width::X4), Some(Speed::Sdr)));
}

#[test]
fn names_with_commas_brackets_and_quotes_are_whole() {
    let host = "dbnode01 S 192.0.2.110,192.0.2.111 HCA-1";
    for files in [&["commas.net", "commas.errors"][..], &["commas.errors"]] {
        let dump = one(files);
        let end = format!("{host}/1");
        assert_eq!(count(&dump, &end, Counter::Vl15Dropped), Some((232, false)), "{files:?}");
        assert_eq!(
            count(&dump, &end, Counter::XmitWait),
            Some((u64::from(u32::MAX), true)),
            "{files:?}"
        );
    }
    // A row whose quotation marks are not doubled as CSV needs it.
    let dump = one(&["commas.db_csv", "commas.errors"]);
    assert_eq!(dump.nodes.len(), 2, "{:?}", dump.nodes);
    assert_eq!(dump.nodes[&Guid(0x0010_e000_0192_ab50)].description, host);
    let switch = &dump.nodes[&Guid(0x0010_e000_040f_1230)];
    assert!(
        switch.description.starts_with("SUN DCS 36P QDR sw-ib1 \"spare, rack \"A\""),
        "{}",
        switch.description
    );
    assert_eq!((switch.port_count, switch.kind), (36, Some(NodeKind::Switch)));
    assert_eq!(count(&dump, &format!("{host}/1"), Counter::Vl15Dropped), Some((232, false)));

    let dump = one(&["brackets.net"]);
    let switch = "ISR2012/ISR2004 Voltaire sLB-2024";
    assert!(
        links(&dump).contains(&format!("{switch}/23 - SW6 ISR9024D nodes [60-71]/11")),
        "{:?}",
        links(&dump)
    );
    assert_eq!(dump.links.len(), 6);
    assert_eq!(rates(&dump, "node35/1"), [(None, None)]);
    assert_eq!(rates(&dump, "node133/1"), [(Some(Width::X4), Some(Speed::Sdr))]);
}

#[test]
fn redacted_guids_are_an_error_with_the_line() {
    let dump = one(&["ndr200.net"]);
    assert_eq!((dump.nodes.len(), dump.links.len()), (6, 5));
    let switch = &dump.nodes[&Guid(0x9c05_9103_0012_a340)];
    assert_eq!(switch.port_count, 129);
    let error =
        from_files(vec![("redacted".into(), text("redacted.net"))]).unwrap_err().to_string();
    assert!(error.starts_with("redacted: line 8: expected a GUID or number in hex"), "{error}");
    let without = String::from_utf8(text("redacted.net")).unwrap();
    let without =
        without.replace("guid=0x9c05<redacted>", "guid=0x9c05").replace("(9c05<redacted>)", "");
    let files = vec![("redacted".into(), without.into_bytes())];
    let error = from_files(files).unwrap_err().to_string();
    assert!(
        error.starts_with("redacted: line 10: ") && error.contains("contains no GUID"),
        "{error}"
    );
}
