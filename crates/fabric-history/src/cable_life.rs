//! The life of a cable or module: in which ports it was, until when, and what happened to the links meanwhile. Nothing
//! is read here: the places are inferred from the events `cable_changed` and from what the file knows of each port.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::model::{Event, Port, Sum, text};
use ib_health::Verdict;
use ib_mad::{Guid, PortKey, PortNumber};

/// How many characters of a serial number are enough to search for it.
pub const MIN_PREFIX: usize = 4;

/// The cables and modules with a serial number, or whose serial number begins with a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CableMatches {
    /// The serial numbers; at most a hundred.
    pub serials: Vec<String>,
    /// How many there are.
    pub found: usize,
    /// The life of the cable or module; null unless exactly one was found.
    pub life: Option<CableLife>,
}

/// Where a cable or module was, and what happened to its links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CableLife {
    /// The serial number.
    pub serial: String,
    /// The part number; null if it is not recorded: the cable never changed its place.
    pub part: Option<String>,
    /// The ports in which it was, the earliest first. Both ends of a cable report the same serial number.
    pub places: Vec<CablePlace>,
    /// What happened to it and to its links while it was there, the earliest first.
    pub events: Vec<Event>,
}

impl CableLife {
    /// Whether it is gone from a port.
    pub fn has_left_a_place(&self) -> bool {
        self.places.iter().any(|place| place.until.is_some())
    }
}

/// A port in which a cable or module was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CablePlace {
    /// The port.
    pub port: Port,
    /// The port at the other end of its link, as last known.
    pub peer: Option<Port>,
    /// When it was first seen there; null if that is not recorded.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub since: Option<SystemTime>,
    /// When it was last seen there; null if it is there at the end of the recorded period.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub until: Option<SystemTime>,
    /// The last verdict of its link; null if that is not recorded.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub verdict: Option<Verdict>,
    /// The worst one.
    #[serde(with = "text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub worst_verdict: Option<Verdict>,
    /// How often the link went down unexpectedly.
    pub link_downs: u64,
    /// What error counters of the port counted; those that did not increase are omitted.
    pub errors: Vec<Sum>,
}

/// A port in which a cable was before, in the detail of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenAt {
    /// The name of the port.
    pub place: String,
    /// The GUID of its node.
    #[serde(with = "text")]
    pub guid: Guid,
    /// Its number.
    pub port: PortNumber,
}

/// A port of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub fabric: String,
    pub port: PortKey,
}

/// A port that has a cable or module, or had it until a time.
#[derive(Clone, Debug)]
pub(crate) struct LastPlace {
    pub serial: String,
    pub place: Place,
    /// `None` if the port still has it.
    pub until: Option<SystemTime>,
}

/// An event `cable_changed`.
#[derive(Clone, Debug)]
pub(crate) struct CableChange {
    pub event: Event,
    pub place: Place,
    pub serial: String,
    pub part: Option<String>,
    /// What the port had before.
    pub was: Option<String>,
    pub seen_at: Vec<SeenAt>,
    /// The names of ports where it was before, in events of earlier versions, which have no details.
    pub seen_names: Vec<String>,
    pub seen_until: Option<SystemTime>,
}

impl CableChange {
    /// The serial numbers of what the port has, and had before.
    pub fn serials(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.serial).chain(self.was.as_deref())
    }

    /// Reads an event; of one without details, its text.
    pub fn read(event: Event) -> Option<CableChange> {
        let place = Place { fabric: event.fabric.clone(), port: event.port_key()? };
        let detail = &event.detail;
        let Some(serial) = detail["serial"].as_str() else { return Self::of_text(event, place) };
        let owned = |key: &str| detail[key].as_str().map(str::to_owned);
        let until = detail["seen_until"].as_str();
        Some(CableChange {
            place,
            serial: serial.to_owned(),
            part: owned("part").filter(|part| !part.is_empty()),
            was: owned("was_serial"),
            seen_at: serde_json::from_value(detail["seen_at"].clone()).unwrap_or_default(),
            seen_names: Vec::new(),
            seen_until: until.and_then(|text| humantime::parse_rfc3339(text).ok()),
            event,
        })
    }

    /// `serial number B (part number P) instead of A, seen at leaf-3 port 7 and host-1 port 1 until …`.
    fn of_text(event: Event, place: Place) -> Option<CableChange> {
        let (serial, rest) =
            event.text.strip_prefix("serial number ")?.split_once(" (part number ")?;
        let (part, rest) = rest.split_once(')')?;
        let (was, seen) = match rest.split_once(", seen at ") {
            Some((was, seen)) => (was, seen.rsplit_once(" until ")),
            None => (rest, None),
        };
        let names = seen.map(|(names, _)| names.split(" and ").map(str::to_owned).collect());
        Some(CableChange {
            place,
            serial: serial.to_owned(),
            part: Some(part.to_owned()).filter(|part| !part.is_empty()),
            was: was.strip_prefix(" instead of ").map(str::to_owned),
            seen_at: Vec::new(),
            seen_names: names.unwrap_or_default(),
            seen_until: seen.and_then(|(_, until)| humantime::parse_rfc3339(until).ok()),
            event,
        })
    }
}

