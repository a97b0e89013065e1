//! Programs of others read the registers of the simulator and agree with our decoders: vendstat of infiniband-diags,
//! and the library of mstflint, whose results are decoded by the register tables that NVIDIA ships with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_mad::register::{
    FanLimits, FanSpeed, Fans, LinkDown, Module, PhysicalStatistics, RegisterQuery, Temperature,
    Temperatures, Troubleshooting,
};
use ib_mad::vendor::{self, GeneralInfo};
use ib_mad::{Mad, Moment, Query};
use ib_sim::agents;
use ib_sim::net::PortId;
use ib_sim::net::testing::write;
use ib_sim::scenario::{Overrides, ResolvedScenario, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SharedSimulation, share};
use serde_json::Value;
use test_rig::proxy::{Proxy, Served};
use test_rig::seat::Seat;
use test_rig::{Ibsim, Simulated};

/// Generations of switches and adapters; the links of the first have EDR and no error correction.
const MODELS: [(&str, &str); 3] =
    [("switch-ib-2", "connectx-7"), ("quantum", "connectx-7"), ("quantum-2", "connectx-8")];

fn story(switch: &str, hca: &str, timeline: &str) -> ResolvedScenario {
    let shape = "hosts: 6, radix: 8, down: 4, up: 2";
    let text = format!(
        "fabric: {{fat-tree: {{{shape}, switch: {switch}, hca: {hca}}}}}\ntimeline: [{timeline}]\n"
    );
    Scenario::parse("registers", &text).unwrap().resolve(&Overrides::default()).unwrap()
}

/// A simulation of ten minutes with faults of modules and links, and how programs reach it.
struct Stage {
    simulation: SharedSimulation,
    // Before the ibsim that serves its control messages.
    proxy: Proxy,
    _ibsim: Ibsim,
}

impl Stage {
    fn new(switch: &str, hca: &str) -> Self {
        let dirt = "dirty-connector: {at: 2m, into: \"spine-0[1]\", lane: 2, ratio: 2e-5}";
        let dirt = if switch == "switch-ib-2" { "clear: {at: 1s}" } else { dirt };
        let others = "bad-cable: {at: 2m, into: \"spine-0[1]\", ratio: 1e-9}, \
                      hot-module: {at: 5m, port: \"spine-0[1]\", celsius: 78}, \
                      flap: {at: 1m, link: \"spine-0[1]\", down: 3s}, \
                      reboot: {at: 9m, node: host-2, down: 2m}";
        let story = story(switch, hca, &format!("{dirt}, {others}"));
        let port = story.local_ports[0];
        let mut simulation = Simulation::new(story);
        simulation.advance(Moment::default() + Duration::from_secs(600));
        let simulation = share(simulation);
        // Debian's ibsim knows no faster links.
        let hdr = self::story("quantum", "connectx-6", "");
        let ibsim = Ibsim::start(&write(&hdr.net));
        let served = Served { simulation: simulation.clone(), port };
        Stage { simulation, proxy: Proxy::to_simulation(&ibsim, served), _ibsim: ibsim }
    }

    fn port(&self, label: &str) -> PortId {
        let simulation = self.simulation.lock().unwrap();
        let net = simulation.net();
        net.port_ids().find(|port| net.label(*port) == label).unwrap()
    }

    /// The LID of the node of a port; that of a switch is on port 0.
    fn lid(&self, port: PortId) -> u16 {
        let simulation = self.simulation.lock().unwrap();
        let net = simulation.net();
        let node = net.port(port).node;
        let zero = net.port_by_number(node, 0).map(|port| simulation.port(port).lid.0);
        zero.filter(|lid| *lid != 0).unwrap_or(simulation.port(port).lid.0)
    }

    /// Our response to a query that comes in at a port.
    fn response(&self, port: PortId, query: &Query) -> Option<Mad> {
        let simulation = self.simulation.lock().unwrap();
        let response = agents::response(&simulation, port, &query.request(None, 1)).unwrap();
        (response.status() == 0).then_some(response)
    }
}

fn tables(kind: &str) -> PathBuf {
    Path::new("/usr/share/mstflint/prm_dbs").join(kind).join("ext/register_access_table.adb")
}

fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap();
    let file = "mstflint/python_tools/cmtcr.so";
    let mut found = folders.filter_map(|entry| Some(entry.ok()?.path().join(file)));
    found.find(|path| path.is_file()).expect(
        "/usr/lib/*/mstflint/python_tools/cmtcr.so is missing: apt-get install mstflint (make test does it)",
    )
}

