//! Which kinds of events are sent.

use std::collections::BTreeSet;

use fabric_history::EventKind;

/// The word for [`DEFAULT`], and the one for all kinds.
const WORDS: [&str; 2] = ["default", "all"];

/// What somebody without alerts wants to know: that a link or node needs attention or is well again, and that the
/// exporter can no longer tell.
pub const DEFAULT: [EventKind; 12] = [
    EventKind::SweepFailed,
    EventKind::SweepRecovered,
    EventKind::MasterChanged,
    EventKind::LinkDown,
    EventKind::LinkUp,
    EventKind::Flap,
    EventKind::CableMoved,
    EventKind::VerdictChanged,
    EventKind::NodeDown,
    EventKind::NodeUp,
    EventKind::DeviceFatal,
    EventKind::HistoryDisplaced,
];

/// The kinds that a list means: labels of kinds, and the words `default` and `all`. Without a list, the default.
pub fn parse(list: Option<&[String]>) -> Result<BTreeSet<EventKind>, String> {
    let Some(list) = list else { return Ok(DEFAULT.into()) };
    let mut kinds = BTreeSet::new();
    for word in list {
        match (word.as_str(), EventKind::from_label(word)) {
            (_, Some(kind)) => {
                kinds.insert(kind);
            }
            ("default", _) => kinds.extend(DEFAULT),
            ("all", _) => kinds.extend(EventKind::ALL),
            _ => {
                let words = WORDS.join(", ");
                return Err(format!("{word:?} is not one of: {words}, {}", EventKind::labels()));
            }
        }
    }
    if kinds.is_empty() { Err("it must not be empty".to_owned()) } else { Ok(kinds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_labels_are_added_up() {
        let of = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|&word| word.to_owned()).collect();
            parse(Some(&list))
        };
        assert_eq!(parse(None).unwrap().len(), DEFAULT.len());
        assert_eq!(of(&["default"]), parse(None));
        assert_eq!(of(&["all"]).unwrap().len(), EventKind::ALL.len());
        let more = of(&["default", "cable_changed"]).unwrap();
        assert_eq!(more.len(), DEFAULT.len() + 1);
        assert_eq!(of(&["node_up", "node_up"]), Ok([EventKind::NodeUp].into()));
        assert_eq!(of(&[]), Err("it must not be empty".to_owned()));
        let problem = of(&["link_down", "party"]).unwrap_err();
        assert!(problem.starts_with("\"party\" is not one of: default, all, exporter_start, "));
    }
}
