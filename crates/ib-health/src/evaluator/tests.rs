mod cleared;
mod dumps;
mod maintenance;
mod planes;
mod repeated_flaps;
mod sizes;

use std::time::{Duration, SystemTime};

use super::*;
use crate::settings::NodeSelector;
use crate::verdict::Repair;
use crate::{RateReference, Reason, Verdict, explain};
use ib_fabric::hardware::ReadAt;
use ib_fabric::testing::{end, fabric, found};
use ib_mad::Reading;
use ib_mad::node::PortRole;
use ib_mad::port_event::PortEventKind;
use ib_mad::port_state::testing::up;
use ib_mad::port_state::{PortState, PortStatus};
use ib_mad::rate::{Speed, Width};
use ib_mad::register::{LANES, Module, monitor};

/// Switch 1 with host 2 at its port 1.
fn pair(connected: bool) -> Arc<Fabric> {
    let nodes = || vec![found(1, NodeKind::Switch, 2), found(2, NodeKind::Ca, 1)];
    let whole = fabric(nodes(), &[(end(1, 1), end(2, 1))], None);
    Arc::new(if connected { whole } else { fabric(nodes(), &[], Some((&whole, Moment(0)))) })
}

/// The most that SymbolErrorCounter has.
const FULL_SYMBOLS: u64 = 65_535;

/// A fabric that is swept each 15 s; a sweep takes 4 s.
struct Scenario {
    evaluator: LinkEvaluator,
    fabric: Arc<Fabric>,
    sweep: u64,
    /// The state of the switch's port; `None` if it is not queried.
    near: Option<PortStatus>,
    /// The state of the host's port.
    far: Option<PortStatus>,
    /// LinkDowned of the switch and of the host.
    downed: [u64; 2],
    /// The host's field is full.
    full: bool,
    /// No node responds.
    silent: bool,
    /// The host does not respond.
    host_silent: bool,
    /// SymbolErrorCounter of the host: 16 bits that stick.
    symbols: u64,
    /// PortFECUncorrectableBlockCtr of the host, if that is read.
    blocks: Option<u64>,
    /// PortRcvErrors and PortRcvRemotePhysicalErrors of the host.
    received: [u64; 2],
    /// PortXmitData of the host, if that is read: words of four bytes.
    sent: Option<u64>,
    /// PortFECCorrectedSymbolCtr of the switch, if that is read: 32 bits that stick.
    corrected: Option<u64>,
    /// The modules of the switch and of the host, if they are read.
    modules: [Option<Module>; 2],
}

impl Scenario {
    fn new() -> Self {
        Scenario::counting([0; 2], false)
    }

    fn counting(downed: [u64; 2], full: bool) -> Self {
        let mut link = Scenario::unseen(downed, full);
        link.sweeps(2);
        link
    }

    /// Before the first sweep, with a link that runs as the switch's port says.
    fn running(width: Width, speed: Speed) -> Self {
        let mut link = Scenario::unseen([0; 2], false);
        link.near = Some(running(width, speed));
        link
    }

    fn unseen(downed: [u64; 2], full: bool) -> Self {
        Scenario {
            evaluator: LinkEvaluator::new(LimitTable::default()),
            fabric: pair(true),
            sweep: 0,
            near: None,
            far: None,
            downed,
            full,
            silent: false,
            host_silent: false,
            symbols: 0,
            blocks: None,
            received: [0; 2],
            sent: None,
            corrected: None,
            modules: [None; 2],
        }
    }

    fn began(&self) -> Moment {
        Moment::default() + Duration::from_secs(15 * self.sweep)
    }

    fn sweep(&mut self) -> LinkAssessment {
        self.evaluated().1.links.remove(0)
    }

