#![doc = include_str!("../README.md")]

pub mod action;
pub mod bounds;
pub mod cell;
pub mod devices;
mod effects;
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
pub mod time;
pub mod trials;
pub mod truth;
pub mod world;
