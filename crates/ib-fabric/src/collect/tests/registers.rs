//! Registers: what is read of which device, how often, and what follows a refusal or a timeout.

use std::collections::BTreeMap;

use super::*;
use crate::collect::registers::{RegisterIntervals, RegisterReader, send_config};
use crate::{Snapshot, testing};
use ib_mad::m_key::MKeys;
use ib_mad::register::{Module, PhysicalStatistics, RegisterQuery, Temperature};
use ib_mad::vendor::GeneralInfo;
use ib_mad::vendor::status::{BAD_PARAMETER, UNSUPPORTED_REGISTER};
use ib_mad::{Mad, Query};
use ib_umad::{Address, QueuePair, RequestError};

const SECOND: u64 = 1_000_000_000;

/// A switch with GUID and LID 1, and two hosts.
fn snapshot(vendor_of_host: u32) -> Snapshot {
    let mut host = testing::found(2, CA, 1);
    host.identity.vendor_id = vendor_of_host;
    let nodes = vec![testing::found(1, SWITCH, 4), host, testing::found(3, CA, 1)];
    let links = [1, 2].map(|it| (testing::end(1, it as u8), testing::end(it + 1, 1)));
    let fabric = testing::fabric(nodes, &links, None);
    Snapshot::blank(
        Arc::new(fabric),
        ib_mad::moment::Anchor { moment: Moment(0), wall: std::time::SystemTime::UNIX_EPOCH },
    )
}

/// Runs what is due at a second. Returns what was requested, by LID.
fn read(
    reader: &mut RegisterReader,
    snapshot: &Snapshot,
    second: u64,
    device: impl Fn(u16, &Query) -> Result<Mad, RequestError>,
) -> BTreeMap<u16, Vec<Option<RegisterQuery>>> {
    let mut requested: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    let at = Moment(second * SECOND);
    let mut run = reader.begin(snapshot, at, Moment((second + 10) * SECOND));
    assert_eq!(run.next_request(QueuePair::Qp0), None);
    while let Some((request, tag)) = run.next_request(QueuePair::Qp1) {
        let Address::Lid(lid) = request.to else { panic!("{request:?}") };
        requested.entry(lid.0).or_default().push(request.query.register);
        let response = device(lid.0, &request.query);
        run.handle_outcome(tag, response.as_ref().map_err(|error| *error), at);
    }
    reader.confirm(&snapshot.fabric, false);
    requested
}

/// The same fabric after the two hosts have swapped their LIDs.
fn with_swapped_hosts(fabric: &Fabric) -> Arc<Fabric> {
    let mut swapped = fabric.clone();
    let ports = [2, 3].map(|guid| swapped.find(testing::end(guid, 1)).unwrap());
    let lids = ports.map(|port| swapped.lid_of(port).unwrap());
    for (port, lid) in ports.into_iter().zip([lids[1], lids[0]]) {
        swapped.ports[port].status.as_mut().unwrap().lid = lid;
    }
    Arc::new(swapped)
}

