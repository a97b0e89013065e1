//! The verdict on a link, its reasons, and its hysteresis.

use std::time::Duration;

use ib_mad::Moment;

ib_mad::labeled_enum! {
    /// The state of a link, from good to bad; the index in `ALL` is its value in metrics.
    #[derive(PartialOrd, Ord)]
    pub enum Verdict {
        Ok, "ok", "Good, as far as can be measured.";
        Unknown, "unknown", "Not enough is known.";
        Watch, "watch", "Degraded, or not yet certain.";
        Bad, "bad", "A technician has to repair it.";
    }
}

macro_rules! table {
    ($(#[$about:meta])* $name:ident { $($row:ident $label:literal $help:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $help] $row),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$row),+];

            /// As metrics and JSON write it.
            pub fn label(self) -> &'static str {
                match self { $($name::$row => $label),+ }
            }

            /// A sentence that explains it.
            pub fn help(self) -> &'static str {
                match self { $($name::$row => $help),+ }
            }
        }
    };
}

table! {
    /// Why a link has its verdict.
    Reason {
        BitErrors "bit_errors" "More bits come in wrong than its limit allows.";
        PreFec "pre_fec" "Error correction has to correct more than its limit allows.";
        Flapping "flapping" "The link went down and up again.";
        NodeFlapping "node_flapping" "The link went down, and one end alone counted it: it was the other end's node.";
        Recoveries "recoveries" "The link retrained by itself, again and again.";
        Width "width" "It runs on fewer lanes than it had before, than its peers have, on one lane of four, or, between switches, on fewer than both ends are allowed.";
        Speed "speed" "It runs at a lower speed than it had before, or than other links between such devices have.";
        Down "down" "It carries nothing, and the nodes at both ends are there.";
        ReceiveErrors "receive_errors" "Packets come in broken.";
        LinkIntegrity "link_integrity" "Local errors came thick enough to pass the port's own threshold.";
        Marked "marked" "Packets come in that were spoilt on a link further upstream: the fault is not here.";
        Congested "congested" "Packets wait here first: its receiver is slow, or its link is full.";
        Victim "victim" "Packets wait here because they wait further on.";
        BelowCapability "below_capability" "Both ends can do more and are allowed to; it never did since the exporter started, and links between such devices do not: usual for HDR100 and NDR200 adapters.";
        CounterSaturated "counter_saturated" "A counter of its errors is full and counts no further.";
        ImpossibleValue "impossible_value" "A counter of its errors shows an impossible value, which is not used.";
        TooShort "too_short" "It was not watched for long enough yet.";
        Unanswered "unanswered" "A node at its end does not answer.";
        Disabled "disabled" "Somebody switched one of its ports off.";
        Internal "internal" "An internal port of a switch is at its end (FNM or router): it is no cable, and is not judged.";
        Maintenance "maintenance" "Somebody works on it, as the list of maintenance says.";
    }
}

table! {
    /// What to try first.
    Repair {
        Reseat "reseat" "Re-seat the cable and clean its ends.";
        SwapCable "swap_cable" "Swap the cable.";
        SwapTransceiver "swap_transceiver" "Swap the transceiver at the sending end.";
        LookUpstream "look_upstream" "Look at the link upstream on which packets are spoilt.";
        LookAtHost "look_at_host" "Look at the node: its logs, its firmware, its slot.";
        Nothing "nothing" "Nothing to repair: it is congestion.";
    }
}

/// The reasons of one link's verdict, each with the verdict that it alone would cause: its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    weights: [Option<Verdict>; Reason::ALL.len()],
}

impl Reasons {
    /// Adds a reason; of two weights the worse one counts.
    pub fn add(&mut self, reason: Reason, weight: Verdict) {
        let slot = &mut self.weights[reason as usize];
        *slot = (*slot).max(Some(weight));
    }

    /// The same reasons, with weights of at most this.
    #[must_use]
    pub fn capped(self, max: Verdict) -> Self {
        Reasons { weights: self.weights.map(|weight| weight.map(|weight| weight.min(max))) }
    }

    /// The weight of a reason, if it is present.
    pub fn weight(&self, reason: Reason) -> Option<Verdict> {
        self.weights[reason as usize]
    }

