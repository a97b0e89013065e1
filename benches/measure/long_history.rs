//! A history that is longer than what was recorded.

use std::path::Path;
use std::time::Duration;

use ib_fabric::Snapshot;
use ib_mad::counter::CounterKind;
use ib_mad::{Counter, Moment};

/// Numbers without a pattern (a linear congruential generator, Knuth's).
pub struct Noise(pub u64);

impl Noise {
    /// A number below this one.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 16) % most
    }
}

/// Advances by one interval.
pub fn go_on(snapshot: &mut Snapshot, interval: Duration, noise: &mut Noise) {
    snapshot.began = snapshot.began + interval;
    snapshot.ended = snapshot.began + Duration::from_secs(2);
    for (port, reading) in snapshot.readings.iter_mut().enumerate() {
        let Some(reading) = reading else { continue };
        reading.at = Moment(snapshot.began.0 + noise.below(2_000_000_000));
        let (is_busy, is_bad) = (port % 5 < 3, port % 100 == 0);
        for counter in Counter::all() {
            let Some(total) = reading.get(counter) else { continue };
            let more = match (counter.row().kind, counter) {
                // Up to 50 GB/s for 15 s, in words of four bytes, and packets of some KB.
                (CounterKind::Traffic, Counter::XmitData | Counter::RcvData) if is_busy => {
                    noise.below(187_500_000_000)
                }
                (CounterKind::Traffic, Counter::MulticastXmitPkts | Counter::MulticastRcvPkts)
                    if is_busy =>
                {
                    noise.below(100)
                }
                (CounterKind::Traffic, _) if is_busy => noise.below(200_000_000),
                (_, Counter::XmitWait | Counter::FecCorrectedBlocks) if is_busy => {
                    noise.below(1 << 20)
                }
                (CounterKind::Error, Counter::SymbolErrors) if is_bad => 1 + noise.below(50),
                _ => 0,
            };
            reading.set(counter, total + more);
        }
    }
}

/// Copies the digested hour, its sweeps and the states at its beginning, one hour earlier each, until there are so many.
pub fn lengthen(file: &Path, hours: i64) {
    let db = rusqlite::Connection::open(file).unwrap();
    db.execute_batch("BEGIN").unwrap();
    for hour in 1..hours {
        db.execute(
            "INSERT INTO spans (fabric, first, began, ended, traffic, sweeps, last)
             SELECT fabric, first - ?1 * 3600000000, began - ?1 * 3600000000,
                 ended - ?1 * 3600000000, traffic - ?1 * 3600000000, sweeps, 0 FROM spans WHERE id = 1",
            [hour],
        )
        .unwrap();
        let span = db.last_insert_rowid();
        db.execute(
            "INSERT INTO digests (span, tier, part, data)
             SELECT ?1, tier, part, data FROM digests WHERE span = 1",
            [span],
        )
        .unwrap();
        db.execute(
            "INSERT INTO sweeps (fabric, since, began, ended)
             SELECT fabric, since - ?1 * 3600000000, began - ?1 * 3600000000, ended - ?1 * 3600000000
             FROM sweeps WHERE id BETWEEN 2 AND (SELECT last FROM spans WHERE id = 1)",
            [hour],
        )
        .unwrap();
        // The totals of errors (8), which are written twice a day.
        if hour % 12 == 0 {
            db.execute(
                "INSERT INTO frames (fabric, tier, part, began, ended, data)
                 SELECT fabric, tier, part, began - ?1 * 3600000000, ended - ?1 * 3600000000, data
                 FROM frames WHERE tier = 8 AND began = (SELECT max(began) FROM frames WHERE tier = 8)",
                [hour],
            )
            .unwrap();
        }
        // The complete states of ports (5) and nodes (7), which are written once an hour.
        db.execute(
            "INSERT INTO frames (fabric, tier, part, began, ended, data)
             SELECT fabric, tier, part, began - ?1 * 3600000000, ended - ?1 * 3600000000, data
             FROM frames WHERE tier IN (5, 7) AND id IN (
                 SELECT min(id) FROM frames WHERE tier IN (5, 7) GROUP BY tier)",
            [hour],
        )
        .unwrap();
    }
    // What was there all the time was there from the beginning.
    for table in ["cables", "presences", "names"] {
        let sql = format!("UPDATE {table} SET since = since - ?1 * 3600000000");
        db.execute(&sql, [hours]).unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
}
