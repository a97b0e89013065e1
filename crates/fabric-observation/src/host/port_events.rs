//! The events and losses of a host's ports, counted from events and from readings.
//!
//! An event has its own time, and is not missed between two readings; but not every driver reports events, and
//! not every kernel delivers them. So both sources are used, and the same loss is counted once.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_mad::moment::Anchor;
use ib_mad::port_event::{PortEvent, PortEventKind};
use ib_mad::port_state::state;
use ib_mad::{Guid, Moment, PortNumber};
use rdma_host::model::{Device, HostSnapshot};

/// How many are kept while not all are present: those of containers may get new names each time, for years.
const MAX_PORTS: usize = 1024;

/// A port: its device's name and its number; `None` for the whole device.
pub type PortKey = (Arc<str>, Option<PortNumber>);

/// The counts of all ports that were ever seen. They survive a reset of the device.
#[derive(Clone, Debug, Default)]
pub struct HostPortEvents {
    /// All ports, and devices without a port.
    pub ports: BTreeMap<PortKey, PortEventCounts>,
}

/// The events and losses of a port.
#[derive(Clone, Debug, Default)]
pub struct PortEventCounts {
    /// The node GUID that its device had when it was last seen, if it could be read.
    pub guid: Option<Guid>,
    /// How often it stopped being Active.
    pub losses: u64,
    /// When it last stopped being Active, by its event or a reading; the start of the clock if it never did.
    pub lost: Moment,
    /// Whether it was Active when its state was last known.
    pub is_active: Option<bool>,
    /// When that was.
    as_of: Moment,
    /// Its device as it was last seen: [`Device::instance`].
    instance: Option<u64>,
    seen: Moment,
    /// How often each event was reported, and when last.
    events: BTreeMap<PortEventKind, (u64, Anchor)>,
}

impl PortEventCounts {
    /// How often the port reported an event, and when last.
    pub fn get(&self, kind: PortEventKind) -> (u64, Option<Anchor>) {
        self.events.get(&kind).map_or((0, None), |&(count, last)| (count, Some(last)))
    }

    /// Sets whether it was Active at a moment; states older than the known one are ignored.
    fn set_active(&mut self, is: bool, at: Moment) {
        if at < self.as_of {
            return;
        }
        if !is && self.is_active == Some(true) {
            self.add_loss(at);
        }
        (self.is_active, self.as_of) = (Some(is), at);
    }

    fn add_loss(&mut self, at: Moment) {
        self.losses += 1;
        self.lost = at;
    }

    /// Sets the instance of its device at a moment. Another one than before means that the device went and came
    /// back between two readings, and the link was lost with it: once, so not if an event reported it.
    fn set_instance(&mut self, instance: Option<u64>, at: Moment) {
        let is_another = self.instance.zip(instance).is_some_and(|(before, now)| before != now);
        if is_another && self.is_active == Some(true) && self.lost <= self.seen {
            self.add_loss(at);
            if self.as_of <= at {
                self.is_active = Some(false);
            }
        }
        (self.instance, self.seen) = (instance.or(self.instance), at);
    }
}

