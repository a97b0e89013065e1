//! Words that people and addresses say: times, ports, links, and questions to the history.

use fabric_exporter::metrics::negotiate;
use fabric_history::Kind;
use fabric_history::clock::Clock;
use fabric_history::question;
use fabric_history::question::Question;
use ib_fabric::topology::LinkId;
use ib_health::settings::NodeSelector;
use ib_mad::Guid;
use rdma_host::reader::selection::Selection;

use super::files::one_line;

/// The questions, by name.
const QUESTIONS: [&str; 9] =
    ["span", "ports", "events", "cables", "moved", "series", "fabrics", "cover", "?"];

pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let clock = Clock::now();
    match clock.read(text) {
        Ok(at) => assert!(!clock.tell(at).is_empty() && !clock.tell_time(at).is_empty()),
        Err(error) => one_line(&error),
    }
    if let Ok(guid) = text.parse::<Guid>() {
        assert_eq!(guid.to_string().parse(), Ok(guid));
    }
    if let Ok(link) = text.parse::<LinkId>() {
        assert_eq!(link.to_string().parse::<LinkId>().ok(), Some(link));
    }
    let _ = NodeSelector::new(text);
    if let Some(kind) = Kind::from_label(text) {
        assert_eq!(kind.label(), text);
    }
    let _ = (negotiate::format(Some(text)), negotiate::takes_gzip(Some(text)));
    if let Err(wrong) = Selection::new(Some(text), None) {
        one_line(&wrong.problem);
    }
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    for name in QUESTIONS {
        let Ok(read) = Question::read(name, &pairs) else { continue };
        // As it is asked on, of another exporter: to the millisecond, and from then on the same.
        let asked = Question::read(name, &said(&read)).expect("what is written can be read");
        assert_eq!(Question::read(name, &said(&asked)), Ok(asked));
    }
    let _ = question::read_window(&pairs);
}

fn said(question: &Question) -> Vec<(String, String)> {
    question.pairs().into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
