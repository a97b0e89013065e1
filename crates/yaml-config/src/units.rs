//! Values with a unit.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// A duration with a unit: `15s`, `5m`, `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HumanDuration(Duration);

impl From<HumanDuration> for Duration {
    fn from(duration: HumanDuration) -> Duration {
        duration.0
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map(HumanDuration).map_err(|_| {
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                format!("{text:?} has no unit: write {text}s or {text}m")
            } else {
                format!("{text:?} is not a duration such as 15s or 5m")
            }
        })
    }
}

/// A number of bytes with a unit: `1GiB`, `500MiB`, `2GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
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
        let bytes = worth.and_then(|worth| number.parse::<u64>().ok()?.checked_mul(worth));
        bytes.map(ByteSize).ok_or_else(|| format!("{text:?} is not a size such as 500MiB or 1GiB"))
    }
}

macro_rules! deserialized_from_text {
    ($($type:ty),+) => {$(
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
    )+};
}

deserialized_from_text!(HumanDuration, ByteSize);
