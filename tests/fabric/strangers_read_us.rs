//! External readers of our output: promtool and Prometheus read the metrics, tshark the capture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ib_mad::class_port_info::ClassPortInfo;
use ib_mad::counter::{Attribute, Counter, TABLE};
use ib_mad::m_key::MKey;
use ib_mad::moment::Anchor;
use ib_mad::port_info::PortInfo;
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, PKeyTable, SmInfo, SwitchInfo};
use ib_mad::{DirectedRoute as Route, Mad, Management, Query};
use ib_mad::{Lid, Moment};
use ib_umad::capture::{Capture, CapturingTransport};
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use rig::promtool::complaints;
use rig::{Exporter, Ibsim, OpenSm, Prometheus, prometheus, require, topology, wait_until};

fn scene() -> (Ibsim, OpenSm, Exporter) {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
    let opensm = OpenSm::start(&ibsim);
    let commands: Vec<String> = topology::all_connected_ports(&topology::fat_tree_2(8, 10, 4, 3))
        .iter()
        .enumerate()
        .map(|(index, (node, port))| {
            format!(
                "PerformanceSet \"{node}\"[{port}] PortCounters.SymbolErrorCounter={}",
                100 + index
            )
        })
        .collect();
    ibsim.console_many(&commands);
    let mut exporter = Exporter::start(&ibsim, &["--fabric.interval=1s"]);
    exporter.wait_ready();
    (ibsim, opensm, exporter)
}

#[test]
fn promtool_check_metrics_passes() {
    let (_ibsim, _opensm, mut exporter) = scene();
    rig::promtool::assert_accepts(&exporter);
    assert!(exporter.stop().success());
}

