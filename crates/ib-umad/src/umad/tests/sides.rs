//! What passes through which descriptor.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_mad::port_state::PortState;
use ib_mad::{Class, DirectedRoute, Lid, Mad, Moment, Query, pma, smp};

use super::fake::{Device, FakeHost, PortName, QueuePairs};
use crate::client::{MadClient, SendConfig};
use crate::plan::{self, QueryPlan};
use crate::request::{Address, QueuePair, Request, RequestError};
use crate::transport::{MadTransport, OutgoingMad, Received, SendError};
use crate::umad::{PortChoice, Umad};

fn outgoing(to: Address, query: Query, transaction_id: u32) -> OutgoingMad {
    let request = Request { to, query };
    OutgoingMad::new(&request, None, transaction_id, Duration::from_millis(250), 0)
}

fn smp_of(plane: u8, transaction_id: u32) -> OutgoingMad {
    let to = Address::Directed(DirectedRoute::of_plane(plane));
    outgoing(to, smp::node_info(), transaction_id)
}

fn gmp(transaction_id: u32) -> OutgoingMad {
    outgoing(Address::Lid(Lid(1)), pma::class_port_info(), transaction_id)
}

fn port(hca: &str, number: u8) -> PortName {
    (hca.to_owned(), number)
}

fn opened(host: &FakeHost) -> Umad {
    host.open(PortChoice::default()).unwrap().1
}

/// The transaction id of the response that is there, if one is.
fn received(umad: &mut Umad) -> Option<u32> {
    match umad.receive(umad.now()).unwrap()? {
        Received::Mad { mad, .. } => Some(mad.transaction_id()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ordinary_hca_has_one_descriptor() {
    let host = FakeHost::new([
        Device::new("mlx5_0", 2, QueuePairs::Both),
        Device { guid: 1, ..Device::new("mlx5_1", 1, QueuePairs::Both) },
    ]);
    let mut umad = opened(&host);
    assert!(umad.local_port().planes.is_empty());
    umad.refresh();
    umad.send(&smp_of(0, 1)).unwrap();
    umad.send(&gmp(2)).unwrap();
    assert_eq!((received(&mut umad), received(&mut umad)), (Some(1), Some(2)));
    assert!(matches!(umad.send(&smp_of(1, 3)), Err(SendError::Refused(_))));
    let wire = host.wire.lock().unwrap();
    assert_eq!(wire.opened, [port("mlx5_0", 1)]);
    let classes: Vec<u8> = wire.registered.iter().map(|(_, class)| *class).collect();
    assert_eq!(classes, Class::ALL.map(|class| class as u8));
    // Neither is the kernel asked for pairs nor the port for its state.
    assert_eq!((wire.asked_kernel, wire.sent.len()), (0, 2));
}

#[test]
fn each_side_sends_its_own_mads() {
    let host = FakeHost::new(Device::pair());
    let mut umad = opened(&host);
    host.wire.lock().unwrap().sent.clear();
    for (mad, by) in [
        (gmp(1), port("mlx5_0", 1)),
        (smp_of(3, 2), port("planes", 3)),
        (smp_of(0, 3), port("planes", 1)),
        (outgoing(Address::Lid(Lid(1)), smp::node_info(), 4), port("planes", 1)),
    ] {
        umad.send(&mad).unwrap();
        assert_eq!(host.wire.lock().unwrap().sent.pop().unwrap().0, by);
    }
    let mut all: Vec<u32> = std::iter::from_fn(|| received(&mut umad)).collect();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4]);
    let wire = host.wire.lock().unwrap();
    let by = |hca: &str| {
        let of = wire.registered.iter().filter(|(name, _)| name.0 == hca);
        of.map(|(name, class)| (name.1, *class)).collect::<Vec<_>>()
    };
    assert_eq!(by("mlx5_0"), [(1, 0x04), (1, 0x0a)]);
    assert_eq!(by("planes").len(), 8);
}

/// Requests to send, and how many were answered.
struct Asking {
    requests: Vec<Request>,
    answered: usize,
}

impl QueryPlan for Asking {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        let next = self.requests.iter().position(|request| request.queue_pair() == qp)?;
        Some((self.requests.remove(next), 0))
    }

    fn handle_outcome(&mut self, _: u64, outcome: Result<&Mad, RequestError>, _: Moment) {
        self.answered += usize::from(outcome.is_ok());
    }
}

