//! Tables as Parquet: what a data frame reads.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, GzipLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;

use crate::model::time::millis;

use super::ExportError;
use super::table::{Cell, Column, Table, Type};

/// Rows that are written together, and so are held in memory: some 15 MB.
const ROWS: usize = 1 << 16;

/// A table in the making.
pub struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
}

/// A column's values, and which rows have one.
struct Values {
    is_full: bool,
    levels: Vec<i16>,
    of: Kind,
}

enum Kind {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

impl<W: Write + Send> Parquet<W> {
    /// Writes the head.
    pub fn begin(columns: &[Column], out: W) -> Result<Self, ExportError> {
        let fields: String = columns.iter().map(field).collect();
        let schema =
            parse_message_type(&format!("message rows {{{fields}}}")).map_err(unwritten)?;
        let properties = WriterProperties::builder()
            // Those of each page are held until the end, and a file has thousands.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_created_by(concat!("fabric-exporter ", env!("CARGO_PKG_VERSION")).into())
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        let columns = columns.iter().map(|column| Values {
            is_full: column.is_full,
            levels: Vec::new(),
            of: match column.of {
                Type::Time | Type::Number => Kind::Numbers(Vec::new()),
                Type::Text | Type::Json => Kind::Texts(Vec::new()),
            },
        });
        Ok(Parquet { writer: writer.map_err(unwritten)?, columns: columns.collect(), rows: 0 })
    }

    /// Writes the rows that are held.
    fn settle(&mut self) -> Result<(), ParquetError> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for values in &mut self.columns {
            if let Some(column) = group.next_column()? {
                values.write(column)?;
            }
        }
        group.close().map(|_| ())
    }
}

impl Values {
    fn push(&mut self, cell: &Cell<'_>) {
        self.levels.push((*cell != Cell::Nothing).into());
        match (&mut self.of, cell) {
            (Kind::Numbers(numbers), Cell::Time(at)) => numbers.push(millis(*at).cast_signed()),
            (Kind::Numbers(numbers), Cell::Number(number)) => numbers.push(number.cast_signed()),
            (Kind::Texts(texts), Cell::Text(text)) => {
                // Rows of a port stand together, and share what they have alike.
                let last = texts.last().filter(|last| last.data() == text.as_bytes()).cloned();
                texts.push(last.unwrap_or_else(|| text.as_bytes().to_vec().into()));
            }
            (Kind::Texts(texts), Cell::Json(json)) => {
                texts.push(json.to_string().into_bytes().into());
            }
            // Each column has cells of its own type.
            _ => {}
        }
    }

    fn write(&mut self, mut column: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = (!self.is_full).then_some(&*self.levels);
        match &mut self.of {
            Kind::Numbers(numbers) => {
                column.typed::<Int64Type>().write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Kind::Texts(texts) => {
                column.typed::<ByteArrayType>().write_batch(texts, levels, None)?;
                texts.clear();
            }
        }
        self.levels.clear();
        column.close()
    }
}

impl<W: Write + Send> Table for Parquet<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            values.push(cell);
        }
        self.rows += 1;
        if self.rows == ROWS { self.settle().map_err(unwritten) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        self.settle().map_err(unwritten)?;
        self.writer.finish().map_err(unwritten)?;
        Ok(self.writer.inner_mut().flush()?)
    }
}

/// A column as Parquet's schemas have it.
fn field(column: &Column) -> String {
    let repetition = if column.is_full { "REQUIRED" } else { "OPTIONAL" };
    let (physical, logical) = match column.of {
        Type::Time => ("INT64", "TIMESTAMP(MILLIS,true)"),
        Type::Number => ("INT64", "INTEGER(64,false)"),
        Type::Text => ("BYTE_ARRAY", "STRING"),
        Type::Json => ("BYTE_ARRAY", "JSON"),
    };
    format!("{repetition} {physical} {} ({logical});", column.name)
}

fn unwritten(error: ParquetError) -> ExportError {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => std::io::Error::other(error).into(),
        },
        other => std::io::Error::other(other).into(),
    }
}
