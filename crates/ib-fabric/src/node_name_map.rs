//! The site's names of nodes: the node-name-map of infiniband-diags and OpenSM.

use std::collections::HashMap;

use ib_mad::ids::Guid;
use thiserror::Error;

/// Names by node GUID, which replace the node descriptions of devices.
///
/// A line has a GUID and a name, preferably in double quotes; outside of quotes `#` starts a comment:
///
/// ```text
/// 0x0002c90200000001 "rack 12 leaf 3"   # by the door
/// ```
///
/// As in infiniband-diags (rdma-core, util/node_name_map.c), a GUID without a name is ignored, and the
/// first of several names wins. GUIDs are hexadecimal, with or without `0x`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNameMap(pub HashMap<Guid, String>);

/// Maximum number of reported lines: with more, it is another kind of file.
const MAX_ERRORS: usize = 100;

/// An invalid line of a node-name-map.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {problem}; expected: 0x0002c90200000001 \"node name\"")]
#[expect(missing_docs, reason = "the other name says it")]
pub struct NodeNameMapError {
    /// Line number, from 1 on.
    pub line: usize,
    pub problem: String,
}

impl NodeNameMap {
    /// Parses a node-name-map.
    pub fn parse(text: &str) -> Result<Self, Vec<NodeNameMapError>> {
        let (mut names, mut faults) = (HashMap::new(), Vec::new());
        let lines = (1..).zip(text.lines().map(str::trim));
        for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
            match parse_line(text) {
                Ok((_, "")) => {}
                Ok((guid, name)) => {
                    names.entry(guid).or_insert_with(|| name.to_owned());
                }
                Err(problem) => faults.push(NodeNameMapError { line, problem }),
            }
            if faults.len() == MAX_ERRORS {
                break;
            }
        }
        if faults.is_empty() { Ok(NodeNameMap(names)) } else { Err(faults) }
    }

    /// The name of a node.
    pub fn get(&self, guid: Guid) -> Option<&str> {
        self.0.get(&guid).map(String::as_str)
    }
}

/// GUID and name of a line that is not blank; the name may be empty.
fn parse_line(line: &str) -> Result<(Guid, &str), String> {
    let (guid, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let guid = guid.parse().map_err(|error| format!("{guid:?} is not a GUID ({error})"))?;
    let rest = rest.trim_start();
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or("closing quote of the name is missing")?.0,
        None => rest.split('#').next().unwrap_or_default().trim_end(),
    };
    Ok((guid, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_infiniband_diags_node_name_map() {
        let names = NodeNameMap::parse(concat!(
            "# switches\n",
            "\n",
            "0x0002c90200000001\t\"rack 12, leaf #3\" # by the door\n",
            "  2c90200000002   \"spine\"\n",
            "0x2c90200000002 \"spine 1\"\n",
            "0x3\n",
            "0x4 # nothing\n",
            "0x5 plain name # and more\n",
        ))
        .unwrap();
        assert_eq!(names.0.len(), 3);
        assert_eq!(names.get(Guid(0x2_c902_0000_0001)), Some("rack 12, leaf #3"));
        assert_eq!(names.get(Guid(0x2_c902_0000_0002)), Some("spine"));
        assert_eq!(names.get(Guid(3)), None);
        assert_eq!(names.get(Guid(5)), Some("plain name"));
    }

    #[test]
    fn bad_line_error_has_line_number() {
        for (text, line, problem) in
            [("leaf \"a\"\n", 1, "not a GUID"), ("\n0x1 \"leaf\n", 2, "closing quote")]
        {
            let errors = NodeNameMap::parse(text).unwrap_err();
            let [error] = &errors[..] else { panic!("one line: {errors:?}") };
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.problem.contains(problem), "{text:?}: {error}");
        }
    }

    #[test]
    fn all_bad_lines_are_reported() {
        let errors = NodeNameMap::parse("leaf \"a\"\n0x1 \"good\"\n\n0x2 \"leaf\n").unwrap_err();
        assert_eq!(errors.iter().map(|error| error.line).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(NodeNameMap::parse(&"x\n".repeat(500)).unwrap_err().len(), MAX_ERRORS);
    }
}
