//! Reads a line from left to right, word by word. Each step fails if the line continues differently, so that a grammar
//! covers the whole line and a damaged line is noticed.

use std::str::FromStr;

use ib_mad::Guid;

use crate::text;

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    /// A line from its first character that is not blank.
    pub fn new(line: &'a str) -> Self {
        Scan(line.trim())
    }

    /// Skips blanks and then this text.
    pub fn skip(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(text)?;
        Some(())
    }

    /// Whether this text follows, after blanks.
    pub fn is_at(self, text: &str) -> bool {
        self.0.trim_start().starts_with(text)
    }

    /// The characters up to a blank or one of `ends`; at least one.
    pub fn word(&mut self, ends: &[char]) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let end = rest.find(|it: char| it.is_whitespace() || ends.contains(&it));
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// A decimal number that ends at a blank, a punctuation mark, or the end of the line.
    pub fn number<T: FromStr>(&mut self) -> Option<T> {
        let rest = self.0.trim_start();
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        let is_whole = !rest.starts_with(|it: char| it.is_alphanumeric() || it == '.');
        let number = digits.parse().ok().filter(|_| is_whole)?;
        self.0 = rest;
        Some(number)
    }

    /// A GUID with `0x`.
    pub fn guid(&mut self) -> Option<Guid> {
        let mut rest = *self;
        rest.skip("0x").or_else(|| rest.skip("0X"))?;
        let guid = text::guid(rest.word(&['(', ')', ',', '"'])?)?;
        *self = rest;
        Some(guid)
    }

    /// What is before the first `mark`; continues after it.
    pub fn until(&mut self, mark: &str) -> Option<&'a str> {
        let (before, after) = self.0.split_once(mark)?;
        self.0 = after;
        Some(before)
    }

    /// What is before the last `mark`; continues after it.
    pub fn until_last(&mut self, mark: &str) -> Option<&'a str> {
        let (before, after) = self.0.rsplit_once(mark)?;
        self.0 = after;
        Some(before)
    }

    /// What remains, without blanks around it.
    pub fn rest(self) -> &'a str {
        self.0.trim()
    }

    /// Succeeds at the end of the line.
    pub fn end(self) -> Option<()> {
        self.rest().is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_number_or_guid_is_none() {
        assert_eq!(Scan::new(" 12[").number::<u8>(), Some(12));
        for text in ["", "x", "12a", "1.5", "300"] {
            assert_eq!(Scan::new(text).number::<u8>(), None, "{text}");
        }
        let mut scan = Scan::new("0x00a (rest)");
        assert_eq!((scan.guid(), scan.rest()), (Some(Guid(10)), "(rest)"));
        for text in ["0x", "a", "0xag", "0x<redacted>", "0x0"] {
            assert_eq!(Scan::new(text).guid(), None, "{text}");
        }
    }
}
