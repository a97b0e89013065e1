//! Tables as Parquet, for data frames.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, GzipLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;

use crate::export::{Cell, Column, ColumnType, ExportError, RowWriter};
use crate::model::time::millis;

/// Rows of a row group, which is held in memory: some 15 MB.
const GROUP_ROWS: usize = 1 << 16;

pub struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<ColumnBuffer>,
    rows: usize,
}

struct ColumnBuffer {
    is_required: bool,
    /// Definition levels: 1 for each row with a value.
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

impl<W: Write + Send> Parquet<W> {
    pub fn new(columns: &[Column], out: W) -> Result<Self, ExportError> {
        let fields: String = columns.iter().map(field).collect();
        let schema =
            parse_message_type(&format!("message rows {{{fields}}}")).map_err(write_error)?;
        let properties = WriterProperties::builder()
            // Statistics of pages are held until the end, and a file has thousands of pages.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_created_by(concat!("fabric-exporter ", env!("CARGO_PKG_VERSION")).into())
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        let columns = columns.iter().map(|column| ColumnBuffer {
            is_required: column.is_required,
            levels: Vec::new(),
            values: match column.of {
                ColumnType::Time | ColumnType::Number => Values::Numbers(Vec::new()),
                ColumnType::Text | ColumnType::Json => Values::Texts(Vec::new()),
            },
        });
        Ok(Parquet { writer: writer.map_err(write_error)?, columns: columns.collect(), rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.columns {
            if let Some(column) = group.next_column()? {
                buffer.write(column)?;
            }
        }
        group.close().map(|_| ())
    }
}

impl ColumnBuffer {
    fn push(&mut self, cell: &Cell<'_>) {
        self.levels.push((*cell != Cell::Null).into());
        match (&mut self.values, cell) {
            (Values::Numbers(numbers), Cell::Time(at)) => numbers.push(millis(*at).cast_signed()),
            (Values::Numbers(numbers), Cell::Number(number)) => numbers.push(number.cast_signed()),
            (Values::Texts(texts), Cell::Text(text)) => {
                // Successive rows of a port share equal values.
                let last = texts.last().filter(|last| last.data() == text.as_bytes()).cloned();
                texts.push(last.unwrap_or_else(|| text.as_bytes().to_vec().into()));
            }
            (Values::Texts(texts), Cell::Json(json)) => {
                texts.push(json.to_string().into_bytes().into());
            }
            // No value: a cell has its column's type, or is null.
            _ => {}
        }
    }

    fn write(&mut self, mut column: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = (!self.is_required).then_some(&*self.levels);
        match &mut self.values {
            Values::Numbers(numbers) => {
                column.typed::<Int64Type>().write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Values::Texts(texts) => {
                column.typed::<ByteArrayType>().write_batch(texts, levels, None)?;
                texts.clear();
            }
        }
        self.levels.clear();
        column.close()
    }
}

impl<W: Write + Send> RowWriter for Parquet<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        for (buffer, cell) in self.columns.iter_mut().zip(cells) {
            buffer.push(cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group().map_err(write_error) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        self.write_group().map_err(write_error)?;
        self.writer.finish().map_err(write_error)?;
        Ok(self.writer.inner_mut().flush()?)
    }
}

fn field(column: &Column) -> String {
    let repetition = if column.is_required { "REQUIRED" } else { "OPTIONAL" };
    let (physical, logical) = match column.of {
        ColumnType::Time => ("INT64", "TIMESTAMP(MILLIS,true)"),
        ColumnType::Number => ("INT64", "INTEGER(64,false)"),
        ColumnType::Text => ("BYTE_ARRAY", "STRING"),
        ColumnType::Json => ("BYTE_ARRAY", "JSON"),
    };
    format!("{repetition} {physical} {} ({logical});", column.name)
}

fn write_error(error: ParquetError) -> ExportError {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => std::io::Error::other(error).into(),
        },
        other => std::io::Error::other(other).into(),
    }
}
