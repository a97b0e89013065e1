//! The paths of the repository, its build directory and the program under test.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The root of the repository.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.canonicalize().expect("the repository is where it was when the tests were built")
    });
    &ROOT
}

/// The folder of this build's profile, such as `target/debug`: test binaries are in `deps` below it.
fn profile_dir() -> PathBuf {
    let binary = std::env::current_exe().expect("the path of the running test");
    let dir = binary.parent().expect("a folder");
    if dir.ends_with("deps") { dir.parent().unwrap_or(dir).to_owned() } else { dir.to_owned() }
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    profile_dir().parent().expect("the target directory").to_owned()
}

/// A folder below the target directory for what tests install or leave for each other.
pub fn target_tmp() -> PathBuf {
    target().join("tmp")
}

/// The program under test: that of `PROGRAM_UNDER_TEST`, or the one that cargo builds with the integration tests,
/// beside them, with the features of the tests.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let given = std::env::var_os("PROGRAM_UNDER_TEST").map(|path| root().join(path));
        let path = given.unwrap_or_else(|| profile_dir().join("fabric-exporter"));
        assert!(path.exists(), "{}: not built; run the tests by cargo test", path.display());
        path.into_os_string().into_string().expect("a path in UTF-8")
    });
    &PROGRAM
}
