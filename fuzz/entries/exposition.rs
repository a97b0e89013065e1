//! Checks that clients can parse the expositions and the JSON.

use std::collections::HashSet;
use std::path::Path;

use fabric_api::{Filter, links};
use fabric_exporter::metrics::selection::Selection;
use fabric_exporter::metrics::{Format, OwnMetrics, RenderedMetrics};
use fabric_observation::SharedState;

/// Renders a state in every format, and parses each as strictly as its clients do.
pub fn check(board: SharedState) {
    let filter = Filter::default();
    let links = links::links(&board.fabrics, &filter);
    // As the API writes them.
    let mut rows = links::rows(&board.fabrics, &filter);
    for (row, link) in rows.fabrics.iter_mut().zip(&links.fabrics) {
        // It tells how old the sweep is, by the clock.
        row.condition.clone_from(&link.condition);
    }
    let json = serde_json::to_vec(&rows).unwrap();
    assert_eq!(serde_json::to_vec(&links).unwrap(), json);
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert!(value["fabrics"].is_array());
    let exposition = RenderedMetrics::first(board);
    // Metrics of the process are not part of this check.
    let own = OwnMetrics::new(Path::new("/nowhere"));
    for format in [Format::Text, Format::OpenMetrics] {
        let document = exposition.document(&Selection::default(), format, &own);
        let text = document.to_text().unwrap();
        assert_eq!(text.len() as u64, document.plain_len());
        read(&text, format);
    }
}

/// Parses an exposition; panics where Prometheus would reject it, or drop a sample.
pub fn read(text: &str, format: Format) {
    let text = match format {
        Format::OpenMetrics => text.strip_suffix("# EOF\n").expect("it ends as it should"),
        Format::Text => text,
    };
    assert!(text.is_empty() || text.ends_with('\n'));
    let mut family = "";
    let mut families = HashSet::new();
    let mut series = HashSet::new();
    for line in text.split_terminator('\n') {
        assert!(!line.is_empty(), "an empty line");
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (kind, name) = (words.next().unwrap(), words.next().expect(line));
            assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line:?}");
            assert!(is_name(name), "{line:?}");
            if name != family {
                assert!(families.insert(name), "{name} stands twice");
                family = name;
            }
            continue;
        }
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(is_name(name) && !family.is_empty() && name.starts_with(family), "{line:?}");
        let mut rest = &line[name.len()..];
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            (labels, rest) = labels_of(inside).unwrap_or_else(|| panic!("no labels: {line:?}"));
        }
        let mut words = rest.strip_prefix(' ').expect(line).split(' ');
        let value = words.next().unwrap();
        assert!(value.parse::<f64>().is_ok() || value == "+Inf", "{line:?}");
        if let Some(time) = words.next() {
            // In OpenMetrics an exemplar may follow.
            assert!(time == "#" || time.parse::<f64>().is_ok(), "{line:?}");
        }
        labels.sort();
        assert!(labels.windows(2).all(|two| two[0].0 != two[1].0), "a label twice: {line:?}");
        assert!(series.insert((name, labels)), "a series twice: {line:?}");
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|char: char| char.is_ascii_digit())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

type Labels<'a> = Vec<(&'a str, String)>;

/// The labels of a sample, up to the closing brace, and the rest.
fn labels_of(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(end) = rest.strip_prefix('}') {
            return Some((labels, end));
        }
        let (name, behind) = rest.split_once("=\"")?;
        if !is_name(name) {
            return None;
        }
        let mut value = String::new();
        let mut chars = behind.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    same @ ('\\' | '"') => same,
                    _ => return None,
                }),
                (_, char) => value.push(char),
            }
        };
        labels.push((name, value));
        rest = &behind[end..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}
