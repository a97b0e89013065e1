use std::collections::HashSet;

use super::*;

#[test]
fn every_row_of_the_file_parses() {
    let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(TABLE.len(), lines.clone().skip(1).count());
    for line in lines.skip(1) {
        assert!(line.starts_with("counter\t") || line.starts_with("gauge\t"), "{line}");
    }
}

fn metric_of(file: &str) -> Option<&'static str> {
    find(file).map(|row| TABLE[row].metric)
}

#[test]
fn names_are_unique_and_valid() {
    let (mut metrics, mut files) = (HashSet::new(), HashSet::new());
    for row in TABLE.iter() {
        let name = row.metric;
        assert!(metrics.insert(name), "{name} twice");
        assert!(name.starts_with(|first: char| first.is_ascii_lowercase()), "{name}");
        assert!(
            name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')),
            "{name}"
        );
        assert!(!name.ends_with("_total") && !name.contains("__"), "{name}");
        // Taken: the family of files without a row, and the setting beside the counters.
        assert!(name != "counter" && name != "lifespan");
        assert!(!row.files.is_empty() && row.scale >= 1, "{name}");
        for file in &row.files {
            assert!(files.insert(*file), "{file} twice");
        }
    }
}

#[test]
fn scaled_counters_are_in_bytes() {
    for row in TABLE.iter() {
        assert!(row.scale == 1 || row.metric.ends_with("_bytes"), "{}", row.metric);
        assert!(!row.metric.ends_with("_octets") && !row.metric.ends_with("_words"));
    }
}

#[test]
fn helps_are_sentences_without_escapes() {
    for HwRow { metric, help, drivers, .. } in TABLE.iter() {
        assert!(help.ends_with('.') && !help.contains(['\n', '\\', '"']), "{metric}: {help}");
        assert!(help.starts_with(|first: char| first.is_uppercase()), "{metric}: {help}");
        assert!(drivers.split(", ").all(|driver| !driver.is_empty()), "{metric}: {drivers}");
    }
}

#[test]
fn find_returns_row_of_each_file() {
    for (index, row) in TABLE.iter().enumerate() {
        for file in &row.files {
            assert_eq!(find(file), Some(index), "{file}");
        }
    }
}

#[test]
fn spellings_of_drivers_are_found() {
    for (file, metric) in [
        ("out_of_sequence", "out_of_sequence"),
        ("vport_out_of_sequence", "vport_out_of_sequence"),
        ("sq_num_to", "sq_num_to"),
        ("ip4InOctets", "ip4_in_bytes"),
        ("tcpRetransSegs", "retrans_segs"),
        ("RetransSegs", "retrans_segs"),
        ("Rcvd Out of order packets", "rcvd_out_of_order_packets"),
        ("cnpSent", "np_cnp_sent"),
        ("rx_pkts", "rx_packets"),
        ("to_retransmits", "local_ack_timeout_err"),
        ("retrans_timeout_events", "retrans_timeout_events"),
        ("SwLinkUp,32", "sw_link_up"),
        ("SwLinkUp", "sw_link_up"),
        ("DcXmitFlits", "dc_xmit_bytes"),
        ("rx_bytes_cnt", "rx_bytes"),
        ("ack_deferred", "ack_deferred"),
    ] {
        assert_eq!(metric_of(file), Some(metric), "{file}");
    }
    assert!(TABLE[find("active_qps").unwrap()].is_gauge);
    assert_eq!(TABLE[find("DcXmitFlits").unwrap()].scale, 8);
}

#[test]
fn unknown_files_are_not_found() {
    for file in [
        "",
        ",32",
        ",32,32",
        "SwLinkUp,64",
        "SwLinkUp,32,32",
        "lifespan",
        "OUT_OF_BUFFER",
        "out_of_buffer ",
        "out_of_buffer\n",
        "../state",
        "SDMAIdInt1,32",
        "{}",
        "größe",
        "RcvHdrOvr0",
        "\0",
    ] {
        assert_eq!(metric_of(file), None, "{file:?}");
    }
    assert_eq!(find(&"x".repeat(100_000)), None);
}
