//! Runs of query plans over a transport, for the unit tests, too.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ib_fabric::Fabric;
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::discovery::{Discovery, DiscoveryResult};
use ib_fabric::collect::sweep::{Sweep, SweepResult};
use ib_fabric::names::Naming;
use ib_mad::Moment;
use ib_umad::MadTransport;
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::{QueryPlan, run};

pub fn run_plan(transport: &mut impl MadTransport, plan: &mut impl QueryPlan) {
    let mut client = MadClient::new(SendConfig::default());
    run(plan, &mut client, transport, &AtomicBool::new(false)).unwrap();
}

pub fn discovered(transport: &mut impl MadTransport) -> DiscoveryResult {
    let planes = transport.local_port().planes;
    let mut discovery = Discovery::new(Arc::default(), None, HashSet::new()).from_planes(planes);
    run_plan(transport, &mut discovery);
    discovery.finish()
}

pub fn assembled(transport: &mut impl MadTransport) -> Arc<Fabric> {
    let found = discovered(transport).fabric;
    Arc::new(Fabric::assemble(found, &Naming::default(), Moment(0), None))
}

pub fn swept(
    transport: &mut impl MadTransport,
    fabric: &Arc<Fabric>,
    agents: &mut AgentCache,
) -> SweepResult {
    let mut sweep = Sweep::new(fabric, agents, transport.anchor(), true);
    run_plan(transport, &mut sweep);
    sweep.finish()
}
