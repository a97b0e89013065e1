//! Numbers for readers.

use std::fmt::Display;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_digits_and_a_noun() {
        let texts = [(1, "entry"), (0, "entry"), (2, "switch"), (999, "link"), (1_234_567, "link")]
            .map(|(number, noun)| plural(number, noun));
        assert_eq!(texts, ["1 entry", "0 entries", "2 switches", "999 links", "1,234,567 links"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
