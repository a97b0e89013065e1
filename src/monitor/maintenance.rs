//! The maintenance file: the site's maintenance windows, read again when it changes.

use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use fabric_observation::SiteFileKind;
use ib_health::settings::{MaintenanceWindow, NodeSelector};
use ib_mad::PortNumber;
use site_config::yaml;
use site_config::yaml::Diagnostic;
use site_config::{ConfigError, file};

/// An entry of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
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

fn parse(text: &str) -> Result<Vec<MaintenanceWindow>, Vec<Diagnostic>> {
    let yaml::Parsed { value: entries, mut diagnostics, document } =
        yaml::parse::<Vec<Entry>>(text);
    for (index, entry) in entries.iter().enumerate() {
        let Some((from, until)) = entry.from.zip(entry.until) else { continue };
        if until.0 <= from.0 {
            let day = humantime::format_rfc3339_seconds;
            let problem = format!("{} is not later than \"from\", {}", day(until.0), day(from.0));
            diagnostics.extend(document.diagnostic(&format!("[{index}].until"), problem));
        }
    }
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        return Err(diagnostics);
    }
    let window = |entry: Entry| MaintenanceWindow {
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
    parse(&String::from_utf8_lossy(&bytes))
        .map_err(|diagnostics| ConfigError::in_file(kind, path, diagnostics))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn entries_name_nodes_ports_and_times() {
        let windows = parse(
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
        assert_eq!(parse(" \n# nothing\n").unwrap(), []);
    }

    #[test]
    fn each_mistake_has_line_column_and_key() {
        let text = "- {nod: x}\n- {node: x, until: soon}\n- node: x\n  port: 300\n- {node: y, \
                    from: 2026-12-02T00:00:00Z, until: 2026-12-01T00:00:00Z}\n";
        let mistakes: Vec<String> =
            parse(text).unwrap_err().iter().map(ToString::to_string).collect();
        let says = [
            "line 1, column 4: [0].nod: unknown key (did you mean \"node\"?)",
            "line 2, column 20: [1].until: \"soon\" is not a time such as 2026-12-01T18:00:00Z, in UTC",
            "line 4, column 9: [2].port: \"300\" is not a whole number between 0 and 255",
            "line 5, column 48: [3].until: 2026-12-01T00:00:00Z is not later than \"from\", 2026-12-02T00:00:00Z",
        ];
        assert_eq!(mistakes.len(), says.len(), "{mistakes:#?}");
        for (mistake, says) in mistakes.iter().zip(says) {
            assert!(mistake.starts_with(says) && !mistake.contains('\n'), "{mistake}");
        }
        let [one] = &parse("node: x").unwrap_err()[..] else { panic!("one mistake") };
        assert!(one.problem.starts_with("has to be a list"), "{one}");
    }
}
