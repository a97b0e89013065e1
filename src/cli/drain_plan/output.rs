//! The text of a report: a table for each window, one of the repairs that are not safe, and the last line.

use std::io::{self, Write};

use display_text::plural;
use ib_health::Verdict;

use super::judge::percent;
use super::report::{Left, Refused, Repaired, Report, What, Window};
use crate::cli::table::{Fit, Row, Style, Table};
use crate::cli::terminal::{Color, printable};

/// Writes the tables.
pub(super) fn write(report: &Report, out: &mut impl Write, style: Style) -> io::Result<()> {
    let mut is_first = true;
    let mut head = |out: &mut dyn Write, text: &str| {
        let blank = if std::mem::take(&mut is_first) { "" } else { "\n" };
        writeln!(out, "{blank}{}", printable(text))
    };
    for (nth, window) in report.windows.iter().enumerate() {
        head(out, &window_head(nth + 1, window))?;
        windows_table(window, report.fabrics.len() > 1).write(out, style)?;
    }
    if !report.unsafe_repairs.is_empty() {
        head(out, "Not safe, even alone:")?;
        refused_table(&report.unsafe_repairs, report.fabrics.len() > 1).write(out, style)?;
    }
    Ok(())
}

fn window_head(number: usize, window: &Window) -> String {
    let count = plural(window.repairs.len(), "repair");
    let left = match &window.left.worst_leaf {
        None => "each leaf keeps all of its capacity".to_owned(),
        Some(leaf) => format!(
            "each leaf keeps at least {} (worst: {}, {} of {} Gb/s)",
            percent(window.left.remaining_capacity),
            leaf.node,
            leaf.left_gbps,
            leaf.now_gbps
        ),
    };
    let doubt = window.doubt.as_ref().map(|why| format!("; NOT CERTAIN, {why}"));
    format!("Window {number}: {count}; {left}{}", doubt.unwrap_or_default())
}

fn windows_table(window: &Window, has_fabrics: bool) -> Table {
    let columns = vec![
        ("REPAIR", Fit::Name),
        ("FABRIC", Fit::Whole),
        ("VERDICT", Fit::Short),
        ("KEEPS", Fit::Whole),
        ("WORST LEAF", Fit::Short),
        ("MEANWHILE", Fit::Text),
    ];
    let row = |it: &Repaired| -> Row {
        let mut cells = of_what(&it.what, &it.left);
        cells.push(meanwhile(it));
        (color(&it.what), cells)
    };
    Table { columns, rows: window.repairs.iter().map(row).collect() }.with_fabric(has_fabrics)
}

fn refused_table(refused: &[Refused], has_fabrics: bool) -> Table {
    let columns = vec![
        ("REPAIR", Fit::Name),
        ("FABRIC", Fit::Whole),
        ("VERDICT", Fit::Short),
        ("KEEPS", Fit::Whole),
        ("WORST LEAF", Fit::Short),
        ("WHY, AND WHAT TO DO", Fit::Text),
    ];
    let row = |it: &Refused| -> Row {
        let mut cells = of_what(&it.what, &it.left);
        cells.push(format!("{}: {}", it.why, it.advice));
        (color(&it.what), cells)
    };
    Table { columns, rows: refused.iter().map(row).collect() }.with_fabric(has_fabrics)
}

fn of_what(what: &What, left: &Left) -> Vec<String> {
    let name = match what.kind {
        "link" => what.name.clone(),
        // Those of all planes.
        "switch" if what.nodes.len() > 1 => {
            format!("switch {} ({} nodes)", what.name, what.nodes.len())
        }
        kind => format!("{kind} {}", what.name),
    };
    let worst = left.worst_leaf.as_ref().map(|leaf| leaf.node.clone()).unwrap_or_default();
    let verdict = what.verdict.clone().unwrap_or_default();
    vec![name, what.fabric.clone(), verdict, percent(left.remaining_capacity), worst]
}

fn meanwhile(repaired: &Repaired) -> String {
    match &*repaired.rails_lost {
        _ if repaired.what.down => "it is down already: nothing is lost".into(),
        "" => String::new(),
        hosts => format!("takes a rail of {hosts}"),
    }
}

fn color(what: &What) -> Option<Color> {
    let word = what.verdict.as_deref()?;
    let verdicts = [Verdict::Bad, Verdict::Watch, Verdict::Ok];
    verdicts.into_iter().find(|it| Verdict::word(it.label()) == word).and_then(Color::of)
}

/// The last line.
pub(super) fn summary(report: &Report) -> String {
    let safe: usize = report.windows.iter().map(|window| window.repairs.len()).sum();
    let mut parts = vec![match safe {
        0 => windows(report),
        safe => format!(
            "{} for {}, in which each leaf keeps {} or more",
            windows(report),
            plural(safe, "repair"),
            percent(report.min_capacity)
        ),
    }];
    parts.extend(match report.unsafe_repairs.len() {
        0 => None,
        1 => Some("1 repair is not safe".to_owned()),
        count => Some(format!("{count} repairs are not safe")),
    });
    if !report.certain {
        parts.push("not certain, because not all is known".to_owned());
    }
    parts.join("; ")
}

/// `2 windows (smallest)`, or `at most 4 windows`.
fn windows(report: &Report) -> String {
    let count = plural(report.windows.len(), "window");
    match (report.windows.len(), report.window_count) {
        (0, _) => "no window".to_owned(),
        (_, "at_most") => format!("at most {count}"),
        _ => format!("{count} (smallest)"),
    }
}

/// Why `--fail-on-unsafe` fails, if it does.
pub(super) fn fault(report: &Report) -> Option<String> {
    let refused = report.unsafe_repairs.first().map(|first| {
        let count = plural(report.unsafe_repairs.len(), "repair");
        format!("{count} not safe: {}: {}", first.what.name, first.why)
    });
    let doubt = report.windows.iter().find_map(|window| window.doubt.clone());
    let unknown = || doubt.or_else(|| report.notes.first().cloned()).unwrap_or_default();
    refused.or_else(|| (!report.certain).then(|| format!("not certain: {}", unknown())))
}