    /// The reasons that are present, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, Verdict)> + '_ {
        Reason::ALL.iter().filter_map(|&reason| Some((reason, self.weight(reason)?)))
    }

    /// The worst weight; `Ok` without any reason.
    pub fn verdict(&self) -> Verdict {
        self.weights.iter().flatten().copied().max().unwrap_or(Verdict::Ok)
    }

    /// The reason with the worst weight, the first in the table among equals.
    pub fn worst(&self) -> Option<(Reason, Verdict)> {
        self.iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// How long a link must be better than its verdict before the verdict improves.
pub const HOLD: Duration = Duration::from_secs(5 * 60);

/// A link's verdict from sweep to sweep, with hysteresis: a worse one counts at once, for its reasons carry
/// enough evidence by themselves; a better one has to last. A link that is bad by its errors is not better
/// because they are no longer known.
#[derive(Clone, Copy, Debug)]
pub struct VerdictHysteresis {
    verdict: Verdict,
    since: Moment,
    /// In whole seconds.
    better_since: Option<u32>,
}

impl VerdictHysteresis {
    /// For a link that is seen for the first time.
    pub fn new(at: Moment) -> Self {
        VerdictHysteresis { verdict: Verdict::Unknown, since: at, better_since: None }
    }

    /// The verdict, and since when the link has it.
    pub fn verdict(&self) -> (Verdict, Moment) {
        (self.verdict, self.since)
    }

    fn better_for(&mut self, at: Moment) -> Duration {
        let now = at.whole_seconds();
        let since = *self.better_since.get_or_insert(now);
        Duration::from_secs(now.saturating_sub(since).into())
    }

    /// Adds the reasons of a sweep. While the errors of its verdict may be `hidden`, the link is not better.
    pub fn update(&mut self, reasons: &Reasons, hidden: bool, at: Moment) {
        let now = reasons.verdict();
        if now >= self.verdict || self.verdict < Verdict::Watch {
            self.better_since = None;
            if now != self.verdict {
                (self.verdict, self.since) = (now, at);
            }
        } else if hidden {
            self.better_since = None;
        } else if self.better_for(at) >= HOLD {
            (self.verdict, self.since, self.better_since) = (now, at, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_reason_decides_the_verdict() {
        let mut reasons = Reasons::default();
        assert_eq!((reasons.verdict(), reasons.worst()), (Verdict::Ok, None));
        reasons.add(Reason::Victim, Verdict::Ok);
        reasons.add(Reason::TooShort, Verdict::Unknown);
        reasons.add(Reason::Width, Verdict::Bad);
        reasons.add(Reason::Flapping, Verdict::Bad);
        reasons.add(Reason::Flapping, Verdict::Watch);
        assert_eq!(reasons.verdict(), Verdict::Bad);
        assert_eq!(reasons.worst(), Some((Reason::Flapping, Verdict::Bad)));
        assert_eq!(reasons.iter().count(), 4);
    }

    /// The verdicts for a list of weights of one reason, one per minute.
    fn verdicts(reason: Reason, measured: bool, weights: &[Verdict]) -> Vec<Verdict> {
        let at = |minute: usize| Moment::default() + Duration::from_secs(60) * minute as u32;
        let mut hysteresis = VerdictHysteresis::new(at(0));
        let update = |(minute, weight): (usize, &Verdict)| {
            let mut reasons = Reasons::default();
            let reason = if *weight == Verdict::Unknown { Reason::TooShort } else { reason };
            reasons.add(reason, *weight);
            hysteresis.update(&reasons, measured && *weight == Verdict::Unknown, at(minute));
            hysteresis.verdict().0
        };
        weights.iter().enumerate().map(update).collect()
    }

    #[test]
    fn worse_counts_at_once_and_better_has_to_last() {
        use Verdict::{Bad, Ok, Unknown, Watch};
        let weights = [Unknown, Ok, Watch, Bad, Watch, Ok, Bad, Ok, Ok, Ok, Ok, Ok, Ok, Unknown];
        let expected =
            [Unknown, Ok, Watch, Bad, Bad, Bad, Bad, Bad, Bad, Bad, Bad, Bad, Ok, Unknown];
        assert_eq!(verdicts(Reason::Flapping, false, &weights), expected);
    }

    #[test]
    fn unknown_does_not_clear_a_bad_link() {
        use Verdict::{Bad, Ok, Unknown};
        let mut weights = vec![Bad];
        weights.extend([Unknown; 60]);
        weights.extend([Ok; 6]);
        assert_eq!(
            verdicts(Reason::BitErrors, true, &weights)[60..],
            [Bad, Bad, Bad, Bad, Bad, Bad, Ok]
        );
        // After Down it is known that the link is up again.
        let down = verdicts(Reason::Down, false, &weights);
        assert_eq!((down[5], down[6]), (Bad, Unknown));
    }
}