impl HostPortEvents {
    /// Counts an event.
    pub fn add_event(&mut self, event: &PortEvent) {
        let at = event.at.moment;
        let counts = self.ports.entry((Arc::clone(&event.device), event.port)).or_default();
        let (count, last) = counts.events.entry(event.kind).or_insert((0, event.at));
        (*count, *last) = (*count + 1, event.at);
        match event.kind {
            PortEventKind::PortError => {
                // A port that was never seen and reports a loss was Active.
                let was_active = *counts.is_active.get_or_insert(true);
                if at >= counts.as_of {
                    counts.set_active(false, at);
                } else if was_active && at > counts.lost {
                    // A reading after the event found it Active again.
                    counts.add_loss(at);
                }
            }
            PortEventKind::PortActive => counts.set_active(true, at),
            // Its ports go with it without an event.
            PortEventKind::DeviceFatal => {
                for ((name, port), counts) in &mut self.ports {
                    if *name == event.device && port.is_some() {
                        counts.set_active(false, at);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a reading. A device that hangs changes nothing; ports of one that is gone have lost their links.
    pub fn add_snapshot(&mut self, snapshot: &HostSnapshot) {
        if self.ports.len() > MAX_PORTS {
            let here = |name: &str| snapshot.devices.iter().any(|device| *device.name == *name);
            self.ports.retain(|(name, _), _| here(name));
        }
        if snapshot.problem.is_none() {
            self.add_missing(snapshot);
        }
        for device in &snapshot.devices {
            self.counts_of(device, None);
            for port in &device.ports {
                let counts = self.counts_of(device, Some(port.number));
                counts.set_instance(device.instance, port.at);
                // ACTIVE_DEFER waits after a link error, and carries traffic again.
                if let Some(known) = port.state {
                    let is_active = known == state::ACTIVE || known == state::ACTIVE_DEFER;
                    counts.set_active(is_active, port.at);
                }
            }
        }
    }

    /// Updates the ports of devices that are gone: not every driver sends an event of that.
    fn add_missing(&mut self, snapshot: &HostSnapshot) {
        for ((name, port), counts) in &mut self.ports {
            let Some(instance) = counts.instance.filter(|_| port.is_some()) else { continue };
            let found = snapshot.devices.iter().find(|device| device.instance == Some(instance));
            match found {
                Some(device) if device.name == *name => {}
                // It is tracked by its other name now.
                Some(_) => {
                    (counts.instance, counts.is_active) = (None, None);
                    counts.as_of = Moment::default();
                }
                // Another device, or one that cannot be opened, has its name.
                None if snapshot.devices.iter().any(|device| device.name == *name) => {}
                None => counts.set_active(false, snapshot.ended),
            }
        }
    }

    fn counts_of(&mut self, device: &Device, port: Option<PortNumber>) -> &mut PortEventCounts {
        let counts = self.ports.entry((Arc::clone(&device.name), port)).or_default();
        counts.guid = device.info.guid;
        counts
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

    fn event(counts: &mut HostPortEvents, millis: u64, kind: PortEventKind) {
        let port = (kind != PortEventKind::DeviceFatal).then_some(1);
        let (at, device) = (at(millis), "rxe0".into());
        counts.add_event(&PortEvent { at, device, guid: None, port, kind });
    }

    fn read(counts: &mut HostPortEvents, millis: u64, state: u8) {
        read_as(counts, millis, "rxe0", 1, state);
    }

    /// Reads the device with a name and an instance number.
    fn read_as(counts: &mut HostPortEvents, millis: u64, name: &str, instance: u64, state: u8) {
        let mut port = port(1);
        (port.at, port.state) = (at(millis).moment, Some(state));
        let mut look = snapshot(name, vec![port]);
        look.ended = at(millis).moment;
        look.devices[0].instance = Some(instance);
        counts.add_snapshot(&look);
    }

    /// Reads a host without the device.
    fn read_nothing(counts: &mut HostPortEvents, millis: u64) {
        let mut look = snapshot("", Vec::new());
        look.devices.clear();
        look.ended = at(millis).moment;
        counts.add_snapshot(&look);
    }

    fn losses(counts: &HostPortEvents) -> u64 {
        counts.ports.values().map(|port| port.losses).sum()
    }

    #[test]
    fn flap_between_readings_counts_once() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 0, state::ACTIVE);
        event(&mut counts, 500, PortEventKind::PortError);
        // Soft RoCE says twice that it is back.
        event(&mut counts, 600, PortEventKind::PortActive);
        event(&mut counts, 600, PortEventKind::PortActive);
        read(&mut counts, 1000, state::ACTIVE);
        assert_eq!(losses(&counts), 1);
        let port = counts.ports.values().next_back().unwrap();
        assert_eq!(port.get(PortEventKind::PortActive).0, 2);
        let (count, last) = port.get(PortEventKind::PortError);
        assert_eq!((count, last.unwrap().moment), (1, at(500).moment));
    }

    #[test]
    fn event_and_reading_of_one_loss_count_once() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 0, state::ACTIVE);
        read(&mut counts, 100, state::DOWN);
        event(&mut counts, 101, PortEventKind::PortError);
        assert_eq!(losses(&counts), 1, "seen first");
        event(&mut counts, 200, PortEventKind::PortActive);
        event(&mut counts, 300, PortEventKind::PortError);
        read(&mut counts, 301, state::DOWN);
        assert_eq!(losses(&counts), 2, "events first");
    }

    #[test]
    fn reading_older_than_an_event_is_ignored() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 0, state::ACTIVE);
        event(&mut counts, 100, PortEventKind::PortError);
        event(&mut counts, 200, PortEventKind::PortActive);
        read(&mut counts, 150, state::DOWN);
        read(&mut counts, 300, state::ACTIVE);
        assert_eq!(losses(&counts), 1);
    }

