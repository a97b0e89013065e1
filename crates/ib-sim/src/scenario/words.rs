//! The words in which a timeline is told.

use std::time::Duration;

/// A length of time as people write it: `10m`, `1m 30s`.
pub(super) fn time(time: Duration) -> String {
    // A timeline that runs faster has odd times; nobody wants their nanoseconds.
    let grain = match time.as_secs() {
        0 if time.as_millis() == 0 => 1,
        0 => 1_000,
        _ => 1_000_000,
    };
    let rest = u64::from(time.subsec_nanos()) % grain;
    humantime::format_duration(time.saturating_sub(Duration::from_nanos(rest))).to_string()
}

/// A share in percent: `30%`, `0.5%`.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// ` for 10m`, or nothing if it lasts.
pub(super) fn lasting(time_left: Option<Duration>) -> String {
    time_left.map_or_else(String::new, |left| format!(" for {}", time(left)))
}

/// `, 5 times, every 20s`, or nothing for once.
pub(super) fn repeated(times: u32, every: Duration) -> String {
    if times == 1 { String::new() } else { format!(", {times} times, every {}", time(every)) }
}

/// `a, b and c`.
pub(super) fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

/// A few names, or how many there are of that kind.
pub(super) fn few(names: &[String], kind: &str) -> String {
    if names.len() > 4 { format!("{} {kind}", names.len()) } else { list(names, "and") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_are_told_shortly() {
        for (nanos, told) in [
            (600_000_000_000, "10m"),
            (90_000_000_000, "1m 30s"),
            (33_333_333_333, "33s 333ms"),
            (3_333_333, "3ms 333us"),
            (333, "333ns"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), told);
        }
        for (share, told) in [(0.3, "30%"), (0.005, "0.5%"), (1.0, "100%"), (0.0, "0%")] {
            assert_eq!(percent(share), told);
        }
    }

    #[test]
    fn lists_are_told_as_people_do() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        assert_eq!(few(&names[..1], "hosts"), "a");
        assert_eq!(few(&names[..3], "hosts"), "a, b and c");
        assert_eq!(few(&names, "hosts"), "5 hosts");
    }
}