    fn evaluated(&mut self) -> (Snapshot, Assessment) {
        self.sweep += 1;
        let anchor = Anchor { moment: self.began(), wall: SystemTime::UNIX_EPOCH };
        let mut snapshot = Snapshot::blank(Arc::clone(&self.fabric), anchor);
        snapshot.ended = snapshot.began + Duration::from_secs(4);
        for (nth, at) in [end(1, 1), end(2, 1)].into_iter().enumerate() {
            let mut reading = Reading::empty(snapshot.ended);
            reading.set(Counter::SymbolErrors, self.symbols * nth as u64);
            reading.set(Counter::LinkDowned, self.downed[nth]);
            if nth == 1 {
                if self.symbols == FULL_SYMBOLS {
                    reading.saturated.insert(Counter::SymbolErrors);
                }
                if let Some(blocks) = self.blocks {
                    reading.set(Counter::FecUncorrectableBlocks, blocks);
                }
                reading.set(Counter::RcvErrors, self.received[0]);
                reading.set(Counter::RcvRemotePhysicalErrors, self.received[1]);
                if let Some(sent) = self.sent {
                    reading.set(Counter::XmitData, sent);
                }
            }
            if let Some(corrected) = self.corrected.filter(|_| nth == 0) {
                let most = u64::from(u32::MAX);
                reading.set(Counter::FecCorrectedSymbols, corrected.min(most));
                if corrected >= most {
                    reading.saturated.insert(Counter::FecCorrectedSymbols);
                }
            }
            if self.full && nth == 1 {
                reading.saturated.insert(Counter::LinkDowned);
            }
            snapshot.readings[self.fabric.find(at).unwrap()] = Some(reading);
        }
        let hardware = Arc::make_mut(&mut snapshot.hardware);
        for (module, at) in self.modules.into_iter().zip([end(1, 1), end(2, 1)]) {
            let read = |value| Arc::new(ReadAt { value, at: snapshot.ended });
            hardware.port_mut(at).module = module.map(read);
        }
        for (status, at) in [(self.near, end(1, 1)), (self.far, end(2, 1))] {
            if let Some(status) = status {
                let port = self.fabric.find(at).unwrap();
                snapshot.statuses[port] = PortRead::Ok(status);
            }
        }
        if self.silent {
            snapshot.readings.fill(None);
            snapshot.silent.fill(true);
        }
        if self.host_silent {
            snapshot.readings[self.fabric.find(end(2, 1)).unwrap()] = None;
            snapshot.silent[self.fabric.node_by_guid(Guid(2)).unwrap()] = true;
        }
        self.evaluator.evaluate(snapshot)
    }

    /// An event of the host's port.
    fn event(&mut self, up: bool, at: Moment) -> bool {
        let kind = if up { PortEventKind::PortActive } else { PortEventKind::PortError };
        let at = Anchor { moment: at, wall: SystemTime::UNIX_EPOCH };
        let (guid, port) = (Some(Guid(2)), Some(1));
        self.evaluator.handle_event(&PortEvent { at, device: "mlx5_0".into(), guid, port, kind })
    }

    fn sweeps(&mut self, count: usize) -> LinkAssessment {
        for _ in 1..count {
            self.sweep();
        }
        self.sweep()
    }
}

/// A port of a switch that can do 4x NDR, as of one that is not split, and runs so.
fn running(width: Width, speed: Speed) -> PortStatus {
    let speeds = Speed::ALL.into_iter().filter(|speed| *speed <= Speed::Ndr).collect();
    PortStatus {
        width: Some(width),
        speed: Some(speed),
        widths_supported: Width::X4.up_to(),
        widths_enabled: Width::X4.up_to(),
        speeds_supported: speeds,
        speeds_enabled: speeds,
        ..up(1)
    }
}

fn polling() -> PortStatus {
    PortStatus {
        state: PortState::Down,
        physical_state: PhysicalState::Polling,
        width: None,
        speed: None,
        ..up(1)
    }
}

#[test]
fn node_is_down_since_the_first_sweep_without_it() {
    let mut link = Scenario::new();
    assert!(link.evaluated().1.nodes_down.is_empty());
    link.silent = true;
    let since = link.evaluated().0.began;
    link.sweeps(3);
    // Another discovery that does not find the link: the nodes are the same ones.
    link.fabric = pair(false);
    let down = link.evaluated().1.nodes_down;
    assert_eq!(down.into_values().collect::<Vec<_>>(), [since; 2]);
    link.silent = false;
    assert!(link.evaluated().1.nodes_down.is_empty());
    link.silent = true;
    let (snapshot, again) = link.evaluated();
    assert_eq!(again.nodes_down.into_values().next(), Some(snapshot.began));
}

