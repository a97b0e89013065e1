//! Names for readers: natural order, abbreviations.

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
