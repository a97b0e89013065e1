#![doc = include_str!("../README.md")]

pub mod address;
pub mod condition;
mod filter;
mod history_state;
pub mod impact;
pub mod learning;
mod link_row;
pub mod links;
mod live;
pub mod model;
pub mod modules;
pub mod nodes;
pub mod overview;
mod planes;
pub mod ports;
mod rails;
pub mod search;
pub mod spares;
pub mod topology;
pub mod totals;
pub mod traffic;
mod trends;
mod view;

pub use filter::{Fabrics, Filter, KINDS, MAX_LIMIT, check_fabric, parse_verdict, selected};
pub use history_state::history_states;
pub use link_row::LinkRow;
pub use live::LiveState;
pub use trends::Trends;
pub use view::{FabricView, rfc3339};

/// The path of the list of links.
pub const LINKS: &str = "/api/v1/links";
/// The path of the list of the busiest links.
pub const TRAFFIC: &str = "/api/v1/traffic";
/// The path of the description of the API.
pub const OPENAPI: &str = "/api/v1/openapi.json";
