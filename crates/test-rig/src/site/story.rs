//! A site and its day.

use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use ib_sim::rng::Rng;
use ib_sim::scenario::{MadDelivery, ResolvedScenario};

use super::builder::Builder;
use super::net;
use super::size::{Planted, Size};

/// A site and its day.
pub struct Site {
    /// The fabric and all that happens.
    pub story: ResolvedScenario,
    /// The bad cables.
    pub planted: Vec<Planted>,
    /// What happens, by kind, with how often.
    pub happenings: Vec<(&'static str, usize)>,
}

impl Site {
    /// Makes a site.
    pub fn new(size: Size, seed: u64) -> Site {
        let (net, hosts) = net::build(&size);
        let rng = Rng::new(seed);
        let (changes, planted, happenings) = (Vec::new(), Vec::new(), Vec::new());
        let mut builder = Builder { size, net, rng, hosts, changes, planted, happenings };
        builder.add_imperfections();
        builder.add_day();
        builder.changes.sort_by_key(|change| change.at);
        let Builder { net, hosts, changes, planted, happenings, .. } = builder;
        // The monitor and the subnet managers are on service hosts, the last ones.
        let seat = |nth: usize| {
            let host = &hosts[hosts.len() - 1 - nth];
            net.cable_ports(host[0]).find(|port| net.port(*port).cable.is_some()).unwrap()
        };
        let delivery = MadDelivery {
            round_trip: Duration::from_micros(20),
            per_hop: Duration::from_micros(1),
            jitter: Duration::from_micros(10),
            loss: 1e-6,
        };
        let (local_ports, sm_ports) = (vec![seat(0)], vec![seat(1)]);
        let story = ResolvedScenario {
            net,
            local_ports,
            sm_ports,
            seed,
            delivery,
            changes,
            own_host: None,
            descriptions: Vec::new(),
        };
        Site { story, planted, happenings }
    }

    /// How it is monitored: by the defaults of `serve`, but for the interval.
    pub fn options(size: &Size) -> FabricOptions {
        let interval = format!("{}s", size.interval.as_secs()).parse().ok();
        FabricOptions { interval, ..FabricOptions::default() }
    }
}
