use super::*;
use crate::net::Port;
use crate::net::testing::write;
use ib_mad::rate::{Speed, SpeedSet};
use proptest::prelude::*;

/// Output of ibnetdiscover for two switches of a chassis, a router and two hosts.
const DISCOVERED: &str = r#"#
# Topology file: generated on Tue Mar  5 11:02:49 2024
#
# Initiated from node 0c42a103007ba4d2 port 0c42a103007ba4d2

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8599f0300a1b2c0
switchguid=0xb8599f0300a1b2c0(b8599f0300a1b2c8)
Switch	41 "S-b8599f0300a1b2c0"		# "MF0;leaf #1:MQM8700/U1" enhanced port 0 lid 2 lmc 0
[1]	"H-0c42a103007ba4d2"[1](c42a103007ba4d2) 		# "node1 mlx5_0" lid 1 4xHDR
[2][ext 9]	"S-b8599f0300a1b2e0"[20][ext 3]		# "spine lid 7" lid 3 4xFDR10
[40]	"R-0008f104"[2](8f106) 		# "gate" lid 9 2xEDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8599f0300a1b2e0
switchguid=0xb8599f0300a1b2e0(b8599f0300a1b2e0)
Switch	41 "S-b8599f0300a1b2e0"		# "spine lid 7" base port 0 lid 3 lmc 2
[20]	"S-b8599f0300a1b2c0"[2]		# "MF0;leaf #1:MQM8700/U1" lid 2 4xFDR10

vendid=0x2c9
devid=0x101b
sysimgguid=0xc42a103007ba4d0
caguid=0xc42a103007ba4d2
Ca	1 "H-0c42a103007ba4d2"		# "node1 mlx5_0"
[1](c42a103007ba4d2) 	"S-b8599f0300a1b2c0"[1]		# lid 1 lmc 1 "MF0;leaf #1:MQM8700/U1" lid 2 4xHDR

vendid=0x8f1
devid=0x5a2
rtguid=0x8f104
Rt	2 "R-0008f104"		# "gate"
[2](8f106) 	"S-b8599f0300a1b2c0"[40]		# lid 9 lmc 0 "MF0;leaf #1:MQM8700/U1" lid 2 2xEDR
"#;

/// Features of ibsim's format that ibnetdiscover does not use.
const BY_HAND: &str = r##"# a comment
width=3
speed=7
extspeed=3
Switch 8 "Switch1"
[1] "Hca1"[1] w=8 s=0	e = 1
# a comment between cables
[2]	"mod#Hca1" [2]
[3]	"mod@trunk"
devid=4123
Hca	0x2 "Hca1" # Plain words lid 5
[2]	"Switch1"[4]
this line is nobody's
module="mod"
hcaguids+0x50
vendid=713
Hca 2 "Hca1"
@[1] "trunk" s=3
[2] "#Switch1"[2]
Switch 010 "S"
[1] "T"
Switch 2 "T"
"##;

fn net(text: &str) -> Net {
    parse(text).unwrap_or_else(|e| panic!("{e}"))
}

fn at<'a>(net: &'a Net, id: &str, number: u8) -> &'a Port {
    let node = net.node_ids().find(|node| net.node(*node).id == id).unwrap();
    net.port(net.port_by_number(node, number).unwrap())
}

fn cables(net: &Net) -> Vec<String> {
    let ends = net.port_ids().filter_map(|end| Some((end, net.port(end).cable?)));
    ends.filter(|(end, peer)| end < peer)
        .map(|(end, peer)| format!("{} {}", net.label(end), net.label(peer)))
        .collect()
}

