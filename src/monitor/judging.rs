//! What comes to the judge of a fabric besides its sweeps: what a site works on, and what this host's
//! own ports told.

use std::sync::mpsc::{self, Receiver, SyncSender};

use crate::fabric::topology::End;
use crate::fabric::{Moment, Snapshot};
use crate::health::totals::Memory;
use crate::health::{Findings, Judge};

use super::maintenance::{Maintenance, MaintenanceError};
use crate::config::FabricSettings;

/// A port told that it lost its link, or has it again.
#[derive(Clone, Copy, Debug)]
pub struct PortNews {
    /// The port.
    pub end: End,
    /// Whether it has its link.
    pub up: bool,
    /// When it told so, on the clock that the fabric is watched by.
    pub at: Moment,
}

/// How many of them wait for the next sweep. Nobody takes them while the fabric's device is gone, so there
/// must be a limit. What does not fit is dropped by the sender, who counts it: the next sweep reads the
/// state and LinkDownedCounter of each port anyway, so a link that is down or was down is judged, only
/// without the time that the port told.
const MOST_NEWS: usize = 1024;

/// A judge, and where it hears from.
#[derive(Debug)]
pub(super) struct Judging {
    judge: Judge,
    maintenance: Option<Maintenance>,
    tell: SyncSender<PortNews>,
    news: Receiver<PortNews>,
}

impl Judging {
    /// Fails when the maintenance file cannot be used; later versions of the file that cannot be are
    /// told of and passed over.
    pub(super) fn new(settings: &FabricSettings) -> Result<Self, MaintenanceError> {
        let (tell, news) = mpsc::sync_channel(MOST_NEWS);
        let mut judge = Judge::new(settings.health.clone());
        let mut maintenance = settings.maintenance_file.as_deref().map(Maintenance::new);
        if let Some(work) = maintenance.as_mut().map(Maintenance::news).transpose()?.flatten() {
            judge.set_work(work);
        }
        Ok(Judging { judge, maintenance, tell, news })
    }

    /// Lets totals go on where an earlier watch ended.
    pub(super) fn remember(&mut self, memory: Memory) {
        self.judge.remember(memory);
    }

    /// Where it takes what ports tell.
    pub(super) fn teller(&self) -> SyncSender<PortNews> {
        self.tell.clone()
    }

    /// Judges a sweep, whose readings hold totals after that.
    pub(super) fn judge(&mut self, snapshot: &mut Snapshot) -> Findings {
        match self.maintenance.as_mut().map(Maintenance::news).transpose() {
            Ok(Some(Some(work))) => self.judge.set_work(work),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "what is worked on stays as it was"),
        }
        for news in self.news.try_iter() {
            self.judge.hear(news.end, news.up, news.at);
        }
        self.judge.judge(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::config::options::Options;
    use crate::fabric::Guid;

    #[test]
    fn what_ports_tell_is_bounded_while_no_sweep_takes_it() {
        let settings = Settings::load(Options::default(), None).unwrap().fabrics.remove(0);
        let judging = Judging::new(&settings).unwrap();
        let tell = judging.teller();
        let news = PortNews { end: (Guid(1), 1), up: false, at: Moment::default() };
        let taken = (0..10 * MOST_NEWS).filter(|_| tell.try_send(news).is_ok()).count();
        assert_eq!(taken, MOST_NEWS);
        assert_eq!(judging.news.try_iter().count(), MOST_NEWS);
    }
}
