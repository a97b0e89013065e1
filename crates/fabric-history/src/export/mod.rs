//! Exports of a window for other programs: tables of readings or events, and totals as a scrape would have
//! returned them. Everything is written as it is read: memory use depends on the fabric, not on the window.

mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
mod tables;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::time::Duration;

use thiserror::Error;

use ib_fabric::topology::End;
use ib_mad::Guid;

use super::HistoryError;
use super::file::reader::Reader;
use super::model::{Port, Window};

pub use openmetrics::openmetrics;
pub use tables::{counters, events};

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The file cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
    /// The program was built without Parquet.
    #[error("this fabric-exporter was built without Parquet (cargo's feature parquet)")]
    NoParquet,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// A line of names, and a line per row (RFC 4180, but with `\n` at the end of lines).
    Csv,
    /// A JSON object per line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

/// What is exported.
#[derive(Clone, Debug)]
pub struct ExportFilter {
    /// The time.
    pub window: Window,
    /// Only these nodes; `None` for all.
    pub nodes: Option<HashSet<Guid>>,
    /// Only these ports; `None` for all. With nodes as well, ports that are in both.
    pub ports: Option<HashSet<End>>,
    /// One sample of totals per step; `None` for all.
    pub step: Option<Duration>,
}

impl ExportFilter {
    /// Everything in a window.
    pub fn all(window: Window) -> Self {
        ExportFilter { window, nodes: None, ports: None, step: None }
    }

    fn has_node(&self, guid: Guid) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&guid))
            && self.ports.as_ref().is_none_or(|ports| ports.iter().any(|(it, _)| *it == guid))
    }

    fn has_port(&self, end: End) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&end.0))
            && self.ports.as_ref().is_none_or(|ports| ports.contains(&end))
    }

    /// The ports of the file that are exported, by id.
    fn ports_of(&self, reader: &Reader) -> rusqlite::Result<HashMap<u32, Port>> {
        let ports = reader.sql().all_ports()?.into_iter();
        let ports = ports.filter(|row| self.has_port(row.port.end()));
        Ok(ports.map(|row| (row.id, row.port)).collect())
    }
}

/// A writer of rows.
fn row_writer<'a>(
    format: TableFormat,
    columns: &'static [table::Column],
    out: Box<dyn Write + Send + 'a>,
) -> Result<Box<dyn table::RowWriter + 'a>, ExportError> {
    Ok(match format {
        TableFormat::Csv => Box::new(table::TextRows::csv(columns, out)?),
        TableFormat::JsonLines => Box::new(table::TextRows::json(columns, out)),
        #[cfg(feature = "parquet")]
        TableFormat::Parquet => Box::new(parquet::Parquet::new(columns, out)?),
        #[cfg(not(feature = "parquet"))]
        TableFormat::Parquet => return Err(ExportError::NoParquet),
    })
}
