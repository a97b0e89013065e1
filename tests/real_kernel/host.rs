//! The exporter in the guest with the guest's own devices, scraped from outside.

use std::time::Duration;

use test_rig::guest::{Guest, GuestExporter, Rxe, TestHca};
use test_rig::metrics::Metrics;
use test_rig::wait_until;

/// How long an expected change may take: the guest is slow, and reads are a second apart.
const LIMIT: Duration = Duration::from_secs(240);

/// Numbers of events, from `<infiniband/verbs.h>`.
const PORT_ACTIVE: u32 = 9;
const PORT_ERROR: u32 = 10;
const LID_CHANGE: u32 = 11;

/// An exporter that reads one device alone.
struct Watch {
    exporter: GuestExporter,
    device: String,
}

impl Watch {
    /// Reads every second and after each event.
    fn start(device: &str, flags: &[&str]) -> Self {
        Self::each("1s", device, flags)
    }

    /// Reads only after an event.
    fn by_events_alone(device: &str) -> Self {
        let watch = Self::each("1h", device, &[]);
        watch.wait_heard();
        watch
    }

    fn each(interval: &str, device: &str, flags: &[&str]) -> Self {
        let interval = format!("--host.interval={interval}");
        let include = format!("--host.device-include={device}");
        let all = ["--no-collector.fabric", &interval, &include];
        let exporter = GuestExporter::start(&[&all, flags].concat());
        let watch = Self { exporter, device: device.to_owned() };
        watch.wait("a device to be seen", |now| now.all("infiniband_device_up").next().map(drop));
        watch
    }

    /// Waits until the events of all devices are monitored.
    fn wait_heard(&self) {
        self.wait("subscriptions to device events", |now| {
            let heard: Vec<f64> = now
                .all("fabric_exporter_device_events_subscribed")
                .map(|(_, heard)| heard)
                .collect();
            (!heard.is_empty() && heard.iter().all(|&heard| heard > 0.0)).then_some(())
        });
    }

    /// Waits until the metrics fulfill a condition.
    fn wait<T>(&self, what: &str, found: impl Fn(&Metrics) -> Option<T>) -> T {
        wait_until(LIMIT, what, || found(&self.exporter.metrics()))
    }

    /// Waits until a metric of a port has a value.
    fn wait_value(&self, name: &str, labels: &[(&str, &str)], value: u64) {
        let what = format!("{name}{labels:?} of {} to be {value}", self.device);
        self.wait(&what, |now| now.get_u64(name, labels).filter(|&it| it == value));
    }

    fn events(&self, event: &str) -> u64 {
        let labels = [("event", event)];
        self.exporter.metrics().get_u64("infiniband_port_events_total", &labels).unwrap()
    }
}

const STATE: &str = "infiniband_port_state";
const LOSSES: &str = "infiniband_port_link_losses_total";
const ADMINISTRATIVE_DOWNS: &str = "infiniband_port_administrative_downs_total";

/// A device of testhca and an exporter that reads it.
fn watched(name: &str, ports: u32, eth: bool) -> (Watch, TestHca) {
    let hca = Guest::get().testhca(name, ports, eth);
    (Watch::start(name, &[]), hca)
}

/// Soft RoCE and an exporter that reads it on events.
fn start_on_events(name: &str) -> (Watch, Rxe) {
    let rxe = Guest::get().rxe(name);
    (Watch::by_events_alone(name), rxe)
}

#[test]
fn counters_are_read_at_their_widths() {
    let (watch, hca) = watched("hostwide", 2, false);
    hca.hw(2, "out_of_sequence", 1 << 40);
    let counters = [
        ("symbol_error", "symbol_errors", 65_535),
        ("link_downed", "link_downed", 255),
        ("link_error_recovery", "link_error_recoveries", 255),
        ("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", 15),
        ("local_link_integrity_errors", "local_link_integrity_errors", 15),
        ("port_xmit_wait", "transmit_wait_ticks", 4_294_967_295),
        ("VL15_dropped", "vl15_dropped", 65_535),
        ("unicast_rcv_packets", "unicast_receive_packets", u64::MAX),
        // Words of four bytes: the metric saturates where the bytes do not fit.
        ("port_rcv_data", "receive_bytes", u64::MAX),
    ];
    for (file, ..) in counters {
        hca.counter(2, file, u64::MAX);
    }
    for (_, metric, told) in counters {
        let name = format!("infiniband_port_{metric}_total");
        watch.wait_value(&name, &[("port", "2")], told);
        assert_eq!(watch.exporter.metrics().get_u64(&name, &[("port", "1")]), Some(0), "{name}");
    }
    watch.wait_value("infiniband_hw_out_of_sequence_total", &[("port", "2")], 1 << 40);
}

