//! What comes to the judge of a fabric besides its sweeps: what a site works on, and what this host's
//! own ports told.

use std::sync::mpsc::{self, Receiver, SyncSender};

use ib_fabric::Snapshot;
use ib_fabric::topology::End;
use ib_health::totals::Memory;
use ib_health::{Assessment, LinkEvaluator};
use ib_mad::Moment;

use crate::config::FabricSettings;
use ib_health::settings::Work;

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
    judge: LinkEvaluator,
    tell: SyncSender<PortNews>,
    news: Receiver<PortNews>,
}

impl Judging {
    pub(super) fn new(settings: &FabricSettings) -> Self {
        let (tell, news) = mpsc::sync_channel(MOST_NEWS);
        Judging { judge: LinkEvaluator::new(settings.health.clone()), tell, news }
    }

    /// What is worked on from now on.
    pub(super) fn set_work(&mut self, work: Vec<Work>) {
        self.judge.set_work(work);
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
    pub(super) fn judge(&mut self, snapshot: &mut Snapshot) -> Assessment {
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
    use ib_mad::Guid;

    #[test]
    fn what_ports_tell_is_bounded_while_no_sweep_takes_it() {
        let settings = Settings::load(Options::default(), None).unwrap().fabrics.remove(0);
        let judging = Judging::new(&settings);
        let tell = judging.teller();
        let news = PortNews { end: (Guid(1), 1), up: false, at: Moment::default() };
        let taken = (0..10 * MOST_NEWS).filter(|_| tell.try_send(news).is_ok()).count();
        assert_eq!(taken, MOST_NEWS);
        assert_eq!(judging.news.try_iter().count(), MOST_NEWS);
    }
}