#[test]
fn plans_run_over_all_sides_at_once() {
    let host = FakeHost::new(Device::pair());
    let mut umad = opened(&host);
    host.wire.lock().unwrap().sent.clear();
    let of_plane = |plane| Address::Directed(DirectedRoute::of_plane(plane));
    let smps = (0..100).map(|at| Request { to: of_plane(at % 5), query: smp::node_info() });
    let to = Address::Lid(Lid(1));
    let gmps = (0..100).map(|_| Request { to, query: pma::class_port_info() });
    let mut plan = Asking { requests: smps.chain(gmps).collect(), answered: 0 };
    let timeout = Duration::from_secs(60);
    let mut client = MadClient::new(SendConfig { timeout, ..SendConfig::default() });
    plan::run(&mut plan, &mut client, &mut umad, &AtomicBool::new(false)).unwrap();
    assert_eq!(plan.answered, 200);
    let wire = host.wire.lock().unwrap();
    let by =
        |hca: &str, number| wire.sent.iter().filter(|(name, _)| *name == port(hca, number)).count();
    // Plane 0 is the first one.
    assert_eq!([by("mlx5_0", 1), by("planes", 1), by("planes", 2)], [100, 40, 20]);
}

#[test]
fn response_through_another_descriptor_is_dropped() {
    let host = FakeHost::new(Device::pair());
    let mut umad = opened(&host);
    for (mad, by) in [
        (smp_of(1, 1), port("planes", 2)),
        (smp_of(2, 2), port("mlx5_0", 1)),
        (gmp(3), port("planes", 1)),
    ] {
        host.wire.lock().unwrap().diverted_to = Some(by);
        umad.send(&mad).unwrap();
        assert_eq!(received(&mut umad), None);
    }
    // The kernel's time-outs of these are still those of their own descriptors.
    umad.send(&smp_of(4, 4)).unwrap();
    assert_eq!(received(&mut umad), Some(4));
    assert_eq!(received(&mut umad), None);
}

#[test]
fn plane_that_is_not_active_is_skipped_and_reported() {
    let host = FakeHost::new(Device::pair());
    let set = |plane, state| {
        let mut wire = host.wire.lock().unwrap();
        match state {
            Some(state) => wire.states.insert(port("planes", plane), state),
            None => wire.states.remove(&port("planes", plane)),
        };
    };
    set(1, Some(PortState::Down));
    set(4, None);
    let mut umad = opened(&host);
    let planes = |umad: &Umad| umad.local_port().planes.iter().collect::<Vec<_>>();
    // Plane 4 does not say: with an M_Key it would not.
    assert_eq!(planes(&umad), [2, 3, 4]);
    let side = umad.smi_side().unwrap();
    let said: Vec<String> = side.planes.iter().map(ToString::to_string).collect();
    let says = ["plane 1 Down", "plane 2 Active", "plane 3 Active", "plane 4 state unknown"];
    assert_eq!((&*side.hca, &*said), ("planes", &says.map(String::from)[..]));
    assert!(matches!(umad.send(&smp_of(1, 1)), Err(SendError::Refused(_))));
    umad.send(&smp_of(0, 2)).unwrap();
    assert_eq!(host.wire.lock().unwrap().sent.last().unwrap().0, port("planes", 2));
    // A response that waits is not lost by the check.
    set(1, Some(PortState::Active));
    set(2, Some(PortState::Init));
    set(4, Some(PortState::ActiveDefer));
    umad.refresh();
    assert_eq!(planes(&umad), [1, 3, 4]);
    assert_eq!(received(&mut umad), Some(2));
    // Before a subnet manager has configured any of them, SMPs pass.
    (1..=4).for_each(|plane| set(plane, Some(PortState::Init)));
    umad.refresh();
    assert_eq!(planes(&umad), [0; 0]);
    umad.send(&smp_of(0, 3)).unwrap();
}

#[test]
fn pair_is_gone_with_either_device() {
    for removed in ["mlx5_0", "planes"] {
        let host = FakeHost::new(Device::pair());
        let umad = opened(&host);
        assert!(umad.local_port().is_present);
        host.remove(removed);
        assert!(!umad.local_port().is_present, "{removed}");
    }
}

