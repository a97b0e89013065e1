//! The values of a scenario: how each is written, its range, and how a sentence has it.
//!
//! Each is read from its text, so that an error can show what the file has.

use std::marker::PhantomData;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use crate::change::{FrontPanelBehavior, RegisterBehavior, TableBehavior};
use ib_mad::counter::{Counter, TABLE};
use ib_mad::rate::{Speed, Width};
use yaml_config::suggestion::{quoted, suggestion};
use yaml_config::units::HumanDuration;

/// The longest timeline, and the longest time in it.
pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The smallest packet: a local route header, a base transport header and both CRCs, in whole words
/// (IBTA 1.4, chapter 5).
const SMALLEST_PACKET: u64 = 28;
/// The largest packet: the largest MTU and all headers.
const LARGEST_PACKET: u64 = 4096 + 128;

/// Makes types that are read from a text by a function.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident($type:ty) = $parse:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(pub(super) $type);

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                let parse: fn(&str) -> Result<$type, String> = $parse;
                parse(&text).map($name)
            }
        }
    )+};
}

values! {
    /// A duration: `30s`, `1m 30s`, `20us`; 0 to ten years.
    Time(Duration) = time;
    /// A fraction of a whole: `10%` or `0.1`; 0 to 1.
    Fraction(f64) = fraction;
    /// A bit error ratio: more than 0 and less than 1.
    Ratio(f64) = ratio;
    /// The size of a packet in bytes: `4096` or `4KiB`.
    PacketSize(u32) = packet_size;
    /// An M_Key: `0x0123456789abcdef`; 0 is none.
    Key(u64) = m_key;
    /// The width of a link: `1x`.
    LinkWidth(Width) = |text| labeled("width", Width::ALL, Width::label, text);
    /// How a node responds to requests of registers: `slow`.
    Behavior(RegisterBehavior) = |text| {
        labeled("behavior", RegisterBehavior::ALL, RegisterBehavior::label, text)
    };
    /// How a node responds to requests of HierarchyInfo: `blank`.
    Panel(FrontPanelBehavior) = |text| {
        labeled("behavior", FrontPanelBehavior::ALL, FrontPanelBehavior::label, text)
    };
    /// How a switch responds to requests of SwitchPortStateTable: `refused`.
    Table(TableBehavior) = |text| {
        labeled("behavior", TableBehavior::ALL, TableBehavior::label, text)
    };
    /// The speed of a link's lanes: `SDR`.
    LinkSpeed(Speed) = |text| labeled("speed", Speed::ALL, Speed::label, text);
}

fn time(text: &str) -> Result<Duration, String> {
    if text.chars().count() > 60 {
        return Err(format!("{} is not a duration such as 15s or 5m", quoted(text)));
    }
    let time = Duration::from(text.parse::<HumanDuration>()?);
    if time > LONGEST { Err(format!("{} is more than ten years", quoted(text))) } else { Ok(time) }
}

fn fraction(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>().map(|number| number / whole) {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        Ok(fraction) if fraction > 1.0 => Err(format!("{} is more than 100% or 1", quoted(text))),
        _ => Err(format!("{} is not a fraction such as 10% or 0.1", quoted(text))),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio < 1.0 => Ok(ratio),
        _ => Err(format!("{} is not a ratio between 0 and 1, such as 1e-9", quoted(text))),
    }
}

fn packet_size(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.strip_suffix("KiB") {
        Some(number) => (number.trim_end(), 1024),
        None => (text.strip_suffix('B').unwrap_or(text).trim_end(), 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match bytes {
        Some(bytes) if (SMALLEST_PACKET..=LARGEST_PACKET).contains(&bytes) => Ok(bytes as u32),
        Some(_) => Err(format!(
            "{} is not a packet size between {SMALLEST_PACKET} and {LARGEST_PACKET} bytes",
            quoted(text)
        )),
        None => Err(format!("{} is not a size such as 4096 or 4KiB", quoted(text))),
    }
}

fn m_key(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
    let key =
        if text == "0" { Some(0) } else { digits.and_then(|it| u64::from_str_radix(it, 16).ok()) };
    key.ok_or_else(|| format!("{} is not an M_Key such as 0x1234", quoted(text)))
}

/// The value with this label, whatever its case.
fn labeled<T: Copy, const N: usize>(
    what: &str,
    all: [T; N],
    label: fn(T) -> &'static str,
    text: &str,
) -> Result<T, String> {
    all.into_iter().find(|value| label(*value).eq_ignore_ascii_case(text)).ok_or_else(|| {
        format!("unknown {what} {}; known: {}", quoted(text), all.map(label).join(", "))
    })
}

/// A counter by its name in the specification.
pub fn counter(name: &str) -> Result<Counter, String> {
    TABLE.iter().find(|row| row.ibta == name).map(|row| row.counter).ok_or_else(|| {
        let near = suggestion(name, TABLE.iter().map(|row| row.ibta));
        format!("unknown counter {}{near}", quoted(name))
    })
}

/// One value, or several in a list.
#[derive(Clone, Debug, PartialEq)]
pub enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMore::One(value) => std::slice::from_ref(value),
            OneOrMore::More(values) => values,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = OneOrMore<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value or a list of values")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(OneOrMore::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(OneOrMore::More)
            }
        }
        deserializer.deserialize_any(List(PhantomData))
    }
}

