//! Tables as JSON, an object a line.

use std::io::Write;

use super::ExportError;
use super::table::{Cell, Column, Table};
use crate::model::time;

/// A table in the making.
pub struct Lines<W> {
    columns: &'static [Column],
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Lines<W> {
    /// Begins it.
    pub fn new(columns: &'static [Column], out: W) -> Self {
        Lines { columns, out, line: Vec::new() }
    }
}

impl<W: Write> Table for Lines<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        let line = &mut self.line;
        line.clear();
        for (column, cell) in self.columns.iter().zip(cells) {
            // Names are our own, and have nothing that would have to be escaped.
            line.extend_from_slice(if line.is_empty() { b"{\"" } else { b",\"" });
            line.extend_from_slice(column.name.as_bytes());
            line.extend_from_slice(b"\":");
            let written = match cell {
                Cell::Nothing => serde_json::to_writer(&mut *line, &()),
                Cell::Time(at) => serde_json::to_writer(&mut *line, &time::text(*at)),
                Cell::Text(text) => serde_json::to_writer(&mut *line, text),
                Cell::Number(number) => serde_json::to_writer(&mut *line, number),
                Cell::Json(json) => serde_json::to_writer(&mut *line, json),
            };
            written.map_err(std::io::Error::from)?;
        }
        line.extend_from_slice(b"}\n");
        Ok(self.out.write_all(line)?)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(self.out.flush()?)
    }
}