#[test]
fn reports_by_lids_that_changed_are_dropped() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    read(&mut reader, &snapshot, 1, all);
    read(&mut reader, &snapshot, 2, all);
    let before = Arc::clone(&reader.hardware);
    let modules = |hardware: &crate::hardware::Hardware| {
        hardware.port(testing::end(2, 1)).unwrap().module.as_ref().map(|it| it.at)
    };
    let swapped = with_swapped_hosts(&snapshot.fabric);
    // A sweep sees it, or a discovery before the sweep.
    for (second, after, lids_changed) in [(1_000, &snapshot.fabric, true), (2_000, &swapped, false)]
    {
        let at = Moment(second * SECOND);
        let mut run = reader.begin(&snapshot, at, Moment((second + 10) * SECOND));
        let mut count = 0;
        while let Some((request, tag)) = run.next_request(QueuePair::Qp1) {
            count += 1;
            let is_refused = matches!(request.query.register, Some(RegisterQuery::Temperature(_)));
            let response = response(&request.query, true);
            let refusal = RequestError::Status(BAD_PARAMETER);
            run.handle_outcome(tag, if is_refused { Err(refusal) } else { Ok(&response) }, at);
        }
        assert!(count > 8, "{count}");
        reader.confirm(after, lids_changed);
        assert!(Arc::ptr_eq(&reader.hardware, &before), "{second}");
    }
    // It is asked again, also for what another device has refused.
    let again = read(&mut reader, &snapshot, 3_000, all);
    let again = read(&mut reader, &snapshot, 3_001, all).into_iter().chain(again);
    let is_temperature = |it: &RegisterQuery| matches!(it, RegisterQuery::Temperature(_));
    assert!(again.flat_map(|(_, asked)| asked).flatten().any(|it| is_temperature(&it)));
    assert!(modules(&reader.hardware) > modules(&before));
}

/// A device that responds to everything; bit 20 is as given.
fn response(query: &Query, registers: bool) -> Mad {
    let mut mad = query.request(None, 0).response();
    match query.register {
        None => GeneralInfo {
            capabilities: [u32::from(registers) << 20, 0, 0, 0],
            uptime: 77,
            ..GeneralInfo::default()
        }
        .encode(&mut mad),
        Some(RegisterQuery::Temperature(_)) => {
            Temperature { degrees: 50 * 8, ..Temperature::default() }.encode(&mut mad);
        }
        Some(RegisterQuery::Module(_)) => {
            Module { kind: 3, vendor: [b'v'; 16], ..Module::default() }.encode(&mut mad);
        }
        Some(_) => PhysicalStatistics { symbol_errors: 5, ..Default::default() }.encode(&mut mad),
    }
    mad
}

#[allow(clippy::unnecessary_wraps, reason = "other devices refuse")]
fn all(_: u16, query: &Query) -> Result<Mad, RequestError> {
    Ok(response(query, true))
}

#[test]
fn registers_are_read_of_devices_that_announce_them() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    let announced = |lid, query: &Query| Ok(response(query, lid != 3));
    let first = read(&mut reader, &snapshot, 100, announced);
    assert_eq!(first, [(1, vec![None]), (2, vec![None]), (3, vec![None])].into());
    let second = read(&mut reader, &snapshot, 101, announced);
    assert_eq!(second.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert!(second[&2].contains(&Some(RegisterQuery::Module(1))), "{second:?}");
    // All ports of the switch by its LID, without port 0.
    let ports: Vec<_> = second[&1].iter().flatten().filter_map(|it| it.port()).collect();
    assert_eq!((ports.len(), ports.contains(&0)), (8, false), "{second:?}");
    let port = reader.hardware.port(testing::end(1, 2)).unwrap();
    assert_eq!(port.physical.as_ref().unwrap().value.symbol_errors, 5);
    assert!(port.plugged().is_some());
    let switch = &reader.hardware.nodes[&Guid(1)];
    assert_eq!(
        (switch.general.unwrap().value.uptime, switch.temperature.unwrap().value),
        (77, 50.0)
    );
}

#[test]
fn each_tier_is_read_once_per_interval() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for second in (1_000..1_000 + 1_200).step_by(5) {
        for query in read(&mut reader, &snapshot, second, all).remove(&3).into_iter().flatten() {
            *counts.entry(query.map(|query| query.kind().0)).or_default() += 1;
        }
    }
    let of = |id: u16| counts[&Some(id)];
    assert!((20..=21).contains(&counts[&None]) && (20..=21).contains(&of(Temperature::ID)));
    // PDDR: page 3.
    assert!((2..=3).contains(&of(Module::ID)), "{counts:?}");
    assert!((20..=21).contains(&of(PhysicalStatistics::ID)), "{counts:?}");
}