/// Names with a number each, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers(pub(super) Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Numbers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("names with a value each")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Numbers(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// A duration for readers: `10m`, `1m 30s`.
pub fn words(time: Duration) -> String {
    // With a speed-up times are odd numbers: show milliseconds at most, below a second microseconds.
    let grain = match time.as_secs() {
        0 if time.as_millis() == 0 => 1,
        0 => 1_000,
        _ => 1_000_000,
    };
    let rest = u64::from(time.subsec_nanos()) % grain;
    humantime::format_duration(time.saturating_sub(Duration::from_nanos(rest))).to_string()
}

/// A fraction in percent: `30%`, `0.5%`.
pub fn percent(fraction: f64) -> String {
    let text = format!("{:.4}", fraction * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Up to four names as `a, b and c`; of more, only how many there are of that kind.
pub fn few(names: &[String], kind: &str) -> String {
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
    fn values_are_read_as_people_write_them() {
        assert_eq!(fraction("10%"), Ok(0.1));
        assert_eq!(fraction("0.1"), Ok(0.1));
        assert_eq!(fraction("100%"), Ok(1.0));
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(ratio("1e-9"), Ok(1e-9));
        assert_eq!(packet_size("4KiB"), Ok(4096));
        assert_eq!(packet_size("256"), Ok(256));
        assert_eq!(packet_size("256B"), Ok(256));
        assert_eq!(LinkWidth::try_from("2x".to_owned()), Ok(LinkWidth(Width::X2)));
        assert_eq!(LinkSpeed::try_from("sdr".to_owned()), Ok(LinkSpeed(Speed::Sdr)));
    }

    #[test]
    fn bad_values_name_the_expected_ones() {
        for (error, says) in [
            (fraction("150%").err(), "more than 100%"),
            (fraction("30").err(), "more than 100%"),
            (fraction("-1%").err(), "not a fraction"),
            (fraction("nan").err(), "not a fraction"),
            (fraction("%").err(), "not a fraction"),
            (time("-1s").err(), "not a duration"),
            (time("11years").err(), "more than ten years"),
            (time("999999999999999999999y").err(), "not a duration"),
            (time(&"1s ".repeat(999)).err(), "not a duration"),
            (time("5").err(), "has no unit: write 5s"),
            (ratio("0").err(), "between 0 and 1"),
            (ratio("1").err(), "between 0 and 1"),
            (ratio("inf").err(), "between 0 and 1"),
            (packet_size("99999999999999999999").err(), "not a size"),
            (packet_size("18014398509481985KiB").err(), "not a size"),
            (packet_size("1MiB").err(), "not a size"),
            (packet_size("64KiB").err(), "not a packet size"),
            (LinkWidth::try_from("3x".to_owned()).err(), "known: 1x, 2x, 4x, 8x, 12x"),
            (LinkSpeed::try_from("HRD".to_owned()).err(), "FDR10"),
        ] {
            let error = error.unwrap();
            assert!(error.contains(says), "{error}");
            assert!(error.chars().count() < 200 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn counters_have_their_ibta_names() {
        assert_eq!(counter("SymbolErrorCounter"), Ok(Counter::SymbolErrors));
        assert_eq!(
            counter("SymbolErrors").unwrap_err(),
            "unknown counter \"SymbolErrors\" (did you mean \"SymbolErrorCounter\"?)"
        );
    }

    #[test]
    fn durations_and_percentages_are_short() {
        for (nanos, text) in [
            (600_000_000_000, "10m"),
            (90_000_000_000, "1m 30s"),
            (33_333_333_333, "33s 333ms"),
            (3_333_333, "3ms 333us"),
            (333, "333ns"),
        ] {
            assert_eq!(words(Duration::from_nanos(nanos)), text);
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
