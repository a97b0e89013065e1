//! What a device reports of a port's physical layer and module, from reading to reading.

use std::sync::Arc;
use std::time::Duration;

use ib_fabric::hardware::{PortHardware, ReadAt};
use ib_mad::Moment;
use ib_mad::register::{LANES, Module, PhysicalStatistics};

/// Reports that are older than this are out of date: with longer intervals the counters of error correction decide.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);

/// Consecutive readings of a module from which on it is out of its limits: what was never compared with a real device
/// must not decide on first sight.
const READINGS: u8 = 2;

/// What is kept of a port's reports.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// The latest counts: the next ones are compared with them.
    physical: Option<Arc<ReadAt<PhysicalStatistics>>>,
    /// The latest two counts measure the errors before correction: they could be compared, and the device counts them.
    pub is_measured: bool,
    module: ModuleAlarms,
}

/// How many readings in a row found a module out of its limits, and whether it can be separated from its cable.
#[derive(Clone, Copy, Debug, Default)]
struct ModuleAlarms {
    at: Option<Moment>,
    hot: u8,
    dark: u8,
    weak: u8,
    is_part_of_cable: bool,
}

/// The errors before correction between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawErrors {
    pub errors: f32,
    pub bits: f32,
    pub at: Moment,
    /// The lane with more errors than all others together, and its share.
    pub lane: Option<(u8, f32)>,
}

impl Reported {
    /// Whether the module is above its alarm threshold.
    pub fn is_hot(&self) -> bool {
        self.module.hot >= READINGS
    }

    /// Whether a lane receives less light than the module's alarm threshold.
    pub fn is_dark(&self) -> bool {
        self.module.dark >= READINGS
    }

    /// Whether the laser of a lane is weak, or wears out.
    pub fn is_weak(&self) -> bool {
        self.module.weak >= READINGS
    }

    /// Whether the module is an end of a cable, which is swapped as a whole.
    pub fn is_part_of_cable(&self) -> bool {
        self.module.is_part_of_cable
    }

    /// Forgets what was reported: the link has trained, perhaps with another module.
    pub fn restart(&mut self) {
        *self = Reported::default();
    }

    /// Records the reports of a port with this many lanes, which receives so many bits per second. What was read
    /// before the second `from` includes errors of training, or is of another module. Returns the errors since the
    /// reading before, if there is a new one that can be compared with it.
    pub fn update(
        &mut self,
        hardware: Option<&PortHardware>,
        bits_per_second: f32,
        lanes: usize,
        from: u32,
        now: Moment,
    ) -> Option<RawErrors> {
        let module = hardware.and_then(|it| it.module.as_deref());
        self.record_module(module.filter(|read| read.at.whole_seconds() >= from), lanes);
        let physical = hardware.and_then(|it| it.physical.as_ref());
        let is_current = |read: &&Arc<ReadAt<_>>| {
            read.at.whole_seconds() >= from && now.since(read.at) < MAX_AGE
        };
        let Some(read) = physical.filter(is_current) else {
            (self.physical, self.is_measured) = (None, false);
            return None;
        };
        if self.physical.as_ref().is_some_and(|last| last.at == read.at) {
            return None;
        }
        let last = self.physical.replace(Arc::clone(read));
        // A device that leaves the errors of all lanes 0 may count none.
        let errors = last.and_then(|last| raw_errors(&last, read, bits_per_second, lanes));
        let errors = errors.filter(|_| read.value.lane_errors != [0; LANES]);
        self.is_measured = errors.is_some();
        errors
    }

