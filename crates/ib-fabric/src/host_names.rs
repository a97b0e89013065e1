//! Finding hosts by names of another origin: schedulers often know the short name, and NodeDescriptions the other, or the
//! other way round.

use std::collections::{HashMap, HashSet};

/// The hosts of a fabric by their names, with and without domain.
#[derive(Clone, Debug, Default)]
pub struct HostNames<'a> {
    whole: HashSet<&'a str>,
    /// Two hosts of different domains may share a short name: then only the whole one names one.
    short: HashMap<&'a str, Option<&'a str>>,
}

/// A host's name without its domain.
pub fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

impl<'a> HostNames<'a> {
    /// Of the names of all hosts.
    pub fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut found = HostNames::default();
        for name in names {
            if found.whole.insert(name) {
                let of_short = found.short.entry(short(name));
                of_short.and_modify(|only| *only = None).or_insert(Some(name));
            }
        }
        found
    }

    /// The name of the host that this name means; `None` if there is none, or more than one.
    pub fn find(&self, name: &str) -> Option<&'a str> {
        let whole = self.whole.get(name).copied();
        whole.or_else(|| self.short.get(short(name)).copied().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_mean_the_only_host_that_has_them() {
        let names =
            ["gpu1.a.example", "gpu2.a.example", "gpu2.b.example", "gpu3", "gpu1.a.example"];
        let hosts = HostNames::new(names.into_iter());
        for (name, found) in [
            ("gpu1.a.example", Some("gpu1.a.example")),
            ("gpu1", Some("gpu1.a.example")),
            ("gpu2", None),
            ("gpu2.b.example", Some("gpu2.b.example")),
            ("gpu3.a.example", Some("gpu3")),
            ("gpu4", None),
            ("", None),
        ] {
            assert_eq!(hosts.find(name), found, "{name}");
        }
    }
}
