//! Names as messages show them, and what a name that is not known may have meant.

/// More of a name than this helps nobody.
const LONGEST: usize = 60;

/// A name from the file in quotes: never more than one line, and never a long one.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// What else may have been meant, to be put behind "no such thing"; nothing if nothing is near.
pub fn meant<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let wanted: Vec<char> = text.to_lowercase().chars().collect();
    if wanted.len() > LONGEST {
        return String::new();
    }
    // A slip of the finger: up to a third of what is there is wrong. Else a part left out: what is
    // there lies within the name, or most of it begins it.
    let slips = (wanted.len() / 3).max(2);
    let most = (wanted.len() * 2).div_ceil(3).max(4);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let letters: Vec<char> = name.to_lowercase().chars().collect();
            let slipped = distance(&wanted, &letters);
            let same = wanted.iter().zip(&letters).take_while(|(one, other)| one == other).count();
            let within =
                wanted.len() >= 4 && letters.windows(wanted.len()).any(|part| part == wanted);
            if slipped <= slips && slipped < letters.len() {
                Some((slipped, name))
            } else if within {
                Some((LONGEST, name))
            } else {
                (same >= most).then(|| (2 * LONGEST - same, name))
            }
        })
        .collect();
    near.sort_by_key(|(far, _)| *far);
    // Only the nearest, and at most three of them.
    let best = near.first().map_or(0, |(far, _)| *far);
    let names: Vec<String> = near
        .iter()
        .take_while(|(far, _)| *far == best)
        .take(3)
        .map(|(_, name)| format!("{name:?}"))
        .collect();
    if names.is_empty() { String::new() } else { format!(" (did you mean {}?)", either(&names)) }
}

/// `a, b or c`.
fn either(names: &[String]) -> String {
    match names {
        [most @ .., end] if !most.is_empty() => format!("{} or {end}", most.join(", ")),
        _ => names.concat(),
    }
}

/// How many letters have to be added, left out, changed, or swapped with the next (optimal string
/// alignment).
fn distance(wanted: &[char], name: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=wanted.len()).collect();
    for (row, letter) in name.iter().enumerate() {
        let mut here = vec![row + 1];
        for (column, expected) in wanted.iter().enumerate() {
            let changed = above[column] + usize::from(expected != letter);
            let mut least = changed.min(above[column + 1] + 1).min(here[column] + 1);
            if row > 0 && column > 0 && *expected == name[row - 1] && *letter == wanted[column - 1]
            {
                least = least.min(before[column - 1] + 1);
            }
            here.push(least);
        }
        before = std::mem::replace(&mut above, here);
    }
    above.last().copied().unwrap_or(name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (one, other, count) in [
            ("leaf-9", "leaf-0-9", 2),
            ("", "ab", 2),
            ("flap", "flap", 0),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(&letters(one), &letters(other)), count);
        }
    }

    #[test]
    fn what_is_near_is_named_and_what_is_not_is_not() {
        let known = ["leaf-0-9", "leaf-0-1", "spine-1", "PortRcvErrors", "SymbolErrorCounter", "a"];
        for (text, says) in [
            ("leaf-9", " (did you mean \"leaf-0-9\"?)"),
            ("leaf-0-3", " (did you mean \"leaf-0-9\" or \"leaf-0-1\"?)"),
            ("leaf-", " (did you mean \"leaf-0-9\" or \"leaf-0-1\"?)"),
            ("RcvErrors", " (did you mean \"PortRcvErrors\"?)"),
            ("symbolerrors", " (did you mean \"SymbolErrorCounter\"?)"),
            ("elephant", ""),
            ("", ""),
            ("b", ""),
        ] {
            assert_eq!(meant(text, known), says, "{text}");
        }
        assert_eq!(meant(&"leaf".repeat(100), known), "");
    }

    #[test]
    fn a_name_is_one_short_line() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(quoted(&"ö".repeat(500)).chars().count(), LONGEST + 5);
    }
}
