//! Bit error ratios: how many of the bits that come in at a port are wrong, and how many may be.
//!
//! A ratio is measured over windows. The shortest one that can tell decides: a link that is grossly
//! bad shows it in a minute, one at its limit in as long as that takes to bring an error or two.

use std::time::Duration;

use ib_mad::Moment;
use ib_mad::fec::Fec;
use ib_mad::rate::Speed;

use super::window;

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

    /// How long it is once it is full; up to a fifth more.
    pub fn length(self) -> Duration {
        Duration::from_secs(match self {
            Window::Quick => 75,
            Window::Short => 12 * 60,
            Window::Long => 125 * 60,
        })
    }
}

/// What may be wrong of the bits on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Behind error correction: what is lost.
    pub symbol: f32,
    /// Before it: what it had to mend.
    pub pre_fec: Option<f32>,
}

/// A row of the table of limits: a speed, and an error correction if it matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitRow {
    /// The speed.
    pub speed: Speed,
    /// Only with this error correction.
    pub fec: Option<Fec>,
    /// The limits.
    pub limits: Limits,
}

const fn row(speed: Speed, fec: Option<Fec>, symbol: f32, pre_fec: Option<f32>) -> LimitRow {
    LimitRow { speed, fec, limits: Limits { symbol, pre_fec } }
}

/// The limits, the more special rows first.
///
/// Up to FDR: the specification's 1e-12. From EDR on: the error level of UFM's PDR plugin
/// (Field_BER_Thresholds, V06), by what can be asked for in band; which process the ASIC is made in
/// and whether it retries on the link layer (PLR) cannot, so HDR has the limit of the 16 nm devices
/// that most of it runs on, and NDR that of devices with PLR. XDR has NDR's until somebody publishes
/// its own. At HDR the plugin has one limit for 16 nm devices, whatever the correction. At NDR it has
/// limits by code: where a port tells a code without one, there is none, and no judgement by what is
/// corrected. With PLR its limit is 1e-6 on copper and 1e-5 on active cables: RS(271,257) with PLR is what
/// copper runs (186 of 190 ends of a public data set), RS(544,514) what optics run.
const TABLE: [LimitRow; 20] = [
    row(Speed::Sdr, None, 1e-12, None),
    row(Speed::Ddr, None, 1e-12, None),
    row(Speed::Qdr, None, 1e-12, None),
    row(Speed::Fdr10, None, 1e-12, None),
    row(Speed::Fdr, None, 1e-12, None),
    row(Speed::Edr, Some(Fec::LowLatency), 1e-13, Some(1e-12)),
    row(Speed::Edr, Some(Fec::MellanoxLowLatency), 1e-13, Some(1e-12)),
    row(Speed::Edr, Some(Fec::ReedSolomon), 1e-13, Some(1e-9)),
    row(Speed::Edr, None, 1e-13, None),
    // Only devices made in 7 nm retransmit on the physical layer.
    row(Speed::Hdr, Some(Fec::Rs544Plr), 1e-14, Some(1e-7)),
    row(Speed::Hdr, Some(Fec::Rs271Plr), 1e-14, Some(1e-7)),
    row(Speed::Hdr, None, 1e-13, Some(1e-5)),
    row(Speed::Ndr, Some(Fec::StrongReedSolomon), 1e-14, None),
    row(Speed::Ndr, Some(Fec::MellanoxLowLatency), 1e-14, None),
    row(Speed::Ndr, Some(Fec::Adaptive), 1e-14, None),
    row(Speed::Ndr, Some(Fec::Cod), 1e-14, None),
    row(Speed::Ndr, Some(Fec::ZeroLatency), 1e-14, None),
    row(Speed::Ndr, Some(Fec::Rs271Plr), 1e-14, Some(1e-6)),
    row(Speed::Ndr, None, 1e-14, Some(1e-5)),
    row(Speed::Xdr, None, 1e-14, Some(1e-5)),
];

/// The limits of a site.
#[derive(Clone, Debug)]
pub struct LimitTable {
    rows: Vec<LimitRow>,
}

impl Default for LimitTable {
    fn default() -> Self {
        LimitTable::new(&[])
    }
}

impl LimitTable {
    /// The usual limits, with a site's own before them.
    pub fn new(own: &[LimitRow]) -> Self {
        LimitTable { rows: own.iter().chain(&TABLE).copied().collect() }
    }

    /// All rows; the first that fits counts.
    pub fn rows(&self) -> &[LimitRow] {
        &self.rows
    }

