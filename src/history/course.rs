//! What a cable went through in a window: what its ends counted, and what happened to it.

use crate::fabric::Counter;
use crate::fabric::topology::LinkId;

use super::file::tier::Tier;
use super::model::{Port, Series, Told};

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

impl<'a> Course<'a> {
    /// Its ends that counted errors, each with the courses of these.
    pub fn lanes(self) -> impl Iterator<Item = (&'a Port, Vec<&'a Series>)> {
        self.link.ends().into_iter().filter_map(move |end| {
            let of_end = self.series.iter().filter(|series| series.port.end() == end);
            let errors: Vec<&Series> =
                of_end.filter(|series| Tier::of(series.counter) == Tier::Rare).collect();
            Some((&errors.first()?.port, errors))
        })
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
