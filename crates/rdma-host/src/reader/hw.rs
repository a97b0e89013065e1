//! Reads `hw_counters`, a driver's own counters.

use std::sync::Arc;

use crate::model::{HwName, HwReading, hw_counter};

use super::access::CounterAccess;
use super::backoff::Attempt;
use super::counters::Counters;
use super::sysfs::Directory;

/// Reads the counters of a port or of a device.
#[derive(Debug)]
pub(super) struct HwReader {
    pub names: Arc<[HwName]>,
    pub counters: Counters<usize>,
}

impl HwReader {
    /// Lists the counters of a port or device; `None` if it has no `hw_counters`.
    pub fn open(parent: &Directory) -> Option<Self> {
        let mut names: Vec<HwName> = Vec::new();
        let counters = Counters::open(parent.open_below("hw_counters").ok()?, |file| {
            // How long the kernel caches the counters, in ms: a setting, not a counter.
            if file == "lifespan" {
                return None;
            }
            // A row has all spellings of a counter. Should a driver show two of them, the second is
            // exported by its file name, or there would be two samples of one series.
            let row = hw_counter::find(file)
                .filter(|row| !names.iter().any(|name| name.row == Some(*row)));
            names.push(HwName { file: file.into(), row });
            Some(names.len() - 1)
        });
        Some(HwReader { names: names.into(), counters })
    }

    pub fn read(&mut self, attempt: Attempt<'_>, access: &CounterAccess) -> HwReading {
        let mut values = vec![None; self.names.len()];
        self.counters.read(attempt, access, |index, value| values[index] = Some(value));
        HwReading { names: self.names.clone(), values }
    }
}