#[test]
fn ibnetdiscover_output_is_read() {
    let net = net(DISCOVERED);
    let leaf = &net.nodes[0];
    assert_eq!(leaf.description, "MF0;leaf #1:MQM8700/U1");
    assert_eq!((leaf.kind, leaf.model.name, leaf.port_count), (NodeKind::Switch, "quantum", 41));
    assert!(leaf.enhanced_port0 && !net.nodes[1].enhanced_port0);
    assert_eq!(
        cables(&net),
        [
            "S-b8599f0300a1b2c0[1] H-0c42a103007ba4d2[1]",
            "S-b8599f0300a1b2c0[2] S-b8599f0300a1b2e0[20]",
            "S-b8599f0300a1b2c0[40] R-0008f104[2]",
        ]
    );
    let host = &net.nodes[2];
    assert_eq!((host.kind, host.model.name, host.vendor_id), (NodeKind::Ca, "connectx-6", 0x2c9));
    assert_eq!(host.system_guid, Guid(0x0c42_a103_007b_a4d0));
    let router = &net.nodes[3];
    assert_eq!(
        (router.kind, router.device_id, router.system_guid.0),
        (NodeKind::Router, 0x5a2, 0x8f104)
    );
    for (id, number, guid, lid, lmc) in [
        ("S-b8599f0300a1b2c0", 0, 0xb859_9f03_00a1_b2c8, Some(2), 0),
        ("S-b8599f0300a1b2c0", 1, 0xb859_9f03_00a1_b2c8, None, 0),
        ("S-b8599f0300a1b2e0", 0, 0xb859_9f03_00a1_b2e0, Some(3), 2),
        ("H-0c42a103007ba4d2", 1, 0x0c42_a103_007b_a4d2, Some(1), 1),
        ("R-0008f104", 1, 0x8f105, None, 0),
        ("R-0008f104", 2, 0x8f106, Some(9), 0),
    ] {
        let port = at(&net, id, number);
        assert_eq!(
            (port.guid.0, port.lid.map(|lid| lid.0), port.lmc),
            (guid, lid, lmc),
            "{id}[{number}]"
        );
    }
    for (id, number, widths, fastest) in [
        ("S-b8599f0300a1b2c0", 1, 3, Speed::Hdr),
        ("H-0c42a103007ba4d2", 1, 3, Speed::Hdr),
        ("S-b8599f0300a1b2c0", 2, 3, Speed::Fdr10),
        ("R-0008f104", 2, 16, Speed::Edr),
        // Ports without a line have the rates of the node's other ports.
        ("R-0008f104", 1, 16, Speed::Edr),
        ("S-b8599f0300a1b2c0", 3, 3 | 16, Speed::Hdr),
    ] {
        let port = at(&net, id, number);
        assert_eq!(
            (port.rates.widths, port.rates.speeds.fastest()),
            (widths, Some(fastest)),
            "{id}[{number}]"
        );
    }
}

#[test]
fn ibsim_files_are_read() {
    let net = net(BY_HAND);
    assert_eq!(
        cables(&net),
        [
            "Switch1[1] Hca1[1]",
            "Switch1[2] mod#Hca1[2]",
            "Switch1[3] mod#Hca1[1]",
            "Switch1[4] Hca1[2]",
            "mod#S[1] mod#T[1]",
        ]
    );
    let shown: Vec<_> = net
        .nodes
        .iter()
        .map(|n| (n.description.as_str(), n.guid.0, n.vendor_id, n.device_id, n.port_count))
        .collect();
    assert_eq!(
        shown,
        [
            ("Switch1", 0x20_0000, 0, 0, 8),
            ("Plain words", 0x10_0000, 0, 4123, 2),
            ("mod#Hca1", 0x10_0050, 713, 4123, 2),
            ("mod#S", 0x20_0001, 0, 4123, 8),
            ("mod#T", 0x20_0002, 0, 4123, 2),
        ]
    );
    let speeds = |speeds: &[Speed]| speeds.iter().copied().collect::<SpeedSet>();
    let (low, ext) = ([Speed::Sdr, Speed::Ddr, Speed::Qdr], [Speed::Fdr, Speed::Edr]);
    let all = speeds(&[low.as_slice(), &ext].concat());
    for (id, number, widths, enabled) in [
        ("Switch1", 1, 8, speeds(&[Speed::Qdr, Speed::Fdr])),
        ("Switch1", 2, 3, all),
        ("Switch1", 0, 3, all),
        ("mod#Hca1", 1, 3, speeds(&[Speed::Sdr, Speed::Ddr, Speed::Fdr, Speed::Edr])),
    ] {
        let port = at(&net, id, number);
        assert_eq!((port.rates.widths, port.rates.speeds), (widths, enabled), "{id}[{number}]");
    }
}

