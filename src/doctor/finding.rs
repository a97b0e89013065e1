//! A finding of a check.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a finding is about, in the order in which a host is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Cards on the PCI bus.
    Pci,
    /// The kernel's drivers and modules.
    Modules,
    /// Devices, their ports and links.
    Ports,
    /// The subnet manager, which assigns LIDs.
    SubnetManager,
    /// Names and GUIDs of the nodes in the fabric.
    Fabric,
    /// Device files and limits.
    Permissions,
    /// P_Keys.
    Partitions,
    /// IP over InfiniBand.
    Ipoib,
    /// Firmware of devices of one type.
    Firmware,
    /// The exporter's own settings and files.
    Configuration,
    /// The address that it listens on.
    Listener,
}

impl Subject {
    /// The heading in the table.
    pub fn label(self) -> &'static str {
        match self {
            Subject::Pci => "PCI",
            Subject::Modules => "kernel modules",
            Subject::Ports => "devices and ports",
            Subject::SubnetManager => "subnet manager",
            Subject::Fabric => "fabric",
            Subject::Permissions => "permissions and limits",
            Subject::Partitions => "partitions",
            Subject::Ipoib => "IPoIB",
            Subject::Firmware => "firmware",
            Subject::Configuration => "configuration",
            Subject::Listener => "listener",
        }
    }
}

/// The severity, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As expected.
    Ok,
    /// Nothing to do: not needed here, not visible, or good to know.
    Note,
    /// It works, but incompletely, or slower than it could.
    Warn,
    /// The exporter, or the fabric at this host, does not work.
    Bad,
}

/// The result of a check of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject.
    pub subject: Subject,
    /// The item: `mlx5_0 port 1`, `ib_umad`.
    pub what: String,
    /// The severity.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What is expected and why; `None` if the expectation is met.
    pub wanted: Option<String>,
    /// The command or action that fixes it.
    pub mend: Option<String>,
}

impl Finding {
    /// A finding of this level.
    pub fn new(
        level: Level,
        subject: Subject,
        what: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let (what, found) = (what.into(), found.into());
        Finding { subject, what, level, found, wanted: None, mend: None }
    }

    /// A finding of level [`Level::Ok`].
    pub fn ok(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Ok, subject, what, found)
    }

    /// A finding of level [`Level::Note`].
    pub fn note(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Note, subject, what, found)
    }

    /// A finding of level [`Level::Warn`].
    pub fn warn(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Warn, subject, what, found)
    }

    /// A finding of level [`Level::Bad`].
    pub fn bad(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Bad, subject, what, found)
    }

    /// Adds what is expected.
    #[must_use]
    pub fn wanted(self, wanted: impl Into<String>) -> Self {
        Finding { wanted: Some(wanted.into()), ..self }
    }

    /// Adds what fixes it.
    #[must_use]
    pub fn mend(self, mend: impl Into<String>) -> Self {
        Finding { mend: Some(mend.into()), ..self }
    }
}

/// A list with at most `max` items: `a, b, 3 more`.
pub fn shortened(mut items: Vec<String>, max: usize) -> String {
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    if more > 0 {
        items.push(format!("{more} more"));
    }
    items.join(", ")
}

/// Values with the items that have them: `2044: ib0 ib1; 4092: ib2`.
pub fn grouped<V: std::fmt::Display>(names_by_value: &BTreeMap<V, Vec<&str>>) -> String {
    let groups =
        names_by_value.iter().map(|(value, names)| format!("{value}: {}", names.join(" ")));
    groups.collect::<Vec<_>>().join("; ")
}
