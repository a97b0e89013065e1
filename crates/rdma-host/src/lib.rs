#![doc = include_str!("../README.md")]

pub mod model;
pub mod reader;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
