//! The lines of a net file.

use ib_mad::{Guid, Lid};

/// The length of a NodeDescription in bytes (IBTA 1.4, 14.2.5.2).
const DESCRIPTION_LEN: usize = 64;

/// What `ibnetdiscover` prints after a node's description.
const AFTER_DESCRIPTION: [&str; 4] = ["enhanced port ", "base port ", "lid ", "lmc "];

/// A number as C reads it (decimal, `0x`, or octal with a leading 0), and the rest.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let (radix, text) = if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        (16, hex)
    } else if text.starts_with('0') {
        (8, text)
    } else {
        (10, text)
    };
    let (digits, rest) =
        text.split_at(text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len()));
    let value = u64::from_str_radix(digits, radix).ok()?;
    (!rest.starts_with(char::is_alphanumeric)).then_some((value, rest))
}

/// What a key takes of the number after its `=`.
pub(super) fn value<T>(
    key: &str,
    line: &str,
    wanted: &str,
    take: impl FnOnce(u64) -> Option<T>,
) -> Result<T, String> {
    let (_, text) = line.split_once('=').ok_or_else(|| no_value(key))?;
    let value = number(text).and_then(|(value, _)| take(value));
    value.ok_or_else(|| bad_number(key, text, wanted))
}

pub(super) fn no_value(key: &str) -> String {
    format!("\"{key}\" without \"=\" and a value")
}

/// The problem of an invalid number, or one out of the key's range.
pub(super) fn bad_number(key: &str, text: &str, wanted: &str) -> String {
    let text: String = text.trim().chars().take(40).collect();
    format!("bad number for {key}: \"{}\"; {wanted}", text.escape_default())
}

/// The text between the next two quotes, and the rest.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.split_once('"')
}

/// `(2c90300a1b2c3)` at the start, and the rest.
pub(super) fn guid_in_parentheses(text: &str) -> Option<(Guid, &str)> {
    let (digits, rest) = text.strip_prefix('(')?.split_once(')')?;
    Some((digits.parse().ok()?, rest))
}

/// A description cut to the 64 bytes of a NodeDescription, in whole characters.
pub(super) fn description(text: &str) -> String {
    let fits = text.char_indices().take_while(|(at, c)| at + c.len_utf8() <= DESCRIPTION_LEN);
    fits.map(|(_, c)| if c.is_control() { ' ' } else { c }).collect()
}

/// `lid 5 lmc 1` in a comment, where nothing is an error.
pub(super) fn lid_and_lmc(comment: &str) -> (Option<Lid>, u8) {
    let after = |word| comment.split_once(word).and_then(|(_, text)| number(text));
    let lid = after("lid ").and_then(|(lid, _)| u16::try_from(lid).ok()).map(Lid);
    let lmc = after("lmc ").and_then(|(lmc, _)| u8::try_from(lmc).ok());
    (lid.filter(|lid| lid.is_unicast()), lmc.filter(|lmc| *lmc <= 7).unwrap_or(0))
}

/// A node's line, after the word for its kind.
pub(super) struct NodeLine<'a> {
    pub ports: u64,
    pub id: &'a str,
    pub description: Option<&'a str>,
    pub more: &'a str,
}

