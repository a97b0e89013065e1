//! What ports went through, counted: by the events that they told, and by looking.
//!
//! An event has its time and is never missed between two looks; but not every driver tells, and
//! not every kernel lets one hear. So both are followed, and the same loss is counted once.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_mad::moment::Anchor;
use ib_mad::port_state::state;
use ib_mad::{Guid, Moment, PortNumber};
use rdma_host::model::event::{Event, EventKind};
use rdma_host::model::{Device, HostSnapshot};

/// How many ports and devices are remembered while not all of them are there. Those of containers or
/// virtual machines may get new names each time, for years.
const MOST_PLACES: usize = 1024;

/// A port's name: the device, and the port's number; none for what concerns the whole device.
pub type Place = (Arc<str>, Option<PortNumber>);

/// What happened to all ports that were ever seen. A device that is reset keeps its counts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    places: BTreeMap<Place, PortTally>,
}

/// What happened to a port.
#[derive(Clone, Debug, Default)]
pub struct PortTally {
    /// The node GUID that its device had when it was last seen, if it could be read.
    pub guid: Option<Guid>,
    /// How often it stopped being Active.
    pub losses: u64,
    /// Its device as it was last seen: [`Device::instance`].
    instance: Option<u64>,
    /// When it was last seen.
    seen: Moment,
    counts: [u64; EventKind::ALL.len()],
    last: [Option<Anchor>; EventKind::ALL.len()],
    active: Active,
    /// When it was lost last, as far as that has been counted.
    lost: Moment,
}

/// Whether a port is Active, and since when that is known.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    is: Option<bool>,
    as_of: Moment,
}

impl PortTally {
    /// How often it told this, and when last.
    pub fn of(&self, kind: EventKind) -> (u64, Option<Anchor>) {
        (self.counts[kind as usize], self.last[kind as usize])
    }

    /// Whether it was Active when that was last known.
    pub fn is_up(&self) -> Option<bool> {
        self.active.is
    }

    /// When it last stopped being Active, as its event told or a look found; of one that never did,
    /// the beginning of the clock.
    pub fn lost(&self) -> Moment {
        self.lost
    }

    fn count(&mut self, event: &Event) {
        self.counts[event.kind as usize] += 1;
        self.last[event.kind as usize] = Some(event.at);
    }

    /// Takes down whether it was Active at a moment; what is older than what is known says nothing.
    fn is_active(&mut self, is: bool, at: Moment) {
        if at < self.active.as_of {
            return;
        }
        if !is && self.active.is == Some(true) {
            self.lose(at);
        }
        self.active = Active { is: Some(is), as_of: at };
    }

    fn lose(&mut self, at: Moment) {
        self.losses += 1;
        self.lost = at;
    }

    /// Takes down which device it is of, at a moment. If that is another one than before, the device went and
    /// came back between two looks, and the link was lost with it: once, so not if an event told of it.
    fn is_of(&mut self, instance: Option<u64>, at: Moment) {
        let is_another = self.instance.zip(instance).is_some_and(|(before, now)| before != now);
        if is_another && self.active.is == Some(true) && self.lost <= self.seen {
            self.lose(at);
            if self.active.as_of <= at {
                self.active.is = Some(false);
            }
        }
        (self.instance, self.seen) = (instance.or(self.instance), at);
    }

    /// Forgets how it stood: its device has another name now, and is followed by that.
    fn is_renamed(&mut self) {
        (self.instance, self.active) = (None, Active::default());
    }
}

impl Tally {
    /// All ports, and devices without a port, in the order of their names.
    pub fn places(&self) -> impl Iterator<Item = (&Place, &PortTally)> {
        self.places.iter()
    }

