//! Rows of typed columns, and their writers for CSV and JSON lines.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::SystemTime;

use crate::model::time;

use super::ExportError;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A time, to the millisecond.
    Time,
    /// A text.
    Text,
    /// An unsigned number.
    Number,
    /// JSON.
    Json,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: letters only, so that no format has to escape it.
    pub name: &'static str,
    /// Its type.
    pub of: ColumnType,
    /// Whether each row has a value.
    pub is_required: bool,
}

impl Column {
    /// A column in which each row has a value.
    pub const fn required(name: &'static str, of: ColumnType) -> Self {
        Column { name, of, is_required: true }
    }

    /// A column in which rows may have no value.
    pub const fn optional(name: &'static str, of: ColumnType) -> Self {
        Column { name, of, is_required: false }
    }
}

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A time.
    Time(SystemTime),
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Number(u64),
    /// JSON.
    Json(&'a serde_json::Value),
}

/// Writes rows in a format.
pub trait RowWriter {
    /// Writes a row with as many cells as there are columns.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError>;

    /// Writes the rest.
    fn finish(&mut self) -> Result<(), ExportError>;
}

/// Writes a line per row: CSV, or JSON lines.
///
/// CSV begins with a line of names, and is as in RFC 4180, but with `\n` at the end of lines.
pub struct TextRows<W> {
    columns: &'static [Column],
    is_json: bool,
    out: W,
    line: Vec<u8>,
}

impl<W: Write> TextRows<W> {
    /// Writes CSV.
    pub fn csv(columns: &'static [Column], mut out: W) -> io::Result<Self> {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(TextRows { columns, is_json: false, out, line: Vec::new() })
    }

    /// Writes JSON lines.
    pub fn json(columns: &'static [Column], out: W) -> Self {
        TextRows { columns, is_json: true, out, line: Vec::new() }
    }

    fn push_text(&mut self, text: &str) -> io::Result<()> {
        if self.is_json {
            return Ok(serde_json::to_writer(&mut self.line, text)?);
        }
        if text.contains([',', '"', '\n', '\r']) {
            write!(self.line, "\"{}\"", text.replace('"', "\"\""))
        } else {
            self.line.write_all(text.as_bytes())
        }
    }
}

impl<W: Write> RowWriter for TextRows<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        self.line.clear();
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            match (self.is_json, index) {
                (true, 0) => write!(self.line, "{{\"{}\":", column.name)?,
                (true, _) => write!(self.line, ",\"{}\":", column.name)?,
                (false, 0) => {}
                (false, _) => self.line.push(b','),
            }
            match cell {
                Cell::Null if self.is_json => self.line.extend_from_slice(b"null"),
                Cell::Null => {}
                Cell::Time(at) => self.push_text(&time::text(*at))?,
                Cell::Text(text) => self.push_text(text)?,
                Cell::Number(number) => write!(self.line, "{number}")?,
                Cell::Json(json) if self.is_json => write!(self.line, "{json}")?,
                Cell::Json(json) => self.push_text(&json.to_string())?,
            }
        }
        self.line.extend_from_slice(if self.is_json { b"}\n" } else { b"\n" });
        Ok(self.out.write_all(&self.line)?)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_separators_quotes_and_line_breaks() {
        const COLUMNS: &[Column] =
            &[Column::required("a", ColumnType::Text), Column::optional("b", ColumnType::Json)];
        let mut out = Vec::new();
        let mut csv = TextRows::csv(COLUMNS, &mut out).unwrap();
        let json = serde_json::json!({"x": 1});
        for (text, cell) in [
            ("plain", Cell::Null),
            ("a,b", Cell::Json(&json)),
            ("say \"no\"", Cell::Number(7)),
            ("two\r\nlines", Cell::Time(SystemTime::UNIX_EPOCH)),
        ] {
            csv.row(&[Cell::Text(text.into()), cell]).unwrap();
        }
        csv.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a,b\nplain,\n\"a,b\",\"{\"\"x\"\":1}\"\n\"say \"\"no\"\"\",7\n\
             \"two\r\nlines\",1970-01-01T00:00:00.000Z\n"
        );
    }
}
