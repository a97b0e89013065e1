//! Width and speed of links: one table of widths, one of speeds.

/// Number of lanes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// One lane.
    X1,
    /// Two lanes.
    X2,
    /// Four lanes.
    X4,
    /// Eight lanes.
    X8,
    /// Twelve lanes.
    X12,
}

/// A row of the table of widths.
struct WidthRow {
    width: Width,
    /// Its bit in PortInfo's LinkWidth fields (IBTA 1.4, table 155; 2x by its later errata).
    code: u8,
    lanes: u8,
    label: &'static str,
}

// In ascending order of lanes, which is not the order of the codes: 2x was added last.
const WIDTHS: [WidthRow; 5] = [
    WidthRow { width: Width::X1, code: 1, lanes: 1, label: "1x" },
    WidthRow { width: Width::X2, code: 16, lanes: 2, label: "2x" },
    WidthRow { width: Width::X4, code: 2, lanes: 4, label: "4x" },
    WidthRow { width: Width::X8, code: 4, lanes: 8, label: "8x" },
    WidthRow { width: Width::X12, code: 8, lanes: 12, label: "12x" },
];

impl Width {
    fn row(self) -> &'static WidthRow {
        &WIDTHS[self as usize]
    }

    /// The width with this code in LinkWidthActive.
    pub fn from_code(code: u8) -> Option<Width> {
        WIDTHS.iter().find(|row| row.code == code).map(|row| row.width)
    }

    /// The width with this number of lanes.
    pub fn from_lanes(lanes: u8) -> Option<Width> {
        WIDTHS.iter().find(|row| row.lanes == lanes).map(|row| row.width)
    }

    /// The widest of a mask of codes, as in LinkWidthSupported and LinkWidthEnabled.
    pub fn widest(mask: u8) -> Option<Width> {
        WIDTHS.iter().rev().find(|row| mask & row.code != 0).map(|row| row.width)
    }

    /// Code in LinkWidthActive.
    pub fn code(self) -> u8 {
        self.row().code
    }

    /// Mask of the codes of this width and all narrower ones.
    pub fn up_to(self) -> u8 {
        WIDTHS[..=self as usize].iter().fold(0, |mask, row| mask | row.code)
    }

    /// Number of lanes.
    pub fn lanes(self) -> u8 {
        self.row().lanes
    }

    /// Usual notation: `4x`.
    pub fn label(self) -> &'static str {
        self.row().label
    }
}

/// Speed of each lane of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speed {
    /// Single data rate, 2.5 Gb/s.
    Sdr,
    /// Double data rate, 5 Gb/s.
    Ddr,
    /// Quad data rate, 10 Gb/s.
    Qdr,
    /// 10 Gb/s with 64b/66b coding, of Mellanox.
    Fdr10,
    /// Fourteen data rate.
    Fdr,
    /// Enhanced data rate, 25 Gb/s.
    Edr,
    /// High data rate, 50 Gb/s.
    Hdr,
    /// Next data rate, 100 Gb/s.
    Ndr,
    /// Extended data rate, 200 Gb/s.
    Xdr,
}

/// A row of the table of speeds.
struct SpeedRow {
    speed: Speed,
    label: &'static str,
    /// Nominal rate of a lane in Mb/s, as in sysfs `rate` and `ibstat`, so that a port has the same rate in the
    /// host and the fabric view (kernel: `ib_port_attr`, `rate_show` in drivers/infiniband/core/sysfs.c).
    lane_mbps: u32,
}

const SPEEDS: [SpeedRow; 9] = [
    SpeedRow { speed: Speed::Sdr, label: "SDR", lane_mbps: 2_500 },
    SpeedRow { speed: Speed::Ddr, label: "DDR", lane_mbps: 5_000 },
    SpeedRow { speed: Speed::Qdr, label: "QDR", lane_mbps: 10_000 },
    SpeedRow { speed: Speed::Fdr10, label: "FDR10", lane_mbps: 10_000 },
    SpeedRow { speed: Speed::Fdr, label: "FDR", lane_mbps: 14_000 },
    SpeedRow { speed: Speed::Edr, label: "EDR", lane_mbps: 25_000 },
    SpeedRow { speed: Speed::Hdr, label: "HDR", lane_mbps: 50_000 },
    SpeedRow { speed: Speed::Ndr, label: "NDR", lane_mbps: 100_000 },
    SpeedRow { speed: Speed::Xdr, label: "XDR", lane_mbps: 200_000 },
];

impl Speed {
    /// All speeds, slowest first.
    pub const ALL: [Speed; SPEEDS.len()] = {
        let mut all = [Speed::Sdr; SPEEDS.len()];
        let mut index = 0;
        while index < SPEEDS.len() {
            all[index] = SPEEDS[index].speed;
            index += 1;
        }
        all
    };

    fn row(self) -> &'static SpeedRow {
        &SPEEDS[self as usize]
    }

    /// The speed with this name.
    pub fn from_label(label: &str) -> Option<Speed> {
        SPEEDS.iter().find(|row| row.label == label).map(|row| row.speed)
    }

    /// Usual name: `EDR`.
    pub fn label(self) -> &'static str {
        self.row().label
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
    u64::from(width.lanes()) * u64::from(speed.row().lane_mbps) * 1_000_000 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_rows_match_enum_order() {
        for row in &WIDTHS {
            assert_eq!(row.width.label(), row.label);
        }
        for row in &SPEEDS {
            assert_eq!(row.speed.label(), row.label);
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