#[test]
fn written_net_is_read_again() {
    for text in [DISCOVERED, BY_HAND] {
        let net = net(text);
        assert_eq!(parse(&write(&net)).as_ref(), Ok(&net), "{}", write(&net));
    }
    // Quotes are not preserved.
    let mut quoted = net("Switch 1 \"a\" # say \"what\"\n");
    assert_eq!(quoted.nodes[0].description, "say \"what\"");
    quoted.nodes[0].description = "say 'what'".to_owned();
    assert_eq!(parse(&write(&net("Switch 1 \"a\" # say \"what\"\n"))), Ok(quoted));
}

#[test]
fn mistakes_are_reported_with_their_line() {
    for (text, says) in [
        ("", "no nodes"),
        ("hello\n# Switch 1 \"a\"\n", "no nodes"),
        ("Switch \"a\"", "line 1: bad number for the number of ports"),
        ("\n\nSwitch 8 a", "line 3: the node has no quoted id"),
        ("Switch 8 \"a", "line 1: the node has no quoted id"),
        ("Switch 8 \"a@b\"", "line 1: bad node id \"a@b\""),
        ("Switch 0 \"a\"", "line 1: node \"a\" has 0 ports; it must have 1 to 254"),
        ("Switch 999 \"a\"", "line 1: node \"a\" has 999 ports; it must have 1 to 254"),
        ("Switch 8 \"a\"\nHca 1 \"a\"", "line 2: duplicate node \"a\""),
        ("caguid=5\nHca 1 \"a\"\ncaguid=5\nCa 1 \"b\"", "line 4: node \"b\" has the GUID"),
        ("vendid", "line 1: \"vendid\" without \"=\""),
        (
            "vendid=0x1000000",
            "line 1: bad number for vendid: \"0x1000000\"; expected at most 24 bits",
        ),
        ("devid=12ab", "line 1: bad number for devid: \"12ab\""),
        ("devid=-1", "line 1: bad number for devid: \"-1\""),
        ("switchguid=0x12345678901234567", "line 1: bad number for switchguid"),
        ("width=32", "line 1: bad number for width: \"32\""),
        ("speed=0", "line 1: bad number for speed: \"0\""),
        ("extspeed=16", "line 1: bad number for extspeed: \"16\""),
        ("module=\"a#b\"", "line 1: bad module prefix \"a#b\""),
        ("include \"other\"", "line 1: \"include\" is supported by ibsim only"),
        ("do Unlink \"a\"[1]", "line 1: \"do\" is supported by ibsim only"),
        ("[1] \"a\"[1]", "line 1: cable without a node"),
        ("Switch 8 \"a\"\n\n[1] \"a\"[2]", "line 3: cable without a node"),
        (
            "Switch 8 \"a\"\n[9] \"a\"[2]",
            "line 2: node \"a\" has no port 9 for a cable; its ports are 1 to 8",
        ),
        ("Switch 8 \"a\"\n[0] \"a\"[2]", "line 2: node \"a\" has no port 0 for a cable"),
        ("Switch 8 \"a\"\n[300] \"a\"[2]", "line 2: node \"a\" has no port 300 for a cable"),
        ("Switch 8 \"a\"\n[1x] \"a\"[2]", "line 2: bad number for the port: \"[1x] \\\"a\\\"[2]\""),
        ("Switch 8 \"a\"\n[1] \"a\"[b]", "line 2: bad number for the other end's port: \"[b]\""),
        ("Switch 8 \"a\"\n[1] a[2]", "line 2: the cable has no quoted id of the other end"),
        ("Switch 8 \"a\"\n[1] \"a\"[2] w=99", "line 2: bad number for an option: \"w=99\""),
        ("Switch 8 \"a\"\n[1] \"a\"[2] w=", "line 2: bad number for an option: \"\""),
        ("Switch 8 \"a\"\n[1] \"a\"[1]", "line 2: a[1] cannot be connected to itself"),
        (
            "Switch 8 \"a\"\n[1] \"b\"[1]",
            "line 2: a[1] is connected to \"b\", which is not in the file",
        ),
        (
            "Switch 8 \"a\"\n[1] \"@b\"",
            "line 2: a[1] is connected to \"@b\", which is not in the file",
        ),
        ("Hca 2 \"a\"\n@[1] \"b\"\n@[2] \"b\"", "line 3: alias \"b\" is defined twice"),
        (
            "Switch 8 \"a\"\n[1] \"b\"[3]\nHca 2 \"b\"",
            "line 2: node \"b\" has no port 3 for a cable; its ports are 1 to 2",
        ),
        (
            "Switch 8 \"a\"\n[1] \"b\"[1]\nHca 2 \"b\"\n[1] \"a\"[2]",
            "line 4: b[1] is connected to a[2] here, but b[1] is connected to a[1] in line 2",
        ),
        (
            "Switch 8 \"a\"\n[1] \"b\"[1]\nHca 2 \"b\"\nSwitch 8 \"c\"\n[4] \"b\"[1]",
            "line 5: c[4] is connected to b[1] here, but b[1] is connected to a[1] in line 2",
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[2]\n[1] \"a\"[3]",
            "line 3: a[1] is connected to a[3] here, but a[1] is connected to",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(says) && !error.contains('\n'), "{text:?}: {error}");
    }
}