    /// Counts an event.
    pub fn hear(&mut self, event: &Event) {
        let device: Arc<str> = event.device.as_str().into();
        let at = event.at.moment;
        let place = self.places.entry((Arc::clone(&device), event.port)).or_default();
        place.count(event);
        match event.kind {
            EventKind::PortError => {
                // What was never seen and says that it broke was whole.
                let was_active = *place.active.is.get_or_insert(true);
                if at >= place.active.as_of {
                    place.is_active(false, at);
                } else if was_active && at > place.lost {
                    // A look that is newer than the event found it back already.
                    place.lose(at);
                }
            }
            EventKind::PortActive => place.is_active(true, at),
            // Its ports go with it and do not say so.
            EventKind::DeviceFatal => {
                for (_, port) in self
                    .places
                    .iter_mut()
                    .filter(|((name, port), _)| *name == device && port.is_some())
                {
                    port.is_active(false, at);
                }
            }
            _ => {}
        }
    }

    /// Follows what a look found. A device that hangs says nothing; the ports of one that is gone have lost
    /// their links.
    pub fn see(&mut self, snapshot: &HostSnapshot) {
        if self.places.len() > MOST_PLACES {
            let here = |name: &str| snapshot.devices.iter().any(|device| *device.name == *name);
            self.places.retain(|(name, _), _| here(name));
        }
        if snapshot.problem.is_none() {
            self.miss(snapshot);
        }
        for device in &snapshot.devices {
            self.place(device, None);
            for port in &device.ports {
                let place = self.place(device, Some(port.number));
                place.is_of(device.instance, port.at);
                // ACTIVE_DEFER waits for a while after a link error and carries traffic again.
                if let Some(known) = port.state {
                    place
                        .is_active(known == state::ACTIVE || known == state::ACTIVE_DEFER, port.at);
                }
            }
        }
    }

    /// Follows the ports whose devices are not there any more. No event needs to tell of that: not every
    /// driver does, and without libibverbs none is heard.
    fn miss(&mut self, snapshot: &HostSnapshot) {
        for ((name, port), tally) in &mut self.places {
            let Some(instance) = tally.instance.filter(|_| port.is_some()) else { continue };
            let found = snapshot.devices.iter().find(|device| device.instance == Some(instance));
            match found {
                Some(device) if device.name == *name => {}
                Some(_) => tally.is_renamed(),
                // Another device, or one that cannot be opened, has its name.
                None if snapshot.devices.iter().any(|device| device.name == *name) => {}
                None => tally.is_active(false, snapshot.ended),
            }
        }
    }

