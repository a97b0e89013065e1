//! Telemetry as CSV: a header, and a row per port.

use crate::contents::Contents;
use crate::remark::{Remark, shown};
use crate::text;

use super::fields::{self, Field};
use super::row::{MAX_ROWS, Row, SpeedCodes};

/// The columns that are known, by their indexes.
struct Header {
    columns: Vec<(usize, Field, String)>,
    /// That of the node.
    node: usize,
    cells: usize,
}

impl Header {
    /// The header in a line, if it is one: it names the node and the port.
    fn of(cells: &[&str]) -> Option<Header> {
        let known = |(index, name): (usize, &&str)| {
            fields::by_name(name).map(|field| (index, field, (*name).to_owned()))
        };
        let columns: Vec<_> = cells.iter().enumerate().filter_map(known).collect();
        let find = |wanted: Field| columns.iter().find(|(_, field, _)| *field == wanted);
        let (node, ..) = *find(Field::NodeGuid)?;
        find(Field::PortNumber)?;
        Some(Header { node, cells: cells.len(), columns })
    }
}

fn simple(line: &str) -> Vec<&str> {
    line.trim_start_matches('\u{feff}')
        .split(',')
        .map(|cell| cell.trim().trim_matches('"'))
        .collect()
}

/// Whether a line is the header of telemetry.
pub fn is_header(line: &str) -> bool {
    Header::of(&simple(line)).is_some()
}

/// What is read of one table.
#[derive(Default)]
struct Table {
    found: Contents,
    rows: Vec<Row>,
    header: Option<Header>,
}

impl Table {
    fn finish(self) -> Contents {
        let Table { mut found, rows, .. } = self;
        let codes = SpeedCodes::of(rows.iter().filter_map(Row::speed_code));
        let without = rows.into_iter().map(|row| row.add_to(&mut found, codes));
        let without = without.filter(|added| !added).count();
        if without > 0 {
            let what =
                format!("{without} rows without node GUID and port number, or of aggregated ports");
            found.remark(Remark::used(0, what));
        }
        found
    }

    fn add(&mut self, record: &csv::StringRecord, line: usize) {
        let Some(header) = &self.header else { return };
        // With a cell more or less, it is not known which cell is of which column.
        if record.len() != header.cells {
            let what = format!(
                "not used: the header has {} cells, this row {}",
                header.cells,
                record.len()
            );
            self.found.remark(Remark::unused(line, what));
            return;
        }
        let mut row = Row::default();
        for (index, field, name) in &header.columns {
            let cell = record.get(*index).unwrap_or_default();
            if !row.set(*field, cell) {
                let what = format!("{name}: {} is not a value, so it is unknown", shown(cell));
                self.found.remark(Remark::unused(line, what));
            }
        }
        self.rows.push(row);
    }
}

/// Reads a text: a header begins another reading. People append one response to the other. `None` if it has too many rows.
pub fn parse(text: &str) -> Option<Vec<Contents>> {
    let text = text.trim_start_matches('\u{feff}');
    // A number at the end may go on.
    let (whole, cut) = match text.rfind('\n') {
        Some(end) if end + 1 < text.len() => (&text[..=end], text[end + 1..].trim()),
        _ => (text, ""),
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(whole.as_bytes());
    let mut done = Vec::new();
    let mut table = Table::default();
    let mut record = csv::StringRecord::new();
    // Where the latest record begins, and in which line.
    let (mut at, mut line) = (0, 1);
    let mut rows = 0;
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            // It is text: what is left is the end of what can be read.
            Err(_) => continue,
        }
        let is_first = table.header.is_none();
        let from = at;
        at = record.position().map_or(at, |position| position.byte() as usize);
        // A record begins behind the line end of the one before, of which the reader has read the first half of CR LF.
        let skipped = whole.get(at..).map_or(0, |rest| rest.len() - rest.trim_start().len());
        at += skipped;
        line += whole.get(from..at).map_or(0, |passed| passed.matches('\n').count());
        let node = table.header.as_ref().map_or(0, |header| header.node);
        if is_first || record.get(node).is_some_and(|cell| text::guid(cell).is_none()) {
            let cells: Vec<&str> = record.iter().collect();
            if let Some(header) = Header::of(&cells) {
                if !is_first {
                    done.push(std::mem::take(&mut table).finish());
                }
                table.header = Some(header);
                continue;
            }
        }
        // Before memory is needed for all of them.
        rows += 1;
        if rows > MAX_ROWS {
            return None;
        }
        table.add(&record, line);
    }
    if !cut.is_empty() {
        let what = format!("cut off: {} was not used", shown(cut));
        table.found.remark(Remark::unused(0, what));
    }
    done.push(table.finish());
    Some(done)
}
