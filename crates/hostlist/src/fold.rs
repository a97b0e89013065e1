//! From hosts to the text.

use std::collections::{BTreeMap, BTreeSet};

/// A number of more digits stays text: it does not fit 64 bits.
const MAX_DIGITS: usize = 18;

/// Numbers of a name with as many digits as the first of them; without zeros before them the last may have more.
struct Range {
    digits: usize,
    low: u64,
    high: u64,
}

impl Range {
    /// Whether a number of so many digits is the next of the range, and its text is that of the number alone if it has
    /// more digits than the first.
    fn is_next(&self, digits: usize, number: u64) -> bool {
        self.high + 1 == number && (self.digits == digits || number.to_string().len() == digits)
    }

    fn text(&self) -> String {
        let &Range { digits, low, high } = self;
        if low == high {
            return format!("{low:0digits$}");
        }
        format!("{low:0digits$}-{high:0digits$}")
    }
}

/// The text before the last number of a name, its digits, and the text after it.
fn split_number(host: &str) -> Option<(&str, &str, &str)> {
    let is_digit = |char: char| char.is_ascii_digit();
    let (end, _) = host.rmatch_indices(is_digit).next()?;
    let (before, after) = host.split_at(end + 1);
    let text = before.trim_end_matches(is_digit);
    let digits = &before[text.len()..];
    (digits.len() <= MAX_DIGITS).then_some((text, digits, after))
}

/// A list that stands for these hosts, sorted and without duplicates: `gpu[001-512,600],login`. Only the last number
/// of a name becomes a range.
pub fn fold<'a>(hosts: impl IntoIterator<Item = &'a str>) -> String {
    // By the text around it, each number with its digits.
    let mut numbers: BTreeMap<(&str, &str), BTreeSet<(usize, u64)>> = BTreeMap::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for host in hosts {
        let split = split_number(host);
        let number = split.and_then(|(_, digits, _)| Some((digits.len(), digits.parse().ok()?)));
        match (split, number) {
            (Some((before, _, after)), Some(number)) => {
                numbers.entry((before, after)).or_default().insert(number);
            }
            _ => drop(names.insert(host.to_owned())),
        }
    }
    for ((before, after), numbers) in numbers {
        let mut ranges: Vec<Range> = Vec::new();
        for (digits, number) in numbers {
            match ranges.last_mut().filter(|range| range.is_next(digits, number)) {
                Some(range) => range.high = number,
                None => ranges.push(Range { digits, low: number, high: number }),
            }
        }
        let items: Vec<String> = ranges.iter().map(Range::text).collect();
        let is_one = ranges.iter().map(|range| range.high - range.low + 1).sum::<u64>() == 1;
        let items = items.join(",");
        names.insert(if is_one {
            format!("{before}{items}{after}")
        } else {
            format!("{before}[{items}]{after}")
        });
    }
    names.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse;

    #[test]
    fn hosts_become_ranges() {
        let table: &[(&[&str], &str)] = &[
            (&["gpu001", "gpu002", "gpu003", "gpu600"], "gpu[001-003,600]"),
            (&["gpu9", "gpu10", "gpu8", "gpu9"], "gpu[8-10]"),
            (&["gpu09", "gpu10", "gpu9"], "gpu[9,09-10]"),
            (&["gpu099", "gpu100"], "gpu[099-100]"),
            (&["gpu0", "gpu1", "gpu11"], "gpu[0-1,11]"),
            (&["login", "gpu1-ib", "gpu2-ib"], "gpu[1-2]-ib,login"),
            (&["a1.x2", "a2.x2"], "a1.x2,a2.x2"),
            (&["n9999999999999999999"], "n9999999999999999999"),
            (&[], ""),
        ];
        for (hosts, text) in table {
            assert_eq!(fold(hosts.iter().copied()), *text);
        }
    }

    proptest! {
        /// Hosts of all widths around the borders, with prefixes, and some without a number.
        #[test]
        fn folded_hosts_are_parsed_as_the_same(
            hosts in proptest::collection::vec("[a-c]{0,2}(0{0,3}[0-9]{1,3}|9{1,3}|10{1,3})?(-ib)?", 1..60)
        ) {
            let hosts: BTreeSet<&str> =
                hosts.iter().map(String::as_str).filter(|host| !host.is_empty()).collect();
            prop_assume!(!hosts.is_empty());
            let text = fold(hosts.iter().copied());
            let parsed = parse(&text).unwrap();
            prop_assert_eq!(parsed.len(), hosts.len(), "{}", &text);
            prop_assert_eq!(parsed.iter().map(String::as_str).collect::<BTreeSet<_>>(), hosts);
        }

        /// No text panics, and what is parsed has as many hosts as allowed.
        #[test]
        fn any_text_is_parsed_or_refused(text in "[ab0-9,\\[\\]{} \n-]{0,40}") {
            if let Ok(hosts) = parse(&text) {
                prop_assert!(!hosts.is_empty() && hosts.len() as u64 <= crate::MAX_HOSTS);
            }
        }
    }
}
