//! The values that a scenario is made of: how each is written, and what it can be.
//!
//! Each is read from its text, so that an error can show what stands in the file.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use ib_mad::counter::{Counter, TABLE};
use ib_mad::rate::{Speed, Width};
use site_config::near::{meant, quoted};
use site_config::values::Span;
use site_config::yaml::Spanned;

/// No timeline is longer, and nothing in it.
pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The smallest packet: a local route header, a base transport header and both CRCs, in whole
/// words (IBTA 1.4, chapter 5).
const SMALLEST_PACKET: u64 = 28;
/// The largest: the largest MTU, and room for all headers.
const LARGEST_PACKET: u64 = 4096 + 128;

/// The line on which a value stands.
pub fn line_of<T>(value: &Spanned<T>) -> u64 {
    value.line
}

/// A length of time: `30s`, `1m 30s`, `20us`; 0 to ten years.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.chars().count() > 60 {
            return Err(format!("{} is not a length of time such as 15s or 5m", quoted(&text)));
        }
        let time = Duration::from(text.parse::<Span>()?);
        if time > LONGEST {
            return Err(format!("{} is more than ten years", quoted(&text)));
        }
        Ok(Time(time))
    }
}

/// A share of a whole: `10%` or `0.1`; 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Share(pub f64);

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (number, whole) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.as_str(), 1.0),
        };
        let share = number.parse::<f64>().ok().map(|number| number / whole);
        match share {
            Some(share) if (0.0..=1.0).contains(&share) => Ok(Share(share)),
            Some(share) if share > 1.0 => {
                Err(format!("{} is more than the whole, which is 100% or 1", quoted(&text)))
            }
            _ => Err(format!("{} is not a share such as 10% or 0.1", quoted(&text))),
        }
    }
}

/// Wrong bits a bit: more than 0 and less than 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Ratio(pub f64);

impl TryFrom<String> for Ratio {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(ratio) if ratio > 0.0 && ratio < 1.0 => Ok(Ratio(ratio)),
            _ => Err(format!("{} is not a ratio between 0 and 1, such as 1e-9", quoted(&text))),
        }
    }
}

/// The size of a packet: `4096` or `4KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Size(pub u32);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (number, unit) = match text.strip_suffix("KiB") {
            Some(number) => (number.trim_end(), 1024),
            None => (text.strip_suffix('B').unwrap_or(&text).trim_end(), 1),
        };
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        match bytes {
            Some(bytes) if (SMALLEST_PACKET..=LARGEST_PACKET).contains(&bytes) => {
                Ok(Size(bytes as u32))
            }
            Some(_) => Err(format!(
                "{} is no packet's size: {SMALLEST_PACKET} to {LARGEST_PACKET} bytes",
                quoted(&text)
            )),
            None => Err(format!("{} is not a size such as 4096 or 4KiB", quoted(&text))),
        }
    }
}

/// An M_Key: `0x0123456789abcdef`; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Key(pub u64);

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let key = if text == "0" {
            Some(0)
        } else {
            digits.and_then(|it| u64::from_str_radix(it, 16).ok())
        };
        key.map(Key).ok_or_else(|| format!("{} is not an M_Key such as 0x1234", quoted(&text)))
    }
}

/// The width of a link: `1x`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Lanes(pub Width);

const WIDTHS: [Width; 5] = [Width::X1, Width::X2, Width::X4, Width::X8, Width::X12];

impl TryFrom<String> for Lanes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        WIDTHS.into_iter().find(|width| width.label() == text).map(Lanes).ok_or_else(|| {
            format!("no width {}: one of {}", quoted(&text), WIDTHS.map(Width::label).join(", "))
        })
    }
}

/// The speed of a link's lanes: `SDR`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Lane(pub Speed);

impl TryFrom<String> for Lane {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let named = |speed: &Speed| speed.label().eq_ignore_ascii_case(&text);
        Speed::ALL.into_iter().find(named).map(Lane).ok_or_else(|| {
            format!(
                "no speed {}: one of {}",
                quoted(&text),
                Speed::ALL.map(Speed::label).join(", ")
            )
        })
    }
}

/// A counter by its name in the specification.
pub(super) fn counter(name: &str) -> Result<Counter, String> {
    TABLE.iter().find(|row| row.ibta == name).map(|row| row.counter).ok_or_else(|| {
        let near = meant(name, TABLE.iter().map(|row| row.ibta));
        format!("no counter {}{near}", quoted(name))
    })
}

