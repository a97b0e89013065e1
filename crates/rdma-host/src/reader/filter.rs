//! Which devices are read.

mod pattern;

use std::path::Path;

use crate::model::PortKind;

use super::device;
use super::kernel_devices::KernelDevices;
use super::smi;
use super::sysfs::Directory;
use super::vpd;
use pattern::Pattern;

pub use pattern::PatternError;

/// A filter of devices. Of one that it excludes, no counter and no state is ever read.
#[derive(Clone, Debug, Default)]
pub struct DeviceFilter {
    include: Option<Pattern>,
    exclude: Option<Pattern>,
}

impl DeviceFilter {
    /// Selects the devices that match `include` and do not match `exclude`; a pattern that is not given excludes
    /// nothing. A pattern has alternatives, separated by `|`: a regular expression of the whole name, `kind:smi`,
    /// `pci:15b3:1021`, or `pci:0000:0b:00.0`.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, PatternError> {
        let pattern = |text: Option<&str>| text.map(Pattern::parse).transpose();
        Ok(DeviceFilter { include: pattern(include)?, exclude: pattern(exclude)? })
    }

    /// Whether a device of this sysfs should be read.
    pub fn matches(&self, sysfs: &Path, device: &str) -> bool {
        let patterns = || self.include.iter().chain(&self.exclude);
        let needs_kernel = patterns().any(|pattern| pattern.kinds.contains(&PortKind::Smi));
        let kernel = if needs_kernel { KernelDevices::open() } else { KernelDevices::default() };
        self.selects(&sysfs.join("class/infiniband"), device, &kernel)
    }

    /// The same with what the kernel says, by the directory of all devices.
    pub(super) fn selects(&self, class: &Path, device: &str, kernel: &KernelDevices) -> bool {
        let candidate = Candidate { class, name: device, kernel };
        self.include.as_ref().is_none_or(|include| candidate.matches(include))
            && !self.exclude.as_ref().is_some_and(|exclude| candidate.matches(exclude))
    }
}

/// A device that may be read.
struct Candidate<'a> {
    class: &'a Path,
    name: &'a str,
    kernel: &'a KernelDevices,
}

impl Candidate<'_> {
    fn matches(&self, pattern: &Pattern) -> bool {
        if pattern.name.as_ref().is_some_and(|name| name.is_match(self.name)) {
            return true;
        }
        if pattern.functions.is_empty() && pattern.kinds.is_empty() {
            return false;
        }
        // One that cannot be opened is not read either.
        let Ok(device) = Directory::open(&self.class.join(self.name)) else { return false };
        pattern.functions.iter().any(|function| function.is_of(&device))
            || pattern.kinds.iter().any(|kind| self.is(*kind, &device))
    }

    /// Whether the device is of a kind, as far as that is known without a read of its counters.
    fn is(&self, kind: PortKind, directory: &Directory) -> bool {
        match kind {
            PortKind::Smi => smi::parent_of(self.class, self.name, self.kernel).is_some(),
            PortKind::NvlinkBridge => vpd::is_bridge(directory),
            kind => device::kind(directory) == kind,
        }
    }
}

#[cfg(test)]
mod tests;
