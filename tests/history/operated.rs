//! Millions of operations on histories that an operator works with: no file is lost, none is set aside, and after
//! each kill everything that was committed is there.
//!
//! A usual run takes some seconds. `FABRIC_EXPORTER_HISTORY_OPERATIONS=10000000` sets another number of operations,
//! and `HISTORY_TEST_SEED` the seed: the same seed is the same run. What counts as an operation is printed at the
//! end: each port's reading that is written, each event, and each operation on a file as a whole. Everything goes
//! through the recorder and the reader, on files of a disk.
//!
//! A kill leaves what SIGKILL leaves: what the process had written up to some byte. SQLite appends a transaction to
//! the log frame by frame, and a checkpoint writes pages to the file in rising order
//! (sqlite.org/fileformat2.html, 4). So the files before and after a sweep determine each state in between: the log
//! has its new content up to a byte and its old content after it, or the file has, beside a complete log. Some
//! recorders are processes of their own, and are killed by a real SIGKILL.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fabric_history::file::dump::Existing;
use fabric_history::model::{Port, Window};
use fabric_history::settings::HistorySettings;
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{Reader, Source};
use ib_health::totals::TotalsSeed;
use ib_mad::Counter;
use ib_sim::rng::Rng;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::herd::{self, Herd};
use crate::shot;
use crate::steady::{RARE, Steady, SteadyRecorder, settings};
use crate::{SWEEP, always, minutes, wall};

/// As many operations as a few seconds have.
const USUAL: u64 = 60_000;

/// Sweeps of one history before the next is begun.
const SWEEPS_A_FILE: u64 = 1_500;

/// Events of this many latest sweeps are kept, even where little is.
const LATEST: u64 = 150;

/// The files of the history.
const OWN: [&str; 4] = ["history.db", "history.db-wal", "history.db-shm", "history.db.lock"];

/// What an operator runs on a database that is in use.
const OPERATOR: [&str; 12] = [
    "ANALYZE",
    "PRAGMA optimize",
    "PRAGMA optimize=0xfffe",
    "CREATE INDEX IF NOT EXISTS operators_kinds ON events (kind, at)",
    "CREATE INDEX IF NOT EXISTS operators_places ON events (place)",
    "DROP INDEX IF EXISTS operators_kinds",
    "CREATE VIEW IF NOT EXISTS flaps AS SELECT * FROM events WHERE kind = 'flap'",
    "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
     CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER);
     INSERT OR REPLACE INTO _litestream_seq VALUES (1, 1 + coalesce((SELECT seq FROM _litestream_seq), 0))",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA wal_checkpoint(PASSIVE)",
    "VACUUM",
    "REINDEX",
];

/// The retention of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// All.
    All,
    /// What a small budget has room for.
    Little,
    /// An hour; its exporter runs for longer than that.
    AnHour,
}

/// Counts of operations.
#[derive(Debug, Default)]
struct Tally {
    readings: u64,
    events: u64,
    sweeps: u64,
    herd_sweeps: u64,
    reads: u64,
    dumps: u64,
    operator: u64,
    foreign: u64,
    reopens: u64,
    kills_between: u64,
    kills_in_commit: u64,
    kills_in_checkpoint: u64,
    children: u64,
    /// Kills of which the sweep in progress is there, and of which it is not.
    came: u64,
    went: u64,
    files: u64,
    /// Histories that were seen to have no more nodes than they need.
    pruned: u64,
}

impl Tally {
    fn kills(&self) -> u64 {
        self.kills_between + self.kills_in_commit + self.kills_in_checkpoint + self.children
    }

    fn operations(&self) -> u64 {
        self.readings
            + self.events
            + self.reads
            + self.dumps
            + self.operator
            + self.foreign
            + self.reopens
            + self.kills()
    }
}

/// What was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    /// The last sweep of the steady fabric, and of the herd with its nodes.
    last: u64,
    herd: Option<(u64, Vec<u64>)>,
    /// Events by the sweep with which they were written.
    events: BTreeMap<u64, u64>,
}

