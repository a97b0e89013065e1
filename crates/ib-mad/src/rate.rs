//! How wide and how fast a link is: one table of widths, one of speeds.

/// How many lanes a link runs on.
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

// In ascending order of lanes, which is not the order of the codes: 2x came last.
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

    /// The width with exactly this code in LinkWidthActive, if there is one.
    pub fn from_code(code: u8) -> Option<Width> {
        WIDTHS.iter().find(|row| row.code == code).map(|row| row.width)
    }

    /// The width with so many lanes, if there is one.
    pub fn from_lanes(lanes: u8) -> Option<Width> {
        WIDTHS.iter().find(|row| row.lanes == lanes).map(|row| row.width)
    }

    /// The widest of a set of codes, as in LinkWidthSupported and LinkWidthEnabled.
    pub fn widest(mask: u8) -> Option<Width> {
        WIDTHS.iter().rev().find(|row| mask & row.code != 0).map(|row| row.width)
    }

    /// Its code in LinkWidthActive.
    pub fn code(self) -> u8 {
        self.row().code
    }

    /// The codes of this width and all narrower ones.
    pub fn up_to(self) -> u8 {
        WIDTHS[..=self as usize].iter().fold(0, |mask, row| mask | row.code)
    }

    /// The number of lanes.
    pub fn lanes(self) -> u8 {
        self.row().lanes
    }

    /// As the field writes it: `4x`.
    pub fn label(self) -> &'static str {
        self.row().label
    }
}

/// How fast each lane of a link runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speed {
    /// Single data rate, 2.5 Gb/s.
    Sdr,
    /// Double data rate, 5 Gb/s.
    Ddr,
    /// Quad data rate, 10 Gb/s.
    Qdr,
    /// Mellanox's 10 Gb/s with 64b/66b coding.
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
    /// What a lane is said to carry, in Mb/s: as sysfs's `rate` and `ibstat` count it, so that a
    /// port has the same rate whether its host or the fabric is asked (kernel: `ib_port_attr`,
    /// `rate_show` in drivers/infiniband/core/sysfs.c).
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

    /// The speed that the field writes so.
    pub fn from_label(label: &str) -> Option<Speed> {
        SPEEDS.iter().find(|row| row.label == label).map(|row| row.speed)
    }

    /// As the field writes it: `EDR`.
    pub fn label(self) -> &'static str {
        self.row().label
    }
}

/// A set of speeds, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SpeedSet(u16);

impl SpeedSet {
    /// This set with one speed more.
    #[must_use]
    pub fn with(self, speed: Speed) -> SpeedSet {
        SpeedSet(self.0 | 1 << speed as u16)
    }

    /// What of it is no faster than this.
    #[must_use]
    pub fn up_to(self, most: Speed) -> SpeedSet {
        SpeedSet(self.0 & ((2 << most as u16) - 1))
    }

    /// Whether it is one of the set.
    pub fn has(self, speed: Speed) -> bool {
        self.0 & 1 << speed as u16 != 0
    }

    /// What both sets hold.
    #[must_use]
    pub fn common(self, other: SpeedSet) -> SpeedSet {
        SpeedSet(self.0 & other.0)
    }

    /// The fastest of the set.
    pub fn fastest(self) -> Option<Speed> {
        SPEEDS.iter().rev().find(|row| self.0 & 1 << row.speed as u16 != 0).map(|row| row.speed)
    }
}

impl FromIterator<Speed> for SpeedSet {
    fn from_iter<I: IntoIterator<Item = Speed>>(speeds: I) -> Self {
        speeds.into_iter().fold(SpeedSet::default(), SpeedSet::with)
    }
}

/// What a link of this width and speed carries, in bytes a second (of the nominal rate).
pub fn bytes_per_second(width: Width, speed: Speed) -> u64 {
    u64::from(width.lanes()) * u64::from(speed.row().lane_mbps) * 1_000_000 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_stand_where_their_enums_point() {
        for row in &WIDTHS {
            assert_eq!(row.width.label(), row.label);
        }
        for row in &SPEEDS {
            assert_eq!(row.speed.label(), row.label);
        }
    }

    #[test]
    fn rates_are_those_that_sysfs_prints() {
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
    fn the_widest_is_told_by_lanes_and_not_by_code() {
        // 2x has the highest code of all, 16.
        assert_eq!(Width::widest(1 | 16), Some(Width::X2));
        assert_eq!(Width::widest(2 | 16), Some(Width::X4));
        assert_eq!(Width::widest(0), None);
        assert_eq!(Width::from_code(3), None);
    }

    #[test]
    fn the_fastest_that_both_ends_know() {
        let old: SpeedSet = [Speed::Sdr, Speed::Qdr, Speed::Fdr].into_iter().collect();
        let new: SpeedSet = [Speed::Sdr, Speed::Fdr, Speed::Edr].into_iter().collect();
        assert_eq!(old.common(new).fastest(), Some(Speed::Fdr));
        assert_eq!(SpeedSet::default().fastest(), None);
    }
}