/// What mstflint's library reads of a port: by register, the fields.
fn read(seat: &Seat, kind: &str, lid: u16, number: u8) -> BTreeMap<String, Value> {
    let script = test_rig::paths::root().join("tests/fabric/registers/read.py");
    let (library, tables) = (library(), tables(kind));
    let args = [
        script.to_str().unwrap(),
        library.to_str().unwrap(),
        tables.to_str().unwrap(),
        &lid.to_string(),
        &number.to_string(),
    ];
    serde_json::from_str(&seat.tool("python3", &args)).unwrap()
}

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat().into()
}

fn dword(bytes: [u8; 4]) -> Value {
    u32::from_be_bytes(bytes).into()
}

/// The fields of a value in two halves of 32 bits.
fn halves(name: &str, value: u64) -> [(String, Value); 2] {
    [(format!("{name}_high"), (value >> 32).into()), (format!("{name}_low"), (value as u32).into())]
}

type Fields = Vec<(String, Value)>;

fn general_fields(info: &GeneralInfo) -> Fields {
    let [major, minor, subminor] = info.extended;
    let fields: [(&str, Value); 10] = [
        ("hw_info.device_hw_revision", info.revision.into()),
        ("hw_info.device_id", info.device_id.into()),
        ("hw_info.uptime", info.uptime.into()),
        ("fw_info.major", info.major.into()),
        ("fw_info.minor", info.minor.into()),
        ("fw_info.sub_minor", info.subminor.into()),
        ("fw_info.psid", hex(&info.psid)),
        ("fw_info.extended_major", major.into()),
        ("fw_info.extended_minor", minor.into()),
        ("fw_info.extended_sub_minor", subminor.into()),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}

fn physical_fields(it: &PhysicalStatistics) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in [
        ("time_since_last_clear", it.since_clear),
        ("phy_received_bits", it.received_bits),
        ("phy_symbol_errors", it.symbol_errors),
        ("phy_corrected_bits", it.corrected_bits),
        ("phy_effective_errors", it.effective_errors),
    ] {
        fields.extend(halves(name, value));
    }
    for (lane, errors) in it.lane_errors.into_iter().enumerate() {
        fields.extend(halves(&format!("phy_raw_errors_lane{lane}"), errors));
    }
    for (name, value) in [
        ("raw_ber_coef", it.raw_coefficient),
        ("raw_ber_magnitude", it.raw_magnitude),
        ("effective_ber_coef", it.effective_coefficient),
        ("effective_ber_magnitude", it.effective_magnitude),
        ("symbol_fec_ber_coef", it.symbol_coefficient),
        ("symbol_ber_magnitude", it.symbol_magnitude),
    ] {
        fields.push((name.to_owned(), value.into()));
    }
    fields
}

fn module_fields(it: &Module) -> Fields {
    let fields: [(&str, Value); 22] = [
        ("cable_technology", it.technology.into()),
        ("cable_type", it.kind.into()),
        ("cable_length", it.length_code.into()),
        ("cable_identifier", it.identifier.into()),
        ("vendor_name", hex(&it.vendor)),
        ("vendor_pn", hex(&it.part_number)),
        ("vendor_rev", dword(it.revision)),
        ("vendor_sn", hex(&it.serial_number)),
        ("temperature", it.temperature.into()),
        ("voltage", it.voltage.into()),
        ("temperature_high_th", it.temperature_high.into()),
        ("temperature_low_th", it.temperature_low.into()),
        ("voltage_high_th", it.voltage_high.into()),
        ("voltage_low_th", it.voltage_low.into()),
        ("rx_power_high_th", it.rx_power_high.into()),
        ("rx_power_low_th", it.rx_power_low.into()),
        ("tx_power_high_th", it.tx_power_high.into()),
        ("tx_power_low_th", it.tx_power_low.into()),
        ("tx_bias_high_th", it.bias_high.into()),
        ("tx_bias_low_th", it.bias_low.into()),
        ("wavelength", it.wavelength.into()),
        ("monitor_cap_mask", it.monitors.into()),
    ];
    let mut fields: Fields = fields.map(|(name, value)| (name.to_owned(), value)).into();
    for (name, lanes) in
        [("rx_power", it.rx_power), ("tx_power", it.tx_power), ("tx_bias", it.tx_bias)]
    {
        let lanes = lanes.into_iter().enumerate();
        fields.extend(lanes.map(|(lane, power)| (format!("{name}_lane{lane}"), power.into())));
    }
    fields
}

