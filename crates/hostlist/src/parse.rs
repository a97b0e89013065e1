//! From the text to the hosts.

use thiserror::Error;

/// The most hosts of a list: as many as Slurm allows in one bracket (`MAX_RANGES`, 256 times 1,024).
pub const MAX_HOSTS: u64 = 262_144;

/// The most hosts of a range, as in Slurm (`MAX_RANGE`).
const MAX_RANGE: u64 = 65_536;

/// Why a list of hosts is refused. Each names the part of the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostlistError {
    /// No host at all.
    #[error("the list names no host")]
    Empty,
    /// A bracket without its partner, or within another one.
    #[error("{0:?}: each [ needs a ] after it, and no bracket may be inside another")]
    Brackets(String),
    /// What is in brackets is neither a number nor a range.
    #[error("[{inside}] in {host:?}: {item:?} is neither a number nor a range such as 1-5")]
    Item {
        /// The host with its brackets.
        host: String,
        /// All that is in the brackets.
        inside: String,
        /// The part that is wrong.
        item: String,
    },
    /// A range that ends before it begins.
    #[error("{0:?} in brackets: the range ends before it begins")]
    Backward(String),
    /// A blank or a line end in brackets.
    #[error(
        "[{0}]: a blank inside brackets. Remove it: Slurm would count it into the width of the number"
    )]
    Blank(String),
    /// A range of more hosts than Slurm allows.
    #[error("{0:?} in brackets has more than {MAX_RANGE} hosts")]
    LongRange(String),
    /// More hosts than [`MAX_HOSTS`].
    #[error("the list has more than {MAX_HOSTS} hosts")]
    TooMany,
    /// `feature{x}`.
    #[error("{0:?}: only slurmctld knows the nodes of a feature. Take them from `sinfo -h -o %N`")]
    Feature(String),
}

/// A part of a host's name.
enum Part<'a> {
    Text(&'a str),
    Ranges(Vec<Range>),
}

/// Numbers, filled up with zeros.
struct Range {
    low: u64,
    high: u64,
    width: usize,
}

impl Range {
    fn parse(host: &str, inside: &str, item: &str) -> Result<Self, HostlistError> {
        let wrong = || HostlistError::Item {
            host: host.to_owned(),
            inside: inside.to_owned(),
            item: item.to_owned(),
        };
        let (low_text, high_text) = item.split_once('-').unwrap_or((item, ""));
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| is_number).ok_or_else(wrong)
        };
        let low = number(low_text)?;
        // Slurm reads `5-` as 5.
        let high = if high_text.is_empty() { low } else { number(high_text)? };
        if high < low {
            return Err(HostlistError::Backward(item.to_owned()));
        }
        if high - low >= MAX_RANGE {
            return Err(HostlistError::LongRange(item.to_owned()));
        }
        Ok(Range { low, high, width: low_text.len() })
    }

    fn count(&self) -> u64 {
        self.high - self.low + 1
    }

    fn texts(&self) -> impl Iterator<Item = String> + '_ {
        (self.low..=self.high).map(|number| format!("{number:0width$}", width = self.width))
    }
}

/// One of the hosts between separators, which may stand for many.
struct Pattern<'a>(Vec<Part<'a>>);

impl<'a> Pattern<'a> {
    fn parse(text: &'a str) -> Result<Self, HostlistError> {
        if text.contains(['{', '}']) {
            return Err(HostlistError::Feature(text.to_owned()));
        }
        let wrong = || HostlistError::Brackets(text.to_owned());
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('[') {
            let (inside, after) = after.split_once(']').ok_or_else(wrong)?;
            if before.contains(']') || inside.contains('[') {
                return Err(wrong());
            }
            if inside.contains(char::is_whitespace) {
                return Err(HostlistError::Blank(inside.to_owned()));
            }
            let ranges = inside.split(',').map(|item| Range::parse(text, inside, item));
            parts.extend([Part::Text(before), Part::Ranges(ranges.collect::<Result<_, _>>()?)]);
            rest = after;
        }
        if rest.contains(']') {
            return Err(wrong());
        }
        parts.push(Part::Text(rest));
        Ok(Pattern(parts))
    }

    /// The number of its hosts, [`u64::MAX`] if there are more.
    fn count(&self) -> u64 {
        let counts = self.0.iter().map(|part| match part {
            Part::Text(_) => 1,
            Part::Ranges(ranges) => ranges.iter().map(Range::count).fold(0, u64::saturating_add),
        });
        counts.fold(1, u64::saturating_mul)
    }

