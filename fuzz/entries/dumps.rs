//! Dumps of other tools: a damaged one is one line, and what can be read makes a snapshot that can be evaluated.

use fabric_dumps::{Format, from_texts};
use ib_fabric::names::Naming;
use ib_health::{LimitTable, LinkEvaluator};
use ib_mad::Moment;
use ib_mad::moment::Anchor;

use super::files::one_line;

/// Between two files.
const NEXT: &str = "\n=====\n";

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let texts: Vec<&str> = text.split(NEXT).collect();
    for text in &texts {
        for format in Format::ALL {
            if let Err(problem) = format.parse(text) {
                one_line(&problem);
            }
        }
    }
    let dumps = match from_texts(&texts) {
        Ok(dumps) => dumps,
        Err(error) => return one_line(&error),
    };
    let mut evaluator = LinkEvaluator::new(LimitTable::default());
    let mut before = None;
    for (nth, dump) in dumps.iter().enumerate() {
        assert!(dump.links.iter().all(|(a, b)| a < b));
        let anchor =
            Anchor { moment: Moment(3_600_000_000_000 * (nth as u64 + 1)), wall: dump.taken_at };
        let snapshot = dump.snapshot(before.as_deref(), &Naming::default(), anchor);
        let (snapshot, assessment) = evaluator.evaluate(snapshot);
        assert!(assessment.links.len() >= dump.links.len());
        before = Some(snapshot.fabric);
        // What is written is read again.
        if let Ok(again) = from_texts(&[&dump.to_ibnetdiscover()]) {
            assert_eq!(again[0].nodes.len(), dump.nodes.len());
            assert_eq!(again[0].links, dump.links);
        }
    }
}