#[test]
fn port_back_before_discovery_counts_one_loss() {
    let mut link = Scenario::new();
    link.near = Some(polling());
    link.sweep();
    link.fabric = pair(false);
    link.sweeps(2);
    let back = link.began() + Duration::from_secs(10);
    link.event(true, back);
    link.near = Some(up(1));
    link.downed = [1, 1];
    link.sweeps(2);
    link.fabric = pair(true);
    let found = link.sweeps(5);
    assert_eq!((found.up, found.outages.flaps), (Some(true), 1), "{:?}", found.outages);
}

#[test]
fn internal_link_has_no_verdict() {
    for (role, reason) in [
        (Some(PortRole::Fnm), Some(Reason::Internal)),
        (Some(PortRole::Router), Some(Reason::Internal)),
        (Some(PortRole::Other), None),
        (Some(PortRole::Cable), None),
        (None, None),
    ] {
        let mut link = Scenario::new();
        let mut fabric = (*link.fabric).clone();
        let port = fabric.find(end(1, 1)).unwrap();
        fabric.ports[port].role = role;
        link.fabric = Arc::new(fabric);
        // It is lost for 10 minutes, with thousands of errors.
        link.sweeps(50);
        link.symbols = 100_000;
        link.near = Some(polling());
        let lost = link.sweeps(40);
        let reasons: Vec<Reason> = lost.reasons.iter().map(|(reason, _)| reason).collect();
        match reason {
            Some(reason) => {
                assert_eq!((lost.verdict, lost.repair), (Verdict::Unknown, None), "{role:?}");
                assert_eq!((reasons, lost.up), (vec![reason], Some(false)), "{role:?}");
            }
            None => assert!(lost.verdict >= Verdict::Watch, "{role:?}: {reasons:?}"),
        }
    }
}

#[test]
fn huge_xmit_data_does_not_panic() {
    let mut link = Scenario::new();
    link.sent = Some(1);
    link.sweeps(2);
    link.sent = Some(u64::MAX - 1);
    assert_eq!(link.sweep().verdict, Verdict::Unknown);
}

#[test]
fn state_read_before_an_event_is_ignored() {
    let mut link = Scenario::new();
    // During the sweep: its states were read before.
    let lost = link.began() + Duration::from_secs(16);
    link.event(false, lost);
    link.near = Some(up(1));
    link.downed = [1, 1];
    assert_eq!(link.sweep().up, Some(false));
    link.near = Some(polling());
    link.sweeps(2);
    link.near = Some(up(1));
    let found = link.sweeps(5);
    assert_eq!((found.up, found.outages.flaps), (Some(true), 1), "{:?}", found.outages);
}

#[test]
fn full_link_downed_does_not_blame_the_node() {
    let mut link = Scenario::counting([0, 255], true);
    for _ in 0..3 {
        link.downed[0] += 1;
        link.sweeps(6);
    }
    let found = link.sweep();
    assert_eq!(found.outages.flaps, 3);
    let weight = |reason| found.reasons.weight(reason);
    assert_eq!(
        (weight(Reason::Flapping), weight(Reason::NodeFlapping)),
        (Some(Verdict::Bad), None)
    );
}

#[test]
fn link_waiting_for_subnet_manager_is_not_bad() {
    let mut link = Scenario::new();
    link.near = Some(PortStatus { state: PortState::Init, ..up(1) });
    let found = link.sweeps(60);
    assert_eq!(found.reasons.weight(Reason::Down), Some(Verdict::Watch));
    assert_eq!((found.verdict, found.repair), (Verdict::Watch, None));
    link.near = Some(polling());
    assert_eq!(link.sweep().verdict, Verdict::Bad);
}

#[test]
fn packets_marked_upstream_are_not_this_links_errors() {
    // Devices count them twice.
    let mut link = Scenario::new();
    link.received = [50, 50];
    let found = link.sweep();
    let weight = |reason| found.reasons.weight(reason);
    assert_eq!(
        (weight(Reason::UpstreamErrors), weight(Reason::ReceiveErrors)),
        (Some(Verdict::Ok), None)
    );
    let found = [[60, 52], [70, 54], [80, 55]].map(|received| {
        link.received = received;
        link.symbols += 1;
        link.sweep().reasons.weight(Reason::ReceiveErrors)
    });
    assert_eq!(found, [None, None, Some(Verdict::Watch)]);
}

