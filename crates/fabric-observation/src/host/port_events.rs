//! The events and losses of a host's ports, counted from events, from readings of the state, and from LinkDowned.
//!
//! An event has its own time, and is not missed between two readings; but not every driver reports events, and
//! not every kernel delivers them. LinkDowned counts a link that was lost for milliseconds, but not every driver has
//! it. So all three are used, and the same loss is counted once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::moment::Anchor;
use ib_mad::port_event::{PortEvent, PortEventKind};
use ib_mad::port_state::PortState;
use ib_mad::{Counter, Guid, Moment, PortNumber};
use rdma_host::model::{Device, HostSnapshot, Port, PortKind};

use super::{identity, missing};

/// How many are kept while not all are present: those of containers may get new GUIDs each time, for years.
const MAX_PORTS: usize = 1024;

/// How long the ports of a virtual function are kept once it is gone: each pod or guest may have another one. Longer
/// than a reload of the driver takes.
const VIRTUAL_KEPT: Duration = Duration::from_secs(600);

/// How long a loss waits for a reading that tells whether an administrator set the interface down. An event starts one
/// at once; only a device that hangs needs longer.
const CLASSIFIED_WITHIN: Duration = Duration::from_secs(10);

/// A port of this host, or a whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    /// The id of its device, by [`DeviceIds`](super::DeviceIds).
    pub device: Guid,
    /// Its number; `None` for the whole device.
    pub port: Option<PortNumber>,
}

/// The counts of all ports that were ever seen. They survive a reset of the device.
#[derive(Clone, Debug, Default)]
pub struct HostPortEvents {
    /// All ports, and devices without a port.
    pub ports: BTreeMap<EventKey, PortEventCounts>,
    /// The ids of the devices that the latest reading found, by name: events have the name.
    ids: BTreeMap<Arc<str>, Guid>,
}

/// The events and losses of a port.
#[derive(Clone, Debug, Default)]
pub struct PortEventCounts {
    /// The name that its device had when it was last seen.
    pub device: Arc<str>,
    /// The node GUID of its device, if it could be read.
    pub guid: Option<Guid>,
    kind: PortKind,
    /// How often it stopped being Active, except because an administrator set its interface down.
    pub losses: u64,
    /// How often it stopped being Active because an administrator set its interface down (`ip link set down`); `None`
    /// for a port without an Ethernet interface.
    pub administrative_downs: Option<u64>,
    /// How often it stopped being Active without a reading since then: each will be one of the two above.
    unclassified: u64,
    /// When it last stopped being Active, by its event or a reading; the start of the clock if it never did.
    pub lost: Moment,
    /// Whether it was Active when its state was last known.
    pub is_active: Option<bool>,
    /// When that was.
    as_of: Moment,
    /// Its device as it was last seen: [`Device::instance`].
    instance: Option<u64>,
    seen: Moment,
    last_reading: LastReading,
    /// How often each event was reported, and when last.
    events: BTreeMap<PortEventKind, (u64, Anchor)>,
}

/// A port at its latest reading.
#[derive(Clone, Copy, Debug, Default)]
struct LastReading {
    is_active: bool,
    link_downed: Option<u64>,
    /// Losses that LinkDowned alone had counted. The link may have been lost after its state was read and before its
    /// counters were: then its event, or the next reading of its state, shows the same loss again.
    by_counter: u64,
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
        self.unclassified += 1;
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

    /// Adds a reading of the port.
    fn add_port(&mut self, device: &Device, port: &Port) {
        self.kind = port.kind;
        self.set_instance(device.instance, port.at);
        // ACTIVE_DEFER waits after a link error, and carries traffic again.
        if let Some(state) = port.state {
            self.set_active(state.is_active(), port.at);
        }
        let now_active = port.state.is_some_and(PortState::is_active);
        // A reading may begin before the link is lost and end after its event: the kernel waits for the lock that `ip
        // link set down` holds, with the state from before. Such a reading says nothing of this loss.
        let is_older_than_loss = self.lost > port.at;
        self.compare_with_counter(port, now_active);
        self.last_reading.is_active = now_active;
        let Some(is_admin_down) = port.is_admin_down() else { return self.count_unclassified() };
        let downs = self.administrative_downs.get_or_insert(0);
        if is_older_than_loss {
            return;
        }
        if is_admin_down && !now_active && self.unclassified > 0 {
            self.unclassified -= 1;
            *downs += 1;
        }
        self.count_unclassified();
    }

