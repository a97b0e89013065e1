//! A history's file in which bytes are not what was written: whoever reads it gets an error or an
//! answer, and whoever records into it sets it aside or goes on.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use fabric_history::clock::Clock;
use fabric_history::diff::between;
use fabric_history::export::{Asked, openmetrics};
use fabric_history::file::tier::Tier;
use fabric_history::model::{Port, Window};
use fabric_history::report::{Report, html, markdown};
use fabric_history::settings::HistorySettings;
use fabric_history::source::{Detail, Wanted};
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::RecorderStats;

use super::input::Input;

/// What version 1 wrote; see tests/history/migrated.rs.
const MADE: &[u8] = include_bytes!("../../tests/fixtures/history-1.db");

/// The same as this version writes it.
pub fn current() -> &'static [u8] {
    static CURRENT: OnceLock<Vec<u8>> = OnceLock::new();
    CURRENT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        fs::write(&file, MADE).unwrap();
        record(&file);
        let bytes = fs::read(&file).unwrap();
        assert!(Reader::open(&file).unwrap().counts().unwrap().0 > 0);
        bytes
    })
}

fn record(file: &Path) {
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.into()) };
    let mut recorder = Recorder::new(settings, Arc::<RecorderStats>::default());
    let _ = recorder.memory("default");
    recorder.end(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_001_000));
}

/// All time that the file tells of, and some more.
fn always() -> Window {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Window { from: at(1_699_990_000), to: at(1_700_010_000) }
}

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let mut damaged = if flags & 1 == 0 { current() } else { MADE }.to_vec();
    while !input.is_empty() {
        let at = (usize::from(input.u8()) << 16 | usize::from(input.u16())) % damaged.len();
        let count = usize::from(input.u8() & 0x0f) + 1;
        let put = input.bytes(count);
        damaged[at..].iter_mut().zip(put).for_each(|(to, from)| *to = *from);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    fs::write(&file, &damaged).unwrap();
    if let Ok(reader) = Reader::open(&file) {
        ask(&reader);
        let _ = openmetrics(&reader, &Asked::all(always()), &mut std::io::sink());
        for tier in [Tier::Rare, Tier::Busy, Tier::First, Tier::All] {
            let _ = reader.frames(tier);
        }
        if flags & 2 != 0 {
            let _ = reader.dump_unnamed(always(), 0);
        }
    }
    if flags & 4 != 0 {
        record(&file);
    }
}

/// Asks everything that a source can be asked, and tells it.
pub fn ask(source: &dyn Source) {
    let window = always();
    let _ = source.span();
    let events = source.events(&Wanted::all(window)).unwrap_or_default();
    let ports = source.ports("leaf-0-0").unwrap_or_default();
    let ends: Vec<_> = ports.iter().map(Port::end).collect();
    let _ = source.events(&Wanted { ports: ends.clone(), ..Wanted::all(window) });
    let _ = (source.series(&ends, Detail::All, window), source.cables(&ends, window));
    let _ = (source.moved(window), source.fabrics(window.to), source.cover(window));
    for told in &events {
        // A kind that is not known here may come from a later version.
        let _ = serde_json::to_string(told).unwrap();
    }
    if let Ok(links) = between(source, window) {
        for link in links {
            let _ = (link.label(), link.sum(), link.changes());
        }
    }
    let clock = Clock::now();
    if let Ok(report) = Report::of(source, window, window.to, &|at| clock.tell(at)) {
        let _ = (report.gist(), markdown::write(&report, &clock));
        let page = html::write(&report, &clock);
        assert!(!page.contains("<script>alert"), "what is told is text, and no page");
    }
}