#[test]
fn states_and_rates_of_all_generations() {
    let (watch, hca) = watched("hostrates", 4, false);
    // As many at once as there are ports; reads are a second apart.
    for some in [
        (1, 2, 10),     // 4x SDR
        (2, 2, 20),     // DDR
        (4, 2, 40),     // QDR
        (16, 2, 56),    // FDR
        (32, 2, 100),   // EDR
        (64, 2, 200),   // HDR
        (128, 16, 200), // 2x NDR
        (128, 4, 800),  // 8x; XDR came with Linux 6.7
    ]
    .chunks(4)
    {
        let ports = || some.iter().zip(1..);
        for (&(speed, width, _), port) in ports() {
            hca.set(port, "speed", speed);
            hca.set(port, "width", width);
        }
        for (&(_, _, gbps), port) in ports() {
            let rate = gbps * 1_000_000_000 / 8;
            let port = port.to_string();
            watch.wait_value("infiniband_port_rate_bytes_per_second", &[("port", &port)], rate);
        }
    }
    // An invalid width: reading `rate` fails with EINVAL, and nothing else does.
    hca.set(1, "width", 3);
    watch.wait("the rate to go", |now| {
        let rate = now.get("infiniband_port_rate_bytes_per_second", &[("port", "1")]);
        (rate.is_none() && now.get(STATE, &[("port", "1")]) == Some(4.0)).then_some(())
    });
    let states = [(1, 2), (2, 5), (3, 5), (5, 6)];
    for ((state, physical), port) in states.into_iter().zip(1..) {
        hca.set(port, "state", state);
        hca.set(port, "phys", physical);
    }
    for ((state, physical), port) in states.into_iter().zip(1..) {
        let port = [("port", &*format!("{port}"))];
        watch.wait_value(STATE, &port, state.into());
        watch.wait_value("infiniband_port_physical_state", &port, physical.into());
    }
}

#[test]
fn failing_pma_loses_only_its_counters_until_it_recovers() {
    let hca = Guest::get().testhca("hostpma", 2, false);
    let watch = Watch::start("hostpma", &["--host.error-backoff=1s"]);
    let symbol_errors = "infiniband_port_symbol_errors_total";
    watch.wait_value(symbol_errors, &[("port", "1")], 0);
    hca.set(1, "pmafail", 1);
    let refusing = watch.wait("the counters to go", |now| {
        let refused = now.get("fabric_exporter_device_unreadable_files", &[]);
        (refused == Some(21.0)).then(|| now.get(symbol_errors, &[("port", "1")]))
    });
    assert_eq!(refusing, None, "what was not read has no sample");
    let now = watch.exporter.metrics();
    assert_eq!(now.get(symbol_errors, &[("port", "2")]), Some(0.0));
    assert_eq!(now.get(STATE, &[("port", "1")]), Some(4.0));
    assert_eq!(now.get("infiniband_hw_out_of_sequence_total", &[("port", "1")]), Some(0.0));
    hca.set(1, "pmafail", 0);
    watch.wait_value(symbol_errors, &[("port", "1")], 0);
    watch.wait_value("fabric_exporter_device_unreadable_files", &[], 0);
}

