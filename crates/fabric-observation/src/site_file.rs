//! The site files that a monitor reads.

/// A file in which a site describes its fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiteFileKind {
    /// The names of nodes.
    NodeNameMap,
    /// The M_Keys of ports.
    MKey,
    /// Maintenance windows.
    Maintenance,
}

impl SiteFileKind {
    /// All of them.
    pub const ALL: [SiteFileKind; 3] =
        [SiteFileKind::NodeNameMap, SiteFileKind::MKey, SiteFileKind::Maintenance];

    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            SiteFileKind::NodeNameMap => "node-name-map",
            SiteFileKind::MKey => "M_Key file",
            SiteFileKind::Maintenance => "maintenance file",
        }
    }

    /// As metrics call it.
    pub fn label(self) -> &'static str {
        match self {
            SiteFileKind::NodeNameMap => "node_name_map",
            SiteFileKind::MKey => "m_key",
            SiteFileKind::Maintenance => "maintenance",
        }
    }
}
