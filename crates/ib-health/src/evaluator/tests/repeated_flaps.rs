//! A link that flaps once a day.

use super::*;
use crate::flap_limits::FlapDayLimit;

const HOUR: u64 = 3600;

fn modules(serial: u8) -> [Option<Module>; 2] {
    [Some(Module { serial_number: [serial; 16], ..Module::default() }); 2]
}

impl Scenario {
    /// The exporter misses all sweeps until then.
    fn skip(&mut self, hours: u64) -> LinkAssessment {
        self.sweep += hours * HOUR / 15;
        self.sweeps(2)
    }

    /// It goes down for a moment, and both ends count that, or the switch alone.
    fn flap(&mut self, by_node: bool) -> LinkAssessment {
        self.downed[0] += 1;
        self.downed[1] += u64::from(!by_node);
        self.sweeps(4)
    }
}

fn weight(found: &LinkAssessment) -> Option<Verdict> {
    found.reasons.weight(Reason::RepeatedFlaps)
}

/// With a flap every so many hours, `times` times; two hours after the last.
fn flapping(times: usize, hours: u64, by_node: bool) -> Scenario {
    let mut link = Scenario::counting([1, 1], false);
    link.modules = modules(b'A');
    link.near = Some(running(Width::X4, Speed::Ndr));
    link.sweeps(2);
    for _ in 0..times {
        link.skip(hours - 2);
        link.flap(by_node);
        link.skip(2);
    }
    link
}

#[test]
fn link_that_flaps_once_a_day_is_degraded() {
    let found = flapping(2, 24, false).sweep();
    assert_eq!((weight(&found), found.repeated_flaps), (None, None));
    let mut link = flapping(3, 24, false);
    // It is not flapping any more, and the verdict of the last flap is not held.
    let found = link.sweeps(30);
    assert_eq!(found.reasons.weight(Reason::Flapping), None);
    assert_eq!((weight(&found), found.verdict), (Some(Verdict::Watch), Verdict::Watch));
    assert_eq!(found.repair, Some(Repair::Reseat));
    assert_eq!(found.repeated_flaps.map(|found| found.days), Some(3));
    // More than that make it no worse, and the first leaves the window.
    let found = link.skip(12 * 24);
    assert_eq!(weight(&found), None);
    let found = link.sweeps(4 * 60);
    assert_eq!((weight(&found), found.verdict), (None, Verdict::Ok));
}

#[test]
fn many_days_are_not_bad() {
    let found = flapping(10, 25, false).sweeps(30);
    assert_eq!((weight(&found), found.verdict), (Some(Verdict::Watch), Verdict::Watch));
}

#[test]
fn flaps_of_one_night_and_of_a_node_do_not_count() {
    let found = flapping(12, 2, false).sweeps(30);
    assert_eq!((weight(&found), found.outages.flaps), (None, 12));
    let found = flapping(10, 24, true).sweeps(30);
    assert_eq!((weight(&found), found.outages.flaps), (None, 10), "driver reloads");
}

#[test]
fn expected_losses_do_not_count() {
    let mut link = flapping(2, 24, false);
    link.evaluator.maintenance = vec![MaintenanceWindow {
        node: NodeSelector::Guid(Guid(1)),
        port: None,
        from: None,
        until: None,
    }];
    for _ in 0..5 {
        link.skip(24);
        link.flap(false);
    }
    link.evaluator.maintenance.clear();
    let found = link.sweeps(30);
    assert_eq!((weight(&found), found.outages.flaps, found.outages.expected), (None, 2, [0, 5]));
}

#[test]
fn replaced_cable_begins_without_flaps() {
    let mut link = flapping(3, 24, false);
    link.skip(20);
    let up = link.near.replace(polling());
    link.downed = link.downed.map(|downed| downed + 1);
    link.sweeps(2);
    (link.near, link.modules) = (up, modules(b'B'));
    let found = link.sweeps(4);
    assert_eq!((weight(&found), found.verdict), (None, Verdict::Unknown));
    // The flap by the replacement was not of the new one: two more are not enough.
    link.skip(22);
    link.flap(false);
    link.skip(22);
    assert_eq!(weight(&link.flap(false)), None);
    link.skip(22);
    assert_eq!(weight(&link.flap(false)), Some(Verdict::Watch));
}

#[test]
fn recorded_flaps_count_after_a_restart() {
    let id = LinkId::between(end(1, 1), end(2, 1));
    // Without a history, with two days in it, and with the site's own limit.
    for (recorded, days, expected) in
        [(0, 3, None), (1, 3, None), (2, 3, Some(Verdict::Watch)), (1, 2, Some(Verdict::Watch))]
    {
        let limit = FlapDayLimit { days, ..FlapDayLimit::default() };
        let limits = LimitTable { flap_days: limit, ..LimitTable::default() };
        let mut link = Scenario::unseen([1, 1], false);
        link.evaluator = LinkEvaluator::new(limits);
        let day = |nth: u32| SystemTime::UNIX_EPOCH - Duration::from_secs(24 * HOUR) * (nth + 1);
        link.evaluator.flaps = [(id, (0..recorded).map(day).collect())].into();
        link.sweeps(2);
        let found = link.flap(false);
        assert_eq!(weight(&found), expected, "{recorded} recorded days of {days}");
    }
}
