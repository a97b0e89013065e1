//! The long run: what happens to which cable when, by the rates and the seed.

use ib_mad::Counter;
use ib_mad::rate::Width;

use crate::action::Action;
use crate::cell::{CABLES, SWITCHES, between, log_between};
use crate::rates::{Event, Per, RATES};
use crate::time::DAY;
use crate::world::World;

/// The leaf of the exporter's host: it never fails.
const OWN_LEAF: usize = 2;

/// What an impossible value was seen in, and others that it would hurt.
const IMPOSSIBLE: [Counter; 4] =
    [Counter::RcvErrors, Counter::SymbolErrors, Counter::LinkDowned, Counter::XmitData];

/// Schedules everything that happens in a cell in so many days.
pub fn plan(world: &mut World, days: f64) {
    let hosts: Vec<usize> = (SWITCHES + 1..world.cell.nodes.len()).collect();
    let switches: Vec<usize> = (0..SWITCHES).filter(|&node| node != OWN_LEAF).collect();
    let own = cable_of(world, SWITCHES);
    let cables: Vec<usize> = (0..CABLES).filter(|&cable| cable != own).collect();
    let ports: Vec<usize> = (0..world.cell.ports.len())
        .filter(|&port| world.cell.ports[port].cable.is_some())
        .collect();
    for row in RATES {
        let units = match row.per {
            Per::Cable => &cables[..],
            Per::Host => &hosts,
            Per::Switch => &switches,
            Per::Port => &ports,
            Per::Fabric => &[0],
        };
        let times = world.rng.poisson(row.per_day * units.len() as f64 * days);
        for _ in 0..times {
            let unit = units[world.rng.below(units.len() as u64) as usize];
            let at = world.rng.next_f64() * days * DAY;
            happen(world, row.event, unit, at, &cables);
        }
    }
}

/// The cable of a host.
fn cable_of(world: &World, host: usize) -> usize {
    world.cell.ports[world.cell.nodes[host].first].cable.map_or(0, |(cable, _)| cable)
}

#[expect(clippy::too_many_lines, reason = "an event after the other")]
fn happen(world: &mut World, event: Event, unit: usize, at: f64, all: &[usize]) {
    let down = |cable, seconds| Action::LinkDown { cable, seconds, counted: [true; 2] };
    let rng = &mut world.rng;
    match event {
        Event::HostReboot | Event::HostOff => {
            let (least, most) =
                if event == Event::HostReboot { (120.0, 900.0) } else { (3600.0, 2.0 * DAY) };
            let away = between(rng, least, most);
            let cable = cable_of(world, unit);
            world.at(at, Action::Note(cable, event));
            world.at(at, Action::NodeDown(unit, away));
        }
        Event::SwitchReboot => {
            let away = between(rng, 120.0, 720.0);
            for (cable, _) in world.cell.cables_of(unit) {
                world.at(at, Action::Note(cable, event));
            }
            world.at(at, Action::NodeDown(unit, away));
        }
        Event::DriverReload => {
            let (cable, seconds) = (cable_of(world, unit), between(&mut world.rng, 5.0, 40.0));
            world.at(at, Action::Note(cable, event));
            world.at(at, Action::LinkDown { cable, seconds, counted: [true, false] });
        }
        Event::Maintenance => {
            let away = between(rng, 60.0, 2400.0);
            world.at(at, Action::Note(unit, event));
            world.at(at, Action::Announce(unit, away + 660.0));
            world.at(at + 60.0, down(unit, away));
        }
        Event::Reseat | Event::LongReseat | Event::SingleFlap => {
            let away = match event {
                Event::Reseat => between(rng, 10.0, 200.0),
                Event::LongReseat => between(rng, 300.0, 1800.0),
                _ => log_between(rng, 0.2, 60.0),
            };
            world.at(at, Action::Note(unit, event));
            world.at(at, down(unit, away));
        }
        Event::ClearFabric => {
            // A tool needs some time for all ports.
            for port in 0..world.cell.ports.len() {
                let later = world.rng.next_f64() * 2.0;
                world.at(at + later, Action::ClearPort(port));
            }
        }
        Event::ClearPort => world.at(at, Action::ClearPort(unit)),
        Event::SilentNode => {
            let seconds = between(rng, 20.0, 360.0);
            world.at(at, Action::Silent(unit, seconds));
        }
        Event::ImpossibleValue => {
            let counter = IMPOSSIBLE[rng.below(IMPOSSIBLE.len() as u64) as usize];
            let seconds = between(rng, 1.0, 4.0) * world.interval;
            world.at(at, Action::Impossible(unit, counter, seconds));
        }
        Event::Congestion | Event::Overruns => {
            // Of a host that receives, one cable: the spine's ports become victims in reality.
            let to_hosts = &all[all.len() / 3..];
            let cable = to_hosts[rng.below(to_hosts.len() as u64) as usize];
            let seconds = between(rng, 600.0, 10_800.0);
            let share = between(rng, 0.1, 0.9);
            world.at(at, Action::Note(cable, event));
            let congestion = Some((share, event == Event::Overruns));
            world.at(at, Action::Congestion(cable, congestion));
            world.at(at + seconds, Action::Congestion(cable, None));
        }
        Event::SmFailover => {
            let seconds = between(rng, 30.0, 90.0);
            world.at(at, Action::SmFailover(seconds));
        }
        Event::Burst | Event::SmallBurst => {
            let (least, most) = if event == Event::Burst { (10.0, 1e4) } else { (2.0, 20.0) };
            #[expect(clippy::cast_sign_loss, reason = "it is positive")]
            let errors = log_between(rng, least, most) as u64;
            if let Some((cable, _)) = world.cell.ports[unit].cable {
                world.at(at, Action::Note(cable, event));
            }
            world.at(at, Action::Burst(unit, errors));
        }
        Event::Retraining => {
            world.at(at, Action::Note(unit, event));
            world.at(at, Action::Retrain(unit));
        }
        Event::MissedSweeps => {
            let seconds = between(rng, 120.0, 1200.0);
            world.at(at, Action::Gap(seconds));
        }
        Event::Restart => world.at(at, Action::Restart),
        Event::Dying => {
            let times = log_between(rng, 3.0, 1000.0);
            let ratios = [[times, 0.0], [0.0, times], [times, times]][rng.below(3) as usize];
            world.at(at, Action::Note(unit, event));
            world.at(at, Action::Errors(unit, ratios));
            repair(world, unit, at, Action::Errors(unit, [0.0; 2]));
        }
        Event::FlappingCable => {
            let times = 4 + rng.below(37);
            world.at(at, Action::Note(unit, event));
            for _ in 0..times {
                let (later, away) =
                    (world.rng.next_f64() * DAY, log_between(&mut world.rng, 1.0, 60.0));
                world.at(at + later, down(unit, away));
            }
        }
        Event::LaneLoss => {
            let full = world.cell.cables[unit].full;
            let half = if full == Width::X4 { Width::X2 } else { Width::X1 };
            world.at(at, Action::Note(unit, event));
            world.at(at, Action::Lanes(unit, half));
            repair(world, unit, at, Action::Lanes(unit, full));
        }
    }
}

/// One to three days later a technician replaces the cable, in maintenance.
fn repair(world: &mut World, cable: usize, began: f64, action: Action) {
    let at = began + between(&mut world.rng, 1.0, 3.0) * DAY;
    world.at(at, Action::Announce(cable, 1200.0));
    world.at(at + 60.0, Action::LinkDown { cable, seconds: 120.0, counted: [true; 2] });
    world.at(at + 90.0, action);
}
