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

/// Writes CSV: a line of names, and a line per row (RFC 4180, but with `\n` at the end of lines).
pub struct Csv<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Csv<W> {
    /// Writes the line of names.
    pub fn new(columns: &[Column], mut out: W) -> io::Result<Self> {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(Csv { out, line: Vec::new() })
    }
}

impl<W: Write> RowWriter for Csv<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        self.line.clear();
        for cell in cells {
            match cell {
                Cell::Null => {}
                Cell::Time(at) => self.line.extend_from_slice(time::text(*at).as_bytes()),
                Cell::Text(text) => push_field(&mut self.line, text),
                Cell::Number(number) => write!(self.line, "{number}")?,
                Cell::Json(json) => push_field(&mut self.line, &json.to_string()),
            }
            self.line.push(b',');
        }
        if let Some(last) = self.line.last_mut() {
            *last = b'\n';
        }
        Ok(self.out.write_all(&self.line)?)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(self.out.flush()?)
    }
}

/// Appends a field of CSV, quoted if that is necessary.
fn push_field(line: &mut Vec<u8>, text: &str) {
    if text.contains([',', '"', '\n', '\r']) {
        line.push(b'"');
        line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(text.as_bytes());
    }
}

/// Writes a JSON object per line.
pub struct JsonLines<W> {
    columns: &'static [Column],
    out: W,
    line: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Writes nothing yet.
    pub fn new(columns: &'static [Column], out: W) -> Self {
        JsonLines { columns, out, line: Vec::new() }
    }
}

impl<W: Write> RowWriter for JsonLines<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        let line = &mut self.line;
        line.clear();
        for (column, cell) in self.columns.iter().zip(cells) {
            let separator = if line.is_empty() { '{' } else { ',' };
            write!(line, "{separator}\"{}\":", column.name)?;
            match cell {
                Cell::Null => line.extend_from_slice(b"null"),
                Cell::Time(at) => write!(line, "\"{}\"", time::text(*at))?,
                Cell::Text(text) => {
                    serde_json::to_writer(&mut *line, text).map_err(io::Error::from)?;
                }
                Cell::Number(number) => write!(line, "{number}")?,
                Cell::Json(json) => {
                    serde_json::to_writer(&mut *line, json).map_err(io::Error::from)?;
                }
            }
        }
        line.extend_from_slice(b"}\n");
        Ok(self.out.write_all(line)?)
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
        let columns =
            [Column::required("a", ColumnType::Text), Column::optional("b", ColumnType::Json)];
        let mut out = Vec::new();
        let mut csv = Csv::new(&columns, &mut out).unwrap();
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
