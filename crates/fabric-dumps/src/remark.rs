//! What a user should know of how files were read: above all what was not used.

use std::fmt;
use std::path::PathBuf;

use display_text::abbreviate;

/// The characters of a line that a message shows.
const SHOWN: usize = 80;

/// A remark on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The file; empty until it is known.
    pub file: PathBuf,
    /// The line, from 1 on, or 0 for the whole file.
    pub line: usize,
    /// What was found, as a sentence without its end.
    pub text: String,
    /// Something of the file was not used.
    pub is_unused: bool,
}

impl Remark {
    /// Something was used, but not as it is written.
    pub fn used(line: usize, text: impl Into<String>) -> Remark {
        Remark { file: PathBuf::new(), line, text: text.into(), is_unused: false }
    }

    /// Something was not used.
    pub fn unused(line: usize, text: impl Into<String>) -> Remark {
        Remark { is_unused: true, ..Remark::used(line, text) }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.as_os_str().is_empty() {
            write!(f, "{}", self.file.display())?;
            f.write_str(if self.line > 0 { ", " } else { ": " })?;
        }
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.text)
    }
}

/// A text as a message shows it: quoted, and not longer than a line.
pub fn shown(text: &str) -> String {
    format!("{:?}", abbreviate(text, SHOWN))
}
