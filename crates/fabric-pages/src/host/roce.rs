//! RoCE on `/host`: who pauses whom (PFC), and congestion notifications (CNPs), between the two latest readings.

use std::time::Duration;

use maud::{Markup, html};

use ib_mad::PortNumber;
use rdma_host::model::{Netdev, Port, ethernet, hw_counter};

use super::readings::{Readings, find};
use crate::components::{grouped, percent};
use fabric_api::address;

/// Above this share of the time, pauses are a storm, as for the alert RocePfcStorm.
const STORM: f64 = 0.5;

/// Pauses of one priority of an interface.
#[derive(Debug, PartialEq)]
pub(super) struct Pauses {
    netdev: String,
    priority: u8,
    /// Frames per second that the port sent and received.
    frames: [Option<f64>; 2],
    /// The share of the time that they stopped the switch, and this port; `None` if the driver does not report it.
    time: [Option<f64>; 2],
}

/// What a port did between two readings.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RocePort {
    pauses: Vec<Pauses>,
    /// CNPs sent and handled, and packets received with an ECN mark, per second.
    notifications: [Option<f64>; 3],
}

impl RocePort {
    /// From two readings of a host; `None` if the port does not count pauses.
    pub fn new([previous, latest]: Readings<'_>, device: &str, number: PortNumber) -> Option<Self> {
        let [(before, _), (now, _)] =
            [find(previous, device, number)?, find(latest, device, number)?];
        let seconds =
            Some(now.at.since(before.at)).filter(|it| *it > Duration::ZERO)?.as_secs_f64();
        let pauses = now.netdevs.iter().flat_map(|netdev| {
            let old = before.netdevs.iter().find(|old| old.name == netdev.name);
            let old = old.filter(|old| old.ethernet.len() == netdev.ethernet.len());
            old.into_iter().flat_map(move |old| pauses(old, netdev, seconds))
        });
        let pauses: Vec<_> = pauses.collect();
        let metrics = ["np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets"];
        let notifications = metrics.map(|metric| {
            let grown = hw(now, metric)?.checked_sub(hw(before, metric)?)?;
            Some(grown as f64 / seconds)
        });
        (!pauses.is_empty()).then_some(RocePort { pauses, notifications })
    }

    /// The priorities on which it pauses its switch for most of the time.
    pub fn storms(&self) -> impl Iterator<Item = &Pauses> {
        self.pauses.iter().filter(|it| is_storm(it.time[0]))
    }
}

fn is_storm(share: Option<f64>) -> bool {
    share.is_some_and(|it| it > STORM)
}

/// A counter in `hw_counters`, by its metric.
fn hw(port: &Port, metric: &str) -> Option<u64> {
    let has_metric = |row: usize| hw_counter::TABLE.get(row).is_some_and(|it| it.metric == metric);
    let place = port.hw.names.iter().position(|name| name.row.is_some_and(has_metric))?;
    *port.hw.values.get(place)?
}

/// The priorities of an interface that have counters of pauses.
fn pauses(before: &Netdev, now: &Netdev, seconds: f64) -> Vec<Pauses> {
    (0..8)
        .map(|priority| {
            let rate = |metric| {
                let [before, now] = [before, now].map(|it| statistic(it, metric, priority));
                Some(now?.checked_sub(before?)? as f64 / seconds)
            };
            // In microseconds.
            let share = |metric| Some((rate(metric)? / 1e6).min(1.0));
            let frames =
                [rate("priority_transmit_pause_frames"), rate("priority_receive_pause_frames")];
            let time =
                [share("priority_transmit_pause_seconds"), share("priority_receive_pause_seconds")];
            Pauses { netdev: now.name.to_string(), priority, frames, time }
        })
        .filter(|pauses| pauses.frames.iter().any(Option::is_some))
        .collect()
}

fn statistic(netdev: &Netdev, metric: &str, priority: u8) -> Option<u64> {
    let row = ethernet::TABLE.iter().position(|row| row.metric == metric)?;
    let stat = ethernet::StatId { row, index: Some(priority) };
    netdev.ethernet.iter().find(|value| value.stat == stat).map(|value| value.value)
}

/// Per second: few with a decimal place.
#[expect(clippy::cast_sign_loss, reason = "rates of growth are not negative")]
fn per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}/s") } else { format!("{}/s", grouped(rate.round() as u64)) }
}

