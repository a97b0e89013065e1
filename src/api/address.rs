//! Where the pages are. An alert's labels are all that is needed to make one.

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use ib_fabric::topology::{End, LinkId};
use ib_mad::Guid;

/// The fabric at a glance.
pub const OVERVIEW: &str = "/";
/// The list of cables: `?fabric=NAME&verdict=bad`.
pub const LINKS: &str = "/links";
/// A cable, by its id: `/link/0x…:5-0x…:1?fabric=NAME`.
pub const LINK: &str = "/link/{link}";
/// A node, by its GUID: `/node/0x…?fabric=NAME`.
pub const NODE: &str = "/node/{guid}";
/// A port, by its node's GUID and its number: leads to its cable, or to its node.
pub const PORT: &str = "/port/{guid}/{port}";
/// How the fabric is wired: `?fabric=NAME`.
pub const TOPOLOGY: &str = "/topology";
/// What happened lately.
pub const EVENTS: &str = "/events";
/// This host's own devices.
pub const HOST: &str = "/host";
/// What has a name, a GUID or a LID: `?q=…`.
pub const SEARCH: &str = "/search";
/// How the pages look.
pub const STYLE: &str = "/-/style.css";

/// What is written otherwise in a device's name: those that the kernel gives need nothing.
const NAMED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// A path with some pairs behind it, those left out that say nothing.
pub fn with(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        let joint = if address.contains('?') { '&' } else { '?' };
        // Writing to a string does not fail.
        let _ = write!(address, "{joint}{key}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    address
}

/// A cable's page.
pub fn link(fabric: &str, link: LinkId) -> String {
    with(&format!("/link/{link}"), &[("fabric", fabric)])
}

/// A node's page.
pub fn node(fabric: &str, guid: Guid) -> String {
    with(&format!("/node/{guid}"), &[("fabric", fabric)])
}

/// A port's place on its node's page.
pub fn port_of_node(fabric: &str, (guid, number): End) -> String {
    format!("{}#port-{number}", node(fabric, guid))
}

/// A device's place on the page of this host's. Whoever renames one may call it what he likes.
pub fn device(name: &str) -> String {
    format!("{HOST}#{}", utf8_percent_encode(name, NAMED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_an_address() {
        assert_eq!(
            with("/links", &[("fabric", "a&b=\"c d\"#"), ("verdict", ""), ("page", "2")]),
            "/links?fabric=a%26b%3D%22c%20d%22%23&page=2"
        );
        assert_eq!(
            link("", LinkId((Guid(1), 2), (Guid(3), 4))),
            "/link/0x0000000000000001:2-0x0000000000000003:4"
        );
        assert_eq!((&*device("mlx5_0"), &*device("a b#%")), ("/host#mlx5_0", "/host#a%20b%23%25"));
    }

    /// What pages are called is not free for the metrics.
    #[test]
    fn the_settings_know_which_paths_are_taken() {
        for path in [LINKS, LINK, NODE, PORT, TOPOLOGY, EVENTS, HOST, SEARCH, STYLE] {
            let first = path.split('/').nth(1).unwrap();
            assert!(crate::config::TAKEN.contains(&first), "{path}");
        }
    }
}
