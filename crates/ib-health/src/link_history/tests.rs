//! Losses of a link as sweeps, counters and events show them.

use super::*;

/// A link that is swept each 15 s.
#[derive(Default)]
struct Scenario {
    history: LinkHistory,
    sweep: u64,
    downed: [u32; 2],
    resets: [u32; 2],
    /// What the nodes' traffic counters show.
    traffic: [u64; 2],
    maintenance: bool,
    returned: bool,
}

impl Scenario {
    fn new() -> Self {
        let mut link = Scenario { downed: [3, 7], ..Scenario::default() };
        link.sweep(Some(true), [false; 2]);
        link
    }

    fn at(&self) -> Moment {
        Moment::default() + Duration::from_secs(15 * self.sweep)
    }

    fn sweep(&mut self, up: Option<bool>, away: [bool; 2]) -> bool {
        self.sweep += 1;
        let at = self.at();
        self.history.update(&LinkSample {
            at,
            up,
            returned: self.returned,
            read: away.map(|away| (!away).then_some(at)),
            downed: [0, 1].map(|end: usize| (!away[end]).then_some(self.downed[end])),
            resets: self.resets,
            traffic: self.traffic,
            is_switch: [true, false],
            away,
            maintenance: self.maintenance,
        })
    }

    fn sweeps(&mut self, count: usize, up: bool, away: [bool; 2]) {
        for _ in 0..count {
            self.sweep(Some(up), away);
        }
    }

    fn up(&mut self, count: usize) {
        self.sweeps(count, true, [false; 2]);
    }

    /// Flaps, expected losses, and how long each kept it down, in seconds: least and most.
    fn counts(&self) -> (u32, [u32; 2], [u64; 2], [u64; 2]) {
        let Outages { flaps, expected, down, expected_down, .. } = &self.history.outages;
        let seconds = |down: &Downtime| [down.least.as_secs(), down.most.as_secs()];
        (*flaps, *expected, seconds(down), seconds(expected_down))
    }

    /// Each classified loss: how many, from when, and how long it was down, in seconds.
    fn losses(&self) -> Vec<(u32, u64, [u64; 2])> {
        let losses = self.history.losses.iter().flat_map(|losses| losses.iter());
        let seconds = |moment: Moment| u64::from(moment.whole_seconds());
        let down = |loss: &Loss| [loss.down.least.as_secs(), loss.down.most.as_secs()];
        losses.map(|loss| (loss.times, seconds(loss.at), down(loss))).collect()
    }
}

const BOTH: [bool; 2] = [false; 2];
const HOST: [bool; 2] = [false, true];

