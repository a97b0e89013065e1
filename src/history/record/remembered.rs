//! What is known again when a file is opened: totals, and what was counted before counters fell.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use crate::health::totals::Before;
use crate::history::file::frame::Frame;
use crate::history::file::tier::Tier;

use super::catalog::Catalog;
use super::ledger::Ledger;

/// The latest totals, as the file has them.
pub fn replay(db: &Connection, catalog: &Catalog) -> rusqlite::Result<Ledger> {
    let last: u32 = db.query_row("SELECT coalesce(max(id), 0) FROM ports", [], |row| row.get(0))?;
    let mut statement = db.prepare(
        "SELECT fabric, tier, data FROM frames AS it WHERE tier <= 3 AND id >= coalesce(
             (SELECT min(id) FROM frames WHERE tier = 3 AND fabric = it.fabric), 0)
         ORDER BY id",
    )?;
    let mut ledger = Ledger::default();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (fabric, tier): (i64, u8) = (row.get(0)?, row.get(1)?);
        match Frame::unpack(row.get_ref(2)?.as_blob()?) {
            Ok(frame) => {
                let absolute = tier >= Tier::First as u8;
                ledger.replay(fabric, &frame, absolute, catalog.numbers(), last);
            }
            // What it had is missed by the sums in the file alone: ports still show what they counted.
            Err(error) => tracing::warn!(%error, "a sweep of the history is passed over"),
        }
    }
    Ok(ledger)
}

/// What counters had counted before they fell last, by port.
pub fn befores(db: &Connection, catalog: &Catalog) -> rusqlite::Result<HashMap<u32, Arc<Before>>> {
    let mut befores: HashMap<u32, Before> = HashMap::new();
    let mut statement = db.prepare("SELECT port, counter, count FROM befores")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(counter) = catalog.numbers().counter(row.get(1)?) else { continue };
        let before = befores.entry(row.get(0)?).or_insert([0; _]);
        before[counter as usize] = row.get::<_, i64>(2)?.cast_unsigned();
    }
    Ok(befores.into_iter().map(|(port, before)| (port, Arc::new(before))).collect())
}

/// When the sweep that was recorded last was begun, by fabric: last by the order of writing, for clocks
/// may have been wrong.
pub fn latest(db: &Connection) -> rusqlite::Result<HashMap<i64, i64>> {
    let mut statement = db.prepare("SELECT id FROM fabrics")?;
    let fabrics: Vec<i64> =
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut last =
        db.prepare("SELECT began FROM sweeps WHERE +fabric = ?1 ORDER BY id DESC LIMIT 1")?;
    let mut latest = HashMap::new();
    for fabric in fabrics {
        if let Some(began) = last.query_row([fabric], |row| row.get(0)).optional()? {
            latest.insert(fabric, began);
        }
    }
    Ok(latest)
}
