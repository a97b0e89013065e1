//! Which frames of a file can be read.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fabric_history::file::frame::{Digest, Frame};
use fabric_history::file::record_kind::RecordKind;
use rusqlite::{Connection, OpenFlags};

/// How many sweeps can be read of a kind of record, how many cannot, and when the latest ended.
pub fn frames(
    file: &Path,
    kind: RecordKind,
) -> rusqlite::Result<(usize, usize, Option<SystemTime>)> {
    let mut db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.busy_timeout(Duration::from_secs(5))?;
    // Frames and digests of one moment.
    let db = db.transaction()?;
    let mut last: Option<i64> = None;
    let mut sweeps: HashMap<(i64, i64), bool> = HashMap::new();
    let mut select = db.prepare("SELECT fabric, began, ended, data FROM frames WHERE tier = ?1")?;
    let mut rows = select.query([kind])?;
    while let Some(row) = rows.next()? {
        let is_whole = Frame::unpack(row.get_ref(3)?.as_blob()?).is_ok();
        *sweeps.entry((row.get(0)?, row.get(1)?)).or_insert(true) &= is_whole;
        last = last.max(Some(row.get(2)?));
    }
    let damaged = sweeps.values().filter(|is_whole| !**is_whole).count();
    let whole = sweeps.len() - damaged;
    let (mut digested, mut damaged_hours) = (HashSet::new(), HashSet::new());
    if kind == RecordKind::ErrorDeltas {
        let mut select = db.prepare(
            "SELECT spans.id, fabric, first, ended, data FROM digests JOIN spans ON spans.id = span
             WHERE tier = ?1",
        )?;
        let mut rows = select.query([kind])?;
        while let Some(row) = rows.next()? {
            let (hour, fabric): (i64, i64) = (row.get(0)?, row.get(1)?);
            match Digest::unpack(row.get_ref(4)?.as_blob()?, row.get(2)?) {
                Ok(digest) => {
                    digested.extend(digest.readings(None).map(|(sweep, _)| (fabric, sweep.began)));
                }
                Err(_) => drop(damaged_hours.insert(hour)),
            }
            last = last.max(Some(row.get(3)?));
        }
    }
    let last = last.map(|micros| {
        SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    });
    Ok((whole + digested.len(), damaged + damaged_hours.len(), last))
}
