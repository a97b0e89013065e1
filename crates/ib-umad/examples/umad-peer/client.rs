//! The exporter's transport, used as the collectors use it.

use std::net::Ipv6Addr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_mad::class_port_info::PmaCapabilities;
use ib_mad::{Class, Mad, Query, pma};
use ib_mad::{Lid, Moment, Reading, counter};
use ib_umad::client::MadClient;
use ib_umad::client::SendConfig;
use ib_umad::plan::{self, QueryPlan, RunError};
use ib_umad::stats::MadOutcome;
use ib_umad::umad::{PortChoice, Umad, UmadPort};
use ib_umad::{Address, GlobalRoute, MadTransport, QueuePair, Request, RequestError};
use process_clock::Clock;

use super::watched::Watched;
use super::{kernel, port};

/// Source and destination.
pub struct Args<'a> {
    pub sysfs: &'a Path,
    pub hca: &'a str,
    pub gid: Ipv6Addr,
    pub index: u8,
}

/// Long enough for an emulated machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// One try each, so that every outcome is that of the first request.
fn once(timeout: Duration) -> SendConfig {
    SendConfig { timeout, retries: 0, ..SendConfig::default() }
}

/// Runs a command, and prints the results.
pub fn run(args: &Args, what: &str) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stdout)
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .without_time()
        .init();
    match what {
        "subnet" => {
            let opened = Umad::open_first(
                args.sysfs,
                PortChoice { hca: Some(args.hca), ..PortChoice::default() },
                None,
                Clock::start(),
                &|_| None,
                None,
            );
            println!("subnet {}", opened.expect_err("RoCE has a subnet"));
        }
        "counters" => counters(&mut Session::open(args, once(PATIENCE))),
        "counters-of-old" => {
            kernel::forget_register_agent2();
            counters(&mut Session::open(args, once(PATIENCE)));
            Session::open(args, SendConfig { retries: 1, ..SendConfig::default() })
                .ask(port::SILENT, 1);
        }
        "many" => {
            Session::open(args, once(PATIENCE)).ask(port::QUICK, 200);
            let wide = SendConfig { gmp_window: 200, gmp_lid_window: 200, ..once(PATIENCE) };
            Session::open(args, wide).ask(port::SLOW, 200);
        }
        "silent" => {
            Session::open(args, once(Duration::from_millis(500))).ask(port::SILENT, 1);
            Session::open(args, SendConfig::default()).ask(port::SILENT, 4);
        }
        "late" => Session::open(args, SendConfig::default()).ask(port::LATE, 1),
        "twice" => Session::open(args, once(PATIENCE)).ask(port::TWICE, 10),
        "until-gone" => until_gone(&mut Session::open(args, once(PATIENCE))),
        _ => panic!("{what}: no such thing to do"),
    }
}

/// Reads what the agent supports, then the counters by which that is checked best.
fn counters(session: &mut Session) {
    let ask = |session: &mut Session, query| {
        let answers = session.run(vec![query]).expect("the device is there");
        answers.into_iter().next().expect("an outcome").expect("an answer")
    };
    let capabilities = PmaCapabilities::decode(&ask(session, pma::class_port_info()));
    println!("capabilities mask={:#06x} mask2={:#x}", capabilities.mask, capabilities.mask2);
    let mut reading = Reading::empty(Moment::default());
    let offer = pma::AgentProfile { capabilities, is_switch: true, ..pma::AgentProfile::default() };
    for page in pma::read_plan(&offer, pma::OptionalCounters::default()) {
        let answer = ask(session, pma::counters(page.attribute, port::QUICK));
        page.read(&answer, &mut reading);
    }
    for row in counter::TABLE {
        if let Some(value) = reading.get(row.counter) {
            println!("counter {} {value:#x}", row.ibta);
        }
    }
    session.report("counters");
}

