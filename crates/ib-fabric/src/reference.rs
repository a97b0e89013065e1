//! References to nodes, ports and links: what people copy from a table, a page, an alert or another tool, and enter
//! in a command or a search. Each way in which a name is printed can be entered.

use std::borrow::Cow;

use ib_mad::ids::{Guid, Lid, PortNumber};

use super::topology::LinkId;
use super::unique_names::shared_name;
use ib_mad::PortKey;

/// A text, and what it can mean. One text may have several meanings: `12` is a LID, and may be the name of a node.
///
/// ```
/// use ib_fabric::reference::Reference;
///
/// for text in ["leaf-0-1 port 10", "leaf-0-1/10", "leaf-0-1:10", "LEAF-0-1[10]"] {
///     let reference = Reference::new(text);
///     let port = reference.ports.first().unwrap();
///     assert!(port.is_at("leaf-0-1", "0x1".parse().unwrap(), 10));
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The text without blanks around it: the name of a node, or a part of one.
    pub text: String,
    /// A GUID: `0x0002c90300000001`, with or without `0x`, or `0002:c903:0000:0001`.
    pub guid: Option<Guid>,
    /// A unicast LID: `12` or `0xc`.
    pub lid: Option<Lid>,
    /// The id of a link: `0x…:5-0x…:1`.
    pub link: Option<LinkId>,
    /// A port, or the two ends of a link: `leaf-0-1 port 10 – host-7 port 1`.
    pub ports: Vec<PortReference>,
}

/// A port: its node, by name or GUID, and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortReference {
    /// The node's name or GUID.
    pub node: String,
    /// The number.
    pub number: PortNumber,
}

/// What is between the ends of a link: in our own tables and pages, and in those of other tools.
const END_SEPARATORS: [&str; 4] = [" – ", " <-> ", " <==> ", " - "];

impl Reference {
    /// Everything that a text can mean.
    pub fn new(text: &str) -> Self {
        let text = text.trim();
        Reference {
            text: text.to_owned(),
            guid: guid(text),
            lid: lid(text),
            link: text.parse().ok(),
            ports: ends(text).unwrap_or_else(|| port(text).into_iter().collect()),
        }
    }

    /// Whether this is the name of a node, also without the digits that tell nodes of one name apart, or its GUID.
    /// Several blanks in a row are one, as browsers copy them.
    pub fn is_node(&self, name: &str, guid: Guid) -> bool {
        is_node(&self.text, name, guid) || self.guid == Some(guid)
    }

    /// What is behind the name or GUID of a node: it may name a port at the front panel, as in `leaf-1 1/19/1`,
    /// `leaf-1[sw10p2]` and `leaf-1 port IB1/19/1`.
    pub fn front_panel_of(&self, name: &str, guid: Guid) -> Option<&str> {
        const SEPARATORS: [char; 4] = [' ', '[', ':', '/'];
        let first = self.text.split(SEPARATORS).next().unwrap_or_default();
        // Short ones without the prefix are names, even if all their letters are hex digits.
        let looks_like_guid = first.starts_with("0x") || first.len() == 16;
        let is_guid = looks_like_guid && self::guid(first) == Some(guid);
        let mut names = [name, shared_name(name, guid)].into_iter().chain(is_guid.then_some(first));
        names.find_map(|node| {
            let (before, rest) = self.text.split_at_checked(node.len())?;
            let is_it = before.eq_ignore_ascii_case(node) && rest.starts_with(SEPARATORS);
            let rest = if is_it { rest.trim() } else { return None };
            let rest = match rest.strip_prefix('[') {
                Some(rest) => rest.strip_suffix(']')?,
                None => rest.strip_prefix([':', '/']).unwrap_or(rest),
            };
            let is_port = rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("port "));
            let panel = if is_port { &rest[5..] } else { rest }.trim();
            (!panel.is_empty()).then_some(panel)
        })
    }

    /// Whether this is a port.
    pub fn is_port(&self, name: &str, end: PortKey) -> bool {
        self.ports.iter().any(|port| port.is_at(name, end.guid, end.number))
    }

    /// Whether this is a link, by its id or by one of its ends; by both ends, if both are in the text.
    pub fn is_link(&self, names: [&str; 2], ends: [PortKey; 2]) -> bool {
        let is_at = |port: &PortReference| {
            names.iter().zip(ends).any(|(name, end)| port.is_at(name, end.guid, end.number))
        };
        let is_its = !self.ports.is_empty() && self.ports.iter().all(is_at);
        is_its || self.link == Some(LinkId::between(ends[0], ends[1]))
    }
}