#[test]
fn port_events_are_counted_with_their_time() {
    let (watch, hca) = watched("hostevents", 2, false);
    watch.wait_heard();
    for (code, event) in [
        (PORT_ERROR, "port_error"),
        (PORT_ACTIVE, "port_active"),
        (LID_CHANGE, "lid_change"),
        (12, "pkey_change"),
        (13, "sm_change"),
        (17, "client_reregister"),
    ] {
        let labels = [("port", "2"), ("event", event)];
        let name = "infiniband_port_events_total";
        hca.event(code, 2);
        let at = watch.wait(event, |now| {
            now.get_u64(name, &labels).filter(|&count| count == 1)?;
            now.get("infiniband_port_event_timestamp_seconds", &labels)
        });
        let clock = Guest::get().must("date +%s").trim().parse::<f64>().unwrap();
        assert!((clock - at).abs() < 60.0, "{event} at {at}, and it is {clock}");
        let other = [("port", "1"), ("event", event)];
        assert_eq!(watch.exporter.metrics().get_u64(name, &other), Some(0), "{event}");
    }
    assert!(watch.exporter.log().contains("event=port_error"));
}

#[test]
fn interface_down_takes_the_port_down() {
    let (watch, rxe) = start_on_events("hostdown");
    let guest = Guest::get();
    watch.wait_value(STATE, &[], 4);
    guest.must(&format!("ip link set {} down", rxe.netdev()));
    watch.wait_value(STATE, &[], 1);
    watch.wait_value("infiniband_netdev_administratively_up", &[], 0);
    watch.wait_value(ADMINISTRATIVE_DOWNS, &[], 1);
    watch.wait_value("infiniband_netdev_up", &[], 0);
    let now = watch.exporter.metrics();
    assert_eq!(now.get_u64(LOSSES, &[]), Some(0), "no cable was lost");
    assert_eq!(now.get("infiniband_netdev_carrier", &[]), None, "the kernel does not say it");
    guest.must(&format!("ip link set {} up", rxe.netdev()));
    watch.wait_value(STATE, &[], 4);
    // The other end of the cable: the interface stays up, and loses its carrier. The kernel reports the same states.
    guest.must(&format!("ip link set {} down", rxe.peer()));
    watch.wait_value(STATE, &[], 1);
    // A read may see the state before the event arrives: the loss is counted once.
    watch.wait_value("infiniband_port_events_total", &[("event", "port_error")], 2);
    watch.wait_value(LOSSES, &[], 1);
    let now = watch.exporter.metrics();
    assert_eq!(now.get("infiniband_netdev_administratively_up", &[]), Some(1.0));
    assert_eq!(now.get("infiniband_netdev_carrier", &[]), Some(0.0));
    assert_eq!(now.get_u64(ADMINISTRATIVE_DOWNS, &[]), Some(1));
}

#[test]
fn members_of_a_bond_lose_their_carriers() {
    let guest = Guest::get();
    guest.must(
        "set -e
        ip link add hostbond0 type bond mode active-backup miimon 100
        for member in 1 2; do
            ip link add hostmem$member type veth peer name hostpeer$member
            ip link set hostpeer$member up; ip link set hostmem$member master hostbond0
        done
        ip link set hostbond0 up
        rdma link add hostbond type rxe netdev hostbond0",
    );
    let watch = Watch::start("hostbond", &[]);
    watch.wait_value(STATE, &[], 4);
    let of = |netdev| [("netdev", netdev)];
    let carrier = "infiniband_netdev_carrier";
    for member in ["hostmem1", "hostmem2"] {
        watch.wait_value(carrier, &of(member), 1);
        let now = watch.exporter.metrics();
        let info = now.sample("infiniband_netdev_info", &of(member)).unwrap();
        assert_eq!(info.labels["bond"], "hostbond0");
    }
    guest.must("ip link set hostpeer1 down");
    watch.wait_value(carrier, &of("hostmem1"), 0);
    let now = watch.exporter.metrics();
    assert_eq!((now.get(carrier, &of("hostbond0")), now.get(STATE, &[])), (Some(1.0), Some(4.0)));
    assert!(now.get_u64("infiniband_netdev_carrier_changes_total", &of("hostmem1")) >= Some(2));
    guest.must("ip link set hostpeer2 down");
    watch.wait_value(STATE, &[], 1);
    watch.wait_value(LOSSES, &[], 1);
    watch.wait_value(carrier, &of("hostbond0"), 0);
    guest.must(
        "rdma link del hostbond; ip link del hostbond0; ip link del hostmem1; ip link del hostmem2",
    );
}

