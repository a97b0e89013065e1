//! Which devices are read.

use regex_lite::Regex;

/// A filter by device name. A device that it excludes is never opened.
#[derive(Clone, Debug, Default)]
pub struct DeviceFilter {
    include: Option<Regex>,
    exclude: Option<Regex>,
}

impl DeviceFilter {
    /// Selects the devices whose whole name matches `include` and does not match `exclude`; a pattern that
    /// is not given excludes nothing. The error says, in one line, what is wrong with a pattern.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, String> {
        let whole = |pattern: Option<&str>| {
            let regex = pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$")));
            regex.transpose().map_err(|error| error.to_string().replace('\n', " "))
        };
        Ok(DeviceFilter { include: whole(include)?, exclude: whole(exclude)? })
    }

    /// Whether the device should be read.
    pub fn matches(&self, device: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(device))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(device))
    }
}