/// What our decoders make of the same responses. Registers that a device refuses are absent.
fn expected(stage: &Stage, port: PortId, number: u8) -> BTreeMap<&'static str, Fields> {
    let named = |fields: Vec<(&str, Value)>| -> Fields {
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let get = |query: RegisterQuery| stage.response(port, &vendor::access_register(query));
    let mut all = BTreeMap::new();
    let mut add = |name, mad: Option<Mad>, fields: &dyn Fn(&Mad) -> Fields| {
        all.extend(mad.map(|mad| (name, fields(&mad))));
    };
    let info = stage.response(port, &vendor::general_info());
    add("GeneralInfo", info.clone(), &|mad| {
        let info = GeneralInfo::decode(mad);
        let words: Vec<u8> = info.capabilities.iter().flat_map(|it| it.to_be_bytes()).collect();
        let mut fields = general_fields(&info);
        fields.push(("capabilities".into(), hex(&words)));
        fields
    });
    add("MGIR", info, &|mad| general_fields(&GeneralInfo::decode(mad)));
    add("MTMP", get(RegisterQuery::Temperature(0)), &|mad| {
        let it = Temperature::decode(mad);
        let (name, rest) = it.name.split_at(4);
        named(vec![
            ("sensor_index", it.sensor.into()),
            ("temperature", it.degrees.into()),
            ("temperature_threshold_hi", it.high.into()),
            ("sensor_name_hi", dword(name.try_into().unwrap())),
            ("sensor_name_lo", dword(rest.try_into().unwrap())),
        ])
    });
    add("PPCNT", get(RegisterQuery::PhysicalStatistics(number)), &|mad| {
        physical_fields(&PhysicalStatistics::decode(mad))
    });
    add("PDDR 1", get(RegisterQuery::Troubleshooting(number)), &|mad| {
        let code = u32::from(Troubleshooting::decode(mad).code);
        named(vec![("status_opcode", code.into())])
    });
    add("PDDR 3", get(RegisterQuery::Module(number)), &|mad| module_fields(&Module::decode(mad)));
    add("PDDR 6", get(RegisterQuery::LinkDown(number)), &|mad| {
        let it = LinkDown::decode(mad);
        named(vec![
            ("down_blame", it.blame.into()),
            ("local_reason_opcode", it.local_reason.into()),
            ("remote_reason_opcode", it.remote_reason.into()),
        ])
    });
    add("MFCR", get(RegisterQuery::Fans), &|mad| {
        let present = Fans::decode(mad).present;
        named(vec![
            ("tacho_active", (present & 0x3ff).into()),
            ("tacho_active_msb", (present >> 10).into()),
        ])
    });
    add("MFSM", get(RegisterQuery::FanSpeed(1)), &|mad| {
        named(vec![("tacho", 1.into()), ("rpm", FanSpeed::decode(mad).rpm.into())])
    });
    add("FORE", get(RegisterQuery::FanLimits), &|mad| {
        let it = FanLimits::decode(mad);
        named(vec![
            ("fan_under_limit", (it.slow & 0x3ff).into()),
            ("fan_over_limit", (it.fast & 0x3ff).into()),
        ])
    });
    let (first, count) = (Temperatures::MODULES, 2);
    add("MTBR", get(RegisterQuery::Temperatures { first, count }), &|mad| {
        let it = Temperatures::decode(mad);
        let record = |nth: usize| {
            let record = it.records[nth];
            let name = format!("temperature_record[{nth}]");
            [
                (format!("{name}.temperature"), (record & 0xffff).into()),
                (format!("{name}.max_temperature"), (record >> 16).into()),
            ]
        };
        [0, 1].into_iter().flat_map(record).collect()
    });
    all
}

