//! Cells of CSV that a spreadsheet shows and never evaluates. Every CSV of the program is made of these.
//!
//! Names come from devices: any root of any host sets the description of its node. A spreadsheet evaluates a cell that
//! begins with one of `=+-@`, and a formula can run programs or send data away (OWASP, "CSV injection"). Where a cell
//! begins depends on the spreadsheet: Excel splits lines at `;` or a tab in many locales, and there the quotes of RFC
//! 4180 do not hold a cell together, because they are not at the beginning of its cell. So a sign is dangerous after
//! each of these separators. An apostrophe before it makes the cell a text.

use std::fmt::{Display, Write};

use crate::unseen::is_format;

/// Whether a cell that begins with it is a formula. Excel for Chinese and Japanese reads the fullwidth forms as ASCII;
/// the small forms have the same compatibility mapping (NFKC).
fn is_sign(char: char) -> bool {
    matches!(char, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠' | '﹦' | '﹢' | '﹣' | '﹫')
}

/// Whether a cell may end with it.
fn is_separator(char: char) -> bool {
    // Any kind of a line break, too.
    matches!(char, ',' | ';' | '\t' | '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a spreadsheet may drop it at the beginning of a cell: blanks, what cannot be seen, and the quotes that a
/// reader with other separators takes for those of the cell (`x;"=1+1"`).
fn is_skipped(char: char) -> bool {
    char == '"' || is_format(char) || char.is_whitespace() || char.is_control()
}

/// Finds the signs with which a cell begins, one character after another.
#[derive(Clone, Copy)]
struct Cells {
    is_start: bool,
}

impl Cells {
    /// Whether a cell begins with this next character, and is a formula.
    fn is_formula(&mut self, char: char) -> bool {
        if is_separator(char) {
            self.is_start = true;
        } else if !is_skipped(char) {
            return std::mem::replace(&mut self.is_start, false) && is_sign(char);
        }
        false
    }
}

/// A line of cells.
#[derive(Debug, Default)]
pub struct Line(String);

impl Line {
    /// Adds a text that a spreadsheet does not evaluate.
    pub fn text(&mut self, text: &str) -> &mut Self {
        push_text(&mut self.0, text);
        self.0.push(',');
        self
    }

    /// Adds a number, which may be negative; an empty cell if there is none.
    pub fn number(&mut self, number: Option<impl Display>) -> &mut Self {
        if let Some(number) = number {
            // A String takes any text.
            let _ = write!(self.0, "{number}");
        }
        self.0.push(',');
        self
    }

    /// Adds JSON.
    pub fn json(&mut self, json: &str) -> &mut Self {
        push_json(&mut self.0, json);
        self.0.push(',');
        self
    }

    /// Ends the line, and returns it; the next one is empty.
    pub fn end(&mut self) -> String {
        self.0.pop();
        self.0.push('\n');
        std::mem::take(&mut self.0)
    }
}

/// Writes a text as a cell: an apostrophe before each sign that would begin a formula, and in quotes if it has
/// separators (RFC 4180).
fn push_text(line: &mut String, text: &str) {
    let is_quoted = text.contains(|char| is_separator(char) || char == '"');
    let mut cells = Cells { is_start: true };
    if is_quoted {
        line.push('"');
    }
    for char in text.chars() {
        if cells.is_formula(char) {
            line.push('\'');
        }
        if char == '"' {
            line.push('"');
        }
        line.push(char);
    }
    if is_quoted {
        line.push('"');
    }
}

/// Writes JSON as a cell that is still JSON: a sign within a text is escaped (`\u003d`). Outside of texts JSON has only
/// the signs of numbers, and those stay.
fn push_json(line: &mut String, json: &str) {
    let mut cells = Cells { is_start: true };
    let (mut in_text, mut is_escaped) = (false, false);
    line.push('"');
    for char in json.chars() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_text,
            '"' => in_text = !in_text,
            _ => {}
        }
        let is_formula = cells.is_formula(char);
        if is_formula && in_text {
            // All of them are below U+10000. A String takes any text.
            let _ = write!(line, "\\u{:04x}", u32::from(char));
            continue;
        }
        if char == '"' {
            line.push('"');
        }
        line.push(char);
    }
    line.push('"');
}

/// A text as a cell.
pub fn text(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    push_text(&mut line, text);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells that spreadsheets with any separators make of a line.
    fn formulas(line: &str) -> Vec<&str> {
        let cells = line.split([',', ';', '\t', '\n', '\r']);
        let begins = |cell: &&str| cell.trim_start_matches(['"', ' ']).starts_with(is_sign);
        cells.filter(begins).collect()
    }

    #[test]
    fn no_cell_begins_like_a_formula_whatever_separates_cells() {
        for (name, cell) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(1)", "'@SUM(1)"),
            ("x;=1+1;y", "\"x;'=1+1;y\""),
            ("x,=1+1", "\"x,'=1+1\""),
            ("x\t=1", "\"x\t'=1\""),
            ("x\n=1\r\n+2", "\"x\n'=1\r\n'+2\""),
            ("＝cmd", "'＝cmd"),
            ("x;＋1;－1;＠1", "\"x;'＋1;'－1;'＠1\""),
            ("﹦1", "'﹦1"),
            (" =1", " '=1"),
            ("\u{feff}\u{200b}=1", "\u{feff}\u{200b}'=1"),
            ("x;\"=cmd|'/C calc'!A0&\"", "\"x;\"\"'=cmd|'/C calc'!A0&\"\"\""),
        ] {
            assert_eq!(text(name), cell, "{name:?}");
            assert_eq!(formulas(&text(name)), Vec::<&str>::new(), "{name:?}");
        }
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in ["", "leaf-0-1", "a = b", "0x0002c90300000001", "x-1;y-2", "it's", "5-1"] {
            assert_eq!(text(name).trim_matches('"'), name);
        }
        assert_eq!(text("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn json_stays_json_and_has_no_formula() {
        let mut line = String::new();
        push_json(
            &mut line,
            r#"{"a":-1.5,"b":[-2,-3],"c":"x;=1+1","d":"=1","e":"\";＝2","f":"\\"}"#,
        );
        assert_eq!(
            line,
            r#""{""a"":-1.5,""b"":[-2,-3],""c"":""x;\u003d1+1"",""d"":""=1"",""e"":""\"";\uff1d2"",""f"":""\\""}""#
        );
    }
}
