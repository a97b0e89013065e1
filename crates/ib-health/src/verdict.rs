//! The verdict on a link, its reasons, and its hysteresis.

use std::time::Duration;

use ib_mad::Moment;

display_text::labeled_enum! {
    /// The state of a link, from good to bad; the index in `ALL` is its value in metrics.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Verdict {
        Ok, "ok", "Healthy, as far as the counters show.";
        #[default]
        Unknown, "unknown", "Not enough data.";
        Watch, "watch", "Degraded, or not yet certain.";
        Bad, "bad", "Needs a technician.";
    }
}

impl Verdict {
    /// The word for a label on pages, in tables and in sentences: `watch` is degraded.
    pub fn word(label: &str) -> &str {
        if label == Verdict::Watch.label() { "degraded" } else { label }
    }
}

display_text::labeled_enum! {
    /// Why a link has its verdict.
    #[derive(PartialOrd, Ord)]
    pub enum Reason {
        BitErrors, "bit_errors", "The bit error ratio is above its limit.";
        PreFec, "pre_fec", "The pre-FEC bit error ratio is above its limit.";
        Flapping, "flapping", "The link went down unexpectedly and came up again.";
        NodeFlapping, "node_flapping", "The link went down because the node at one end took it down: only the other end counted it.";
        RepeatedFlaps, "repeated_flaps", "The link flapped on several of the last days.";
        Recoveries, "recoveries", "The link retrained several times without a link down.";
        Width, "width", "The link lost lanes: it has fewer than before, than its peers, or, between switches, than both ends enable, or only one of four; or its other end reports more.";
        Speed, "speed", "The link runs at a lower speed than before, or than its peers, or its ends report different speeds.";
        Down, "down", "The link is down, and the nodes at both ends are present.";
        PlanesDown, "planes_down", "Some planes of the link are down or have no link, and others are up.";
        PlanesSwapped, "planes_swapped", "A plane of the link leads to another port than the others, or to another plane.";
        PlanesUnequal, "planes_unequal", "The planes of the link run at different widths or speeds.";
        RingBroken, "ring_broken", "A link between the nodes of a multi-plane switch (FNM) has been down or missing for 15 minutes, although the nodes respond.";
        ReceiveErrors, "receive_errors", "A port receives corrupt packets.";
        LinkIntegrity, "link_integrity", "Local errors exceeded the threshold of the port itself.";
        ModuleTemperature, "module_temperature", "The temperature of a module is at or above its own alarm threshold.";
        RxPower, "rx_power", "The received optical power of a lane is below the module's own alarm threshold.";
        UpstreamErrors, "upstream_errors", "The port receives packets that were corrupted on a link further upstream. This link is not at fault.";
        Congested, "congested", "Congestion root: packets wait here because the receiver is slow or the link is fully utilized.";
        Victim, "victim", "Congestion victim: packets wait here because a later port on their path waits.";
        BelowCapability, "below_capability", "Both ends support and enable a higher rate, but neither this link since the exporter started, nor its peers, have run at it. This is usual for HDR100 and NDR200 adapters.";
        Replaced, "replaced", "The cable or a transceiver was replaced in the last 24 hours: it has another serial number. What was known of the old one does not count any more.";
        CounterSaturated, "counter_saturated", "An error counter is saturated.";
        ImpossibleValue, "impossible_value", "An error counter shows an impossible value. The value is not used.";
        InsufficientData, "insufficient_data", "The link was not observed for long enough.";
        Unresponsive, "unresponsive", "A node at one end is missing or does not respond.";
        Disabled, "disabled", "A port of the link was disabled by an administrator.";
        Internal, "internal", "The link is internal to a switch (FNM or router port). It has no cable and is not judged.";
        NvLink, "nvlink", "The link is one of an NVLink fabric. It is not judged: what its counters mean there is not documented.";
        Maintenance, "maintenance", "The link, or a node at one end, is in maintenance.";
    }
}

display_text::labeled_enum! {
    /// What to try first.
    pub enum Repair {
        Reseat, "reseat", "Reseat the cable and clean its ends.";
        SwapCable, "swap_cable", "Swap the cable.";
        SwapTransceiver, "swap_transceiver", "Swap the transceiver at the sending end.";
        CheckUpstream, "check_upstream", "Check the upstream link that corrupts the packets.";
        CheckCooling, "check_cooling", "Check the fans and the airflow of the device, then swap the transceiver.";
        CheckCabling, "check_cabling", "Check where the planes of the link lead, by the labels of both ends.";
        CheckHost, "check_host", "Check the node at the end that did not count the link down: its log, firmware and PCIe slot.";
        None, "none", "No repair: this is congestion, not a fault of the cable.";
    }
}

/// The reasons of one link's verdict, each with the verdict that it alone would cause: its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// One bit for each reason that is present: most links have none or one of many.
    present: u32,
    weights: [Verdict; Reason::ALL.len()],
}

impl Reasons {
    /// Adds a reason; of two weights the worse one counts.
    pub fn add(&mut self, reason: Reason, weight: Verdict) {
        let weight = self.weight(reason).map_or(weight, |known| known.max(weight));
        self.present |= 1 << reason as usize;
        self.weights[reason as usize] = weight;
    }

    /// The same reasons, with weights of at most this.
    #[must_use]
    pub fn capped(self, max: Verdict) -> Self {
        let mut capped = Reasons::default();
        self.iter().for_each(|(reason, weight)| capped.add(reason, weight.min(max)));
        capped
    }

    /// The weight of a reason, if it is present.
    pub fn weight(&self, reason: Reason) -> Option<Verdict> {
        (self.present >> reason as usize & 1 == 1).then(|| self.weights[reason as usize])
    }

    /// The reasons that are present, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, Verdict)> + '_ {
        let mut rest = self.present;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            Some((*Reason::ALL.get(index)?, self.weights[index]))
        })
    }

    /// The worst weight; `Ok` without any reason.
    pub fn verdict(&self) -> Verdict {
        self.iter().map(|(_, weight)| weight).max().unwrap_or(Verdict::Ok)
    }

    /// The reason with the worst weight, the first in the table among equals.
    pub fn worst(&self) -> Option<(Reason, Verdict)> {
        self.iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

const _: () = assert!(Reason::ALL.len() <= u32::BITS as usize, "a bit for each reason");

/// How long a link must be better than its verdict before the verdict improves.
const HOLD: Duration = Duration::from_secs(5 * 60);

/// A link's verdict from sweep to sweep, with hysteresis: a worse one counts at once, for its reasons carry
/// enough evidence by themselves; a better one has to last. A link that is bad by its errors is not better
/// because they are no longer known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VerdictHysteresis {
    /// The verdict, and since when the link has it.
    pub verdict: Verdict,
    pub since: Moment,
    /// In whole seconds.
    better_since: Option<u32>,
}

impl VerdictHysteresis {
    /// For a link that is seen for the first time.
    pub fn new(at: Moment) -> Self {
        VerdictHysteresis { since: at, ..VerdictHysteresis::default() }
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
        } else {
            let better_since = *self.better_since.get_or_insert(at.whole_seconds());
            let better_for = at.whole_seconds().saturating_sub(better_since);
            if u64::from(better_for) >= HOLD.as_secs() {
                (self.verdict, self.since, self.better_since) = (now, at, None);
            }
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
        reasons.add(Reason::InsufficientData, Verdict::Unknown);
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
            let reason =
                if *weight == Verdict::Unknown { Reason::InsufficientData } else { reason };
            reasons.add(reason, *weight);
            hysteresis.update(&reasons, measured && *weight == Verdict::Unknown, at(minute));
            hysteresis.verdict
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
