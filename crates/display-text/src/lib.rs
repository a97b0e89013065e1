#![doc = include_str!("../README.md")]

mod labeled_enum;
mod labels;
mod names;
mod numbers;

pub use labels::label_text;
pub use names::{NaturalPart, abbreviate, natural_key};
pub use numbers::{grouped, plural};
