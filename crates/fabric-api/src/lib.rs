#![doc = include_str!("../README.md")]

pub mod address;
pub mod changes;
pub mod condition;
mod filter;
mod history_state;
pub mod impact;
pub mod learning;
mod link_measures;
mod link_row;
pub mod links;
mod live;
pub mod model;
pub mod modules;
pub mod nodes;
pub mod overview;
pub mod places;
mod planes;
pub mod ports;
mod rails;
pub mod route_desk;
pub mod routes;
pub mod search;
pub mod spares;
pub mod topology;
pub mod totals;
pub mod traffic;
mod trends;
mod view;

pub use filter::{Fabrics, Filter, KINDS, MAX_LIMIT, check_fabric, parse_verdict, selected};
pub use history_state::history_states;
pub use link_measures::LinkCongestion;
pub use link_row::LinkRow;
pub use live::LiveState;
pub use trends::Trends;
pub use view::{FabricView, rfc3339};

/// The path of the list of links.
pub const LINKS: &str = "/api/v1/links";
/// The path of the list of the busiest links.
pub const TRAFFIC: &str = "/api/v1/traffic";
/// The path of the routes between two nodes.
pub const ROUTE: &str = "/api/v1/route";
/// The path of the links that packets of a host cross.
pub const CROSSED: &str = "/api/v1/crossed";
/// The path of the hosts whose packets cross a link.
pub const LINK_HOSTS: &str = "/api/v1/links/{id}/hosts";
/// The path of the description of the API.
pub const OPENAPI: &str = "/api/v1/openapi.json";
