//! Checkers from npm and PyPI: each set is pinned with hashes in a folder of the tests, and installed once, below
//! the target directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use super::require;

fn rooted(folder: &str) -> PathBuf {
    crate::paths::root().join(folder)
}

fn done(what: &str, output: &Output) {
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&said));
}

/// Whether a folder was made from this input; otherwise it is deleted.
fn is_made_of(stamp: &Path, pinned: &[u8]) -> bool {
    std::fs::read(stamp).is_ok_and(|made_of| made_of == pinned)
}

/// Copies a folder of the tests that has a `package-lock.json`, and installs its packages.
pub fn npm(source: &str) -> PathBuf {
    // Tests of one process may call this at the same time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = crate::paths::target_tmp().join(source.replace('/', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(rooted(source)).unwrap() {
        let path = entry.unwrap().path();
        let copy = folder.join(path.file_name().unwrap());
        // Programs that another test started may read a copy right now: it is never written again.
        if path.is_file()
            && std::fs::read(&path).unwrap() != std::fs::read(&copy).unwrap_or_default()
        {
            std::fs::copy(&path, copy).unwrap();
        }
    }
    let pinned = std::fs::read(folder.join("package-lock.json")).unwrap();
    let stamp = folder.join("node_modules/installed");
    if !is_made_of(&stamp, &pinned) {
        let installed = Command::new(require("npm"))
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"])
            .current_dir(&folder)
            .output()
            .unwrap();
        done("npm ci", &installed);
        std::fs::write(stamp, pinned).unwrap();
    }
    folder
}

/// The `bin` folder of a virtual environment with the packages of a `requirements.txt` of the tests.
pub fn python(requirements: &str) -> PathBuf {
    let requirements = rooted(requirements);
    let pinned = std::fs::read(&requirements).unwrap();
    let folder = crate::paths::target_tmp().join("python");
    let programs = folder.join("bin");
    let stamp = folder.join("installed");
    if !is_made_of(&stamp, &pinned) {
        let _ = std::fs::remove_dir_all(&folder);
        let made = Command::new(require("python3")).args(["-m", "venv"]).arg(&folder).output();
        done("python3 -m venv (apt-get install python3-venv)", &made.unwrap());
        let installed = Command::new(programs.join("python"))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            // Compiling modules on first use is faster than compiling all.
            .args(["--no-compile", "--only-binary", ":all:", "--require-hashes", "--requirement"])
            .arg(requirements)
            .output();
        done("pip install", &installed.unwrap());
        std::fs::write(stamp, pinned).unwrap();
    }
    programs
}

/// The output of a program that reads a text; panics with all its output if it fails.
pub fn answer(command: &mut Command, text: &str) -> String {
    let name = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut input = child.stdin.take().unwrap();
    let text = text.to_owned();
    // Writes and reads at once: neither side waits for the other with a full pipe.
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut input, text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
    done(&name, &output);
    String::from_utf8(output.stdout).unwrap()
}
