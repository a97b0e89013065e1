//! Tables that fit the terminal. In a file or pipe each row is one line with all columns.

use std::io::{self, Write};

use display_text::abbreviate;

use super::terminal::{Color, printable, wrap};

/// How a column behaves where the terminal is too narrow for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It keeps its width.
    Whole,
    /// It keeps its width, and is left out if it has no value.
    Short,
    /// The name of a node or port: it is abbreviated in the middle, at last.
    Name,
    /// Text: it is wrapped, or follows in lines of its own. At most one column.
    Text,
    /// It is left out, the last one first.
    Extra,
}

/// The style of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The width of a line in characters, if it is limited.
    pub width: Option<usize>,
    /// Whether the first column is colored.
    pub colors: bool,
}

impl Style {
    /// The style for standard output; `wide` does not fit lines into a terminal.
    pub fn for_output(colors: super::terminal::ColorChoice, wide: bool) -> Self {
        let width = super::terminal::size().map(|(columns, _)| columns).filter(|_| !wide);
        Style { width, colors: colors.is_on() }
    }
}

/// A row: the color of its first cell, and its cells.
pub type Row = (Option<Color>, Vec<String>);

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The head of each column, and how it fits.
    pub columns: Vec<(&'static str, Fit)>,
    /// A cell for each column.
    pub rows: Vec<Row>,
}

/// Between two columns.
const GAP: &str = "  ";

/// The least width of a wrapped text beside other columns: sentences in narrower columns are hard to read.
const MIN_TEXT: usize = 36;

/// The least width of a name: both its ends can be recognized.
const MIN_NAME: usize = 12;

impl Table {
    /// Without the column FABRIC, unless rows are of several.
    pub fn with_fabric(mut self, is_shown: bool) -> Self {
        let column = self.columns.iter().position(|(head, _)| *head == "FABRIC");
        if let Some(index) = column.filter(|_| !is_shown) {
            self.remove(index);
        }
        self
    }

    fn remove(&mut self, index: usize) {
        self.columns.remove(index);
        self.rows.iter_mut().for_each(|(_, cells)| drop(cells.remove(index)));
    }

    /// Writes it; nothing without rows.
    pub fn write(mut self, out: &mut impl Write, style: Style) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        // Columns without a single value say nothing.
        for index in (0..self.columns.len()).rev() {
            let is_empty = self.rows.iter().all(|(_, cells)| cells[index].is_empty());
            if is_empty && matches!(self.columns[index].1, Fit::Extra | Fit::Short) {
                self.remove(index);
            }
        }
        let mut widths = self.widths();
        let total = |widths: &[usize]| {
            widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
        };
        let mut text = None;
        if let Some(most) = style.width {
            while total(&widths) > most
                && let Some(last) = self.columns.iter().rposition(|(_, fit)| *fit == Fit::Extra)
            {
                self.remove(last);
                widths.remove(last);
            }
            text = self.columns.iter().position(|(_, fit)| *fit == Fit::Text);
            if let Some(text) = text {
                // Names are copied into commands: rather than to abbreviate one, the text goes below.
                let room = (most + widths[text]).saturating_sub(total(&widths));
                let is_beside = room >= widths[text].min(MIN_TEXT);
                widths[text] = if is_beside { widths[text].min(room) } else { 0 };
            }
            let is_below = text.is_some_and(|text| widths[text] == 0);
            let most = most + if is_below { GAP.len() } else { 0 };
            // The widest name is narrowed, a character at a time, until all fit or none can be narrower.
            while total(&widths) > most {
                let names = widths.iter_mut().zip(&self.columns);
                let names = names.filter(|(_, (_, fit))| *fit == Fit::Name).map(|(width, _)| width);
                let Some(widest) = names.max().filter(|width| **width > MIN_NAME) else { break };
                *widest -= 1;
            }
        }
        let mut head: Vec<String> =
            self.columns.iter().map(|(head, _)| (*head).to_owned()).collect();
        if let Some(text) = text.filter(|text| widths[*text] == 0) {
            head[text].clear();
        }
        line(out, &(None, head), &widths, text, style)?;
        for row in &self.rows {
            line(out, row, &widths, text, style)?;
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(index, (head, _)): (usize, &(&str, Fit))| {
            let cells = self.rows.iter().map(|(_, cells)| cells[index].chars().count());
            cells.max().unwrap_or(0).max(head.len())
        };
        self.columns.iter().enumerate().map(width).collect()
    }
}

