//! A simulated InfiniBand fabric that responds to MADs: nodes, cables, counters, and their
//! faults.
//!
//! A [`net::Net`] is a fabric as built: generated, or imported from `ibnetdiscover` or ibsim. A
//! [`scenario`] is a list of timed actions on it, a [`simulation`] its state at a moment, and the [`load`] is
//! what its traffic does to its ports. The [`agents`] respond to MADs, which the [`transport`] carries
//! behind the trait of `ib-umad`.
//!
//! The same scenario with the same seed has the same results, in real time or in virtual time.
//!
//! Two hosts with a bad cable, and a request for PortCounters:
//!
//! ```
//! use ib_mad::counter::Attribute;
//! use ib_mad::{Mad, Moment, pma};
//! use ib_sim::agents;
//! use ib_sim::scenario::{Overrides, Scenario};
//! use ib_sim::simulation::Simulation;
//!
//! let text = "
//! fabric: {back-to-back: {hca: connectx-4}}
//! timeline:
//!   - bad-cable: {at: 10s, into: host-1, ratio: 1e-9}
//! ";
//! let scenario = Scenario::parse("example.yml", text)?.resolve(&Overrides::default())?;
//! let mut simulation = Simulation::new(scenario);
//! simulation.advance(Moment(60_000_000_000));
//!
//! let net = simulation.net();
//! let port = net.port_ids().find(|&port| net.label(port) == "host-1[1]").unwrap();
//! let request = Mad::get(&pma::counters(Attribute::PortCounters, 1), None, 1);
//! let response = agents::response(&simulation, port, &request).unwrap();
//! // SymbolErrorCounter: EDR carries 100 Gb/s, so there are 100 errors a second for 50 s.
//! let symbol_errors = u16::from_be_bytes([response.data()[4], response.data()[5]]);
//! assert!((4_600..5_400).contains(&symbol_errors));
//! # Ok::<(), ib_sim::scenario::ScenarioError>(())
//! ```

pub mod agents;
pub mod device;
pub mod load;
pub mod net;
pub mod rng;
pub mod scenario;
pub mod simulation;
pub mod transport;