/// One value, or several in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOrMore<T>(pub Vec<T>);

/// Reads a list, or hands the one value to its own reader.
struct ListVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de> + TryFrom<String, Error = String>> Visitor<'de> for ListVisitor<T> {
    type Value = OneOrMore<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        T::try_from(text.to_owned()).map(|one| OneOrMore(vec![one])).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(OneOrMore(list))
    }
}

impl<'de, T: Deserialize<'de> + TryFrom<String, Error = String>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(std::marker::PhantomData))
    }
}

/// Who sends: so many hosts, or these.
#[derive(Clone, Debug, PartialEq)]
pub enum Senders {
    /// So many, which chance picks.
    Count(u64),
    /// These, by their names.
    These(Vec<Spanned<String>>),
}

struct SendersVisitor;

impl<'de> Visitor<'de> for SendersVisitor {
    type Value = Senders;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("how many hosts, or a list of hosts")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Senders, E> {
        Ok(Senders::Count(count))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Senders, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Senders::These(list))
    }
}

impl<'de> Deserialize<'de> for Senders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SendersVisitor)
    }
}

/// Names with a value each, in the order of the file, and the line of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(Spanned<String>, Spanned<T>)>);

struct NamedVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("names with a value each")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = map.next_entry()? {
            list.push(entry);
        }
        Ok(Named(list))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: TryFrom<String, Error = String>>(text: &str) -> Result<T, String> {
        T::try_from(text.to_owned())
    }

    #[test]
    fn values_are_read_as_people_write_them() {
        assert_eq!(read("10%"), Ok(Share(0.1)));
        assert_eq!(read("0.1"), Ok(Share(0.1)));
        assert_eq!(read("100%"), Ok(Share(1.0)));
        assert_eq!(read("1m 30s"), Ok(Time(Duration::from_secs(90))));
        assert_eq!(read("0"), Ok(Time(Duration::ZERO)));
        assert_eq!(read("1e-9"), Ok(Ratio(1e-9)));
        assert_eq!(read("4KiB"), Ok(Size(4096)));
        assert_eq!(read("256"), Ok(Size(256)));
        assert_eq!(read("256B"), Ok(Size(256)));
        assert_eq!(read("2x"), Ok(Lanes(Width::X2)));
        assert_eq!(read("sdr"), Ok(Lane(Speed::Sdr)));
    }

    #[test]
    fn what_is_none_says_what_it_should_be() {
        for (error, says) in [
            (read::<Share>("150%").err(), "more than the whole"),
            (read::<Share>("30").err(), "more than the whole"),
            (read::<Share>("-1%").err(), "not a share"),
            (read::<Share>("nan").err(), "not a share"),
            (read::<Share>("%").err(), "not a share"),
            (read::<Time>("-1s").err(), "not a length of time"),
            (read::<Time>("11years").err(), "more than ten years"),
            (read::<Time>("999999999999999999999y").err(), "not a length of time"),
            (read::<Time>(&"1s ".repeat(999)).err(), "not a length of time"),
            (read::<Time>("5").err(), "not a length of time"),
            (read::<Ratio>("0").err(), "between 0 and 1"),
            (read::<Ratio>("1").err(), "between 0 and 1"),
            (read::<Ratio>("inf").err(), "between 0 and 1"),
            (read::<Size>("99999999999999999999").err(), "not a size"),
            (read::<Size>("18014398509481985KiB").err(), "not a size"),
            (read::<Size>("1MiB").err(), "not a size"),
            (read::<Size>("64KiB").err(), "no packet's size"),
            (read::<Lanes>("3x").err(), "one of 1x, 2x, 4x, 8x, 12x"),
            (read::<Lane>("HRD").err(), "FDR10"),
        ] {
            let error = error.unwrap();
            assert!(error.contains(says), "{error}");
            assert!(error.chars().count() < 200 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_counter_is_known_by_its_ibta_name() {
        assert_eq!(counter("SymbolErrorCounter"), Ok(Counter::SymbolErrors));
        assert_eq!(
            counter("SymbolErrors").unwrap_err(),
            "no counter \"SymbolErrors\" (did you mean \"SymbolErrorCounter\"?)"
        );
    }

    #[test]
    fn the_tables_are_whole() {
        assert!(WIDTHS.is_sorted() && Speed::ALL.is_sorted());
        let of_bit = |bit: u8| Width::from_code(1 << bit).unwrap();
        assert!((0..5).map(of_bit).all(|width| WIDTHS.contains(&width)));
    }
}
