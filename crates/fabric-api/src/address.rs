//! The addresses of the pages. The labels of an alert suffice to build one.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The overview of all fabrics.
pub const OVERVIEW: &str = "/";
/// The list of links: `?fabric=NAME&verdict=bad`.
pub const LINKS: &str = "/links";
/// The list of switches: `?fabric=NAME&sort=utilization`.
pub const SWITCHES: &str = "/switches";
/// The list of hosts.
pub const HOSTS: &str = "/hosts";
/// The traffic of a fabric: `?fabric=NAME`.
pub const TRAFFIC: &str = "/traffic";
/// A link, by its id: `/link/0x…:5-0x…:1?fabric=NAME`.
pub const LINK: &str = "/link/{link}";
/// The hosts whose packets cross a link: it asks the monitor of the fabric.
pub const LINK_HOSTS: &str = "/link/{link}/hosts";
/// What changed between two moments: `?diff=TIME&at=TIME&fabric=NAME`.
pub const CHANGES: &str = "/changes";
/// The route between two nodes: `?from=NODE&to=NODE&fabric=NAME`.
pub const ROUTE: &str = "/route";
/// The links that packets of a host cross: `?host=HOST&fabric=NAME`.
pub const CROSSED: &str = "/crossed";
/// A node, by its GUID: `/node/0x…?fabric=NAME`.
pub const NODE: &str = "/node/{guid}";
/// A port, by its node's GUID and its number: redirects to its link, or to its node.
pub const PORT: &str = "/port/{guid}/{port}";
/// The topology of a fabric, as a map: `?fabric=NAME&mask=errors&window=1h&open=0x…`.
pub const TOPOLOGY: &str = "/topology";
/// The picture of the map as a file, with the same parameters.
pub const TOPOLOGY_SVG: &str = "/topology.svg";
/// The list of cables and modules: `?fabric=NAME&sort=temperature`.
pub const MODULES: &str = "/modules";
/// The latest events.
pub const EVENTS: &str = "/events";
/// The devices of this host.
pub const HOST: &str = "/host";
/// The search by name, GUID or LID: `?q=…`.
pub const SEARCH: &str = "/search";
/// The list of runbooks.
pub const RUNBOOKS: &str = "/runbooks";
/// The runbook of an alert: `/runbooks/InfinibandCableBad`.
pub const RUNBOOK: &str = "/runbooks/{alert}";
/// The style sheet of all pages.
pub const STYLE: &str = "/-/style.css";
/// The icon of all pages.
pub const ICON: &str = "/-/icon.svg";
/// The characters to escape in a device's name in a fragment; the kernel's own names need no escape.
const IN_FRAGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// A path with query parameters; empty values are left out.
pub fn with(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        let joint = if address.contains('?') { '&' } else { '?' };
        // Writing to a string does not fail.
        let _ = write!(address, "{joint}{key}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    address
}

/// The page of a link, by its id.
pub fn link(fabric: &str, id: impl Display) -> String {
    with(&format!("/link/{id}"), &[("fabric", fabric)])
}

/// The page that asks which hosts' packets cross a link.
pub fn link_hosts(fabric: &str, id: impl Display) -> String {
    with(&format!("/link/{id}/hosts"), &[("fabric", fabric)])
}

/// The page of a node, by its GUID.
pub fn node(fabric: &str, guid: impl Display) -> String {
    with(&format!("/node/{guid}"), &[("fabric", fabric)])
}

/// A port's row on the page of its node.
pub fn port_of_node(fabric: &str, guid: impl Display, number: u8) -> String {
    format!("{}#port-{number}", node(fabric, guid))
}

/// A dashboard of this project in Grafana, by the end of its UID, with values of its variables.
pub fn dashboard(grafana: &str, name: &str, variables: &[(&str, &str)]) -> String {
    let keys: Vec<String> = variables.iter().map(|(name, _)| format!("var-{name}")).collect();
    let pairs: Vec<(&str, &str)> =
        keys.iter().zip(variables).map(|(key, (_, value))| (&**key, *value)).collect();
    with(&format!("{grafana}/d/fabric-exporter-{name}"), &pairs)
}

/// The runbook of an alert.
pub fn runbook(alert: &str) -> String {
    format!("{RUNBOOKS}/{alert}")
}

/// A device's section on the page of this host. A device can be renamed to any text.
pub fn device(name: &str) -> String {
    format!("{HOST}#{}", utf8_percent_encode(name, IN_FRAGMENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_fabric::topology::LinkId;
    use ib_mad::{Guid, PortKey};

    #[test]
    fn names_in_addresses_are_percent_encoded() {
        assert_eq!(
            with("/links", &[("fabric", "a&b=\"c d\"#"), ("verdict", ""), ("page", "2")]),
            "/links?fabric=a%26b%3D%22c%20d%22%23&page=2"
        );
        assert_eq!(
            link("", LinkId { low: PortKey::new(Guid(1), 2), high: PortKey::new(Guid(3), 4) }),
            "/link/0x0000000000000001:2-0x0000000000000003:4"
        );
        assert_eq!(
            dashboard("https://g/sub", "switch", &[("fabric", "a b"), ("switch", "leaf-1")]),
            "https://g/sub/d/fabric-exporter-switch?var-fabric=a%20b&var-switch=leaf%2D1"
        );
        assert_eq!((&*device("mlx5_0"), &*device("a b#%")), ("/host#mlx5_0", "/host#a%20b%23%25"));
    }
}