    /// Counts what no reading has shown to be an administrator's as losses.
    fn count_unclassified(&mut self) {
        self.losses += std::mem::take(&mut self.unclassified);
    }

    /// Adds the losses that only LinkDowned has counted, of a link that was Active at two readings. While a link is
    /// down its failed trainings may count, too. A value that decreased was cleared.
    fn compare_with_counter(&mut self, port: &Port, is_active: bool) {
        let LastReading { is_active: was_active, link_downed: before, by_counter } =
            self.last_reading;
        let now = port.reading.get(Counter::LinkDowned);
        let fresh = self.unclassified;
        let growth = before.zip(now).map(|(before, now)| now.saturating_sub(before));
        self.last_reading.by_counter = 0;
        if let Some(growth) = growth {
            if growth > fresh && was_active && is_active {
                self.last_reading.by_counter = growth - fresh;
                self.unclassified = growth;
                self.lost = port.reading.at;
            } else if fresh > growth {
                self.unclassified -= by_counter.min(fresh - growth);
            }
        }
        self.last_reading.link_downed = now.or(before);
    }
}

impl HostPortEvents {
    /// Counts an event.
    pub fn add_event(&mut self, event: &PortEvent) {
        let at = event.at.moment;
        let id = self.ids.get(&event.device).copied();
        // Of a device that no reading has found yet.
        let device = id.unwrap_or_else(|| identity::of_name(&event.device));
        let counts = self.ports.entry(EventKey { device, port: event.port }).or_default();
        counts.device = Arc::clone(&event.device);
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
                for (key, counts) in &mut self.ports {
                    if key.device == device && key.port.is_some() {
                        counts.set_active(false, at);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a reading with the [ids](super::DeviceIds) of its devices. A device that hangs changes nothing; ports of
    /// one that is gone have lost their links.
    pub fn add_snapshot(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) {
        self.set_ids(snapshot, ids);
        let devices = || ids.iter().zip(&snapshot.devices);
        if snapshot.problem.is_none() {
            self.add_missing(snapshot, ids);
        }
        for (&id, device) in devices() {
            let of_device = self.counts_of(EventKey { device: id, port: None }, device);
            (of_device.kind, of_device.seen) = (device.kind, snapshot.ended);
            for port in &device.ports {
                let key = EventKey { device: id, port: Some(port.number) };
                self.counts_of(key, device).add_port(device, port);
            }
        }
        for counts in self.ports.values_mut().filter(|counts| counts.unclassified > 0) {
            let is_ethernet = counts.administrative_downs.is_some();
            if !is_ethernet || snapshot.ended.since(counts.lost) > CLASSIFIED_WITHIN {
                counts.count_unclassified();
            }
        }
    }

    /// Sets the ids of the devices, and removes ports that are gone for good.
    fn set_ids(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) {
        for (&id, device) in ids.iter().zip(&snapshot.devices) {
            let of_name = identity::of_name(&device.name);
            if self.ids.insert(Arc::clone(&device.name), id).is_none() && of_name != id {
                let events: Vec<EventKey> =
                    self.ports.keys().filter(|key| key.device == of_name).copied().collect();
                for key in events {
                    let counts = self.ports.remove(&key).unwrap_or_default();
                    self.ports.entry(EventKey { device: id, ..key }).or_insert(counts);
                }
            }
        }
        self.ids.retain(|_, id| ids.contains(id));
        let is_full = self.ports.len() > MAX_PORTS;
        self.ports.retain(|key, counts| {
            let is_old = || {
                missing::comes_and_goes(counts.kind)
                    && snapshot.ended.since(counts.seen) > VIRTUAL_KEPT
            };
            ids.contains(&key.device) || !is_full && !is_old()
        });
    }

    /// Updates the ports that are gone, with their devices or alone: not every driver sends an event of that.
    fn add_missing(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) {
        for (key, counts) in &mut self.ports {
            let Some(number) = key.port.filter(|_| counts.instance.is_some()) else { continue };
            let place = ids.iter().position(|id| *id == key.device);
            let is_gone = match place.and_then(|place| snapshot.devices.get(place)) {
                None => true,
                Some(device) => {
                    device.is_readable && !device.ports.iter().any(|port| port.number == number)
                }
            };
            if is_gone {
                counts.set_active(false, snapshot.ended);
                counts.count_unclassified();
            }
        }
    }

    fn counts_of(&mut self, key: EventKey, device: &Device) -> &mut PortEventCounts {
        let counts = self.ports.entry(key).or_default();
        (counts.device, counts.guid) = (Arc::clone(&device.name), device.info.guid);
        counts
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::host::DeviceIds;
    use rdma_host::model::Netdev;
    use rdma_host::testing::{port, snapshot};

    /// Counts with the ids of the devices.
    #[derive(Default)]
    struct Host {
        counts: HostPortEvents,
        ids: DeviceIds,
    }

    impl Host {
        fn add_snapshot(&mut self, snapshot: &HostSnapshot) {
            self.counts.add_snapshot(snapshot, &self.ids.assign(snapshot));
        }

        fn port(&self) -> &PortEventCounts {
            self.counts.ports.values().next_back().unwrap()
        }
    }

    fn at(millis: u64) -> Anchor {
        let moment = Moment::default() + Duration::from_millis(millis);
        Anchor { moment, wall: SystemTime::UNIX_EPOCH + Duration::from_millis(millis) }
    }

    fn event(host: &mut Host, millis: u64, kind: PortEventKind) {
        let port = (kind != PortEventKind::DeviceFatal).then_some(1);
        let (at, device) = (at(millis), "rxe0".into());
        host.counts.add_event(&PortEvent { at, device, guid: None, port, kind });
    }

    fn read(host: &mut Host, millis: u64, state: PortState) {
        read_as(host, millis, "rxe0", 1, state);
    }

    /// Reads the device with a name and an instance number.
    fn read_as(host: &mut Host, millis: u64, name: &str, instance: u64, state: PortState) {
        let mut port = port(1);
        (port.at, port.state) = (at(millis).moment, Some(state));
        let mut look = snapshot(name, vec![port]);
        look.ended = at(millis).moment;
        look.devices[0].instance = Some(instance);
        host.add_snapshot(&look);
    }

    /// Reads a host without the device.
    fn read_nothing(host: &mut Host, millis: u64) {
        let mut look = snapshot("", Vec::new());
        look.devices.clear();
        look.ended = at(millis).moment;
        host.add_snapshot(&look);
    }

    fn losses(host: &Host) -> u64 {
        host.counts.ports.values().map(|port| port.losses + port.unclassified).sum()
    }

    #[test]
    fn flap_between_readings_counts_once() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        event(&mut host, 500, PortEventKind::PortError);
        // Soft RoCE says twice that it is back.
        event(&mut host, 600, PortEventKind::PortActive);
        event(&mut host, 600, PortEventKind::PortActive);
        read(&mut host, 1000, PortState::Active);
        assert_eq!(losses(&host), 1);
        let port = host.port();
        assert_eq!(port.get(PortEventKind::PortActive).0, 2);
        let (count, last) = port.get(PortEventKind::PortError);
        assert_eq!((count, last.unwrap().moment), (1, at(500).moment));
    }

    #[test]
    fn event_and_reading_of_one_loss_count_once() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        read(&mut host, 100, PortState::Down);
        event(&mut host, 101, PortEventKind::PortError);
        assert_eq!(losses(&host), 1, "seen first");
        event(&mut host, 200, PortEventKind::PortActive);
        event(&mut host, 300, PortEventKind::PortError);
        read(&mut host, 301, PortState::Down);
        assert_eq!(losses(&host), 2, "events first");
    }

    #[test]
    fn reading_older_than_an_event_is_ignored() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        event(&mut host, 100, PortEventKind::PortError);
        event(&mut host, 200, PortEventKind::PortActive);
        read(&mut host, 150, PortState::Down);
        read(&mut host, 300, PortState::Active);
        assert_eq!(losses(&host), 1);
    }

    #[test]
    fn late_event_still_counts() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        read(&mut host, 200, PortState::Active);
        event(&mut host, 50, PortEventKind::PortError);
        event(&mut host, 150, PortEventKind::PortActive);
        read(&mut host, 300, PortState::Active);
        assert_eq!(losses(&host), 1);
        read(&mut host, 500, PortState::Down);
        event(&mut host, 490, PortEventKind::PortError);
        assert_eq!(losses(&host), 2);
    }

