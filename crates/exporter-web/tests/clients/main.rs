//! The server against clients that leave, do not read, or are many.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod abandoned;
mod crowded;
mod half_closed;
mod refused;
mod served;
