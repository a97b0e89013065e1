//! Writing to standard output.

use std::io::{ErrorKind, Write};

use exposition::unseen;
use serde::Serialize;

use crate::exit::Fatal;

/// As indented JSON. It may be written to a terminal: names come from devices and from the network.
pub(super) fn as_json(value: &impl Serialize) -> Result<String, Fatal> {
    let text = serde_json::to_string_pretty(value).map_err(Fatal::failed)? + "\n";
    Ok(unseen::json(&text).into_owned())
}

/// Writes to standard output; `false` if its reader closed the pipe, which is no error.
pub(super) fn print(text: &[u8]) -> Result<bool, Fatal> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Fatal::failed(format!("cannot write to standard output: {error}"))),
    }
}