/// Table and sentences of a port.
pub(super) fn section(roce: &RocePort) -> Markup {
    let frames = |rate: Option<f64>| rate.map(per_second);
    let share = |share: Option<f64>| share.map(|it| percent(it as f32));
    html! {
        @for storm in roce.storms() { p {
            strong { "PFC storm: " } "this port pauses its switch on priority " (storm.priority) " for "
            (percent(storm.time[0].unwrap_or_default() as f32)) " of the time ("
            a href=(address::runbook("RocePfcStorm")) { "runbook" } ")."
        } }
        table .stack {
            thead { tr {
                th scope="col" { "Interface" } th .n scope="col" { "PFC priority" }
                th .n scope="col" { "Pauses sent" } th .n scope="col" { "Switch paused" }
                th .n scope="col" { "Pauses received" } th .n scope="col" { "Port paused" }
            } }
            tbody { @for it in &roce.pauses { tr {
                td data-label="Interface" { (it.netdev) }
                td .n data-label="PFC priority" { (it.priority) }
                td .n data-label="Pauses sent" { @if let Some(it) = frames(it.frames[0]) { (it) } }
                td .n data-label="Switch paused" { @if let Some(text) = share(it.time[0]) {
                    @if is_storm(it.time[0]) { strong { (text) } } @else { (text) }
                } }
                td .n data-label="Pauses received" { @if let Some(it) = frames(it.frames[1]) { (it) } }
                td .n data-label="Port paused" { @if let Some(it) = share(it.time[1]) { (it) } }
            } } }
        }
        @if let [Some(sent), Some(handled), marked] = roce.notifications {
            p { "CNPs: " (per_second(sent)) " sent, " (per_second(handled)) " handled"
                @if let Some(marked) = marked { "; " (per_second(marked)) " packets with an ECN mark" } "." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::host::HostObservation;
    use ib_mad::Moment;
    use rdma_host::model::{EthernetValue, HwName, HwReading};
    use rdma_host::testing::{port, snapshot};

    /// A reading at a second, with milliseconds of sent pauses, pause frames and CNPs.
    fn read(second: u64, millis: u64, frames: u64, cnps: u64) -> HostObservation {
        let value = |string: &str, value| EthernetValue {
            stat: ethernet::find("mlx5_core", string).unwrap(),
            value,
        };
        let ethernet = vec![
            value("tx_prio3_pause", frames),
            value("tx_prio3_pause_duration", 1000 * millis),
            value("rx_prio3_pause", 7),
        ];
        let netdev =
            Netdev { name: "eth0".into(), operstate: "up".into(), ethernet, ..Netdev::default() };
        let name = |file: &str| HwName { file: file.into(), row: hw_counter::find(file) };
        let names = [name("np_cnp_sent"), name("rp_cnp_handled")].into();
        let at = Moment::default() + Duration::from_secs(second);
        let hw = HwReading { names, values: vec![Some(cnps), Some(5)] };
        let port = Port { at, hw, netdevs: vec![netdev], ..port(1) };
        let snapshot = Some(snapshot("mlx5_8", vec![port]));
        HostObservation { snapshot, ..HostObservation::default() }
    }

    #[test]
    fn storm_on_the_page_is_that_of_the_alert() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../alerts/hosts.rules.yml");
        let alerts = std::fs::read_to_string(file).unwrap();
        let (_, storm) = alerts.split_once("alert: RocePfcStorm").unwrap();
        let counter = "rate(infiniband_netdev_priority_transmit_pause_seconds_total[5m])";
        let expression = format!("{counter} > {STORM}");
        assert!(storm.lines().take(5).any(|line| line.trim() == expression), "{storm}");
    }

    #[test]
    fn pauses_are_the_growth_between_two_readings() {
        let (before, now) = (read(10, 100, 50, 0), read(20, 8_300, 250, 124_000));
        let roce = RocePort::new([&before, &now], "mlx5_8", 1).unwrap();
        let [Some(share), None] = roce.pauses[0].time else { panic!("{roce:?}") };
        assert!((share - 0.82).abs() < 1e-9, "{roce:?}");
        assert_eq!((roce.pauses.len(), roce.pauses[0].priority), (1, 3));
        assert_eq!(roce.pauses[0].frames, [Some(20.0), Some(0.0)]);
        assert_eq!(roce.notifications, [Some(12_400.0), Some(0.0), None]);
        let page = section(&roce).into_string();
        for says in ["PFC storm", "priority 3", "82%", "20/s", "12,400/s sent, 0.0/s handled."] {
            assert!(page.contains(says), "{says}: {page}");
        }
        // Not with a counter that was reset, or without a time.
        let reset = RocePort::new([&now, &read(30, 0, 0, 0)], "mlx5_8", 1).unwrap();
        assert_eq!(reset.pauses[0].frames, [None, Some(0.0)]);
        assert!(!section(&reset).into_string().contains("storm"));
        assert_eq!(RocePort::new([&now, &now], "mlx5_8", 1), None);
        assert_eq!(RocePort::new([&before, &now], "mlx5_0", 1), None);
    }
}