    fn place(&mut self, device: &Device, port: Option<PortNumber>) -> &mut PortTally {
        let place = self.places.entry((Arc::clone(&device.name), port)).or_default();
        place.guid = device.about.guid;
        place
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use rdma_host::testing::{port, snapshot};

    fn at(millis: u64) -> Anchor {
        let moment = Moment::default() + Duration::from_millis(millis);
        Anchor { moment, wall: SystemTime::UNIX_EPOCH + Duration::from_millis(millis) }
    }

    fn hear(tally: &mut Tally, millis: u64, kind: EventKind) {
        let port = (kind != EventKind::DeviceFatal).then_some(1);
        tally.hear(&Event { at: at(millis), device: "rxe0".into(), port, kind });
    }

    fn see(tally: &mut Tally, millis: u64, state: u8) {
        see_as(tally, millis, "rxe0", 1, state);
    }

    /// Sees the device under a name, as the instance of this number.
    fn see_as(tally: &mut Tally, millis: u64, name: &str, instance: u64, state: u8) {
        let mut port = port(1);
        (port.at, port.state) = (at(millis).moment, Some(state));
        let mut look = snapshot(name, vec![port]);
        look.ended = at(millis).moment;
        look.devices[0].instance = Some(instance);
        tally.see(&look);
    }

    /// Looks at a host without the device.
    fn see_nothing(tally: &mut Tally, millis: u64) {
        let mut look = snapshot("", Vec::new());
        look.devices.clear();
        look.ended = at(millis).moment;
        tally.see(&look);
    }

    fn losses(tally: &Tally) -> u64 {
        tally.places().map(|(_, port)| port.losses).sum()
    }

    #[test]
    fn a_flap_shorter_than_any_look_is_counted_once() {
        let mut tally = Tally::default();
        see(&mut tally, 0, state::ACTIVE);
        hear(&mut tally, 500, EventKind::PortError);
        // Soft RoCE says twice that it is back.
        hear(&mut tally, 600, EventKind::PortActive);
        hear(&mut tally, 600, EventKind::PortActive);
        see(&mut tally, 1000, state::ACTIVE);
        assert_eq!(losses(&tally), 1);
        let (_, port) = tally.places().last().unwrap();
        assert_eq!(port.of(EventKind::PortActive).0, 2);
        let (count, last) = port.of(EventKind::PortError);
        assert_eq!((count, last.unwrap().moment), (1, at(500).moment));
    }

    #[test]
    fn what_is_heard_and_seen_is_one_loss() {
        let mut tally = Tally::default();
        see(&mut tally, 0, state::ACTIVE);
        see(&mut tally, 100, state::DOWN);
        hear(&mut tally, 101, EventKind::PortError);
        assert_eq!(losses(&tally), 1, "seen first");
        hear(&mut tally, 200, EventKind::PortActive);
        hear(&mut tally, 300, EventKind::PortError);
        see(&mut tally, 301, state::DOWN);
        assert_eq!(losses(&tally), 2, "heard first");
    }

    #[test]
    fn what_was_seen_before_an_event_says_nothing_after_it() {
        let mut tally = Tally::default();
        see(&mut tally, 0, state::ACTIVE);
        hear(&mut tally, 100, EventKind::PortError);
        hear(&mut tally, 200, EventKind::PortActive);
        see(&mut tally, 150, state::DOWN);
        see(&mut tally, 300, state::ACTIVE);
        assert_eq!(losses(&tally), 1);
    }

    #[test]
    fn an_event_that_comes_in_after_a_newer_look_counts() {
        let mut tally = Tally::default();
        see(&mut tally, 0, state::ACTIVE);
        see(&mut tally, 200, state::ACTIVE);
        hear(&mut tally, 50, EventKind::PortError);
        hear(&mut tally, 150, EventKind::PortActive);
        see(&mut tally, 300, state::ACTIVE);
        assert_eq!(losses(&tally), 1);
        see(&mut tally, 500, state::DOWN);
        hear(&mut tally, 490, EventKind::PortError);
        assert_eq!(losses(&tally), 2);
    }

    #[test]
    fn losses_are_seen_where_nothing_is_heard_and_the_other_way_round() {
        let mut tally = Tally::default();
        for (millis, state) in [(0, 4), (1, 5), (2, 1), (3, 1), (4, 2), (5, 4), (6, 2)] {
            see(&mut tally, millis, state);
        }
        assert_eq!(losses(&tally), 2);
        let mut tally = Tally::default();
        hear(&mut tally, 1, EventKind::PortError);
        assert_eq!(losses(&tally), 1, "of a port that was never looked at");
    }

    #[test]
    fn a_device_that_goes_loses_its_link_once_heard_or_not() {
        // The events that are heard on the way, and what its port is like when it is back.
        let events: [&[(u64, EventKind)]; 4] = [
            &[],
            &[(150, EventKind::DeviceFatal)],
            &[(150, EventKind::PortError), (160, EventKind::DeviceFatal)],
            // Heard late, after the look that missed it.
            &[(250, EventKind::DeviceFatal)],
        ];
        for heard in events {
            let mut tally = Tally::default();
            see(&mut tally, 100, state::ACTIVE);
            for (millis, kind) in heard {
                hear(&mut tally, *millis, *kind);
            }
            see_nothing(&mut tally, 200);
            see_nothing(&mut tally, 300);
            assert_eq!(losses(&tally), 1, "{heard:?}");
            see_as(&mut tally, 400, "rxe0", 2, state::ACTIVE);
            see_as(&mut tally, 500, "rxe0", 2, state::ACTIVE);
            assert_eq!(losses(&tally), 1, "back: {heard:?}");
            see_nothing(&mut tally, 600);
            assert_eq!(losses(&tally), 2, "gone again: {heard:?}");
        }
    }

    #[test]
    fn a_device_that_went_and_came_back_between_two_looks_lost_its_link_once() {
        for (heard, state, lost) in [
            (&[][..], state::ACTIVE, 1),
            (&[], state::DOWN, 1),
            (&[(150, EventKind::DeviceFatal), (160, EventKind::PortActive)], state::ACTIVE, 1),
            (&[(150, EventKind::DeviceFatal)], state::ACTIVE, 1),
        ] {
            let mut tally = Tally::default();
            see(&mut tally, 100, state::ACTIVE);
            for (millis, kind) in heard {
                hear(&mut tally, *millis, *kind);
            }
            see_as(&mut tally, 200, "rxe0", 2, state);
            see_as(&mut tally, 300, "rxe0", 2, state);
            assert_eq!(losses(&tally), lost, "{heard:?} {state}");
        }
        let mut tally = Tally::default();
        see(&mut tally, 100, state::DOWN);
        see_as(&mut tally, 200, "rxe0", 2, state::ACTIVE);
        see_nothing(&mut tally, 300);
        see_as(&mut tally, 400, "rxe0", 3, state::ACTIVE);
        assert_eq!(losses(&tally), 1, "of a port without a link nothing is lost");
    }

    #[test]
    fn a_device_that_gets_another_name_has_lost_nothing() {
        let mut tally = Tally::default();
        see(&mut tally, 100, state::ACTIVE);
        see_as(&mut tally, 200, "rocep1s0", 1, state::ACTIVE);
        see_as(&mut tally, 300, "rxe0", 2, state::ACTIVE);
        assert_eq!(losses(&tally), 1, "the other one went, and its old name is another's");
        let mut look = snapshot("a", vec![port(1)]);
        let mut other = look.devices[0].clone();
        other.name = "b".into();
        look.devices.push(other);
        let mut tally = Tally::default();
        for instances in [[1, 2], [2, 1]] {
            for (device, instance) in look.devices.iter_mut().zip(instances) {
                device.instance = Some(instance);
            }
            tally.see(&look);
        }
        assert_eq!(losses(&tally), 0, "they swapped their names");
    }

    #[test]
    fn what_cannot_be_listed_is_not_gone() {
        let mut tally = Tally::default();
        see(&mut tally, 100, state::ACTIVE);
        let mut look = snapshot("", Vec::new());
        look.devices.clear();
        look.problem = Some("Permission denied".to_owned());
        tally.see(&look);
        assert_eq!(losses(&tally), 0);
    }

    #[test]
    fn names_that_do_not_come_back_are_not_remembered_for_ever() {
        let mut tally = Tally::default();
        see(&mut tally, 0, state::ACTIVE);
        hear(&mut tally, 1, EventKind::PortError);
        for device in 0..2 * MOST_PLACES {
            tally.see(&snapshot(&format!("vf{device}"), vec![port(1)]));
            see(&mut tally, 2, state::DOWN);
        }
        assert!(tally.places.len() <= MOST_PLACES + 4, "{}", tally.places.len());
        assert_eq!(losses(&tally), 1, "what is there keeps its count");
    }

    #[test]
    fn a_device_that_dies_takes_its_ports_along_once() {
        let mut tally = Tally::default();
        see(&mut tally, 0, state::ACTIVE);
        hear(&mut tally, 1, EventKind::PortError);
        hear(&mut tally, 2, EventKind::DeviceFatal);
        assert_eq!(losses(&tally), 1);
        see(&mut tally, 3, state::ACTIVE);
        hear(&mut tally, 4, EventKind::DeviceFatal);
        assert_eq!(losses(&tally), 2);
        assert_eq!(tally.places().next().unwrap().1.of(EventKind::DeviceFatal).0, 2);
    }
}