#[test]
fn mstflint_decodes_the_same_values() {
    let mut fields = 0;
    for (switch, hca) in MODELS {
        let stage = Stage::new(switch, hca);
        let seat = Seat::from(&stage.proxy);
        for (kind, label) in
            [("switch", "spine-0[1]"), ("switch", "leaf-0-0[3]"), ("hca", "host-3[1]")]
        {
            let port = stage.port(label);
            let number = stage.simulation.lock().unwrap().net().port(port).number;
            let found = read(&seat, kind, stage.lid(port), number);
            let expected = expected(&stage, port, number);
            for (register, fields_found) in &found {
                let Some(expected) = expected.get(&**register) else {
                    assert!(fields_found.is_null(), "{switch} {label} {register}: we refuse it");
                    continue;
                };
                for (name, value) in expected {
                    let theirs = &fields_found[name];
                    assert_eq!(theirs, value, "{switch} {label} {register}: {name}");
                    fields += 1;
                }
            }
            let least = if kind == "switch" { 11 } else { 7 };
            assert_eq!(expected.len(), least, "{switch} {label}: {:?}", expected.keys());
        }
    }
    assert!(fields > 900, "{fields}");
}

#[test]
fn vendstat_prints_the_same_general_info() {
    for (switch, hca) in MODELS {
        let stage = Stage::new(switch, hca);
        let seat = Seat::from(&stage.proxy);
        for label in ["spine-0[1]", "host-3[1]"] {
            let port = stage.port(label);
            let text = seat.tool("vendstat", &["-N", &stage.lid(port).to_string()]);
            let info = stage.response(port, &vendor::general_info()).unwrap();
            let info = GeneralInfo::decode(&info);
            let value = |key: &str| {
                let line = text.lines().find(|line| line.trim_start().starts_with(key));
                let line = line.unwrap_or_else(|| panic!("{key}: {text}"));
                line.split_once(':').unwrap().1.trim().to_owned()
            };
            assert_eq!(value("hw_dev_rev"), format!("0x{:04x}", info.revision), "{label}");
            assert_eq!(value("hw_dev_id"), format!("0x{:04x}", info.device_id), "{label}");
            assert_eq!(value("hw_uptime"), format!("0x{:08x}", info.uptime), "{label}");
            assert_eq!(value("fw_psid"), format!("'{}'", info.board()), "{label}");
            // Of devices that it does not know it prints the parts of 8 bits.
            let short = format!("{:02}.{:02}.{:02}", info.major, info.minor, info.subminor);
            let version = value("fw_version");
            assert!(version == info.firmware() || version == short, "{label}: {text}");
        }
    }
}

#[test]
fn other_diagnostics_run_on_the_simulation() {
    let stage = Stage::new("quantum-2", "connectx-7");
    let seat = Seat::from(&stage.proxy);
    let found = seat.tool("ibnetdiscover", &[]);
    assert_eq!(found.matches("\nSwitch\t").count(), 3, "{found}");
    assert!(found.contains("host-5"), "{found}");
    let port = stage.port("spine-0[1]");
    let counters = seat.tool("perfquery", &["-x", &stage.lid(port).to_string(), "1"]);
    assert!(counters.contains("PortXmitData:"), "{counters}");
}

/// A day with faults of all kinds: every request is a Get, and nearly all of them of registers are answered.
#[test]
fn a_day_of_requests_has_only_gets() {
    let story = "\
fabric: {fat-tree: {hosts: 4, radix: 4, down: 2, up: 1, switch: quantum-2, hca: connectx-7}}
timeline:
  - flap: {at: 1h, link: 'spine-0[1]', down: 3s, every: 1h, times: 20}
  - dirty-connector: {at: 2h, into: 'spine-0[1]', lane: 1, ratio: 2e-5, for: 3h}
  - hot-module: {at: 3h, port: 'spine-0[2]', celsius: 80, for: 2h}
  - swap-cable: {at: 6h, link: 'spine-0[1]', down: 1m}
  - registers: {at: 8h, node: leaf-0-0, behavior: hung, for: 1h}
  - registers: {at: 10h, node: leaf-0-1, behavior: refused, for: 1h}
  - reboot: {at: 12h, node: spine-0, down: 5m}
";
    let simulated = Simulated::text(story);
    simulated.run_to(Duration::from_secs(24 * 3600));
    assert_eq!(simulated.sets(), 0);
    let mads = &simulated.observation().mads;
    let of = |outcome| mads.count(ib_mad::Class::Vendor, outcome);
    let answered = of(ib_umad::stats::MadOutcome::Answered);
    let timed_out = of(ib_umad::stats::MadOutcome::TimedOut);
    assert!(answered > 50_000 && timed_out < answered / 100, "{answered} {timed_out}");
}
