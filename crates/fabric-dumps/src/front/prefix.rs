//! What mail programs, `pdsh`, `grep -n`, `nl` and logs put before each line.

use crate::format::{formats_of, is_damaged};

/// The most lines that decide which prefix a text has.
const SAMPLE: usize = 200;

/// The most lines that are tried to see whether a prefix helps at all.
const TRIED: usize = 20;

/// A prefix over another one: a quoted mail with the output of pdsh.
const MAX_PREFIXES: usize = 4;

/// A kind of prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    /// `> `, `| `, `>> `.
    Quote,
    /// `# `, `* `, `- `, as in a script or a list.
    Comment,
    /// `  12  `, `12:`.
    Number,
    /// `n01: `, `net.txt:`.
    Host,
    /// `[n01] `, `[  12.345] `.
    Bracket,
    /// `Nov 27 03:12:01 `, `2026-11-27T03:12:01+01:00 `, `03:12:01 `.
    Time,
    /// `n01 prog[12]: `, `prog[12]: `.
    Process,
}

const ALL: [Prefix; 7] = [
    Prefix::Quote,
    Prefix::Comment,
    Prefix::Number,
    Prefix::Host,
    Prefix::Bracket,
    Prefix::Time,
    Prefix::Process,
];

/// A line in its prefix and the rest.
fn split(prefix: Prefix, line: &str) -> Option<(&str, &str)> {
    let trimmed = line.trim_start();
    let rest = match prefix {
        Prefix::Quote => {
            let rest = trimmed.trim_start_matches(['>', '<', '|', '\u{2502}', '\u{258f}', ' ']);
            (rest.len() < trimmed.len()).then_some(rest)?
        }
        Prefix::Comment => {
            ["# ", "* ", "- ", "// "].iter().find_map(|it| trimmed.strip_prefix(it))?
        }
        Prefix::Number => {
            let rest = trimmed.trim_start_matches(|it: char| it.is_ascii_digit());
            let end = rest.strip_prefix([':', '.', ')', '|', '-', '\u{2502}']).unwrap_or(rest);
            let is_number = rest.len() < trimmed.len();
            let is_apart = end.len() < rest.len() || end.is_empty() || end.starts_with(' ');
            (is_number && is_apart).then_some(end)?
        }
        Prefix::Host => {
            let (host, rest) = trimmed.split_once(':')?;
            let is_host = |it: u8| it.is_ascii_alphanumeric() || b"._-/@+".contains(&it);
            // A number is that of a line.
            let has_letter = host.bytes().any(|it| it.is_ascii_alphabetic());
            (has_letter && host.bytes().all(is_host)).then_some(rest)?
        }
        Prefix::Bracket => trimmed.strip_prefix('[')?.split_once(']')?.1,
        Prefix::Time => after_time(trimmed)?,
        Prefix::Process => after_process(trimmed)?,
    };
    line.split_at_checked(line.len() - rest.len())
}

/// The rest of a line that begins with a time, whose first words may be a date.
fn after_time(line: &str) -> Option<&str> {
    let mut rest = line;
    for _ in 0..4 {
        let (word, after) = rest.split_once(' ')?;
        rest = after;
        let is_clock = word.len() >= 8 && word.matches(':').count() >= 2;
        if is_clock && word.contains(|it: char| it.is_ascii_digit()) {
            return Some(rest);
        }
        rest = rest.trim_start();
    }
    None
}

/// The rest of a line that begins with a process, and maybe its host before it.
fn after_process(line: &str) -> Option<&str> {
    let (process, rest) = line.split_once(": ")?;
    let words = process.split(' ').count();
    let has_id = process.ends_with(']') && process.contains('[');
    (words == 2 || words == 1 && has_id).then_some(rest)
}

/// A line without a prefix, or the line itself.
fn without(prefix: Prefix, line: &str) -> &str {
    split(prefix, line).map_or(line, |(_, rest)| rest)
}

/// The number of lines that some format has, after the prefixes.
fn recognized(lines: &[&str], prefixes: &[Prefix]) -> usize {
    let is_known = |line: &&&str| {
        let rest = prefixes.iter().fold(**line, |line, prefix| without(*prefix, line));
        !formats_of(rest.trim()).is_empty()
    };
    lines.iter().filter(is_known).count()
}

/// The prefixes that a text has, the outer one first: those without which more lines are recognized.
pub struct Prefixes(Vec<Prefix>);

impl Prefixes {
    /// Of a text.
    pub fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Prefixes {
        let is_known = |line: &str| !formats_of(line.trim()).is_empty();
        // Lines of a format, whole or not: other lines decide nothing.
        let may_matter = |line: &&str| {
            is_known(line)
                || is_damaged(line.trim())
                || line.contains("START_")
                || line.contains("END_")
                || ALL.iter().any(|prefix| is_known(without(*prefix, line)))
        };
        let mut sample: Vec<&str> = lines.filter(may_matter).take(SAMPLE).collect();
        let mut found = Vec::new();
        let mut best = recognized(&sample, &[]);
        while found.len() < MAX_PREFIXES && best < sample.len() {
            let unknown = || sample.iter().copied().filter(|line| !is_known(line)).take(TRIED);
            // Most prefixes are on none of the lines that need it.
            let has = |outer: &Prefix| unknown().any(|line| split(*outer, line).is_some());
            let outers: Vec<Prefix> = ALL.into_iter().filter(has).collect();
            let helps =
                |prefixes: &Vec<Prefix>| recognized(&unknown().collect::<Vec<_>>(), prefixes) > 0;
            let best_of = |candidates: &mut dyn Iterator<Item = Vec<Prefix>>| {
                let candidates = candidates.filter(helps);
                let counted = candidates.map(|prefixes| (recognized(&sample, &prefixes), prefixes));
                counted.max_by_key(|(count, _)| *count).filter(|(count, _)| *count > best)
            };
            // One below another one shows only when both are gone.
            let pair = |outer: Prefix| ALL.into_iter().map(move |inner| vec![outer, inner]);
            let next = best_of(&mut outers.iter().map(|prefix| vec![*prefix]))
                .or_else(|| best_of(&mut outers.iter().copied().flat_map(pair)));
            let Some((count, prefixes)) = next else { break };
            for prefix in prefixes {
                for line in &mut sample {
                    *line = without(prefix, line);
                }
                found.push(prefix);
            }
            best = count;
        }
        Prefixes(found)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A line without them, and the host that it is from.
    pub fn strip<'a>(&self, line: &'a str) -> (&'a str, Option<&'a str>) {
        let (mut rest, mut host) = (line, None);
        for prefix in &self.0 {
            let Some((before, after)) = split(*prefix, rest) else { continue };
            if matches!(prefix, Prefix::Host | Prefix::Bracket) {
                host = Some(before.trim());
            }
            rest = after;
        }
        (rest, host)
    }
}
