//! The built-in scenarios of `demo`, of which one is for any number of hosts.

use std::ops::RangeInclusive;

use super::problem::{ScenarioError, bad_override};

/// The scenario of `demo`: it shows the most in five minutes, and its file is the first one to read.
const DEMO: &str = include_str!("demo.yml");

/// What happened on its fabric before it starts.
const DEMO_PAST: &str = include_str!("demo-past.yml");

/// The scenario of `demo --topology xdr`.
pub(super) const DEMO_XDR: &str = include_str!("demo-xdr.yml");

/// The sizes of its fabric: with 30,000 hosts it has 181,000 ports. A subnet has no LIDs for more than 47,000 hosts.
const DEMO_HOSTS: RangeInclusive<u32> = 2..=30_000;

/// What in the text of [`DEMO`] depends on the number of hosts.
const DEMO_TREE: &str = "levels: 2, hosts: 36, radix: 18, down: 9, up: 6,";
const DEMO_UPLINK: &str = "leaf-0-1[10]";
const DEMO_FLAPPING: &str = "leaf-0-2[3]";
const DEMO_NAMED: [u32; 2] = [14, 28];
/// The same in the text of [`DEMO_PAST`].
const PAST_UPLINK: &str = "leaf-0-0[12]";
const PAST_FLAPPING: &str = "host-5";

/// The levels of the tree, and of its switches the number of ports, of those to hosts and of those up.
fn demo_shape(hosts: u32) -> (u32, u32, u32, u32) {
    match hosts {
        ..=36 => (2, 18, hosts.div_ceil(4), 6),
        37..=1920 => (2, 64, 30, 30),
        _ => (3, 64, 30, 30),
    }
}

/// Hosts of a smaller fabric have the same places in it. Not host-1, which has the master SM.
fn demo_host(hosts: u32, of_36: u32) -> String {
    match hosts.min(36) * of_36 / 36 {
        1 => "host-0".to_owned(),
        host => format!("host-{host}"),
    }
}

/// The built-in scenario for a number of hosts. Up to 36 there are four leaves, if there are as many hosts. A larger
/// tree has switches of 64 ports, 30 to hosts, 30 up and 4 for the rail host, and from 64 leaves on a third level.
fn demo_for(hosts: u32) -> String {
    let (levels, radix, down, up) = demo_shape(hosts);
    let tree = format!("levels: {levels}, hosts: {hosts}, radix: {radix}, down: {down}, up: {up},");
    let host = |of_36| demo_host(hosts, of_36);
    let text = DEMO.replace(DEMO_TREE, &tree);
    let text = text.replace(DEMO_UPLINK, &format!("leaf-0-1[{}]", down + 1));
    let text = text.replace(DEMO_FLAPPING, &host(20));
    DEMO_NAMED.iter().fold(text, |text, &named| {
        text.replace(&format!(": host-{named}\n"), &format!(": {}\n", host(named)))
    })
}

/// The text of the built-in scenario, on a fabric with this many hosts, by default 36.
pub(super) fn text(hosts: Option<u32>) -> Result<String, ScenarioError> {
    match hosts {
        None => Ok(DEMO.to_owned()),
        Some(hosts) if DEMO_HOSTS.contains(&hosts) => Ok(demo_for(hosts)),
        Some(hosts) => {
            let (least, most) = (DEMO_HOSTS.start(), DEMO_HOSTS.end());
            Err(bad_override("--hosts", &format!("{hosts} is not between {least} and {most}")))
        }
    }
}

/// The text of what happened on the fabric in the hours before it starts.
pub(super) fn past_text(hosts: Option<u32>) -> String {
    let hosts = hosts.unwrap_or(36);
    let (_, _, down, _) = demo_shape(hosts);
    let text = DEMO_PAST.replace(PAST_UPLINK, &format!("leaf-0-0[{}]", down + 3));
    text.replace(PAST_FLAPPING, &demo_host(hosts, 5))
}
