//! The story of a link, told in several ways.

use super::*;

/// A link that is swept each 15 s.
#[derive(Default)]
struct Story {
    life: Life,
    sweep: u64,
    downed: [u32; 2],
    resets: [u32; 2],
    /// The nodes' traffic counters show something.
    shows_traffic: [bool; 2],
    maintenance: bool,
    returned: bool,
}

impl Story {
    fn new() -> Self {
        let mut story = Story { downed: [3, 7], ..Story::default() };
        story.sweep(Some(true), [false; 2]);
        story
    }

    fn at(&self) -> Moment {
        Moment::default() + Duration::from_secs(15 * self.sweep)
    }

    fn sweep(&mut self, up: Option<bool>, away: [bool; 2]) -> bool {
        self.sweep += 1;
        let at = self.at();
        self.life.follow(&Look {
            at,
            up,
            returned: self.returned,
            read: away.map(|away| (!away).then_some(at)),
            downed: [0, 1].map(|end: usize| (!away[end]).then_some(self.downed[end])),
            resets: self.resets,
            shows_traffic: self.shows_traffic,
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

    /// Flaps, expected losses, and how long they kept it down, in seconds.
    fn told(&self) -> (u32, [u32; 2], [u64; 2], [u64; 2]) {
        let outages = self.life.outages();
        let Outages { flaps, expected, down, expected_down, .. } = outages;
        let seconds = |down: &Downtime| [down.least.as_secs(), down.most.as_secs()];
        (*flaps, *expected, seconds(down), seconds(expected_down))
    }

    /// Each loss that was settled: how many, from when, and how long it was down, in seconds.
    fn losses(&self) -> Vec<(u32, u64, [u64; 2])> {
        let losses = self.life.losses().into_iter().flat_map(|losses| losses.iter());
        let seconds = |moment: Moment| u64::from(moment.whole_seconds());
        let down = |loss: &Loss| [loss.down.least.as_secs(), loss.down.most.as_secs()];
        losses.map(|loss| (loss.times, seconds(loss.at), down(loss))).collect()
    }
}

const BOTH: [bool; 2] = [false; 2];
const HOST: [bool; 2] = [false, true];

#[test]
fn a_loss_that_is_seen_and_counted_at_both_ends_is_one() {
    let mut story = Story::new();
    story.downed = [4, 7];
    story.sweep(Some(false), BOTH);
    story.downed = [4, 8];
    story.sweeps(2, false, BOTH);
    story.up(5);
    assert_eq!(story.told(), (1, [0, 0], [30, 60], [0, 0]));
    let outages = story.life.outages();
    assert_eq!(outages.lengths, [0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(outages.lengths_sum, Duration::from_secs(45));
    assert_eq!(story.losses(), [(1, 30, [30, 60])]);
    assert_eq!(outages.last_change, Some(Moment::default() + Duration::from_secs(5 * 15)));
}

#[test]
fn a_loss_between_two_sweeps_is_counted_once_and_took_one_interval_at_most() {
    let mut story = Story::new();
    // One end was read before it and the other after it.
    story.downed = [4, 7];
    assert!(story.sweep(Some(true), BOTH), "it came up again");
    story.downed = [4, 8];
    story.up(3);
    assert_eq!(story.told(), (1, [0, 0], [0, 15], [0, 0]));
    assert_eq!(story.life.outages().lengths, [0; 8], "no sweep saw it down");
    story.downed = [7, 11];
    story.up(3);
    assert_eq!(story.told().0, 4);
    assert_eq!(story.losses(), [(1, 30, [0, 15]), (3, 90, [0, 15])]);
    assert_eq!(story.life.flaps_since(story.at(), Duration::from_secs(60)), (3, false));
    assert_eq!(story.life.flaps_since(story.at(), Duration::ZERO).0, 0);
}

#[test]
fn a_simulator_that_does_not_count_it_shows_it_all_the_same() {
    // ibsim: LinkDowned does not rise at an Unlink.
    let mut story = Story::new();
    story.sweeps(4, false, BOTH);
    story.up(4);
    assert_eq!(story.told(), (1, [0, 0], [45, 75], [0, 0]));
}

#[test]
fn a_pulled_host_is_a_flap_and_a_rebooted_one_is_not() {
    let mut pulled = Story::new();
    pulled.downed[0] += 1;
    pulled.sweeps(3, false, HOST);
    pulled.downed[1] += 1;
    // It is up before it answers.
    pulled.sweeps(1, true, HOST);
    pulled.up(3);
    assert_eq!(pulled.told(), (1, [0, 0], [30, 60], [0, 0]));

    let mut rebooted = Story::new();
    rebooted.downed[0] += 1;
    rebooted.sweeps(3, false, HOST);
    rebooted.resets[1] += 1;
    rebooted.sweeps(1, true, HOST);
    rebooted.up(3);
    assert_eq!(rebooted.told(), (0, [1, 0], [0, 0], [30, 60]));

    // Nothing had been counted there before, so nothing fell.
    let mut quiet = Story { downed: [0, 0], ..Story::default() };
    quiet.up(1);
    quiet.downed[0] += 1;
    quiet.sweeps(3, false, HOST);
    quiet.up(3);
    assert_eq!(quiet.told(), (0, [1, 0], [0, 0], [30, 60]));
}

#[test]
fn what_one_end_alone_counts_is_the_other_nodes() {
    let mut story = Story::new();
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told().0, 1);
    assert_eq!(story.life.flaps_since(story.at(), Duration::from_secs(99)), (1, true));
    story.downed = [9, 9];
    story.up(4);
    assert!(!story.life.flaps_since(story.at(), Duration::from_secs(99)).1);
}

#[test]
fn a_clear_is_no_reboot() {
    let mut story = Story::new();
    story.resets = [1, 1];
    story.up(3);
    assert_eq!(story.told(), (0, [0, 0], [0, 0], [0, 0]));
    story.downed = [4, 8];
    story.resets = [2, 2];
    story.up(3);
    assert_eq!(story.told().0, 1, "cleared, and lost after that");
}

#[test]
fn maintenance_is_expected() {
    let mut story = Story::new();
    story.sweeps(2, false, BOTH);
    story.maintenance = true;
    story.sweeps(2, false, BOTH);
    story.maintenance = false;
    story.up(3);
    assert_eq!(story.told(), (0, [0, 1], [0, 0], [45, 75]));
}

#[test]
fn an_event_has_its_own_time_and_the_sweep_after_it_says_nothing_new() {
    let mut story = Story::new();
    let at = story.at();
    story.life.hear(false, at + Duration::from_millis(100));
    story.life.hear(true, at + Duration::from_millis(2_100));
    story.life.hear(true, at + Duration::from_millis(2_200));
    story.downed = [4, 8];
    story.up(3);
    assert_eq!(story.told(), (1, [0, 0], [2, 2], [0, 0]), "known exactly");
    assert_eq!(story.life.outages().lengths[1], 1);
    // What was asked before an event is older news.
    story.life.hear(false, story.at() + Duration::from_secs(20));
    story.up(1);
    assert_eq!(story.life.up().0, Some(false));
    story.life.hear(true, story.at() + Duration::from_secs(6));
    story.up(3);
    assert_eq!(story.told().0, 2);
}

#[test]
fn flaps_that_follow_each_other_at_once_are_all_counted() {
    let mut story = Story::new();
    for _ in 0..3 {
        story.sweep(Some(false), BOTH);
        story.sweep(Some(true), BOTH);
    }
    story.up(2);
    assert_eq!(story.told(), (3, [0, 0], [0, 90], [0, 0]));
    let times: Vec<u64> = story.losses().iter().map(|(_, at, _)| *at).collect();
    assert_eq!(times, [30, 60, 90]);
}

#[test]
fn what_is_not_known_is_no_change() {
    let mut story = Story::new();
    story.sweep(None, [true, true]);
    story.sweep(None, [true, true]);
    story.up(3);
    assert_eq!(story.told(), (0, [0, 0], [0, 0], [0, 0]));
    assert_eq!(story.life.up().1, Moment::default() + Duration::from_secs(15));
}

#[test]
fn a_new_cable_that_comes_up_was_not_lost_before() {
    // Found while no subnet manager has set its state yet.
    let mut story = Story { downed: [3, 7], resets: [1, 0], ..Story::default() };
    story.sweeps(2, false, BOTH);
    story.downed[0] += 1;
    story.sweeps(1, false, BOTH);
    assert!(story.sweep(Some(true), BOTH), "it trained");
    story.up(5);
    assert_eq!(story.told(), (0, [0, 0], [0, 0], [0, 0]));
    // From then on it can be lost.
    story.sweep(Some(false), BOTH);
    story.up(5);
    assert_eq!(story.told(), (1, [0, 0], [0, 30], [0, 0]));

    let mut heard = Life::default();
    heard.hear(true, Moment::default() + Duration::from_secs(1_000));
    assert_eq!((heard.pending.is_some(), heard.up().0), (false, Some(true)));
}

#[test]
fn what_one_end_counted_while_it_was_silent_was_told_by_the_other() {
    let mut story = Story::new();
    let silent = [false, true];
    for _ in 0..3 {
        story.downed = story.downed.map(|downed| downed + 1);
        story.sweeps(8, true, silent);
    }
    assert_eq!(story.told().0, 3);
    story.up(6);
    assert_eq!(story.told().0, 3, "the same ones, told by the end that was silent");
    story.downed = story.downed.map(|downed| downed + 1);
    story.up(6);
    assert_eq!(story.told().0, 4);
}

#[test]
fn a_node_that_never_told_anything_is_not_known_to_reboot() {
    let mut story = Story { downed: [3, 7], ..Story::default() };
    story.sweeps(4, true, HOST);
    story.downed[0] += 1;
    story.sweeps(3, false, HOST);
    story.sweeps(6, true, HOST);
    assert_eq!(story.told(), (1, [0, 0], [30, 60], [0, 0]));
}

#[test]
fn a_tool_that_clears_both_ends_reboots_neither() {
    // It has cleared what they had counted of the loss.
    let mut story = Story::new();
    story.sweep(Some(false), BOTH);
    story.resets = [1, 1];
    story.sweeps(2, false, BOTH);
    story.up(4);
    assert_eq!(story.told(), (1, [0, 0], [30, 60], [0, 0]));
}

#[test]
fn a_flap_of_long_ago_stays_of_long_ago() {
    let mut story = Story::new();
    story.downed = [4, 8];
    story.up(4);
    let at = story.at() + Duration::from_millis(10 * (1 << 32));
    assert_eq!(story.life.flaps_since(at, Duration::from_secs(3600)).0, 0);
}

#[test]
fn a_reboot_that_is_read_before_the_other_end_is_waits_for_it() {
    // A switch that was away between two looks, and the hosts behind it.
    let mut story = Story::new();
    story.resets[0] += 1;
    story.sweeps(2, true, HOST);
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told(), (0, [1, 0], [0, 0], [0, 45]));
    // Cleared by a tool, while the other end is silent for long.
    story.resets[0] += 1;
    story.sweeps(6, true, HOST);
    story.up(4);
    assert_eq!((story.told(), story.life.pending.is_some()), ((0, [1, 0], [0, 0], [0, 45]), false));
}

#[test]
fn a_switch_that_was_gone_with_all_its_hosts_has_rebooted() {
    // The state of the link is not known meanwhile, and no counter had anything to fall from.
    let mut story = Story::new();
    story.sweep(None, [true, true]);
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told(), (0, [1, 0], [0, 0], [0, 30]));
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told(), (1, [1, 0], [0, 15], [0, 30]), "that was long ago");
}

/// What happens during an outage of one minute, seen from a switch (end 0) and a host (end 1) whose HCA
/// leaves LinkDowned at 0.
struct Combination {
    what: &'static str,
    /// The host answers nothing while the link is down, and for so many sweeps after that.
    silent_after: usize,
    /// The switch answers nothing in the meantime.
    switch_away: bool,
    /// The counters of each end are reset after so many sweeps of the outage.
    resets: [Option<usize>; 2],
    /// The switch counts the loss.
    counted: bool,
    /// The host's traffic counters show something before the outage.
    traffic: bool,
    /// Flaps and reboots.
    becomes: (u32, u32),
}

#[test]
fn a_flap_is_told_from_a_reboot_where_the_hca_does_not_count() {
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
        let mut story =
            Story { downed: [3, 0], shows_traffic: [true, it.traffic], ..Story::default() };
        story.up(2);
        for sweep in 0..=4 {
            for end in 0..2 {
                story.resets[end] += u32::from(it.resets[end] == Some(sweep));
            }
            story.downed[0] = 3 + u32::from(it.counted);
            if sweep < 4 {
                let up = (!it.switch_away).then_some(false);
                // The discovery knew of the link's state before the switch was silent.
                let up = if sweep == 3 { Some(false) } else { up };
                story.sweep(up, [it.switch_away && sweep < 3, true]);
            }
        }
        story.sweeps(it.silent_after, true, HOST);
        story.up(6);
        let (flaps, expected, ..) = story.told();
        assert_eq!((flaps, expected), (it.becomes.0, [it.becomes.1, 0]), "{}", it.what);
    }
}

