//! Nodes that a command selects by name, pattern or place.

use ib_mad::{PortKey, PortNumber};

use super::source::{FabricSource, is_at};
use crate::exit::Fatal;
use crate::history_client::Place;

/// Nodes and ports that are selected.
#[derive(Clone, Debug)]
pub enum NodeMatch {
    /// By a pattern of node names.
    Pattern(String),
    /// These.
    Places(Vec<Place>),
}

impl NodeMatch {
    /// What the values of `--node` mean.
    pub fn all(source: &FabricSource, texts: &[String]) -> Result<Vec<Self>, Fatal> {
        let of = |text: &String| match text {
            pattern if pattern.contains('*') => Ok(NodeMatch::Pattern(pattern.clone())),
            text => source.places("--node", text).map(NodeMatch::Places),
        };
        texts.iter().map(of).collect()
    }

    pub fn has(&self, node: &str, guid: &str, port: Option<PortNumber>) -> bool {
        match self {
            NodeMatch::Pattern(pattern) => glob(pattern, node),
            NodeMatch::Places(places) => guid.parse().is_ok_and(|guid| match port {
                Some(port) => is_at(places, PortKey::new(guid, port)),
                None => places.iter().any(|(of, _)| *of == guid),
            }),
        }
    }
}

/// Whether a node is selected, or one of its ports; without a selection all are.
pub fn is_wanted(wanted: &[NodeMatch], node: &str, guid: &str, port: Option<PortNumber>) -> bool {
    wanted.is_empty() || wanted.iter().any(|it| it.has(node, guid, port))
}

/// Whether a name matches a pattern with `*`, in any case.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_any_number_of_stars() {
        for (pattern, name, is_match) in [
            ("leaf-*", "LEAF-0-1", true),
            ("*-1", "leaf-0-1", true),
            ("l*0*1", "leaf-0-1", true),
            ("*", "", true),
            ("leaf", "leaf-1", false),
            ("leaf-1*1", "leaf-1", false),
            ("l*x*1", "leaf-0-1", false),
        ] {
            assert_eq!(glob(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