#[test]
fn packets_without_symbol_errors_were_not_corrupted_here() {
    let mut link = Scenario::new();
    for _ in 0..60 {
        link.received[0] += 10;
        let found = link.sweep();
        assert_eq!(found.reasons.weight(Reason::ReceiveErrors), None, "{:?}", found.reasons);
    }
}

#[test]
fn unknown_good_end_does_not_keep_a_link_bad() {
    // It will never be known: the field is full, and is not cleared.
    let mut link = Scenario::counting([0, 255], true);
    link.sweeps(10);
    for _ in 0..10 {
        link.symbols += 1_000;
        link.sweep();
    }
    assert_eq!(link.sweep().verdict, Verdict::Bad);
    let found = link.sweeps(4 * 300);
    assert_eq!(found.verdict, Verdict::Unknown, "{:?}", found.reasons);
}

#[test]
fn repair_depends_on_what_modules_report() {
    use Repair::{Reseat, SwapCable, SwapTransceiver};
    let good = Module {
        kind: 2,
        rx_power: [600; LANES],
        tx_power: [1000; LANES],
        rx_power_high: 3000,
        rx_power_low: 100,
        tx_power_high: 3000,
        tx_power_low: 100,
        monitors: monitor::RX_POWER | monitor::TX_POWER,
        ..Module::default()
    };
    let weak = Module { tx_power: [50; LANES], ..good };
    let dark = Module { rx_power: [50; LANES], ..good };
    let copper = Module { kind: 3, monitors: 0, ..good };
    // The modules of the switch and of the host, which receives errors; and what is advised before and after the link
    // was plugged again.
    for (modules, first, second) in [
        ([None, None], Reseat, SwapTransceiver),
        ([Some(good), Some(good)], Reseat, SwapTransceiver),
        ([Some(weak), Some(good)], SwapTransceiver, SwapTransceiver),
        // Not the sender of what has errors.
        ([Some(good), Some(weak)], Reseat, SwapTransceiver),
        ([Some(good), Some(dark)], Reseat, SwapTransceiver),
        ([Some(dark), Some(dark)], SwapCable, SwapCable),
        ([Some(copper), Some(copper)], Reseat, SwapCable),
    ] {
        let mut link = Scenario::running(Width::X4, Speed::Ndr);
        link.modules = modules;
        let repair = |link: &mut Scenario| {
            for _ in 0..10 {
                link.symbols += 1_000;
                link.sweep();
            }
            link.sweep().repair
        };
        assert_eq!(repair(&mut link), Some(first), "{modules:?}");
        let up = link.near.replace(polling());
        link.downed = [1, 1];
        link.sweeps(2);
        link.near = up;
        link.sweeps(4);
        assert_eq!(repair(&mut link), Some(second), "{modules:?}");
    }
}

#[test]
fn replacement_ends_the_suspicion_with_its_own_word() {
    let module = |serial: u8| Some(Module { serial_number: [serial; 16], ..Module::default() });
    let replug = |link: &mut Scenario, serial: u8| {
        let up = link.near.replace(polling());
        link.downed = link.downed.map(|downed| downed + 1);
        link.sweeps(2);
        (link.near, link.modules) = (up, [module(serial); 2]);
        link.sweeps(4)
    };
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    link.modules = [module(b'A'); 2];
    link.sweeps(2);
    for _ in 0..3 {
        replug(&mut link, b'A');
    }
    // It is bad by its flaps, and has errors; what was tried did not help.
    for _ in 0..10 {
        link.symbols += 1_000;
        link.sweep();
    }
    let found = replug(&mut link, b'A');
    assert_eq!((found.verdict, found.repair), (Verdict::Bad, Some(Repair::SwapCable)));
    assert_eq!(found.reasons.weight(Reason::Replaced), None);
    let found = replug(&mut link, b'B');
    assert_eq!(found.verdict, Verdict::Unknown, "{found:?}");
    assert_eq!(found.reasons.weight(Reason::Flapping), None, "a replacement is no flap");
    assert_eq!((found.reasons.weight(Reason::Replaced), found.repair), (Some(Verdict::Ok), None));
    // 40 minutes without errors prove a BER below the limit; the other end's errors are new as well.
    let found = link.sweeps(4 * 45);
    assert_eq!(
        (found.verdict, found.reasons.worst()),
        (Verdict::Ok, Some((Reason::Replaced, Verdict::Ok)))
    );
    // The new one is judged as any other.
    let found = replug(&mut link, b'B');
    assert_eq!(found.reasons.weight(Reason::Flapping), Some(Verdict::Watch));
}

