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
            pattern
                .map(|pattern| Regex::new(&format!("^(?:{pattern})$")))
                .transpose()
                .map_err(|error| error.to_string().replace('\n', " "))
        };
        Ok(DeviceFilter { include: whole(include)?, exclude: whole(exclude)? })
    }

    /// Whether the device is to be read.
    pub fn matches(&self, device: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(device))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_name_matches_and_exclude_wins() {
        for (include, exclude, matching, excluded) in [
            (None, None, "mlx5_0", ""),
            (None, Some("mlx5_1"), "mlx5_10", "mlx5_1"),
            (Some("mlx5_[0-3]|rxe.*"), None, "rxe0", "mlx5_30"),
            (Some("mlx5_.*"), Some("mlx5_bond_.*"), "mlx5_0", "mlx5_bond_0"),
        ] {
            let filter = DeviceFilter::new(include, exclude).unwrap();
            assert!(filter.matches(matching), "{include:?} {exclude:?} {matching}");
            assert!(excluded.is_empty() || !filter.matches(excluded), "{include:?} {excluded}");
        }
        for (include, exclude) in [(None, Some("mlx5_(")), (Some("mlx5_("), None)] {
            let error = DeviceFilter::new(include, exclude).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
        }
    }
}
