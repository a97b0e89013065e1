//! Files that look like one thing and are another: readings of several times or fabrics, lost headers, cut identities.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fabric_dumps::{Dumps, from_files, read};
use ib_mad::Counter;

fn one(text: &str) -> Result<Dumps, String> {
    from_files(vec![(PathBuf::from("text"), text.as_bytes().to_vec())]).map_err(|it| it.to_string())
}

fn error(text: &str) -> String {
    one(text).map(|found| format!("{:?}", found.dumps)).unwrap_err()
}

fn names(found: &Dumps) -> Vec<&str> {
    found.dumps[0].nodes.values().map(|node| &*node.description).collect()
}

/// Writes files with their times, in minutes after noon.
fn folder(files: &[(&str, &str, u64)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, minutes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_534_400);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(noon + Duration::from_secs(60 * minutes)).unwrap();
    }
    folder
}

const NET: &str = "# Topology file: generated on Sun Nov  1 21:00:00 2026\n\
    Switch\t8 \"S-0000000000000a00\"\t\t# \"leaf\" base port 0 lid 1 lmc 0\n\
    [1]\t\"H-0000000000000b10\"[1](0000000000000b11) \t\t# \"host\" lid 2 4xEDR\n";

fn errors(count: u64) -> String {
    format!(
        "Errors for \"host\"\n   GUID 0xb11 port 1: [PortRcvErrors == {count}]\n\n## Summary: 2 nodes checked, 1 bad nodes found\n"
    )
}

fn receive_errors(found: &Dumps, nth: usize) -> Vec<u64> {
    let counts = found.dumps[nth].ports.values().flat_map(|port| port.counters.values());
    counts.filter(|(of, ..)| *of == Counter::RcvErrors).map(|it| it.1).collect()
}

#[test]
fn time_without_a_zone_separates_no_files() {
    // Taken at noon UTC in a zone nine hours ahead.
    let files = folder(&[("net.txt", NET, 0), ("errors.txt", &errors(5), 1)]);
    let found = read(&[files.path().to_owned()]).unwrap();
    assert_eq!(found.dumps.len(), 1);
    assert_eq!(receive_errors(&found, 0), [5]);
}

#[test]
fn reading_completes_the_nearest_one() {
    let perf =
        "# Port counters: Lid 2 port 1 (CapMask: 0x00)\nLinkDownedCounter:...............7\n";
    let files = folder(&[
        ("err-1000", &errors(12), 0),
        ("err-1030", &errors(15), 30),
        ("err-1050", &errors(20), 50),
        ("net", NET, 50),
        ("perf-1050", perf, 51),
    ]);
    let found = read(&[files.path().to_owned()]).unwrap();
    assert_eq!([0, 1, 2].map(|nth| receive_errors(&found, nth)), [[12], [15], [20]]);
    let downed = |nth: usize| {
        let ports = &found.dumps[nth].ports;
        ports
            .values()
            .flat_map(|port| port.counters.values())
            .any(|(of, ..)| of == Counter::LinkDowned)
    };
    assert_eq!([0, 1, 2].map(downed), [false, false, true]);
}

#[test]
fn same_lid_in_two_fabrics_is_two_nodes() {
    let row = |guid: &str, host: &str, leaf: &str| {
        format!(
            "CA: {host}:\n      {guid}     10    1[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       1    3[  ] \"{leaf}\" ( )\n"
        )
    };
    let one_rail = row("0x00000000000b0011", "host1 mlx5_0", "leafA")
        + "Switch: 0x0000000000000a00 leafA:\n           1    3[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>      10    1[  ] \"host1 mlx5_0\" ( )\n";
    let other = row("0x00000000000c0011", "host1 mlx5_1", "leafB");
    let files = vec![("a".into(), one_rail.into_bytes()), ("b".into(), other.into_bytes())];
    let found = from_files(files).unwrap();
    let dump = &found.dumps[0];
    assert_eq!(dump.links.len(), 2, "{:?}", dump.remarks);
    assert!(names(&found).contains(&"leafB"), "{:?}", names(&found));
}

#[test]
fn damaged_line_does_not_swallow_the_next_one() {
    let damaged = format!(
        "{}\n[2]\t\"H-0000000000000b20\"[1](0000000000000b21) \t\t# \"host2\" lid 3 4xEDR\n",
        NET.trim_end().trim_end_matches('R')
    );
    let error = error(&damaged);
    assert!(error.contains("line 3: expected") && error.contains("4xED"), "{error}");
}

