//! Rules, alerts and dashboards in a real Prometheus and Alertmanager.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alert_delivery;
mod alerts;
mod compat;
mod condition;
mod dashboards;
mod demo;
mod shards;
mod week;
