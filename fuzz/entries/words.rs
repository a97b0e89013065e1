//! Texts in arguments and URLs: times, ports, links, and history queries.

use exposition::{accepts_gzip, format};
use fabric_history::EventKind;
use fabric_history::history_query;
use fabric_history::history_query::HistoryQuery;
use fabric_history::local_clock::LocalClock;
use ib_fabric::topology::LinkId;
use ib_health::settings::NodeSelector;
use ib_mad::Guid;
use rdma_host::reader::DeviceFilter;

use super::files::one_line;

/// The queries, by name.
const QUESTIONS: [&str; 9] =
    ["span", "ports", "events", "cables", "moved", "series", "fabrics", "cover", "?"];

pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let clock = LocalClock::now();
    match clock.parse(text) {
        Ok(at) => assert!(!clock.format(at).is_empty() && !clock.format_time(at).is_empty()),
        Err(error) => one_line(&error),
    }
    if let Ok(guid) = text.parse::<Guid>() {
        assert_eq!(guid.to_string().parse(), Ok(guid));
    }
    if let Ok(link) = text.parse::<LinkId>() {
        assert_eq!(link.to_string().parse::<LinkId>().ok(), Some(link));
    }
    let _ = NodeSelector::new(text);
    if let Some(kind) = EventKind::from_label(text) {
        assert_eq!(kind.label(), text);
    }
    let _ = (format(Some(text)), accepts_gzip(Some(text)));
    if let Err(problem) = DeviceFilter::new(Some(text), None) {
        one_line(&problem);
    }
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    for name in QUESTIONS {
        let Ok(read) = HistoryQuery::read(name, &pairs) else { continue };
        // As it is forwarded to another exporter: rounded to milliseconds, and unchanged afterwards.
        let asked = HistoryQuery::read(name, &said(&read)).expect("what is written can be read");
        assert_eq!(HistoryQuery::read(name, &said(&asked)), Ok(asked));
    }
    let _ = history_query::read_window(&pairs);
}

fn said(question: &HistoryQuery) -> Vec<(String, String)> {
    question.pairs().into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
