//! The sections of a `*.db_csv`, and their rows.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use ib_mad::{Guid, PortNumber};

use crate::contents::PortName;
use crate::lines::Line;
use crate::text;

/// A section: its name, and its lines.
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    pub(super) lines: Vec<Line<'a>>,
}

/// A row by the names of its columns, in lower case.
pub(super) struct Row<'a> {
    pub(super) columns: &'a HashMap<String, usize>,
    pub(super) cells: &'a [Cow<'a, str>],
    /// What is wrong with a cell that should be a number.
    pub(super) damaged: RefCell<Option<String>>,
}

/// Whether a cell says that there is no value.
pub(super) fn is_absent(cell: &str) -> bool {
    matches!(cell, "" | "NA" | "N/A" | "-1") || cell.starts_with("ERR")
}

/// The columns of a header by their names.
pub(super) fn by_name(names: &[Cow<'_, str>]) -> HashMap<String, usize> {
    names.iter().enumerate().map(|(index, name)| (name.to_ascii_lowercase(), index)).collect()
}

/// The cells of a row, which should have `columns`.
pub(super) fn cells(row: &str, columns: usize) -> Option<Vec<Cow<'_, str>>> {
    let simple = |text| str::split(text, ',').map(|cell| Cow::Borrowed(cell.trim()));
    if !row.contains('"') {
        return Some(simple(row).collect());
    }
    // A description, which is the first column, may contain quotation marks that are not doubled, or not all of them.
    if let Some((name, rest)) = row.strip_prefix('"').and_then(|row| row.rsplit_once("\","))
        && simple(rest).count() + 1 == columns
    {
        let name = name.replace("\"\"", "\"");
        return Some(std::iter::once(Cow::Owned(name)).chain(simple(rest)).collect());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(row.as_bytes());
    let record = reader.records().next()?.ok()?;
    Some(record.iter().map(|cell| Cow::Owned(cell.to_owned())).collect())
}

impl Row<'_> {
    /// The cell of the first of these columns that there is; empty if there is none.
    pub(super) fn cell(&self, names: &[&str]) -> &str {
        let column = names.iter().find_map(|name| self.columns.get(*name));
        column.and_then(|column| self.cells.get(*column)).map_or("", |cell| &**cell)
    }

    /// A number; `None` for what a device does not have.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let cell = self.cell(&[name]);
        let number = text::number(cell);
        if number.is_none() && !is_absent(cell) {
            self.damaged.replace(Some(format!("{cell:?} is not a number ({name})")));
        }
        number
    }

    /// A number of at most 8 bits.
    pub(super) fn small(&self, name: &str) -> Option<u8> {
        self.number(name).and_then(|number| u8::try_from(number).ok())
    }

    pub(super) fn guid(&self, names: &[&str]) -> Result<Guid, String> {
        let cell = self.cell(names);
        // A spreadsheet shows them in decimal digits.
        let guid = text::guid(cell).filter(|_| cell.starts_with("0x") || cell.starts_with("0X"));
        guid.ok_or_else(|| format!("{cell:?} is not a GUID ({})", names[0]))
    }

    pub(super) fn port_number(&self, names: &[&str]) -> Result<PortNumber, String> {
        let cell = self.cell(names);
        let number = text::number(cell).and_then(|number| PortNumber::try_from(number).ok());
        number.ok_or_else(|| format!("{cell:?} is not a port number ({})", names[0]))
    }

    /// The port of a row.
    pub(super) fn key(&self) -> Result<PortName, String> {
        let guid = self.guid(&["nodeguid"])?;
        Ok(PortName::node(guid, self.port_number(&["portnum", "portnumber"])?))
    }
}