#[test]
fn renamed_device_keeps_its_totals_and_losses() {
    let guest = Guest::get();
    let hca = guest.testhca("hostold", 1, false);
    let watch = Watch::start("hostold|hostnew", &[]);
    let symbol_errors = "infiniband_port_symbol_errors_total";
    let (old, new) = ([("device", "hostold")], [("device", "hostnew")]);
    hca.counter(1, "symbol_error", 1000);
    watch.wait_value(symbol_errors, &old, 1000);
    // Cleared by another program, and five more.
    hca.counter(1, "symbol_error", 5);
    watch.wait_value(symbol_errors, &old, 1005);
    hca.set(1, "state", 1);
    watch.wait_value(LOSSES, &old, 1);
    hca.set(1, "state", 4);
    guest.must("rdma dev set hostold name hostnew");
    watch.wait_value(symbol_errors, &new, 1005);
    let now = watch.exporter.metrics();
    assert_eq!(now.get_u64(LOSSES, &new), Some(1));
    assert_eq!(now.all(LOSSES).count(), 1, "not under its old name");
    assert_eq!(now.all("infiniband_device_up").count(), 1, "it is not missing");
    guest.must("rdma dev set hostnew name hostold");
    watch.wait_value(symbol_errors, &old, 1005);
}

#[test]
fn flap_of_100_ms_is_counted_once() {
    let (watch, rxe) = start_on_events("hostflap");
    let (netdev, peer) = (rxe.netdev(), rxe.peer());
    Guest::get().must(&format!("ip link set {peer} down; sleep 0.1; ip link set {peer} up"));
    watch.wait_value(LOSSES, &[], 1);
    watch.wait_value(STATE, &[], 4);
    // One more event, to be sure that all events of the flap have arrived.
    let before = watch.events("gid_change");
    Guest::get().must(&format!("ip addr add 192.0.2.1/24 dev {netdev}"));
    watch.wait("a new address", |now| {
        let changes = now.get_u64("infiniband_port_events_total", &[("event", "gid_change")]);
        (changes > Some(before)).then_some(())
    });
    let now = watch.exporter.metrics();
    assert_eq!(now.get_u64(LOSSES, &[]), Some(1));
    assert_eq!((watch.events("port_error"), now.get_u64(STATE, &[])), (1, Some(4)));
}

#[test]
fn history_has_losses_at_the_time_of_the_port_event() {
    let guest = Guest::get();
    // It reports each change once. Soft RoCE may report one again when the carrier is back.
    let hca = guest.testhca("hostpast", 1, false);
    // The recorder does not fill a disk, and the guest's own is small.
    guest.must("mkdir -p /tmp/past && mount -t tmpfs -o size=1g past /tmp/past");
    let watch = Watch::each("1h", "hostpast", &["--history.file=/tmp/past/history.db"]);
    watch.wait_heard();
    // One that is over before it is read.
    hca.event(PORT_ERROR, 1);
    hca.event(PORT_ACTIVE, 1);
    watch.wait_value(LOSSES, &[], 1);
    let changes = [(1, PORT_ERROR, "port_error"), (4, PORT_ACTIVE, "port_active")];
    let [down_from, up_from] = changes.map(|(state, event, name)| {
        // Whole seconds: all that the guest's date knows.
        let from: f64 = guest.must("date +%s").trim().parse().unwrap();
        hca.set(1, "state", state);
        hca.event(event, 1);
        watch.wait_value(STATE, &[], state.into());
        // A read may see the state before the event arrives.
        watch.wait_value("infiniband_port_events_total", &[("event", name)], 2);
        from
    });
    let always = "from=2000-01-01T00:00:00Z&to=2100-01-01T00:00:00Z";
    let path = format!("/api/v1/history/events?{always}&kind=link_down&kind=link_up&kind=flap");
    let events = wait_until(LIMIT, "the last event in the history", || {
        let page = watch.exporter.get(&path, &[]).text().to_owned();
        let page: serde_json::Value = serde_json::from_str(&page).ok()?;
        let events = page["events"].as_array()?.clone();
        (events.last()?["kind"] == "link_up").then_some(events)
    });
    let last = |kind: &str| {
        let event = events.iter().rfind(|event| event["kind"] == kind).unwrap();
        assert_eq!((&event["fabric"], &event["port"]), (&"host".into(), &1.into()), "{event}");
        let at = humantime::parse_rfc3339(event["at"].as_str().unwrap()).unwrap();
        at.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
    };
    let now = watch.exporter.metrics();
    let told =
        |event| now.get("infiniband_port_event_timestamp_seconds", &[("event", event)]).unwrap();
    // Reads that follow the event begin later. One that began before it may have seen the new state first, after the
    // state was set.
    for (kind, event, from) in [
        ("link_down", "port_error", down_from),
        ("flap", "port_error", down_from),
        ("link_up", "port_active", up_from),
    ] {
        let at = last(kind);
        assert!(at < told(event) + 0.01, "{kind} after {}: {events:?}", told(event));
        assert!(at >= from, "{kind} before {from}: {events:?}");
    }
    let flaps = events.iter().filter(|event| event["kind"] == "flap");
    assert_eq!(flaps.count(), 2, "{events:?}");
}

