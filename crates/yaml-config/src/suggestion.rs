//! Names in messages: quoted, and with suggestions for an unknown one.

use strsim::osa_distance;

/// The most characters of a name that are shown or compared.
const MAX_NAME: usize = 60;

/// A name from a file in quotes: one short line, whatever it contains.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_NAME) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// ` (did you mean "x"?)` with the known names that are most similar; empty if none is.
pub fn suggestion<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let wanted = text.to_lowercase();
    let length = wanted.chars().count();
    if length > MAX_NAME {
        return String::new();
    }
    // A typing error: up to a third of the letters differ. Or a part left out: the text is within the
    // name, or begins like it.
    let max_distance = (length / 3).max(2);
    let min_prefix = (length * 2).div_ceil(3).max(4);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            // Letters that are added, removed, changed, or swapped with the next.
            let distance = osa_distance(&wanted, &lower);
            let same = wanted.chars().zip(lower.chars()).take_while(|(one, other)| one == other);
            let prefix = same.count();
            if distance <= max_distance && distance < lower.chars().count() {
                Some((distance, name))
            } else if length >= 4 && lower.contains(&wanted) {
                Some((MAX_NAME, name))
            } else {
                (prefix >= min_prefix).then(|| (2 * MAX_NAME - prefix, name))
            }
        })
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    // Only the nearest, and at most three of them.
    let best = near.first().map_or(0, |(distance, _)| *distance);
    let names: Vec<String> = near
        .iter()
        .take_while(|(distance, _)| *distance == best)
        .take(3)
        .map(|(_, name)| format!("{name:?}"))
        .collect();
    match &*names {
        [] => String::new(),
        [one] => format!(" (did you mean {one}?)"),
        [most @ .., last] => format!(" (did you mean {} or {last}?)", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["leaf-0-9", "leaf-0-1", "spine-1", "PortRcvErrors", "SymbolErrorCounter", "a"];
        for (text, says) in [
            ("leaf-9", " (did you mean \"leaf-0-9\"?)"),
            ("leaf-0-3", " (did you mean \"leaf-0-9\" or \"leaf-0-1\"?)"),
            ("leaf-", " (did you mean \"leaf-0-9\" or \"leaf-0-1\"?)"),
            ("RcvErrors", " (did you mean \"PortRcvErrors\"?)"),
            ("symbolerrors", " (did you mean \"SymbolErrorCounter\"?)"),
            ("elephant", ""),
            ("spnie-1", " (did you mean \"spine-1\"?)"),
            ("", ""),
            ("b", ""),
        ] {
            assert_eq!(suggestion(text, known), says, "{text}");
        }
        assert_eq!(suggestion(&"leaf".repeat(100), known), "");
    }

    #[test]
    fn quoted_name_is_one_short_line() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(quoted(&"ö".repeat(500)).chars().count(), MAX_NAME + 5);
    }
}