    /// The limits of a link.
    pub fn of(&self, speed: Speed, fec: Option<Fec>) -> Limits {
        let fits = |row: &&LimitRow| row.speed == speed && (row.fec.is_none() || row.fec == fec);
        // Each speed has a row of its own in the table.
        self.rows.iter().find(fits).map_or(TABLE[0].limits, |row| row.limits)
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

impl Judgement {
    /// As JSON writes it.
    pub fn label(self) -> &'static str {
        match self {
            Judgement::Unknown => "unknown",
            Judgement::Fine => "fine",
            Judgement::Raised => "raised",
            Judgement::Over => "over",
        }
    }
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
    /// What error correction had to correct, if it tells.
    pub mended: Option<Mended>,
}

/// The ratio of bits that error correction had to correct in 2 to 4 minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mended {
    /// As it was measured.
    pub ratio: f32,
    /// The ratio that is too much.
    pub limit: f32,
    /// When it was measured: now, or when the counter was last below its highest value.
    pub at: Moment,
    /// The counter is full: this is the last that is known, and no measurement of now.
    pub stale: bool,
}

/// So many errors a link at its limit must have had in a window before it can tell anything: with
/// none seen where 2.5 were due, the link is below its limit with 92 % confidence (e^-2.5), and one
/// at a tenth of it would have had a quarter of one. At NDR, 1e-14 takes 625 s.
const ENOUGH: f32 = 2.5;

/// In so many intervals between the points of a window there must have been errors. One event, such as
/// a burst of noise, may be read in two, if a sweep falls into it; a bad cable goes on.
const STEADY: usize = 3;

/// More errors than a link with `expected` has by chance. For a link at a tenth of its limit, which
/// is what is called normal, the chance to get there is below 1e-10 in a window of any length (Poisson;
/// most, 3e-11, where 0.54 are expected); for one at half its limit below 2e-6.
pub fn most(expected: f32) -> f32 {
    expected + 2.0 * expected.sqrt() + 4.0
}

impl BitErrors {
    /// The measured ratio over a window; `None` while the window is too short to tell: a link at
    /// its limit would have had fewer than 2.5 errors in it.
    pub fn ratio(&self, window: Window) -> Option<f64> {
        let Measured { errors, seconds } = self.windows[window as usize];
        let tells = self.expected(window, self.limit) >= ENOUGH || errors as f32 > most(ENOUGH);
        (tells && self.judgement != Judgement::Unknown)
            .then(|| f64::from(errors) / (f64::from(self.bits_a_second) * f64::from(seconds)))
    }

    /// The errors that a ratio brings in a window.
    fn expected(&self, window: Window, ratio: f32) -> f32 {
        self.windows[window as usize].seconds * self.bits_a_second * ratio
    }
}

/// The windows of one port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    windows: [window::Window; Window::ALL.len()],
    /// Errors since it began, modulo 2^32: windows know only differences.
    counted: u32,
}

impl Watch {
    /// Takes what was counted since the last reading in, and judges.
    pub fn follow(&mut self, at: Moment, errors: u64, bits_a_second: f32, limit: f32) -> BitErrors {
        let mut found = BitErrors { bits_a_second, limit, ..BitErrors::default() };
        self.counted = self.counted.wrapping_add(errors as u32);
        let (at, counted) = (window::Tick::from(at), self.counted);
        for (window, kept) in Window::ALL.into_iter().zip(&mut self.windows) {
            if let Some((errors, seconds)) = kept.growth(at, counted) {
                found.windows[window as usize] = Measured { errors, seconds };
            }
            kept.note(window.length(), at, counted);
        }
        self.judge(&mut found, counted);
        found
    }

    fn judge(&self, found: &mut BitErrors, counted: u32) {
        for (window, kept) in Window::ALL.into_iter().zip(&self.windows) {
            let errors = found.windows[window as usize].errors as f32;
            let expected = found.expected(window, found.limit);
            let steady = kept.busy_intervals(counted) >= STEADY;
            let judgement = if steady && errors > most(expected) {
                Judgement::Over
            } else if steady && errors > most(expected / 2.0) {
                Judgement::Raised
            } else if expected >= ENOUGH {
                Judgement::Fine
            } else {
                Judgement::Unknown
            };
            // The gravest; among equals the shortest window.
            if judgement as u8 > found.judgement as u8 {
                (found.judgement, found.decided_by) = (judgement, Some(window));
            }
        }
    }
}

#[cfg(test)]
mod tests;
