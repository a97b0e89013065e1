//! How often a sweep and its evaluation allocate: for each node, and not for each request or port.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use allocation_counter::{measure, opt_out};
use ib_fabric::Fabric;
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::sweep::{Sweep, SweepResult};
use ib_fabric::names::Naming;
use ib_health::LinkEvaluator;
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_mad::pma::{DetailPolicy, OptionalCounters};
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::{QueryPlan, run};
use ib_umad::stats::MadOutcome;
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};

/// The allocations of the simulated devices do not count.
struct Uncounted(SimTransport);

fn uncounted<T>(run: impl FnOnce() -> T) -> T {
    let mut result = None;
    opt_out(|| result = Some(run()));
    result.unwrap()
}

impl MadTransport for Uncounted {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn anchor(&self) -> Anchor {
        self.0.anchor()
    }

    fn local_port(&self) -> LocalPort {
        uncounted(|| self.0.local_port())
    }

    fn refresh(&mut self) {
        uncounted(|| self.0.refresh());
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        uncounted(|| self.0.send(outgoing))
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        uncounted(|| self.0.receive(until))
    }
}

fn run_plan(transport: &mut Uncounted, client: &mut MadClient, plan: &mut impl QueryPlan) {
    run(plan, client, transport, &AtomicBool::new(false)).unwrap();
}

#[test]
fn sweeps_do_not_allocate_for_each_request_nor_evaluations_for_each_port() {
    let scenario = "{fabric: {fat-tree: {levels: 3, hosts: 168, radix: 16, down: 8, up: 8}}, \
                    traffic: {load: 20%}}";
    let scenario = Scenario::parse("test", scenario).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let local_port = story.local_ports[0];
    let time = SimClock::Virtual { began: SystemTime::UNIX_EPOCH };
    let mut transport =
        Uncounted(SimTransport::new(share(Simulation::new(story)), local_port, time));
    let mut client = MadClient::new(SendConfig::default());
    let mut discovery = Discovery::new(Arc::default(), transport.local_port().guid, HashSet::new());
    run_plan(&mut transport, &mut client, &mut discovery);
    let now = transport.now();
    let fabric = Fabric::assemble(discovery.finish().fabric, &Naming::default(), now, None);
    let fabric = Arc::new(fabric);
    let all = OptionalCounters { details: DetailPolicy::EachSweep, fec: true };
    let mut agents = AgentCache::new(all);
    let mut evaluator = LinkEvaluator::default();
    for sweep in 1..=4 {
        let due = Moment(15_000_000_000 * sweep);
        while transport.now() < due {
            transport.receive(due).unwrap();
        }
        let sent = client.stats().total(MadOutcome::Answered);
        let mut swept: Option<SweepResult> = None;
        let swept_in = measure(|| {
            let mut sweep = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
            run_plan(&mut transport, &mut client, &mut sweep);
            swept = Some(sweep.finish());
        });
        let swept = swept.unwrap();
        let evaluated_in = measure(|| {
            evaluator.evaluate(swept.snapshot);
        });
        let mads = client.stats().total(MadOutcome::Answered) - sent;
        let (swept_in, evaluated_in) = (swept_in.count_total, evaluated_in.count_total);
        assert!(mads > 5_000 && evaluated_in <= 20, "{evaluated_in} of the evaluation");
        // 1,700 of 5,279 MADs: some for each of the 231 nodes. The first sweep learns what they can.
        assert!(sweep == 1 || 2 * swept_in < mads, "sweep {sweep}: {swept_in} of {mads} MADs");
    }
}
