//! What was found, what is wanted, and the command that mends it.

use serde::Serialize;

/// What a finding is about; in the order in which people set a host up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Cards on the PCI bus.
    Pci,
    /// The kernel's drivers and modules.
    Modules,
    /// Devices, their ports and links.
    Ports,
    /// Who gives LIDs.
    SubnetManager,
    /// Names and GUIDs of the nodes in the fabric.
    Fabric,
    /// Device files and limits.
    Permissions,
    /// P_Keys.
    Partitions,
    /// IP over InfiniBand.
    Ipoib,
    /// Firmware of like devices.
    Firmware,
    /// The exporter's own settings and files.
    Configuration,
    /// The address that it serves at.
    Listener,
}

impl Subject {
    /// Its heading.
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

/// How bad it is, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As wanted.
    Ok,
    /// Nothing that has to be done: not needed here, not to be seen, or good to know.
    Note,
    /// It works, with something missing or slower than it could be.
    Warn,
    /// The exporter, or the fabric at this host, does not work like this.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it belongs to.
    pub subject: Subject,
    /// Which thing: `mlx5_0 port 1`, `ib_umad`.
    pub what: String,
    /// How bad it is.
    pub level: Level,
    /// How it is.
    pub found: String,
    /// How it should be, and why; nothing where it is so.
    pub wanted: Option<String>,
    /// The command, or the deed, that mends it.
    pub mend: Option<String>,
}

impl Finding {
    fn new(
        level: Level,
        subject: Subject,
        what: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let (what, found) = (what.into(), found.into());
        Finding { subject, what, level, found, wanted: None, mend: None }
    }

    /// As wanted.
    pub fn ok(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Ok, subject, what, found)
    }

    /// Good to know.
    pub fn note(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Note, subject, what, found)
    }

    /// It works, but.
    pub fn warn(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Warn, subject, what, found)
    }

    /// It does not work.
    pub fn bad(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Self {
        Finding::new(Level::Bad, subject, what, found)
    }

    /// The same, and what is wanted instead.
    #[must_use]
    pub fn wanted(self, wanted: impl Into<String>) -> Self {
        Finding { wanted: Some(wanted.into()), ..self }
    }

    /// The same, and what mends it.
    #[must_use]
    pub fn mend(self, mend: impl Into<String>) -> Self {
        Finding { mend: Some(mend.into()), ..self }
    }
}
