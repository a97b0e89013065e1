//! What is known again when a file is opened, beside totals: what was counted before counters fell.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use ib_health::totals::ResetOffsets;

use super::catalog::Catalog;

/// What counters had counted before they fell last, by port.
pub fn befores(
    db: &Connection,
    catalog: &Catalog,
) -> rusqlite::Result<HashMap<u32, Arc<ResetOffsets>>> {
    let mut befores: HashMap<u32, ResetOffsets> = HashMap::new();
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