#[test]
fn loss_seen_and_counted_at_both_ends_counts_once() {
    let mut link = Scenario::new();
    link.downed = [4, 7];
    link.sweep(Some(false), BOTH);
    link.downed = [4, 8];
    link.sweeps(2, false, BOTH);
    link.up(5);
    assert_eq!(link.counts(), (1, [0, 0], [30, 60], [0, 0]));
    let outages = &link.history.outages;
    assert_eq!(outages.lengths, [0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(outages.lengths_sum, Duration::from_secs(45));
    assert_eq!(link.losses(), [(1, 30, [30, 60])]);
    assert_eq!(outages.last_change, Some(Moment::default() + Duration::from_secs(5 * 15)));
}

#[test]
fn loss_between_sweeps_counts_once_with_interval_bound() {
    let mut link = Scenario::new();
    // One end was read before it and the other after it.
    link.downed = [4, 7];
    assert!(link.sweep(Some(true), BOTH), "it came up again");
    link.downed = [4, 8];
    link.up(3);
    assert_eq!(link.counts(), (1, [0, 0], [0, 15], [0, 0]));
    assert_eq!(link.history.outages.lengths, [0; 8], "no sweep saw it down");
    link.downed = [7, 11];
    link.up(3);
    assert_eq!(link.counts().0, 4);
    assert_eq!(link.losses(), [(1, 30, [0, 15]), (3, 90, [0, 15])]);
    assert_eq!(link.history.flaps_since(link.at(), Duration::from_secs(60)), (3, false));
    assert_eq!(link.history.flaps_since(link.at(), Duration::ZERO).0, 0);
}

#[test]
fn loss_is_seen_without_link_downed() {
    // ibsim: LinkDowned does not rise at an Unlink.
    let mut link = Scenario::new();
    link.sweeps(4, false, BOTH);
    link.up(4);
    assert_eq!(link.counts(), (1, [0, 0], [45, 75], [0, 0]));
}

#[test]
fn pulled_cable_is_a_flap_and_reboot_is_not() {
    let mut pulled = Scenario::new();
    pulled.downed[0] += 1;
    pulled.sweeps(3, false, HOST);
    pulled.downed[1] += 1;
    // It is up before it answers.
    pulled.sweeps(1, true, HOST);
    pulled.up(3);
    assert_eq!(pulled.counts(), (1, [0, 0], [30, 60], [0, 0]));

    let mut rebooted = Scenario::new();
    rebooted.downed[0] += 1;
    rebooted.sweeps(3, false, HOST);
    rebooted.resets[1] += 1;
    rebooted.sweeps(1, true, HOST);
    rebooted.up(3);
    assert_eq!(rebooted.counts(), (0, [1, 0], [0, 0], [30, 60]));

    // Nothing had been counted there before, so nothing decreased.
    let mut quiet = Scenario { downed: [0, 0], ..Scenario::default() };
    quiet.up(1);
    quiet.downed[0] += 1;
    quiet.sweeps(3, false, HOST);
    quiet.up(3);
    assert_eq!(quiet.counts(), (0, [1, 0], [0, 0], [30, 60]));
}

#[test]
fn loss_counted_at_one_end_is_the_other_nodes() {
    let mut link = Scenario::new();
    link.downed[1] += 1;
    link.up(4);
    assert_eq!(link.counts().0, 1);
    assert_eq!(link.history.flaps_since(link.at(), Duration::from_secs(99)), (1, true));
    link.downed = [9, 9];
    link.up(4);
    assert!(!link.history.flaps_since(link.at(), Duration::from_secs(99)).1);
}

#[test]
fn clear_is_not_a_reboot() {
    let mut link = Scenario::new();
    link.resets = [1, 1];
    link.up(3);
    assert_eq!(link.counts(), (0, [0, 0], [0, 0], [0, 0]));
    link.downed = [4, 8];
    link.resets = [2, 2];
    link.up(3);
    assert_eq!(link.counts().0, 1, "cleared, and lost after that");
}

#[test]
fn loss_in_maintenance_is_expected() {
    let mut link = Scenario::new();
    link.sweeps(2, false, BOTH);
    link.maintenance = true;
    link.sweeps(2, false, BOTH);
    link.maintenance = false;
    link.up(3);
    assert_eq!(link.counts(), (0, [0, 1], [0, 0], [45, 75]));
}

#[test]
fn event_has_its_own_time_and_older_states_are_ignored() {
    let mut link = Scenario::new();
    let at = link.at();
    link.history.handle_event(false, at + Duration::from_millis(100));
    link.history.handle_event(true, at + Duration::from_millis(2_100));
    link.history.handle_event(true, at + Duration::from_millis(2_200));
    link.downed = [4, 8];
    link.up(3);
    assert_eq!(link.counts(), (1, [0, 0], [2, 2], [0, 0]), "known exactly");
    assert_eq!(link.history.outages.lengths[1], 1);
    // States that were queried before an event are outdated.
    link.history.handle_event(false, link.at() + Duration::from_secs(20));
    link.up(1);
    assert_eq!(link.history.up().0, Some(false));
    link.history.handle_event(true, link.at() + Duration::from_secs(6));
    link.up(3);
    assert_eq!(link.counts().0, 2);
}

#[test]
fn consecutive_flaps_all_count() {
    let mut link = Scenario::new();
    for _ in 0..3 {
        link.sweep(Some(false), BOTH);
        link.sweep(Some(true), BOTH);
    }
    link.up(2);
    assert_eq!(link.counts(), (3, [0, 0], [0, 90], [0, 0]));
    let times: Vec<u64> = link.losses().iter().map(|(_, at, _)| *at).collect();
    assert_eq!(times, [30, 60, 90]);
}

#[test]
fn unknown_state_is_no_change() {
    let mut link = Scenario::new();
    link.sweep(None, [true, true]);
    link.sweep(None, [true, true]);
    link.up(3);
    assert_eq!(link.counts(), (0, [0, 0], [0, 0], [0, 0]));
    assert_eq!(link.history.up().1, Moment::default() + Duration::from_secs(15));
}

#[test]
fn new_link_was_not_lost_before_it_came_up() {
    // Found while no subnet manager has set its state yet.
    let mut link = Scenario { downed: [3, 7], resets: [1, 0], ..Scenario::default() };
    link.sweeps(2, false, BOTH);
    link.downed[0] += 1;
    link.sweeps(1, false, BOTH);
    assert!(link.sweep(Some(true), BOTH), "it trained");
    link.up(5);
    assert_eq!(link.counts(), (0, [0, 0], [0, 0], [0, 0]));
    // From then on it can be lost.
    link.sweep(Some(false), BOTH);
    link.up(5);
    assert_eq!(link.counts(), (1, [0, 0], [0, 30], [0, 0]));

    let mut history = LinkHistory::default();
    history.handle_event(true, Moment::default() + Duration::from_secs(1_000));
    assert_eq!((history.pending.is_some(), history.up().0), (false, Some(true)));
}

#[test]
fn losses_of_a_silent_end_do_not_count_twice() {
    let mut link = Scenario::new();
    let silent = [false, true];
    for _ in 0..3 {
        link.downed = link.downed.map(|downed| downed + 1);
        link.sweeps(8, true, silent);
    }
    assert_eq!(link.counts().0, 3);
    link.up(6);
    assert_eq!(link.counts().0, 3, "the same ones, reported by the end that did not respond");
    link.downed = link.downed.map(|downed| downed + 1);
    link.up(6);
    assert_eq!(link.counts().0, 4);
}

#[test]
fn node_never_read_is_not_known_to_reboot() {
    let mut link = Scenario { downed: [3, 7], ..Scenario::default() };
    link.sweeps(4, true, HOST);
    link.downed[0] += 1;
    link.sweeps(3, false, HOST);
    link.sweeps(6, true, HOST);
    assert_eq!(link.counts(), (1, [0, 0], [30, 60], [0, 0]));
}

#[test]
fn clear_at_both_ends_is_not_a_reboot() {
    // It has cleared what they had counted of the loss.
    let mut link = Scenario::new();
    link.sweep(Some(false), BOTH);
    link.resets = [1, 1];
    link.sweeps(2, false, BOTH);
    link.up(4);
    assert_eq!(link.counts(), (1, [0, 0], [30, 60], [0, 0]));
}

#[test]
fn reboot_soon_after_a_clear_is_recognized() {
    // A tool has just cleared the counters: after the reboot they soon show more than before.
    let lost = |before: u64, after: u64| {
        let mut link = Scenario { traffic: [0, before], ..Scenario::default() };
        link.up(2);
        link.downed[0] += 1;
        link.sweeps(4, false, HOST);
        link.traffic[1] = after;
        link.up(6);
        (link.counts().0, link.counts().1[0])
    };
    assert_eq!(lost(100, 1_000), (0, 1));
    assert_eq!(lost(1_000_000, 1_001_000), (1, 0));
}

#[test]
fn reboot_is_recognized_although_a_tool_clears_counters() {
    // The host is away for so many sweeps, and trains twice while it boots: it counts that, too. The counters of the
    // switch are reset while the link is down, and also after it.
    let lost = |link: &mut Scenario, sweeps: usize, after: bool| {
        link.downed[0] += 1;
        link.resets[0] += 1;
        link.sweeps(sweeps, false, HOST);
        link.downed = [link.downed[0] + 1, link.downed[1] + 1];
        link.resets = [link.resets[0] + u32::from(after), link.resets[1] + 1];
        link.up(6);
        (link.counts().0, link.counts().1[0])
    };
    // The tool did not reach the host while the link was down.
    assert_eq!(lost(&mut Scenario::new(), 4, false), (0, 1));
    // It may have cleared the host: then the time decides.
    assert_eq!(lost(&mut Scenario::new(), 4, true), (2, 0));
    let mut link = Scenario::new();
    assert_eq!(lost(&mut link, 10, true), (0, 1));
    // No host boots again and again.
    link.up(4 * 60);
    assert_eq!(lost(&mut link, 10, true), (2, 1));
    link.up(4 * 60 * 13);
    assert_eq!(lost(&mut link, 10, true), (2, 2));
}

#[test]
fn old_flap_stays_old_when_clock_wraps() {
    let mut link = Scenario::new();
    link.downed = [4, 8];
    link.up(4);
    let at = link.at() + Duration::from_millis(10 * (1 << 32));
    assert_eq!(link.history.flaps_since(at, Duration::from_secs(3600)).0, 0);
}

#[test]
fn reboot_waits_for_the_other_end() {
    // A switch that was away between two sweeps, and the hosts behind it.
    let mut link = Scenario::new();
    link.resets[0] += 1;
    link.sweeps(2, true, HOST);
    link.downed[1] += 1;
    link.up(4);
    assert_eq!(link.counts(), (0, [1, 0], [0, 0], [0, 45]));
    // Cleared by a tool, while the other end does not respond for long.
    link.resets[0] += 1;
    link.sweeps(6, true, HOST);
    link.up(4);
    assert_eq!(
        (link.counts(), link.history.pending.is_some()),
        ((0, [1, 0], [0, 0], [0, 45]), false)
    );
}

#[test]
fn switch_gone_with_its_hosts_has_rebooted() {
    // The state of the link is not known meanwhile, and no counter had anything to fall from.
    let mut link = Scenario::new();
    link.sweep(None, [true, true]);
    link.downed[1] += 1;
    link.up(4);
    assert_eq!(link.counts(), (0, [1, 0], [0, 0], [0, 30]));
    link.downed[1] += 1;
    link.up(4);
    assert_eq!(link.counts(), (1, [1, 0], [0, 15], [0, 30]), "that was long ago");
}

/// An outage of one minute, seen from a switch (end 0) and a host (end 1) whose HCA leaves LinkDowned at 0.
struct Combination {
    what: &'static str,
    /// Sweeps after the outage in which the host does not respond; it does not during the outage.
    silent_after: usize,
    /// The switch does not respond during the outage.
    switch_away: bool,
    /// After how many sweeps of the outage the counters of each end are reset.
    resets: [Option<usize>; 2],
    /// The switch counts the loss.
    counted: bool,
    /// The host's traffic counters are not zero before the outage.
    traffic: bool,
    /// Flaps and reboots.
    becomes: (u32, u32),
}

#[test]
fn flap_and_reboot_differ_without_hca_link_downed() {
    let usual = Combination {
        what: "the cable drops the host",
        silent_after: 0,
        switch_away: false,
        resets: [None; 2],
        counted: true,
        traffic: true,
        becomes: (1, 0),
    };
    let all = [
        Combination { what: "the host reboots", resets: [None, Some(4)], becomes: (0, 1), ..usual },
        Combination { what: "the cable drops it, and it is read late", silent_after: 2, ..usual },
        Combination {
            what: "the host does not answer after that",
            silent_after: 9,
            becomes: (0, 1),
            ..usual
        },
        Combination {
            what: "the switch reboots",
            switch_away: true,
            resets: [Some(4), None],
            counted: false,
            becomes: (0, 1),
            ..usual
        },
        Combination {
            what: "the switch is silent, and does not reboot",
            switch_away: true,
            ..usual
        },
        Combination { what: "a tool clears the switch", resets: [Some(2), None], ..usual },
        Combination {
            what: "it reboots while a tool clears the switch",
            resets: [Some(2), Some(4)],
            becomes: (0, 1),
            ..usual
        },
        Combination {
            what: "both lose power",
            switch_away: true,
            resets: [Some(4), Some(4)],
            counted: false,
            becomes: (0, 1),
            ..usual
        },
        Combination {
            what: "nothing was counted before, so nothing can fall",
            traffic: false,
            becomes: (0, 1),
            ..usual
        },
        Combination { what: "the switch does not count either", counted: false, ..usual },
        usual,
    ];
    for it in all {
        let mut link = Scenario {
            downed: [3, 0],
            traffic: [9, if it.traffic { 9 } else { 0 }],
            ..Scenario::default()
        };
        link.up(2);
        for sweep in 0..=4 {
            for end in 0..2 {
                link.resets[end] += u32::from(it.resets[end] == Some(sweep));
            }
            link.downed[0] = 3 + u32::from(it.counted);
            if sweep < 4 {
                let up = (!it.switch_away).then_some(false);
                // The discovery read the link's state before the switch stopped responding.
                let up = if sweep == 3 { Some(false) } else { up };
                link.sweep(up, [it.switch_away && sweep < 3, true]);
            }
        }
        link.sweeps(it.silent_after, true, HOST);
        link.up(6);
        let (flaps, expected, ..) = link.counts();
        assert_eq!((flaps, expected), (it.becomes.0, [it.becomes.1, 0]), "{}", it.what);
    }
}

#[test]
fn hca_that_never_counted_does_not_blame_its_node() {
    let by_node = |downed: [u32; 2]| {
        let mut link = Scenario { downed, ..Scenario::default() };
        link.up(2);
        for _ in 0..3 {
            link.downed[0] += 1;
            link.up(4);
        }
        link.history.flaps_since(link.at(), Duration::from_secs(999))
    };
    assert_eq!(by_node([3, 0]), (3, false));
    assert_eq!(by_node([3, 1]), (3, true), "this one counts");
}

#[test]
fn loss_counted_before_it_is_seen_counts_once() {
    // The state was read before the loss, and the counter after it.
    let mut link = Scenario::new();
    link.downed[0] += 1;
    link.up(1);
    link.sweeps(2, false, HOST);
    link.downed[1] += 1;
    link.up(4);
    assert_eq!(link.counts(), (1, [0, 0], [15, 45], [0, 0]));
}

#[test]
fn link_up_between_sweeps_has_two_down_periods() {
    let mut link = Scenario::new();
    link.downed[0] += 1;
    link.sweeps(2, false, HOST);
    link.downed[0] += 1;
    link.sweeps(2, false, HOST);
    link.downed[1] += 2;
    link.up(4);
    // Down at 30 and 45 s, and again at 60 and 75 s.
    assert_eq!(link.losses(), [(1, 30, [15, 45]), (1, 60, [15, 45])]);
}

#[test]
fn active_port_ends_outage_before_next_discovery() {
    let mut link = Scenario::new();
    link.downed[0] += 1;
    link.sweep(Some(false), HOST);
    link.returned = true;
    for _ in 0..4 {
        link.sweep(None, HOST);
        assert!(link.history.has_returned());
    }
    // Once more, while the host is still not found.
    link.downed[0] += 1;
    link.sweep(None, HOST);
    link.returned = false;
    link.downed[1] += 2;
    link.up(4);
    assert_eq!(link.losses(), [(1, 30, [0, 30]), (1, 105, [0, 15])]);
    // Another discovery finds it gone, and it is down again before it was found.
    link.downed[0] += 1;
    link.sweep(Some(false), HOST);
    link.returned = true;
    link.sweep(None, HOST);
    link.returned = false;
    link.downed[0] += 1;
    link.sweep(Some(false), HOST);
    link.downed[1] += 2;
    link.up(4);
    assert_eq!(link.losses()[2..], [(1, 180, [0, 30]), (1, 210, [0, 30])]);
}
