//! Parts of the sentences that describe a timeline.

use std::time::Duration;

/// A duration for readers: `10m`, `1m 30s`.
pub(super) fn time(time: Duration) -> String {
    // With a speed-up times are odd numbers: show milliseconds at most, below a second
    // microseconds.
    let grain = match time.as_secs() {
        0 if time.as_millis() == 0 => 1,
        0 => 1_000,
        _ => 1_000_000,
    };
    let rest = u64::from(time.subsec_nanos()) % grain;
    humantime::format_duration(time.saturating_sub(Duration::from_nanos(rest))).to_string()
}

/// A fraction in percent: `30%`, `0.5%`.
pub(super) fn percent(fraction: f64) -> String {
    let text = format!("{:.4}", fraction * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Up to four names as `a, b and c`; of more, only how many there are of that kind.
pub(super) fn few(names: &[String], kind: &str) -> String {
    match names {
        [one] => one.clone(),
        [most @ .., end] if names.len() <= 4 => format!("{} and {end}", most.join(", ")),
        _ => format!("{} {kind}", names.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_percentages_are_short() {
        for (nanos, text) in [
            (600_000_000_000, "10m"),
            (90_000_000_000, "1m 30s"),
            (33_333_333_333, "33s 333ms"),
            (3_333_333, "3ms 333us"),
            (333, "333ns"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
        for (fraction, text) in [(0.3, "30%"), (0.005, "0.5%"), (1.0, "100%"), (0.0, "0%")] {
            assert_eq!(percent(fraction), text);
        }
    }

    #[test]
    fn few_names_are_listed_and_many_counted() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        assert_eq!(few(&names[..1], "hosts"), "a");
        assert_eq!(few(&names[..3], "hosts"), "a, b and c");
        assert_eq!(few(&names, "hosts"), "5 hosts");
    }
}
