//! Whoever is asked what happened tells the same: the file, the exporter that writes it, and a
//! Prometheus that has scraped it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod hostile;
mod stored;
mod taped;

use test_rig as rig;