/// Removing a device takes the guest milliseconds; one that waits for an open file would never end.
const REMOVAL_LIMIT: u32 = 10;

#[test]
fn removed_soft_roce_is_released_and_monitored_again() {
    let (watch, rxe) = start_on_events("hostgone");
    let (guest, netdev) = (Guest::get(), rxe.netdev());
    for removals in 1..=2 {
        guest.must(&format!("timeout {REMOVAL_LIMIT} rdma link del hostgone"));
        watch.wait_value("infiniband_device_up", &[], 0);
        // No event reports it.
        watch.wait_value(LOSSES, &[], removals);
        guest.must(&format!("rdma link add hostgone type rxe netdev {netdev}"));
        watch.wait_heard();
        watch.wait_value(STATE, &[], 4);
    }
    assert_eq!(watch.exporter.metrics().get_u64(LOSSES, &[]), Some(2), "one for each removal");
}

#[test]
fn driver_unload_is_reported_and_not_blocked() {
    let (watch, hca) = watched("hostfatal", 1, false);
    watch.wait_heard();
    let guest = Guest::get();
    guest.must(&format!(
        "timeout {REMOVAL_LIMIT} sh -c 'echo del hostfatal >/sys/module/testhca/parameters/ctl'"
    ));
    watch.wait_value("infiniband_port_events_total", &[("event", "device_fatal")], 1);
    watch.wait_value("infiniband_device_up", &[], 0);
    watch.wait_value(LOSSES, &[], 1);
    guest.must("testhca add hostfatal ports 1");
    watch.wait_heard();
    watch.wait_value(STATE, &[], 4);
    assert_eq!(
        watch.exporter.metrics().get_u64(LOSSES, &[]),
        Some(1),
        "counted once, by event and by read"
    );
    drop(hca);
}

