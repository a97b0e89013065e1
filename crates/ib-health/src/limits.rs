//! Which share of the bits on a link may be wrong, by speed and error correction, and how certain it must be that a link
//! exceeds that.

use ib_mad::fec::Fec;
use ib_mad::rate::Speed;

use super::flap_limits::FlapDayLimit;

/// Which share of the bits on a link may be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// After error correction: bits that are lost.
    pub symbol: f32,
    /// Before error correction: bits that it has to correct. `None` if there is no limit.
    pub pre_fec: Option<f32>,
}

/// A row of the table of limits: for a speed, and optionally an error correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitRow {
    /// The speed.
    pub speed: Speed,
    /// Only with this error correction.
    pub fec: Option<Fec>,
    /// The limits.
    pub limits: Limits,
}

/// The limits of a speed and an error correction.
///
/// Up to FDR: the specification's 1e-12. From EDR on: the error level of UFM's PDR plugin (Field_BER_Thresholds,
/// V06), by what can be read in band. Which process the ASIC is made in and whether it retries on the link layer
/// (PLR) cannot be read, so HDR has the limit of the 16 nm devices that most of it runs on, and NDR that of devices
/// with PLR. XDR has NDR's until limits for it are published. At HDR the plugin has one limit for 16 nm devices, for
/// any correction. At NDR it has limits by code: a port with a code that has none has no pre-FEC limit. With PLR its
/// limit is 1e-6 on copper and 1e-5 on active cables: RS(271,257) with PLR is what copper runs (186 of 190 ends of a
/// public data set), RS(544,514) what optics run.
fn default_limits(speed: Speed, fec: Option<Fec>) -> Limits {
    use Fec::{
        Adaptive, Cod, LowLatency, MellanoxLowLatency, ReedSolomon, Rs271Plr, Rs544Plr,
        StrongReedSolomon, ZeroLatency,
    };
    use Speed::{Ddr, Edr, Fdr, Fdr10, Hdr, Ndr, Qdr, Sdr, Xdr};
    let (symbol, pre_fec) = match (speed, fec) {
        (Sdr | Ddr | Qdr | Fdr10 | Fdr, _) => (1e-12, None),
        (Edr, Some(LowLatency | MellanoxLowLatency)) => (1e-13, Some(1e-12)),
        (Edr, Some(ReedSolomon)) => (1e-13, Some(1e-9)),
        (Edr, _) => (1e-13, None),
        // Only devices made in 7 nm retransmit on the physical layer.
        (Hdr, Some(Rs544Plr | Rs271Plr)) => (1e-14, Some(1e-7)),
        (Hdr, _) => (1e-13, Some(1e-5)),
        (Ndr, Some(Rs271Plr)) => (1e-14, Some(1e-6)),
        (Ndr, Some(StrongReedSolomon | MellanoxLowLatency | Adaptive | Cod | ZeroLatency)) => {
            (1e-14, None)
        }
        (Ndr | Xdr, _) => (1e-14, Some(1e-5)),
    };
    Limits { symbol, pre_fec }
}

display_text::labeled_enum! {
    /// How certain it must be that a bit error ratio is above its limit before a link is bad, or above half of it
    /// before it is degraded. What each costs in false alarms and gains in time is measured: `docs/trust.md`.
    #[derive(Default)]
    pub enum Confidence {
        #[default]
        High, "high", "A link at its limit is called bad by chance in at most one of 100,000 windows.";
        Medium, "medium", "In at most one of 100 windows: bad links are found sooner, with more false alarms.";
    }
}

impl Confidence {
    /// The natural logarithms of one in so many windows: for `bad`, and for `watch` (one in 200 windows, or one in 10).
    pub(crate) fn odds(self) -> [f32; 2] {
        match self {
            Confidence::High => [11.5, 5.3],
            Confidence::Medium => [4.6, 2.3],
        }
    }
}

/// The limits in use.
#[derive(Clone, Debug, Default)]
pub struct LimitTable {
    /// A site's own limits, which come before the default ones.
    pub rows: Vec<LimitRow>,
    /// How certain it must be that a link exceeds them.
    pub confidence: Confidence,
    /// How often a link may flap.
    pub flap_days: FlapDayLimit,
}

impl LimitTable {
    /// The limits of a link.
    pub fn limits(&self, speed: Speed, fec: Option<Fec>) -> Limits {
        let matches = |row: &&LimitRow| row.speed == speed && (row.fec.is_none() || row.fec == fec);
        self.rows.iter().find(matches).map_or_else(|| default_limits(speed, fec), |row| row.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_speed_has_a_limit_and_a_site_may_override_it() {
        let usual = LimitTable::default();
        for speed in Speed::ALL {
            let limit = usual.limits(speed, None).symbol;
            assert!(limit > 0.0 && limit <= 1e-12, "{speed:?}");
        }
        for (speed, fec, symbol) in [
            (Speed::Fdr, None, 1e-12),
            (Speed::Edr, None, 1e-13),
            (Speed::Hdr, None, 1e-13),
            (Speed::Hdr, Some(Fec::Rs271Plr), 1e-14),
            (Speed::Ndr, None, 1e-14),
            (Speed::Xdr, None, 1e-14),
        ] {
            assert_eq!(Some(usual.limits(speed, fec).symbol), Some(symbol), "{speed:?} {fec:?}");
        }
        assert_eq!(usual.limits(Speed::Edr, Some(Fec::LowLatency)).pre_fec, Some(1e-12));
        for (speed, fec, pre_fec) in [
            (Speed::Edr, Fec::MellanoxLowLatency, Some(1e-12)),
            (Speed::Edr, Fec::Adaptive, None),
            (Speed::Hdr, Fec::Adaptive, Some(1e-5)),
            (Speed::Hdr, Fec::StrongReedSolomon, Some(1e-5)),
            (Speed::Hdr, Fec::Rs544Plr, Some(1e-7)),
            (Speed::Ndr, Fec::ReedSolomon2, Some(1e-5)),
            // On copper.
            (Speed::Ndr, Fec::Rs271Plr, Some(1e-6)),
            // None is published.
            (Speed::Ndr, Fec::ZeroLatency, None),
        ] {
            assert_eq!(usual.limits(speed, Some(fec)).pre_fec, pre_fec, "{speed:?} {fec:?}");
        }
        let limits = Limits { symbol: 1e-13, pre_fec: None };
        let own = LimitRow { speed: Speed::Ndr, fec: Some(Fec::ReedSolomon), limits };
        let site = LimitTable { rows: vec![own], ..LimitTable::default() };
        assert_eq!(site.limits(Speed::Ndr, Some(Fec::ReedSolomon)), own.limits);
        assert_eq!(site.limits(Speed::Ndr, None), usual.limits(Speed::Ndr, None));
    }
}
