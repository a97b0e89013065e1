//! The host of a channel adapter and its device there, which are parts of the adapter's name.
//!
//! rdma-ndd sets the NodeDescription of an HCA to `%h %d` by default (rdma-core, rdma-ndd.8): the host name without
//! domain, and the device. So a host with eight HCAs is eight nodes, `gpu17 mlx5_0` to `gpu17 mlx5_7`.

use std::str::FromStr;

use ib_mad::node::NodeKind;
use regex_lite::Regex;

/// Matches `HOST DEVICE` where the device has a name of Linux: `mlx5_0`, `mlx5_bond_0`, and `ibp12s0` or `ibs3` with the
/// persistent names of rdma-core; or the `HCA-1` of older drivers. Another second word may be a part of the host's name.
const DEFAULT: &str = "(.+) (?:mlx|ib|hfi|qib|HCA-)[^ ]*";

/// A regular expression that must match the whole name of an HCA; its first group is the host.
#[derive(Clone, Debug)]
pub struct HostRegex(Regex);

impl FromStr for HostRegex {
    /// What is wrong with the pattern, in one line.
    type Err = String;

    fn from_str(pattern: &str) -> Result<Self, Self::Err> {
        let regex = Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
            let error = error.to_string().replace('\n', " ");
            format!("{pattern:?} is not a valid regular expression: {error}")
        })?;
        if regex.captures_len() < 2 {
            let example = "\"(.+) mlx5_[0-9]+\"";
            return Err(format!("{pattern:?} has no group for the host, as in {example}"));
        }
        Ok(HostRegex(regex))
    }
}

impl Default for HostRegex {
    #[expect(clippy::expect_used, reason = "a constant, which the tests use")]
    fn default() -> Self {
        DEFAULT.parse().expect("the default is valid")
    }
}

/// Where a channel adapter is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub host: &'a str,
    /// What the name has behind the host: `mlx5_3`.
    pub device: Option<&'a str>,
}

impl HostRegex {
    /// The place of a node by its name: the host is the group, or the whole name if the expression does not match. Only
    /// channel adapters are in hosts.
    pub(super) fn place<'a>(&self, kind: NodeKind, name: &'a str) -> Option<Place<'a>> {
        if kind != NodeKind::Ca || name.is_empty() {
            return None;
        }
        let group = self.0.captures(name).and_then(|groups| groups.get(1));
        let host = group.map_or("", |group| group.as_str().trim());
        if host.is_empty() {
            return Some(Place { host: name, device: None });
        }
        let behind = group.and_then(|group| name.get(group.end()..)).unwrap_or_default();
        // Sites separate the two with a blank, `-`, `.`, `/` or the like.
        let device = behind.trim_matches(|char: char| !char.is_alphanumeric());
        Some(Place { host, device: Some(device).filter(|device| !device.is_empty()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(pattern: Option<&str>) -> HostRegex {
        pattern.map_or_else(HostRegex::default, |pattern| pattern.parse().unwrap())
    }

    fn host(pattern: Option<&str>, name: &str) -> Option<String> {
        regex(pattern).place(NodeKind::Ca, name).map(|place| place.host.to_owned())
    }

    #[test]
    fn device_is_what_follows_the_host() {
        let of_site = Some("ib-([a-z0-9]+)(?:-rail[0-9]+)?");
        for (pattern, name, device) in [
            (None, "gpu17 mlx5_3", Some("mlx5_3")),
            (None, "gpu17 HCA-2", Some("HCA-2")),
            (None, "gpu17 ibp204s0f0", Some("ibp204s0f0")),
            (None, "gpu17", None),
            (None, "mlx5_0", None),
            (of_site, "ib-gpu17-rail4", Some("rail4")),
            (of_site, "ib-gpu17", None),
            // The host is behind the device.
            (Some(".* ([a-z0-9]+)"), "mlx5_3 gpu17", None),
        ] {
            let place = regex(pattern).place(NodeKind::Ca, name).unwrap();
            assert_eq!(place.device, device, "{name}");
        }
    }

    #[test]
    fn host_is_the_name_without_the_device() {
        for (name, expected) in [
            ("gpu17 mlx5_3", "gpu17"),
            ("gpu17 mlx5_bond_0", "gpu17"),
            ("gpu17 ibp204s0f0", "gpu17"),
            ("gpu17 hfi1_0", "gpu17"),
            ("gpu17 HCA-2", "gpu17"),
            ("gpu17", "gpu17"),
            ("rack 12, node 3 mlx5_0", "rack 12, node 3"),
            // What does not look like a device is a part of the host's name.
            ("storage 1", "storage 1"),
            (
                "MT4129 ConnectX7   Mellanox Technologies",
                "MT4129 ConnectX7   Mellanox Technologies",
            ),
            ("mlx5_0", "mlx5_0"),
            ("gpu\"17\u{fffd} mlx5_0", "gpu\"17\u{fffd}"),
            ("söhne mlx5_0", "söhne"),
        ] {
            assert_eq!(host(None, name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(host(None, ""), None);
    }

    #[test]
    fn only_channel_adapters_have_hosts() {
        let hosts = HostRegex::default();
        for kind in NodeKind::ALL {
            let place = hosts.place(kind, "gpu17 mlx5_3");
            assert_eq!(place.is_some(), kind == NodeKind::Ca, "{kind:?}");
        }
    }

    #[test]
    fn group_of_the_site_is_the_host() {
        let pattern = Some("ib-([a-z0-9]+)(?:-rail[0-9]+)?|(?:spare)( *)");
        assert_eq!(host(pattern, "ib-gpu17-rail4").as_deref(), Some("gpu17"));
        // The expression must match the whole name, and the group must not be empty.
        assert_eq!(host(pattern, "the ib-gpu17").as_deref(), Some("the ib-gpu17"));
        assert_eq!(host(pattern, "spare ").as_deref(), Some("spare "));
        assert_eq!(host(Some("([a-z]*)[0-9]+"), "17").as_deref(), Some("17"));
    }

    #[test]
    fn invalid_expression_has_a_one_line_error() {
        for (pattern, says) in [
            ("([a-z+ mlx5_.*", "not a valid regular expression"),
            ("[a-z]+", "has no group for the host"),
            ("(?:gpu)[0-9]+", "has no group for the host"),
        ] {
            let error = pattern.parse::<HostRegex>().unwrap_err();
            assert!(error.contains(says) && error.contains(pattern), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