/// Whether a serial number begins with a text, in any case.
pub fn begins_with(serial: &str, text: &str) -> bool {
    serial.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
}

/// The serial number that a text is, in any case, or those that begin with the text.
pub(crate) fn matching<'a>(called: &str, serials: impl Iterator<Item = &'a str>) -> Vec<String> {
    let begin = serials.filter(|serial| begins_with(serial, called));
    let mut found: Vec<String> = begin.map(str::to_owned).collect();
    found.sort_unstable();
    found.dedup();
    for is_it in [|a: &str, b: &str| a == b, |a: &str, b: &str| a.eq_ignore_ascii_case(b)] {
        if found.iter().any(|serial| is_it(serial, called)) {
            found.retain(|serial| is_it(serial, called));
            return found;
        }
    }
    if called.len() < MIN_PREFIX { Vec::new() } else { found }
}

/// The time of a cable in a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub place: Place,
    pub since: Option<SystemTime>,
    pub until: Option<SystemTime>,
    /// When an event showed that it is gone: another cable was there, or it was elsewhere.
    pub left: Option<SystemTime>,
}

/// The stays of a cable, the earliest first: from the changes of all cables in the order of time, and from where cables
/// were seen last. `find` finds a port by its name.
pub(crate) fn stays(
    serial: &str,
    changes: &[CableChange],
    last_places: &[LastPlace],
    find: impl Fn(&str, &str) -> Option<PortKey>,
) -> Vec<Stay> {
    let mut stays = Stays::default();
    for change in changes {
        let (fabric, at) = (&change.place.fabric, change.event.at);
        if change.serial == serial {
            let named = change.seen_names.iter().filter_map(|name| find(fabric, name));
            let known = change.seen_at.iter().map(|seen| PortKey::new(seen.guid, seen.port));
            for port in known.chain(named) {
                let place = Place { fabric: fabric.clone(), port };
                stays.leave(place, at, change.seen_until);
            }
            stays.enter(change.place.clone(), at);
        }
        if change.was.as_deref() == Some(serial) {
            stays.leave(change.place.clone(), at, None);
        }
    }
    for last in last_places.iter().filter(|last| last.serial == serial) {
        stays.settle(&last.place, last.until);
    }
    let mut stays = stays.0;
    for stay in &mut stays {
        stay.until = stay.until.or(stay.left);
    }
    stays.sort_by_key(|stay| (stay.since, stay.until));
    stays
}

#[derive(Default)]
struct Stays(Vec<Stay>);

impl Stays {
    fn last(&mut self, place: &Place) -> Option<&mut Stay> {
        self.0.iter_mut().rev().find(|stay| stay.place == *place)
    }

    fn enter(&mut self, place: Place, at: SystemTime) {
        if self.last(&place).is_none_or(|stay| stay.left.is_some()) {
            self.0.push(Stay { place, since: Some(at), until: None, left: None });
        }
    }

    fn leave(&mut self, place: Place, at: SystemTime, until: Option<SystemTime>) {
        match self.last(&place) {
            // It left before that port was seen with another cable.
            Some(stay) => {
                stay.left = Some(stay.left.map_or(at, |left| left.min(at)));
                stay.until = stay.until.or(until);
            }
            None => self.0.push(Stay { place, since: None, until, left: Some(at) }),
        }
    }

