//! `rate_limit`: how many requests are answered.

use std::time::Duration;

use serde::Deserialize;
use yaml_config::yaml::Document;

use super::problems::{Mistake, at, place};
use crate::rate_limit::Rate;

/// `rate_limit`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RateLimitSection {
    interval: Option<String>,
    burst: Option<u32>,
}

impl RateLimitSection {
    /// The limit, if there is one: an interval of 0 is none.
    pub fn validate(self, document: &Document) -> Result<Option<Rate>, Mistake> {
        const INTERVAL: &str = "rate_limit.interval";
        let at_burst = |problem| at(document, "rate_limit.burst", problem);
        let missing = |key, text| Err(Mistake::Missing { section: "rate_limit", key, text });
        let Some(written) = self.interval else {
            let is_limit = self.burst.is_some_and(|burst| burst > 0);
            let text = || at_burst("rate_limit.interval is missing");
            return if is_limit { missing("interval", text()) } else { Ok(None) };
        };
        let Some(interval) = duration(&written) else {
            let problem = format!("{written:?} is not a duration such as 1s or 500ms");
            return Err(at(document, INTERVAL, problem).into());
        };
        match self.burst {
            _ if interval.is_zero() => Ok(None),
            // The exporter toolkit would answer no request.
            Some(0) => Err(at_burst("must be more than 0: 0 rejects every request").into()),
            Some(burst) => Ok(Some(Rate { interval, burst })),
            None => {
                let place = place(document, INTERVAL, "rate_limit");
                missing("burst", format!("{place}: burst is missing; for example 20"))
            }
        }
    }
}

/// A duration as Go writes it: `1m30s`, `1.5h`; a number alone is nanoseconds, as for the exporter toolkit.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(nanos) = text.parse() {
        return Some(Duration::from_nanos(nanos));
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let is_number = |char: char| char.is_ascii_digit() || char == '.';
        let (number, behind) = rest.split_at(rest.find(|char| !is_number(char))?);
        let end = behind.find(is_number).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let worth = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * worth;
        rest = behind;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_go_syntax() {
        for (text, millis) in [
            ("1s", Some(1_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("500ms", Some(500)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("2000000", Some(2)),
            ("", None),
            ("1", Some(0)),
            ("1.5", None),
            ("s", None),
            ("1d", None),
            ("-1s", None),
            ("1s ", None),
            ("99999999999999999999999h", None),
        ] {
            let parsed = duration(text).map(|duration| duration.as_millis());
            assert_eq!(parsed, millis, "{text:?}");
        }
    }
}
