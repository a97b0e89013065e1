//! Numbers of the report, for readers.

use display_text::grouped;

/// A number with three digits or none behind the point.
pub fn number(value: f64) -> String {
    match value {
        _ if value >= 10_000.0 => grouped(format!("{value:.0}")),
        _ if value >= 10.0 => format!("{value:.0}"),
        _ if value >= 0.1 => format!("{value:.1}"),
        _ if value > 0.0 => format!("{value:.1e}"),
        _ => "0".to_owned(),
    }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    if share >= 0.999_5 { "100%".to_owned() } else { format!("{:.1}%", share * 100.0) }
}

/// Seconds in a readable unit.
pub fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
