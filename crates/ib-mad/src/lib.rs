//! InfiniBand management datagrams (MADs) as bytes and as values, without I/O.
//!
//! A [`Mad`] has 256 bytes, big-endian (IBTA 1.4, chapter 13.4). A [`Query`] generates requests; each
//! attribute is a struct with `decode` and `encode`, generated from one table of its fields (see
//! [`layout`]). Decoders read fixed offsets of a buffer of that size, so no response can make a decoder
//! fail.
//!
//! The crate also has the base types of all others: [`Guid`], [`Lid`], [`Moment`], link rates and port
//! states, and the table of port counters ([`counter::TABLE`]).
//!
//! ```
//! use ib_mad::counter::Attribute;
//! use ib_mad::pma::{self, AgentProfile, OptionalCounters};
//! use ib_mad::{Counter, DATA, Mad, Moment, Reading};
//!
//! // The Get of PortCounters of port 1, and a response of the device.
//! let request = Mad::get(&pma::counters(Attribute::PortCounters, 1), None, 7);
//! let mut response = request.response();
//! response.put_be(DATA + 4, 2, 42); // SymbolErrorCounter
//!
//! // A device without 64-bit counters: one attribute has all of them.
//! let plan = pma::read_plan(&AgentProfile::default(), OptionalCounters::default());
//! let mut reading = Reading::empty(Moment::default());
//! plan[0].read(&response, &mut reading);
//! assert_eq!(reading.get(Counter::SymbolErrors), Some(42));
//! assert_eq!(reading.get(Counter::XmitWait), None, "not announced");
//! ```

pub mod class_port_info;
pub mod clear;
pub mod counter;
pub mod fec;
pub mod ids;
pub mod label;
pub mod layout;
pub mod m_key;
mod mad;
pub mod moment;
pub mod node;
pub mod pma;
pub mod port_info;
pub mod port_state;
pub mod rate;
pub mod reading;
pub mod smp;

pub use counter::Counter;
pub use ids::{self as p_key, Guid, Lid, PortNumber};
pub use mad::{Class, DATA, DirectedRoute, LEN, Mad, Query, method, status};
pub use moment::{self as clock, Moment};
pub use node::{NodeIdentity, NodeKind, PortRole, device};
pub use port_state as port_event;
pub use reading::Reading;
