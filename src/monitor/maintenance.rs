//! The files that say what is in maintenance: the windows of a site, and the hosts that its scheduler has drained.

use std::path::Path;
use std::time::SystemTime;

use fabric_observation::SiteFileKind;
use ib_health::settings::{DrainedHosts, MaintenanceWindow, NodeSelector};
use ib_mad::PortNumber;
use serde::Deserialize;
use yaml_config::ConfigError;
use yaml_config::file;
use yaml_config::yaml::{self, Diagnostic};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MaintenanceEntry {
    node: String,
    port: Option<PortNumber>,
    from: Option<Time>,
    until: Option<Time>,
    /// For people; not used.
    #[serde(default, rename = "why")]
    _why: Option<String>,
}

/// A time of RFC 3339 in UTC; its `T` may be a space, and its `Z` may be omitted.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Time(SystemTime);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        humantime::parse_rfc3339_weak(&text).map(Time).map_err(|error| {
            format!("{text:?} is not a time such as 2026-12-01T18:00:00Z, in UTC ({error})")
        })
    }
}

fn parse_maintenance(text: &str) -> Result<Vec<MaintenanceWindow>, Vec<Diagnostic>> {
    let yaml::Parsed { value: entries, mut diagnostics, document } =
        yaml::parse::<Vec<MaintenanceEntry>>(text);
    for (index, entry) in entries.iter().enumerate() {
        let Some((from, until)) = entry.from.zip(entry.until) else { continue };
        if until.0 <= from.0 {
            let day = humantime::format_rfc3339_seconds;
            let problem = format!("{} is not later than \"from\" ({})", day(until.0), day(from.0));
            diagnostics.extend(document.diagnostic(&format!("[{index}].until"), problem));
        }
    }
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        return Err(diagnostics);
    }
    let window = |entry: MaintenanceEntry| MaintenanceWindow {
        node: NodeSelector::new(&entry.node),
        port: entry.port,
        from: entry.from.map(|time| time.0),
        until: entry.until.map(|time| time.0),
    };
    Ok(entries.into_iter().map(window).collect())
}

/// Reads a maintenance file.
pub fn maintenance_in(path: &Path) -> Result<Vec<MaintenanceWindow>, ConfigError> {
    let kind = SiteFileKind::Maintenance.name();
    let bytes = file::read(path, file::MAX_BYTES)
        .map_err(|error| ConfigError::in_file(kind, path, [error]))?;
    parse_maintenance(&String::from_utf8_lossy(&bytes))
        .map_err(|diagnostics| ConfigError::in_file(kind, path, diagnostics))
}

/// The largest file: ten times the hosts of the largest fabrics, one in a line.
const MAX_BYTES: u64 = 4 << 20;

/// The most patterns: each is compared with the names of all nodes.
const MAX_PATTERNS: usize = 1000;

/// How many invalid lines are named.
const MAX_NAMED: usize = 5;

/// Reads a file of drained hosts.
pub fn drained_hosts_in(path: &Path) -> Result<DrainedHosts, ConfigError> {
    let kind = SiteFileKind::DrainedHosts.name();
    let bytes =
        file::read(path, MAX_BYTES).map_err(|error| ConfigError::in_file(kind, path, [error]))?;
    parse_drained(&String::from_utf8_lossy(&bytes))
        .map_err(|problems| ConfigError::in_file(kind, path, problems))
}

