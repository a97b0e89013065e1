//! What a cable went through in a window: what its ends counted, and what happened to it.

use ib_fabric::topology::LinkId;
use ib_mad::Counter;
use ib_mad::counter::LINK_ERRORS;

use super::columns;
use super::model::{Port, Series, Told, Window};

/// A cable's course.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// The cable.
    pub link: LinkId,
    /// As people call it.
    pub place: &'a str,
    /// What its ends counted.
    pub series: &'a [Series],
    /// What happened to it, the earliest first.
    pub events: &'a [Told],
}

/// What one end of a cable counted, in columns of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane<'a> {
    /// The end.
    pub port: &'a Port,
    /// Link errors, as [`link_errors`](ib_mad::counter::link_errors) adds them up.
    pub link_errors: Vec<f64>,
    /// Packets that were discarded instead of sent.
    pub discards: Vec<f64>,
}

impl<'a> Course<'a> {
    /// Its ends that counted link errors or discards in a window.
    pub fn lanes(self, window: Window, count: usize) -> Vec<Lane<'a>> {
        let ends = self.link.ends().into_iter();
        let lanes = ends.filter_map(|end| {
            let of_end = || self.series.iter().filter(move |series| series.port.end() == end);
            let columns = |is_wanted: &dyn Fn(Counter) -> bool| {
                let steps = of_end().filter(|series| is_wanted(series.counter));
                columns::spread(steps.flat_map(|series| &series.steps), window, count)
            };
            let mut link_errors = columns(&|counter| LINK_ERRORS.contains(&counter));
            let received = columns(&|counter| counter == Counter::RcvErrors);
            let marked = columns(&|counter| counter == Counter::RcvRemotePhysicalErrors);
            // Of the whole window, as all other sums are: one of the two counters may be read later.
            let sum = |columns: &[f64]| columns.iter().sum::<f64>();
            let share = (sum(&marked) / sum(&received).max(f64::MIN_POSITIVE)).min(1.0);
            for (errors, received) in link_errors.iter_mut().zip(&received) {
                *errors = (*errors - received * share).max(0.0);
            }
            let discards = columns(&Counter::is_discard);
            // Less than one is what rounding leaves.
            let counted = |columns: &[f64]| sum(columns) > 0.5;
            let has_any = counted(&link_errors) || counted(&discards);
            let port = &of_end().next().filter(|_| has_any)?.port;
            Some(Lane { port, link_errors, discards })
        });
        lanes.collect()
    }

    /// What went through one of its ends: sent and received, in bytes.
    pub fn traffic(self) -> Option<(&'a Port, [Option<&'a Series>; 2])> {
        let of = |end, counter| {
            let mut series = self.series.iter();
            series.find(move |series| series.port.end() == end && series.counter == counter)
        };
        self.link.ends().into_iter().find_map(|end| {
            let both = [of(end, Counter::XmitData), of(end, Counter::RcvData)];
            let port = &both.iter().flatten().next()?.port;
            Some((port, both))
        })
    }
}
