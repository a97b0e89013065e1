//! Port states by table: sweeps notice what they do without, with fewer requests, whatever the tables say.

use std::sync::Arc;

use ib_fabric::Fabric;
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::sweep::SweepResult;
use ib_fabric::names::Naming;
use ib_mad::Moment;
use ib_mad::port_info::PortInfo;
use ib_mad::smp::SwitchPortStateTable;
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::MadTransport;

use super::counting::Counting;
use super::plans::{discovered, swept};
use super::{DETAILS, FEC};
use ib_mad::pma::OptionalCounters;

const ALL: OptionalCounters = OptionalCounters { details: DETAILS.details, ..FEC };
const INTERVAL: Moment = Moment(15_000_000_000);

/// A simulated fabric with a discovery now and then, and its sweeps.
struct World {
    transport: Counting,
    fabric: Arc<Fabric>,
    agents: AgentCache,
    sweeps: u64,
    /// Requests of all sweeps.
    tables: usize,
    port_infos: usize,
}

impl World {
    fn new(scenario: &str) -> World {
        let scenario = Scenario::parse("test", scenario).unwrap();
        let story = scenario.resolve(&Overrides::default()).unwrap();
        let local_port = story.local_ports[0];
        let time = SimClock::Virtual { began: std::time::SystemTime::UNIX_EPOCH };
        let transport = SimTransport::new(share(Simulation::new(story)), local_port, time);
        let mut world = World {
            transport: Counting { transport, smps: Vec::new() },
            fabric: Arc::default(),
            agents: AgentCache::new(FEC),
            sweeps: 0,
            tables: 0,
            port_infos: 0,
        };
        world.discover();
        world
    }

    fn discover(&mut self) {
        let found = discovered(&mut self.transport).fabric;
        let known = Some((&*self.fabric, Moment(0))).filter(|_| self.sweeps > 0);
        let fabric = Fabric::assemble(found, &Naming::default(), self.transport.now(), known);
        self.agents.retain_present(&fabric);
        self.fabric = Arc::new(fabric);
    }

    /// The next sweep, an interval after the last one.
    fn sweep(&mut self) -> SweepResult {
        self.sweeps += 1;
        let due = Moment(INTERVAL.0 * self.sweeps);
        while self.transport.now() < due {
            self.transport.receive(due).unwrap();
        }
        self.transport.smps.clear();
        let swept = swept(&mut self.transport, &self.fabric, &mut self.agents);
        self.tables += self.sent(SwitchPortStateTable::ID);
        self.port_infos += self.sent(PortInfo::ID);
        swept
    }

    fn sent(&self, attribute: u16) -> usize {
        self.transport.smps.iter().filter(|sent| **sent == attribute).count()
    }
}

/// A fat tree, the behavior of its tables, and a timeline.
fn tree(shape: &str, tables: &str, timeline: &[String]) -> String {
    let tables = format!("state-table: {{behavior: {tables}}}");
    let entries: Vec<String> =
        std::iter::once(&tables).chain(timeline).map(|entry| format!("  - {entry}\n")).collect();
    let entries = entries.concat();
    format!("fabric: {{fat-tree: {{{shape}}}}}\ntraffic: {{pattern: none}}\ntimeline:\n{entries}")
}

/// Two levels: a third of the ports without cables.
const SMALL: &str = "levels: 2, hosts: 10, radix: 8, down: 4, up: 4";

/// Pseudorandom numbers below a limit.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What happens to links, cables and switches, at most one event in an interval, and never while a sweep runs.
fn events(dice: &mut Dice, intervals: u64) -> Vec<String> {
    let mut timeline = Vec::new();
    for interval in 1..intervals {
        if dice.below(3) == 0 {
            continue;
        }
        // From half a second before a sweep, when the subnet manager has not reacted yet.
        let at = interval * 15_000 + 2_000 + dice.below(12_600);
        let link = match dice.below(2) {
            0 => format!("host-{}", 1 + dice.below(8)),
            _ => format!("'leaf-0-{}[{}]'", dice.below(3), 5 + dice.below(4)),
        };
        let lasting = 200 + dice.below(40_000);
        timeline.push(match dice.below(7) {
            0 => format!("flap: {{at: {at}ms, link: {link}, down: {}ms}}", 101 + dice.below(300)),
            1 => format!("flap: {{at: {at}ms, link: {link}, down: 5ms}}"),
            2 => format!("degrade: {{at: {at}ms, link: {link}, width: 1x, for: {lasting}ms}}"),
            3 => format!("degrade: {{at: {at}ms, link: {link}, speed: HDR, for: {lasting}ms}}"),
            4 => format!("unplug: {{at: {at}ms, link: {link}, for: {lasting}ms}}"),
            5 => {
                format!("reboot: {{at: {at}ms, node: spine-{}, down: {lasting}ms}}", dice.below(2))
            }
            _ => format!("clear: {{at: {at}ms, node: leaf-0-{}}}", dice.below(3)),
        });
    }
    timeline
}

