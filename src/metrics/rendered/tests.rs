//! The metrics against a small fabric, in both formats.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::*;
use crate::metrics::selection::Profile;
use bytes::Bytes;
use exposition::DocumentBody;
use fabric_observation::Observation;
use ib_fabric::assembly::DiscoveredFabric;
use ib_fabric::names::Naming;
use ib_fabric::node_name_map::NodeNameMap;
use ib_fabric::testing::{end, found, panel};
use ib_fabric::{Fabric, Snapshot};
use ib_health::testing::fine;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::{Counter, Moment, Reading};
use proptest::prelude::*;
use proptest::sample::subsequence;

const HOSTILE: &str = "a\"b\\c\nd\u{fffd}";

/// A switch with a hostile name, with a CA on port 1 and no cable on port 2.
pub(in crate::metrics) fn snapshot() -> Snapshot {
    let names = NodeNameMap::parse("0x2 \"host two mlx5_1\"").unwrap().into();
    let mut switch = found(1, NodeKind::Switch, 2);
    switch.identity.description = HOSTILE.into();
    let status = switch.ports[2].status.as_mut().unwrap();
    (status.state, status.physical_state) = (PortState::Down, PhysicalState::Polling);
    (status.width, status.speed) = (None, None);
    let nodes = vec![switch, found(2, NodeKind::Ca, 1), found(3, NodeKind::Ca, 1)];
    let mut fabric = Fabric::assemble(
        DiscoveredFabric {
            nodes,
            links: vec![(end(1, 1), end(2, 1))],
            ..DiscoveredFabric::default()
        },
        &names,
        Moment(0),
        None,
    );
    Arc::make_mut(&mut fabric.front_panels).insert(end(1, 1), panel(19, 1));
    let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
    let port = fabric.find(end(1, 1)).unwrap();
    let silent = fabric.node_by_guid(end(3, 1).guid).unwrap();
    let mut snapshot = Snapshot::blank(Arc::new(fabric), anchor);
    snapshot.silent[silent] = true;
    let mut reading = Reading::empty(Moment(1));
    reading.set(Counter::SymbolErrors, 0);
    reading.set(Counter::XmitData, 100);
    snapshot.readings[port] = Some(reading);
    snapshot
}

fn state() -> SharedState {
    let observation = Observation {
        fabric: "f".into(),
        snapshot: Some(snapshot().into()),
        ..Observation::default()
    };
    vec![Arc::new(observation)].into()
}

/// A state snapshot in the text format.
pub(in crate::metrics) fn text_of(state: SharedState) -> String {
    let own = OwnMetrics::new(Path::new("/proc"));
    let document =
        RenderedMetrics::first(state).document(&Selection::default(), Format::Text, &own);
    String::from_utf8(collect(DocumentBody::plain(document))).unwrap()
}

fn document(format: Format) -> Document {
    RenderedMetrics::first(state()).document(
        &Selection::default(),
        format,
        &OwnMetrics::new(Path::new("/proc")),
    )
}

fn collect<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let length = body.size_hint().exact().unwrap();
    while let std::task::Poll::Ready(Some(Ok(frame))) =
        std::pin::Pin::new(&mut body).poll_frame(&mut context)
    {
        bytes.extend_from_slice(frame.data_ref().unwrap());
    }
    assert_eq!(bytes.len() as u64, length, "Content-Length");
    bytes
}

fn text(format: Format) -> String {
    String::from_utf8(collect(DocumentBody::plain(document(format)))).unwrap()
}

