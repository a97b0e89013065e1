//! What happens on the hosts of a site, and when: each kind of happening, so that no two of them make a fault together
//! that neither is alone.

use std::ops::Range;

use ib_mad::Guid;
use ib_sim::rng::Rng;

use super::expected::Expected;
use super::hardware::{self, Role, roles};
use super::host::{Minute, SimHost, Slot};
use super::plan::{Action, Happening, Plan, Scope};
use super::{faults, traffic};

/// Before and after each happening.
const CALM: Minute = 20;
/// Losses of a link count together for 12 hours.
const LOSSES_COUNT: Minute = 12 * 60 + 40;
/// Losses that are not flapping.
const FEW_LOSSES: u32 = 2;
/// One less than the bad links of a fabric at which there are many.
const BAD_LINKS: usize = 4;
/// How often a time and a host are drawn.
const DRAWS: usize = 400;

const ROCE: &[Role] =
    &[Role::Mlx5, Role::Edge, Role::Bnxt, Role::Irdma, Role::Lag, Role::Switchdev];
const MLX5_ROCE: &[Role] = &[Role::Mlx5, Role::Edge];
const INFINIBAND: &[Role] = &[Role::InfiniBand, Role::Small, Role::Nvlink];
const ANY: &[Role] = &[
    Role::InfiniBand,
    Role::Small,
    Role::Nvlink,
    Role::Mlx5,
    Role::Edge,
    Role::Bnxt,
    Role::Irdma,
    Role::Lag,
    Role::Switchdev,
    Role::MultiPlane,
    Role::SocketDirect,
];

const fn on(
    name: &'static str,
    roles: &'static [Role],
    minutes: Minute,
    losses: u32,
    plan: fn(&mut Plan<'_>),
) -> Happening {
    Happening { name, roles, minutes, losses, scope: Scope::Host, plan }
}

const fn with(scope: Scope, happening: Happening) -> Happening {
    Happening { scope, ..happening }
}

/// All kinds.
const HAPPENINGS: &[Happening] = &[
    with(
        Scope::Fabric,
        on("the switch of a fabric fails", &[Role::Edge], 50, 1, faults::switch_fails),
    ),
    with(Scope::Fabric, on("no SM at a cold start", &[Role::Small], 45, 1, faults::cold_start)),
    with(Scope::Fabric, on("the SM ends", &[Role::Small], 45, 1, faults::manager_ends)),
    // Early, because they must be after what was planned for their hosts.
    on("card swapped", ANY, 130, 2, faults::card_swapped),
    on("card swapped while the host runs", ANY, 130, 2, faults::card_swapped_hot),
    on("flapping (InfiniBand)", INFINIBAND, 130, 3, faults::flapping),
    on("flapping (RoCE)", ROCE, 130, 3, faults::flapping),
    on("flapping that only LinkDowned shows", INFINIBAND, 130, 3, faults::counted_flapping),
    on("flapping that events show", MLX5_ROCE, 130, 3, faults::reported_flapping),
    on("cable pulled (mlx5)", MLX5_ROCE, 80, 1, faults::cable_pulled),
    on("cable pulled (bnxt_re)", &[Role::Bnxt], 80, 1, faults::cable_pulled),
    on("cable pulled (irdma)", &[Role::Irdma], 80, 1, faults::cable_pulled),
    on("cable pulled (InfiniBand)", INFINIBAND, 80, 1, faults::cable_pulled),
    on("cable pulled (NVLink host)", &[Role::Nvlink], 80, 1, faults::cable_pulled),
    on("cable pulled (switchdev)", &[Role::Switchdev], 80, 1, faults::cable_pulled),
    on("set down for maintenance", ROCE, 140, 0, faults::set_down),
    on("bond set down for maintenance", &[Role::Lag], 140, 0, faults::set_down),
    on("set up without its cable", ROCE, 90, 0, faults::set_up_without_cable),
    on("port disabled", INFINIBAND, 70, 1, faults::port_disabled),
    on("member of a bond loses its cable", &[Role::Lag], 70, 0, faults::bond_member_down),
    on("all members of a bond lose their cables", &[Role::Lag], 45, 1, faults::bond_down),
    on("multi-plane cable pulled", &[Role::MultiPlane], 50, 1, faults::planes_down),
    on("Socket Direct cable pulled", &[Role::SocketDirect], 50, 1, faults::socket_direct_down),
    on("two losses", ANY, 40, 2, faults::two_losses),
    on("bad cable", INFINIBAND, 90, 0, faults::bad_cable),
    on("burst of symbol errors", INFINIBAND, 30, 0, faults::burst),
    on("few symbol errors", INFINIBAND, 200, 0, faults::few_errors),
    on("one lane", INFINIBAND, 60, 0, faults::width_reduced),
    with(
        Scope::OnlyHost,
        on("port in another subnet", &[Role::InfiniBand], 160, 2, faults::lone_port_waits),
    ),
    on("reboot", ANY, 30, 1, faults::rebooted),
    on("reboot (LAG)", &[Role::Lag], 30, 1, faults::rebooted),
    on("reboot (NVLink host)", &[Role::Nvlink], 30, 1, faults::rebooted),
    on("reboot (Socket Direct)", &[Role::SocketDirect], 30, 1, faults::rebooted),
    on("switched off", ANY, 50, 1, faults::switched_off),
    on("exporter restarted", ANY, 100, 2, faults::exporter_restarted),
    on("driver reloaded twice", ANY, 210, 2, faults::driver_reloaded),
    on("device renamed", ANY, 130, 1, faults::renamed),
    on("device disappears", ANY, 100, 1, faults::device_disappears),
    on("device hangs", ANY, 40, 1, faults::device_hangs),
    on("device is slow", ANY, 130, 0, faults::device_slow),
    on("slow device loses its link", ANY, 80, 1, faults::slow_device_loses_link),
    on("counters cleared", INFINIBAND, 70, 0, faults::counters_cleared),
    on("counter saturated", &[Role::Small], 120, 0, faults::counter_saturated),
    on(
        "retransmissions",
        &[Role::InfiniBand, Role::Mlx5, Role::Edge, Role::Bnxt],
        65,
        0,
        traffic::retransmissions,
    ),
    on(
        "connections lost",
        &[Role::InfiniBand, Role::Mlx5, Role::Edge, Role::Bnxt],
        30,
        0,
        traffic::connections_lost,
    ),
    on(
        "congestion notifications",
        &[Role::Mlx5, Role::Edge, Role::Bnxt, Role::Irdma],
        65,
        0,
        traffic::notifications,
    ),
    on("PFC storm", MLX5_ROCE, 65, 0, traffic::storm),
    on("paused", MLX5_ROCE, 65, 0, traffic::paused),
    on("datagrams of 2044 bytes", INFINIBAND, 110, 0, traffic::datagrams),
    on("discards", INFINIBAND, 65, 0, traffic::discards),
];

/// The kinds of happenings that a site has hosts for.
pub fn of_site(site: usize) -> impl Iterator<Item = &'static Happening> {
    HAPPENINGS.iter().filter(move |it| it.roles.iter().any(|role| roles(site).contains(role)))
}