    fn record_module(&mut self, module: Option<&ReadAt<Module>>, lanes: usize) {
        let Some(ReadAt { value, at }) = module else {
            self.module = ModuleAlarms::default();
            return;
        };
        if Some(*at) == self.module.at {
            return;
        }
        let count = |before: u8, is_out: bool| if is_out { before.saturating_add(1) } else { 0 };
        self.module = ModuleAlarms {
            at: Some(*at),
            hot: count(self.module.hot, value.is_hot()),
            dark: count(self.module.dark, value.dark_lane(lanes).is_some()),
            weak: count(self.module.weak, value.is_weak(lanes)),
            is_part_of_cable: value.is_part_of_cable(),
        };
    }
}

/// The errors between two readings. None if the device cleared its counts meanwhile, and if the number of bits is not
/// what the rate of the link makes of the time: then it counts something else.
fn raw_errors(
    last: &ReadAt<PhysicalStatistics>,
    now: &ReadAt<PhysicalStatistics>,
    bits_per_second: f32,
    lanes: usize,
) -> Option<RawErrors> {
    let seconds = now.at.since(last.at).as_secs_f32();
    let (last, at, now) = (&last.value, now.at, &now.value);
    let bits = now.received_bits.checked_sub(last.received_bits);
    let bits = bits.filter(|_| now.since_clear > last.since_clear)? as f32;
    let expected = bits_per_second * seconds;
    if !(0.5..2.0).contains(&(bits / expected)) {
        return None;
    }
    let mut by_lane = [0.0; LANES];
    for (lane, errors) in by_lane.iter_mut().enumerate() {
        *errors = now.lane_errors[lane].checked_sub(last.lane_errors[lane])? as f32;
    }
    let errors: f32 = by_lane.iter().sum();
    let worst = (0..LANES).max_by(|a, b| by_lane[*a].total_cmp(&by_lane[*b]))?;
    let share = by_lane[worst] / errors;
    let is_outlier = lanes > 1 && share > 0.5;
    Some(RawErrors { errors, bits, at, lane: is_outlier.then_some((worst as u8, share)) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use ib_mad::register::PhysicalStatistics;

    const RATE: f32 = 1e11;

    fn statistics(seconds: u64, errors: [u64; 4]) -> PhysicalStatistics {
        let mut lane_errors = [0; LANES];
        lane_errors[..4].copy_from_slice(&errors);
        PhysicalStatistics {
            since_clear: seconds * 1_000,
            received_bits: seconds * 100_000_000_000,
            lane_errors,
            ..PhysicalStatistics::default()
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000_000)
    }

    /// The errors of readings by second, of counts that have run for another number of seconds.
    fn found(readings: &[(u64, u64, [u64; 4])]) -> Vec<Option<(f32, Option<u8>)>> {
        let mut reported = Reported::default();
        let update = |&(second, since, errors): &(u64, u64, [u64; 4])| {
            let value = statistics(since, errors);
            let physical = Some(Arc::new(ReadAt { value, at: at(second) }));
            let hardware = PortHardware { physical, ..PortHardware::default() };
            let found = reported.update(Some(&hardware), RATE, 4, 0, at(second + 5))?;
            Some((found.errors, found.lane.map(|(lane, _)| lane)))
        };
        readings.iter().map(update).collect()
    }

    #[test]
    fn errors_are_those_between_two_readings() {
        for (readings, expected) in [
            (&[(0, 100, [1; 4]), (60, 160, [11, 1, 1, 1])][..], Some((10.0, Some(0)))),
            // Most of them on one lane.
            (&[(0, 100, [1; 4]), (60, 160, [2, 91, 2, 2])], Some((93.0, Some(1)))),
            (&[(0, 100, [1; 4]), (60, 160, [26, 26, 26, 26])], Some((100.0, None))),
            // The same reading.
            (&[(60, 160, [1; 4]), (60, 160, [1; 4])], None),
            // Cleared meanwhile.
            (&[(0, 100, [9; 4]), (60, 30, [9; 4])], None),
            (&[(0, 100, [9; 4]), (60, 160, [8; 4])], None),
            // Not the bits of this link.
            (&[(0, 100, [1; 4]), (60, 800, [9; 4])], None),
        ] {
            assert_eq!(found(readings)[1], expected, "{readings:?}");
        }
    }

    #[test]
    fn old_reports_are_forgotten() {
        let mut reported = Reported::default();
        let mut update = |read: u64, errors: u64, from: u32, now: u64| {
            let value = statistics(100 + read, [errors; 4]);
            let physical = Some(Arc::new(ReadAt { value, at: at(read) }));
            let hardware = PortHardware { physical, ..PortHardware::default() };
            reported.update(Some(&hardware), RATE, 4, from, at(now));
            reported.is_measured
        };
        assert!(!update(0, 1, 0, 5), "one reading measures nothing");
        assert!(update(60, 2, 0, 65));
        assert!(update(60, 2, 0, 80), "the same reading");
        assert!(!update(60, 2, 0, 2_000));
        // Counts of the training are no reference.
        assert!(!update(2_010, 5, 2_020, 2_025) && !update(2_070, 9, 2_020, 2_075));
        assert!(update(2_130, 9, 2_020, 2_135));
    }

    #[test]
    fn counts_that_cannot_be_compared_measure_nothing() {
        let mut reported = Reported::default();
        let mut update = |read: u64, value: PhysicalStatistics| {
            let physical = Some(Arc::new(ReadAt { value, at: at(read) }));
            let hardware = PortHardware { physical, ..PortHardware::default() };
            reported.update(Some(&hardware), RATE, 4, 0, at(read + 5));
            reported.is_measured
        };
        update(0, statistics(100, [1; 4]));
        assert!(update(60, statistics(160, [2; 4])));
        // Firmware that does not report the time since the last clear, or counts no errors.
        let timeless = PhysicalStatistics { since_clear: 0, ..statistics(220, [3; 4]) };
        assert!(
            !update(120, timeless)
                && !update(180, PhysicalStatistics { received_bits: 1, ..timeless })
        );
        assert!(!update(240, statistics(340, [0; 4])) && !update(300, statistics(400, [0; 4])));
        assert!(update(360, statistics(460, [1; 4])));
    }

    #[test]
    fn module_is_out_of_its_limits_after_two_readings() {
        use ib_mad::register::monitor::{RX_POWER, TEMPERATURE};
        let module = |degrees: u16, lane: u16| Module {
            kind: 2,
            temperature: degrees << 8,
            temperature_high: 75 << 8,
            rx_power: [631, 631, lane, 631, 0, 0, 0, 0],
            rx_power_high: 3162,
            rx_power_low: 100,
            monitors: TEMPERATURE | RX_POWER,
            ..Module::default()
        };
        let mut reported = Reported::default();
        let mut read = |second: u64, module: Option<Module>| {
            let module = module.map(|value| Arc::new(ReadAt { value, at: at(second) }));
            let hardware = PortHardware { module, ..PortHardware::default() };
            reported.update(Some(&hardware), RATE, 4, 0, at(second));
            (reported.is_hot(), reported.is_dark())
        };
        assert_eq!(read(0, Some(module(80, 63))), (false, false));
        assert_eq!(read(0, Some(module(80, 63))), (false, false), "the same reading");
        assert_eq!(read(60, Some(module(80, 63))), (true, true));
        assert_eq!(read(120, Some(module(60, 63))), (false, true));
        assert_eq!(read(180, None), (false, false));
        read(240, Some(module(80, 63)));
        // The link retrained: the module may be another one, and what was read before is of the old one.
        let hot = |second: u64| {
            let module = Some(Arc::new(ReadAt { value: module(80, 63), at: at(second) }));
            PortHardware { module, ..PortHardware::default() }
        };
        reported.restart();
        for (second, is_hot) in [(240, false), (300, false), (360, true)] {
            reported.update(Some(&hot(second)), RATE, 4, 250, at(second + 20));
            assert_eq!(reported.is_hot(), is_hot, "{second}");
        }
    }
}