#[test]
fn gzip_and_plain_are_the_same_text() {
    let (_ibsim, _opensm, mut exporter) = scene();
    let packed = exporter.get("/metrics", &[("Accept-Encoding", "gzip")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("content-length"), Some(packed.body.len().to_string().as_str()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    let plain = exporter.get("/metrics", &[]);
    assert_eq!(plain.header("content-encoding"), None);
    let ports = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("infiniband_port_symbol"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(ports(&text), ports(plain.text()));
    assert!(!ports(&text).is_empty());
    // Also by a program that is not ours.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &packed.body).unwrap();
    let unpacked = Command::new("gzip")
        .args(["-dc"])
        .stdin(std::fs::File::open(file.path()).unwrap())
        .output()
        .unwrap();
    assert!(unpacked.status.success() && unpacked.stdout == text.as_bytes());
    assert!(exporter.stop().success());
}

#[test]
fn prometheus_scrapes_the_exporter() {
    let (_ibsim, _opensm, mut exporter) = scene();
    let prometheus = Prometheus::start(&prometheus::Setup {
        jobs: vec![("fabric".into(), vec![exporter.address().into()])],
        interval: Duration::from_secs(1),
        lookback: Duration::from_secs(300),
        rules: Vec::new(),
        alertmanager: None,
        keep: None,
    });
    let errors = wait_until(Duration::from_secs(60), "Prometheus to have scraped", || {
        let errors = prometheus.query("infiniband_port_symbol_errors_total");
        (!errors.is_empty()).then_some(errors)
    });
    // Of the 50 ports of 5 switches and 10 hosts, those with a cable.
    let cabled = 2 * (10 + 9);
    assert_eq!(errors.len(), cabled as usize);
    let expected: u32 = (0..cabled).map(|index| 100 + index).sum();
    let sum = prometheus.number("sum(infiniband_port_symbol_errors_total)");
    assert_eq!(sum, Some(f64::from(expected)));
    assert_eq!(prometheus.number("sum(up)"), Some(1.0));
    // Types and help texts arrived as well: the negotiated format is OpenMetrics.
    let name = "infiniband_port_symbol_errors";
    let metadata = prometheus.ask("metadata", &[("metric", name)]);
    assert_eq!(metadata[name][0]["type"], "counter", "{metadata}");
    drop(prometheus);
    assert!(exporter.stop().success());
}

/// The fields of each MAD of a capture, in its order, as tshark decodes them.
fn dissected(file: &Path, fields: &[&str]) -> Vec<BTreeMap<String, u64>> {
    let mut command = Command::new(require("tshark"));
    command.args(["-n", "-r"]).arg(file).args([
        "-T",
        "fields",
        "-E",
        "separator=|",
        "-E",
        "occurrence=f",
    ]);
    for field in fields {
        command.args(["-e", &format!("infiniband.{field}")]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let values = line.split('|').zip(fields).filter(|(value, _)| !value.is_empty());
            values.map(|(value, field)| ((*field).to_owned(), number(value))).collect()
        })
        .collect()
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("tshark wrote {text:?}: {error}"))
}

/// The fields of a response by our own decoders, under tshark's names.
fn decoded(mad: &Mad) -> Vec<(&'static str, u64)> {
    let mut fields = vec![
        ("mad.mgmtclass", mad.class().into()),
        ("mad.method", mad.method().into()),
        ("mad.attributeid", mad.attribute().into()),
        ("mad.attributemodifier", mad.modifier().into()),
    ];
    if mad.method() != 0x81 || mad.status() != 0 {
        return fields;
    }
    match (mad.class(), mad.attribute()) {
        (0x01 | 0x81, 0x11) => fields.extend(node_info(mad)),
        (0x01 | 0x81, 0x12) => fields.extend(switch_info(mad)),
        (0x01 | 0x81, 0x15) => fields.extend(port_info(mad)),
        (0x01 | 0x81, 0x16) => {
            let first = PKeyTable::decode(mad).keys[0];
            fields.extend([
                ("p_keytable.membershiptype", (first >> 15).into()),
                ("p_keytable.p_keybase", (first & 0x7fff).into()),
            ]);
        }
        (0x01 | 0x81, 0x20) => fields.extend(sm_info(mad)),
        (0x04, 0x01) => fields.extend(class_port_info(mad)),
        (0x04, 0x12) => fields.extend(
            PORT_COUNTERS
                .map(|(name, counter)| (name, read(mad, counter, Attribute::PortCounters))),
        ),
        (0x04, 0x1d) => fields
            .extend(EXTENDED.map(|(name, counter)| {
                (name, read(mad, counter, Attribute::PortCountersExtended))
            })),
        _ => {}
    }
    fields
}

fn node_info(mad: &Mad) -> Vec<(&'static str, u64)> {
    let info = NodeInfo::decode(mad);
    vec![
        ("nodeinfo.baseversion", info.base_version.into()),
        ("nodeinfo.classversion", info.class_version.into()),
        ("nodeinfo.nodetype", info.node_type.into()),
        ("nodeinfo.numports", info.port_count.into()),
        ("nodeinfo.systemimageguid", info.system_guid.0),
        ("nodeinfo.nodeguid", info.node_guid.0),
        ("nodeinfo.portguid", info.port_guid.0),
        ("nodeinfo.partitioncap", info.partition_cap.into()),
        ("nodeinfo.deviceid", info.device_id.into()),
        ("nodeinfo.revision", info.revision.into()),
        ("nodeinfo.localportnum", info.local_port.into()),
        ("nodeinfo.vendorid", info.vendor_id.into()),
    ]
}

fn switch_info(mad: &Mad) -> Vec<(&'static str, u64)> {
    let info = SwitchInfo::decode(mad);
    vec![
        ("switchinfo.linearfdbcap", info.linear_table_size.into()),
        ("switchinfo.randomfdbcap", info.random_table_size.into()),
        ("switchinfo.multicastfdbcap", info.multicast_table_size.into()),
        ("switchinfo.linearfdbtop", info.linear_table_top.into()),
        ("switchinfo.defaultport", info.default_port.into()),
        ("switchinfo.defaultmulticastprimaryport", info.default_multicast_primary_port.into()),
        ("switchinfo.defaultmulticastnotprimaryport", info.default_multicast_other_port.into()),
        ("switchinfo.lifetimevalue", info.life_time.into()),
        ("switchinfo.portstatechange", info.port_state_change.into()),
        ("switchinfo.optimizedsltovlmappingprogramming", info.optimized_sl_to_vl.into()),
        ("switchinfo.lidsperport", info.lids_per_port.into()),
        ("switchinfo.partitionenforcementcap", info.partition_enforcement_cap.into()),
        ("switchinfo.inboundenforcementcap", info.inbound_enforcement.into()),
        ("switchinfo.outboundenforcementcap", info.outbound_enforcement.into()),
        ("switchinfo.filterrawinboundcap", info.filter_raw_inbound.into()),
        ("switchinfo.filterrawoutboundcap", info.filter_raw_outbound.into()),
        ("switchinfo.enhancedportzero", info.enhanced_port0.into()),
    ]
}

fn port_info(mad: &Mad) -> Vec<(&'static str, u64)> {
    let info = PortInfo::decode(mad);
    vec![
        ("portinfo.m_key", info.m_key),
        ("portinfo.guid", info.gid_prefix),
        ("portinfo.lid", info.lid.0.into()),
        ("portinfo.mastersmlid", info.sm_lid.0.into()),
        ("portinfo.capabilitymask", info.capabilities.into()),
        ("portinfo.diagcode", info.diag_code.into()),
        ("portinfo.m_keyleaseperiod", info.m_key_lease_period.into()),
        ("portinfo.localportnum", info.local_port.into()),
        ("portinfo.linkwidthenabled", info.width_enabled.into()),
        ("portinfo.linkwidthsupported", info.width_supported.into()),
        ("portinfo.linkwidthactive", info.width_active.into()),
        ("portinfo.linkspeedsupported", info.speed_supported.into()),
        ("portinfo.portstate", info.state.code().into()),
        ("portinfo.portphysicalstate", info.physical_state.code().into()),
        ("portinfo.linkdowndefaultstate", info.link_down_default_state.into()),
        ("portinfo.m_keyprotectbits", info.m_key_protect.into()),
        ("portinfo.lmc", info.lmc.into()),
        ("portinfo.linkspeedactive", info.speed_active.into()),
        ("portinfo.linkspeedenabled", info.speed_enabled.into()),
        ("portinfo.neighbormtu", info.neighbor_mtu.into()),
        ("portinfo.mastersmsl", info.sm_sl.into()),
        ("portinfo.vlcap", info.vl_cap.into()),
        ("portinfo.inittype", info.init_type.into()),
        ("portinfo.vlhighlimit", info.vl_high_limit.into()),
        ("portinfo.vlarbitrationhighcap", info.vl_arbitration_high_cap.into()),
        ("portinfo.vlarbitrationlowcap", info.vl_arbitration_low_cap.into()),
        ("portinfo.inittypereply", info.init_type_reply.into()),
        ("portinfo.mtucap", info.mtu_cap.into()),
        ("portinfo.vlstallcount", info.vl_stall_count.into()),
        ("portinfo.hoqlife", info.hoq_life.into()),
        ("portinfo.operationalvls", info.operational_vls.into()),
        ("portinfo.partitionenforcementinbound", info.partition_enforcement_inbound.into()),
        ("portinfo.partitionenforcementoutbound", info.partition_enforcement_outbound.into()),
        ("portinfo.filterrawinbound", info.filter_raw_inbound.into()),
        ("portinfo.filterrawoutbound", info.filter_raw_outbound.into()),
        ("portinfo.m_keyviolations", info.m_key_violations.into()),
        ("portinfo.p_keyviolations", info.p_key_violations.into()),
        ("portinfo.q_keyviolations", info.q_key_violations.into()),
        ("portinfo.guidcap", info.guid_cap.into()),
        ("portinfo.clientreregister", info.client_reregister.into()),
        ("portinfo.subnettimeout", info.subnet_timeout.into()),
        ("portinfo.resptimevalue", info.response_time.into()),
        ("portinfo.localphyerrors", info.local_phy_errors.into()),
        ("portinfo.overrunerrors", info.overrun_errors.into()),
        ("portinfo.maxcredithint", info.max_credit_hint.into()),
        ("portinfo.linkroundtriplatency", info.round_trip_latency.into()),
    ]
}

fn sm_info(mad: &Mad) -> Vec<(&'static str, u64)> {
    let info = SmInfo::decode(mad);
    vec![
        ("sminfo.guid", info.guid.0),
        ("sminfo.sm_key", info.sm_key),
        ("sminfo.actcount", info.act_count.into()),
        ("sminfo.priority", info.priority.into()),
        ("sminfo.smstate", info.state.into()),
    ]
}

fn class_port_info(mad: &Mad) -> Vec<(&'static str, u64)> {
    let info = ClassPortInfo::decode(mad);
    vec![
        ("classportinfo.baseversion", info.base_version.into()),
        ("classportinfo.classversion", info.class_version.into()),
        ("classportinfo.capabilitymask", info.mask.into()),
        ("classportinfo.capabilitymask2", info.mask2.into()),
        ("classportinfo.resptimevalue", info.response_time.into()),
        ("classportinfo.redirecttc", info.redirect_traffic_class.into()),
        ("classportinfo.redirectsl", info.redirect_sl.into()),
        ("classportinfo.redirectfl", info.redirect_flow_label.into()),
        ("classportinfo.redirectlid", info.redirect_lid.0.into()),
        ("classportinfo.redirectpkey", info.redirect_pkey.into()),
        ("classportinfo.redirectqp", info.redirect_qp.into()),
        ("classportinfo.redirectqkey", info.redirect_qkey.into()),
        ("classportinfo.traptc", info.trap_traffic_class.into()),
        ("classportinfo.trapsl", info.trap_sl.into()),
        ("classportinfo.trapfl", info.trap_flow_label.into()),
        ("classportinfo.traplid", info.trap_lid.0.into()),
        ("classportinfo.trappkey", info.trap_pkey.into()),
        ("classportinfo.trapqp", info.trap_qp.into()),
        ("classportinfo.trapqkey", info.trap_qkey.into()),
    ]
}

fn read(mad: &Mad, counter: Counter, attribute: Attribute) -> u64 {
    let row = TABLE.iter().find(|row| row.counter == counter).unwrap();
    row.fields.iter().find(|place| place.attribute == attribute).unwrap().read(mad)
}

const PORT_COUNTERS: [(&str, Counter); 16] = [
    ("portcounters.symbolerrorcounter", Counter::SymbolErrors),
    ("portcounters.linkerrorrecoverycounter", Counter::LinkErrorRecoveries),
    ("portcounters.linkdownedcounter", Counter::LinkDowned),
    ("portcounters.portrcverrors", Counter::RcvErrors),
    ("portcounters.portrcvremotephysicalerrors", Counter::RcvRemotePhysicalErrors),
    ("portcounters.portrcvswitchrelayerrors", Counter::RcvSwitchRelayErrors),
    ("portcounters.portxmitdiscards", Counter::XmitDiscards),
    ("portcounters.portxmitconstrainterrors", Counter::XmitConstraintErrors),
    ("portcounters.portrcvconstrainterrors", Counter::RcvConstraintErrors),
    ("portcounters.locallinkintegrityerrors", Counter::LocalLinkIntegrityErrors),
    ("portcounters.excessivebufferoverrunerrors", Counter::ExcessiveBufferOverrunErrors),
    ("portcounters.vl15dropped", Counter::Vl15Dropped),
    ("portcounters.portxmitdata", Counter::XmitData),
    ("portcounters.portrcvdata", Counter::RcvData),
    ("portcounters.portxmitpkts", Counter::XmitPkts),
    ("portcounters.portrcvpkts", Counter::RcvPkts),
];

const EXTENDED: [(&str, Counter); 8] = [
    ("portcounters_ext.portxmitdata", Counter::XmitData),
    ("portcounters_ext.portrcvdata", Counter::RcvData),
    ("portcounters_ext.portxmitpkts", Counter::XmitPkts),
    ("portcounters_ext.portrcvpkts", Counter::RcvPkts),
    ("portcounters_ext.portunicastxmitpkts", Counter::UnicastXmitPkts),
    ("portcounters_ext.portunicastrcvpkts", Counter::UnicastRcvPkts),
    ("portcounters_ext.portmulticastxmitpkts", Counter::MulticastXmitPkts),
    ("portcounters_ext.portmulticastrcvpkts", Counter::MulticastRcvPkts),
];

fn names_of(mads: &[Vec<(&'static str, u64)>]) -> Vec<&'static str> {
    let mut names: Vec<&str> = mads.iter().flatten().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Compares our decoding of each MAD of a capture with tshark's.
fn assert_dissected(file: &Path, ours: &[Vec<(&'static str, u64)>]) {
    let theirs = dissected(file, &names_of(ours));
    assert_eq!(ours.len(), theirs.len(), "tshark sees every MAD");
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        for (name, value) in ours {
            assert_eq!(
                theirs.get(*name),
                Some(value),
                "{name} of MAD {index}: tshark has {theirs:?}"
            );
        }
    }
}

/// A transport that receives these MADs, to make a capture of them.
struct Letters(std::vec::IntoIter<Mad>);

impl MadTransport for Letters {
    fn now(&self) -> Moment {
        Moment(0)
    }

    fn anchor(&self) -> Anchor {
        Anchor { moment: Moment(0), wall: std::time::SystemTime::UNIX_EPOCH }
    }

    fn local_port(&self) -> LocalPort {
        LocalPort::UNKNOWN
    }

    fn refresh(&mut self) {}

    fn send(&mut self, _parcel: &OutgoingMad) -> Result<(), SendError> {
        Err(SendError::Full)
    }

    fn receive(&mut self, _until: Moment) -> Result<Option<Received>, TransportError> {
        Ok(self.0.next().map(|mad| Received::Mad { from: Lid(1), mad }))
    }
}

#[test]
fn tshark_decodes_what_we_encode() {
    // Numbers with no two equal fields, in which each bit is on and off in turns.
    let noise = |seed: u32| {
        let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
        Mad(std::array::from_fn(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        }))
    };
    let route = Route::LOCAL.then(1).unwrap().then(7).unwrap();
    let answer = |subnet: bool, attribute: u16| {
        let query = Query {
            management: if subnet { Management::Subnet } else { Management::Performance },
            attribute,
            modifier: 1,
            port_select: 1,
            clear: None,
            is_optional: false,
            is_always_sent: false,
            m_key: MKey::NONE,
            register: None,
        };
        query.request(subnet.then_some(&route), 1).response()
    };
    let mut mads = Vec::new();
    for seed in 0..20 {
        let from = noise(seed);
        macro_rules! encoded {
            ($($subnet:literal $attribute:ident),+) => {$({
                let mut mad = answer($subnet, $attribute::ID);
                $attribute::decode(&from).encode(&mut mad);
                mads.push(mad);
            })+};
        }
        encoded!(true NodeInfo, true SwitchInfo, true PortInfo, true PKeyTable, true SmInfo,
            false ClassPortInfo);
        for attribute in [Attribute::PortCounters, Attribute::PortCountersExtended] {
            let mut mad = answer(false, attribute as u16);
            let places = TABLE.iter().flat_map(|row| row.fields);
            for place in places.filter(|place| place.attribute == attribute) {
                place.write(&mut mad, place.read(&from));
            }
            mads.push(mad);
        }
    }
    // A capture has no M_Keys.
    let ours: Vec<_> = mads.iter().map(|mad| decoded(&mad.without_m_key())).collect();
    assert!(names_of(&ours).len() > 110, "every attribute with all of its fields");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("encoded.pcap");
    let mut capture = Capture::create(&file, 1 << 20).unwrap();
    let mut letters = Letters(mads.into_iter());
    let mut tapped = CapturingTransport::new(&mut letters, Some(&mut capture));
    while tapped.receive(Moment(0)).unwrap().is_some() {}
    drop(tapped);
    assert_dissected(&file, &ours);
}

/// Compares our decoding of a whole capture with tshark's, also the names of nodes, and checks that tshark
/// finds no malformed MAD. Returns our decoding.
fn assert_capture_dissected(exporter: &Exporter) -> Vec<Vec<(&'static str, u64)>> {
    let file = exporter.dir().join("capture.pcap");
    let mads: Vec<Mad> = exporter.capture_mads().into_iter().map(Mad).collect();
    let ours: Vec<_> = mads.iter().map(decoded).collect();
    assert_dissected(&file, &ours);
    let tshark = |args: &[&str]| {
        let mut command = Command::new(require("tshark"));
        let output = command.args(["-n", "-r"]).arg(&file).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(tshark(&["-Y", "_ws.malformed"]), "");
    // NodeDescription is text: there the names are compared.
    let described: Vec<String> = mads
        .iter()
        .filter(|mad| (mad.class(), mad.method(), mad.attribute()) == (0x81, 0x81, 0x10))
        .map(smp::decode_node_description)
        .collect();
    let names = tshark(&[
        "-T",
        "fields",
        "-e",
        "infiniband.nodedescription.nodestring",
        "-Y",
        // In performance management the same number is PortSamplesControl.
        "infiniband.mad.mgmtclass == 0x81 && infiniband.mad.method == 0x81 \
         && infiniband.mad.attributeid == 0x10",
    ]);
    assert_eq!(described, names.lines().collect::<Vec<_>>());
    assert!(described.len() >= 15, "{described:?}");
    // The attributes that both decode were in the capture.
    let names = names_of(&ours);
    for prefix in ["nodeinfo.", "switchinfo.", "portinfo.", "classportinfo.", "portcounters_ext."] {
        assert!(names.iter().any(|name| name.starts_with(prefix)), "no {prefix} in the capture");
    }
    ours
}

/// The values of a field in a capture.
fn values(mads: &[Vec<(&'static str, u64)>], field: &str) -> BTreeSet<u64> {
    mads.iter().flatten().filter(|(name, _)| *name == field).map(|(_, value)| *value).collect()
}

#[test]
fn tshark_decodes_a_capture_to_the_same_values() {
    let (_ibsim, _opensm, mut exporter) = scene();
    exporter.wait_sweeps(1);
    assert!(exporter.stop().success());
    let mads = assert_capture_dissected(&exporter);
    let errors = values(&mads, "portcounters.symbolerrorcounter");
    assert!(errors.len() > 30, "{errors:?}");
}

/// The demo with this net; each port has its own number of symbol errors.
fn demo_with_errors(net: &str) -> (tempfile::TempDir, Exporter) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("net"), net).unwrap();
    let ports = topology::all_connected_ports(net).into_iter().enumerate();
    let set = ports.map(|(index, (node, port))| {
        let value = 100 + index;
        format!("- set: {{port: '{node}[{port}]', counters: {{SymbolErrorCounter: {value}}}}}\n")
    });
    let scenario: String =
        std::iter::once("fabric: {file: net}\ntimeline:\n".to_owned()).chain(set).collect();
    let file = directory.path().join("scenario.yml");
    std::fs::write(&file, scenario).unwrap();
    let scenario = format!("--scenario={}", file.display());
    let mut exporter = Exporter::demo(&[&scenario, "--fabric.interval=1s"]);
    exporter.wait_ready();
    exporter.wait_sweeps(1);
    (directory, exporter)
}

#[test]
fn external_tools_read_the_simulator_like_ibsim() {
    let known = topology::fat_tree_2(8, 10, 4, 3);
    // The same with a generation that has only narrow counters, which saturate.
    let old = known.replace("devid=4123", "devid=25218");
    assert_ne!(old, known);
    for net in [known, old] {
        let (_directory, mut exporter) = demo_with_errors(&net);
        let text = exporter.get("/metrics", &[]).text().to_owned();
        assert_eq!(complaints(&text), (Some(0), String::new()));
        // This also checks each MAD of the capture: only Get and its responses.
        assert!(exporter.stop().success());
        let mads = assert_capture_dissected(&exporter);
        // The narrow counters are read from the ten hosts as well: an HCA may leave 64-bit ones at 0. A switch with
        // 64-bit error counters is not asked for them.
        let errors = values(&mads, "portcounters.symbolerrorcounter");
        assert_eq!(errors, (100..110).collect());
        assert_eq!(values(&mads, "nodeinfo.nodeguid").len(), 15);
        assert_eq!(values(&mads, "portinfo.lid").len(), 15 + 1, "and 0 at switches' ports");
        assert!(values(&mads, "mad.method").is_subset(&BTreeSet::from([0x01, 0x81])));
    }
}
