//! The window of requests in flight.

/// A window of requests in flight: halves on a time-out, grows by one with each window of responses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AdaptiveWindow {
    /// Requests that may be in flight now.
    pub size: u16,
    pub limit: u16,
    since_growth: u16,
}

impl AdaptiveWindow {
    pub fn new(limit: u16) -> Self {
        AdaptiveWindow { size: limit, limit, since_growth: 0 }
    }

    pub fn on_response(&mut self) {
        if self.size < self.limit {
            self.since_growth += 1;
            if self.since_growth >= self.size {
                self.size += 1;
                self.since_growth = 0;
            }
        }
    }

    pub fn on_timeout(&mut self) {
        self.shrink_to((self.size / 2).max(1));
    }

    pub fn shrink_to(&mut self, size: u16) {
        self.size = size;
        self.since_growth = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_halves_on_timeout_and_grows_on_responses() {
        let mut window = AdaptiveWindow::new(4);
        window.on_timeout();
        assert_eq!(window.size, 2);
        for (responses, size) in [(2, 3), (3, 4), (100_000, 4)] {
            (0..responses).for_each(|_| window.on_response());
            assert_eq!(window.size, size);
        }
        (0..5).for_each(|_| window.on_timeout());
        assert_eq!(window.size, 1);
    }
}
