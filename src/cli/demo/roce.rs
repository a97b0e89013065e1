//! A RoCE device whose counters follow a simple story: steady traffic, and from some moment on a PFC storm. It is in no
//! simulated fabric: its counters are rates multiplied by times.

use std::sync::Arc;
use std::time::Duration;

use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::{Counter, Guid, Moment, Reading};
use rdma_host::model::{Device, DeviceInfo, EthernetValue, Netdev, Port, PortKind, ethernet};

use super::mlx5::{hw, mlx5};

/// The RDMA payload of a packet, and the packet on the wire.
const PAYLOAD: u64 = 4096;
const PACKET: f64 = 4166.0;

/// What happens per second, before and in a storm. The host stops its switch for 82% of the time: then at most 18% of
/// 12.5 GB/s arrive. Each pause lasts 40 µs on average. Packets wait in the switch, which marks them with ECN, and this
/// host answers some of the marks with CNPs.
const RATES: [(&str, [f64; 2]); 10] = [
    ("sent_bytes", [1.5e9, 1.5e9]),
    ("received_bytes", [6.0e9, 2.1e9]),
    ("tx_prio3_pause", [2.0, 20_500.0]),
    ("tx_prio3_pause_duration", [80.0, 820_000.0]),
    ("rx_prio3_pause", [0.5, 0.5]),
    ("rx_prio3_pause_duration", [20.0, 20.0]),
    ("rx_prio3_pause_transition", [0.5, 0.5]),
    ("np_ecn_marked_roce_packets", [40.0, 42_000.0]),
    ("np_cnp_sent", [20.0, 12_400.0]),
    ("rp_cnp_handled", [15.0, 15.0]),
];

/// Counters that stay at 0, which `ethtool -S` shows nevertheless.
const ZEROS: [&str; 7] = [
    "rx_pause_ctrl_phy",
    "tx_pause_ctrl_phy",
    "tx_pause_storm_warning_events",
    "tx_pause_storm_error_events",
    "rx_prio3_discards",
    "rx_crc_errors_phy",
    "link_down_events_phy",
];

/// The device.
pub struct Roce {
    name: Arc<str>,
    description: String,
    storm: Option<Duration>,
}

impl Roce {
    /// One that pauses its switch from some time on.
    pub fn new(host: &str, name: &str, storm: Option<Duration>) -> Self {
        Roce { name: name.into(), description: format!("{host} {name}"), storm }
    }

    /// What was counted until a moment.
    fn count(&self, what: &str, now: Moment) -> u64 {
        let all = now.since(Moment::default());
        let storm = self.storm.map_or(Duration::ZERO, |from| all.saturating_sub(from));
        let rates = RATES.iter().find(|(name, _)| *name == what);
        let [calm, stormy] = rates.map_or([0.0; 2], |(_, rates)| *rates);
        #[expect(clippy::cast_sign_loss, reason = "rates and times are not negative")]
        let count =
            (calm * all.saturating_sub(storm).as_secs_f64() + stormy * storm.as_secs_f64()) as u64;
        count
    }

    /// A ConnectX-6 Dx at 100 Gb/s, as its kernel exposes it.
    pub fn device(&self, now: Moment) -> Device {
        let info = DeviceInfo {
            guid: Some(Guid(0x0c42_a103_00b7_0000)),
            system_guid: Some(Guid(0x0c42_a103_00b7_0000)),
            description: self.description.clone(),
            firmware: "22.43.1014".into(),
            board: "MT_0000000359".into(),
            hca_type: "MT4125".into(),
            ..DeviceInfo::default()
        };
        mlx5(Arc::clone(&self.name), u64::MAX, info, self.port(now), 58.0)
    }

