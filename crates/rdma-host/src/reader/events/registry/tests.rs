//! The registry over a tree of files, with devices that a test opens and closes.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::SystemTime;

use super::*;

/// How opening devices ends, which are open, and the events that they return.
#[derive(Default)]
struct Devices {
    refuse: bool,
    tried: usize,
    open: BTreeMap<String, usize>,
    events: VecDeque<io::Result<RawEvent>>,
}

struct OpenFake(String, File, Rc<RefCell<Devices>>);

fn open(devices: &Rc<RefCell<Devices>>, node: &str) -> io::Result<Option<Box<dyn EventSource>>> {
    let mut known = devices.borrow_mut();
    known.tried += 1;
    if known.refuse {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    *known.open.entry(node.to_owned()).or_default() += 1;
    let file = File::open("/dev/null")?;
    Ok(Some(Box::new(OpenFake(node.to_owned(), file, Rc::clone(devices)))))
}

impl EventSource for OpenFake {
    fn fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }

    fn next_event(&mut self) -> io::Result<RawEvent> {
        let event = self.2.borrow_mut().events.pop_front();
        event.unwrap_or(Err(io::ErrorKind::WouldBlock.into()))
    }
}

impl Drop for OpenFake {
    fn drop(&mut self) {
        self.2.borrow_mut().open.remove(&self.0);
    }
}

struct Host {
    tree: tempfile::TempDir,
    devices: Rc<RefCell<Devices>>,
}

impl Host {
    fn with(nodes: &[(&str, &str)]) -> Host {
        let host = Host { tree: tempfile::tempdir().unwrap(), devices: Rc::default() };
        for (node, device) in nodes {
            host.set(node, device);
        }
        host
    }

    fn set(&self, node: &str, device: &str) {
        let node = self.node(node);
        std::fs::create_dir_all(&node).unwrap();
        std::fs::write(node.join("ibdev"), format!("{device}\n")).unwrap();
    }

    fn node(&self, node: &str) -> PathBuf {
        self.tree.path().join("class/infiniband_verbs").join(node)
    }

    fn registry(&self) -> DeviceRegistry {
        let (wanted, devices) = (|device: &str| device != "excluded", Rc::clone(&self.devices));
        let opened = move |node: &str| open(&devices, node);
        DeviceRegistry::new(self.tree.path(), Box::new(wanted), Box::new(opened))
    }

    fn open(&self) -> Vec<String> {
        self.devices.borrow().open.keys().cloned().collect()
    }
}

#[test]
fn wanted_devices_stay_open_until_removed() {
    let host = Host::with(&[("uverbs0", "rxe0"), ("uverbs1", "excluded"), ("uverbs2", "rxe2")]);
    let (mut registry, now) = (host.registry(), Moment(0));
    assert!(registry.rescan(now));
    registry.open_one(now);
    registry.open_one(now);
    assert_eq!(
        (host.open(), registry.next_due()),
        (vec!["uverbs0".to_owned(), "uverbs2".to_owned()], None)
    );
    assert!(!registry.rescan(now), "nothing new");

    // The kernel removes the node from its class before it sends the uevent.
    std::fs::remove_dir_all(host.node("uverbs0")).unwrap();
    registry.close_soon("uverbs0", now);
    assert!(!registry.rescan(now), "known by its uevent");
    std::fs::remove_dir_all(host.node("uverbs2")).unwrap();
    assert!(registry.rescan(now), "without a uevent");
    assert_eq!(host.open(), ["uverbs0", "uverbs2"], "their last events may come");
    assert_eq!(registry.monitored().count(), 0);
    registry.close_due(registry.next_due().unwrap());
    assert!(host.open().is_empty());

    host.set("uverbs3", "rxe3");
    registry.rescan(now);
    registry.open_one(now);
    assert_eq!(host.open(), ["uverbs3"]);
    registry.remove_device("rxe3");
    assert!(host.open().is_empty());
}