    #[test]
    fn late_event_still_counts() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 0, state::ACTIVE);
        read(&mut counts, 200, state::ACTIVE);
        event(&mut counts, 50, PortEventKind::PortError);
        event(&mut counts, 150, PortEventKind::PortActive);
        read(&mut counts, 300, state::ACTIVE);
        assert_eq!(losses(&counts), 1);
        read(&mut counts, 500, state::DOWN);
        event(&mut counts, 490, PortEventKind::PortError);
        assert_eq!(losses(&counts), 2);
    }

    #[test]
    fn losses_count_from_readings_or_events_alone() {
        let mut counts = HostPortEvents::default();
        for (millis, state) in [(0, 4), (1, 5), (2, 1), (3, 1), (4, 2), (5, 4), (6, 2)] {
            read(&mut counts, millis, state);
        }
        assert_eq!(losses(&counts), 2);
        let mut counts = HostPortEvents::default();
        event(&mut counts, 1, PortEventKind::PortError);
        assert_eq!(losses(&counts), 1, "of a port that was never looked at");
    }

    #[test]
    fn removed_device_loses_its_link_once() {
        // The events of the outage, and the port's state when it is back.
        let events: [&[(u64, PortEventKind)]; 4] = [
            &[],
            &[(150, PortEventKind::DeviceFatal)],
            &[(150, PortEventKind::PortError), (160, PortEventKind::DeviceFatal)],
            // Received late, after the read that missed it.
            &[(250, PortEventKind::DeviceFatal)],
        ];
        for events in events {
            let mut counts = HostPortEvents::default();
            read(&mut counts, 100, state::ACTIVE);
            for (millis, kind) in events {
                event(&mut counts, *millis, *kind);
            }
            read_nothing(&mut counts, 200);
            read_nothing(&mut counts, 300);
            assert_eq!(losses(&counts), 1, "{events:?}");
            read_as(&mut counts, 400, "rxe0", 2, state::ACTIVE);
            read_as(&mut counts, 500, "rxe0", 2, state::ACTIVE);
            assert_eq!(losses(&counts), 1, "back: {events:?}");
            read_nothing(&mut counts, 600);
            assert_eq!(losses(&counts), 2, "gone again: {events:?}");
        }
    }

    #[test]
    fn device_replaced_between_readings_loses_link_once() {
        for (events, state, lost) in [
            (&[][..], state::ACTIVE, 1),
            (&[], state::DOWN, 1),
            (
                &[(150, PortEventKind::DeviceFatal), (160, PortEventKind::PortActive)],
                state::ACTIVE,
                1,
            ),
            (&[(150, PortEventKind::DeviceFatal)], state::ACTIVE, 1),
        ] {
            let mut counts = HostPortEvents::default();
            read(&mut counts, 100, state::ACTIVE);
            for (millis, kind) in events {
                event(&mut counts, *millis, *kind);
            }
            read_as(&mut counts, 200, "rxe0", 2, state);
            read_as(&mut counts, 300, "rxe0", 2, state);
            assert_eq!(losses(&counts), lost, "{events:?} {state}");
        }
        let mut counts = HostPortEvents::default();
        read(&mut counts, 100, state::DOWN);
        read_as(&mut counts, 200, "rxe0", 2, state::ACTIVE);
        read_nothing(&mut counts, 300);
        read_as(&mut counts, 400, "rxe0", 3, state::ACTIVE);
        assert_eq!(losses(&counts), 1, "of a port without a link nothing is lost");
    }

    #[test]
    fn renamed_device_loses_nothing() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 100, state::ACTIVE);
        read_as(&mut counts, 200, "rocep1s0", 1, state::ACTIVE);
        read_as(&mut counts, 300, "rxe0", 2, state::ACTIVE);
        assert_eq!(losses(&counts), 1, "the other one went, and its old name is another's");
        let mut look = snapshot("a", vec![port(1)]);
        let mut other = look.devices[0].clone();
        other.name = "b".into();
        look.devices.push(other);
        let mut counts = HostPortEvents::default();
        for instances in [[1, 2], [2, 1]] {
            for (device, instance) in look.devices.iter_mut().zip(instances) {
                device.instance = Some(instance);
            }
            counts.add_snapshot(&look);
        }
        assert_eq!(losses(&counts), 0, "they swapped their names");
    }

    #[test]
    fn unlisted_devices_lose_nothing() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 100, state::ACTIVE);
        let mut look = snapshot("", Vec::new());
        look.devices.clear();
        look.problem = Some("Permission denied".to_owned());
        counts.add_snapshot(&look);
        assert_eq!(losses(&counts), 0);
    }

    #[test]
    fn number_of_ports_is_bounded() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 0, state::ACTIVE);
        event(&mut counts, 1, PortEventKind::PortError);
        for device in 0..2 * MAX_PORTS {
            counts.add_snapshot(&snapshot(&format!("vf{device}"), vec![port(1)]));
            read(&mut counts, 2, state::DOWN);
        }
        assert!(counts.ports.len() <= MAX_PORTS + 4, "{}", counts.ports.len());
        assert_eq!(losses(&counts), 1, "what is there keeps its count");
    }

    #[test]
    fn device_fatal_takes_its_ports_down_once() {
        let mut counts = HostPortEvents::default();
        read(&mut counts, 0, state::ACTIVE);
        event(&mut counts, 1, PortEventKind::PortError);
        event(&mut counts, 2, PortEventKind::DeviceFatal);
        assert_eq!(losses(&counts), 1);
        read(&mut counts, 3, state::ACTIVE);
        event(&mut counts, 4, PortEventKind::DeviceFatal);
        assert_eq!(losses(&counts), 2);
        assert_eq!(counts.ports.values().next().unwrap().get(PortEventKind::DeviceFatal).0, 2);
    }
}
