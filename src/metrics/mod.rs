//! The metrics: families of the fabrics, of the host and of the exporter itself, and how they are rendered for scrapes.

pub mod fabric;
mod family_order;
mod family_table;
pub mod host;
mod modules;
mod own;
mod rendered;
mod requested;
pub mod selection;
pub mod self_metrics;

pub use exposition::Format;
pub use family_order::group;
pub use own::OwnMetrics;
pub use rendered::RenderedMetrics;