#[test]
fn link_state_is_unknown_while_nodes_are_silent() {
    let mut link = Scenario::new();
    assert_eq!(link.sweep().up, Some(true));
    link.silent = true;
    assert_eq!(link.sweep().up, None);
    link.silent = false;
    let found = link.sweep();
    assert_eq!((found.up, found.outages.flaps), (Some(true), 0));
}

/// The weight of a reason, by the word that metrics have for it.
fn weight(found: &LinkAssessment, label: &str) -> Option<Verdict> {
    let mut reasons = found.reasons.iter();
    reasons.find(|(reason, _)| reason.label() == label).map(|(_, weight)| weight)
}

#[test]
fn impossible_value_is_no_evidence() {
    let mut link = Scenario::new();
    link.sweeps(60);
    // As a ConnectX-7 was seen to report it.
    link.received[0] = u64::MAX - 39;
    let found = link.sweep();
    assert_eq!(weight(&found, "receive_errors"), None, "{:?}", found.reasons);
    assert_eq!(found.verdict, Verdict::Ok, "by its other counters");
    assert_eq!(weight(&found, "impossible_value"), Some(Verdict::Ok), "{:?}", found.reasons);
    // Back to sense: what was counted since the latest valid reading counts.
    let found = [10, 20, 30].map(|received| {
        link.received[0] = received;
        link.symbols += 1;
        weight(&link.sweep(), "receive_errors")
    });
    assert_eq!(found, [None, None, Some(Verdict::Watch)]);
}

#[test]
fn full_counter_of_symbol_errors_hides_nothing_where_blocks_are_counted() {
    for (blocks, verdict) in [(None, Verdict::Unknown), (Some(0), Verdict::Ok)] {
        let mut link = Scenario::running(Width::X4, Speed::Ndr);
        (link.symbols, link.blocks) = (FULL_SYMBOLS, blocks);
        let found = link.sweeps(200);
        assert_eq!(found.verdict, verdict, "{:?}", found.reasons);
        assert_eq!(weight(&found, "counter_saturated"), Some(verdict));
    }
    // The link exceeds its limit.
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    link.symbols = FULL_SYMBOLS;
    for sweep in 0..200 {
        link.blocks = Some(10 * sweep);
        link.sweep();
    }
    assert_eq!(link.sweep().verdict, Verdict::Bad);
}

#[test]
fn half_the_lanes_from_the_start_is_ok() {
    let mut link = Scenario::running(Width::X2, Speed::Edr);
    let found = link.sweeps(60);
    assert_eq!(found.verdict, Verdict::Ok, "{:?}", found.reasons);
    assert_eq!(weight(&found, "below_capability"), Some(Verdict::Ok));
}

#[test]
fn full_fec_counter_does_not_clear_a_link() {
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    let corrected = |link: &mut Scenario, sweeps: usize, a_sweep: u64| {
        for _ in 1..sweeps {
            link.corrected = Some(link.corrected.unwrap_or(0) + a_sweep);
            link.sweep();
        }
        link.sweep()
    };
    // Twice the limit: 2e-5 of the 6e12 bits of a sweep. After 36 sweeps 32 bits are full.
    let found = corrected(&mut link, 30, 120_000_000);
    assert_eq!((found.verdict, weight(&found, "pre_fec")), (Verdict::Watch, Some(Verdict::Watch)));
    let found = corrected(&mut link, 400, 120_000_000);
    assert_eq!((found.verdict, weight(&found, "pre_fec")), (Verdict::Watch, Some(Verdict::Watch)));
    assert_eq!(weight(&found, "counter_saturated"), Some(Verdict::Ok), "{:?}", found.reasons);
}

