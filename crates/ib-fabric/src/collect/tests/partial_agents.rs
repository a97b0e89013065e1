//! Agents that respond to a part of what they are asked, are busy or slow, and transports that refuse a part: what is
//! read of their nodes all the same.

use super::*;
use ib_mad::ids::PortNumber;
use ib_mad::port_info::PortInfo;
use ib_mad::rate::Speed;
use ib_mad::smp::{NodeInfo, SmInfo, SmState};
use ib_mad::status;

/// A fabric that is swept again and again, by one client.
struct Swept {
    transport: ScriptedTransport,
    client: MadClient,
    fabric: Arc<Fabric>,
    agents: AgentCache,
}

impl Swept {
    fn new(mut transport: ScriptedTransport, agents: AgentCache) -> Self {
        let fabric = assembled(&mut transport);
        let mut client = MadClient::new(SendConfig::default());
        // That of the default interval.
        client.time_limit = Some(Duration::from_secs(5));
        Swept { transport, client, fabric, agents }
    }

    fn reply(&mut self, reply: impl FnMut(&OutgoingMad) -> Reply + Send + 'static) {
        self.transport.reply = Box::new(reply);
    }

    fn sweep(&mut self) -> SweepResult {
        self.transport.sent.clear();
        let anchor = self.transport.anchor();
        let mut sweep = Sweep::new(&self.fabric, &mut self.agents, anchor, true);
        let stop = AtomicBool::new(false);
        run(&mut sweep, &mut self.client, &mut self.transport, &stop).unwrap();
        sweep.finish()
    }
}

/// Us, the switch with LID 2, and hosts at its ports from 2 on.
fn one_switch(ports: PortNumber, hosts: PortNumber) -> ScriptedTransport {
    let mut kinds = vec![(CA, 1), (SWITCH, ports)];
    kinds.extend(vec![(CA, 1); hosts.into()]);
    let mut links = vec![((0, 1), (1, 1))];
    links.extend((0..hosts).map(|host| ((1, host + 2), (2 + usize::from(host), 1))));
    ScriptedTransport::new(fabric(&kinds, &links))
}

const SWITCH_LID: Lid = Lid(2);

fn is_smp(outgoing: &OutgoingMad, attribute: u16) -> bool {
    outgoing.class.is_smp() && outgoing.lid == SWITCH_LID && outgoing.mad.attribute() == attribute
}

fn is_gmp(outgoing: &OutgoingMad) -> bool {
    !outgoing.class.is_smp() && outgoing.lid == SWITCH_LID
}