/// A happening that has its place.
pub struct Planned {
    pub name: &'static str,
    /// The places of the hosts.
    pub hosts: Vec<usize>,
    pub minutes: Range<Minute>,
    losses: u32,
}

/// What happens at a site.
#[derive(Default)]
pub struct Schedule {
    pub planned: Vec<Planned>,
    /// By host and time.
    pub actions: Vec<Vec<(Minute, Action)>>,
    pub expected: Vec<Expected>,
    /// Minutes in which Prometheus scrapes nothing.
    pub pauses: Vec<Minute>,
    /// Actions, with the places of their hosts, that are not sorted yet.
    waiting: Vec<(usize, Minute, Action)>,
    /// The GUIDs that devices have from some minute on.
    swaps: Vec<(usize, Minute, Slot, Guid)>,
}

impl Schedule {
    /// Plans so many minutes of a site: each kind of happening that it has hosts for so often, where it finds a place,
    /// and at least once.
    pub fn new(site: usize, seed: u64, minutes: Minute, often: usize) -> Schedule {
        let mut schedules = (0..).map(|attempt| Rng::keyed(seed, &[attempt]));
        loop {
            let mut rng = schedules.next().unwrap();
            if let Some(schedule) = Schedule::draw(site, &mut rng, minutes, often) {
                return schedule;
            }
        }
    }

    /// Draws a schedule; `None` if a kind of happening has no place.
    fn draw(site: usize, rng: &mut Rng, minutes: Minute, often: usize) -> Option<Schedule> {
        let mut schedule = Schedule::default();
        for round in 0..often {
            for happening in of_site(site) {
                let placed = (0..DRAWS).any(|_| schedule.place(site, happening, minutes, rng));
                if !placed && round == 0 {
                    return None;
                }
            }
        }
        for (place, &role) in roles(site).iter().enumerate() {
            let mut host = hardware::host(role, site, place);
            let mut plan = plan(role, 0, 0, &mut host, rng);
            traffic::everyday(&mut plan, minutes);
            schedule.actions.push(plan.actions);
        }
        for (place, minute, action) in std::mem::take(&mut schedule.waiting) {
            schedule.actions[place].push((minute, action));
        }
        for actions in &mut schedule.actions {
            actions.sort_by_key(|(minute, _)| *minute);
        }
        let pauses = minutes / (24 * 60);
        schedule.pauses = (0..pauses).map(|_| rng.below(u64::from(minutes)) as Minute).collect();
        Some(schedule)
    }

