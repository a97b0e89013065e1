//! Injected faults: each kind at each rate, in fabrics where nothing else happens but lost MADs.

use ib_health::verdict::Repair;
use ib_mad::rate::Width;

use crate::action::Action;
use crate::cell::{Optics, between};
use crate::time::DAY;
use crate::world::World;

/// Faults are planted after this time, when the longest window is full, within an hour.
pub const WARM_UP: f64 = 3.0 * 3600.0;

/// After a fault a cell is watched for this long.
pub const WATCHED: f64 = DAY;

/// The technician follows the advice this long after the fault.
pub const VISIT: f64 = 13.0 * 3600.0;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// This multiple of the limit, in one direction or in both.
    Errors(f64, bool),
    /// From 0.01 of the limit by a factor of 10 in 4 hours.
    Drift,
    /// The link goes down for so many seconds, once.
    Flap(f64),
    /// The same three times in 2 hours.
    Flaps(f64),
    /// It trains with fewer lanes.
    Lanes(Width),
    /// A cable between switches stays down.
    Dead,
    /// This multiple of the pre-FEC limit, in one direction.
    PreFec(f64),
    /// The link retrains every 3 minutes without going down.
    Retraining,
    /// What a module reports.
    Hot,
    /// See `Hot`.
    Dark,
}

/// All kinds, with the name in tables and whether `bad` is due (else `watch`).
pub const KINDS: [(Kind, &str, bool); 24] = [
    (Kind::Errors(0.5, false), "BER 0.5x", false),
    (Kind::Errors(1.0, false), "BER 1x", false),
    (Kind::Errors(1.5, false), "BER 1.5x", true),
    (Kind::Errors(2.0, false), "BER 2x", true),
    (Kind::Errors(3.0, false), "BER 3x", true),
    (Kind::Errors(5.0, false), "BER 5x", true),
    (Kind::Errors(10.0, false), "BER 10x", true),
    (Kind::Errors(30.0, false), "BER 30x", true),
    (Kind::Errors(100.0, false), "BER 100x", true),
    (Kind::Errors(1000.0, false), "BER 1000x", true),
    (Kind::Errors(2.0, true), "BER 2x, both directions", true),
    (Kind::Errors(10.0, true), "BER 10x, both directions", true),
    (Kind::Drift, "drifting BER, timed from 1x", true),
    (Kind::Flap(0.5), "flap of 0.5 s", false),
    (Kind::Flap(20.0), "flap of 20 s", false),
    (Kind::Flap(90.0), "flap of 90 s", false),
    (Kind::Flaps(5.0), "third flap in 2 h", true),
    (Kind::Lanes(Width::X2), "2 of 4 lanes", true),
    (Kind::Lanes(Width::X1), "1 of 4 lanes", true),
    (Kind::Dead, "dead cable between switches", true),
    (Kind::PreFec(2.0), "pre-FEC BER 2x", false),
    (Kind::Retraining, "retraining every 3 min", false),
    (Kind::Hot, "module above its alarm temperature", false),
    (Kind::Dark, "received power below its alarm", false),
];

/// The natural logarithm by which a drifting ratio grows per second: tenfold in 4 hours.
const DRIFT: f64 = std::f64::consts::LN_10 / (4.0 * 3600.0);
const DRIFT_FROM: f64 = 0.01;

/// What caused errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A dirty connector: one direction.
    Contamination,
    /// A bent or damaged fiber: both directions.
    Fiber,
    /// A loose transceiver: one direction.
    Loose,
    /// A broken or decaying transceiver: one direction.
    Transceiver,
    /// The port of a switch behind a good cable: one direction.
    Port,
}

/// Causes with names, shares of faults with errors, and the repairs that help.
///
/// The shares are within the ranges that Zhuo et al. (SIGCOMM 2017) give for corrupting links of Ethernet in data
/// centers, quoted second-hand: connectors 17 to 57%, fibers 14 to 48%, transceivers 6 to 46%, shared components 10 to
/// 26%. How many of the transceivers were only loose is an assumption.
pub const CAUSES: [(Cause, &str, f64, &[Repair]); 5] = [
    (Cause::Contamination, "dirty connector", 0.35, &[Repair::Reseat]),
    (Cause::Fiber, "damaged fiber", 0.25, &[Repair::SwapCable]),
    (Cause::Loose, "loose transceiver", 0.15, &[Repair::Reseat]),
    (Cause::Transceiver, "broken transceiver", 0.15, &[Repair::SwapTransceiver]),
    (Cause::Port, "faulty port, good cable", 0.10, &[]),
];

