//! How often things happen: one table of everything that is not a fault, and of the faults, with its sources.
//!
//! An assumption is called one. No public data set has the distribution of bit error ratios of InfiniBand cables, nor
//! how often tools clear counters; these rates are chosen high, so that a false alarm has many chances to show.

display_text::labeled_enum! {
    /// What a rate is counted by.
    pub enum Per {
        Cable, "cable", "Each cable.";
        Host, "host", "Each host.";
        Switch, "switch", "Each switch.";
        Fabric, "fabric of 36 cables", "Each cell of the trial, which stands for a fabric.";
        Port, "port", "Each port.";
    }
}

display_text::labeled_enum! {
    /// Something that happens in the long run.
    #[derive(PartialOrd, Ord)]
    pub enum Event {
        HostReboot, "host reboot", "Down for 2 to 15 minutes; counters start at 0, the link trains once or twice.";
        HostOff, "host switched off", "Down for 1 to 48 hours.";
        SwitchReboot, "switch reboot", "All its links are down for 2 to 12 minutes; counters start at 0.";
        DriverReload, "driver reload", "The host takes its link down for 5 to 40 s. Its counters are kept; only the switch counts the link down.";
        Maintenance, "maintenance", "In the maintenance file: the cable is unplugged for 1 to 40 minutes.";
        Reseat, "reseating", "Not in the maintenance file: the cable is unplugged for 10 to 200 s.";
        LongReseat, "long reseating", "Not in the maintenance file: the cable is unplugged for 5 to 30 minutes.";
        ClearFabric, "all counters cleared", "Another tool clears the counters of all ports within 2 s.";
        ClearPort, "a port cleared", "Another tool clears the counters of one port.";
        SilentNode, "unresponsive node", "A node does not respond for 20 s to 6 minutes, as during a firmware update of its agent.";
        ImpossibleValue, "impossible value", "A counter shows 2^64 - 40 for 1 to 4 sweeps.";
        Congestion, "congestion", "A host is slow for 10 to 180 minutes: its switch port waits 10 to 90% of the time.";
        Overruns, "buffer overruns", "Congestion in which the receiver also drops packets under load.";
        SmFailover, "SM failover", "Another subnet manager takes over after 30 to 90 s without a master: new SM LID, a discovery.";
        Burst, "burst", "10 to 10,000 symbol errors at one end within a second.";
        SmallBurst, "small burst", "2 to 20 symbol errors at one end within a second.";
        Retraining, "retraining", "The link retrains once without going down.";
        MissedSweeps, "missed sweeps", "The exporter does not sweep for 2 to 20 minutes.";
        Restart, "exporter restart", "The evaluator starts again, without its earlier totals.";
        SingleFlap, "single flap", "A good link goes down for 0.2 to 60 s, once.";
        Dying, "dying cable", "A bit error ratio of 3 to 1,000 times the limit in one or both directions, until the repair.";
        FlappingCable, "flapping cable", "4 to 40 losses of 1 to 60 s within a day, until the repair.";
        LaneLoss, "lost lanes", "The link retrains with half of its lanes, until the repair.";
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// What happens.
    pub event: Event,
    /// How often in a day.
    pub per_day: f64,
    /// Of what.
    pub per: Per,
    /// Where the number comes from.
    pub source: &'static str,
}

const fn rate(event: Event, per_day: f64, per: Per, source: &'static str) -> Rate {
    Rate { event, per_day, per, source }
}

const ASSUMED: &str = "assumption";

/// The rates of the long run.
pub const RATES: [Rate; Event::ALL.len()] = [
    rate(Event::HostReboot, 1.0 / 30.0, Per::Host, "assumption: monthly"),
    rate(Event::HostOff, 0.003, Per::Host, "assumption: once a year"),
    rate(
        Event::SwitchReboot,
        2.2e-4,
        Per::Switch,
        "2% in 3 months, half shorter than 6 minutes (Microsoft, CCR 2021)",
    ),
    rate(Event::DriverReload, 1.0 / 90.0, Per::Host, ASSUMED),
    rate(Event::Maintenance, 0.002, Per::Cable, ASSUMED),
    rate(Event::Reseat, 0.002, Per::Cable, ASSUMED),
    rate(Event::LongReseat, 0.0005, Per::Cable, ASSUMED),
    rate(Event::ClearFabric, 0.1, Per::Fabric, ASSUMED),
    rate(Event::ClearPort, 0.01, Per::Port, ASSUMED),
    rate(Event::SilentNode, 0.01, Per::Switch, ASSUMED),
    rate(
        Event::ImpossibleValue,
        0.0005,
        Per::Port,
        "one of 256 ConnectX-7 in a public dump; how often is an assumption",
    ),
    rate(Event::Congestion, 1.0, Per::Fabric, ASSUMED),
    rate(Event::Overruns, 0.02, Per::Fabric, ASSUMED),
    rate(Event::SmFailover, 1.0 / 30.0, Per::Fabric, ASSUMED),
    rate(
        Event::Burst,
        0.01,
        Per::Port,
        "50 errors in a second are a burst, not a fault (Imbue, 2024); how often is an assumption",
    ),
    rate(Event::SmallBurst, 0.05, Per::Port, ASSUMED),
    rate(Event::Retraining, 0.01, Per::Cable, ASSUMED),
    rate(Event::MissedSweeps, 0.1, Per::Fabric, ASSUMED),
    rate(Event::Restart, 1.0 / 30.0, Per::Fabric, ASSUMED),
    rate(
        Event::SingleFlap,
        1.8e-4,
        Per::Cable,
        "one flap every 48 s among more than 10 million optical links (arXiv 2026, second-hand)",
    ),
    rate(
        Event::Dying,
        1.9e-5,
        Per::Cable,
        "0.057% of links a month (Alibaba HPN, SIGCOMM 2024, second-hand)",
    ),
    rate(Event::FlappingCable, 1.9e-5, Per::Cable, "assumption: as dying cables"),
    rate(Event::LaneLoss, 1.0e-5, Per::Cable, ASSUMED),
];

/// The probability that a port's counters are not read in a sweep, after all retries.
pub const LOST_READING: f64 = 1e-4;

/// The share of cables with a steady bit error ratio near the limit, in each direction separately, by the ratio's
/// multiple of the limit. Assumptions; the others have 1e-4 to 0.03 of it.
pub const MARGINAL: [(f64, f64); 5] =
    [(0.1, 0.02), (0.3, 0.01), (0.5, 0.005), (0.7, 0.005), (0.9, 0.005)];

/// The share of fabrics in which a tool clears all counters at an interval of this many seconds: each minute, hour, day.
pub const CLEARED_REGULARLY: [(f64, f64); 3] = [(60.0, 0.01), (3600.0, 0.02), (86_400.0, 0.05)];

/// The share of fabrics whose adapters run at two of four lanes by design (HDR100, NDR200).
pub const HALF_WIDTH: f64 = 0.1;

/// The share of adapter ports whose SymbolErrorCounter and PortRcvErrors are saturated from the start: 5 and 2 of 256
/// ConnectX-7 in a public dump.
pub const STUCK_SYMBOLS: f64 = 5.0 / 256.0;
/// See [`STUCK_SYMBOLS`].
pub const STUCK_RECEIVE: f64 = 2.0 / 256.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_row() {
        for (event, row) in Event::ALL.into_iter().zip(RATES) {
            assert_eq!(event, row.event);
            assert!(row.per_day > 0.0 && !row.source.is_empty());
        }
    }
}
