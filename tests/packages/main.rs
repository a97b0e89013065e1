//! The program as its users install it: units, a Debian package and an RPM, the first in a guest with
//! a systemd of its own.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod deb;
mod rpm;
mod service;
mod units;

use test_rig as rig;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rig::child;

/// How long a tool may take to pack the program, or to look at a file.
const TOOL_LIMIT: Duration = Duration::from_secs(180);

/// The project's own folder.
const TREE: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a tool to its end, which must be a good one, and gives what it printed: standard output, then
/// standard error.
fn tool(command: &mut Command) -> String {
    let dir = tempfile::tempdir().unwrap();
    let name = command.get_program().to_string_lossy().into_owned();
    let output = child::run(&name, command, dir.path(), TOOL_LIMIT);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.stdout, output.stderr);
    output.stdout + &output.stderr
}

/// The program's file, as cargo built it for the tests.
fn program() -> &'static Path {
    Path::new(rig::program())
}