fn answered_unless(is_lost: bool) -> Reply {
    if is_lost { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
}

/// The numbers of the switch's ports with a reading.
fn ports_read(swept: &SweepResult) -> Vec<PortNumber> {
    let fabric = &swept.snapshot.fabric;
    let switch = fabric.node_by_guid(Guid(2)).unwrap();
    let read = fabric.ports_of(switch).filter(|&port| swept.snapshot.reading(port).is_some());
    read.map(|port| fabric.port(port).number).collect()
}

#[test]
fn hung_sm_does_not_hide_a_link_that_trained_again() {
    let mut transport = one_switch(8, 2);
    transport.nodes[0].manager = None;
    transport.nodes[1].manager = Some((SmState::Master as u8, 0, 1));
    transport.nodes[1].state_table = true;
    let mut swept = Swept::new(transport, AgentCache::default());
    swept.reply(|outgoing| answered_unless(is_smp(outgoing, SmInfo::ID)));
    let port = swept.fabric.find(PortKey::new(Guid(2), 2)).unwrap();
    for sweep in 0..8_u8 {
        let (downs, speed) = if sweep < 6 { (0, Speed::Edr) } else { (1, Speed::Fdr) };
        swept.transport.speed = speed;
        // PortSelect and LinkDownedCounter of PortCounters.
        swept.transport.garble = Box::new(move |data| {
            if data[1] == 2 {
                data[7] = downs;
            }
        });
        let shown = swept.sweep().snapshot.status(port).and_then(|status| status.speed);
        assert_eq!(shown, Some(speed), "sweep {sweep}");
    }
}

#[test]
fn slow_agent_does_not_cost_the_manager_of_its_switch() {
    let mut transport = one_switch(64, 2);
    transport.nodes[0].manager = None;
    transport.nodes[1].manager = Some((SmState::Master as u8, 0, 1));
    let mut swept = Swept::new(transport, AgentCache::default());
    swept.reply(|outgoing| {
        let is_slow = is_smp(outgoing, PortInfo::ID);
        Reply::Answered(if is_slow { Duration::from_millis(450) } else { ROUND_TRIP })
    });
    for sweep in 0..4 {
        let managers = swept.sweep().snapshot.managers.unwrap();
        assert_eq!(managers.len(), 1, "sweep {sweep}");
    }
}

#[test]
fn busy_agent_or_refused_send_at_the_end_costs_no_counters() {
    for reply in [Reply::Status(status::BUSY), Reply::Refused] {
        let mut swept = Swept::new(one_switch(8, 2), AgentCache::default());
        for sweep in 0..3 {
            let (mut asked, reply) = (0, reply.clone());
            swept.reply(move |outgoing| {
                asked += usize::from(is_smp(outgoing, NodeInfo::ID));
                let is_smp = outgoing.class.is_smp() && outgoing.lid == SWITCH_LID;
                if is_smp && asked > 1 { reply.clone() } else { Reply::Answered(ROUND_TRIP) }
            });
            let after = swept.sweep();
            assert_eq!(ports_read(&after).len(), 8, "sweep {sweep}");
            assert!(!after.lids_changed);
        }
    }
}

#[test]
fn refused_sends_say_nothing_about_hidden_nodes() {
    let mut transport = one_switch(50, 40);
    let before = assembled(&mut transport);
    transport.reply = Box::new(|outgoing| {
        let is_beyond = outgoing.lid == Lid::PERMISSIVE && outgoing.mad.u8(7) >= 2;
        answered_unless(is_beyond)
    });
    let fabric = Arc::new(discover_again(&mut transport, &before));
    let mut swept = Swept::new(transport, AgentCache::default());
    swept.fabric = fabric;
    let silent = |after: &SweepResult| after.snapshot.silent.iter().filter(|it| **it).count();
    assert_eq!(silent(&swept.sweep()), 0);
    swept.reply(|_| Reply::Refused);
    for sweep in 0..3 {
        assert_eq!(silent(&swept.sweep()), 0, "sweep {sweep}");
    }
}

#[test]
fn each_port_of_a_slow_switch_has_its_turn() {
    let mut swept = Swept::new(one_switch(64, 2), AgentCache::default());
    swept.reply(|outgoing| {
        Reply::Answered(if is_gmp(outgoing) { Duration::from_millis(450) } else { ROUND_TRIP })
    });
    let mut read = HashSet::new();
    // One request at a time: 12 in 5 s, two for each port.
    for _ in 0..15 {
        read.extend(ports_read(&swept.sweep()));
    }
    assert_eq!(read.len(), 64);
}

#[test]
fn each_port_of_a_switch_that_gets_busy_has_its_turn() {
    let mut swept = Swept::new(one_switch(64, 2), AgentCache::default());
    let mut read = HashSet::new();
    for _ in 0..8 {
        let mut asked = 0;
        swept.reply(move |outgoing| {
            asked += usize::from(is_gmp(outgoing));
            let is_busy = is_gmp(outgoing) && asked > 40;
            if is_busy { Reply::Status(status::BUSY) } else { Reply::Answered(ROUND_TRIP) }
        });
        read.extend(ports_read(&swept.sweep()));
    }
    assert_eq!(read.len(), 64);
}

#[test]
fn each_port_of_a_switch_with_a_slow_agent_shows_its_state() {
    for reply in [Reply::Answered(Duration::from_millis(450)), Reply::Status(status::BUSY)] {
        let mut swept = Swept::new(one_switch(64, 62), AgentCache::default());
        let is_busy = matches!(reply, Reply::Status(_));
        let sweep = |swept: &mut Swept| {
            let (mut asked, reply) = (0, reply.clone());
            swept.reply(move |outgoing| {
                let is_port = is_smp(outgoing, PortInfo::ID);
                asked += usize::from(is_port);
                let is_slow = is_port && (!is_busy || asked > 30);
                if is_slow { reply.clone() } else { Reply::Answered(ROUND_TRIP) }
            });
            swept.sweep()
        };
        assert!(!(0..6).any(|_| sweep(&mut swept).changed));
        swept.transport.nodes[1].links.remove(&60);
        assert!((0..6).any(|_| sweep(&mut swept).changed), "busy: {is_busy}");
    }
}

#[test]
fn ports_that_drop_requests_do_not_cost_the_counters_of_others() {
    for silent in [1..3, 1..12, 20..32, 40..64] {
        let mut swept = Swept::new(one_switch(64, 2), AgentCache::default());
        let of = silent.clone();
        swept.reply(move |outgoing| {
            let is_counter = is_gmp(outgoing) && outgoing.mad.attribute() != 1;
            answered_unless(is_counter && of.contains(&outgoing.mad.port_select()))
        });
        for sweep in 0..30 {
            let read = ports_read(&swept.sweep());
            if sweep >= silent.len() {
                assert_eq!(read.len(), 64 - silent.len(), "{silent:?}, sweep {sweep}: {read:?}");
            }
        }
    }
}

#[test]
fn one_port_that_refuses_an_attribute_does_not_cost_that_of_others() {
    let mut transport = one_switch(8, 7);
    transport.speed = Speed::Hdr;
    transport.nodes[1].capabilities = (0x5300, 2);
    let mut swept = Swept::new(transport, AgentCache::new(FEC));
    swept.reply(move |outgoing| {
        if is_fec(outgoing) && outgoing.mad.port_select() == 3 {
            Reply::Status(status::UNSUPPORTED_ATTRIBUTE)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    for sweep in 0..4 {
        let after = swept.sweep();
        let of = |number| {
            let port = after.snapshot.fabric.find(PortKey::new(Guid(2), number)).unwrap();
            after.snapshot.reading(port).unwrap().get(Counter::FecCorrectedSymbols)
        };
        for number in 1..=8 {
            assert_eq!(of(number).is_some(), number != 3, "sweep {sweep}, port {number}");
        }
        assert_eq!(after.failed_ports, 0);
    }
    // Once all refuse, none is asked again.
    swept.agents = AgentCache::new(FEC);
    swept.reply(move |outgoing| {
        if is_fec(outgoing) {
            Reply::Status(status::UNSUPPORTED_ATTRIBUTE)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    for expected in [8, 0] {
        swept.sweep();
        assert_eq!(swept.transport.sent.iter().filter(|it| is_fec(it)).count(), expected);
    }
}

/// Whether it asks the switch for counters of FEC.
fn is_fec(outgoing: &OutgoingMad) -> bool {
    is_gmp(outgoing) && outgoing.mad.attribute() == Attribute::PortExtendedSpeedsCounters as u16
}

#[test]
fn dropped_fec_counters_do_not_cost_the_others_for_long() {
    let mut transport = one_switch(41, 40);
    transport.speed = Speed::Hdr;
    transport.nodes[1].capabilities = (0x5300, 2);
    let mut swept = Swept::new(transport, AgentCache::new(FEC));
    swept.reply(move |outgoing| answered_unless(is_fec(outgoing)));
    for _ in 0..6 {
        swept.sweep();
    }
    let after = swept.sweep();
    assert_eq!((ports_read(&after).len(), after.failed_ports), (41, 0));
    assert_eq!(swept.transport.sent.iter().filter(|it| is_fec(it)).count(), 0);
}

#[test]
fn hosts_without_a_link_suggest_no_wrong_partition() {
    let mut swept = Swept::new(one_switch(8, 5), AgentCache::default());
    assert!(!swept.sweep().adapters_silent);
    // All are switched off at once.
    for host in 0..5 {
        swept.transport.nodes[1].links.remove(&(host + 2));
        swept.transport.nodes[2 + usize::from(host)].links.clear();
    }
    swept.reply(|outgoing| answered_unless(!outgoing.class.is_smp() && outgoing.lid.0 > 2));
    let after = swept.sweep();
    assert!(after.changed && !after.adapters_silent);
}

#[test]
fn hung_switch_does_not_delay_fec_modes_of_others() {
    let mut kinds = vec![(CA, 1), (SWITCH, 64), (SWITCH, 64)];
    kinds.extend(vec![(CA, 1); 120]);
    let mut links = vec![((0, 1), (1, 1)), ((1, 2), (2, 1))];
    links.extend(
        (0..120_u8)
            .map(|host| ((1 + usize::from(host / 60), host % 60 + 3), (3 + usize::from(host), 1))),
    );
    let mut nodes = fabric(&kinds, &links);
    nodes[1].fec = Some(2);
    nodes[2].fec = Some(2);
    let mut swept = Swept::new(ScriptedTransport::new(nodes), AgentCache::new(FEC));
    swept.reply(|outgoing| answered_unless(outgoing.class.is_smp() && outgoing.lid == SWITCH_LID));
    let mut known = Vec::new();
    for _ in 0..3 {
        let after = swept.sweep();
        let other = after.snapshot.fabric.node_by_guid(Guid(3)).unwrap();
        let ports = after.snapshot.fabric.ports_of(other);
        known.push(ports.filter(|&port| after.snapshot.fec[port].is_some()).count());
    }
    assert!(known[2] >= 61, "{known:?}");
}