    /// A port had it last at this time, or still has it.
    fn settle(&mut self, place: &Place, until: Option<SystemTime>) {
        let last = self.last(place);
        let is_back = match (&last, until) {
            (None, _) => true,
            (Some(last), None) => last.left.is_some(),
            (Some(last), Some(until)) => last.left.is_some_and(|left| left < until),
        };
        if is_back {
            self.0.push(Stay { place: place.clone(), since: None, until, left: None });
        } else if let Some(last) = last {
            let is_in = |until: &SystemTime| last.since.is_none_or(|since| since <= *until);
            last.until = until.filter(is_in).or(last.until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::event::EventKind;
    use crate::testing::Canned;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    /// A change at port 1 of a leaf, named by its number.
    fn change(second: u64, leaf: u64, text: &str, detail: serde_json::Value) -> CableChange {
        let port = Port { guid: Guid(leaf), ..Canned::port("f", "leaf", 1) };
        let event = Canned::event(EventKind::CableChanged, None, &port);
        let (at, text) = (at(second), text.into());
        CableChange::read(Event { at, text, detail, ..event }).unwrap()
    }

    fn place(leaf: u64) -> Place {
        Place { fabric: "f".into(), port: PortKey::new(Guid(leaf), 1) }
    }

    /// Each stay: the leaf, since when and until when.
    fn told(
        serial: &str,
        changes: &[CableChange],
        seen: &[(Place, Option<SystemTime>)],
    ) -> Vec<(u64, Option<u64>, Option<u64>)> {
        let find = |_: &str, name: &str| name.strip_prefix("leaf-")?.parse().ok();
        let find = |fabric: &str, name: &str| Some(PortKey::new(Guid(find(fabric, name)?), 1));
        let second = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let last = |(place, until): &(Place, _)| LastPlace {
            serial: serial.to_owned(),
            place: place.clone(),
            until: *until,
        };
        let last_places: Vec<_> = seen.iter().map(last).collect();
        let stays = stays(serial, changes, &last_places, find).into_iter();
        let told = |it: Stay| (it.place.port.guid.0, it.since.map(second), it.until.map(second));
        stays.map(told).collect()
    }

    #[test]
    fn cable_that_is_moved_has_two_places() {
        let seen = json!([{"place": "leaf-1", "guid": "0x0000000000000001", "port": 1}]);
        let detail = json!({
            "serial": "A", "part": "P", "was_serial": "B", "seen_at": seen,
            "seen_until": "1970-01-01T00:00:50Z",
        });
        let text = "serial number A (part number P) instead of B, seen at leaf-1 until 1970-01-01T00:00:50Z";
        // With details, and as earlier versions wrote it.
        for detail in [detail, serde_json::Value::Null] {
            let changes = [change(100, 2, text, detail)];
            assert_eq!(changes[0].part.as_deref(), Some("P"));
            let present = [(place(1), Some(at(50))), (place(2), None)];
            assert_eq!(told("A", &changes, &present), [(1, None, Some(50)), (2, Some(100), None)]);
            assert_eq!(told("B", &changes, &[]), [(2, None, Some(100))]);
            // What the port reported last is more precise than when another cable was seen there.
            assert_eq!(told("B", &changes, &[(place(2), Some(at(60)))]), [(2, None, Some(60))]);
        }
    }

    #[test]
    fn cable_that_comes_back_has_two_stays() {
        let swap = |second, serial: &str, was: &str| {
            let text = format!("serial number {serial} (part number ) instead of {was}");
            change(second, 1, &text, serde_json::Value::Null)
        };
        let changes = [swap(100, "B", "A"), swap(200, "A", "B")];
        assert_eq!(changes[0].part, None);
        let present = [(place(1), None)];
        assert_eq!(told("A", &changes, &present), [(1, None, Some(100)), (1, Some(200), None)]);
        assert_eq!(told("B", &changes, &[]), [(1, Some(100), Some(200))]);
        // It was never changed.
        assert_eq!(told("C", &changes, &present), [(1, None, None)]);
    }

    #[test]
    fn text_of_another_kind_is_no_change() {
        let event = Canned::event(EventKind::CableChanged, None, &Canned::port("f", "leaf", 1));
        for text in ["", "serial number A", "serial number A (part number P", "cable of leaf"] {
            let event = Event { text: text.into(), ..event.clone() };
            assert!(CableChange::read(event).is_none(), "{text}");
        }
    }

    #[test]
    fn serial_number_is_found_exactly_or_by_its_beginning() {
        let all = ["MT2135VS1", "MT2135VS12", "mt2135vs1", "É"];
        for (called, found) in [
            ("MT2135VS1", &["MT2135VS1"][..]),
            ("Mt2135vs1", &["MT2135VS1", "mt2135vs1"]),
            ("mt2135vs12", &["MT2135VS12"]),
            ("mt21", &["MT2135VS1", "MT2135VS12", "mt2135vs1"]),
            ("mt2", &[]),
            ("É", &["É"]),
            ("", &[]),
            ("MT2135VS123", &[]),
        ] {
            assert_eq!(matching(called, all.into_iter()), found, "{called}");
        }
    }
}
