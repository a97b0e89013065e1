//! The exporter on fabrics: ibsim with OpenSM and infiniband-diags, and the simulated fabric.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agrees_with_infiniband_diags;
mod collected;
mod congestion;
mod drain_plan;
mod dumps;
mod ending;
mod faults;
mod fuzz_corpus;
mod judged;
mod links;
mod noise;
mod one_net_two_fabrics;
mod readdressed;
mod registers;
mod rendering;
mod rig_works;
mod routes_on_ibsim;
mod scenario_effects;
mod scenarios;
mod series;
mod strangers_read_us;
mod top;
mod totals;
mod two_exporters;
mod verdicts;