/// The share of faults of optical cables whose modules report optical powers: an assumption. Copper has none, and the
/// adapters before ConnectX-7 do not report their modules.
const WITH_POWERS: f64 = 0.8;

/// By how many dB dirt or a damaged fiber dim the light: an assumption. 8 to 10 dB are below the alarm threshold.
const DIMMED: (f64, f64) = (3.0, 12.0);

/// The share of broken transceivers whose laser sends too little: an assumption. Zhuo et al. found low transmitted
/// power in few corrupting links, and normal powers at most bad transceivers.
pub const WEAK: f64 = 0.25;

impl Cause {
    /// What modules report of errors in what `side` receives.
    fn optics(self, side: usize, world: &mut World) -> Optics {
        let rng = &mut world.rng;
        let unreported = rng.next_f64() >= WITH_POWERS;
        let mut optics = Optics { unreported, ..Optics::default() };
        let loss = between(rng, DIMMED.0, DIMMED.1);
        match self {
            Cause::Contamination => optics.loss[side] = loss,
            Cause::Fiber => optics.loss = [loss; 2],
            Cause::Transceiver => optics.weak[1 - side] = rng.next_f64() < WEAK,
            Cause::Loose | Cause::Port => {}
        }
        // What is sent is received.
        if optics.weak[1 - side] {
            optics.loss[side] = 13.0;
        }
        optics
    }
}

impl Kind {
    /// Whether a cable can have it: to a host or not, with error correction and module reports or not.
    pub fn suits(self, to_host: bool, has_fec: bool, reports: bool) -> bool {
        match self {
            Kind::Dead => !to_host,
            Kind::PreFec(_) => has_fec,
            Kind::Hot | Kind::Dark => reports,
            _ => true,
        }
    }

    /// Plants it. Returns when it counts as begun.
    pub fn plant(self, world: &mut World, cable: usize, cause: Cause, at: f64) -> f64 {
        let counted = [true; 2];
        let down = |seconds| Action::LinkDown { cable, seconds, counted };
        let side = world.rng.below(2) as usize;
        let one = |value: f64| if side == 0 { [value, 0.0] } else { [0.0, value] };
        match self {
            Kind::Errors(times, both) => {
                let both = both || cause == Cause::Fiber;
                let optics = cause.optics(side, world);
                world.at(at, Action::Optics(cable, optics));
                world.at(at, Action::Errors(cable, if both { [times; 2] } else { one(times) }));
            }
            Kind::Drift => {
                world.at(at, Action::Errors(cable, one(DRIFT_FROM)));
                world.at(at, Action::Drift(cable, DRIFT));
                return at - DRIFT_FROM.ln() / DRIFT;
            }
            Kind::Flap(seconds) => {
                world.at(at, down(seconds));
                return at + seconds;
            }
            Kind::Flaps(seconds) => {
                world.at(at, down(seconds));
                let second = at + between(&mut world.rng, 1800.0, 3600.0);
                world.at(second, down(seconds));
                world.at(at + 7200.0, down(seconds));
                return at + 7200.0 + seconds;
            }
            Kind::Lanes(width) => world.at(at, Action::Lanes(cable, width)),
            Kind::Dead => world.at(at, down(2.0 * WATCHED)),
            Kind::PreFec(times) => world.at(at, Action::PreFec(cable, one(times))),
            Kind::Retraining => {
                for nth in 0..40 {
                    world.at(at + 180.0 * f64::from(nth), Action::Retrain(cable));
                }
                return at + 360.0;
            }
            Kind::Hot => world.at(at, Action::Hot(cable, side)),
            Kind::Dark => world.at(at, Action::Dark(cable, side)),
        }
        at
    }
}

/// The technician does what was advised: it helps, or the cable was unplugged for nothing.
pub fn visit(world: &mut World, cable: usize, cause: Cause, advice: Repair, at: f64) -> bool {
    let helps = CAUSES.iter().any(|(of, _, _, right)| *of == cause && right.contains(&advice));
    if matches!(advice, Repair::Reseat | Repair::SwapCable | Repair::SwapTransceiver) {
        world.at(at, Action::LinkDown { cable, seconds: 90.0, counted: [true; 2] });
    }
    if helps {
        world.at(at, Action::Errors(cable, [0.0; 2]));
        world.at(at, Action::Optics(cable, Optics::default()));
    }
    helps
}
