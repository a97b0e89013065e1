//! The JSON models of the API, used by the server and by clients such as `links --url`. Their doc comments are the
//! descriptions in openapi.json.

/// Declares models with what all of them derive.
macro_rules! models {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })+) => { $(
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $(#[$meta])*
        pub struct $name { $($fields)* }
    )+ };
}

mod changes;
mod common;
mod condition;
mod congestion;
mod host;
mod impact;
mod link;
mod node;
mod overview;
mod port;
mod rail;
mod route;
mod search;
mod spares;
mod topology;
mod traffic;

pub use changes::*;
pub use common::*;
pub use condition::*;
pub use congestion::*;
pub use host::*;
pub use impact::*;
pub use link::*;
pub use node::*;
pub use overview::*;
pub use port::*;
pub use rail::*;
pub use route::*;
pub use search::*;
pub use spares::*;
pub use topology::*;
pub use traffic::*;