#[test]
fn other_vendors_are_sent_nothing() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let requested = read(&mut reader, &snapshot(0x1175), 1, all);
    assert_eq!(requested.keys().copied().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn refused_registers_are_not_requested_again() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    let refuses = |lid: u16, query: &Query| match query.register {
        Some(RegisterQuery::Module(_)) if lid == 1 => {
            Err(RequestError::Status(0x0300 | UNSUPPORTED_REGISTER))
        }
        Some(RegisterQuery::Temperature(_)) => Err(RequestError::Status(BAD_PARAMETER)),
        _ => Ok(response(query, true)),
    };
    read(&mut reader, &snapshot, 1, refuses);
    let first = read(&mut reader, &snapshot, 2, refuses);
    assert!(first[&1].iter().flatten().any(|it| matches!(it, RegisterQuery::Module(_))));
    let again = read(&mut reader, &snapshot, 2_000, refuses);
    let modules = |lid: u16| {
        again[&lid].iter().flatten().filter(|it| matches!(it, RegisterQuery::Module(_))).count()
    };
    assert_eq!((modules(1), modules(2)), (0, 1), "{again:?}");
    let is_temperature = |it: &RegisterQuery| matches!(it, RegisterQuery::Temperature(_));
    assert!(!again.values().flatten().flatten().any(is_temperature), "{again:?}");
}

/// Reads for a time from a switch that does not respond to some queries. Returns when it did not respond.
fn timeouts(reader: &mut RegisterReader, hangs: impl Fn(&Query) -> bool) -> Vec<u64> {
    let snapshot = snapshot(0x2c9);
    let mut asked = Vec::new();
    for second in (1..4_000).step_by(10) {
        let unanswered = std::cell::Cell::new(0);
        read(reader, &snapshot, second, |lid, query| {
            if lid == 1 && hangs(query) {
                unanswered.set(unanswered.get() + 1);
                return Err(RequestError::TimedOut);
            }
            Ok(response(query, true))
        });
        assert!(unanswered.get() <= 1, "one timeout ends the run of the device");
        asked.extend((unanswered.get() == 1).then_some(second));
    }
    asked
}

fn module_of(query: &Query) -> Option<u8> {
    match query.register {
        Some(RegisterQuery::Module(port)) => Some(port),
        _ => None,
    }
}

#[test]
fn timeouts_pause_a_port_or_a_register_or_a_device() {
    let pauses = |asked: &[u64]| asked.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let has_module = |reader: &RegisterReader, node, port| {
        reader.hardware.port(testing::end(node, port)).is_some_and(|it| it.module.is_some())
    };

    // A first timeout may be a lost MAD.
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let port = pauses(&timeouts(&mut reader, |query| module_of(query) == Some(2)));
    assert!(port[0] < 60 && (300..600).contains(&port[1]) && port[2] >= 600, "{port:?}");
    assert!(!has_module(&reader, 1, 2), "out of date");
    assert!(has_module(&reader, 1, 1) && has_module(&reader, 2, 1), "others are read");

    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let register = pauses(&timeouts(&mut reader, |query| module_of(query).is_some()));
    assert!(register[..3].iter().all(|pause| *pause < 60), "{register:?}");
    assert!((300..600).contains(&register[3]) && register[4] >= 600, "{register:?}");
    let switch = reader.hardware.port(testing::end(1, 1)).unwrap();
    assert!(switch.module.is_none() && switch.physical.is_some());

    let mut reader = RegisterReader::new(RegisterIntervals::default());
    read(&mut reader, &snapshot(0x2c9), 0, all);
    assert!(reader.hardware.nodes.contains_key(&Guid(1)));
    let device = pauses(&timeouts(&mut reader, |_| true));
    assert!(device[..device.len() - 3].iter().all(|pause| *pause < 120), "{device:?}");
    assert!(device.len() <= 9 && device[device.len() - 1] >= 1_200, "{device:?}");
    assert!(!reader.hardware.nodes.contains_key(&Guid(1)) && !has_module(&reader, 1, 1));
}

