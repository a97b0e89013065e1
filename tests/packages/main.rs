//! The installed program: units, the Debian package in a guest with systemd, the RPM, and the files of `make dist`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod artifacts;
mod deb;
mod rpm;
mod service;
mod units;

use test_rig as rig;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use rig::child;

/// Maximum time of a tool that builds a package or checks a file.
const TOOL_LIMIT: Duration = Duration::from_secs(180);

/// The repository.
const TREE: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a tool, which must succeed, and returns its output: standard output, then standard
/// error.
fn tool(command: &mut Command) -> String {
    let dir = tempfile::tempdir().unwrap();
    let name = command.get_program().to_string_lossy().into_owned();
    let output = child::run(&name, command, dir.path(), TOOL_LIMIT);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.stdout, output.stderr);
    output.stdout + &output.stderr
}

/// The folder of its man pages and completions, where cargo-deb finds it.
static MANUALS: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = program().with_file_name("manuals");
    tool(Command::new(format!("{TREE}/scripts/manuals")).arg(program()).arg(&folder));
    folder
});

/// The path of the program that cargo built for the tests.
fn program() -> &'static Path {
    Path::new(rig::program())
}
