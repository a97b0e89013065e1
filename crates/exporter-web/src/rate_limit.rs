//! The rate limit of requests: a token bucket, and `rate_limit` of the web config file.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use site_config::yaml::Spanned;

use super::web_config::at;

/// A token bucket: each request takes a token, and there is one more every `interval` up to `burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// From one token to the next.
    pub interval: Duration,
    /// The most tokens that there are.
    pub burst: u32,
}

/// The section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RateLimitSection {
    interval: Option<Spanned<String>>,
    burst: Option<Spanned<u32>>,
}

impl RateLimitSection {
    /// The limit, if there is one: an interval of 0 is none.
    pub fn validate(self) -> Result<Option<Rate>, String> {
        let Some(written) = &self.interval else {
            return match &self.burst {
                Some(burst) if burst.value > 0 => {
                    Err(at(burst, "rate_limit.burst", "rate_limit.interval is missing with it"))
                }
                _ => Ok(None),
            };
        };
        let Some(interval) = duration(&written.value) else {
            let problem =
                format!("{:?} is not a length of time such as 1s or 500ms", written.value);
            return Err(at(written, "rate_limit.interval", problem));
        };
        if interval.is_zero() {
            return Ok(None);
        }
        match &self.burst {
            Some(burst) if burst.value > 0 => Ok(Some(Rate { interval, burst: burst.value })),
            // The exporter toolkit would answer no request.
            Some(burst) => Err(at(burst, "rate_limit.burst", "with 0 nothing would be answered")),
            None => Err(at(written, "rate_limit", "burst is missing, such as 20")),
        }
    }
}

/// A duration as Go writes it: `1m30s`, `1.5h`; a number alone is nanoseconds, as for the exporter toolkit.
fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    if let Ok(nanos) = text.parse() {
        return Some(Duration::from_nanos(nanos));
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let is_number = |char: char| char.is_ascii_digit() || char == '.';
        let (number, behind) = rest.split_at(rest.find(|char| !is_number(char))?);
        let end = behind.find(is_number).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (_, worth) = UNITS.iter().find(|(known, _)| *known == unit)?;
        seconds += number.parse::<f64>().ok()? * worth;
        rest = behind;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

/// A token bucket.
#[derive(Debug)]
pub struct RateLimiter {
    rate: Rate,
    /// The tokens that there were, and when.
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimiter {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        RateLimiter { rate, bucket: Mutex::new((rate.burst.into(), now)) }
    }

    /// The limit.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes a token; whether there was one.
    pub fn try_acquire(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, then) = *bucket;
        let more = now.saturating_duration_since(then).div_duration_f64(self.rate.interval);
        let tokens = (tokens + more).min(self.rate.burst.into());
        let acquired = tokens >= 1.0;
        *bucket = (if acquired { tokens - 1.0 } else { tokens }, now.max(then));
        acquired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_allows_a_burst_and_then_one_per_interval() {
        let began = Instant::now();
        let limiter = RateLimiter::new(Rate { interval: Duration::from_secs(1), burst: 3 }, began);
        let at = |millis| limiter.try_acquire(began + Duration::from_millis(millis));
        assert_eq!(
            [0, 0, 0, 0, 999, 1_001, 1_002].map(at),
            [true, true, true, false, false, true, false]
        );
        // The bucket holds no more than the burst.
        assert_eq!([60_000, 60_000, 60_000, 60_000].map(at), [true, true, true, false]);
        // A moment that another thread took earlier.
        assert!(!at(59_000));
    }

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
