//! The models of `/api/v1/search`.

use super::Label;

models! {
    /// The nodes, ports, links and devices that match a search by name, GUID or LID, and the links and ports whose
    /// cable or module matches by serial or part number. `/api/v1/history/cable` has former places of a cable.
    pub struct Search {
        /// The text of the search.
        pub query: String,
        /// Number of matches; `hits` lists the best hundred at most.
        pub found: usize,
        /// The matches, best first.
        pub hits: Vec<Hit>,
    }

    /// A match.
    pub struct Hit {
        /// `node`, `port`, `link` or `device`.
        pub kind: Label,
        /// Its fabric; for a device, the fabric of its node, if known.
        pub fabric: String,
        /// Its name.
        pub name: String,
        /// The GUID, or the id of a link.
        pub id: String,
        /// What matched: `name`, `host`, `guid`, `port_guid`, `lid`, `link`, `port`, `front_panel`,
        /// `serial_number` or `part_number`.
        pub matched: Label,
        /// How well it matched: `exact`, `prefix` or `substring`.
        pub quality: Label,
        /// Its state: of a node `down`, `cut_off` (down behind another node) or the worst verdict of its links; of a
        /// port or link its verdict. `learning` if that is only not known yet. Null for a device or without a link.
        #[serde(default)]
        pub state: Option<Label>,
        /// The path of its page.
        pub page: String,
    }
}

display_text::labeled_enum! {
    /// What a search found.
    pub enum HitKind {
        Node, "node", "A node of a fabric.";
        Port, "port", "A port without a link.";
        Link, "link", "A link, by one of its ports.";
        Device, "device", "A device of this host.";
    }
}

display_text::labeled_enum! {
    /// How well a name matches, the best first.
    #[derive(PartialOrd, Ord)]
    pub enum Quality {
        Exact, "exact", "The name is the text.";
        Prefix, "prefix", "The name begins with the text.";
        Substring, "substring", "The name contains the text.";
    }
}

impl Hit {
    /// What it is; `None` for a kind that this version does not have, from a newer exporter.
    pub fn hit_kind(&self) -> Option<HitKind> {
        HitKind::from_label(&self.kind)
    }

    /// Whether its name is the text of the search.
    pub fn is_exact(&self) -> bool {
        Quality::from_label(&self.quality) == Some(Quality::Exact)
    }
}
