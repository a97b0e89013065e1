//! How many MADs a sweep tells in advance.

use super::*;
use ib_mad::smp::SwitchPortStateTable;
use ib_umad::testing::ScriptedNode;

const ALL: OptionalCounters = OptionalCounters { details: DetailPolicy::EachSweep, fec: true };
const SOME: OptionalCounters =
    OptionalCounters { details: DetailPolicy::Every(Duration::from_secs(120)), fec: true };

/// What a sweep tells, and what it sends.
fn told_and_sent(
    transport: &mut ScriptedTransport,
    fabric: &Arc<Fabric>,
    agents: &mut AgentCache,
) -> (usize, usize) {
    transport.sent.clear();
    let mut sweep = Sweep::new(fabric, agents, transport.anchor(), true);
    let told = sweep.max_mads();
    run_plan(transport, &mut sweep);
    sweep.finish();
    (told, transport.sent.len())
}

/// Two leaves with two links to each of two spines, and four hosts at each leaf.
fn tree(change: fn(&mut ScriptedNode)) -> ScriptedTransport {
    let mut kinds = vec![(SWITCH, 8); 4];
    kinds.extend([(CA, 1); 8]);
    let mut cables: Vec<_> =
        (0..8).map(|host| ((host / 4, host as u8 % 4 + 1), (4 + host, 1))).collect();
    for (leaf, spine, link) in
        [0, 1].into_iter().flat_map(|leaf| [(leaf, 0, 0), (leaf, 0, 1), (leaf, 1, 0), (leaf, 1, 1)])
    {
        let (up, down) = (5 + spine as u8 * 2 + link, 1 + leaf as u8 * 2 + link);
        cables.push(((leaf, up), (2 + spine, down)));
    }
    let mut nodes = fabric(&kinds, &cables);
    nodes.iter_mut().for_each(change);
    let mut transport = ScriptedTransport::new(nodes);
    transport.local_port = (4, 1);
    transport
}

/// An agent with all that is optional.
fn rich(node: &mut ScriptedNode) {
    (node.capabilities, node.tick, node.fec) = ((0x5300, 2), Some(7), Some(2));
}

#[test]
fn no_sweep_sends_more_than_it_tells() {
    for optional in [OptionalCounters::default(), DETAILS, FEC, ALL, SOME] {
        for is_rich in [false, true] {
            let mut transport = tree(if is_rich { rich } else { |_| {} });
            let fabric = assembled(&mut transport);
            let mut agents = AgentCache::new(optional);
            let mut exact = 0;
            for sweep in 0..6 {
                let (told, sent) = told_and_sent(&mut transport, &fabric, &mut agents);
                assert!(sent <= told, "{optional:?} {is_rich} {sweep}: {sent} of {told}");
                exact += usize::from(told == sent + 8);
            }
            // Once the agents are known only the other ends of the eight cables between switches are left.
            assert!(exact >= 3, "{optional:?} {is_rich}");
            // All cables are pulled but those of our own host.
            for node in &mut transport.nodes {
                node.links.retain(|_, (peer, _)| *peer == 4 || node.guid == 5);
            }
            let (told, sent) = told_and_sent(&mut transport, &fabric, &mut agents);
            assert!(sent <= told, "{optional:?} {is_rich}: {sent} of {told}");
        }
    }
}

/// The same, with a table of port states.
fn tabled(node: &mut ScriptedNode) {
    rich(node);
    node.state_table = node.kind == SWITCH;
}

#[test]
fn port_states_by_table_are_fewer_than_a_sweep_tells() {
    let mut transport = tree(tabled);
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(ALL);
    let mut sent_by_table = usize::MAX;
    for sweep in 0..6 {
        let (told, sent) = told_and_sent(&mut transport, &fabric, &mut agents);
        assert!(sent <= told, "{sweep}: {sent} of {told}");
        sent_by_table = sent_by_table.min(sent);
    }
    let (told, _) = told_and_sent(&mut transport, &fabric, &mut agents);
    assert!(sent_by_table + 8 < told, "{sent_by_table} of {told}");
    // Everything changes at once: all tables are refused, or all cables pulled but those of our own host.
    transport.reply = Box::new(|outgoing| {
        let is_table =
            outgoing.mad.is_smp() && outgoing.mad.attribute() == SwitchPortStateTable::ID;
        if is_table { Reply::Status(0x0c) } else { Reply::Answered(ROUND_TRIP) }
    });
    for pulled in [false, true] {
        if pulled {
            for node in &mut transport.nodes {
                node.links.retain(|_, (peer, _)| *peer == 4 || node.guid == 5);
            }
        }
        let (told, sent) = told_and_sent(&mut transport, &fabric, &mut agents);
        assert!(sent <= told, "{pulled}: {sent} of {told}");
    }
}

#[test]
fn hidden_nodes_are_in_what_a_sweep_tells() {
    let mut transport = tree(tabled);
    let before = assembled(&mut transport);
    // Directed routes end at our leaf; by LID all respond.
    transport.reply = Box::new(|outgoing| {
        let is_far = outgoing.mad.route_ports().len() > 1;
        if is_far { Reply::Expired } else { Reply::Answered(ROUND_TRIP) }
    });
    let found = discovered(&mut transport).fabric;
    let known = Some((&*before, Moment(0)));
    let fabric = Arc::new(Fabric::assemble(found, &Naming::default(), Moment(1), known));
    let hidden = fabric.nodes.iter().filter(|node| node.presence == Presence::Hidden).count();
    assert!(hidden > 5, "{hidden}");
    let mut agents = AgentCache::new(ALL);
    for pulled in [false, false, true, false] {
        if pulled {
            transport.nodes[2].links.clear();
        }
        let (told, sent) = told_and_sent(&mut transport, &fabric, &mut agents);
        assert!(sent <= told && sent > 20, "{sent} of {told}");
    }
}
