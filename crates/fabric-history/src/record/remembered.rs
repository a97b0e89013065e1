//! What is read when a file is opened, besides totals.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use ib_health::totals::Before;

use super::catalog::Catalog;

/// What counters had counted before they were last reset, by port id.
pub fn befores(db: &Connection, catalog: &Catalog) -> rusqlite::Result<HashMap<u32, Arc<Before>>> {
    let mut befores: HashMap<u32, Before> = HashMap::new();
    let mut statement = db.prepare("SELECT port, counter, count FROM befores")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(counter) = catalog.counters().counter(row.get(1)?) else { continue };
        let before = befores.entry(row.get(0)?).or_insert([0; _]);
        before[counter as usize] = row.get::<_, i64>(2)?.cast_unsigned();
    }
    Ok(befores.into_iter().map(|(port, before)| (port, Arc::new(before))).collect())
}

/// The beginning of each fabric's last recorded sweep: last in the order of writing, as clocks may have been
/// wrong.
pub fn latest(db: &Connection) -> rusqlite::Result<HashMap<i64, i64>> {
    let mut statement = db.prepare(
        "SELECT fabrics.id, began FROM fabrics JOIN sweeps ON sweeps.id = (
             SELECT id FROM sweeps WHERE +fabric = fabrics.id ORDER BY id DESC LIMIT 1)",
    )?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
