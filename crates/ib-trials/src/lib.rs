#![doc = include_str!("../README.md")]

pub mod actions;
pub mod bounds;
pub mod cell;
pub mod devices;
pub mod optimum;
mod plot;
pub mod rates;
mod readings;
pub mod repeated_flaps;
pub mod report;
pub mod rules;
pub mod run;
pub mod schedule;
pub mod score;
pub mod shard;
pub mod trials;
pub mod truth;
pub mod world;
