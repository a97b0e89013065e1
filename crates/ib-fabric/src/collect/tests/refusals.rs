//! Nodes that refuse or drop performance management, or are gone: how many requests they get.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::testing;
use ib_mad::ids::PortNumber;

const ADAPTERS: u8 = 200;

/// Us at a row of four switches, with 200 hosts.
fn row_of_leaves() -> ScriptedTransport {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 64); 4]);
    kinds.extend([(CA, 1); ADAPTERS as usize]);
    let mut links = vec![((0, 1), (1, 64))];
    links.extend((1..4).map(|switch| ((switch, 63), (switch + 1, 62))));
    let port = |host: u8| -> PortNumber { host % 50 + 1 };
    links.extend(
        (0..ADAPTERS)
            .map(|host| ((1 + usize::from(host / 50), port(host)), (5 + usize::from(host), 1))),
    );
    ScriptedTransport::new(fabric(&kinds, &links))
}

/// Whether a GMP is for one of the hosts: LID 1 is ours, and 2 to 5 are the switches.
fn is_to_host(outgoing: &OutgoingMad) -> bool {
    !outgoing.class.is_smp() && outgoing.lid.0 > 5
}

/// A fabric whose hosts drop GMPs until `respond` is set, and the number of these GMPs.
struct Refusing {
    transport: ScriptedTransport,
    client: MadClient,
    fabric: Arc<Fabric>,
    agents: AgentCache,
    requests: Arc<AtomicUsize>,
    respond: Arc<AtomicBool>,
}

impl Refusing {
    /// `member`: a host that is a full member, and always responds.
    fn new(member: Option<Lid>) -> Self {
        let mut transport = row_of_leaves();
        let fabric = assembled(&mut transport);
        let (requests, respond) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, is_open) = (Arc::clone(&requests), Arc::clone(&respond));
        transport.reply = Box::new(move |outgoing| {
            if !is_to_host(outgoing) || Some(outgoing.lid) == member {
                return Reply::Answered(ROUND_TRIP);
            }
            count.fetch_add(1, Ordering::Relaxed);
            if is_open.load(Ordering::Relaxed) { Reply::Answered(ROUND_TRIP) } else { Reply::Lost }
        });
        let (client, agents) = (MadClient::new(SendConfig::default()), AgentCache::default());
        Refusing { transport, client, fabric, agents, requests, respond }
    }

    fn sweep(&mut self) -> SweepResult {
        let anchor = self.transport.anchor();
        let mut sweep = Sweep::new(&self.fabric, &mut self.agents, anchor, true);
        let stop = AtomicBool::new(false);
        run(&mut sweep, &mut self.client, &mut self.transport, &stop).unwrap();
        sweep.finish()
    }

    fn respond(&self, respond: bool) {
        self.respond.store(respond, Ordering::Relaxed);
    }

    /// The number of requests since the last call.
    fn requests(&self) -> usize {
        self.requests.swap(0, Ordering::Relaxed)
    }
}

fn hosts_up(swept: &SweepResult) -> usize {
    let fabric = &swept.snapshot.fabric;
    let hosts = fabric.node_indexes().filter(|&node| !fabric.node(node).is_switch());
    hosts.filter(|&node| swept.snapshot.is_up(node)).count()
}

#[test]
fn silent_adapters_share_three_probes_a_sweep() {
    let mut refusing = Refusing::new(None);
    let mut probed = Vec::new();
    for sweep in 0..20 {
        let before = refusing.transport.sent.len();
        let swept = refusing.sweep();
        let sent = &refusing.transport.sent[before..];
        if sweep > 0 {
            probed.extend(sent.iter().filter(|it| is_to_host(it)).map(|it| it.lid));
        }
        // Those that are not asked stay down, and their ports failed.
        assert!(swept.adapters_silent, "sweep {sweep}");
        assert_eq!((hosts_up(&swept), swept.failed_ports), (1, usize::from(ADAPTERS)));
    }
    let requests = refusing.requests();
    assert!(requests <= 660, "{requests} GMPs");
    let times = probed.len();
    probed.sort_unstable();
    probed.dedup();
    assert_eq!(probed.len(), times, "each has its turn");
    // Right again: the same sweep reads all.
    refusing.respond(true);
    let swept = refusing.sweep();
    assert!(!swept.adapters_silent);
    assert_eq!((hosts_up(&swept), swept.failed_ports), (1 + usize::from(ADAPTERS), 0));
}