/// Compares two worlds sweep by sweep. Returns how many sweeps found changes.
fn compare(worlds: [&mut World; 2], sweeps: u64, about: &str) -> usize {
    let [with, without] = worlds;
    let mut changes = 0;
    for sweep in 1..=sweeps {
        let results = [with.sweep(), without.sweep()];
        let [by_table, by_port] = &results;
        let about = format!("{about}, sweep {sweep}");
        assert_eq!(by_table.changed, by_port.changed, "{about}");
        assert_eq!(by_table.state_changes, by_port.state_changes, "{about}");
        assert_eq!(by_table.snapshot.silent, by_port.snapshot.silent, "{about}");
        assert_eq!(by_table.snapshot.fec, by_port.snapshot.fec, "{about}");
        for port in by_table.snapshot.fabric.port_indexes() {
            let statuses = [by_table, by_port].map(|it| it.snapshot.statuses[port]);
            assert_eq!(
                statuses[0],
                statuses[1],
                "{about}: {}",
                by_port.snapshot.fabric.port_label(port)
            );
        }
        changes += usize::from(by_port.changed);
        // As the monitor does; not after each change, so that later ones meet an outdated discovery.
        if sweep % 5 == 0 {
            with.discover();
            without.discover();
        }
    }
    changes
}

#[test]
fn nothing_is_noticed_later_by_table() {
    let mut changes = 0;
    for seed in 0..40 {
        let timeline = events(&mut Dice(seed), 24);
        let mut with = World::new(&tree(SMALL, "normal", &timeline));
        let mut without = World::new(&tree(SMALL, "absent", &timeline));
        changes += compare([&mut with, &mut without], 24, &format!("seed {seed}: {timeline:#?}"));
    }
    assert!(changes > 200, "{changes}");
}

/// The mean SMPs of so many sweeps, once all is known, with tables and without. FEC modes, which are read once, are
/// left out.
fn smps_per_sweep(shape: &str, sweeps: usize) -> [usize; 2] {
    ["normal", "absent"].map(|tables| {
        let mut world = World::new(&tree(shape, tables, &[]));
        world.agents = AgentCache::default();
        for _ in 0..3 {
            world.sweep();
        }
        let sent = (0..sweeps).map(|_| {
            world.sweep();
            world.transport.smps.len()
        });
        sent.sum::<usize>() / sweeps
    })
}

#[test]
fn each_kind_of_change_is_noticed_in_the_same_sweep() {
    // And how many of ten sweeps find that something has changed: there is a discovery after the fifth.
    for (events, expected) in [
        ("flap: {at: 50s, link: host-3, down: 300ms}", 0),
        ("degrade: {at: 50s, link: host-3, width: 1x}", 2),
        ("degrade: {at: 50s, link: 'leaf-0-1[6]', speed: HDR}", 2),
        ("unplug: {at: 50s, link: host-3}", 2),
        ("unplug: {at: 20s, link: host-3, for: 60s}", 9),
        ("move-cable: {at: 50s, from: 'leaf-0-1[1]', to: 'leaf-0-2[4]'}", 2),
        ("reboot: {at: 50s, node: spine-1, down: 1s}", 0),
        ("reboot: {at: 50s, node: spine-1, down: 20s}", 1),
        // Only the host still counts it.
        (
            "degrade: {at: 50s, link: host-3, width: 1x}
             clear: {at: 51s, node: leaf-0-0}",
            2,
        ),
        // Nothing counts it any more, but its switch announces a change: that of another port.
        (
            "degrade: {at: 50s, link: host-3, width: 1x}
             clear: {at: 51s}
             unplug: {at: 59500ms, link: host-2}",
            2,
        ),
    ] {
        let timeline: Vec<String> = events.lines().map(|entry| entry.trim().to_owned()).collect();
        let mut with = World::new(&tree(SMALL, "normal", &timeline));
        let mut without = World::new(&tree(SMALL, "absent", &timeline));
        assert_eq!(compare([&mut with, &mut without], 10, events), expected, "{events}");
        assert!(with.port_infos * 2 < without.port_infos + 50, "{events}");
    }
}

