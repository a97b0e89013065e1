#![doc = include_str!("../README.md")]

mod labeled_enum;
mod names;
mod numbers;

pub use names::{NaturalPart, abbreviate, natural_key};
pub use numbers::{grouped, plural};