#[test]
fn an_hca_that_never_counted_does_not_blame_its_node() {
    let by_node = |downed: [u32; 2]| {
        let mut story = Story { downed, ..Story::default() };
        story.up(2);
        for _ in 0..3 {
            story.downed[0] += 1;
            story.up(4);
        }
        story.life.flaps_since(story.at(), Duration::from_secs(999))
    };
    assert_eq!(by_node([3, 0]), (3, false));
    assert_eq!(by_node([3, 1]), (3, true), "this one counts");
}

#[test]
fn a_loss_that_is_counted_before_it_is_seen_is_one() {
    // The state was read before the loss, and the counter after it.
    let mut story = Story::new();
    story.downed[0] += 1;
    story.up(1);
    story.sweeps(2, false, HOST);
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told(), (1, [0, 0], [15, 45], [0, 0]));
}

#[test]
fn a_link_that_was_up_between_two_sights_is_not_said_to_have_been_down() {
    let mut story = Story::new();
    story.downed[0] += 1;
    story.sweeps(2, false, HOST);
    story.downed[0] += 1;
    story.sweeps(2, false, HOST);
    story.downed[1] += 2;
    story.up(4);
    // Down at 30 and 45 s, and again at 60 and 75 s.
    assert_eq!(story.losses(), [(1, 30, [15, 45]), (1, 60, [15, 45])]);
}

#[test]
fn a_port_that_is_active_ends_the_outage_before_a_discovery_has_found_the_node_again() {
    let mut story = Story::new();
    story.downed[0] += 1;
    story.sweep(Some(false), HOST);
    story.returned = true;
    for _ in 0..4 {
        story.sweep(None, HOST);
        assert!(story.life.is_back());
    }
    // Once more, while the host is still not found.
    story.downed[0] += 1;
    story.sweep(None, HOST);
    story.returned = false;
    story.downed[1] += 2;
    story.up(4);
    assert_eq!(story.losses(), [(1, 30, [0, 30]), (1, 105, [0, 15])]);
    // Another discovery finds it gone, and it is down again before it was found.
    story.downed[0] += 1;
    story.sweep(Some(false), HOST);
    story.returned = true;
    story.sweep(None, HOST);
    story.returned = false;
    story.downed[0] += 1;
    story.sweep(Some(false), HOST);
    story.downed[1] += 2;
    story.up(4);
    assert_eq!(story.losses()[2..], [(1, 180, [0, 30]), (1, 210, [0, 30])]);
}
