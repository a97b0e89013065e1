//! The routes of data packets, read on demand from the linear forwarding tables of switches: the way from one host to
//! another ([`route_query`]), and the hosts whose packets cross a link ([`link_users_query`]).
//!
//! They are not the directed routes of management packets, which are in [`routes`](crate::routes).
//!
//! A subnet manager writes into each switch, for each LID, the port by which packets to it leave. All tables of a fabric
//! with 5,000 hosts and 500 switches are 44,000 SMPs. So a query reads only the blocks of 64 LIDs that it needs, and keeps
//! them in a [`cache`] for later queries of the same fabric, all of which share one [`budget`].
//!
//! Tables have one port for each LID. With adaptive routing a switch may choose another one of the same distance, and
//! results have a flag for that. A multi-plane adapter has one LID in all planes: each switch shows the route in its own.

pub mod budget;
pub mod cache;
mod crossing;
mod lids;
pub mod link_users;
pub mod link_users_query;
mod reader;
pub mod route;
pub mod route_query;
pub mod tables_read;
