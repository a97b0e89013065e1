//! Patterns of node names: `host-7*`, and the host lists of Slurm, `gpu[001-004,7]`.

use std::fmt;

/// A pattern of names. `*` stands for any text, `?` for one character, and `[001-004,7]` for the numbers 001 to 004,
/// with three digits, and 7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Any,
    One,
    Numbers(Vec<NumberRange>),
}

/// Numbers with at least so many digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberRange {
    first: u64,
    last: u64,
    digits: usize,
}

/// Each `*` multiplies the time that a comparison takes.
const MAX_ANY: usize = 4;

/// What is wrong with a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    pattern: String,
    problem: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a name or host list such as gpu[001-004,7]: ", self.pattern)?;
        f.write_str(&self.problem)
    }
}

impl std::error::Error for PatternError {}

impl NamePattern {
    /// Reads a pattern.
    pub fn parse(pattern: &str) -> Result<Self, PatternError> {
        parts(pattern)
            .map(NamePattern)
            .map_err(|problem| PatternError { pattern: pattern.to_owned(), problem })
    }

    /// The name, if it is a pattern of one name.
    pub fn as_name(&self) -> Option<&str> {
        match &self.0[..] {
            [Part::Text(name)] => Some(name),
            _ => None,
        }
    }

    /// Whether it stands for a name.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.0, name)
    }
}

fn parts(pattern: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some(found) = rest.find(['*', '?', '[', ']']) {
        let (text, special) = rest.split_at(found);
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        let (part, length) = match special.as_bytes()[0] {
            b'*' => (Part::Any, 1),
            b'?' => (Part::One, 1),
            b'[' => {
                let end = special.find(']').ok_or("the bracket [ is not closed")?;
                (Part::Numbers(numbers(&special[1..end])?), end + 1)
            }
            _ => return Err("the bracket ] is not opened".into()),
        };
        if part != Part::Any || parts.last() != Some(&Part::Any) {
            parts.push(part);
        }
        rest = &special[length..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    if parts.iter().filter(|part| **part == Part::Any).count() > MAX_ANY {
        return Err(format!("it has more than {MAX_ANY} times *"));
    }
    if parts.is_empty() { Err("it is empty".into()) } else { Ok(parts) }
}

/// `001-004,7`.
fn numbers(list: &str) -> Result<Vec<NumberRange>, String> {
    let range = |text: &str| {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_number)
        };
        match (number(from), number(to)) {
            (Some(first), Some(end)) if first <= end => {
                Ok(NumberRange { first, last: end, digits: from.len() })
            }
            (Some(_), Some(_)) => Err(format!("{text} ends before it begins")),
            _ => Err(format!("{text:?} is not a number or a range such as 001-004")),
        }
    };
    list.split(',').map(|text| range(text.trim())).collect()
}

impl NumberRange {
    /// Whether it has the number of these digits, written as it writes numbers.
    fn has(self, digits: &str) -> bool {
        let Ok(number) = digits.parse::<u64>() else { return false };
        // Without leading zeros beyond the width.
        let is_short = digits.len() == self.digits || !digits.starts_with('0');
        let is_wide = digits.len() >= self.digits;
        (self.first..=self.last).contains(&number) && is_short && is_wide
    }
}

fn matches(parts: &[Part], name: &str) -> bool {
    let Some((part, rest)) = parts.split_first() else { return name.is_empty() };
    match part {
        Part::Text(text) => name.strip_prefix(&**text).is_some_and(|name| matches(rest, name)),
        Part::One => {
            let mut chars = name.chars();
            chars.next().is_some() && matches(rest, chars.as_str())
        }
        Part::Any => {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| matches(rest, &name[at..]))
        }
        Part::Numbers(ranges) => {
            // ASCII digits are one byte each. What follows may begin with digits, too.
            let digits = name.bytes().take_while(u8::is_ascii_digit).count();
            (1..=digits).any(|length| {
                let (number, name) = name.split_at(length);
                ranges.iter().any(|range| range.has(number)) && matches(rest, name)
            })
        }
    }
}

/// The names and patterns of a list that is separated by commas, as Slurm writes it: `gpu[001-004,7],login1`.
pub fn host_list(list: &str) -> Result<Vec<NamePattern>, PatternError> {
    let mut depth = 0_u32;
    let is_separator = |char: char| {
        match char {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == ',' && depth == 0
    };
    list.split(is_separator).map(|name| NamePattern::parse(name.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, name: &str) -> bool {
        NamePattern::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn wildcards_stand_for_text() {
        for (pattern, yes, no) in [
            ("host-7*", &["host-7", "host-71", "host-7 mlx5_0"][..], &["host-8", "a host-7"][..]),
            ("*-7", &["host-7", "-7"], &["host-77", "host-7 "]),
            ("gpu?", &["gpu1", "gpuä"], &["gpu", "gpu11"]),
            ("*a*b*", &["ab", "xaxbx"], &["ba", ""]),
            ("**", &["", "x"], &[]),
            ("host", &["host"], &["host1", "Host", ""]),
        ] {
            assert!(yes.iter().all(|name| is_match(pattern, name)), "{pattern}");
            assert!(!no.iter().any(|name| is_match(pattern, name)), "{pattern}");
        }
    }

    #[test]
    fn host_lists_have_numbers_as_slurm_writes_them() {
        for (pattern, yes, no) in [
            (
                "gpu[001-004,7]",
                &["gpu001", "gpu004", "gpu7"][..],
                &["gpu1", "gpu005", "gpu007", "gpu0001", "gpu", "gpu001x"][..],
            ),
            ("gpu[8-12]", &["gpu8", "gpu9", "gpu10", "gpu12"], &["gpu08", "gpu13", "gpu1"]),
            ("gpu[098-102]", &["gpu098", "gpu100", "gpu102"], &["gpu98", "gpu103"]),
            ("r[1-2]n[01-03]-ib", &["r1n01-ib", "r2n03-ib"], &["r3n01-ib", "r1n1-ib", "r1n01"]),
            ("n[1-2]0", &["n10", "n20"], &["n30", "n1"]),
            ("n[0-18446744073709551615]", &["n5"], &["n18446744073709551616"]),
        ] {
            assert!(yes.iter().all(|name| is_match(pattern, name)), "{pattern}");
            assert!(!no.iter().any(|name| is_match(pattern, name)), "{pattern}");
        }
    }

    #[test]
    fn list_is_split_outside_of_brackets() {
        let list = host_list("gpu[001-004,7], login1,node?").unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list[1].as_name(), Some("login1"));
        assert!(list[0].matches("gpu7") && list[0].as_name().is_none());
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (list, says) in [
            ("gpu[001-004", "the bracket [ is not closed"),
            ("gpu001]", "the bracket ] is not opened"),
            ("gpu[a-c]", "\"a-c\" is not a number or a range"),
            ("gpu[4-1]", "4-1 ends before it begins"),
            ("gpu[]", "\"\" is not a number"),
            ("gpu[99999999999999999999]", "is not a number"),
            ("gpu[+1]", "is not a number"),
            ("a,,b", "it is empty"),
            ("*a*a*a*a*a", "more than 4"),
        ] {
            let error = host_list(list).unwrap_err().to_string();
            assert!(error.contains(says), "{list}: {error}");
        }
    }
    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(list in "[-a1ä*?\\[\\],0]{0,24}", name in "[-a1ä*0]{0,24}") {
            if let Ok(patterns) = host_list(&list) {
                for pattern in patterns {
                    let is_match = pattern.matches(&name);
                    proptest::prop_assert!(pattern.as_name().is_none_or(|of| is_match == (of == name)));
                }
            }
        }
    }
}
