//! When a device that does not respond is asked again.

/// It is asked again after as many discoveries at most.
const MAX_SKIPPED: u32 = 64;

/// How many discoveries leave out what did not respond: twice as many after each try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// In how many discoveries in a row it did not respond.
    count: u32,
    /// The discoveries before it is asked again.
    skipped: u32,
}

impl Backoff {
    /// Whether it is asked in this discovery.
    pub(crate) fn is_due(self) -> bool {
        self.skipped == 0
    }

    /// It did not respond.
    #[must_use]
    pub(crate) fn lost(self) -> Self {
        let count = self.count.saturating_add(1);
        let skipped = 1_u32.checked_shl(count).unwrap_or(MAX_SKIPPED).min(MAX_SKIPPED);
        Backoff { count, skipped }
    }

    /// A discovery begins: the next try is a discovery closer.
    #[must_use]
    pub(crate) fn at_discovery(self) -> Self {
        Backoff { skipped: self.skipped.saturating_sub(1), ..self }
    }
}
