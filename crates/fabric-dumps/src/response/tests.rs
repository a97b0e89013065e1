//! Responses as UFM Telemetry writes them, whole and damaged.

use std::time::{Duration, SystemTime};

use ib_fabric::names::Naming;
use ib_mad::fec::Fec;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::rate::{Speed, Width};
use ib_mad::{Counter, Guid, Moment, PortKey};

use super::*;
use crate::contents::PortRecord;

/// The columns of a secondary counter set, with names as the manual has them.
const HEADER: &str = "timestamp,source_id,tag,Node_GUID,port_guid,Port_Number,node_description,Device_ID,lid,phy_state,\
                      logical_state,Link_speed_active,Link_width_active,Active_FEC,Symbol_Errors,Link_Down_IB,Link_Down,\
                      PortXmitDataExtended,PortRcvPktsExtended,PortRcvErrors,PortXmitWait,Cable_PN,Cable_SN,\
                      Module_Temperature,link_partner_node_guid,link_partner_port_num,link_partner_description,hist0";

fn leaf(port: u8, errors: &str) -> String {
    format!(
        "1709652347161873,0xa00,,0x0000000000000a00,0x0000000000000a00,{port},leaf-1,54000,7,5,4,2048,2,\
         Standard_RS-FEC - (544,514),3,9,10,85554128244,1188251785,{errors},44,MCP7Y00,MT2210VS0{port},46C,\
         0x0000000000000b{port}0,1,host-{port} mlx5_0,99"
    )
    .replace("(544,514)", "544/514")
}

fn read(text: &str) -> Response {
    Response::read(text.as_bytes().to_vec(), SystemTime::UNIX_EPOCH)
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn port(dump: &Dump, guid: u64, number: u8) -> &PortRecord {
    &dump.ports[&PortKey::new(Guid(guid), number)]
}

fn dump(text: &str) -> Dump {
    join(&[("http://ufm".into(), &read(text))], SystemTime::UNIX_EPOCH)
}

fn count(record: &PortRecord, counter: Counter) -> Option<u64> {
    record.counters.values().find(|(it, ..)| *it == counter).map(|(_, value, _)| value)
}

#[test]
fn row_of_the_secondary_set_is_read_by_the_names_of_its_columns() {
    let found = dump(&format!("{HEADER}\n{}\n", leaf(1, "5")));
    let leaf = port(&found, 0xa00, 1);
    assert_eq!(
        (leaf.state, leaf.width, leaf.speed),
        (Some(PortState::Active), Some(Width::X4), Some(Speed::Ndr))
    );
    assert_eq!(leaf.fec, Some(Fec::ReedSolomon2));
    let counts = [Counter::XmitData, Counter::RcvErrors, Counter::LinkDowned, Counter::XmitWait];
    assert_eq!(
        counts.map(|it| count(leaf, it)),
        [Some(85_554_128_244), Some(5), Some(9), Some(44)],
        "Link_Down_IB precedes Link_Down"
    );
    assert_eq!(count(leaf, Counter::SymbolErrors), Some(3), "of the physical layer");
    assert_eq!(count(leaf, Counter::RcvRemotePhysicalErrors), None, "unknown, not zero");
    let module = leaf.module.as_ref().unwrap();
    assert_eq!(module.celsius(module.temperature), Some(46.0));
    let node = &found.nodes[&Guid(0xa00)];
    assert_eq!((node.kind, &*node.description), (Some(NodeKind::Switch), "leaf-1"));
    assert_eq!(found.nodes[&Guid(0xb10)].description, "host-1 mlx5_0");
    let ends = (PortKey::new(Guid(0xa00), 1), PortKey::new(Guid(0xb10), 1));
    assert_eq!(found.links.iter().collect::<Vec<_>>(), [&ends]);
    let taken = SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_652_347_161_873);
    assert_eq!((found.taken_at, found.has_time), (taken, true));
}

#[test]
fn names_of_the_primary_set_in_another_order_say_the_same() {
    let text = "PortRcvErrorsExtended,port_num,node_guid,LinkDownedCounterExtended,timestamp\n\
                7,1,2c90300f172a0,3,1628683905941\n";
    let found = dump(text);
    let only = port(&found, 0x2_c903_00f1_72a0, 1);
    assert_eq!(
        (count(only, Counter::RcvErrors), count(only, Counter::LinkDowned)),
        (Some(7), Some(3))
    );
    assert!(!read(text).has_links());
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_628_683_905_941);
    assert_eq!(found.taken_at, at, "milliseconds");
}

