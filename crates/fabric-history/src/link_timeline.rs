//! The timeline of a cable in a window: its ends' counters, and its events.

use ib_fabric::topology::LinkId;
use ib_mad::Counter;
use ib_mad::counter::LINK_ERRORS;

use super::columns;
use super::model::{Event, Port, Series, Window};

/// A cable's counters and events.
#[derive(Clone, Copy, Debug)]
pub struct LinkTimeline<'a> {
    /// The cable.
    pub link: LinkId,
    /// Its label.
    pub place: &'a str,
    /// Its ends' counters.
    pub series: &'a [Series],
    /// Its events, the earliest first.
    pub events: &'a [Event],
}

/// The errors and discards of one end of a cable, in columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct EndErrors<'a> {
    /// The end.
    pub port: &'a Port,
    /// Link errors, as [`link_errors`](ib_mad::counter::link_errors) adds them up.
    pub link_errors: Vec<f64>,
    /// Packets that were discarded instead of being sent.
    pub discards: Vec<f64>,
}

impl<'a> LinkTimeline<'a> {
    /// The ends that counted link errors or discards in a window.
    pub fn end_errors(self, window: Window, count: usize) -> Vec<EndErrors<'a>> {
        let ends = self.link.ends().into_iter();
        let lanes = ends.filter_map(|end| {
            let of_end = || self.series.iter().filter(move |series| series.port.end() == end);
            let columns = |is_wanted: &dyn Fn(Counter) -> bool| {
                let steps = of_end().filter(|series| is_wanted(series.counter));
                columns::resample(steps.flat_map(|series| &series.steps), window, count)
            };
            let mut link_errors = columns(&|counter| LINK_ERRORS.contains(&counter));
            let received = columns(&|counter| counter == Counter::RcvErrors);
            let marked = columns(&|counter| counter == Counter::RcvRemotePhysicalErrors);
            // The share over the whole window: within a column the two counters may be read at different times.
            let sum = |columns: &[f64]| columns.iter().sum::<f64>();
            let share = (sum(&marked) / sum(&received).max(f64::MIN_POSITIVE)).min(1.0);
            for (errors, received) in link_errors.iter_mut().zip(&received) {
                *errors = (*errors - received * share).max(0.0);
            }
            let discards = columns(&Counter::is_discard);
            // Less than one is a rounding error.
            let counted = |columns: &[f64]| sum(columns) > 0.5;
            let has_any = counted(&link_errors) || counted(&discards);
            let port = &of_end().next().filter(|_| has_any)?.port;
            Some(EndErrors { port, link_errors, discards })
        });
        lanes.collect()
    }

    /// The traffic of one end, sent and received, in bytes.
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
