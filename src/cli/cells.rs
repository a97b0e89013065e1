//! What cells of tables have in common: counts of verdicts, rates, reasons, wait ratios.

use display_text::grouped;
use fabric_api::model::{LEARNING, Link, Verdicts};
use ib_health::Verdict;
use ib_health::congestion::FLOOR;

/// The counts of verdicts as a text, the worst first: `1 bad, 2 degraded, 40 unknown (38 learning)`.
pub fn verdict_counts(verdicts: &Verdicts, with_zeros: bool) -> String {
    let some = verdicts.worst_first().into_iter().filter(|(_, count)| with_zeros || *count > 0);
    let text = some.map(|(verdict, count)| count_of(verdicts, verdict, count));
    text.collect::<Vec<_>>().join(", ")
}

/// The count of a verdict; of unknown links, how many were only not observed for long enough.
pub fn count_of(verdicts: &Verdicts, verdict: Verdict, count: usize) -> String {
    let text = format!("{} {}", grouped(count), Verdict::word(verdict.label()));
    match verdicts.learning {
        learning if verdict == Verdict::Unknown && learning > 0 => {
            format!("{text} ({} {LEARNING})", grouped(learning))
        }
        _ => text,
    }
}

/// Width and speed of a link: `4x NDR`.
pub(super) fn rate(width: Option<&str>, speed: Option<&str>) -> String {
    width.zip(speed).map_or_else(|| "-".into(), |(width, speed)| format!("{width} {speed}"))
}

/// The evidence of the most severe reason, and the number of the others.
pub(super) fn reason(link: &Link) -> String {
    let mut told = link.told_reasons();
    match (told.next(), told.count(), link.verdict()) {
        (Some(worst), 0, _) => worst.evidence.clone(),
        (Some(worst), more, _) => format!("{} (+{more})", worst.evidence),
        (None, _, Verdict::Bad | Verdict::Watch) => "recovering: the cause has ended".into(),
        (None, ..) => String::new(),
    }
}

/// A count; with a + if it is a lower bound, because a counter is saturated.
pub(super) fn count(count: u64, is_least: bool) -> String {
    format!("{count}{}", if is_least { "+" } else { "" })
}

/// A share as a percentage: `12.3%`.
pub(super) fn percent(share: f32) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A wait ratio as a percentage; why it is not known.
pub(super) fn wait(ratio: Option<f32>, is_saturated: bool) -> String {
    let unknown = if is_saturated { "saturated" } else { "" };
    ratio.map_or(unknown.into(), percent)
}

/// The rank of a wait ratio, the highest last. One that is not known because its counter is full comes between those of
/// ports that wait and those of ports that do not.
pub(super) fn wait_rank(ratio: Option<f32>, is_saturated: bool) -> u64 {
    let unknown = if is_saturated { FLOOR } else { 0.0 };
    // Ratios are not negative, so their bits have the same order.
    ratio.unwrap_or(unknown).to_bits().into()
}