#[test]
fn cell_that_is_no_number_loses_only_itself() {
    for absent in ["", "N/A", "NaN", "nan", "NA", "-1"] {
        let response = read(&format!("{HEADER}\n{}\n", leaf(1, absent)));
        assert!(response.contents.remarks.is_empty(), "{absent}: {:?}", response.contents.remarks);
        let found = dump(&format!("{HEADER}\n{}\n", leaf(1, absent)));
        let only = port(&found, 0xa00, 1);
        assert_eq!(count(only, Counter::RcvErrors), None, "{absent}");
        assert_eq!(count(only, Counter::XmitWait), Some(44));
    }
    let text = format!("{HEADER}\n{}\n", leaf(1, "five"));
    let found = dump(&text);
    assert_eq!(count(port(&found, 0xa00, 1), Counter::RcvErrors), None);
    assert_eq!(count(port(&found, 0xa00, 1), Counter::XmitWait), Some(44));
    let told = found.remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(
        told[0].ends_with("line 2: PortRcvErrors: \"five\" is not a value, so it is unknown"),
        "{told:?}"
    );
    let found = dump(&format!("{HEADER}\n{}\n", leaf(1, "12.0")));
    assert_eq!(count(port(&found, 0xa00, 1), Counter::RcvErrors), Some(12), "as pandas writes 12");
}

#[test]
fn rows_with_other_numbers_of_cells_and_cut_ones_are_left_out_and_told() {
    let short = leaf(2, "1").rsplit_once(',').unwrap().0.to_owned();
    let cut = &leaf(4, "1")[..40];
    let text =
        format!("\u{feff}{HEADER}\r\n{}\r\n{short}\r\n\r\n{}\r\n{cut}", leaf(1, "1"), leaf(3, "1"));
    let found = dump(&text);
    let numbers: Vec<u8> =
        found.ports.keys().filter(|it| it.guid == Guid(0xa00)).map(|it| it.number).collect();
    assert_eq!(numbers, [1, 3]);
    let told: Vec<String> = found.remarks.iter().map(ToString::to_string).collect();
    assert!(told[0].contains("line 3: not used: the header has 28 cells, this row 27"), "{told:?}");
    assert!(told[1].contains("cut off: "), "{told:?}");
}

#[test]
fn later_of_two_rows_of_a_port_counts_and_equal_times_complete_each_other() {
    let head = "timestamp,node_guid,port_num,PortRcvErrors,PortXmitWait\n";
    let rows = |rows: &[&str]| {
        let found = dump(&format!("{head}{}\n", rows.join("\n")));
        let only = port(&found, 0xa, 1);
        (count(only, Counter::RcvErrors), count(only, Counter::XmitWait))
    };
    let (old, new) = ("1700000000000000,0xa,1,5,6", "1700000030000000,0xa,1,7,");
    assert_eq!(rows(&[old, new]), (Some(7), None), "values of two times are not mixed");
    assert_eq!(rows(&[new, old]), (Some(7), None));
    let half = "1700000030000000,0xa,1,,8";
    assert_eq!(rows(&[new, half]), (Some(7), Some(8)));
    assert_eq!(rows(&[old, old]), (Some(5), Some(6)));
}

#[test]
fn appended_responses_are_readings_of_their_own() {
    let text = format!("{HEADER}\n{}\n{HEADER}\n{}\n", leaf(1, "1"), leaf(1, "2"));
    let readings = parse(crate::telemetry::Writing::Csv, &text).unwrap();
    assert_eq!(readings.len(), 2);
    let found = dump(&text);
    assert_eq!(count(port(&found, 0xa00, 1), Counter::RcvErrors), Some(2), "the last one");
    let files =
        crate::from_texts(&[&text.replacen("1709652347161873", "1709652047161873", 1)]).unwrap();
    assert_eq!(files.dumps.len(), 2, "a dump each for links --from");
}

