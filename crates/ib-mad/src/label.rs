//! How nodes and ports are called before people: a port by its node, names in the order of their numbers,
//! and short where there is little room.

use super::PortNumber;

/// A port as people call it.
pub fn port(node: &str, number: PortNumber) -> String {
    format!("{node} port {number}")
}

/// How many there are of what, in words: `1 entry`, `2 entries`, `3 links`.
pub fn count(number: usize, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

/// A piece of a name: a number in it, or what stands between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Piece<'a> {
    /// A number.
    Number(u64),
    /// Anything else.
    Text(&'a str),
}

/// A name in pieces, which are in the order in which people sort names: `leaf-2` before `leaf-10`.
pub fn natural(name: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(match piece.parse() {
            Ok(number) if is_digit => Piece::Number(number),
            _ => Piece::Text(piece),
        });
        rest = after;
    }
    pieces
}

/// So many letters of a name, three at the least: its beginning and its end, which tell it from its
/// neighbours.
pub fn shortened(name: &str, most: usize) -> String {
    let (count, most) = (name.chars().count(), most.max(3));
    if count <= most {
        return name.to_owned();
    }
    let first = (most - 1) / 3;
    let begin: String = name.chars().take(first).collect();
    let end: String = name.chars().skip(count - (most - 1 - first)).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names =
            ["leaf-10", "leaf-2", "leaf-2b", "LEAF", "leaf-", "", "7", "leaf-99999999999999999999"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(
            names,
            ["", "7", "LEAF", "leaf-", "leaf-2", "leaf-2b", "leaf-10", "leaf-99999999999999999999"]
        );
    }

    #[test]
    fn a_name_keeps_what_tells_it_from_its_neighbours() {
        for (name, most, told) in [
            ("leaf-0", 8, "leaf-0"),
            ("g10-spine-3", 8, "g1…ine-3"),
            ("ünïcödé-name-12", 7, "ün…e-12"),
            ("abcdef", 0, "…ef"),
            ("", 0, ""),
        ] {
            assert_eq!(shortened(name, most), told, "{name} {most}");
        }
    }
}