    /// Draws a time and hosts for a happening, and returns whether it can happen there.
    fn place(
        &mut self,
        site: usize,
        happening: &Happening,
        minutes: Minute,
        rng: &mut Rng,
    ) -> bool {
        let roles = roles(site);
        let mut hosts: Vec<usize> =
            (0..roles.len()).filter(|it| happening.roles.contains(&roles[*it])).collect();
        if happening.scope != Scope::Fabric {
            hosts = vec![hosts[rng.below(hosts.len() as u64) as usize]];
        }
        let latest = minutes - happening.minutes - 2 * CALM;
        let start = CALM + rng.below(u64::from(latest)) as Minute;
        let range = start..start + happening.minutes;
        if !self.is_free(happening, &hosts, &range) {
            return false;
        }
        let mut made = Vec::new();
        for (nth, &place) in hosts.iter().enumerate() {
            let mut host = hardware::host(roles[place], site, place);
            for (_, _, slot, guid) in
                self.swaps.iter().filter(|(of, minute, ..)| *of == place && *minute <= start)
            {
                host.set_guid(*slot, *guid);
            }
            let mut plan = plan(roles[place], nth, start, &mut host, rng);
            (happening.plan)(&mut plan);
            made.push((place, plan.actions, plan.expected, plan.swapped));
        }
        // What is later was planned with the GUID before.
        let is_later = |it: &Planned| {
            it.minutes.start > start && hosts.iter().any(|host| it.hosts.contains(host))
        };
        let swaps = made.iter().any(|(.., swapped)| swapped.is_some());
        if swaps && self.planned.iter().any(is_later) {
            return false;
        }
        let expected = || made.iter().flat_map(|(_, _, expected, _)| expected);
        if happening.scope != Scope::Fabric && expected().any(|it| self.is_one_too_many(it)) {
            return false;
        }
        for (place, actions, expected, swapped) in made {
            let actions = actions.into_iter().map(|(minute, action)| (place, minute, action));
            self.waiting.extend(actions);
            self.expected.extend(expected);
            self.swaps.extend(swapped.map(|(slot, guid)| (place, start, slot, guid)));
        }
        let (name, losses) = (happening.name, happening.losses);
        self.planned.push(Planned { name, hosts, minutes: range, losses });
        true
    }

    /// Whether nothing else happens on the hosts then, and no link loses more than it may.
    fn is_free(&self, happening: &Happening, hosts: &[usize], range: &Range<Minute>) -> bool {
        let near = |other: &Planned, margin: Minute| {
            other.minutes.start < range.end + margin && range.start < other.minutes.end + margin
        };
        let shares = |other: &&Planned| hosts.iter().any(|it| other.hosts.contains(it));
        let is_alone = happening.scope != Scope::OnlyHost
            || !self.planned.iter().any(|it| it.name == happening.name && near(it, 3 * CALM));
        let losses: Vec<u32> = (self.planned.iter().filter(shares))
            .filter(|it| it.losses > 0 && happening.losses > 0 && near(it, LOSSES_COUNT))
            .map(|it| it.losses)
            .collect();
        let has_few =
            losses.is_empty() || losses.iter().sum::<u32>() + happening.losses <= FEW_LOSSES;
        is_alone && has_few && !self.planned.iter().filter(shares).any(|it| near(it, CALM))
    }

    /// Whether an alert is one more than a fabric may have about its links.
    fn is_one_too_many(&self, new: &Expected) -> bool {
        let at_once = self.expected.iter().filter(|it| {
            it.alert.is_bad_link
                && it.place.fabric == new.place.fabric
                && it.may.start < new.may.end
                && new.may.start < it.may.end
        });
        new.alert.is_bad_link && at_once.count() >= BAD_LINKS
    }
}

fn plan<'a>(
    role: Role,
    nth: usize,
    start: Minute,
    host: &'a mut SimHost,
    rng: &'a mut Rng,
) -> Plan<'a> {
    let (actions, expected) = (Vec::new(), Vec::new());
    Plan { role, nth, start, host, rng, actions, expected, swapped: None }
}