#[test]
fn rows_have_times_of_their_own() {
    let text = "timestamp,node_guid,port_num,PortRcvErrors\n1700000000000000,0xa,1,5\n1700000004000000,0xa,2,5\n";
    let found = dump(text);
    let moment = Moment(100_000_000_000);
    let anchor = Anchor { moment, wall: found.taken_at };
    let snapshot = found.snapshot(None, &Naming::default(), anchor);
    let at = |number: u8| {
        let port = snapshot.fabric.find(PortKey::new(Guid(0xa), number)).unwrap();
        snapshot.reading(port).unwrap().at
    };
    assert_eq!((at(1), at(2)), (Moment(96_000_000_000), moment));
}

#[test]
fn speeds_have_two_encodings() {
    let rates = |codes: [&str; 2]| {
        let text = format!(
            "node_guid,port_num,Link_speed_active\n0xa,1,{}\n0xa,2,{}\n",
            codes[0], codes[1]
        );
        let found = dump(&text);
        [1, 2].map(|number| port(&found, 0xa, number).speed)
    };
    assert_eq!(rates(["2048", "512"]), [Some(Speed::Ndr), Some(Speed::Edr)], "packed");
    assert_eq!(rates(["128", "256"]), [Some(Speed::Ndr), Some(Speed::Xdr)], "PTYS");
    assert_eq!(
        rates(["NDR", "25"]),
        [Some(Speed::Ndr), Some(Speed::Edr)],
        "names, and Gb/s of a lane"
    );
    assert_eq!(rates(["2.5", "64.0"]), [Some(Speed::Sdr), Some(Speed::Hdr)]);
    assert_eq!(rates(["3", "N/A"]), [None, None]);
}

#[test]
fn port_that_is_down_keeps_no_partner() {
    let down = leaf(1, "5").replace(",5,4,2048,2,", ",2,1,0,0,");
    let found = dump(&format!("{HEADER}\n{down}\n{}\n", leaf(2, "5")));
    assert_eq!(port(&found, 0xa00, 1).state, Some(PortState::Down));
    assert_eq!(found.links.len(), 1);
}

#[test]
fn samples_of_prometheus_say_what_rows_say() {
    let labels = r#"source="0xa00",node_guid="a00",port_guid="a00",port_num="1",node_description="leaf \"1\", } row",Cable_SN="MT1",link_partner_node_guid="0xb10",link_partner_port_num="1",Active_FEC="RS_FEC_544_514""#;
    let text = format!(
        "# TYPE PortXmitDataExtended counter\n\
         PortXmitDataExtended{{{labels}}} 85554128244 1628683905941\n\
         PortRcvErrors{{{labels}}} 7e0 1628683905941\n\
         Link_speed_active{{{labels}}} 2048 1628683905941\n\
         PortXmitWait{{{labels}}} NaN 1628683905941\n\
         unknown_field{{{labels}}} 1 1628683905941\n\
         process_cpu_seconds_total 5\n\
         PortRcvErrors{{node_guid=\"b10\",port_num=\"1\"}} 9 1628683905900\n"
    );
    let response = read(&text);
    assert_eq!((response.format, response.ports()), (Format::UfmMetrics, 2));
    let found = dump(&text);
    let leaf = port(&found, 0xa00, 1);
    assert_eq!(count(leaf, Counter::XmitData), Some(85_554_128_244));
    assert_eq!((count(leaf, Counter::RcvErrors), count(leaf, Counter::XmitWait)), (Some(7), None));
    assert_eq!((leaf.speed, leaf.fec), (Some(Speed::Ndr), Some(Fec::ReedSolomon2)));
    assert_eq!(found.nodes[&Guid(0xa00)].description, "leaf \"1\", } row");
    assert_eq!(found.links.len(), 1);
    let at = |milliseconds| Some(SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds));
    assert_eq!(port(&found, 0xb10, 1).read_at(), at(1_628_683_905_900));
    assert_eq!(Some(found.taken_at), at(1_628_683_905_941));
}