#[test]
fn hanging_counters_cost_no_other_value_and_hanging_device_no_other_device() {
    let guest = Guest::get();
    let (sick, well) = (guest.testhca("hostsick", 1, false), guest.testhca("hostwell", 1, false));
    let watch = Watch::start("hostsick|hostwell", &["--host.error-backoff=1s"]);
    let of = |device| [("device", device)];
    let (up, hw) = ("infiniband_device_up", "infiniband_hw_out_of_sequence_total");
    let symbol_errors = "infiniband_port_symbol_errors_total";
    watch.wait_value(hw, &of("hostsick"), 0);
    // The kernel holds a lock for all counters of the driver: the first read blocks, and no other is tried.
    sick.set(1, "hwhang", 1);
    watch.wait("the driver's counters to go", |now| {
        now.get(hw, &of("hostsick")).is_none().then_some(())
    });
    sick.counter(1, "symbol_error", 5);
    watch.wait_value(symbol_errors, &of("hostsick"), 5);
    let now = watch.exporter.metrics();
    assert_eq!(now.get(up, &of("hostsick")), Some(1.0));
    assert_eq!(now.get(STATE, &of("hostsick")), Some(4.0));
    // With too many reads that block, the device is left alone.
    sick.set(1, "pmahang", 1);
    watch.wait_value(up, &of("hostsick"), 0);
    well.counter(1, "symbol_error", 77);
    watch.wait_value(symbol_errors, &of("hostwell"), 77);
    let now = watch.exporter.metrics();
    assert_eq!(now.get(STATE, &of("hostsick")), None, "values that are not read are absent");
    assert_eq!(now.get("fabric_exporter_collector_success", &[("collector", "host")]), Some(1.0));
    for hang in ["pmahang", "hwhang"] {
        sick.set(1, hang, 0);
    }
    watch.wait_value(up, &of("hostsick"), 1);
    watch.wait_value(STATE, &of("hostsick"), 4);
    watch.wait_value(hw, &of("hostsick"), 0);
    watch.wait_value("fabric_exporter_device_unreadable_files", &of("hostsick"), 0);
    assert_eq!(watch.exporter.log().matches("device hangs").count(), 1, "{}", watch.exporter.log());
}