#[test]
fn change_within_a_sweep_is_noticed_in_the_next_one() {
    let way = "way: {round-trip: 50ms}\n";
    let mut found = 0;
    // In the first sweep, in the second, which compares counters, and by table: once when it is the port's turn, and its
    // PortInfo is read before its counters.
    for sweep in 1..=22 {
        for after in [150, 250, 340] {
            let at = sweep * 15_000 + after;
            let timeline = [format!("degrade: {{at: {at}ms, link: 'leaf-0-1[8]', width: 1x}}")];
            let scenario = |tables| tree(SMALL, tables, &timeline) + way;
            // Of many attributes: those of port 8 take a while.
            let agents = || AgentCache::new(ALL);
            let world = |tables| World { agents: agents(), ..World::new(&scenario(tables)) };
            let [mut with, mut without] = ["normal", "absent"].map(world);
            let mut is_found = false;
            for _ in 1..=sweep {
                with.sweep();
                is_found = without.sweep().changed;
            }
            found += usize::from(is_found);
            assert!(compare([&mut with, &mut without], 2, &timeline[0]) > 0, "{timeline:?}");
        }
    }
    // Some are noticed at once.
    assert!((1..66).contains(&found), "{found}");
}

#[test]
fn tables_save_two_of_three_requests() {
    // The shape of the large fabrics of `benches/scale.rs`, with 4 % of the hosts of the fourth.
    let [with, without] = smps_per_sweep("levels: 3, hosts: 400, radix: 40, down: 20, up: 20", 20);
    assert_eq!([with, without], [413, 1873]);
    assert!(with * 3 <= without, "{with} of {without}");
}

/// Four of the sizes of `benches/scale.rs`.
#[test]
#[ignore = "takes two minutes, and checks figures only"]
fn requests_of_large_fabrics() {
    for (shape, expected) in [
        ("hosts: 168, radix: 16, down: 8, up: 8", [367, 893]),
        ("hosts: 4160, radix: 40, down: 20, up: 20", [3441, 15585]),
        ("hosts: 10000, radix: 40, down: 20, up: 20", [7853, 35473]),
        ("hosts: 27000, radix: 40, down: 18, up: 18", [22067, 101_529]),
    ] {
        assert_eq!(smps_per_sweep(&format!("levels: 3, {shape}"), 2), expected, "{shape}");
    }
}

#[test]
fn ports_take_turns() {
    let mut world = World::new(&tree(SMALL, "normal", &[]));
    let mut asked = Vec::new();
    for _ in 0..42 {
        world.sweep();
        asked.push(world.sent(PortInfo::ID));
    }
    // Port 0 of five switches and 28 ends. At six no cable ever was: they need no counters to compare, and one of them
    // has its turn in the second sweep. Then a twentieth of all in each sweep.
    assert_eq!(asked[..2], [33, 5 + 22 + 1]);
    assert_eq!(asked[2..22].iter().sum::<usize>(), 20 * 5 + 28);
    assert_eq!(asked[22..], asked[2..22], "in the same turns");
    assert!(asked[2..].iter().all(|sent| *sent <= 5 + 3), "{asked:?}");
}

#[test]
fn tables_that_fail_cost_what_ports_do() {
    // Requests for the five tables in 20 sweeps, with a discovery after each fifth: none in the first one, which does not
    // know of them yet.
    for (tables, expected) in [
        ("absent", 0),
        // After two discoveries, then after four. The announcement is remembered.
        ("refused", 5 * 2),
        ("zero", 5 * 2),
        // After each discovery; one switch is off then, once.
        ("hung", 5 * 4 - 1),
        // Each is used until a port of it is not Active.
        ("wrong", 26),
    ] {
        let timeline = events(&mut Dice(3), 20);
        let mut with = World::new(&tree(SMALL, tables, &timeline));
        let mut without = World::new(&tree(SMALL, "absent", &timeline));
        compare([&mut with, &mut without], 20, tables);
        assert_eq!(with.tables, expected, "{tables}");
        let is_same = with.port_infos == without.port_infos;
        assert_eq!(
            is_same,
            tables != "wrong",
            "{tables}: {} of {}",
            with.port_infos,
            without.port_infos
        );
    }
}
