//! fabric-exporter: a fabric health monitor for InfiniBand and RoCE.

pub mod cli;
mod command;
pub mod config;
mod doctor;
pub mod exit;
pub mod history_client;
pub mod jobs;
pub mod log;
mod memory;
pub mod metrics;
pub mod monitor;
pub mod notify;
pub mod published;
mod readiness;
pub mod remote;
pub mod resolver;
pub mod sandbox;
pub mod server;
mod systemd;
