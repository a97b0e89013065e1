//! The output of infiniband-diags, parsed for comparison.

use std::collections::{BTreeMap, BTreeSet};

/// The node types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A host's adapter.
    Ca,
    /// A switch.
    Switch,
    /// A router.
    Router,
}

/// A node as `ibnetdiscover` shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Its node GUID.
    pub guid: u64,
    /// Its type.
    pub kind: Kind,
    /// Its `NodeDescription`.
    pub description: String,
    /// The number of its ports, without a switch's port 0.
    pub ports: u8,
}

/// One end of a cable: node GUID and port number.
pub type End = (u64, u8);

/// A fabric as `ibnetdiscover` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// All nodes.
    pub nodes: BTreeSet<Node>,
    /// All cables, each once, its lower end first.
    pub links: BTreeSet<(End, End)>,
    /// The LIDs: a switch's at its port 0, an adapter's at each port with a cable.
    pub lids: BTreeMap<End, u16>,
}

impl Discovery {
    /// Parses the output; panics at a line it does not know.
    pub fn parse(text: &str) -> Self {
        let mut discovery = Self::default();
        let mut guid = 0;
        for line in text.lines() {
            // A port's line, `[1](2c903000001)  "S-0002..."[5]  # ...`; only adapters have the port's
            // GUID.
            if let Some(rest) = line.strip_prefix('[') {
                discovery
                    .add_port(guid, rest)
                    .unwrap_or_else(|| panic!("ibnetdiscover: a port? {line}"));
            } else if line.starts_with(|c: char| c.is_ascii_uppercase()) {
                guid = discovery
                    .add_node(line)
                    .unwrap_or_else(|| panic!("ibnetdiscover: a node? {line}"));
            } else {
                // `#` comments, and the `vendid=` and such that precede a node.
                let known = line.is_empty() || line.starts_with('#') || line.contains('=');
                assert!(known, "ibnetdiscover: {line}");
            }
        }
        discovery
    }

    /// The one node with this description.
    pub fn node(&self, description: &str) -> &Node {
        let mut found = self.nodes.iter().filter(|node| node.description == description);
        match (found.next(), found.next()) {
            (Some(node), None) => node,
            (None, _) => panic!("ibnetdiscover shows no {description}"),
            (Some(_), Some(_)) => panic!("ibnetdiscover shows several {description}"),
        }
    }

    /// The LID under which a port of the node with this description is queried.
    pub fn lid(&self, description: &str, port: u8) -> u16 {
        let node = self.node(description);
        let at = (node.guid, if node.kind == Kind::Switch { 0 } else { port });
        *self
            .lids
            .get(&at)
            .unwrap_or_else(|| panic!("ibnetdiscover shows no LID of {description} port {port}"))
    }

    /// `Switch 8 "S-0000000000200001"  # "Switch2" base port 0 lid 3 lmc 0`
    fn add_node(&mut self, line: &str) -> Option<u64> {
        let mut words = line.split_whitespace();
        let kind = match words.next()? {
            "Ca" => Kind::Ca,
            "Switch" => Kind::Switch,
            "Rt" => Kind::Router,
            _ => return None,
        };
        let ports = words.next()?.parse().ok()?;
        let guid = guid(words.next()?.trim_matches('"'))?;
        // A description may contain quotes; the text after it contains none.
        let (_, comment) = line.split_once("# \"")?;
        let (description, rest) = comment.rsplit_once('"')?;
        if kind == Kind::Switch {
            self.lids.insert((guid, 0), after(rest, "lid ")?.parse().ok()?);
        }
        self.nodes.insert(Node { guid, kind, description: description.to_owned(), ports });
        Some(guid)
    }

    /// The text after the bracket in `[2](100005)  "S-0000000000200000"[2]  # lid 4 lmc 0 "Switch1" ...`
    fn add_port(&mut self, node: u64, rest: &str) -> Option<()> {
        let (port, rest) = rest.split_once(']')?;
        let end = (node, port.parse().ok()?);
        let (_, rest) = rest.split_once('"')?;
        let (peer, rest) = rest.split_once("\"[")?;
        let (peer_port, rest) = rest.split_once(']')?;
        let peer = (guid(peer)?, peer_port.parse().ok()?);
        self.links.insert((end.min(peer), end.max(peer)));
        // An adapter's own LID comes right after the sign; a switch's line begins with the peer's name.
        if let Some(lid) = rest.split_once("# lid ").map(|(_, rest)| rest) {
            self.lids.insert(end, lid.split(' ').next()?.parse().ok()?);
        }
        Some(())
    }
}

/// The GUID in an id such as `S-0002c90200000001`.
fn guid(id: &str) -> Option<u64> {
    u64::from_str_radix(id.split_once('-')?.1, 16).ok()
}

/// The word that follows a key.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.split_whitespace().next()
}

/// A subnet manager as `sminfo` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmInfo {
    /// The requested LID.
    pub lid: u16,
    /// The GUID of the manager's port.
    pub guid: u64,
    /// Its activity count.
    pub activity: u64,
    /// Its priority.
    pub priority: u64,
    /// The code of its state.
    pub state: u64,
}

/// The one line of `sminfo`: `sminfo: sm lid 1 sm guid 0x10000, activity count 5 priority 0 state 3 SMINFO_MASTER`
pub fn sminfo(text: &str) -> SmInfo {
    let number = |key: &str| -> Option<u64> {
        let word = after(text, key)?.trim_end_matches(',');
        match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        }
    };
    let of = |key| number(key).unwrap_or_else(|| panic!("sminfo: no {key}in {text}"));
    SmInfo {
        lid: of("sm lid ").try_into().unwrap_or_else(|_| panic!("sminfo: a LID? {text}")),
        guid: of("sm guid "),
        activity: of("activity count "),
        priority: of("priority "),
        state: of(" state "),
    }
}

/// The counters that `perfquery` prints, by its names for them, with `PortSelect` and such.
pub fn perfquery(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let parsed = line.split_once(':').and_then(|(name, value)| {
                let value = value.trim_start_matches('.');
                let number = match value.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => value.parse(),
                };
                Some((name.to_owned(), number.ok()?))
            });
            parsed.unwrap_or_else(|| panic!("perfquery: {line}"))
        })
        .collect()
}