#[test]
fn number_of_ports_is_limited() {
    let lines: Vec<_> = (0..20_000).map(|n| format!("Switch 254 \"{n}\"\n")).collect();
    let error = parse(&lines.concat()).unwrap_err().to_string();
    assert!(error.ends_with("the net has more than 1048576 ports"), "{error}");
}

#[test]
fn long_descriptions_are_cut_at_a_character() {
    let text = format!("Switch 1 \"a\" # \"{}ü\"", "x".repeat(63));
    assert_eq!(net(&text).nodes[0].description, "x".repeat(63));
}

#[test]
fn description_may_have_quotes() {
    for (header, description) in [
        (r#"Ca 1 "h" # "node "01" mlx5_0""#, r#"node "01" mlx5_0"#),
        (r#"Ca 1 "h" # "node "01" mlx5_0"  "#, r#"node "01" mlx5_0"#),
        (r#"Ca 1 "h" # "x" lid 3""#, r#"x" lid 3"#),
        (r#"Switch 4 "h" # "rack "7" leaf" enhanced port 0 lid 2 lmc 0"#, r#"rack "7" leaf"#),
        (r#"Switch 4 "h" # "a" lid 7" base port 0 lid 2 lmc 0"#, r#"a" lid 7"#),
        (r#"Switch 4 "h" # "leaf" lid 2 lmc 0"#, "leaf"),
        (r#"Ca 1 "h" # "host", the "second" one of the rack"#, "host"),
    ] {
        assert_eq!(net(header).nodes[0].description, description, "{header}");
    }
    let switch = net(r#"Switch 4 "h" # "rack "7" leaf" enhanced port 0 lid 2 lmc 0"#);
    assert!(switch.nodes[0].enhanced_port0);
    assert_eq!(at(&switch, "h", 0).lid, Some(ib_mad::Lid(2)));
}

/// A part of files.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "Switch ",
            "Hca ",
            "Ca",
            "Rt\t",
            "\n",
            "\r\n",
            "[",
            "]",
            "(",
            ")",
            "\"",
            "\"a\"",
            "\"b\"",
            "#",
            "@",
            "@[",
            "=",
            "+",
            " ",
            "\t",
            "0x",
            "1",
            "2",
            "08",
            "254",
            "99999999999999999999",
            "vendid=",
            "devid=",
            "sysimgguid=",
            "switchguid=",
            "caguid",
            "hcaguids",
            "rtguid+",
            "width=",
            "speed=",
            "extspeed=",
            "module=",
            "xdr=",
            " w=",
            " s=3",
            " lid ",
            " lmc ",
            "4xNDR",
            " enhanced port ",
            "ü",
            "include ",
            "do ",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn any_pieces_are_read_or_refused(pieces in proptest::collection::vec(piece(), 0..60)) {
        if let Ok(net) = parse(&pieces.concat()) {
            prop_assert!(parse(&write(&net)).is_ok(), "{}", write(&net));
        }
    }

    #[test]
    fn any_mutation_is_read_or_refused(
        first in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..9usize, piece()), 1..8),
    ) {
        let mut text: Vec<char> = (if first { DISCOVERED } else { BY_HAND }).chars().collect();
        for (at, removed, piece) in changes {
            let at = at.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, piece.chars());
        }
        if let Ok(net) = parse(&text.iter().collect::<String>()) {
            prop_assert!(parse(&write(&net)).is_ok(), "{}", write(&net));
        }
    }
}