#[test]
fn settings_override_the_search() {
    let [parent, smi] = Device::pair();
    let hca = Some("mlx5_0");
    // Its port has another GUID, so it is not found.
    let host = FakeHost::new([parent, Device { guid: 1, ..smi }]);
    let (automatic, smi_hca) = (PortChoice { hca, ..PortChoice::default() }, Some("planes"));
    assert!(host.chosen(automatic).is_err());
    let named = PortChoice { smi_hca, ..automatic };
    assert_eq!(host.chosen(named), Ok(("mlx5_0".into(), Some("planes".into()))));
    let (_, umad) = host.open(PortChoice { smi_port: Some(3), ..named }).unwrap();
    assert_eq!(umad.local_port().planes.iter().collect::<Vec<_>>(), [3]);
    for (choice, says) in [
        (
            PortChoice { smi_port: Some(5), ..named },
            "no port 5: --fabric.smi-port may be 1, 2, 3, 4",
        ),
        (
            PortChoice { smi_hca: Some("x"), ..named },
            "\"x\" on this host: --fabric.smi-hca may be mlx5_0, planes",
        ),
    ] {
        let error = host.chosen(choice).unwrap_err();
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
    // An HCA with both queue pairs sends its SMPs through another one only if that is set.
    let both = Device::new("mlx5_0", 1, QueuePairs::Both);
    let [_, smi] = Device::pair();
    let host = FakeHost::new([both, smi]);
    assert_eq!(host.chosen(automatic), Ok(("mlx5_0".into(), None)));
    assert_eq!(host.chosen(named), Ok(("mlx5_0".into(), Some("planes".into()))));
}

#[test]
fn error_says_which_side_is_missing_and_what_to_do() {
    let [parent, smi] = Device::pair();
    let says = |host: &FakeHost, parts: &[&str]| {
        let error = host.chosen(PortChoice::default()).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(!error.contains('\n'), "{error}");
    };
    let host = FakeHost::new([parent.clone()]);
    host.put("mlx5_0", "hca_type", "MT4131");
    says(&host, &["mlx5_0 port 1", "rdma dev add smi_mlx5_0 type SMI parent mlx5_0"]);

    let mut host = FakeHost::new([parent.clone()]);
    host.put("mlx5_0", "hca_type", "MT4129");
    host.put("mlx5_0", "fw_ver", "28.42.1000");
    host.kernel = "6.12.4";
    says(&host, &["firmware 28.42.1000", "kernel 6.12.4", "update the kernel to 6.12.9"]);
    host.kernel = "6.12.10";
    says(&host, &["virtual function", "--fabric.hca"]);

    says(&FakeHost::new([smi.clone()]), &["planes port 1", "nothing but subnet management"]);

    let mut host = FakeHost::new([parent, smi]);
    host.closed = Some(("planes", libc::EACCES));
    says(&host, &["no permission to open /dev/infiniband/umad1", "udev rule"]);
}

#[test]
fn only_a_missing_queue_pair_makes_a_side() {
    let hca = || [Device::new("mlx5_0", 1, QueuePairs::Both)];
    for (class, code, says) in [
        (Class::SubnetDirected, libc::EPROTONOSUPPORT, "does not support subnet management"),
        (Class::SubnetLid, libc::EPROTONOSUPPORT, "does not support subnet management"),
        (Class::Performance, libc::EPROTONOSUPPORT, "nothing but subnet management"),
        (Class::SubnetDirected, libc::EPERM, "umad0: register: Operation not permitted"),
        (Class::SubnetLid, libc::ENOMEM, "umad0: register: Cannot allocate memory"),
        (Class::Performance, libc::EINVAL, "umad0: register: Invalid argument"),
    ] {
        let mut host = FakeHost::new(hca());
        host.refused = Some((class, code));
        let error = host.chosen(PortChoice::default()).unwrap_err();
        assert!(error.contains(says), "{class:?} {code}: {error}");
    }
    let mut host = FakeHost::new(hca());
    host.refused = Some((Class::Vendor, libc::EPROTONOSUPPORT));
    let (_, umad) = host.open(PortChoice::default()).unwrap();
    assert!(!umad.local_port().has_vendor_class);
}
