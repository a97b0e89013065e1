//! Dumps of other tools: a damaged one is one line, and what can be read makes a snapshot that can be evaluated.

use std::path::PathBuf;

use fabric_dumps::response::{Response, join};
use fabric_dumps::{Format, from_files, from_texts};
use ib_fabric::names::Naming;
use ib_health::{LimitTable, LinkEvaluator};
use ib_mad::Moment;
use ib_mad::moment::Anchor;

use super::files::one_line;

/// Between two files.
const NEXT: &[u8] = b"\n=====\n";

/// Each parser reads the whole input; then its files are read as the program does it, from bytes.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for format in Format::ALL {
        if let Err(problem) = format.parse_text(&text) {
            one_line(&problem);
        }
    }
    run_response(bytes);
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(NEXT.len()).position(|window| window == NEXT) {
        files.push((PathBuf::from(format!("file {}", files.len())), rest[..at].to_vec()));
        rest = &rest[at + NEXT.len()..];
    }
    files.push((PathBuf::from("last"), rest.to_vec()));
    let dumps = match from_files(files) {
        Ok(found) => found.dumps,
        Err(error) => return one_line(&error),
    };
    let mut evaluator = LinkEvaluator::of_dumps(LimitTable::default());
    let mut before = None;
    for (nth, dump) in dumps.iter().enumerate() {
        assert!(dump.links.iter().all(|(a, b)| a < b));
        let anchor =
            Anchor { moment: Moment(3_600_000_000_000 * (nth as u64 + 1)), wall: dump.taken_at };
        let previous = before.as_deref().map(|fabric| (fabric, Moment::default()));
        let snapshot = dump.snapshot(previous, &Naming::default(), anchor);
        let (snapshot, assessment) = evaluator.evaluate(snapshot);
        let of_planes = assessment.links.iter().map(|link| link.plane_links().count());
        assert!(of_planes.sum::<usize>() >= dump.links.len());
        before = Some(snapshot.fabric);
        // What is written is read again.
        if let Ok(again) = from_texts(&[&dump.to_ibnetdiscover()]) {
            assert_eq!(again.dumps[0].nodes.len(), dump.nodes.len());
            assert_eq!(again.dumps[0].links, dump.links);
        }
    }
}

/// The response of an endpoint, alone and beside itself: what it says is evaluated, or refused in one line.
fn run_response(bytes: &[u8]) {
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let response = match Response::read(bytes.to_vec(), now) {
        Ok(response) => response,
        Err(problem) => return one_line(&problem),
    };
    let names = ["a", "b"].map(str::to_owned);
    let twice = names.map(|name| (name, &response));
    let mut evaluator = LinkEvaluator::new(LimitTable::default());
    for (nth, responses) in [&twice[..1], &twice[..]].into_iter().enumerate() {
        let dump = join(responses, now);
        let moment = Moment(u64::MAX / 4 + 60_000_000_000 * nth as u64);
        let anchor = Anchor { moment, wall: dump.taken_at };
        let (snapshot, _) = evaluator.evaluate(dump.snapshot(None, &Naming::default(), anchor));
        assert!(snapshot.readings.iter().flatten().all(|reading| reading.at <= moment));
    }
}