#[test]
fn counters_are_those_of_the_first_endpoint() {
    let primary = read("timestamp,node_guid,port_num,PortRcvErrors\n1709652377161873,0xa00,1,50\n");
    let secondary = read(&format!("{HEADER}\n{}\n", leaf(1, "5")));
    let names = ["http://ufm:9001", "http://ufm:9002"].map(str::to_owned);
    let [first, second] = names;
    let found = join(&[(first, &primary), (second, &secondary)], SystemTime::UNIX_EPOCH);
    let only = port(&found, 0xa00, 1);
    assert_eq!(
        (count(only, Counter::RcvErrors), count(only, Counter::LinkDowned)),
        (Some(50), None)
    );
    assert_eq!((found.links.len(), only.speed), (1, Some(Speed::Ndr)));
    assert_eq!(Some(found.taken_at), primary.taken_at());
}

fn error(text: &str) -> String {
    Response::read(text.as_bytes().to_vec(), SystemTime::UNIX_EPOCH).unwrap_err()
}

#[test]
fn time_of_one_row_that_is_years_ahead_is_ignored() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_010);
    let text = "timestamp,node_guid,port_num,PortRcvErrors\n\
                1700000000000000,0xa,1,5\n16725225600000000,0xa,2,6\n";
    let read = |text: &str| Response::read(text.as_bytes().to_vec(), now).unwrap();
    let response = read(text);
    let taken = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    assert_eq!(response.taken_at(), Some(taken));
    let found = join(&[("http://ufm".into(), &response)], now);
    assert_eq!(found.taken_at, taken);
    assert_eq!(count(port(&found, 0xa, 2), Counter::RcvErrors), Some(6), "the row is used");
    assert_eq!(found.remarks[0].to_string(), "http://ufm: 1 time more than a day ahead ignored");
    // It is the same in a file.
    let mut file = crate::from_texts(&[text]).unwrap().dumps.remove(0);
    file.ignore_times_ahead(now);
    assert_eq!(file.taken_at, taken);
    // If all are ahead, it is the clock of the source.
    let ahead = text.replace("1700000000000000", "1900000000000000");
    let taken = SystemTime::UNIX_EPOCH + Duration::from_secs(16_725_225_600);
    assert_eq!(read(&ahead).taken_at(), Some(taken));
}

#[test]
fn response_with_too_many_rows_is_refused() {
    let mut csv = String::from("node_guid,port_num\n");
    csv += &"0xa,1\n".repeat(500_000);
    assert_eq!(read(&csv).ports(), 1);
    csv += "0xa,1\n";
    assert_eq!(error(&csv), "it has more than 500000 rows of ports");
    let sample = |guid: u32| format!("lid{{node_guid=\"{guid:x}\",port_num=\"1\"}} 1\n");
    let samples: String = (1..=500_001).map(sample).collect();
    assert_eq!(error(&samples), "it has more than 500000 rows of ports");
    let problem = crate::from_texts(&[&csv]).unwrap_err().to_string();
    assert!(problem.ends_with("it has more than 500000 rows of ports: split it"), "{problem}");
}

#[test]
fn what_is_no_telemetry_is_named() {
    for (text, what) in [
        ("", "found an empty body"),
        ("<!DOCTYPE html><html>502 Bad Gateway</html>", "found a web page"),
        ("{\"values\": []}", "found JSON"),
        ("Endpoint not found", "found something else"),
        ("name,value\na,1\n", "found something else"),
        ("node_exporter_up{port=\"x\"} 1\n", "found something else"),
    ] {
        assert!(error(text).ends_with(what), "{text}: {}", error(text));
    }
    assert_eq!(error(&format!("{HEADER}\n")), "it has no ports");
    assert_eq!(error("node_guid,port_num\n0xa,one\n"), "it has no ports");
}

#[test]
fn ratio_of_a_register_is_that_of_its_text() {
    for (text, expected) in [("1.5e-254", 0.0), ("0", 0.0), ("2e-08", 2e-8), ("1E-15", 1e-15)] {
        let response = read(&format!("node_guid,port_num,Total_Raw_BER\n0xa,1,{text}\n"));
        let found = join(&[(String::new(), &response)], SystemTime::UNIX_EPOCH);
        let physical = port(&found, 0xa, 1).sample.as_ref().unwrap().physical.unwrap();
        let ratio = physical.raw_ber().unwrap();
        assert!((ratio - expected).abs() <= expected * 0.1, "{text}: {ratio}");
    }
}