    fn hosts(&self) -> Vec<String> {
        let mut hosts = vec![String::new()];
        for part in &self.0 {
            match part {
                Part::Text(text) => hosts.iter_mut().for_each(|host| host.push_str(text)),
                Part::Ranges(ranges) => {
                    let with_each = |host: String| {
                        let texts = ranges.iter().flat_map(Range::texts);
                        texts.map(move |text| format!("{host}{text}"))
                    };
                    hosts = hosts.into_iter().flat_map(with_each).collect();
                }
            }
        }
        hosts
    }
}

/// The parts of a list between separators that are not in brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    let parts = text.split(move |char: char| {
        match char {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        !is_inside && (char == ',' || char.is_whitespace())
    });
    parts.filter(|part| !part.is_empty())
}

/// The hosts of a list, in its order, with duplicates.
///
/// # Errors
///
/// The list is empty, malformed, or longer than [`MAX_HOSTS`].
pub fn parse(text: &str) -> Result<Vec<String>, HostlistError> {
    let patterns: Vec<Pattern<'_>> = split(text).map(Pattern::parse).collect::<Result<_, _>>()?;
    if patterns.is_empty() {
        return Err(HostlistError::Empty);
    }
    // Before anything is expanded: a product of five brackets would fill the memory.
    if patterns.iter().map(Pattern::count).fold(0, u64::saturating_add) > MAX_HOSTS {
        return Err(HostlistError::TooMany);
    }
    Ok(patterns.iter().flat_map(Pattern::hosts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_slurm_are_expanded() {
        let table: &[(&str, &[&str])] = &[
            ("gpu1", &["gpu1"]),
            ("n1-5", &["n1-5"]),
            ("tux[2,1-2]", &["tux2", "tux1", "tux2"]),
            ("gpu[001-003,600]", &["gpu001", "gpu002", "gpu003", "gpu600"]),
            ("gpu[9-10]", &["gpu9", "gpu10"]),
            ("gpu[008-10]", &["gpu008", "gpu009", "gpu010"]),
            ("gpu[5-]", &["gpu5"]),
            ("gpu[1-2]-ib", &["gpu1-ib", "gpu2-ib"]),
            ("r[0-1]_b[0-1]", &["r0_b0", "r0_b1", "r1_b0", "r1_b1"]),
            ("[1-2]", &["1", "2"]),
            ("a,,b\n c\t[1]d,", &["a", "b", "c", "1d"]),
            ("a[1],b[2-3],c", &["a1", "b2", "b3", "c"]),
            (
                "gpu[0-1].cluster.example.org",
                &["gpu0.cluster.example.org", "gpu1.cluster.example.org"],
            ),
            ("é[1]", &["é1"]),
        ];
        for (text, hosts) in table {
            assert_eq!(parse(text).unwrap(), *hosts, "{text}");
        }
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        for text in ["", " ,\n", ","] {
            assert_eq!(parse(text), Err(HostlistError::Empty), "{text:?}");
        }
        for text in ["a[1", "a]", "a]b[1]", "a[[1]]", "a[1]]", "a[1],b]", "a[1[2]", "]"] {
            assert!(matches!(parse(text), Err(HostlistError::Brackets(_))), "{text}");
        }
        for item in ["", "-5", "x", "1--2", "1-2-3", "+1", "1-x", "１", "99999999999999999999"] {
            let error = parse(&format!("a[3,{item}]")).unwrap_err();
            assert!(
                matches!(&error, HostlistError::Item { item: it, .. } if it == item),
                "{error}"
            );
        }
        assert_eq!(parse("a[5-4]"), Err(HostlistError::Backward("5-4".into())));
        assert_eq!(parse("a[1, 2]"), Err(HostlistError::Blank("1, 2".into())));
        assert_eq!(parse("a[1\n2]"), Err(HostlistError::Blank("1\n2".into())));
        assert!(matches!(parse("gpu{a100}"), Err(HostlistError::Feature(_))));
    }

    #[test]
    fn absurd_lists_are_refused_before_they_take_memory() {
        assert_eq!(parse("a[0-65535]").map(|hosts| hosts.len()), Ok(65_536));
        assert_eq!(parse("a[0-65536]"), Err(HostlistError::LongRange("0-65536".into())));
        assert_eq!(parse("a[0-511][0-511]").map(|hosts| hosts.len()), Ok(262_144));
        assert_eq!(parse("a[0-511][0-511],b"), Err(HostlistError::TooMany));
        let product = "[0-65535]".repeat(20);
        assert_eq!(parse(&product), Err(HostlistError::TooMany));
        assert_eq!(
            parse("a[0-18446744073709551615]"),
            Err(HostlistError::LongRange("0-18446744073709551615".into()))
        );
        assert_eq!(parse("a[18446744073709551615]").map(|hosts| hosts.len()), Ok(1));
    }
}