#[test]
fn lost_header_does_not_give_counters_to_the_port_before() {
    let perf = "# Port counters: Lid 2 port 1 (CapMask: 0x00)\nLinkDownedCounter:....7\n# Port counters: Li 6 port 1\nLinkDownedCounter:....9\nVL15Dropped:....0\n";
    assert!(error(perf).contains("line 3: expected a line of perfquery"), "{}", error(perf));
    let lost = perf.replace("# Port counters: Li 6 port 1\n", "");
    assert!(error(&lost).contains("line 3: expected each counter once"), "{}", error(&lost));
    let pm = "Port=1 Lid=0x0001 GUID=0x0000000000000a00\nsymbol_error_counter=0x0001\nsymbol_error_counter=0xffff\nlink_down_counter=0x1\n";
    assert!(error(pm).contains("line 3: expected each counter once"), "{}", error(pm));
    let route = format!(
        "{NET}# Port counters: DR path slid 0; dlid 0; 0,1 port 1\nLinkDownedCounter:....9\n"
    );
    let found = one(&route).unwrap();
    assert_eq!(found.dumps[0].counted(), 0);
    assert!(
        found.remarks().any(|it| it.to_string().contains("left out: it has no LID")),
        "{:?}",
        found.dumps[0].remarks
    );
}

#[test]
fn port_of_another_adapter_has_not_its_name() {
    let row = |guid: &str, lid: u16| {
        format!(
            "      {guid}     {lid}    1[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       1    {lid}[  ] \"leaf\" ( )\n"
        )
    };
    let text = format!(
        "CA: node03 mlx5_0:\n{}{}",
        row("0x00000000000b0311", 3),
        row("0x00000000000b0211", 2)
    );
    let found = one(&text).unwrap();
    assert_eq!(names(&found).iter().filter(|name| **name == "node03 mlx5_0").count(), 1);
    assert!(found.remarks().any(|it| it.line == 3), "{:?}", found.dumps[0].remarks);
    let text = "Switch: 0x0000000000000a00 core1:\n           4    1[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       3    5[  ] \"agg0\" ( )\n\
        Switch: 0x0000000000000b00 agg0:\n           3    5[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       4    1[  ] \"core0\" ( )\n";
    let found = one(text).unwrap();
    assert!(
        found.remarks().any(|it| it.to_string().contains("LID 4 is \"core1\" by its header")),
        "{found:?}"
    );
    let lost = "Errors for \"h1\"\n   GUID 0xb11 port 1: [LinkDownedCounter == 1]\n   GUID 0xa00 port 7: [LinkDownedCounter == 2]\n";
    assert_eq!(names(&one(lost).unwrap()), ["", "h1"]);
}

#[test]
fn cut_guid_is_no_guid() {
    for text in [
        "# ports\nPort=1 Lid=0x0001 GUID=0x0000000000000a\nsymbol_error_counter=0x0001\nlink_down_counter=0x1\n",
        "# switches\n\"leaf\", Mellanox, 0x00000000000\n# : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC : RTR : Neighbor Guid : N# : NLID : Neighbor Description\nsw1p1 : 1 : ACT : LINK UP : 5 : 4x : 200 : RS : NO-RTR : 0x2 : 1 : 20 : \"host\"\n",
    ] {
        assert!(error(text).contains("line 2: expected"), "{}", error(text));
    }
}

#[test]
fn unreadable_cell_is_an_error() {
    let csv = std::fs::read_to_string("tests/dumps/fabric.db_csv").unwrap();
    for cell in ["65.535", "1.2E+5", "6?535"] {
        let damaged = csv.replacen(",65535,", &format!(",{cell},"), 1);
        let error = error(&damaged);
        assert!(error.contains("is not a number (symbolerrorcounter)"), "{error}");
    }
    let decimal = csv.replace("0x0000000000000a00", "2560");
    assert!(error(&decimal).contains("\"2560\" is not a GUID"), "{}", error(&decimal));
}

#[test]
fn two_rows_in_one_line_and_unknown_counters_are_told() {
    let row = "           1    1[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       2    1[  ] \"host\" ( )";
    let text =
        format!("Switch: 0x0000000000000a00 leaf:\n{row} {row}\n{}\n", row.replace("1[", "2["));
    assert!(error(&text).contains("line 2: expected"), "{}", error(&text));
    let typo = errors(3).replace("PortRcvErrors", "PortRcvErr0rs");
    let found = one(&typo).unwrap();
    assert!(found.remarks().any(|it| it.to_string().contains("PortRcvErr0rs is no known counter")));
    // `cat -A`
    let shown = NET.replace('\t', "^I").replace('\n', "$\n");
    assert_eq!(names(&one(&shown).unwrap()), ["leaf", "host"]);
}

#[test]
fn too_many_readings_are_refused() {
    let mut readings = String::new();
    for count in 0..20_001 {
        writeln!(readings, "# Port counters: Lid 2 port 1\nPortRcvErrors:...{count}").unwrap();
    }
    assert!(error(&readings).contains("more than 20000 readings"), "{}", error(&readings));
}