    fn port(&self, now: Moment) -> Port {
        let mut reading = Reading::empty(now);
        for (counter, bytes, unit) in [
            (Counter::XmitData, "sent_bytes", 4),
            (Counter::RcvData, "received_bytes", 4),
            (Counter::XmitPkts, "sent_bytes", PAYLOAD),
            (Counter::RcvPkts, "received_bytes", PAYLOAD),
        ] {
            reading.set(counter, self.count(bytes, now) / unit);
        }
        let counters = ["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled"];
        let counters = counters.map(|file| (file, self.count(file, now)));
        let zeros = ["out_of_sequence", "packet_seq_err", "rp_cnp_ignored"].map(|file| (file, 0));
        Port {
            number: 1,
            kind: PortKind::Physical,
            at: now,
            link_layer: "Ethernet".into(),
            state: Some(PortState::Active),
            physical_state: Some(PhysicalState::LinkUp),
            rate: Some(bytes_per_second(Width::X2, Speed::Hdr)),
            width: Some(Width::X2),
            speed: Some(Speed::Hdr),
            lid: None,
            sm_lid: None,
            reading,
            hw: hw(counters.into_iter().chain(zeros)),
            cm: None,
            netdevs: vec![Netdev {
                name: "ens8f0np0".into(),
                is_admin_up: Some(true),
                carrier: Some(true),
                operstate: "up".into(),
                mtu: Some(9000),
                carrier_changes: Some(1),
                ethernet: self.statistics(now),
                ..Netdev::default()
            }],
        }
    }

    /// What `ethtool -S` shows.
    fn statistics(&self, now: Moment) -> Vec<EthernetValue> {
        let on_wire = |payload: &str| self.count(payload, now) as f64 / PAYLOAD as f64;
        let mut values: Vec<(String, u64)> = Vec::new();
        for (way, bytes) in [("tx", "sent_bytes"), ("rx", "received_bytes")] {
            let packets = on_wire(bytes);
            for (what, count) in [
                ("bytes_phy", packets * PACKET),
                ("packets_phy", packets),
                ("prio3_bytes", packets * PACKET),
                ("prio3_packets", packets),
                ("vport_rdma_unicast_bytes", packets * PACKET),
                ("vport_rdma_unicast_packets", packets),
            ] {
                #[expect(clippy::cast_sign_loss, reason = "counts are not negative")]
                values.push((format!("{way}_{what}"), count as u64));
            }
        }
        let counted = RATES.iter().map(|(name, _)| ((*name).to_owned(), self.count(name, now)));
        values.extend(counted.chain(ZEROS.map(|name| (name.to_owned(), 0))));
        // The others are no statistics of Ethernet.
        let known = values.into_iter().filter_map(|(name, value)| {
            Some(EthernetValue { stat: ethernet::find("mlx5_core", &name)?, value })
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storm_pauses_most_of_the_time() {
        let roce = Roce::new("gpu-0", "mlx5_8", Some(Duration::from_secs(120)));
        let at = |seconds| Moment::default() + Duration::from_secs(seconds);
        let grown = |what, from, to| roce.count(what, at(to)) - roce.count(what, at(from));
        let pause = "tx_prio3_pause_duration";
        assert_eq!((grown(pause, 0, 60), grown(pause, 60, 120)), (4800, 4800));
        assert_eq!(grown(pause, 120, 130), 8_200_000, "in microseconds");
        let none = Roce::new("gpu-0", "mlx5_8", None);
        assert_eq!(none.count(pause, at(1000)), 80_000);
        // What arrives fits into the rest of the time.
        let share = grown("received_bytes", 120, 130) as f64 / 12.5e10;
        assert!(share < 0.18, "{share}");
        let device = roce.device(at(200));
        let netdev = &device.ports[0].netdevs[0];
        // All but the two of bytes and the three of hw_counters; and twelve of traffic.
        assert_eq!(netdev.ethernet.len(), RATES.len() - 5 + ZEROS.len() + 12);
        assert!(device.ports[0].hw.names.iter().all(|name| name.row.is_some()));
    }
}
