//! Width and speed of links.

use display_text::labeled_enum;

labeled_enum! {
    /// Number of lanes of a link, which is the discriminant.
    #[derive(PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Width {
        X1 = 1, "1x", "One lane.";
        X2 = 2, "2x", "Two lanes.";
        X4 = 4, "4x", "Four lanes.";
        X8 = 8, "8x", "Eight lanes.";
        X12 = 12, "12x", "Twelve lanes.";
    }
}

/// The width and the speed of a link.
pub type LinkRate = (Width, Speed);

impl Width {
    /// The width with this code in LinkWidthActive.
    pub fn from_code(code: u8) -> Option<Width> {
        Self::ALL.into_iter().find(|width| width.code() == code)
    }

    /// The widest of a mask of codes, as in LinkWidthSupported and LinkWidthEnabled.
    pub fn widest(mask: u8) -> Option<Width> {
        Self::ALL.into_iter().rev().find(|width| mask & width.code() != 0)
    }

    /// Its bit in PortInfo's LinkWidth fields (IBTA 1.4, table 155; 2x by its later errata, thus the last).
    pub fn code(self) -> u8 {
        match self {
            Width::X1 => 1,
            Width::X4 => 2,
            Width::X8 => 4,
            Width::X12 => 8,
            Width::X2 => 16,
        }
    }

    /// Mask of the codes of this width and all narrower ones.
    pub fn up_to(self) -> u8 {
        let narrower = Self::ALL.into_iter().filter(|width| *width <= self);
        narrower.fold(0, |mask, width| mask | width.code())
    }

    /// Number of lanes.
    pub fn lanes(self) -> u8 {
        self as u8
    }
}

labeled_enum! {
    /// Speed of each lane of a link.
    #[derive(PartialOrd, Ord)]
    pub enum Speed {
        Sdr, "SDR", "Single data rate, 2.5 Gb/s.";
        Ddr, "DDR", "Double data rate, 5 Gb/s.";
        Qdr, "QDR", "Quad data rate, 10 Gb/s.";
        Fdr10, "FDR10", "10 Gb/s with 64b/66b coding, of Mellanox.";
        Fdr, "FDR", "Fourteen data rate.";
        Edr, "EDR", "Enhanced data rate, 25 Gb/s.";
        Hdr, "HDR", "High data rate, 50 Gb/s.";
        Ndr, "NDR", "Next data rate, 100 Gb/s.";
        Xdr, "XDR", "Extended data rate, 200 Gb/s.";
    }
}

impl Speed {
    /// Nominal rate of a lane in Mb/s, as in sysfs `rate` and `ibstat`, so that a port has the same rate in the
    /// host and the fabric view (kernel: `ib_port_attr`, `rate_show` in drivers/infiniband/core/sysfs.c).
    fn lane_mbps(self) -> u64 {
        match self {
            Speed::Sdr => 2_500,
            Speed::Ddr => 5_000,
            Speed::Qdr | Speed::Fdr10 => 10_000,
            Speed::Fdr => 14_000,
            Speed::Edr => 25_000,
            Speed::Hdr => 50_000,
            Speed::Ndr => 100_000,
            Speed::Xdr => 200_000,
        }
    }
}

/// A set of speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SpeedSet(u16);

impl SpeedSet {
    /// This set and one more speed.
    #[must_use]
    pub fn with(self, speed: Speed) -> SpeedSet {
        SpeedSet(self.0 | 1 << speed as u16)
    }

    /// The speeds of this set up to `max`.
    #[must_use]
    pub fn up_to(self, max: Speed) -> SpeedSet {
        SpeedSet(self.0 & ((2 << max as u16) - 1))
    }

    /// Whether the set contains a speed.
    pub fn contains(self, speed: Speed) -> bool {
        self.0 & 1 << speed as u16 != 0
    }

    /// The speeds in both sets.
    #[must_use]
    pub fn intersection(self, other: SpeedSet) -> SpeedSet {
        SpeedSet(self.0 & other.0)
    }

    /// The fastest of the set.
    pub fn fastest(self) -> Option<Speed> {
        Speed::ALL.into_iter().rev().find(|speed| self.contains(*speed))
    }
}

impl FromIterator<Speed> for SpeedSet {
    fn from_iter<I: IntoIterator<Item = Speed>>(speeds: I) -> Self {
        speeds.into_iter().fold(SpeedSet::default(), SpeedSet::with)
    }
}

/// Nominal rate of a link in bytes per second.
pub fn bytes_per_second(width: Width, speed: Speed) -> u64 {
    u64::from(width.lanes()) * speed.lane_mbps() * 1_000_000 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_width_and_speed_in_ascending_order() {
        assert!(Width::ALL.is_sorted() && Speed::ALL.is_sorted());
        for width in Width::ALL {
            assert_eq!(width.label(), format!("{}x", width.lanes()));
            assert_eq!(Width::from_code(width.code()), Some(width));
        }
        for speed in Speed::ALL {
            assert_eq!(speed.label(), format!("{speed:?}").to_uppercase());
        }
    }

    #[test]
    fn rates_match_sysfs() {
        for (width, speed, gbps) in [
            (Width::X4, Speed::Sdr, 10),
            (Width::X4, Speed::Qdr, 40),
            (Width::X4, Speed::Fdr, 56),
            (Width::X4, Speed::Edr, 100),
            (Width::X1, Speed::Ndr, 100),
            (Width::X2, Speed::Ndr, 200),
            (Width::X8, Speed::Ndr, 800),
            (Width::X4, Speed::Xdr, 800),
            (Width::X12, Speed::Ddr, 60),
        ] {
            assert_eq!(
                bytes_per_second(width, speed) * 8,
                gbps * 1_000_000_000,
                "{width:?} {speed:?}"
            );
        }
    }

    #[test]
    fn widest_compares_lanes_not_codes() {
        // 2x has the highest code of all, 16.
        assert_eq!(Width::widest(1 | 16), Some(Width::X2));
        assert_eq!(Width::widest(2 | 16), Some(Width::X4));
        assert_eq!(Width::widest(0), None);
        assert_eq!(Width::from_code(3), None);
    }

    #[test]
    fn fastest_common_speed() {
        let old: SpeedSet = [Speed::Sdr, Speed::Qdr, Speed::Fdr].into_iter().collect();
        let new: SpeedSet = [Speed::Sdr, Speed::Fdr, Speed::Edr].into_iter().collect();
        assert_eq!(old.intersection(new).fastest(), Some(Speed::Fdr));
        assert_eq!(SpeedSet::default().fastest(), None);
    }
}