impl NodeLine<'_> {
    pub(super) fn read(rest: &str) -> Result<NodeLine<'_>, String> {
        let ports = || {
            let before = &rest[..rest.find('"').unwrap_or(rest.len())];
            number(&before[before.find(|c: char| c.is_ascii_digit())?..])
        };
        let wanted = "expected the number of ports";
        let (ports, _) = ports().ok_or_else(|| bad_number("the number of ports", rest, wanted))?;
        let (id, after) = quoted(rest).ok_or("the node has no quoted id")?;
        let (description, more) = NodeLine::split_description(after);
        Ok(NodeLine { ports, id, description: description.filter(|text| !text.is_empty()), more })
    }

    /// A description in quotes, or up to the next of [`AFTER_DESCRIPTION`]; and the rest.
    fn split_description(after: &str) -> (Option<&str>, &str) {
        let Some((_, comment)) = after.split_once('#') else { return (None, after) };
        let comment = comment.trim_start();
        if let Some(open) = comment.strip_prefix('"') {
            // A description may contain quotes: it ends at the last one before what ibnetdiscover
            // prints after it, or before nothing.
            let ends_here = |rest: &str| {
                let rest = rest.trim_start();
                rest.is_empty() || AFTER_DESCRIPTION.iter().any(|word| rest.starts_with(word))
            };
            let mut ends = open.match_indices('"').map(|(at, _)| (&open[..at], &open[at + 1..]));
            let last = ends.clone().rfind(|(_, rest)| ends_here(rest));
            let (text, more) = last.or_else(|| ends.next()).unwrap_or((open, ""));
            return (Some(text), more);
        }
        let ends = AFTER_DESCRIPTION.iter().find_map(|word| comment.find(&format!(" {word}")));
        let end = ends.unwrap_or(comment.len());
        (Some(&comment[..end]), &comment[end..])
    }
}

/// A cable's line.
pub(super) struct CableLine<'a> {
    pub is_alias: bool,
    pub number: u64,
    pub guid: Option<Guid>,
    /// The node at the other end, or the alias that the line gives this end.
    pub peer: &'a str,
    pub peer_number: Option<u64>,
    after: &'a str,
    comment: &'a str,
}

/// Whether a line is a cable's. One without a number in brackets, such as `[Unknown]`, is not.
pub(super) fn is_cable(line: &str) -> bool {
    let inside = line.strip_prefix('@').unwrap_or(line).strip_prefix('[');
    inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_ascii_digit()))
}

impl CableLine<'_> {
    pub(super) fn read(line: &str) -> Result<CableLine<'_>, String> {
        let is_alias = line.starts_with('@');
        let wanted = "expected a port number in brackets";
        let (number, rest) = bracket(line.trim_start_matches('@'))
            .and_then(|(number, rest)| Some((number?, rest)))
            .ok_or_else(|| bad_number("the port", line, wanted))?;
        // ibnetdiscover prints a chassis' external port after the internal one: `[1][ext 5]`.
        let rest = bracket(rest).map_or(rest, |(_, rest)| rest);
        let (guid, rest) =
            guid_in_parentheses(rest).map_or((None, rest), |(guid, rest)| (Some(guid), rest));
        let (peer, rest) = quoted(rest).ok_or("the cable has no quoted id of the other end")?;
        let (peer_number, after) = match bracket(rest.trim_start()) {
            Some((Some(number), after)) => (Some(number), after),
            Some((None, _)) => return Err(bad_number("the other end's port", rest, wanted)),
            None => (None, rest),
        };
        let (after, comment) = after.split_once('#').unwrap_or((after, ""));
        Ok(CableLine { is_alias, number, guid, peer, peer_number, after, comment })
    }

    /// The options before the comment, such as `w=3`: the letter before each `=`, and the value.
    pub(super) fn options(&self) -> impl Iterator<Item = (char, &str)> {
        self.after.match_indices('=').filter_map(|(at, _)| {
            let letter = self.after[..at].chars().rev().find(char::is_ascii_alphabetic)?;
            let value = self.after[at + 1..].trim_start();
            Some((letter, value.split_whitespace().next().unwrap_or("")))
        })
    }

    /// The comment about this end's port: all before the other end's description.
    pub(super) fn own_comment(&self) -> &str {
        self.comment.split('"').next().unwrap_or("")
    }

    /// The rate after the other end's LID: `lid 2 4xEDR`.
    pub(super) fn rate(&self) -> Option<&str> {
        let behind = self.comment.rsplit('"').next()?;
        let (_, lid) = behind.split_once("lid ")?;
        lid.split_whitespace().nth(1)
    }
}

/// `[7]` at the start, and the rest. The number is decimal, as for ibsim.
fn bracket(text: &str) -> Option<(Option<u64>, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((inside.trim().parse().ok(), rest))
}