    #[test]
    fn losses_count_from_readings_or_events_alone() {
        let mut host = Host::default();
        for (millis, code) in [(0, 4), (1, 5), (2, 1), (3, 1), (4, 2), (5, 4), (6, 2)] {
            read(&mut host, millis, PortState::from_code(code));
        }
        assert_eq!(losses(&host), 2);
        let mut host = Host::default();
        event(&mut host, 1, PortEventKind::PortError);
        assert_eq!(losses(&host), 1, "of a port that was never looked at");
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
            let mut host = Host::default();
            read(&mut host, 100, PortState::Active);
            for (millis, kind) in events {
                event(&mut host, *millis, *kind);
            }
            read_nothing(&mut host, 200);
            read_nothing(&mut host, 300);
            assert_eq!(losses(&host), 1, "{events:?}");
            read_as(&mut host, 400, "rxe0", 2, PortState::Active);
            read_as(&mut host, 500, "rxe0", 2, PortState::Active);
            assert_eq!(losses(&host), 1, "back: {events:?}");
            read_nothing(&mut host, 600);
            assert_eq!(losses(&host), 2, "gone again: {events:?}");
        }
    }

    #[test]
    fn device_replaced_between_readings_loses_link_once() {
        for (events, state, lost) in [
            (&[][..], PortState::Active, 1),
            (&[], PortState::Down, 1),
            (
                &[(150, PortEventKind::DeviceFatal), (160, PortEventKind::PortActive)],
                PortState::Active,
                1,
            ),
            (&[(150, PortEventKind::DeviceFatal)], PortState::Active, 1),
        ] {
            let mut host = Host::default();
            read(&mut host, 100, PortState::Active);
            for (millis, kind) in events {
                event(&mut host, *millis, *kind);
            }
            read_as(&mut host, 200, "rxe0", 2, state);
            read_as(&mut host, 300, "rxe0", 2, state);
            assert_eq!(losses(&host), lost, "{events:?} {state:?}");
        }
        let mut host = Host::default();
        read(&mut host, 100, PortState::Down);
        read_as(&mut host, 200, "rxe0", 2, PortState::Active);
        read_nothing(&mut host, 300);
        read_as(&mut host, 400, "rxe0", 3, PortState::Active);
        assert_eq!(losses(&host), 1, "of a port without a link nothing is lost");
    }

    #[test]
    fn renamed_device_loses_nothing() {
        let mut host = Host::default();
        read(&mut host, 100, PortState::Active);
        read_as(&mut host, 200, "rocep1s0", 1, PortState::Active);
        read_as(&mut host, 300, "rxe0", 2, PortState::Active);
        assert_eq!(losses(&host), 1, "the other one went, and its old name is another's");
        let mut look = snapshot("a", vec![port(1)]);
        let mut other = look.devices[0].clone();
        other.name = "b".into();
        look.devices.push(other);
        let mut host = Host::default();
        for instances in [[1, 2], [2, 1]] {
            for (device, instance) in look.devices.iter_mut().zip(instances) {
                device.instance = Some(instance);
            }
            host.add_snapshot(&look);
        }
        assert_eq!(losses(&host), 0, "they swapped their names");
    }

    #[test]
    fn unlisted_devices_lose_nothing() {
        let mut host = Host::default();
        read(&mut host, 100, PortState::Active);
        let mut look = snapshot("", Vec::new());
        look.devices.clear();
        look.problem = Some("Permission denied".to_owned());
        host.add_snapshot(&look);
        assert_eq!(losses(&host), 0);
    }

    #[test]
    fn number_of_ports_is_bounded() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        event(&mut host, 1, PortEventKind::PortError);
        for device in 0..2 * MAX_PORTS {
            host.add_snapshot(&snapshot(&format!("vf{device}"), vec![port(1)]));
            read(&mut host, 2, PortState::Down);
        }
        assert!(host.counts.ports.len() <= MAX_PORTS + 4, "{}", host.counts.ports.len());
        assert_eq!(losses(&host), 1, "what is there keeps its count");
    }

    #[test]
    fn device_fatal_takes_its_ports_down_once() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        event(&mut host, 1, PortEventKind::PortError);
        event(&mut host, 2, PortEventKind::DeviceFatal);
        assert_eq!(losses(&host), 1);
        read(&mut host, 3, PortState::Active);
        event(&mut host, 4, PortEventKind::DeviceFatal);
        assert_eq!(losses(&host), 2);
        assert_eq!(host.counts.ports.values().next().unwrap().get(PortEventKind::DeviceFatal).0, 2);
    }

    /// Reads a port with its state and LinkDowned.
    fn count(host: &mut Host, millis: u64, state: PortState, link_downed: u64) {
        let mut port = port(1);
        (port.at, port.state) = (at(millis).moment, Some(state));
        port.reading.at = port.at;
        port.reading.set(Counter::LinkDowned, link_downed);
        let mut look = snapshot("rxe0", vec![port]);
        (look.ended, look.devices[0].instance) = (at(millis).moment, Some(1));
        host.add_snapshot(&look);
    }

    #[test]
    fn flap_that_only_link_downed_shows_counts() {
        let mut host = Host::default();
        // The value is from before the first reading; then a flap, a driver reload that clears it, and a flap.
        for (millis, value, lost) in
            [(0, 12, 0), (10, 12, 0), (20, 13, 1), (30, 13, 1), (40, 0, 1), (50, 1, 2)]
        {
            count(&mut host, millis, PortState::Active, value);
            assert_eq!(losses(&host), lost, "{millis} ms");
        }
        // A reading that failed is not a value of 0.
        read(&mut host, 60, PortState::Active);
        count(&mut host, 70, PortState::Active, 1);
        assert_eq!(losses(&host), 2);
        // Failed trainings count while the link is down.
        count(&mut host, 80, PortState::Down, 2);
        count(&mut host, 90, PortState::Down, 9);
        count(&mut host, 100, PortState::Active, 12);
        assert_eq!(losses(&host), 3);
    }

    #[test]
    fn flap_of_counter_and_event_counts_once() {
        let mut host = Host::default();
        count(&mut host, 0, PortState::Active, 5);
        event(&mut host, 10, PortEventKind::PortError);
        event(&mut host, 11, PortEventKind::PortActive);
        count(&mut host, 20, PortState::Active, 6);
        assert_eq!(losses(&host), 1, "the event first");
        count(&mut host, 30, PortState::Active, 7);
        event(&mut host, 29, PortEventKind::PortError);
        event(&mut host, 31, PortEventKind::PortActive);
        count(&mut host, 40, PortState::Active, 7);
        assert_eq!(losses(&host), 2, "the counter first");
        // Lost between the readings of state and counter.
        count(&mut host, 50, PortState::Active, 8);
        assert_eq!(losses(&host), 3);
        count(&mut host, 60, PortState::Down, 8);
        assert_eq!(losses(&host), 3, "the same loss");
        count(&mut host, 70, PortState::Active, 8);
        count(&mut host, 80, PortState::Active, 10);
        event(&mut host, 85, PortEventKind::PortError);
        count(&mut host, 90, PortState::Down, 11);
        assert_eq!(losses(&host), 6, "two, and another one");
    }

    #[test]
    fn interface_set_down_is_no_loss() {
        let read = |host: &mut Host, millis, state, up: [bool; 2]| {
            let mut port = port(1);
            (port.at, port.state) = (at(millis).moment, Some(state));
            let [bond, member] = up.map(Some);
            let bond = Netdev { name: "bond0".into(), is_admin_up: bond, ..Netdev::default() };
            let of_bond = Some("bond0".into());
            let member = Netdev { bond: of_bond, is_admin_up: member, ..Netdev::default() };
            port.netdevs = vec![bond, member];
            let mut look = snapshot("rxe0", vec![port]);
            (look.ended, look.devices[0].instance) = (at(millis).moment, Some(1));
            host.add_snapshot(&look);
            (host.port().losses, host.port().administrative_downs.unwrap())
        };
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active, [true, true]);
        event(&mut host, 5, PortEventKind::PortError);
        assert_eq!(read(&mut host, 10, PortState::Down, [false, true]), (0, 1));
        assert_eq!(read(&mut host, 20, PortState::Down, [false, true]), (0, 1));
        assert_eq!(read(&mut host, 30, PortState::Active, [true, true]), (0, 1));
        assert_eq!(
            read(&mut host, 40, PortState::Down, [true, false]),
            (1, 1),
            "the cable of another member"
        );
        assert_eq!(read(&mut host, 50, PortState::Active, [true, true]), (1, 1));
        assert_eq!(read(&mut host, 60, PortState::Down, [true, true]), (2, 1));
        assert_eq!(
            read(&mut host, 70, PortState::Down, [false, true]),
            (2, 1),
            "set down afterwards"
        );
        read(&mut host, 80, PortState::Active, [true, true]);
        event(&mut host, 95, PortEventKind::PortError);
        let older = read(&mut host, 90, PortState::Active, [false, true]);
        assert_eq!(older, (2, 1), "begun before, and ended after the interface was set down");
        assert_eq!(read(&mut host, 100, PortState::Down, [false, true]), (2, 2));
        read(&mut host, 110, PortState::Active, [true, true]);
        event(&mut host, 125, PortEventKind::PortError);
        let mut hanging = snapshot("rxe0", Vec::new());
        hanging.devices[0].instance = Some(1);
        hanging.devices[0].is_readable = false;
        for (millis, losses) in [(130, 2), (20_000, 3)] {
            hanging.ended = at(millis).moment;
            host.add_snapshot(&hanging);
            assert_eq!(host.port().losses, losses, "no reading for {millis} ms");
        }
    }

    /// The card is swapped; a virtual function gets a GUID for each pod.
    #[test]
    fn losses_belong_to_the_device_and_not_to_its_name() {
        let read = |host: &mut Host, millis, guid, kind, state| {
            let mut port = port(1);
            (port.at, port.state, port.kind) = (at(millis).moment, Some(state), kind);
            let mut look = snapshot("rxe0", vec![port]);
            look.ended = at(millis).moment;
            (look.devices[0].instance, look.devices[0].kind) = (Some(guid), kind);
            Arc::make_mut(&mut look.devices[0].info).guid = Some(Guid(guid));
            host.add_snapshot(&look);
            let of_device = host.counts.ports.iter().filter(|(key, _)| key.device == Guid(guid));
            of_device.map(|(_, counts)| counts.losses).sum::<u64>()
        };
        let (card, vf) = (PortKind::Physical, PortKind::VirtualFunction);
        let mut host = Host::default();
        read(&mut host, 0, 1, card, PortState::Active);
        assert_eq!(read(&mut host, 10, 1, card, PortState::Down), 1);
        read(&mut host, 20, 2, card, PortState::Active);
        assert_eq!(read(&mut host, 30, 2, card, PortState::Active), 0);
        for pod in 3..9 {
            assert_eq!(read(&mut host, pod * 1_000_000, pod, vf, PortState::Active), 0);
        }
        let kept: Vec<_> = host.counts.ports.keys().filter(|key| key.port.is_some()).collect();
        assert_eq!(kept.len(), 3, "both cards, and the latest pod: {kept:?}");
    }

    #[test]
    fn port_that_disappears_has_lost_its_link() {
        let mut host = Host::default();
        read(&mut host, 0, PortState::Active);
        let mut look = snapshot("rxe0", Vec::new());
        (look.ended, look.devices[0].instance) = (at(10).moment, Some(1));
        look.devices[0].is_readable = false;
        host.add_snapshot(&look);
        assert_eq!(losses(&host), 0, "its device hangs");
        look.devices[0].is_readable = true;
        host.add_snapshot(&look);
        assert_eq!(losses(&host), 1);
    }
}
