//! What the monitor of a fabric does with what was read of it, by MADs or by another program: it applies the files of
//! the site, evaluates, and publishes.

use std::sync::Arc;

use tokio::sync::watch;

use super::drained::Drained;
use super::site_files::SiteFiles;
use crate::config::FabricSettings;
use fabric_observation::{MonitorStats, Observation, SharedState};
use ib_fabric::names::Naming;
use ib_health::LinkEvaluator;
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;
use yaml_config::ConfigError;

/// The evaluation of one fabric, and its place in the shared state.
pub(super) struct Judge {
    pub(super) shared: Arc<watch::Sender<SharedState>>,
    fabric_index: usize,
    pub(super) files: SiteFiles,
    drained: Drained,
    pub(super) naming: Naming,
    pub(super) evaluator: LinkEvaluator,
}

impl Judge {
    /// Fails when a site file is invalid; later invalid versions are logged, and the earlier content stays in use.
    pub(super) fn new(
        settings: &FabricSettings,
        shared: Arc<watch::Sender<SharedState>>,
        fabric_index: usize,
    ) -> Result<Self, ConfigError> {
        let naming = Naming {
            hosts: settings.hosts.clone(),
            rails: settings.rails.clone(),
            ..Naming::default()
        };
        let mut judge = Judge {
            shared,
            fabric_index,
            files: SiteFiles::open(settings)?,
            drained: Drained::default(),
            naming,
            evaluator: LinkEvaluator::new(settings.limits.clone()),
        };
        judge.refresh_names();
        Ok(judge)
    }

    /// Sets the totals and the errors of an earlier run, from which ports and links continue.
    pub(super) fn restore(
        &mut self,
        seed: TotalsSeed,
        recorded: RecordedErrors,
        flaps: RecordedFlaps,
    ) {
        let evaluator = &mut self.evaluator;
        (evaluator.seed, evaluator.recorded, evaluator.flaps) = (seed, recorded, flaps);
    }

    pub(super) fn refresh_names(&mut self) {
        if let Some(names) = self.files.names() {
            self.naming.map = names;
        }
    }

    pub(super) fn refresh_maintenance(&mut self, stats: &mut MonitorStats) {
        if let Some(windows) = self.files.maintenance() {
            self.evaluator.maintenance = windows;
        }
        let in_file = self.files.drained();
        let of_scheduler = self.shared.borrow().jobs.as_ref().and_then(|jobs| jobs.drained.clone());
        if let Some(drained) = self.drained.update(in_file, of_scheduler) {
            self.evaluator.set_drained(drained);
        }
        stats.site_files = self.files.read_at();
    }

    /// What was published last.
    pub(super) fn latest(&self) -> Arc<Observation> {
        Arc::clone(&self.shared.borrow().fabrics[self.fabric_index])
    }

    pub(super) fn publish(&self, observation: Observation) {
        let observation = Arc::new(observation);
        self.shared.send_modify(|shared| shared.fabrics[self.fabric_index] = observation);
    }
}

/// In it each line of the log names its fabric, whichever crate writes it. At level error, since a span is only there
/// where its level is logged.
pub(super) fn span(fabric: &str) -> tracing::Span {
    tracing::error_span!("monitor", fabric)
}