#[test]
fn excluded_device_is_not_opened() {
    let guest = Guest::get();
    let (_left, _seen) = (guest.testhca("hostleft", 1, false), guest.testhca("hostseen", 1, false));
    let watch = Watch::start("hostleft|hostseen", &["--host.device-exclude=hostleft"]);
    watch.wait_heard();
    let held = guest.must(&format!(
        "for fd in /proc/{}/fd/*; do case $(readlink $fd) in
            /dev/infiniband/uverbs*) cat /sys/class/infiniband_verbs/$(basename $(readlink $fd))/ibdev;;
            */infiniband/*) readlink $fd;;
        esac; done",
        watch.exporter.pid()
    ));
    assert!(held.contains("hostseen") && !held.contains("hostleft"), "{held}");
    assert_eq!(watch.exporter.metrics().all("infiniband_device_up").count(), 1);
}

#[test]
fn interfaces_are_exported_with_their_ports() {
    let guest = Guest::get();
    let (ib, eth) = (guest.testhca("hostipoib", 2, false), guest.testhca("hostroce", 1, true));
    let watch = Watch::start("hostipoib|hostroce", &[]);
    let (first, second, roce) = (ib.netdev(1), ib.netdev(2), eth.netdev(1));
    let of = |netdev: &'static str| [("netdev", netdev)];
    let [first, second, roce] = [first, second, roce].map(|name| of(name.leak()));
    let datagram = "infiniband_netdev_ipoib_datagram";
    watch.wait_value(datagram, &first, 1);
    let port = |labels: &[(&str, &str)]| {
        let now = watch.exporter.metrics();
        now.sample("infiniband_netdev_info", labels).unwrap().labels["port"].clone()
    };
    assert_eq!([port(&first), port(&second), port(&roce)], ["1", "2", "1"]);
    let name = second[0].1;
    guest.must(&format!("ip link set {name} mtu 2044; echo connected >/sys/class/net/{name}/mode"));
    watch.wait_value("infiniband_netdev_mtu_bytes", &second, 2044);
    watch.wait_value(datagram, &second, 0);
    // Ethernet has no such mode, and has its own statistics.
    assert_eq!(watch.exporter.metrics().get(datagram, &roce), None);
    eth.ethtool(1, "rx_prio3_pause", 5);
    eth.ethtool(1, "rx_corrected_bits_phy", 1 << 33);
    let pause = "infiniband_netdev_priority_receive_pause_frames_total";
    watch.wait_value(pause, &[("priority", "3"), roce[0]], 5);
    assert_eq!(watch.exporter.metrics().get(pause, &[("priority", "2"), roce[0]]), Some(0.0));
    eth.set(1, "state", 1);
    watch.wait_value("infiniband_netdev_up", &roce, 0);
}

/// Offset of a byte of an upper page in the memory of [`TestHca::module`].
const fn upper(page: usize, at: usize) -> usize {
    128 + page * 128 + (at - 128)
}

#[test]
fn module_is_read_as_by_ethtool() {
    let hca = Guest::get().testhca("hostmodule", 1, true);
    for (at, bytes) in [
        // QSFP28: 42.5 degrees, 3.3 V, 0.5 mW and 10 microwatts received, 6 mA, 1 mW transmitted.
        (0, &[0x11][..]),
        (22, &[0x2a, 0x80, 0, 0, 0x80, 0xe8]),
        (34, &[0x13, 0x88, 0, 0x64, 0x13, 0x88, 0x13, 0x88]),
        (42, &[0x0b, 0xb8, 0x0b, 0xb8, 0x0b, 0xb8, 0x0b, 0xb8]),
        (50, &[0x27, 0x10, 0x27, 0x10, 0x27, 0x10, 0x27, 0x10]),
        (upper(0, 128), &[0x11, 0, 0x0c]),
        (upper(0, 147), &[0x40]),
        (upper(0, 148), b"Mellanox        "),
        (upper(0, 168), b"MMA1B00-C100D   A2"),
        (upper(0, 186), &[0x42, 0x68]),
        (upper(0, 196), b"MT2012FT01234   "),
        (upper(0, 220), &[0x0c]),
        (upper(3, 128), &[0x4b, 0, 0, 0]),
        (upper(3, 176), &[0x6c, 0xd2, 0x02, 0x8a]),
        (upper(3, 192), &[0x6c, 0xd2, 0x02, 0x8a]),
    ] {
        hca.module(1, at, bytes);
    }
    let watch = Watch::start(hca.name(), &["--host.modules"]);
    let info = "infiniband_module_info";
    let labels =
        watch.wait("a module", |now| now.all(info).next().map(|(labels, _)| labels.clone()));
    let text = Guest::get().must(&format!("ethtool -m {}", hca.netdev(1)));
    let of_ethtool = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let line = lines.find(|(of, _)| of.trim() == name);
        line.unwrap_or_else(|| panic!("no {name} in {text}")).1.trim().to_owned()
    };
    for (label, name) in [
        ("vendor", "Vendor name"),
        ("part_number", "Vendor PN"),
        ("serial_number", "Vendor SN"),
        ("revision", "Vendor rev"),
    ] {
        assert_eq!(labels[label], of_ethtool(name), "{label}");
    }
    assert_eq!((&*labels["form_factor"], &*labels["device"]), ("QSFP28", hca.name()));
    let now = watch.exporter.metrics();
    let number = |text: &str| -> f64 { text.split_whitespace().next().unwrap().parse().unwrap() };
    let dbm = |text: &str| number(text.split_once('/').unwrap().1);
    let lane = [("lane", "1")];
    for (metric, labels, told) in [
        (
            "infiniband_module_temperature_celsius",
            &[][..],
            number(&of_ethtool("Module temperature")),
        ),
        (
            "infiniband_module_temperature_alarm_celsius",
            &[],
            number(&of_ethtool("Module temperature high alarm threshold")),
        ),
        ("infiniband_module_voltage_volts", &[], number(&of_ethtool("Module voltage"))),
        (
            "infiniband_module_rx_power_dbm",
            &lane,
            dbm(&of_ethtool("Rcvr signal avg optical power(Channel 2)")),
        ),
        (
            "infiniband_module_tx_power_dbm",
            &lane,
            dbm(&of_ethtool("Transmit avg optical power (Channel 2)")),
        ),
        (
            "infiniband_module_tx_bias_amperes",
            &lane,
            number(&of_ethtool("Laser tx bias current (Channel 2)")) / 1_000.0,
        ),
    ] {
        let found = now.get(metric, labels).unwrap_or_else(|| panic!("no {metric}"));
        assert!((found - told).abs() < 0.01, "{metric}: {found}, ethtool: {told}");
    }
    let page = watch.exporter.get("/host", &[]);
    let page = page.text();
    assert!(page.contains("MMA1B00-C100D") && page.contains("rx -3.0, -20.0"), "{page}");
    // A module that is pulled is no longer reported.
    hca.module(1, 0, &[0]);
    hca.set(1, "state", 1);
    watch.wait("no module", |now| now.all(info).next().is_none().then_some(()));
}
