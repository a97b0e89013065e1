//! Links as a text table.

use std::io::{self, Write};

use crate::api::model::{End, Link};
use crate::cli::printable_char;
use ib_health::Verdict;

/// The style of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The width of a line in characters, if it is limited.
    pub width: Option<usize>,
    /// Whether verdicts are colored.
    pub colours: bool,
}

/// Between two columns.
const GAP: &str = "  ";

/// The least width of a column.
const MIN_WIDTH: usize = 8;

/// Writes a table; nothing without links.
pub fn write(
    out: &mut impl Write,
    links: &[&Link],
    several_fabrics: bool,
    style: Style,
) -> io::Result<()> {
    if links.is_empty() {
        return Ok(());
    }
    let heads = ["VERDICT", "FABRIC", "END A", "END B", "RATE", "REASON", "COUNTS", "CABLE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(links.iter().map(|link| row(link)));
    let has_cables = rows.iter().skip(1).any(|row| row.last().is_some_and(|cell| !cell.is_empty()));
    for row in &mut rows {
        row.truncate(heads.len() - usize::from(!has_cables));
        if !several_fabrics {
            row.remove(1);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let mut widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    if let Some(most) = style.width {
        fit(&mut widths, most);
    }
    let colours = links.iter().map(|link| colour(link.verdict()).filter(|_| style.colours));
    for (row, colour) in rows.iter().zip(std::iter::once(None).chain(colours)) {
        line(out, row, &widths, colour)?;
    }
    Ok(())
}

/// Narrows the widest column, one character at a time, until all fit or none can be narrower. The
/// verdict column keeps its width.
fn fit(widths: &mut [usize], most: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > most {
        let widest = widths.iter_mut().skip(1).max();
        match widest.filter(|widest| **widest > MIN_WIDTH) {
            Some(widest) => *widest -= 1,
            None => return,
        }
    }
}

fn line(
    out: &mut impl Write,
    cells: &[String],
    widths: &[usize],
    colour: Option<&str>,
) -> io::Result<()> {
    let cell = |(cell, &width): (&String, &usize)| format!("{:<width$}", cut(cell, width));
    let text = cells.iter().zip(widths).map(cell).collect::<Vec<_>>().join(GAP);
    let text = text.trim_end();
    let (verdict, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    match colour {
        Some(colour) => writeln!(out, "{colour}{verdict}\x1b[0m{rest}"),
        None => writeln!(out, "{verdict}{rest}"),
    }
}

/// A cell cut to a width.
fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.chars().map(printable_char).collect();
    }
    cell.chars().map(printable_char).take(width.saturating_sub(1)).chain(['…']).collect()
}

fn colour(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Ok => Some("\x1b[32m"),
        Verdict::Unknown => None,
        Verdict::Watch => Some("\x1b[33m"),
        Verdict::Bad => Some("\x1b[31m"),
    }
}

fn row(link: &Link) -> Vec<String> {
    let rate = match (&link.width, &link.speed) {
        (Some(width), Some(speed)) => format!("{width} {speed}"),
        _ => "-".into(),
    };
    let (verdict, fabric) = (Verdict::word(&link.verdict).to_owned(), link.fabric.clone());
    let [a, b] = link.ends.each_ref().map(End::label);
    vec![verdict, fabric, a, b, rate, reason(link), counts(link), cable(link)]
}

/// What a technician orders and looks for: part and serial number of the cable, or of the modules at both ends.
fn cable(link: &Link) -> String {
    let known = |end: &End| {
        let parts = [&end.part_number, &end.serial_number].into_iter().flatten();
        parts.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    match link.ends.each_ref().map(known) {
        [a, b] if a == b || b.is_empty() => a,
        [a, b] if a.is_empty() => b,
        [a, b] => format!("A: {a}; B: {b}"),
    }
}

/// The evidence of the most severe reason, and the number of the others.
fn reason(link: &Link) -> String {
    match (&*link.reasons, link.verdict()) {
        ([worst], _) => worst.evidence.clone(),
        ([worst, more @ ..], _) => format!("{} (+{})", worst.evidence, more.len()),
        ([], Verdict::Bad | Verdict::Watch) => "recovering: the cause has ended".into(),
        ([], _) => String::new(),
    }
}

fn counts(link: &Link) -> String {
    let ends = ["A", "B"].into_iter().zip(link.ends.each_ref().map(counts_of));
    let counts = ends.filter(|(_, counts)| !counts.is_empty());
    counts.map(|(name, counts)| format!("{name}: {counts}")).collect::<Vec<_>>().join("; ")
}

/// A saturated counter has a `+`. Corrected symbols are normal and many on links with four-level
/// signals: only `--json` has them.
fn counts_of(end: &End) -> String {
    let counters = end.counters.iter().filter(|(name, _)| !name.starts_with("fec_corrected_"));
    let counts = counters.map(|(name, count)| {
        let more = if end.saturated.contains(name) { "+" } else { "" };
        format!("{name} {count}{more}")
    });
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::LinkReason;

    fn bad() -> Link {
        let end = |node: &str, port, counters: &[(&'static str, u64)]| End {
            node: node.into(),
            port,
            counters: counters.iter().map(|&(name, count)| (name.into(), count)).collect(),
            ..End::default()
        };
        let mut near = end("leaf-0-1", 9, &[("symbol_errors", 65_535), ("link_downed", 3)]);
        near.saturated = vec!["symbol_errors".into()];
        Link {
            fabric: "f".into(),
            verdict: "bad".into(),
            reasons: vec![LinkReason {
                reason: "flapping".into(),
                verdict: "bad".into(),
                evidence: "went down 3 times, for 44 s in all".into(),
            }],
            ends: [near, end("host\u{1b}[2J", 1, &[])],
            width: Some("4x".into()),
            speed: Some("NDR".into()),
            ..Link::default()
        }
    }

    fn text(links: &[Link], several_fabrics: bool, style: Style) -> String {
        let links: Vec<&Link> = links.iter().collect();
        let mut out = Vec::new();
        write(&mut out, &links, several_fabrics, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let fine = Link { verdict: "ok".into(), ..Link::default() };
        assert_eq!(
            text(&[bad(), fine], false, Style::default()),
            "\
VERDICT  END A            END B            RATE    REASON                              COUNTS
bad      leaf-0-1 port 9  host\u{fffd}[2J port 1  4x NDR  went down 3 times, for 44 s in all  A: link_downed 3, symbol_errors 65535+
ok        port 0           port 0          -
"
        );
    }

    #[test]
    fn several_fabrics_have_a_column() {
        let text = text(&[bad()], true, Style::default());
        assert!(text.starts_with("VERDICT  FABRIC  END A"), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("bad      f       leaf-0-1"), "{text}");
    }

    #[test]
    fn terminal_gets_narrow_lines_and_colours() {
        for width in [70, 90, 110] {
            let text = text(&[bad()], false, Style { width: Some(width), colours: false });
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(text.contains('…') && text.contains("bad "), "{text}");
        }
        // Too narrow for anything: it is written as narrow as can be, and ends.
        let text = text(&[bad()], false, Style { width: Some(3), colours: true });
        assert!(text.contains("\x1b[31mbad\x1b[0m    "), "{text:?}");
    }

    #[test]
    fn corrected_symbols_are_not_shown() {
        let mut link = bad();
        link.ends[1].counters = [("fec_corrected_symbols".into(), 7)].into();
        let text = text(&[link], false, Style::default());
        assert!(text.contains("symbol_errors 65535"), "{text}");
        assert!(!text.contains("fec_") && !text.contains("B: "), "{text}");
    }

    #[test]
    fn no_links_are_no_table() {
        assert_eq!(text(&[], false, Style::default()), "");
        let link = Link { reasons: Vec::new(), ..bad() };
        assert!(text(&[link], false, Style::default()).contains("recovering"));
    }
}
