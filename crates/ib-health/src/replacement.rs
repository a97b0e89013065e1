//! Whether a cable or transceiver was replaced: its end reports another serial number after the link was down.

use std::hash::{DefaultHasher, Hash, Hasher};

use ib_fabric::hardware::ReadAt;
use ib_mad::Moment;
use ib_mad::register::Module;

/// The modules at both ends of a link, and when one of them was last found to be another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replacement {
    modules: [Option<KnownModule>; 2],
    /// When the link came up with it.
    at: Option<Moment>,
}

/// A module in few bytes: there are two per link.
#[derive(Clone, Copy, Debug)]
struct KnownModule {
    /// Of vendor, part and serial number.
    hash: u32,
    /// When it was read, in whole seconds.
    read: u32,
    /// The module before it: back to that it was misread meanwhile.
    before: u32,
}

impl Replacement {
    /// When the link came up with another module, as far as is known.
    pub fn at(&self) -> Option<Moment> {
        self.at
    }

    /// Adds the latest readings of the modules of a link that is up since `up_since`. Returns whether one is another
    /// one than before. A replaced cable takes the link down: a number that changes while the link is up was misread.
    pub fn update(&mut self, modules: [Option<&ReadAt<Module>>; 2], up_since: Moment) -> bool {
        let mut is_replaced = false;
        for (known, read) in self.modules.iter_mut().zip(modules) {
            let Some(ReadAt { value, at }) = read else { continue };
            let read = at.whole_seconds();
            let is_blank = value.serial_number.iter().all(|byte| matches!(byte, 0 | b' '));
            if is_blank || known.is_some_and(|known| known.read == read) {
                continue;
            }
            let hash = hash(value);
            let Some(last) = *known else {
                *known = Some(KnownModule { hash, read, before: hash });
                continue;
            };
            let is_other = last.hash != hash;
            let before = if is_other { last.hash } else { last.before };
            *known = Some(KnownModule { hash, read, before });
            let was_down = last.read < up_since.whole_seconds() && *at >= up_since;
            is_replaced |= is_other && was_down && last.before != hash;
        }
        // Both ends of a cable are read at different times: that is one replacement.
        let is_new = is_replaced && self.at != Some(up_since);
        if is_new {
            self.at = Some(up_since);
        }
        is_new
    }
}

fn hash(module: &Module) -> u32 {
    let mut hasher = DefaultHasher::new();
    (&module.vendor, &module.part_number, &module.serial_number).hash(&mut hasher);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> Moment {
        Moment::default() + Duration::from_secs(second)
    }

    fn module(serial: &str, second: u64) -> ReadAt<Module> {
        let mut value = Module::default();
        value.serial_number[..serial.len()].copy_from_slice(serial.as_bytes());
        ReadAt { value, at: at(second) }
    }

    #[test]
    fn another_serial_number_after_a_loss_is_a_replacement() {
        let mut known = Replacement::default();
        let mut update = |ends: [Option<(&str, u64)>; 2], up_since: u64| {
            let [a, b] = ends.map(|end| end.map(|(serial, second)| module(serial, second)));
            known.update([a.as_ref(), b.as_ref()], at(up_since))
        };
        assert!(!update([Some(("A", 10)), Some(("A", 12))], 0), "the first reading");
        assert!(!update([Some(("A", 110)), Some(("A", 112))], 100), "the same after a flap");
        assert!(!update([Some(("A?", 150)), None], 100), "misread while the link is up");
        assert!(!update([Some(("A", 160)), None], 100));
        assert!(!update([Some(("A", 160)), None], 200), "not read since the link is up again");
        assert!(!update([Some(("", 205)), None], 200), "without a number nothing is known");
        assert!(update([Some(("B", 210)), None], 200));
        assert!(!update([Some(("B", 210)), Some(("B", 215))], 200), "the other end of the same");
        assert!(!update([Some(("B", 310)), Some(("B", 315))], 300), "a flap of the new one");
        assert!(update([Some(("B", 310)), Some(("C", 415))], 400), "one transceiver");
        assert!(!update([None, Some(("B", 515))], 500), "back to the one before: misread");
        assert_eq!(known.at(), Some(at(400)));
    }
}