#[test]
fn samples_of_ports_and_nodes() {
    let text = text(Format::Text);
    for line in [
        r#"infiniband_port_symbol_errors_total{fabric="f",guid="0x0000000000000001",port="1"} 0"#,
        r#"infiniband_port_transmit_bytes_total{fabric="f",guid="0x0000000000000001",port="1"} 400"#,
        r#"infiniband_port_state{fabric="f",guid="0x0000000000000001",port="2"} 1"#,
        r#"infiniband_port_width_lanes{fabric="f",guid="0x0000000000000001",port="1"} 4"#,
        r#"infiniband_node_up{fabric="f",guid="0x0000000000000001"} 1"#,
        r#"infiniband_node_up{fabric="f",guid="0x0000000000000003"} 0"#,
        r#"infiniband_port_info{fabric="f",guid="0x0000000000000002",port="1",node="host two mlx5_1",host="host two",node_type="ca",peer_guid="0x0000000000000001",peer_port="1",peer_node="a\"b\\c\nd�",link="0x0000000000000001:1-0x0000000000000002:1",speed="EDR",width="4x"} 1"#,
        r#"infiniband_port_info{fabric="f",guid="0x0000000000000001",port="1",node="a\"b\\c\nd�",node_type="switch",front_panel="1/19/1",cage="19",peer_guid="0x0000000000000002",peer_port="1",peer_node="host two mlx5_1",peer_host="host two",link="0x0000000000000001:1-0x0000000000000002:1",speed="EDR",width="4x"} 1"#,
        r#"infiniband_node_info{fabric="f",guid="0x0000000000000002",node="host two mlx5_1",host="host two",node_type="ca",vendor_id="0x0002c9",device_id="1",lid="2"} 1"#,
        r#"fabric_exporter_nodes_failed{fabric="f"} 1"#,
        "# HELP infiniband_port_link_downed_total",
    ] {
        let there = text.lines().any(|have| have == line);
        assert_eq!(there, !line.starts_with('#'), "{line}\n{text}");
    }
}

#[test]
fn unread_values_have_no_sample() {
    let text = text(Format::Text);
    for absent in [
        r#"infiniband_port_symbol_errors_total{fabric="f",guid="0x0000000000000002""#,
        r#"infiniband_port_state{fabric="f",guid="0x0000000000000003""#,
        r#"infiniband_port_rate_bytes_per_second{fabric="f",guid="0x0000000000000001",port="2""#,
        r#"infiniband_port_state{fabric="f",guid="0x0000000000000001",port="0""#,
        "infiniband_port_receive_bytes",
    ] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn both_formats_have_the_same_samples_and_their_own_headers() {
    let (open, plain) = (text(Format::OpenMetrics), text(Format::Text));
    let samples = |text: &str| -> Vec<String> {
        // The process's own numbers move between the two.
        let kept = |line: &&str| {
            !line.starts_with('#') && !line.starts_with("process_") && !line.contains("render")
        };
        text.lines().filter(kept).map(str::to_owned).collect()
    };
    assert_eq!(samples(&open), samples(&plain));
    assert!(open.ends_with("\n# EOF\n") && !plain.contains("# EOF"));
    assert!(open.contains("# TYPE infiniband_port_transmit_bytes counter\n# UNIT infiniband_port_transmit_bytes bytes\n"));
    assert!(plain.contains(
        "# TYPE infiniband_port_transmit_bytes_total counter\ninfiniband_port_transmit_bytes_total{"
    ));
    assert!(!plain.contains("# UNIT"));
    assert!(
        open.contains("# TYPE fabric_exporter_mads counter\n")
            && plain.contains("# TYPE fabric_exporter_mads_total counter\n")
    );
}

#[test]
fn fabrics_share_each_header() {
    let mut state = state();
    let second = Observation { fabric: "g".into(), ..(*state.fabrics[0]).clone() };
    state.fabrics.push(Arc::new(second));
    let own = OwnMetrics::new(Path::new("/proc"));
    let document =
        RenderedMetrics::first(state).document(&Selection::default(), Format::Text, &own);
    let text = String::from_utf8(collect(DocumentBody::plain(document))).unwrap();
    let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let distinct: std::collections::HashSet<&str> = families.iter().copied().collect();
    assert_eq!(families.len(), distinct.len(), "each family has one header");
    for fabric in ["f", "g"] {
        let label = format!("infiniband_port_symbol_errors_total{{fabric=\"{fabric}\"");
        assert_eq!(text.matches(&label).count(), 1);
    }
}

/// Also with braces in it, which are not special within a label's value.
#[test]
fn fabric_name_is_the_same_in_every_family() {
    let name = "a{} b\"c";
    let observation = Observation { fabric: name.into(), ..(*state().fabrics[0]).clone() };
    let text = text_of(vec![Arc::new(observation)].into());
    let named: Vec<&str> = text.lines().filter(|line| line.contains("fabric=\"")).collect();
    assert!(named.iter().any(|line| line.starts_with("infiniband_port_symbol_errors_total{")));
    assert!(named.iter().any(|line| line.starts_with("fabric_exporter_sweeps_total{")));
    assert!(
        named.iter().any(|line| line.starts_with("fabric_exporter_mad_round_trip_seconds_bucket{"))
    );
    for line in named {
        assert!(line.contains("fabric=\"a{} b\\\"c\""), "{line}");
    }
    assert!(text.contains("{le=\"0.00001\",") && text.contains("{le=\"+Inf\","));
    assert!(text.contains("\nfabric_exporter_render_duration_seconds "));
}

#[test]
fn gzip_unpacks_to_the_plain_text() {
    let metrics = RenderedMetrics::first(state());
    // Without procfs nothing moves between two renderings.
    let own = OwnMetrics::new(Path::new("/nowhere"));
    let plain = collect(DocumentBody::plain(metrics.document(
        &Selection::default(),
        Format::OpenMetrics,
        &own,
    )));
    let packed = collect(DocumentBody::gzip(&metrics.document(
        &Selection::default(),
        Format::OpenMetrics,
        &own,
    )));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert!(plain == unpacked);
}

#[test]
fn state_without_a_sweep_has_no_ports() {
    let metrics = RenderedMetrics::first(vec![Arc::new(Observation::default())].into());
    let own = OwnMetrics::new(Path::new("/proc"));
    let text =
        collect(DocumentBody::plain(metrics.document(&Selection::default(), Format::Text, &own)));
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("fabric_exporter_sweeps_total{fabric=\"\"} 0")
            && !text.contains("infiniband_port_")
    );
}

