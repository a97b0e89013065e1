//! Sweeps over simulated fabrics, whose devices respond like observed real ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod clear;
mod counter_sources;
mod counting;
mod forwarding;
mod planes;
mod plans;
mod state_tables;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::clear::CounterClearing;
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_mad::counter::Attribute;
use ib_mad::fec::Fec;
use ib_mad::pma::{DetailPolicy, OptionalCounters};
use ib_mad::{Counter, Lid, Moment};
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::{MadTransport, OutgoingMad};

use plans::{assembled, run_plan, swept};

const DETAILS: OptionalCounters = OptionalCounters { details: DetailPolicy::EachSweep, fec: false };
const FEC: OptionalCounters = OptionalCounters { details: DetailPolicy::Never, fec: true };

#[test]
fn simulated_fabric_reports_fec_modes_and_ticks() {
    let text = "{fabric: {fat-tree: {hosts: 8, radix: 8}}, traffic: {pattern: none}}";
    let scenario = Scenario::parse("test", text).unwrap().resolve(&Overrides::default()).unwrap();
    let local_port = scenario.local_ports[0];
    let time = SimClock::Virtual { began: std::time::SystemTime::UNIX_EPOCH };
    let mut transport = SimTransport::new(share(Simulation::new(scenario)), local_port, time);
    let fabric = assembled(&mut transport);
    let swept = swept(&mut transport, &fabric, &mut AgentCache::new(FEC));
    let snapshot = &swept.snapshot;
    for port in fabric.port_indexes() {
        let linked = fabric.port(port).peer.is_some();
        let mode = snapshot.fec[port];
        assert_eq!(mode, linked.then_some(Fec::ReedSolomon), "{:?}", fabric.port_key(port));
        let read = snapshot.reading(port).and_then(|it| it.get(Counter::FecCorrectedBlocks));
        assert_eq!(read.is_some(), linked, "links of this speed have it");
    }
    for node in fabric.node_indexes() {
        assert_eq!(snapshot.ticks[node], Some(7), "Quantum-2 and ConnectX-7 alike");
    }
}
