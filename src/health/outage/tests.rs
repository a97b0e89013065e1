//! The story of a link, told in several ways.

use super::*;

/// A link that is swept each 15 s.
#[derive(Default)]
struct Story {
    life: Life,
    sweep: u64,
    downed: [u32; 2],
    resets: [u32; 2],
    maintenance: bool,
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
        let read = |end: usize| (!away[end]).then_some(self.downed[end]);
        let (resets, maintenance) = (self.resets, self.maintenance);
        let downed = [read(0), read(1)];
        self.life.follow(&Look { at: self.at(), up, downed, resets, away, maintenance })
    }

    fn sweeps(&mut self, count: usize, up: bool, away: [bool; 2]) {
        for _ in 0..count {
            self.sweep(Some(up), away);
        }
    }

    fn up(&mut self, count: usize) {
        self.sweeps(count, true, [false; 2]);
    }

    fn told(&self) -> (u32, [u32; 2], u64, u64) {
        let outages = self.life.outages();
        let Outages { flaps, expected, down, expected_down, .. } = outages;
        (*flaps, *expected, down.as_secs(), expected_down.as_secs())
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
    assert_eq!(story.told(), (1, [0, 0], 45, 0));
    let outages = story.life.outages();
    assert_eq!(outages.lengths, [0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(outages.last_change, Some(Moment::default() + Duration::from_secs(5 * 15)));
}

#[test]
fn a_loss_between_two_looks_is_counted_once_and_has_no_length() {
    let mut story = Story::new();
    // One end was read before it and the other after it.
    story.downed = [4, 7];
    assert!(story.sweep(Some(true), BOTH), "it came up anew");
    story.downed = [4, 8];
    story.up(3);
    assert_eq!(story.told(), (1, [0, 0], 0, 0));
    story.downed = [7, 11];
    story.up(3);
    assert_eq!(story.told().0, 4);
    assert_eq!(story.life.flaps_since(story.at(), Duration::from_secs(60)), (3, false));
    assert_eq!(story.life.flaps_since(story.at(), Duration::ZERO).0, 0);
}

#[test]
fn a_simulator_that_does_not_count_it_shows_it_all_the_same() {
    // ibsim: LinkDowned does not rise at an Unlink.
    let mut story = Story::new();
    story.sweeps(4, false, BOTH);
    story.up(4);
    assert_eq!(story.told(), (1, [0, 0], 60, 0));
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
    assert_eq!(pulled.told(), (1, [0, 0], 45, 0));

    let mut rebooted = Story::new();
    rebooted.downed[0] += 1;
    rebooted.sweeps(3, false, HOST);
    rebooted.resets[1] += 1;
    rebooted.sweeps(1, true, HOST);
    rebooted.up(3);
    assert_eq!(rebooted.told(), (0, [1, 0], 0, 45));

    // Nothing had been counted there before, so nothing fell.
    let mut quiet = Story { downed: [0, 0], ..Story::default() };
    quiet.up(1);
    quiet.downed[0] += 1;
    quiet.sweeps(3, false, HOST);
    quiet.up(3);
    assert_eq!(quiet.told(), (0, [1, 0], 0, 45));
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
    assert_eq!(story.told(), (0, [0, 0], 0, 0));
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
    assert_eq!(story.told(), (0, [0, 1], 0, 60));
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
    assert_eq!(story.told(), (1, [0, 0], 2, 0));
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
    assert_eq!(story.told(), (3, [0, 0], 45, 0));
}

#[test]
fn what_is_not_known_is_no_change() {
    let mut story = Story::new();
    story.sweep(None, [true, true]);
    story.sweep(None, [true, true]);
    story.up(3);
    assert_eq!(story.told(), (0, [0, 0], 0, 0));
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
    assert_eq!(story.told(), (0, [0, 0], 0, 0));
    // From then on it can be lost.
    story.sweep(Some(false), BOTH);
    story.up(5);
    assert_eq!(story.told(), (1, [0, 0], 15, 0));

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
    assert_eq!(story.told(), (1, [0, 0], 45, 0));
}

#[test]
fn a_tool_that_clears_both_ends_reboots_neither() {
    // It has cleared what they had counted of the loss.
    let mut story = Story::new();
    story.sweep(Some(false), BOTH);
    story.resets = [1, 1];
    story.sweeps(2, false, BOTH);
    story.up(4);
    assert_eq!(story.told(), (1, [0, 0], 45, 0));
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
    assert_eq!(story.told(), (0, [1, 0], 0, 0));
    // Cleared by a tool, while the other end is silent for long.
    story.resets[0] += 1;
    story.sweeps(6, true, HOST);
    story.up(4);
    assert_eq!((story.told(), story.life.pending.is_some()), ((0, [1, 0], 0, 0), false));
}

#[test]
fn a_switch_that_was_gone_with_all_its_hosts_has_rebooted() {
    // Nobody told of the link meanwhile, and no counter had anything to fall from.
    let mut story = Story::new();
    story.sweep(None, [true, true]);
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told(), (0, [1, 0], 0, 0));
    story.downed[1] += 1;
    story.up(4);
    assert_eq!(story.told(), (1, [1, 0], 0, 0), "that was long ago");
}