impl PortReference {
    /// Whether this is the port with this number of this node.
    pub fn is_at(&self, node: &str, guid: Guid, number: PortNumber) -> bool {
        self.number == number
            && (is_node(&self.node, node, guid) || self::guid(&self.node) == Some(guid))
    }
}

/// Each run of blanks in a name as one blank, as a browser shows it and copies it.
pub fn join_blanks(name: &str) -> Cow<'_, str> {
    if !name.contains("  ") {
        return Cow::Borrowed(name);
    }
    let words = name.split(' ').filter(|word| !word.is_empty());
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

/// Whether a text is a node's name, in any case.
fn is_node(text: &str, name: &str, guid: Guid) -> bool {
    let text = join_blanks(text);
    let is_same = |name: &str| {
        let name = join_blanks(name);
        // The usual case does not allocate.
        text.eq_ignore_ascii_case(&name)
            || !text.is_ascii() && text.to_lowercase() == name.to_lowercase()
    };
    is_same(name) || is_same(shared_name(name, guid))
}

/// A GUID. What has other colons than those of sysfs is a port: `0x1:5`.
fn guid(text: &str) -> Option<Guid> {
    let is_sysfs = || text.len() == 19 && text.split(':').all(|part| part.len() == 4);
    if text.contains(':') && !is_sysfs() { None } else { text.parse().ok() }
}

fn lid(text: &str) -> Option<Lid> {
    let lid = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    lid.ok().map(Lid).filter(|lid| lid.is_unicast())
}

/// A port: `NODE[5]`, `NODE port 5`, `NODE:5`, `NODE/5`, and `NODE/P5` of ibdiagnet. After the number may be what is
/// printed at the front panel: `NODE port 37 (1/19/1)`.
fn port(text: &str) -> Option<PortReference> {
    let with_panel = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let text = with_panel.filter(|(_, panel)| !panel.contains(' ')).map_or(text, |(port, _)| port);
    let lower = text.to_ascii_lowercase();
    let (node, number) = if let Some(rest) = text.strip_suffix(']') {
        rest.rsplit_once('[')?
    } else if let Some(at) = lower.rfind(" port ") {
        (&text[..at], &text[at + " port ".len()..])
    } else {
        let (node, number) = text.rsplit_once([':', '/'])?;
        (node, number.strip_prefix(['P', 'p']).unwrap_or(number))
    };
    let (node, number) = (node.trim(), number.trim());
    // `+7` parses as a number, but is none here.
    let is_number = !node.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| is_number)?;
    Some(PortReference { node: node.to_owned(), number })
}

