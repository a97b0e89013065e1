//! The hosts that are drained: those of a file, and those of which the scheduler says so.

use std::sync::Arc;

use ib_health::settings::DrainedHosts;

/// Both, as they were last known.
#[derive(Debug, Default)]
pub(super) struct Drained {
    in_file: DrainedHosts,
    of_scheduler: Option<Arc<DrainedHosts>>,
}

impl Drained {
    /// Takes over what has changed: the content of the file, if that is new, and what the scheduler says now. Returns all
    /// drained hosts, if they may have changed. While the scheduler does not respond, its hosts stay drained.
    pub(super) fn update(
        &mut self,
        in_file: Option<DrainedHosts>,
        of_scheduler: Option<Arc<DrainedHosts>>,
    ) -> Option<DrainedHosts> {
        let is_same = match (&self.of_scheduler, &of_scheduler) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (_, new) => new.is_none(),
        };
        if in_file.is_none() && is_same {
            return None;
        }
        if let Some(in_file) = in_file {
            self.in_file = in_file;
        }
        if !is_same {
            self.of_scheduler = of_scheduler;
        }
        let all = self.in_file.clone();
        Some(match &self.of_scheduler {
            Some(others) => all.and(others),
            None => all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_file_and_scheduler_are_drained_together() {
        let file = |list: &str| {
            let mut hosts = DrainedHosts::default();
            hosts.add(list).unwrap();
            Some(hosts)
        };
        let slurm = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            Some(Arc::new(DrainedHosts::of_scheduler(names)))
        };
        let mut drained = Drained::default();
        assert_eq!(drained.update(None, None), None);
        assert_eq!(drained.update(file("a"), None).unwrap().len(), 1);
        let two = slurm(&["b", "c"]);
        assert_eq!(drained.update(None, two.clone()).unwrap().len(), 3);
        assert_eq!(drained.update(None, two.clone()), None, "nothing is new");
        assert_eq!(drained.update(None, None), None, "they stay");
        assert_eq!(drained.update(file("a,d"), None).unwrap().len(), 4);
        assert_eq!(drained.update(None, slurm(&[])).unwrap().len(), 2);
    }
}