/// Hosts, or lists of hosts, one in a line; `#` begins a comment. If a line is invalid, none counts: the file may have
/// been damaged, and the end of a maintenance must not depend on which lines are left.
fn parse_drained(text: &str) -> Result<DrainedHosts, Vec<String>> {
    let mut hosts = DrainedHosts::default();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let list = line.split('#').next().unwrap_or_default().trim();
        if list.is_empty() {
            continue;
        }
        if let Err(error) = hosts.add(list) {
            problems.push(format!("line {}: {error}", index + 1));
        } else if hosts.patterns() > MAX_PATTERNS {
            problems.push(format!("line {}: more than {MAX_PATTERNS} patterns", index + 1));
            break;
        }
    }
    if problems.is_empty() {
        return Ok(hosts);
    }
    let more = problems.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        problems.truncate(MAX_NAMED);
        problems.push(format!("and {more} more invalid lines"));
    }
    Err(problems)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_have_hosts_lists_and_comments() {
        let hosts =
            parse_drained("# drained\ngpu[001-004,7],login1 # disks\n\n  host-7*\nlogin1\n")
                .unwrap();
        assert_eq!((hosts.len(), hosts.patterns()), (3, 2));
        assert!(parse_drained("").unwrap().is_empty() && parse_drained("#\n").unwrap().is_empty());
    }

    #[test]
    fn damaged_file_names_its_lines() {
        let problems = parse_drained("gpu1\ngpu[1-\ngpu2]\n").unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("line 2: \"gpu[1-\" is not a name"), "{problems:?}");
        let problems = parse_drained(&"]\n".repeat(100)).unwrap_err();
        assert_eq!((problems.len(), &*problems[5]), (6, "and 95 more invalid lines"));
        let lines = |count: u32, line: &dyn Fn(u32) -> String| {
            (0..count).map(line).collect::<Vec<_>>().join("\n")
        };
        let many = lines(2000, &|host| format!("gpu{host}-*"));
        assert_eq!(parse_drained(&many).unwrap_err(), ["line 1001: more than 1000 patterns"]);
        let names = lines(50_000, &|host| format!("gpu{host}"));
        assert_eq!(parse_drained(&names).unwrap().len(), 50_000);
    }

    #[test]
    fn file_that_is_too_large_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "#".repeat(5 << 20)).unwrap();
        let error = drained_hosts_in(file.path()).unwrap_err().to_string();
        assert!(error.starts_with("drained hosts file "), "{error}");
    }

    #[test]
    fn entries_name_nodes_ports_and_times() {
        let windows = parse_maintenance(
            "# rack 7\n- {node: leaf-0-1, until: 2026-12-01T18:00:00Z, why: new firmware}\n\
             - {node: 0x0002c90300000001, port: 9, from: 2026-12-01 18:00:00}\n",
        )
        .unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_148_000);
        assert_eq!(windows.len(), 2);
        assert_eq!(
            (&windows[0].node, windows[0].until),
            (&NodeSelector::Name("leaf-0-1".into()), Some(at))
        );
        assert!(matches!(windows[1].node, NodeSelector::Guid(_)));
        assert_eq!((windows[1].port, windows[1].from, windows[1].until), (Some(9), Some(at), None));
        assert_eq!(parse_maintenance(" \n# nothing\n").unwrap(), []);
    }

    #[test]
    fn each_mistake_has_line_column_and_key() {
        let text = "- {nod: x}\n- {node: x, until: soon}\n- node: x\n  port: 300\n- {node: y, \
                    from: 2026-12-02T00:00:00Z, until: 2026-12-01T00:00:00Z}\n";
        let errors: Vec<String> =
            parse_maintenance(text).unwrap_err().iter().map(ToString::to_string).collect();
        let says = [
            "line 1, column 4: [0].nod: unknown key (did you mean \"node\"?)",
            "line 2, column 20: [1].until: \"soon\" is not a time such as 2026-12-01T18:00:00Z, in UTC",
            "line 4, column 9: [2].port: \"300\" is not a whole number between 0 and 255",
            "line 5, column 48: [3].until: 2026-12-01T00:00:00Z is not later than \"from\" (2026-12-02T00:00:00Z)",
        ];
        assert_eq!(errors.len(), says.len(), "{errors:#?}");
        for (error, says) in errors.iter().zip(says) {
            assert!(error.starts_with(says) && !error.contains('\n'), "{error}");
        }
        let [one] = &parse_maintenance("node: x").unwrap_err()[..] else { panic!("one error") };
        assert!(one.problem.starts_with("must be a list"), "{one}");
    }
}