/// Both ends of a link, if the text is two ports.
fn ends(text: &str) -> Option<Vec<PortReference>> {
    END_SEPARATORS.iter().find_map(|separator| {
        let (a, b) = text.split_once(separator)?;
        Some(vec![port(a)?, port(b)?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: (&str, PortKey) = ("leaf-0-1", PortKey::new(Guid(0x0002_c903_0000_0001), 10));
    const HOST: (&str, PortKey) = ("host-7 mlx5_0", PortKey::new(Guid(0x0002_c903_0000_0007), 1));

    #[test]
    fn each_spelling_of_a_port_is_that_port() {
        for text in [
            "leaf-0-1 port 10",
            "leaf-0-1 Port 10",
            "leaf-0-1/10",
            "leaf-0-1/P10",
            "leaf-0-1:10",
            "LEAF-0-1[10]",
            "  leaf-0-1 [10] ",
            "0x0002c90300000001:10",
            "0002c90300000001/10",
            "0x2c90300000001[10]",
            "0002:c903:0000:0001:10",
            "0x0002c90300000001 port 10",
        ] {
            let reference = Reference::new(text);
            assert!(reference.is_port(LEAF.0, LEAF.1), "{text}: {reference:?}");
            assert!(reference.is_link([LEAF.0, HOST.0], [LEAF.1, HOST.1]), "{text}");
            assert!(!reference.is_port(HOST.0, HOST.1), "{text}");
            assert!(!reference.is_port(LEAF.0, PortKey::new(LEAF.1.guid, 11)), "{text}");
            assert!(!reference.is_node(LEAF.0, LEAF.1.guid), "{text}");
        }
    }

    #[test]
    fn each_spelling_of_a_node_is_that_node() {
        for text in [
            "leaf-0-1",
            "Leaf-0-1 ",
            "0x0002c90300000001",
            "0X2C90300000001",
            "0002c90300000001",
            "0002:c903:0000:0001",
        ] {
            assert!(Reference::new(text).is_node(LEAF.0, LEAF.1.guid), "{text}");
            assert!(!Reference::new(text).is_node(HOST.0, HOST.1.guid), "{text}");
        }
        let guid = Guid(0xa1_b2c3);
        for text in ["q2", "Q2#a1b2c3"] {
            assert!(Reference::new(text).is_node("Q2#a1b2c3", guid), "{text}");
        }
        assert!(Reference::new("Q2 port 3").is_port("Q2#a1b2c3", PortKey::new(guid, 3)));
        assert!(Reference::new("ÜBER").is_node("über", guid));
        for text in ["rack 3 leaf", "Rack  3   leaf"] {
            assert!(Reference::new(text).is_node("rack 3   leaf", guid), "{text}");
            let port = Reference::new(&format!("{text} port 5"));
            assert!(port.is_port("rack 3   leaf", PortKey::new(guid, 5)), "{text}");
        }
    }

    #[test]
    fn each_spelling_of_a_link_is_that_link() {
        let other = ("spine-0", PortKey::new(Guid(9), 3));
        for text in [
            "0x0002c90300000001:10-0x0002c90300000007:1",
            "0x0002c90300000007:1-0x0002c90300000001:10",
            "leaf-0-1 port 10 – host-7 mlx5_0 port 1",
            "host-7 mlx5_0 port 1 - leaf-0-1 port 10",
            "leaf-0-1[10] <-> host-7 mlx5_0[1]",
        ] {
            let reference = Reference::new(text);
            assert!(reference.is_link([LEAF.0, HOST.0], [LEAF.1, HOST.1]), "{text}");
            assert!(!reference.is_link([LEAF.0, other.0], [LEAF.1, other.1]), "{text}");
        }
    }

    #[test]
    fn numbers_are_lids_in_the_unicast_range() {
        for (text, lid) in [
            ("12", Some(12)),
            ("0xC", Some(12)),
            ("0", None),
            ("49152", None),
            ("0xffff", None),
            ("70000", None),
            ("leaf", None),
        ] {
            assert_eq!(Reference::new(text).lid, lid.map(Lid), "{text}");
        }
    }

    #[test]
    fn label_with_the_front_panel_is_that_port() {
        for text in ["leaf-0-1 port 10 (1/5/2)", "leaf-0-1 port 10 (1/5/2) – host-7 mlx5_0 port 1"]
        {
            let reference = Reference::new(text);
            assert!(reference.is_link([LEAF.0, HOST.0], [LEAF.1, HOST.1]), "{text}: {reference:?}");
        }
        assert_eq!(Reference::new("leaf port 1 (to do)").ports, []);
        assert_eq!(Reference::new("leaf (1/5/2)").ports, []);
    }

    #[test]
    fn front_panel_is_behind_the_node() {
        for text in [
            "leaf-0-1 1/5/2",
            "LEAF-0-1/1/5/2",
            "leaf-0-1:1/5/2",
            "leaf-0-1[1/5/2]",
            "leaf-0-1 port 1/5/2",
            "0x0002c90300000001 1/5/2",
            "0x2c90300000001:1/5/2",
            "0002c90300000001/1/5/2",
        ] {
            let panel = Reference::new(text);
            let panel = panel.front_panel_of(LEAF.0, LEAF.1.guid);
            assert_eq!(panel, Some("1/5/2"), "{text}");
        }
        let guid = Guid(0xa1_b2c3);
        assert_eq!(Reference::new("q2 sw1p2").front_panel_of("Q2#a1b2c3", guid), Some("sw1p2"));
        for text in
            ["leaf-0-1", "leaf-0-1 ", "leaf-0-11/5/2", "leaf-0-1[1/5/2", "leaf-0-1:", "l", ""]
        {
            let reference = Reference::new(text);
            assert_eq!(reference.front_panel_of(LEAF.0, LEAF.1.guid), None, "{text}");
        }
        assert_eq!(Reference::new("söh").front_panel_of("sö", guid), None);
    }

    #[test]
    fn other_texts_are_no_ports() {
        for text in [
            "",
            "[3]",
            "leaf",
            "leaf[]",
            "leaf[256]",
            "leaf[-1]",
            "leaf:+1",
            "leaf port x",
            "/",
            ":1",
            "a - b",
            "leaf[1] - host",
        ] {
            assert_eq!(Reference::new(text).ports, [], "{text}");
        }
        // Names with the characters of the spellings: the number is behind the last one.
        let name = "rack 3/leaf:1 [a]";
        for text in ["rack 3/leaf:1 [a][7]", "rack 3/leaf:1 [a] port 7", "rack 3/leaf:1 [a]/7"] {
            assert!(Reference::new(text).is_port(name, PortKey::new(Guid(1), 7)), "{text}");
        }
        assert!(Reference::new("rack/1").is_node("rack/1", Guid(1)));
    }
}
