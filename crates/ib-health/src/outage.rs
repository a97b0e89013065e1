//! The outages of a link: how many, how long, and why they are expected.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::Moment;

/// The bounds of the histogram of outages, in seconds. A job fails when it has to wait for too long: the
/// timeouts of NCCL and MPI are about 7 and 14 s with common settings.
pub const BOUNDS: [f64; 7] = [1.0, 5.0, 7.0, 14.0, 30.0, 60.0, 300.0];

/// How many of the latest losses are kept in full, for a recorder that may miss sweeps.
const MAX_LOSSES: usize = 16;

display_text::labeled_enum! {
    /// Why a link was down without being at fault.
    pub enum ExpectedCause {
        Reboot, "reboot", "A node at its end was rebooted or reset.";
        Maintenance, "maintenance", "The site had announced maintenance.";
    }
}

/// A link's outages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outages {
    /// Unexpected losses of the link; one that both ends count counts once.
    pub flaps: u32,
    /// Expected losses, by cause.
    pub expected: [u32; ExpectedCause::ALL.len()],
    /// How long flaps kept it down.
    pub down: Downtime,
    /// How long expected losses kept it down.
    pub expected_down: Downtime,
    /// The flaps that were seen, by length: at most as long as each bound, and longer than the one before;
    /// the last are longer than all bounds. The length is the middle of its bounds.
    pub lengths: [u16; BOUNDS.len() + 1],
    /// The sum of those lengths.
    pub lengths_sum: Duration,
    /// How often it retrained without a link down (LinkErrorRecovery), at the end that counted more.
    pub recoveries: u32,
    /// When it last went down or came up.
    pub last_change: Option<Moment>,
}

impl Outages {
    /// Adds a loss for which the link is not at fault.
    pub(crate) fn add_expected(&mut self, cause: ExpectedCause, down: Downtime) {
        let count = &mut self.expected[cause as usize];
        *count = count.saturating_add(1);
        self.expected_down += down;
    }

    /// Adds flaps, which were down for so long together; `is_seen` if the states of sweeps show it.
    pub(crate) fn add_flaps(&mut self, times: u32, down: Downtime, is_seen: bool) {
        self.flaps = self.flaps.saturating_add(times);
        self.down += down;
        if is_seen {
            let length = down.middle();
            let bucket = BOUNDS.partition_point(|bound| length.as_secs_f64() > *bound);
            self.lengths[bucket] = self.lengths[bucket].saturating_add(1);
            self.lengths_sum = self.lengths_sum.saturating_add(length);
        }
    }
}

/// How long a link was down, within bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Downtime {
    /// At least: from the first to the last time it was seen down.
    pub least: Duration,
    /// At most: from the last time it was seen up before to the first time it was seen up after.
    pub most: Duration,
}

impl Downtime {
    /// The middle of the bounds: the estimate with the smallest error where one number is needed.
    pub fn middle(self) -> Duration {
        self.least + self.most.saturating_sub(self.least) / 2
    }
}

impl AddAssign for Downtime {
    fn add_assign(&mut self, more: Downtime) {
        self.least = self.least.saturating_add(more.least);
        self.most = self.most.saturating_add(more.most);
    }
}

impl fmt::Display for Downtime {
    /// `2s to 15s`, `at most 15s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To the nearest second, so that a bound reads the same from a metric with three decimals.
        let rounded = |time: Duration| match time.as_secs() {
            0 => time,
            _ => Duration::from_secs(time.as_secs() + u64::from(time.subsec_millis() >= 500)),
        };
        let (least, most) = (rounded(self.least), duration(rounded(self.most)));
        // A lower bound that rounds to zero is none.
        let least = (least >= Duration::from_millis(50)).then(|| duration(least));
        match least {
            None => write!(f, "at most {most}"),
            Some(least) if least == most => f.write_str(&most),
            Some(least) => write!(f, "{least} to {most}"),
        }
    }
}

/// A duration: `0.5s`, `90s`, `1h 2m`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1}s", time.as_secs_f64()),
        seconds @ 1..120 => format!("{seconds}s"),
        seconds => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
    }
}

/// A loss of a link, or several that only LinkDowned counted between two sweeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The number of this record for its link, from 1.
    pub number: u32,
    /// How many losses it represents.
    pub times: u32,
    /// Why the link is not at fault; `None` for a flap.
    pub expected: Option<ExpectedCause>,
    /// It is a flap that the node at one end caused: the other end alone counted it.
    pub by_node: bool,
    /// When it was first seen down, or when the counter was read that counted it.
    pub at: Moment,
    /// When it was first seen up again; `None` if only a counter shows the loss.
    pub until: Option<Moment>,
    /// How long it was down, all losses of this record together.
    pub down: Downtime,
    /// The link's flaps so far, these included.
    pub flaps: u32,
}

impl Loss {
    /// Adds it to the latest losses of a link, with the next number.
    pub(crate) fn push_to(self, losses: &mut Option<Arc<[Loss]>>) {
        let known = losses.as_deref().unwrap_or_default();
        let number = known.last().map_or(0, |last| last.number).saturating_add(1);
        let kept = known.iter().skip((known.len() + 1).saturating_sub(MAX_LOSSES)).copied();
        *losses = Some(kept.chain([Loss { number, ..self }]).collect());
    }
}
