//! Tables as comma-separated values.

use std::io::Write;

use super::ExportError;
use super::table::{Cell, Column, Table};
use crate::model::time;

/// A table in the making.
pub struct Csv<W: Write> {
    writer: ::csv::Writer<W>,
}

impl<W: Write> Csv<W> {
    /// Writes the head.
    pub fn begin(columns: &[Column], out: W) -> Result<Self, ExportError> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(|column| column.name)).map_err(unwritten)?;
        Ok(Csv { writer })
    }
}

impl<W: Write> Table for Csv<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        for cell in cells {
            let written = match cell {
                Cell::Nothing => self.writer.write_field(""),
                Cell::Time(at) => self.writer.write_field(time::text(*at)),
                Cell::Text(text) => self.writer.write_field(text.as_bytes()),
                Cell::Number(number) => {
                    self.writer.write_field(itoa::Buffer::new().format(*number))
                }
                Cell::Json(json) => self.writer.write_field(json.to_string()),
            };
            written.map_err(unwritten)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(unwritten)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(self.writer.flush()?)
    }
}

fn unwritten(error: ::csv::Error) -> ExportError {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error.into(),
        other => std::io::Error::other(format!("{other:?}")).into(),
    }
}
