//! Names for display: labels of enums, nodes and ports, natural order, abbreviations.

use std::fmt::Display;

use super::PortNumber;

/// Defines an enum from a table of its variants: name, code if any, label in metrics and tables, documentation.
///
/// ```
/// ib_mad::labeled_enum! {
///     /// A color.
///     pub enum Color {
///         Red = 1, "red", "The color of errors.";
///         Green = 2, "green", "The color of links.";
///     }
/// }
/// assert_eq!(Color::ALL.map(Color::label), ["red", "green"]);
/// ```
#[macro_export]
macro_rules! labeled_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident $(= $code:literal)?, $label:literal, $doc:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$of_variant])* #[doc = $doc] $variant $(= $code)?),+ }

        impl $name {
            /// All variants, in order.
            pub const ALL: [$name; [$($label),+].len()] = [$($name::$variant),+];

            /// Label in metrics and tables.
            pub fn label(self) -> &'static str {
                match self { $($name::$variant => $label),+ }
            }

            /// A sentence that explains it.
            pub fn help(self) -> &'static str {
                match self { $($name::$variant => $doc),+ }
            }

            /// The labels of all variants, for messages.
            pub fn labels() -> String {
                Self::ALL.map(Self::label).join(", ")
            }

            /// The variant with this label.
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.label() == label)
            }

            /// The variant with this discriminant, for enums whose discriminants are codes.
            pub fn from_discriminant(code: impl Into<u64>) -> Option<Self> {
                let code = code.into();
                Self::ALL.into_iter().find(|it| *it as u64 == code)
            }
        }
    };
}

/// Label of a port: `leaf-1 port 7`.
pub fn port(node: &str, number: PortNumber) -> String {
    format!("{node} port {number}")
}

/// A whole number in groups of three digits: `4,000`.
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// A whole number with a noun: `1 entry`, `2 entries`, `3 switches`, `4,000 links`.
pub fn plural(number: impl Display, noun: &str) -> String {
    let number = grouped(number);
    match noun.strip_suffix('y') {
        _ if number == "1" => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None if noun.ends_with("ch") => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// A part of a name: a number, or the text between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NaturalPart<'a> {
    /// A number.
    Number(u64),
    /// Text without digits, or a number above 64 bits.
    Text(&'a str),
}

/// Sort key of a name in natural order: `leaf-2` before `leaf-10`.
pub fn natural_key(name: &str) -> Vec<NaturalPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(match part.parse() {
            Ok(number) if is_digit => NaturalPart::Number(number),
            _ => NaturalPart::Text(part),
        });
        rest = after;
    }
    parts
}

/// The beginning and the end of a name, in at most `limit` characters (at least 3).
pub fn abbreviate(name: &str, limit: usize) -> String {
    let (count, limit) = (name.chars().count(), limit.max(3));
    if count <= limit {
        return name.to_owned();
    }
    let first = (limit - 1) / 3;
    let begin: String = name.chars().take(first).collect();
    let end: String = name.chars().skip(count - (limit - 1 - first)).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_order_sorts_by_number() {
        let mut names =
            ["leaf-10", "leaf-2", "leaf-2b", "LEAF", "leaf-", "", "7", "leaf-99999999999999999999"];
        names.sort_by_cached_key(|name| natural_key(name));
        assert_eq!(
            names,
            ["", "7", "LEAF", "leaf-", "leaf-2", "leaf-2b", "leaf-10", "leaf-99999999999999999999"]
        );
    }

    #[test]
    fn numbers_have_groups_of_digits_and_a_noun() {
        let texts = [(1, "entry"), (0, "entry"), (2, "switch"), (999, "link"), (1_234_567, "link")]
            .map(|(number, noun)| plural(number, noun));
        assert_eq!(texts, ["1 entry", "0 entries", "2 switches", "999 links", "1,234,567 links"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn abbreviated_name_keeps_both_ends() {
        for (name, limit, expected) in [
            ("leaf-0", 8, "leaf-0"),
            ("g10-spine-3", 8, "g1…ine-3"),
            ("ünïcödé-name-12", 7, "ün…e-12"),
            ("abcdef", 0, "…ef"),
            ("", 0, ""),
        ] {
            assert_eq!(abbreviate(name, limit), expected, "{name} {limit}");
        }
    }
}