fn line(
    out: &mut impl Write,
    (color, cells): &Row,
    widths: &[usize],
    text: Option<usize>,
    style: Style,
) -> io::Result<()> {
    let indent = widths.first().map_or(0, |width| width + GAP.len());
    let mut wrapped = Vec::new();
    let mut line = String::new();
    let mut before = 0;
    for (index, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        if Some(index) == text && width == 0 {
            let room = style.width.unwrap_or(0).saturating_sub(indent);
            wrapped.extend(wrap(cell, room).into_iter().map(|line| (indent, line)));
            continue;
        }
        let mut shown = printable(cell);
        if Some(index) == text {
            let mut lines = wrap(cell, width).into_iter();
            shown = lines.next().unwrap_or_default();
            wrapped.extend(lines.map(|line| (before, line)));
        } else if shown.chars().count() > width {
            shown = abbreviate(&shown, width);
        }
        let padding = " ".repeat(width.saturating_sub(shown.chars().count()));
        let shown = match index {
            0 => Color::paint(*color, &shown, style.colors),
            _ => shown,
        };
        line = line + if index == 0 { "" } else { GAP } + &shown + &padding;
        before += width + GAP.len();
    }
    writeln!(out, "{}", line.trim_end())?;
    for (column, line) in wrapped.iter().filter(|(_, line)| !line.is_empty()) {
        writeln!(out, "{:column$}{line}", "")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = vec![
            ("VERDICT", Fit::Whole),
            ("END A", Fit::Name),
            ("END B", Fit::Name),
            ("REASON", Fit::Text),
            ("COUNTS", Fit::Extra),
            ("CABLE", Fit::Extra),
        ];
        let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
        let reason = "went down 3 times, for 44 s in all; 1.5e-12 of the bits are wrong (+2)";
        let bad =
            ["bad", "leaf-0-1 port 9", "host\u{1b}[2J-12 mlx5_0 port 1", reason, "A: x 3", ""];
        let rows = vec![
            (Some(Color::Bad), row(bad)),
            (Some(Color::Good), row(["ok", "leaf-0-1 port 10", "host-2 port 1", "", "", ""])),
        ];
        Table { columns, rows }
    }

    fn text(width: Option<usize>, colors: bool) -> String {
        let mut out = Vec::new();
        table().write(&mut out, Style { width, colors }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn in_a_pipe_each_row_is_a_line_with_all_columns() {
        assert_eq!(
            text(None, false),
            "\
VERDICT  END A             END B                      REASON                                                                  COUNTS
bad      leaf-0-1 port 9   host\u{fffd}[2J-12 mlx5_0 port 1  went down 3 times, for 44 s in all; 1.5e-12 of the bits are wrong (+2)  A: x 3
ok       leaf-0-1 port 10  host-2 port 1
"
        );
    }

    #[test]
    fn on_a_terminal_the_reason_is_wrapped_and_the_rest_left_out() {
        assert_eq!(
            text(Some(100), false),
            "\
VERDICT  END A             END B                      REASON
bad      leaf-0-1 port 9   host\u{fffd}[2J-12 mlx5_0 port 1  went down 3 times, for 44 s in all; 1.5e-12 of
                                                      the bits are wrong (+2)
ok       leaf-0-1 port 10  host-2 port 1
"
        );
    }

    #[test]
    fn on_a_narrow_terminal_the_reason_has_lines_of_its_own() {
        assert_eq!(
            text(Some(60), false),
            "\
VERDICT  END A             END B
bad      leaf-0-1 port 9   host\u{fffd}[2J-12 mlx5_0 port 1
         went down 3 times, for 44 s in all; 1.5e-12 of the
         bits are wrong (+2)
ok       leaf-0-1 port 10  host-2 port 1
"
        );
    }

    #[test]
    fn lines_are_never_longer_than_the_terminal() {
        for width in 40..200 {
            for line in text(Some(width), false).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        // Too narrow for anything: it is written as narrow as can be, and ends.
        assert!(text(Some(3), true).contains("\x1b[31mbad\x1b[0m"));
    }

    #[test]
    fn a_table_without_rows_is_nothing() {
        let mut out = Vec::new();
        Table { rows: Vec::new(), ..table() }.write(&mut out, Style::default()).unwrap();
        assert!(out.is_empty());
    }
}