#[test]
fn renamed_device_is_reopened() {
    let host = Host::with(&[("uverbs0", "rxe0")]);
    let mut registry = host.registry();
    registry.rescan(Moment(0));
    registry.open_one(Moment(0));
    host.set("uverbs0", "rail0");
    assert!(registry.rescan(Moment(1)));
    registry.open_one(Moment(1));
    assert_eq!(host.open(), ["uverbs0"]);
}

#[test]
fn failed_open_is_retried_for_a_minute_and_on_uevent() {
    let host = Host::with(&[("uverbs0", "rxe0")]);
    host.devices.borrow_mut().refuse = true;
    let (mut registry, mut now) = (host.registry(), Moment(0));
    registry.rescan(now);
    while let Some(due) = registry.next_due() {
        now = due;
        registry.open_one(now);
    }
    assert_eq!(host.devices.borrow().tried, MAX_TRIES as usize);
    assert!((45..60).contains(&now.since(Moment(0)).as_secs()), "{now:?}");

    host.devices.borrow_mut().refuse = false;
    registry.retry("uverbs0", now);
    registry.open_one(now);
    assert_eq!(host.open(), ["uverbs0"]);
}

#[test]
fn closed_device_is_reopened_a_limited_number_of_times() {
    let host = Host::with(&[("uverbs0", "rxe0")]);
    let (mut registry, mut now) = (host.registry(), Moment(0));
    registry.rescan(now);
    while let Some(due) = registry.next_due() {
        now = due;
        registry.open_one(now);
        let mut devices = host.devices.borrow_mut();
        // 0 is an event of a completion queue.
        devices.events.extend([0, 10].map(|code| Ok(RawEvent { code, port: 1 })));
        devices.events.push_back(Err(io::Error::from_raw_os_error(libc::EIO)));
        drop(devices);
        let at = Anchor { moment: now, wall: SystemTime::UNIX_EPOCH };
        let event = registry.next_event("uverbs0", at).unwrap();
        assert_eq!((&*event.device, event.port), ("rxe0", Some(1)));
        assert_eq!((event.kind, event.at.moment), (PortEventKind::PortError, now));
        assert!(registry.next_event("uverbs0", at).is_none());
        assert!(host.open().is_empty());
    }
    assert_eq!(host.devices.borrow().tried, MAX_TRIES as usize);
}

#[test]
fn device_that_was_open_for_a_minute_is_always_reopened() {
    let host = Host::with(&[("uverbs0", "rxe0")]);
    let (mut registry, mut now) = (host.registry(), Moment(0));
    registry.rescan(now);
    for _ in 0..3 * MAX_TRIES {
        now = registry.next_due().unwrap();
        registry.open_one(now);
        now = now + HEALTHY_AFTER;
        registry.on_closed("uverbs0", now);
    }
}

#[test]
fn last_events_of_hardware_are_waited_for() {
    let host = Host::with(&[("uverbs0", "mlx5_0"), ("uverbs1", "mlx5_1"), ("uverbs2", "rxe0")]);
    for node in ["uverbs0", "uverbs1"] {
        std::fs::create_dir(host.node(node).join("device")).unwrap();
    }
    let (mut registry, now) = (host.registry(), Moment(0));
    registry.rescan(now);
    for node in ["uverbs0", "uverbs1", "uverbs2"] {
        registry.open_one(now);
        registry.close_soon(node, now);
    }
    registry.close_due(now + LAST_EVENTS_OF_SOFTWARE);
    assert_eq!(host.open(), ["uverbs0", "uverbs1"]);
    // DEVICE_FATAL is the last one.
    registry.on_closed("uverbs0", now + Duration::from_secs(1));
    assert_eq!(
        (host.open(), registry.next_due()),
        (vec!["uverbs1".to_owned()], Some(now + LAST_EVENTS))
    );
    registry.close_due(now + LAST_EVENTS);
    assert!(host.open().is_empty() && registry.next_due().is_none());
}