/// Sends requests without end, with some open that are never answered.
fn until_gone(session: &mut Session) {
    println!("asking");
    let questions = || {
        let ports = [port::SILENT, port::QUICK, port::QUICK];
        ports.map(|port| pma::counters(counter::Attribute::PortCounters, port)).to_vec()
    };
    session.run(vec![pma::class_port_info()]).expect("the device is there");
    println!("answered");
    let broken = loop {
        if let Err(broken) = session.run(questions()) {
            break broken;
        }
    };
    println!("broken {broken}");
    // A caller that retries is not harmed either.
    let again = session.run(questions()).expect_err("the device is back");
    println!("again {again}");
}

/// An open port and the state of its traffic.
struct Session {
    transport: Watched,
    client: MadClient,
    to: Address,
}

impl Session {
    fn open(args: &Args, pace: SendConfig) -> Self {
        let mut ports = UmadPort::all(args.sysfs).into_iter();
        let port = ports.find(|port| port.hca == args.hca).expect("the device is there");
        let umad = Umad::open(args.sysfs, &port, &[Class::Performance], None, Clock::start(), None)
            .unwrap_or_else(|e| panic!("{e}"));
        println!("open {} {} {:?}", port.hca, port.port, port.link_layer);
        let to = Address::Global(GlobalRoute {
            lid: Lid(0),
            gid: args.gid,
            gid_index: args.index,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
        });
        Session { transport: Watched::new(umad), client: MadClient::new(pace), to }
    }

    /// Reads the classic counters of a port this many times, and prints the results.
    fn ask(mut self, port: u8, times: usize) {
        let began = self.transport.now();
        let query = pma::counters(counter::Attribute::PortCounters, port);
        let outcomes = self.run(vec![query; times]).expect("the device is there");
        let took = self.transport.now().since(began);
        let count = |failure| outcomes.iter().filter(|o| o.as_ref().err() == failure).count();
        let name = format!("port {port}");
        println!(
            "outcomes {name}: answered={} timed_out={} silent={} ms={} kernel_ms={}",
            outcomes.iter().filter(|outcome| outcome.is_ok()).count(),
            count(Some(&RequestError::TimedOut)),
            count(Some(&RequestError::Unresponsive)),
            took.as_millis(),
            self.transport.expired_at.since(began).as_millis(),
        );
        // Late and repeated responses would arrive now.
        let until = self.transport.now() + port::LATE_BY + Duration::from_millis(500);
        plan::drain_until(until, &mut self.client, &mut self.transport, &AtomicBool::new(false))
            .expect("the device is there");
        self.report(&name);
    }

    fn report(&self, name: &str) {
        let transport = &self.transport;
        println!(
            "wire {name}: answers={} expired={} expired_unknown={} open={} most_open={} upper={:x?}",
            transport.answers,
            transport.expired,
            transport.expired_unknown,
            transport.open.len(),
            transport.most_open,
            transport.upper,
        );
        let count = |outcome| self.client.stats().count(Class::Performance, outcome);
        let outcomes: Vec<String> = MadOutcome::ALL
            .iter()
            .map(|outcome| format!("{}={}", outcome.label(), count(*outcome)))
            .collect();
        println!("stats {name}: {}", outcomes.join(" "));
    }

    /// Sends all queries, and returns the outcome of each.
    fn run(&mut self, queries: Vec<Query>) -> Result<Vec<Result<Mad, RequestError>>, RunError> {
        let outcomes = vec![None; queries.len()];
        let mut walk = Asking { to: self.to, queries, asked: 0, outcomes };
        plan::run(&mut walk, &mut self.client, &mut self.transport, &AtomicBool::new(false))?;
        Ok(walk.outcomes.into_iter().map(|outcome| outcome.expect("an outcome")).collect())
    }
}

struct Asking {
    to: Address,
    queries: Vec<Query>,
    asked: usize,
    outcomes: Vec<Option<Result<Mad, RequestError>>>,
}

impl QueryPlan for Asking {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        let query = *self.queries.get(self.asked).filter(|_| qp == QueuePair::Qp1)?;
        self.asked += 1;
        Some((Request { to: self.to, query }, self.asked as u64 - 1))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, _: Moment) {
        let ended = &mut self.outcomes[tag as usize];
        assert!(ended.is_none(), "two outcomes of one question");
        *ended = Some(outcome.cloned());
    }
}
