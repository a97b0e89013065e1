//! The result of a check: what was found, what is expected, and how to fix it.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;

display_text::labeled_enum! {
    /// What a finding is about, in the order in which a host is set up; with its heading in the table.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Subject {
        Pci, "PCI", "Adapters and their slots.";
        Modules, "kernel modules", "The kernel's drivers.";
        Ports, "devices and ports", "RDMA devices and the links of their ports.";
        SubnetManager, "subnet manager", "Whether a subnet manager responds.";
        Fabric, "fabric", "Names and GUIDs of the nodes in the fabric.";
        Permissions, "permissions and limits", "Device files, and limits of the process.";
        Partitions, "partitions", "The P_Keys of ports.";
        Ipoib, "IPoIB", "IP over InfiniBand.";
        Firmware, "firmware", "The firmware of devices.";
        Configuration, "configuration", "The exporter's own settings and files.";
        Listener, "listener", "The listen addresses.";
    }
}

display_text::labeled_enum! {
    /// The severity, the worst last; with its mark in the table.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Level {
        Ok, "ok", "As expected.";
        Note, "--", "Nothing to do: not needed here, not visible, or good to know.";
        Warn, " !", "It works, but incompletely, or slower than it could.";
        Bad, "!!", "The exporter, or the fabric at this host, does not work.";
    }
}

/// The result of a check of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub subject: Subject,
    /// The item: `mlx5_0 port 1`, `ib_umad`.
    pub what: String,
    pub level: Level,
    pub found: String,
    /// What is expected and why; `None` if the expectation is met.
    pub expected: Option<String>,
    /// The command or setting that fixes it.
    pub fix: Option<String>,
}

/// A finding without advice.
pub(super) fn finding(
    level: Level,
    subject: Subject,
    what: impl Into<String>,
    found: impl Into<String>,
) -> Finding {
    let (what, found) = (what.into(), found.into());
    Finding { subject, what, level, found, expected: None, fix: None }
}

macro_rules! findings_of_level {
    ($($name:ident: $level:ident,)+) => {$(
        pub(super) fn $name(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Finding {
            finding(Level::$level, subject, what, found)
        }
    )+};
}

findings_of_level! { ok: Ok, note: Note, warn: Warn, bad: Bad, }

impl Finding {
    #[must_use]
    pub fn expected(self, expected: impl Into<String>) -> Self {
        Finding { expected: Some(expected.into()), ..self }
    }

    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Finding { fix: Some(fix.into()), ..self }
    }
}

/// A list with at most `max` items: `a, b, 3 more`.
pub(super) fn shortened(mut items: Vec<String>, max: usize) -> String {
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    if more > 0 {
        items.push(format!("{more} more"));
    }
    items.join(", ")
}

/// Values with the items that have them: `2044: ib0 ib1; 4092: ib2`.
pub(super) fn grouped<V: Display>(names_by_value: &BTreeMap<V, Vec<&str>>) -> String {
    let groups =
        names_by_value.iter().map(|(value, names)| format!("{value}: {}", names.join(" ")));
    groups.collect::<Vec<_>>().join("; ")
}
