//! What families are rendered into.

/// Where samples are written to.
pub trait Output: Default {
    /// The samples of a family.
    type Samples;

    /// The text so far, or the end of it.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Frees space in the buffer, at the end of a sample.
    fn settle(&mut self) {}

    /// Ends a family, and begins the next; `None` if it has no samples.
    fn finish(&mut self) -> Option<Self::Samples>;
}

/// Plain text.
impl Output for Vec<u8> {
    type Samples = Vec<u8>;

    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }

    fn finish(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(self)).filter(|samples| !samples.is_empty())
    }
}
