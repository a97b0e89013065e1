//! Packages from npm, pinned by a lock file beside the tests that use them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::require;

/// A folder in the target directory with the files of `source`, a folder of the project, and with the
/// packages that its lock file names. They are fetched once.
pub fn workshop(source: &str) -> PathBuf {
    // Tests of one program ask at the same time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let name = source.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_string_lossy();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace('/', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut pinned = Vec::new();
    for entry in std::fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        let content = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap();
        if name == "package-lock.json" {
            pinned.clone_from(&content);
        }
        std::fs::write(folder.join(name), content).unwrap();
    }
    let stamp = folder.join("node_modules/installed");
    if std::fs::read(&stamp).ok().as_ref() != Some(&pinned) {
        let output = Command::new(require("npm"))
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "npm ci: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(stamp, pinned).unwrap();
    }
    folder
}
