//! The widths and speeds that are enabled at a port, and their masks in net files.

use ib_mad::rate::Speed::{self, Ddr, Edr, Fdr, Fdr10, Hdr, Ndr, Qdr, Sdr, Xdr};
use ib_mad::rate::{SpeedSet, Width};

/// The widths and speeds that are enabled at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// LinkWidthEnabled: a mask of codes.
    pub widths: u8,
    /// LinkSpeedEnabled.
    pub speeds: SpeedSet,
}

impl Rates {
    /// What is enabled in either.
    #[must_use]
    pub fn union(self, other: Rates) -> Rates {
        let either = |speed: &Speed| self.speeds.contains(*speed) || other.speeds.contains(*speed);
        Rates {
            widths: self.widths | other.widths,
            speeds: Speed::ALL.into_iter().filter(either).collect(),
        }
    }

    /// What is enabled in both.
    #[must_use]
    pub fn common(self, other: Rates) -> Rates {
        Rates { widths: self.widths & other.widths, speeds: self.speeds.intersection(other.speeds) }
    }

    /// What is no wider and no faster; `None` is no limit.
    #[must_use]
    pub fn up_to(self, width: Option<Width>, speed: Option<Speed>) -> Rates {
        Rates {
            widths: width.map_or(self.widths, |width| self.widths & width.up_to()),
            speeds: speed.map_or(self.speeds, |speed| self.speeds.up_to(speed)),
        }
    }

    /// The width and speed that a link trains at.
    pub fn best(self) -> Option<(Width, Speed)> {
        Width::widest(self.widths).zip(self.speeds.fastest())
    }
}

impl Default for Rates {
    /// What ibsim gives a port by default: 4x and SDR.
    fn default() -> Self {
        Rates { widths: 2, speeds: SpeedSet::default().with(Sdr) }
    }
}

/// A mask of a net file: a key in the header, a letter after a cable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    pub key: &'static str,
    pub letter: char,
    pub least: u8,
    pub most: u8,
    /// The speeds of its bits, from the lowest on; none for the mask of widths.
    speeds: &'static [Speed],
}

/// The first three are ibsim's. FDR10 and XDR have no bits there. ibsim ignores unknown keys and
/// letters, so a file with ours runs there without these speeds.
pub(super) const MASKS: [Mask; 5] = [
    Mask { key: "width", letter: 'w', least: 1, most: 31, speeds: &[] },
    Mask { key: "speed", letter: 's', least: 1, most: 7, speeds: &[Sdr, Ddr, Qdr] },
    Mask { key: "extspeed", letter: 'e', least: 0, most: 15, speeds: &[Fdr, Edr, Hdr, Ndr] },
    Mask { key: "fdr10", letter: 'f', least: 0, most: 1, speeds: &[Fdr10] },
    Mask { key: "xdr", letter: 'x', least: 0, most: 1, speeds: &[Xdr] },
];

impl Mask {
    /// The value of this mask. At least its least value: files cannot have less.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn get(&self, rates: Rates) -> u8 {
        if self.speeds.is_empty() {
            return (rates.widths & self.most).max(self.least);
        }
        let bit = |(bit, speed): (usize, &Speed)| u8::from(rates.speeds.contains(*speed)) << bit;
        self.speeds.iter().enumerate().map(bit).sum::<u8>().max(self.least)
    }

    /// Sets this mask and leaves the others; false if the value is out of range.
    pub(super) fn set(&self, rates: &mut Rates, value: u64) -> bool {
        let Some(value) = u8::try_from(value).ok().filter(|v| (self.least..=self.most).contains(v))
        else {
            return false;
        };
        if self.speeds.is_empty() {
            rates.widths = value;
            return true;
        }
        let on = |speed: Speed| match self.speeds.iter().position(|of| *of == speed) {
            Some(bit) => value & 1 << bit != 0,
            None => rates.speeds.contains(speed),
        };
        rates.speeds = Speed::ALL.into_iter().filter(|speed| on(*speed)).collect();
        true
    }
}

/// Applies an option after a cable, such as `w=3`. Like ibsim it ignores unknown letters, and takes
/// `s=0` for QDR. False if the value is out of the letter's range.
pub(super) fn set_option(rates: &mut Rates, letter: char, value: u64) -> bool {
    let value = if (letter, value) == ('s', 0) { 4 } else { value };
    MASKS.iter().find(|mask| mask.letter == letter).is_none_or(|mask| mask.set(rates, value))
}

/// Enables what a link with this rate must have had, such as `4xEDR` in ibnetdiscover's output. An
/// invalid rate is no error: it is from a comment.
pub(super) fn set_rate(rates: &mut Rates, rate: &str) {
    let Some((width, speed)) = rate.split_once('x') else { return };
    rates.widths = match width {
        "1" => 1,
        "2" => 16,
        "4" => 1 | 2,
        "8" => 4,
        "12" => 1 | 2 | 8,
        _ => return,
    };
    let Some(observed) = Speed::from_label(speed) else { return };
    // As in ibsim all speeds up to it; without an extended speed their masks do not change.
    let is_kept = |speed: Speed| observed < Fdr && speed > Qdr && rates.speeds.contains(speed);
    let is_on = |speed: &Speed| *speed <= observed || is_kept(*speed);
    rates.speeds = Speed::ALL.into_iter().filter(is_on).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(rates: Rates) -> [u8; 5] {
        MASKS.map(|mask| mask.get(rates))
    }

    #[test]
    fn masks_are_independent() {
        let mut rates = Rates::default();
        assert_eq!(masks(rates), [2, 1, 0, 0, 0]);
        for (letter, value, then) in [
            ('w', 11, [11, 1, 0, 0, 0]),
            ('e', 8, [11, 1, 8, 0, 0]),
            ('f', 1, [11, 1, 8, 1, 0]),
            ('s', 6, [11, 6, 8, 1, 0]),
            ('x', 1, [11, 6, 8, 1, 1]),
            ('s', 0, [11, 4, 8, 1, 1]),
            ('q', 99, [11, 4, 8, 1, 1]),
        ] {
            assert!(set_option(&mut rates, letter, value), "{letter}={value}");
            assert_eq!(masks(rates), then, "{letter}={value}");
        }
        for (letter, value) in [('w', 0), ('w', 32), ('s', 8), ('e', 16), ('x', 2), ('w', 258)] {
            assert!(!set_option(&mut rates, letter, value), "{letter}={value}");
        }
    }

    #[test]
    fn every_speed_has_one_bit() {
        for speed in Speed::ALL {
            let bits = MASKS.iter().flat_map(|mask| mask.speeds).filter(|of| **of == speed);
            assert_eq!(bits.count(), 1, "{speed:?}");
        }
    }

    #[test]
    fn rate_enables_widths_and_speeds() {
        for (rate, then) in [
            ("4xSDR", [3, 1, 4, 0, 0]),
            ("1xQDR", [1, 7, 4, 0, 0]),
            ("4xFDR10", [3, 7, 4, 1, 0]),
            ("12xFDR", [11, 7, 1, 1, 0]),
            ("8xNDR", [4, 7, 15, 1, 0]),
            ("2xHDR", [16, 7, 7, 1, 0]),
            ("4xXDR", [3, 7, 15, 1, 1]),
            ("4x?", [3, 1, 4, 0, 0]),
            ("3xEDR", [2, 1, 4, 0, 0]),
            ("x", [2, 1, 4, 0, 0]),
        ] {
            let mut rates = Rates::default();
            assert!(set_option(&mut rates, 'e', 4));
            set_rate(&mut rates, rate);
            assert_eq!(masks(rates), then, "{rate}");
        }
    }
}
