//! Delay and loss.

use std::time::Duration;

/// What the proxy does to the MADs that pass.
#[derive(Clone, Copy)]
pub struct Impairment {
    /// Added to every reply. Replies stay in order and any number of them is under way at once.
    pub delay: Duration,
    /// How many of a thousand requests are lost without a response.
    pub loss_permille: u32,
}
