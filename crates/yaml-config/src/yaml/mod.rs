//! Reads YAML into `serde` types, with a diagnostic for each error of the file: line, column and key.
//!
//! The text is parsed once, into a tree of values with their positions, and the type is deserialized from the
//! tree. An entry that the type refuses becomes a diagnostic and is removed from the tree, and the type is
//! deserialized again. So all errors of a file are found at once, by plain `serde` types.

mod de;
mod diagnostic;
mod read_error;
mod syntax;
mod tree;

use serde::de::DeserializeOwned;

use de::ValueDeserializer;
use diagnostic::DiagnosticList;
pub(crate) use diagnostic::MAX_DIAGNOSTICS;
pub use diagnostic::{Diagnostic, single_line};
pub use tree::Document;

/// The problem of a file that is not UTF-8, with the line.
pub fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = good.split(|byte| *byte == b'\n').count();
    format!("line {line}: is not UTF-8: save the file as UTF-8")
}

/// What was read of a file.
#[derive(Debug)]
pub struct Parsed<T> {
    /// The value, without the keys and entries that are wrong.
    pub value: T,
    /// What is wrong, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The tree, for the positions of values that turn out to be wrong later.
    pub document: Document,
}

/// Parses a text; one of blanks and comments is the default value.
pub fn parse<T: DeserializeOwned + Default>(text: &str) -> Parsed<T> {
    let (mut document, mut diagnostics) = Document::parse(text);
    let value = deserialize(&mut document, &mut diagnostics);
    Parsed { value, diagnostics: diagnostics.finish(), document }
}

/// Deserializes the type, and reports and removes what it refuses, until it refuses nothing. Each time takes as long as
/// the file is large, so the number of times is limited.
fn deserialize<T: DeserializeOwned + Default>(
    document: &mut Document,
    diagnostics: &mut DiagnosticList,
) -> T {
    loop {
        let Some(root) = ValueDeserializer::root(document) else { return T::default() };
        let error = match T::deserialize(root) {
            Ok(value) => return value,
            Err(error) => error,
        };
        // All unknown keys of a mapping at once: one after the other they would take a time each.
        let is_removed = error.remove_unknown(document, diagnostics);
        if !is_removed && !error.is_reported(document) {
            diagnostics.add(|| error.diagnostic(document));
        }
        if diagnostics.is_full() || !is_removed && !error.remove(document) {
            return T::default();
        }
    }
}

#[cfg(test)]
mod tests;