/// The files of a history at a time.
#[derive(Clone, Debug, Default)]
struct Image(BTreeMap<&'static str, Vec<u8>>);

impl Image {
    fn of(folder: &Path) -> Self {
        let read = |name: &'static str| Some((name, std::fs::read(folder.join(name)).ok()?));
        Image(OWN.into_iter().filter_map(read).collect())
    }

    fn get(&self, name: &str) -> &[u8] {
        self.0.get(name).map_or(&[], |bytes| bytes)
    }

    fn restore(&self, folder: &Path) {
        for name in OWN {
            let _ = std::fs::remove_file(folder.join(name));
        }
        for (name, bytes) in &self.0 {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

/// New content up to a byte, and old content after it.
fn torn(before: &[u8], after: &[u8], chance: &mut Rng) -> Vec<u8> {
    let is_same = |(before, after): &(&[u8], &[u8])| before == after;
    let pages = before.chunks_exact(512).zip(after.chunks_exact(512)).take_while(is_same).count();
    let [rest, new] = [before, after].map(|bytes| bytes.get(pages * 512..).unwrap_or_default());
    let same = rest.iter().zip(new).take_while(|(before, after)| before == after).count();
    let same = pages * 512 + same;
    // Each fourth time everything was written, but the process was killed before it could report that.
    let new = (after.len() - same) as u64;
    let at = same + if chance.below(4) == 0 { new } else { chance.below(new + 1) } as usize;
    let mut bytes = after[..at].to_vec();
    bytes.extend(before.get(at..).unwrap_or_default());
    bytes
}

struct World {
    chance: Rng,
    steady: Arc<Steady>,
    /// Ports of the steady fabric that are read.
    ports: u64,
    herd: Herd,
    folder: TempDir,
    keeps: Keeps,
    steady_recorder: Option<SteadyRecorder>,
    /// The first sweep of the herd that this exporter has seen.
    herd_first: Option<u64>,
    /// The first sweep in the file.
    first: u64,
    model: Model,
    foreign: BTreeMap<String, Option<Vec<u8>>>,
    tally: Tally,
}

impl World {
    fn new(seed: u64) -> Self {
        let steady = Arc::new(Steady::new());
        let first = steady.sweep(1, 1);
        let ports = first.snapshot.unwrap().readings.iter().flatten().count() as u64;
        let mut world = World {
            chance: Rng::new(seed),
            steady,
            ports,
            herd: Herd::default(),
            folder: tempfile::tempdir().unwrap(),
            keeps: Keeps::All,
            steady_recorder: None,
            herd_first: None,
            first: 0,
            model: Model::default(),
            foreign: BTreeMap::new(),
            tally: Tally::default(),
        };
        // Files of an operator that look like parts of a history.
        for name in [
            "history.db.copy-before-upgrade",
            "history.db.bak",
            "history.db-wal.old",
            "history.db.damaged-notes.txt",
            "history.db.part-of-a-report",
        ] {
            world.put(name, Some(name.as_bytes().repeat(100)));
        }
        world.put("history.db.old", None);
        world
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("history.db")
    }

    fn settings(&self) -> HistorySettings {
        let usual = settings(&self.file());
        match self.keeps {
            Keeps::All => usual,
            Keeps::Little => HistorySettings { size: 600 << 10, ..usual },
            Keeps::AnHour => {
                HistorySettings { traffic_retention: minutes(20), retention: minutes(60), ..usual }
            }
        }
    }

    /// Puts a file, or a folder, of an operator's beside the history.
    fn put(&mut self, name: &str, bytes: Option<Vec<u8>>) {
        let path = self.folder.path().join(name);
        match &bytes {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => std::fs::create_dir(path).unwrap(),
        }
        self.foreign.insert(name.into(), bytes);
    }

    /// No file beside the history is lost, changed or added.
    fn look_beside(&self) {
        for entry in self.folder.path().read_dir().unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            let is_known = OWN.contains(&&*name) || self.foreign.contains_key(&name);
            assert!(is_known, "{name} lies beside the history");
        }
        for (name, bytes) in &self.foreign {
            let path = self.folder.path().join(name);
            match bytes {
                Some(bytes) => assert!(std::fs::read(&path).unwrap() == *bytes, "{name} changed"),
                None => assert!(path.is_dir(), "{name}"),
            }
        }
    }

    /// Begins a new history.
    fn begin(&mut self, keeps: Keeps) {
        let last = self.model.last;
        Image::default().restore(self.folder.path());
        self.keeps = keeps;
        // The clock continues.
        self.model = Model { last: 0, ..Model::default() };
        self.first = last + 1;
        self.herd_first = None;
        self.steady_recorder = Some(SteadyRecorder::at(&self.steady, self.settings(), self.first));
        self.tally.files += 1;
    }

    fn steady_recorder(&mut self) -> &mut SteadyRecorder {
        self.steady_recorder.as_mut().unwrap()
    }

    /// Opens the history after its exporter ended, and compares it with what was committed. After a kill in the
    /// middle of a sweep there are two possible models.
    fn reopen(&mut self, models: &[Model]) {
        let fabric = self.steady.fabric().to_owned();
        let mut steady_recorder = SteadyRecorder::at(&self.steady, self.settings(), 1);
        assert_eq!(steady_recorder.metrics.errors(), 0);
        let memory = steady_recorder.recorder.totals(&fabric);
        let number = self.steady.number_of(&memory);
        let herd = steady_recorder.recorder.totals(herd::NAME);
        assert_eq!(steady_recorder.metrics.errors(), 0);
        let is_found = |model: &&Model| model.last == number && has_herd(&herd, model);
        let found = models.iter().find(is_found);
        let found = found.unwrap_or_else(|| panic!("{number} and none of {models:?}"));
        if models.len() > 1 {
            let came = *found == models[1];
            *(if came { &mut self.tally.came } else { &mut self.tally.went }) += 1;
        }
        self.model = found.clone();
        let next = self.model.last.max(self.first - 1) + 1;
        (steady_recorder.first, steady_recorder.next) = (next, next);
        self.steady_recorder = Some(steady_recorder);
        self.herd_first = None;
        self.tally.reopens += 1;
        self.look_beside();
        self.read();
    }

    /// Reads while the exporter writes, or after it is gone.
    fn read(&mut self) {
        self.tally.reads += 1;
        if self.model.last == 0 {
            return;
        }
        let reader = Reader::open(&self.file()).unwrap();
        let span = reader.span().unwrap();
        let last = self.model.herd.as_ref().map_or(0, |(last, _)| *last).max(self.model.last);
        let ended = wall(SWEEP * last as u32);
        assert!((ended..=ended + Duration::from_secs(1)).contains(&span.last.unwrap()), "{span:?}");
        let (_, events) = reader.counts().unwrap();
        let wanted: u64 = self.model.events.values().sum();
        if self.keeps == Keeps::All {
            assert_eq!(events as u64, wanted);
        }
        let since = last.saturating_sub(LATEST).max(self.first);
        let window = Window { from: wall(SWEEP * since as u32) - SWEEP / 2, ..always() };
        let told = reader.events(&EventFilter::all(window)).unwrap().len() as u64;
        let wanted: u64 = self.model.events.range(since..).map(|(_, events)| events).sum();
        assert_eq!(told, wanted, "events since sweep {since}");
    }

    /// What a port's counters grew by, the last sweeps.
    fn read_series(&mut self) {
        self.tally.reads += 1;
        if self.model.last < self.first + 2 {
            return;
        }
        let reader = Reader::open(&self.file()).unwrap();
        let ports: Vec<_> = reader.ports("leaf-0-0").unwrap().iter().map(Port::end).collect();
        let from = wall(SWEEP * (self.model.last - 1) as u32) + SWEEP / 2;
        let series =
            reader.series(&ports, SeriesDetail::Errors, Window { from, ..always() }).unwrap();
        assert!(!series.is_empty());
        for of in series.iter().filter(|of| of.counter == Counter::SymbolErrors) {
            assert_eq!(of.steps.iter().map(|step| step.by).sum::<u64>(), RARE, "{of:?}");
        }
    }

    fn dump(&mut self) {
        self.tally.dumps += 1;
        if self.model.last == 0 {
            return;
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let copy = elsewhere.path().join("copy.db");
        let from = wall(SWEEP * self.model.last.saturating_sub(100) as u32);
        let reader = Reader::open(&self.file()).unwrap();
        reader.dump(Window { from, ..always() }, &copy, Existing::Keep, 0).unwrap();
        assert_eq!(Reader::open(&copy).unwrap().span().unwrap().last, reader.span().unwrap().last);
    }

    fn operate(&mut self) {
        self.tally.operator += 1;
        let sql = OPERATOR[self.chance.below(OPERATOR.len() as u64) as usize];
        let db = Connection::open(self.file()).unwrap();
        db.busy_timeout(Duration::from_secs(5)).unwrap();
        db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn put_another(&mut self) {
        self.tally.foreign += 1;
        let number = self.tally.foreign;
        let names = ["copy", "copy.part", "bak", "damaged-yesterday", "old", "1", "tmp-wal"];
        let name = names[self.chance.below(names.len() as u64) as usize];
        let name = format!("history.db.{name}-{number}");
        // The beginning of the history itself, or some bytes.
        let bytes = match self.chance.below(3) {
            0 => std::fs::read(self.file()).unwrap().into_iter().take(1 << 16).collect(),
            _ => (0..self.chance.below(5_000)).map(|byte| byte as u8).collect(),
        };
        self.put(&name, Some(bytes));
        // An operator cleans up as well.
        if self.foreign.len() > 12 {
            let old = self.foreign.keys().find(|name| name.ends_with(char::is_numeric)).cloned();
            let old = old.unwrap();
            std::fs::remove_file(self.folder.path().join(&old)).unwrap();
            self.foreign.remove(&old);
        }
    }

    /// Records a sweep of the steady fabric; returns what is committed with it.
    fn sweep(&mut self) -> Model {
        let steady_recorder = self.steady_recorder.as_mut().unwrap();
        let (number, before) = (steady_recorder.next, steady_recorder.metrics.get().events);
        assert!(steady_recorder.record(), "sweep {number}");
        let events = steady_recorder.metrics.get().events - before;
        let mut model = self.model.clone();
        model.last = number;
        *model.events.entry(number).or_default() += events;
        self.tally.readings += self.ports;
        self.tally.sweeps += 1;
        self.tally.events += events;
        model
    }

    /// The same of the herd, of which other nodes are there each ten minutes.
    fn herd_sweep(&mut self) -> Model {
        let number = self.steady_recorder().next - 1;
        let generation = number / 40;
        let nodes: Vec<u64> = (0..3).map(|node| 100 + generation * 3 + node).chain([7]).collect();
        let first = *self.herd_first.get_or_insert(number);
        let seen = self.herd.sweep(&nodes, number, first);
        let steady_recorder = self.steady_recorder.as_mut().unwrap();
        let (before, errors) =
            (steady_recorder.metrics.get().events, steady_recorder.metrics.errors());
        steady_recorder.recorder.record(&seen, wall(SWEEP * number as u32));
        assert_eq!(steady_recorder.metrics.errors(), errors);
        let events = steady_recorder.metrics.get().events - before;
        let mut model = self.model.clone();
        self.tally.readings += nodes.len() as u64;
        model.herd = Some((number, nodes));
        *model.events.entry(number).or_default() += events;
        self.tally.herd_sweeps += 1;
        self.tally.events += events;
        model
    }

    /// Kills the exporter while it records a sweep, or just after it did.
    fn kill(&mut self) {
        let folder = self.folder.path().to_owned();
        let before = Image::of(&folder);
        // A second sweep of the same time would leave the same totals: it could not be seen whether it is there.
        let number = self.steady_recorder().next - 1;
        let is_new = self.model.herd.as_ref().is_none_or(|(last, _)| *last < number);
        let is_herd = is_new && self.model.last > 0 && self.chance.below(4) == 0;
        let model = if is_herd { self.herd_sweep() } else { self.sweep() };
        let after = Image::of(&folder);
        let [db, wal, ..] = OWN;
        let header = |image: &Image| image.get(wal).get(..32).map(<[u8]>::to_vec);
        let is_appended = before.get(db) == after.get(db);
        let is_checkpoint = !is_appended && header(&before) == header(&after);
        let mut left = after.clone();
        let models = if self.chance.below(3) == 0 || !(is_appended || is_checkpoint) {
            self.tally.kills_between += 1;
            vec![model]
        } else if is_appended {
            self.tally.kills_in_commit += 1;
            left.0.insert(wal, torn(before.get(wal), after.get(wal), &mut self.chance));
            vec![self.model.clone(), model]
        } else {
            self.tally.kills_in_checkpoint += 1;
            left.0.insert(db, torn(before.get(db), after.get(db), &mut self.chance));
            vec![model]
        };
        // What it still writes as it goes is undone.
        self.steady_recorder = None;
        left.restore(&folder);
        self.reopen(&models);
    }

    /// Lets the exporter end, and checks the whole file.
    fn end(&mut self) {
        let now = wall(SWEEP * self.steady_recorder().next as u32);
        let before = self.steady_recorder().metrics.get().events;
        self.steady_recorder().recorder.finish(now);
        let events = self.steady_recorder().metrics.get().events - before;
        self.tally.events += events;
        let last = self.steady_recorder().next;
        *self.model.events.entry(last).or_default() += events;
        self.steady_recorder = None;
    }

    fn finish(&mut self) {
        let ran = self.steady_recorder().next - self.steady_recorder().first;
        self.end();
        self.read();
        self.look_beside();
        let db = Connection::open(self.file()).unwrap();
        let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let fault: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(fault, "ok");
        let nodes = number("SELECT count(*) FROM nodes WHERE guid < 1000000");
        match self.keeps {
            Keeps::All => {
                let moved = Reader::open(&self.file()).unwrap().error_deltas(always()).unwrap();
                let grown = RARE * (self.model.last - self.first);
                let of = moved.iter().filter(|moved| moved.port.fabric == self.steady.fabric());
                let sums = of.flat_map(|moved| &moved.sums);
                let sums = sums.filter(|sum| sum.counter == Counter::SymbolErrors);
                let sums: Vec<u64> = sums.map(|sum| sum.by).collect();
                assert!(sums.len() as u64 <= self.ports && sums.len() as u64 > self.ports / 2);
                assert!(sums.iter().all(|sum| *sum == grown), "{grown} and {sums:?}");
            }
            // Nothing is dropped for its age in the first hour of an exporter. After that the last hour is kept, and
            // the one before it until unreferenced nodes are searched: 13 generations.
            Keeps::AnHour if ran > 600 => {
                assert!(nodes <= 3 * 16, "{nodes} nodes of the herd");
                self.tally.pruned += 1;
            }
            Keeps::AnHour | Keeps::Little => {}
        }
    }
}

/// Whether totals of the herd are those of the sweep that the model has.
fn has_herd(memory: &TotalsSeed, model: &Model) -> bool {
    let Some((number, nodes)) = &model.herd else { return memory.is_empty() };
    nodes.iter().all(|node| {
        let told = memory.get(&herd::end(*node));
        told.and_then(|told| told.restored(Counter::SymbolErrors))
            == Some(herd::total(*node, *number))
    })
}

fn wanted() -> u64 {
    let said = std::env::var("FABRIC_EXPORTER_HISTORY_OPERATIONS");
    said.map_or(USUAL, |said| said.parse().unwrap())
}

#[test]
fn random_operations_lose_no_history() {
    let seed = std::env::var("HISTORY_TEST_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (wanted, began) = (wanted(), std::time::Instant::now());
    println!("HISTORY_TEST_SEED={seed}, {wanted} operations");
    let mut world = World::new(seed);
    let a_file = (wanted / world.ports / 4).clamp(100, SWEEPS_A_FILE);
    let kinds = [Keeps::All, Keeps::Little, Keeps::AnHour];
    let mut told = 0;
    while world.tally.operations() < wanted {
        let keeps = kinds[world.tally.files as usize % kinds.len()];
        world.begin(keeps);
        while world.model.last < world.first + a_file && world.tally.operations() < wanted {
            // What is an hour old goes after the exporter has run for an hour.
            let is_killed = if keeps == Keeps::AnHour { 400 } else { 25 };
            match world.chance.below(1_000) {
                0..10 => world.read(),
                10..14 => world.read_series(),
                14..16 => world.dump(),
                16..22 => world.operate(),
                22..25 => world.put_another(),
                25..28 if keeps != Keeps::AnHour => {
                    world.end();
                    let model = world.model.clone();
                    world.reopen(&[model]);
                }
                30..100 if world.model.last > 0 => world.model = world.herd_sweep(),
                100.. if world.chance.below(is_killed) == 0 => world.kill(),
                _ => world.model = world.sweep(),
            }
        }
        world.finish();
        if world.tally.operations() * 20 / wanted > told {
            told = world.tally.operations() * 20 / wanted;
            println!("{} operations, {:?}", world.tally.operations(), began.elapsed());
        }
    }
    let children = (wanted / 200_000).clamp(2, 50);
    shot::kills_beside(seed, children, &mut |folder| {
        let name = ["notes.txt", "bak"][(world.tally.children % 2) as usize];
        std::fs::write(folder.join(format!("history-0.db.{name}")), "an operator's").unwrap();
        let file = folder.join("history-0.db");
        if file.exists() {
            Connection::open(file).unwrap().execute_batch("ANALYZE").unwrap();
        }
        world.tally.children += 1;
    });
    let it = &world.tally;
    println!(
        "{} operations in {:?}: {} port readings written in {} sweeps and {} of another fabric, {} events, \
         {} reads, {} dumps, {} of an operator on the file, {} files of others put beside it, {} reopened, \
         {} kills ({} between writes, {} in a commit, {} in a checkpoint, {} processes by SIGKILL; of {} \
         sweeps in progress {} were there); {} histories, {} of them without nodes that nothing refers \
         to; none lost, none set aside",
        it.operations(),
        began.elapsed(),
        it.readings,
        it.sweeps,
        it.herd_sweeps,
        it.events,
        it.reads,
        it.dumps,
        it.operator,
        it.foreign,
        it.reopens,
        it.kills(),
        it.kills_between,
        it.kills_in_commit,
        it.kills_in_checkpoint,
        it.children,
        it.came + it.went,
        it.came,
        it.files,
        it.pruned,
    );
    assert!(it.kills_in_commit > 0 && it.operator > 0 && it.foreign > 0 && it.children == children);
}
