//! What was recorded in a window, for other programs: tables of readings or of events, and totals as a
//! scrape would have told them. All is written as it is read: how much is held in memory depends on the
//! fabric and not on what is written.

mod csv;
mod lines;
mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
mod tables;

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use thiserror::Error;

use ib_fabric::topology::End;
use ib_mad::Guid;

use super::HistoryError;
use super::file::reader::Reader;
use super::model::Window;

pub use openmetrics::openmetrics;
pub use tables::{counters, events};

/// Why something is not exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The file cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// It cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
    /// It was built without it.
    #[error("this fabric-exporter was built without Parquet (cargo's feature parquet)")]
    NoParquet,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A head and a line a row (RFC 4180, but with line feeds alone).
    Csv,
    /// A JSON object a line.
    Lines,
    /// Apache Parquet.
    Parquet,
}

/// What is exported.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Of which time.
    pub window: Window,
    /// Of which nodes; none is all.
    pub nodes: Option<HashSet<Guid>>,
    /// Of which ports; none is all. With both, what both say.
    pub ports: Option<HashSet<End>>,
    /// Of totals, one sample in each of these.
    pub step: Option<Duration>,
}

impl Asked {
    /// All of a window.
    pub fn all(window: Window) -> Self {
        Asked { window, nodes: None, ports: None, step: None }
    }

    fn has_node(&self, guid: Guid) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&guid))
            && self.ports.as_ref().is_none_or(|ports| ports.iter().any(|(it, _)| *it == guid))
    }

    fn has(&self, end: End) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&end.0))
            && self.ports.as_ref().is_none_or(|ports| ports.contains(&end))
    }
}

/// A table in the making.
fn begun<'a>(
    form: Form,
    columns: &'static [table::Column],
    out: Box<dyn Write + Send + 'a>,
) -> Result<Box<dyn table::Table + 'a>, ExportError> {
    Ok(match form {
        Form::Csv => Box::new(csv::Csv::begin(columns, out)?),
        Form::Lines => Box::new(lines::Lines::new(columns, out)),
        #[cfg(feature = "parquet")]
        Form::Parquet => Box::new(parquet::Parquet::begin(columns, out)?),
        #[cfg(not(feature = "parquet"))]
        Form::Parquet => return Err(ExportError::NoParquet),
    })
}

/// All ports of the file that are asked for, by their numbers in it.
fn asked_for(
    reader: &Reader,
    asked: &Asked,
) -> rusqlite::Result<std::collections::HashMap<u32, super::model::Port>> {
    let places = reader.places("", [])?.into_iter();
    let places = places.filter(|place| asked.has(place.port.end()));
    Ok(places.map(|place| (place.id, place.port)).collect())
}
