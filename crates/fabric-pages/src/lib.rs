#![doc = include_str!("../README.md")]

pub mod changes;
mod components;
mod events;
mod frame;
mod history_queries;
mod host;
mod impact;
mod incidents;
mod link;
mod list;
mod moment;
mod node;
mod overview;
mod page;
mod query_params;
mod rails;
mod recent_moments;
mod routes;
mod runbooks;
mod search;
mod state;
mod style;
mod time_bar;
mod topology;
mod traffic;
mod window_choice;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::get;
use fabric_api::address;

pub use frame::frame;
pub use history_queries::{HistoryQueries, run_query};
pub use page::Problem;
pub use query_params::QueryResult;
pub use recent_moments::ShownMoment;
pub use state::PageState;

/// The routes of all pages. A handler gets its [`PageState`] from the state of the application, at each request.
pub fn router<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    PageState: FromRef<S>,
{
    Router::new()
        .route(address::OVERVIEW, get(overview::get))
        .route(address::LINKS, get(list::links::get))
        .route(address::SWITCHES, get(list::nodes::switches))
        .route(address::HOSTS, get(list::nodes::hosts))
        .route(address::MODULES, get(list::modules::get))
        .route(address::SEARCH, get(search::search))
        .route(address::HOST, get(host::host))
        .route(address::LINK, get(link::get))
        .route(address::LINK_HOSTS, get(routes::hosts_of_link))
        .route(address::ROUTE, get(routes::route))
        .route(address::CROSSED, get(routes::crossed))
        .route(address::NODE, get(node::get))
        .route(address::PORT, get(node::port))
        .route(address::TOPOLOGY, get(topology::get))
        .route(address::TOPOLOGY_SVG, get(topology::svg))
        .route(address::TRAFFIC, get(traffic::get))
        .route(address::EVENTS, get(events::get))
        .route(address::CHANGES, get(changes::get))
        .route(address::RUNBOOKS, get(runbooks::index))
        .route(address::RUNBOOK, get(runbooks::get))
        .route(address::STYLE, get(style::get))
        .route(address::ICON, get(frame::icon))
}
