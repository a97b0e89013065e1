//! Verdicts of a bad cable and of a pulled one, in ibsim and in our own simulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use rig::ground::{Ground, Site};
use rig::{Metrics, topology};

fn site() -> Site {
    Site::of(topology::fat_tree_2(8, 10, 4, 3))
}

rig::on_either_ground! {
    cable_with_symbol_errors_is_bad: site(),
    pulled_cable_is_one_flap_with_its_duration: site(),
}

/// The id of the link at a port: the label `link` of the port's info.
fn link(ground: &impl Ground, metrics: &Metrics, node: &str, port: u8) -> String {
    let id = [("guid", ground.guid(node)), ("port", &port.to_string())];
    metrics.sample("infiniband_port_info", &id).unwrap().labels["link"].clone()
}

/// The worst reason of a link, and its weight.
fn verdict(metrics: &Metrics, link: &str) -> (String, f64) {
    let reasons = metrics.all("infiniband_link_verdict");
    let of_link = reasons.filter(|(labels, _)| labels["link"] == link);
    let (labels, weight) = of_link.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    (labels["reason"].clone(), weight)
}

/// Links with at least this verdict.
fn at_least(metrics: &Metrics, least: f64) -> Vec<&str> {
    let all = metrics.all("infiniband_link_verdict");
    let mut links: Vec<&str> =
        all.filter(|(_, weight)| *weight >= least).map(|(labels, _)| &*labels["link"]).collect();
    links.sort_unstable();
    links.dedup();
    links
}

fn cable_with_symbol_errors_is_bad(ground: &mut impl Ground) {
    let ends = [("leaf-0-0".to_owned(), 5), ground.peer("leaf-0-0", 5)];
    let link = link(ground, &ground.metrics(), "leaf-0-0", 5);
    for (node, port) in &ends {
        assert!(link.contains(&format!("{}:{port}", ground.guid(node))), "{link} names {node}");
    }
    // Errors are constant. They are bad after two intervals of the shortest window, of 15 s each.
    let mut sweeps = 0;
    let metrics = loop {
        sweeps += 3;
        assert!(sweeps <= 90, "{:?}", verdict(&ground.metrics(), &link));
        ground.set_one("leaf-0-0", 5, "symbol_errors", 100 * sweeps);
        ground.wait_sweeps(3);
        let metrics = ground.metrics();
        if verdict(&metrics, &link).1 >= 3.0 {
            break metrics;
        }
    };
    assert_eq!(verdict(&metrics, &link), ("bit_errors".into(), 3.0));
    assert_eq!(at_least(&metrics, 2.0), [&*link], "no other cable is suspected");
    let repair = metrics.sample("infiniband_link_repair", &[("link", &link)]).unwrap();
    assert_eq!(repair.labels["repair"], "reseat");
    // Only into that end.
    let ratio = |(node, port): &(String, u8)| {
        let id = [("guid", ground.guid(node)), ("port", &port.to_string())];
        metrics.get("infiniband_link_bit_error_ratio", &[&id[..], &[("window", "12m")]].concat())
    };
    let limit = metrics.get("infiniband_link_bit_error_ratio_limit", &[("link", &link)]).unwrap();
    let into = ratio(&ends[0]).unwrap();
    assert!(into > 10.0 * limit, "{into} of {limit}");
    assert!(ratio(&ends[1]).is_none_or(|ratio| ratio < limit));
}

fn pulled_cable_is_one_flap_with_its_duration(ground: &mut impl Ground) {
    let metrics = ground.metrics();
    let link = link(ground, &metrics, "leaf-0-0", 5);
    let id = [("link", &*link)];
    assert_eq!(metrics.get("infiniband_link_up", &id), Some(1.0));
    assert_eq!(metrics.get("infiniband_link_flaps_total", &id), Some(0.0));

    ground.unlink("leaf-0-0", 5);
    ground.wait_for("the link to be down", |metrics| {
        metrics.get("infiniband_link_up", &id) == Some(0.0)
    });
    ground.wait_sweeps(4);
    assert_eq!(verdict(&ground.metrics(), &link), ("down".into(), 2.0));

    ground.relink("leaf-0-0", 5);
    ground.wait_for("the flap to be counted", |metrics| {
        metrics.get("infiniband_link_flaps_total", &id) == Some(1.0)
    });
    ground.wait_sweeps(6);
    let metrics = ground.metrics();
    assert_eq!(metrics.get("infiniband_link_up", &id), Some(1.0));
    assert_eq!(
        metrics.get("infiniband_link_flaps_total", &id),
        Some(1.0),
        "once, not from each end"
    );
    let [least, most] = ["down", "down_max"]
        .map(|down| metrics.get(&format!("infiniband_link_{down}_seconds_total"), &id).unwrap());
    assert!(2.0 < least && least < most && most < 60.0, "{least} to {most} s");
    assert_eq!(metrics.get("infiniband_link_outage_seconds_count", &id), Some(1.0));
    let middle = metrics.get("infiniband_link_outage_seconds_sum", &id).unwrap();
    assert!((middle - f64::midpoint(least, most)).abs() < 0.01, "{middle} s");
    assert_eq!(verdict(&metrics, &link), ("flapping".into(), 2.0));
    assert_eq!(at_least(&metrics, 2.0), [&*link]);
}