#[test]
fn module_is_read_again_after_a_link_down() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let mut snapshot = snapshot(0x2c9);
    read(&mut reader, &snapshot, 1, all);
    read(&mut reader, &snapshot, 2, all);
    let port = |reader: &RegisterReader| reader.hardware.port(testing::end(2, 1)).unwrap().clone();
    assert!(port(&reader).module.is_some() && port(&reader).link_down.is_none());
    // Another module, which does not have the page.
    let refuses = |lid: u16, query: &Query| match query.register {
        Some(RegisterQuery::Module(_)) if lid == 2 => Err(RequestError::Status(BAD_PARAMETER)),
        _ => Ok(response(query, true)),
    };
    read(&mut reader, &snapshot, 1_000, refuses);
    assert!(port(&reader).module.is_none(), "out of date");
    let asked = |requested: &BTreeMap<u16, Vec<Option<RegisterQuery>>>| {
        requested.get(&2).is_some_and(|it| it.contains(&Some(RegisterQuery::Module(1))))
    };
    assert!(!asked(&read(&mut reader, &snapshot, 3_000, all)));
    // A sweep that read no counters says nothing.
    let index = snapshot.fabric.find(testing::end(2, 1)).unwrap();
    snapshot.readings[index] = None;
    assert!(!asked(&read(&mut reader, &snapshot, 3_001, all)));
    let mut reading = ib_mad::reading::Reading::empty(Moment(0));
    reading.set(Counter::LinkDowned, 1);
    snapshot.readings[index] = Some(reading);
    read(&mut reader, &snapshot, 3_002, all);
    assert!(asked(&read(&mut reader, &snapshot, 3_003, all)));
    assert!(port(&reader).module.is_some() && port(&reader).link_down.is_some());
}

#[test]
fn no_request_is_sent_after_the_end_of_a_run() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    let mut run = reader.begin(&snapshot, Moment(5), Moment(6));
    let (_, tag) = run.next_request(QueuePair::Qp1).unwrap();
    run.handle_outcome(tag, Err(RequestError::Busy), Moment(7));
    assert!(run.next_request(QueuePair::Qp1).is_none());
}

#[test]
fn reports_of_absent_devices_are_forgotten() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let before = snapshot(0x2c9);
    read(&mut reader, &before, 1, all);
    read(&mut reader, &before, 2, all);
    assert_eq!((reader.hardware.nodes.len(), reader.hardware.ports().count()), (3, 6));
    let fabric = testing::fabric(vec![testing::found(3, CA, 1)], &[], None);
    let after = Snapshot { fabric: Arc::new(fabric), ..before };
    let after = Snapshot::blank(after.fabric, after.anchor);
    read(&mut reader, &after, 3, all);
    assert_eq!((reader.hardware.nodes.len(), reader.hardware.ports().count()), (1, 1));
}

#[test]
fn one_request_is_in_flight_to_each_device() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    read(&mut reader, &snapshot, 1, all);
    let at = Moment(2 * SECOND);
    let mut run = reader.begin(&snapshot, at, Moment(12 * SECOND));
    let mut in_flight = BTreeMap::new();
    while let Some((request, tag)) = run.next_request(QueuePair::Qp1) {
        let Address::Lid(lid) = request.to else { panic!("{request:?}") };
        assert_eq!(in_flight.insert(lid.0, tag), None, "{lid:?}");
    }
    assert_eq!(in_flight.len(), 3);
    // What does not respond is not requested again in the run.
    run.handle_outcome(in_flight[&1], Err(RequestError::TimedOut), Moment(4 * SECOND));
    assert!(run.next_request(QueuePair::Qp1).is_none());
    run.handle_outcome(in_flight[&2], Err(RequestError::Busy), Moment(5 * SECOND));
    let next = run.next_request(QueuePair::Qp1).map(|(request, _)| request.to);
    assert_eq!(next, Some(Address::Lid(Lid(2))));
}

