//! Rules, alerts and dashboards in a real Prometheus and Alertmanager.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alerts;
mod compat;
mod dashboards;
mod on_call;
