//! Values as people write them.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// A length of time as people write it: `15s`, `5m`, `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(Duration);

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        span.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map(Span).map_err(|error| {
            format!("{text:?} is not a length of time such as 15s or 5m ({error})")
        })
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A number of bytes as people write it: `1GiB`, `500MiB`, `2GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let worth = match unit.trim() {
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            "TiB" => Some(1 << 40),
            "kB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            "TB" => Some(1_000_000_000_000),
            _ => None,
        };
        let number = number.parse::<u64>().ok();
        number
            .zip(worth)
            .and_then(|(number, worth)| number.checked_mul(worth))
            .map(Bytes)
            .ok_or_else(|| format!("{text:?} is not a number of bytes such as 500MiB or 1GiB"))
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