/// Hosts with GUIDs and LIDs from 1 on.
fn hosts(count: u64) -> Snapshot {
    let nodes = (1..=count).map(|guid| testing::found(guid, CA, 1)).collect();
    let before = snapshot(0x2c9);
    Snapshot::blank(Arc::new(testing::fabric(nodes, &[], None)), before.anchor)
}

/// Runs over hosts that drop everything, as those of which the VSKey is not known do: as often as an exporter, in
/// which a request waits 2 s for its response. Returns the number of requests.
fn minutes_of_silence(reader: &mut RegisterReader, minutes: u64, responds: bool) -> usize {
    let snapshot = hosts(500);
    let mut requests = 0;
    for second in (1..=60 * minutes).step_by(15) {
        let mut now = Moment(second * SECOND);
        let mut run = reader.begin(&snapshot, now, Moment((second + 14) * SECOND));
        loop {
            let sent: Vec<_> =
                std::iter::from_fn(|| run.next_request(QueuePair::Qp1)).take(128).collect();
            if sent.is_empty() {
                break;
            }
            requests += sent.len();
            now = now + Duration::from_secs(if responds { 0 } else { 2 });
            for (request, tag) in sent {
                let mad = response(&request.query, true);
                let outcome = if responds { Ok(&mad) } else { Err(RequestError::TimedOut) };
                run.handle_outcome(tag, outcome, now);
            }
        }
        reader.confirm(&snapshot.fabric, false);
    }
    requests
}

#[test]
fn silent_devices_share_three_probes_a_minute() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    assert!(!reader.is_vs_key_suspected());
    let requests = minutes_of_silence(&mut reader, 10, false);
    assert!(reader.is_vs_key_suspected());
    assert!(requests <= 100, "{requests} requests");
    // Another key: all are asked again, and respond.
    reader.set_keys(MKeys::parse("0x1234").unwrap());
    assert!(!reader.is_vs_key_suspected());
    minutes_of_silence(&mut reader, 1, true);
    assert_eq!((reader.hardware.nodes.len(), reader.is_vs_key_suspected()), (500, false));
}

#[test]
fn devices_that_respond_again_end_the_suspicion() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    minutes_of_silence(&mut reader, 2, false);
    assert!(reader.is_vs_key_suspected());
    // The next probes, a minute after the last ones.
    minutes_of_silence(&mut reader, 3, true);
    assert!(!reader.is_vs_key_suspected());
    assert!(reader.hardware.nodes.len() > 400, "{}", reader.hardware.nodes.len());
}

#[test]
fn requests_that_were_not_sent_do_not_pause_a_device() {
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    for second in [1, 20] {
        let unsent = read(&mut reader, &snapshot, second, |_, _| Err(RequestError::Unsent));
        assert_eq!(unsent.values().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
    }
    assert_eq!(read(&mut reader, &snapshot, 40, all).len(), 3);
    assert_eq!(reader.hardware.nodes.len(), 3);
}

#[test]
fn no_request_is_sent_that_would_delay_the_next_sweep() {
    let slow = SendConfig { timeout: Duration::from_secs(60), ..SendConfig::default() };
    assert_eq!(send_config(slow).timeout, Duration::from_secs(2));
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    let snapshot = snapshot(0x2c9);
    read(&mut reader, &snapshot, 1, all);
    for (answered, is_next) in [(7, true), (8, false)] {
        let mut run = reader.begin(&snapshot, Moment(20 * SECOND), Moment(30 * SECOND));
        let (request, tag) = run.next_request(QueuePair::Qp1).unwrap();
        let mad = response(&request.query, true);
        run.handle_outcome(tag, Ok(&mad), Moment((20 + answered) * SECOND));
        assert_eq!(run.next_request(QueuePair::Qp1).is_some(), is_next, "{answered} s later");
    }
}