/// A fabric of 4 switches and 60 hosts, all of its ports with counters, an evaluation, and a saturated counter.
pub(super) fn many() -> SharedState {
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    for switch in 1..=4 {
        nodes.push(found(switch, NodeKind::Switch, 20));
        for port in 1..=15 {
            let host = 0x0002_c903_0000_0000 + switch * 100 + u64::from(port);
            nodes.push(found(host, NodeKind::Ca, 1));
            links.push((end(switch, port), end(host, 1)));
        }
        links.push((end(switch, 16), end(switch % 4 + 1, 17)));
    }
    let found = DiscoveredFabric { nodes, links, ..DiscoveredFabric::default() };
    let fabric = Fabric::assemble(found, &Naming::default(), Moment(0), None);
    let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
    let mut snapshot = Snapshot::blank(Arc::new(fabric), anchor);
    for port in &mut snapshot.readings {
        let mut reading = Reading::empty(Moment(1));
        Counter::all().for_each(|counter| reading.set(counter, 7));
        *port = Some(reading);
    }
    let assessment = fine(&snapshot);
    let observation = Observation {
        fabric: "f".into(),
        snapshot: Some(snapshot.into()),
        assessment,
        ..Observation::default()
    };
    vec![Arc::new(observation)].into()
}

/// The samples of a selection, without the number of shards, which each shard has.
fn samples(metrics: &RenderedMetrics, selection: &Selection) -> BTreeSet<String> {
    let own = OwnMetrics::new(Path::new("/nowhere"));
    let text = metrics.document(selection, Format::Text, &own).to_text().unwrap();
    let lines =
        text.lines().filter(|it| !it.starts_with(['#']) && !it.starts_with("fabric_exporter_"));
    let mut samples = BTreeSet::new();
    for line in lines {
        assert!(samples.insert(line.to_owned()), "{line} is there twice");
    }
    samples
}

proptest! {
    // Each renders up to 64 slices twice.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shards_of_any_groups_are_disjoint_and_together_the_whole(
        power in 0..=6_u32, groups in subsequence(Group::ALL.to_vec(), 0..=Group::ALL.len()),
        finer in proptest::bool::ANY,
    ) {
        let count = 2_usize.pow(power);
        let parameters = |shard: Option<usize>| {
            let groups = groups.iter().map(|it| ("collect[]".to_owned(), it.label().to_owned()));
            let shard = shard.map(|it| ("shard".to_owned(), format!("{it}/{count}")));
            let pairs: Vec<_> = groups.chain(shard).collect();
            Selection::parse(&pairs, Profile::Full).unwrap()
        };
        let mut metrics = RenderedMetrics::first(many());
        if finer {
            // The next sweep is rendered in as many slices as were requested before.
            samples(&metrics, &parameters(Some(0)));
            metrics = metrics.next(many());
            prop_assert!(metrics.is_ready(&parameters(Some(0))));
        }
        let everything = samples(&metrics, &Selection::default());
        let whole = samples(&metrics, &parameters(None));
        prop_assert!(whole.is_subset(&everything));
        let mut union = BTreeSet::new();
        for index in 0..count {
            for sample in samples(&metrics, &parameters(Some(index))) {
                prop_assert!(!union.contains(&sample), "{} is in two shards", sample);
                union.insert(sample);
            }
        }
        prop_assert_eq!(union, whole);
    }
}

