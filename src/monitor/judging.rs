//! What comes to the judge of a fabric besides its sweeps: what a site works on, and what this host's
//! own ports told.

use std::sync::mpsc::{self, Receiver, Sender};

use crate::fabric::topology::End;
use crate::fabric::{Moment, Snapshot};
use crate::health::totals::Memory;
use crate::health::{Findings, Judge};

use crate::config::FabricSettings;
use crate::health::settings::Work;

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

/// A judge, and where it hears from.
#[derive(Debug)]
pub(super) struct Judging {
    judge: Judge,
    tell: Sender<PortNews>,
    news: Receiver<PortNews>,
}

impl Judging {
    pub(super) fn new(settings: &FabricSettings) -> Self {
        let (tell, news) = mpsc::channel();
        Judging { judge: Judge::new(settings.health.clone()), tell, news }
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
    pub(super) fn teller(&self) -> Sender<PortNews> {
        self.tell.clone()
    }

    /// Judges a sweep, whose readings hold totals after that.
    pub(super) fn judge(&mut self, snapshot: &mut Snapshot) -> Findings {
        for news in self.news.try_iter() {
            self.judge.hear(news.end, news.up, news.at);
        }
        self.judge.judge(snapshot)
    }
}