#[test]
fn lost_lanes_or_speed_are_reported() {
    for (from, to, reason, verdict) in [
        ((Width::X4, Speed::Ndr), (Width::X2, Speed::Ndr), "width", Verdict::Bad),
        ((Width::X4, Speed::Ndr), (Width::X4, Speed::Hdr), "speed", Verdict::Watch),
        ((Width::X2, Speed::Ndr), (Width::X2, Speed::Edr), "speed", Verdict::Watch),
        // One lane of four is no design.
        ((Width::X1, Speed::Edr), (Width::X1, Speed::Edr), "width", Verdict::Bad),
    ] {
        let mut link = Scenario::running(from.0, from.1);
        link.far = link.near;
        link.sweeps(60);
        link.near = Some(running(to.0, to.1));
        link.far = link.near;
        let found = link.sweeps(60);
        let result = (found.verdict, weight(&found, reason));
        assert_eq!(result, (verdict, Some(verdict)), "{from:?} {to:?}: {:?}", found.reasons);
    }
}

#[test]
fn rate_during_training_is_not_a_reference() {
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    link.far = link.near;
    link.sweep();
    link.near = Some(running(Width::X4, Speed::Hdr));
    link.far = link.near;
    let found = link.sweeps(60);
    assert_eq!(weight(&found, "speed"), None, "{:?}", found.reasons);
}

#[test]
fn slower_cable_after_maintenance_is_ok() {
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    link.far = link.near;
    link.sweeps(60);
    link.near = Some(running(Width::X4, Speed::Hdr));
    link.far = link.near;
    assert_eq!(weight(&link.sweeps(4), "speed"), Some(Verdict::Watch));
    let node = NodeSelector::new("0x0000000000000001");
    link.evaluator.maintenance =
        vec![MaintenanceWindow { node, port: Some(1), from: None, until: None }];
    link.sweeps(4);
    link.evaluator.maintenance = Vec::new();
    let found = link.sweeps(60);
    assert_eq!(weight(&found, "speed"), None, "{:?}", found.reasons);
    assert_eq!(found.verdict, Verdict::Ok);
}

#[test]
fn pre_fec_ratio_expires_when_not_read() {
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    for sweep in 0..30 {
        // Twice the limit.
        link.corrected = Some(120_000_000 * sweep);
        link.sweep();
    }
    assert_eq!(weight(&link.sweep(), "pre_fec"), Some(Verdict::Watch));
    link.corrected = None;
    // Two periods of 2 minutes.
    let found = link.sweeps(17);
    assert_eq!(weight(&found, "pre_fec"), None, "{:?}", found.reasons);
}

#[test]
fn fewer_faster_lanes_at_the_same_rate_are_ok() {
    let mut link = Scenario::running(Width::X4, Speed::Edr);
    link.far = link.near;
    link.sweeps(60);
    link.near = Some(running(Width::X2, Speed::Hdr));
    link.far = link.near;
    let found = link.sweeps(60);
    assert_eq!(found.verdict, Verdict::Ok, "{:?}", found.reasons);
}

#[test]
fn earlier_rate_is_ignored_after_enabled_rates_change() {
    let allowed = |widths, run: (Width, Speed)| {
        let status = PortStatus { widths_enabled: widths, ..running(run.0, run.1) };
        Some(status)
    };
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    link.far = link.near;
    link.sweeps(60);
    // LinkWidthEnabled is 2x: the link still runs as it did, until it trains.
    link.near = allowed(Width::X2.up_to(), (Width::X4, Speed::Ndr));
    assert_eq!(link.sweeps(4).verdict, Verdict::Ok);
    link.near = allowed(Width::X2.up_to(), (Width::X2, Speed::Ndr));
    link.far = Some(running(Width::X2, Speed::Ndr));
    let found = link.sweeps(120);
    assert_eq!((found.verdict, found.reference), (Verdict::Ok, None), "{:?}", found.reasons);
    // And it loses a lane of the two that it is allowed.
    link.near = allowed(Width::X2.up_to(), (Width::X1, Speed::Ndr));
    link.far = Some(running(Width::X1, Speed::Ndr));
    assert_eq!(link.sweeps(4).verdict, Verdict::Bad);
}