#[test]
fn adapters_whose_plans_are_known_get_one_request_a_probe() {
    let mut refusing = Refusing::new(Some(Lid(6)));
    refusing.respond(true);
    for _ in 0..2 {
        assert_eq!(refusing.sweep().failed_ports, 0);
    }
    refusing.respond(false);
    refusing.sweep();
    refusing.requests();
    for _ in 0..10 {
        let swept = refusing.sweep();
        // Ours, and the one that is a full member.
        assert_eq!((hosts_up(&swept), swept.adapters_silent), (2, true));
    }
    assert_eq!(refusing.requests(), 30);
    refusing.respond(true);
    let swept = refusing.sweep();
    assert_eq!((hosts_up(&swept), swept.failed_ports), (1 + usize::from(ADAPTERS), 0));
    // No node responds, not even a switch: something else is the cause, and the adapters are still only probed.
    refusing.respond(false);
    refusing.sweep();
    refusing.transport.reply = Box::new(|_| Reply::Lost);
    assert!(!refusing.sweep().adapters_silent);
    let before = refusing.transport.sent.len();
    refusing.sweep();
    let sent = &refusing.transport.sent[before..];
    assert!(sent.iter().filter(|it| is_to_host(it)).count() <= 3 + 2);
}

/// A switch with as many absent hosts as given, of which the first `linked` have a link.
fn absent_hosts(hosts: u64, linked: u64) -> Arc<Fabric> {
    let switch = |guid: u64| testing::found(guid, SWITCH, 250);
    let switches = || (1..=hosts.div_ceil(200)).map(switch).collect::<Vec<_>>();
    let host = |nth: u64| 1_000 + nth;
    let cable =
        |nth: u64| (testing::end(1 + nth / 200, (nth % 200) as u8 + 1), testing::end(host(nth), 1));
    let cables: Vec<_> = (0..hosts).map(cable).collect();
    let mut nodes = switches();
    nodes.extend((0..hosts).map(|nth| testing::found(host(nth), CA, 1)));
    let before = testing::fabric(nodes, &cables, None);
    let mut nodes = switches();
    for (from, _) in &cables[linked as usize..] {
        let port = &mut nodes[from.guid.0 as usize - 1].ports[usize::from(from.number)];
        let status = port.status.as_mut().unwrap();
        (status.state, status.physical_state) = (PortState::Down, PhysicalState::Polling);
    }
    Arc::new(testing::fabric(nodes, &[], Some((&before, Moment(0)))))
}

#[test]
fn absent_nodes_are_probed_in_turns_while_they_have_a_link() {
    for (linked, turns) in [(2_000, 320), (100, 100), (0, 0)] {
        let fabric = absent_hosts(2_000, linked);
        let mut transport = ScriptedTransport::new(Vec::new());
        transport.reply = Box::new(|_| Reply::Lost);
        let mut client = MadClient::new(SendConfig::default());
        let mut agents = AgentCache::default();
        let is_probe = |outgoing: &&OutgoingMad| outgoing.lid.0 >= 1_000;
        for _ in 0..10 {
            let (before, began) = (transport.sent.len(), transport.now());
            // Without states: the switches do not respond either.
            let mut sweep = Sweep::new(&fabric, &mut agents, transport.anchor(), false);
            run(&mut sweep, &mut client, &mut transport, &AtomicBool::new(false)).unwrap();
            sweep.finish();
            let took = transport.now().since(began);
            let probes = transport.sent[before..].iter().filter(is_probe).count();
            assert!(probes < 100 && took < Duration::from_secs(2), "{probes} probes in {took:?}");
        }
        let mut probed: Vec<Lid> =
            transport.sent.iter().filter(is_probe).map(|it| it.lid).collect();
        probed.sort_unstable();
        probed.dedup();
        assert_eq!(probed.len(), turns, "{linked} have a link");
    }
}

#[test]
fn full_member_that_missed_a_sweep_is_asked_again_soon() {
    let member = Lid(8);
    let mut refusing = Refusing::new(Some(member));
    for _ in 0..3 {
        assert!(refusing.sweep().adapters_silent);
    }
    let port = refusing.fabric.find(PortKey::new(Guid(8), 1)).unwrap();
    assert!(refusing.sweep().snapshot.reading(port).is_some());
    let reply = std::mem::replace(&mut refusing.transport.reply, Box::new(|_| Reply::Lost));
    let mut reply = reply;
    let is_hung = Arc::new(AtomicBool::new(true));
    let hangs = Arc::clone(&is_hung);
    refusing.transport.reply = Box::new(move |outgoing| {
        let is_lost = outgoing.lid == member && hangs.load(Ordering::Relaxed);
        if is_lost { Reply::Lost } else { reply(outgoing) }
    });
    refusing.sweep();
    is_hung.store(false, Ordering::Relaxed);
    let back = (0..100).find(|_| refusing.sweep().snapshot.reading(port).is_some());
    assert!(back.is_some_and(|sweeps| sweeps < 4), "{back:?}");
}
