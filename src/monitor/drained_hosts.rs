//! The file in which a scheduler, or a script, lists the hosts that it has drained.

use std::path::Path;

use fabric_observation::SiteFileKind;
use ib_health::settings::DrainedHosts;
use site_config::ConfigError;
use site_config::file;

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
    parse(&String::from_utf8_lossy(&bytes))
        .map_err(|problems| ConfigError::in_file(kind, path, problems))
}

/// Hosts, or lists of hosts, one in a line; `#` begins a comment. If a line is invalid, none counts: the file may have
/// been damaged, and the end of a maintenance must not depend on which lines are left.
fn parse(text: &str) -> Result<DrainedHosts, Vec<String>> {
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
    use super::*;

    #[test]
    fn lines_have_hosts_lists_and_comments() {
        let hosts =
            parse("# drained\ngpu[001-004,7],login1 # disks\n\n  host-7*\nlogin1\n").unwrap();
        assert_eq!((hosts.len(), hosts.patterns()), (3, 2));
        assert!(parse("").unwrap().is_empty() && parse("#\n").unwrap().is_empty());
    }

    #[test]
    fn damaged_file_names_its_lines() {
        let problems = parse("gpu1\ngpu[1-\ngpu2]\n").unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("line 2: \"gpu[1-\" is not a name"), "{problems:?}");
        let problems = parse(&"]\n".repeat(100)).unwrap_err();
        assert_eq!((problems.len(), &*problems[5]), (6, "and 95 more invalid lines"));
        let lines = |count: u32, line: &dyn Fn(u32) -> String| {
            (0..count).map(line).collect::<Vec<_>>().join("\n")
        };
        let many = lines(2000, &|host| format!("gpu{host}-*"));
        assert_eq!(parse(&many).unwrap_err(), ["line 1001: more than 1000 patterns"]);
        let names = lines(50_000, &|host| format!("gpu{host}"));
        assert_eq!(parse(&names).unwrap().len(), 50_000);
    }

    #[test]
    fn file_that_is_too_large_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "#".repeat(5 << 20)).unwrap();
        let error = drained_hosts_in(file.path()).unwrap_err().to_string();
        assert!(error.starts_with("drained hosts file "), "{error}");
    }
}
