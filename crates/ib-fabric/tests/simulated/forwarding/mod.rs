//! Routes by forwarding tables of simulated fabrics, against the tables themselves.

mod bench;
mod cache;
mod five_thousand;
mod link_users;
mod routes;
mod truth;