#[test]
fn impossible_symbol_errors_do_not_clear_a_bad_link() {
    let mut link = Scenario::new();
    link.sweeps(10);
    for _ in 0..10 {
        link.symbols += 1_000;
        link.sweep();
    }
    assert_eq!(link.sweep().verdict, Verdict::Bad);
    let known = std::mem::replace(&mut link.symbols, 1 << 63);
    let found = link.sweeps(4 * 30);
    assert_eq!(found.verdict, Verdict::Bad, "{:?}", found.reasons);
    assert_eq!(weight(&found, "impossible_value"), Some(Verdict::Unknown));
    assert_eq!(weight(&found, "insufficient_data"), None, "{:?}", found.reasons);
    // And of a good one nothing is known until there are valid values again.
    link.symbols = known;
    assert_eq!(link.sweeps(4 * 300).verdict, Verdict::Ok);
}

#[test]
fn retraining_with_full_counter_is_not_known_to_help() {
    let mut link = Scenario::running(Width::X4, Speed::Ndr);
    for sweep in 0..60 {
        link.corrected = Some(120_000_000 * sweep);
        link.sweep();
    }
    assert_eq!(weight(&link.sweep(), "pre_fec"), Some(Verdict::Watch));
    let up = link.near;
    link.near = Some(polling());
    link.downed = [1, 1];
    link.sweeps(2);
    link.near = up;
    let found = link.sweeps(60);
    let open = (weight(&found, "pre_fec"), weight(&found, "counter_saturated"));
    assert_eq!(open, (None, Some(Verdict::Unknown)), "{:?}", found.reasons);
    // It is cleared, and what is counted from then on is little.
    for sweep in 0..60 {
        link.corrected = Some(60_000 * sweep);
        link.sweep();
    }
    let found = link.sweep();
    assert_eq!(weight(&found, "counter_saturated"), None, "{:?}", found.reasons);
}

#[test]
fn event_is_assessed_without_a_sweep() {
    let mut link = Scenario::new();
    link.sweeps(60);
    let (snapshot, mut assessment) = link.evaluated();
    assert_eq!((assessment.links[0].verdict, assessment.links[0].up), (Verdict::Ok, Some(true)));
    let at = snapshot.ended + Duration::from_secs(3);
    assert!(!link.event(true, at), "it is up already");
    assert!(link.event(false, at));
    link.evaluator.reassess(&snapshot, &mut assessment, at + Duration::from_millis(1));
    let found = &assessment.links[0];
    assert_eq!((found.verdict, found.up), (Verdict::Watch, Some(false)));
    assert_eq!(found.outages.last_change, Some(at));
    let text = explain::reason(Reason::Down, found, &assessment, &snapshot);
    assert_eq!(text, "not Active: reported by a port after the sweep read its state");
    // The next sweep counts it once.
    assert!(link.event(true, at + Duration::from_secs(2)));
    link.downed = [1, 1];
    let found = link.sweeps(5);
    assert_eq!((found.up, found.outages.flaps), (Some(true), 1));
    assert_eq!(found.outages.down.most, Duration::from_secs(2));
}

#[test]
fn events_of_other_ports_change_nothing() {
    let mut link = Scenario::new();
    let at = Anchor { moment: link.began(), wall: SystemTime::UNIX_EPOCH };
    for (guid, port, kind) in [
        (Some(Guid(9)), Some(1), PortEventKind::PortError),
        (Some(Guid(2)), None, PortEventKind::PortError),
        (None, Some(1), PortEventKind::PortError),
        (Some(Guid(2)), Some(1), PortEventKind::GidChange),
    ] {
        let event = PortEvent { at, device: "mlx5_0".into(), guid, port, kind };
        assert!(!link.evaluator.handle_event(&event), "{event:?}");
    }
}

#[test]
fn traffic_is_a_rate_and_a_share_of_the_bandwidth() {
    let mut link = Scenario::new();
    link.far = Some(running(Width::X4, Speed::Ndr));
    link.sent = Some(0);
    link.sweep();
    // 25 GB/s for 15 s, in words: half of 4x NDR.
    link.sent = Some(25_000_000_000 * 15 / 4);
    let (snapshot, assessment) = link.evaluated();
    let [near, far] = [end(1, 1), end(2, 1)].map(|at| snapshot.fabric.find(at).unwrap());
    let tx = assessment.ports[far].tx.unwrap();
    assert!((tx.rate - 2.5e10).abs() < 1e6 && (tx.used - 0.5).abs() < 1e-3, "{tx:?}");
    // Neither a counter that was not read, nor a port without a known rate.
    assert_eq!((assessment.ports[far].rx, assessment.ports[near].tx), (None, None));
}
