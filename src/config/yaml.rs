//! YAML that a site writes, and what is wrong with it in one line.

use serde::de::DeserializeOwned;

/// Reads a text; one of blanks and comments alone says nothing.
pub fn read<T: DeserializeOwned + Default>(text: &str) -> Result<T, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
        return Ok(T::default());
    }
    // The first line says what and where; the picture of the place below it is left out, for an
    // error is one line.
    serde_saphyr::from_str(text).map_err(|error| {
        let told = error.to_string();
        let line = told.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    })
}
