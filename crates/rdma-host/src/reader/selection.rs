//! Which devices are looked at.

use regex_lite::Regex;

/// A rule by name. A device that it leaves out is never opened.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    include: Option<Regex>,
    exclude: Option<Regex>,
}

impl Selection {
    /// Those that match `include` and do not match `exclude`, each as a whole; what is not given
    /// leaves out nobody. The error says what is wrong with a pattern.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, Wrong> {
        let whole = |side, pattern: Option<&str>| {
            pattern
                .map(|pattern| Regex::new(&format!("^(?:{pattern})$")))
                .transpose()
                .map_err(|error| Wrong { side, problem: error.to_string().replace('\n', " ") })
        };
        Ok(Selection {
            include: whole(Side::Include, include)?,
            exclude: whole(Side::Exclude, exclude)?,
        })
    }

    /// Whether a device is looked at.
    pub fn has(&self, device: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(device))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(device))
    }
}

/// Which of the two patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Of those to look at.
    Include,
    /// Of those to leave alone.
    Exclude,
}

/// A pattern that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Which one.
    pub side: Side,
    /// What is wrong with it.
    pub problem: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_a_whole_and_exclusion_wins() {
        for (include, exclude, has, has_not) in [
            (None, None, "mlx5_0", ""),
            (None, Some("mlx5_1"), "mlx5_10", "mlx5_1"),
            (Some("mlx5_[0-3]|rxe.*"), None, "rxe0", "mlx5_30"),
            (Some("mlx5_.*"), Some("mlx5_bond_.*"), "mlx5_0", "mlx5_bond_0"),
        ] {
            let selection = Selection::new(include, exclude).unwrap();
            assert!(selection.has(has), "{include:?} {exclude:?} {has}");
            assert!(has_not.is_empty() || !selection.has(has_not), "{include:?} {has_not}");
        }
        let wrong = Selection::new(None, Some("mlx5_(")).unwrap_err();
        assert_eq!(wrong.side, Side::Exclude);
        assert!(!wrong.problem.contains('\n'), "{wrong:?}");
    }
}