#[test]
fn every_shard_has_about_the_same_number_of_samples() {
    let metrics = RenderedMetrics::first(many());
    let sizes: Vec<usize> = (0..4)
        .map(|index| {
            let pairs = [("shard".to_owned(), format!("{index}/4"))];
            samples(&metrics, &Selection::parse(&pairs, Profile::Full).unwrap()).len()
        })
        .collect();
    let whole = samples(&metrics, &Selection::default()).len();
    assert_eq!(sizes.iter().sum::<usize>(), whole);
    // A switch cannot be divided.
    assert!(sizes.iter().all(|size| size * 16 > whole), "{sizes:?} of {whole}");
}

#[test]
fn groups_divide_all_families() {
    let all: Vec<_> = fabric::all_families().map(|(family, _)| family).collect();
    let unique: BTreeSet<_> = all.iter().map(|family| &family.name).collect();
    assert_eq!(unique.len(), all.len(), "no family is in two groups");
    let (slices, _) = fabric::render(&many().fabrics, 1, &[]);
    for part in slices.iter().flat_map(|slice| slice.parts(position)) {
        assert!(group(&part.family).is_some(), "{:?}", part.family);
    }
    let metrics = RenderedMetrics::first(many());
    let all = samples(&metrics, &Selection::default());
    let lean = samples(&metrics, &Profile::Lean.into());
    assert!(lean.is_subset(&all) && lean.len() * 4 < all.len(), "{} {}", lean.len(), all.len());
}

#[test]
fn shard_says_its_index_and_the_number_of_shards() {
    let metrics = RenderedMetrics::first(state());
    let own = OwnMetrics::new(Path::new("/nowhere"));
    for (shard, expected) in [
        (None, "fabric_exporter_shards{index=\"0\"} 1"),
        (Some("0/8"), "fabric_exporter_shards{index=\"0\"} 8"),
        (Some("5/8"), "fabric_exporter_shards{index=\"5\"} 8"),
    ] {
        let pairs: Vec<_> =
            shard.map(|it| ("shard".to_owned(), it.to_owned())).into_iter().collect();
        let selection = Selection::parse(&pairs, Profile::Full).unwrap();
        let text = metrics.document(&selection, Format::Text, &own).to_text().unwrap();
        assert!(text.lines().any(|line| line == expected), "{text}");
        let is_first = text.contains("fabric_exporter_build_info");
        assert_eq!(is_first, !expected.contains("index=\"5\""));
    }
}

#[test]
fn port_without_a_cable_has_counters_only_if_it_ever_counted() {
    let mut snapshot = snapshot();
    let port = snapshot.fabric.find(end(1, 2)).unwrap();
    let line = |value| {
        format!(
            r#"infiniband_port_symbol_errors_total{{fabric="f",guid="0x0000000000000001",port="2"}} {value}"#
        )
    };
    for (total, shown) in [(0, false), (3, true)] {
        let mut reading = Reading::empty(Moment(1));
        reading.set(Counter::SymbolErrors, total);
        snapshot.readings[port] = Some(reading);
        let observation = Observation {
            fabric: "f".into(),
            snapshot: Some(snapshot.clone().into()),
            ..Observation::default()
        };
        let text = text_of(vec![Arc::new(observation)].into());
        assert_eq!(text.lines().any(|have| have == line(total)), shown, "{text}");
        assert!(
            text.contains(
                r#"infiniband_port_state{fabric="f",guid="0x0000000000000001",port="2"} 1"#
            )
        );
    }
}

#[test]
fn slices_for_shards_that_nobody_scrapes_any_more_are_not_rendered() {
    let began = Instant::now();
    let after = |seconds| began + Duration::from_secs(seconds);
    let shard = [("shard".to_owned(), "0/64".to_owned())];
    let shard = Selection::parse(&shard, Profile::Full).unwrap();
    let mut metrics = RenderedMetrics::first(many());
    let (whole, slices) =
        (samples(&metrics, &Selection::default()), |it: &RenderedMetrics| it.fabrics.slices.len());
    assert_eq!(slices(&metrics), 1);
    samples(&metrics, &shard);
    metrics = RenderedMetrics::render(after(60), Some(&metrics), many());
    assert_eq!(slices(&metrics), 64);
    metrics = RenderedMetrics::render(after(900), Some(&metrics), many());
    assert_eq!(slices(&metrics), 1);
    assert_eq!(samples(&metrics, &Selection::default()), whole);
    assert!(!metrics.is_ready(&shard) && !samples(&metrics, &shard).is_empty());
}
