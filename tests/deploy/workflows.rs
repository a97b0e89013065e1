//! The workflows of CI and release. They are not run here: GitHub's schema and zizmor check them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::judges::{program, verdict};
use test_rig::rules;

const FOLDER: &str = ".github/workflows";

fn schema(file: &Path) -> Command {
    let mut checker = program("check-jsonschema");
    checker.args(["--builtin-schema", "vendor.github-workflows"]).arg(file);
    checker
}

/// Offline: it does not look up the actions.
fn zizmor(file: &Path) -> Command {
    let mut checker = program("zizmor");
    checker.args(["--offline", "--quiet"]).arg(file);
    checker
}

/// A copy of a workflow with a mistake.
fn with(dir: &Path, right: &str, wrong: &str) -> PathBuf {
    let text = rules::text(&rules::path(FOLDER).join("release.yml"));
    assert!(text.contains(right), "{right}");
    let file = dir.join(wrong.split_whitespace().collect::<String>().replace('/', "-") + ".yml");
    std::fs::write(&file, text.replace(right, wrong)).unwrap();
    file
}

#[test]
fn workflows_are_valid_and_safe() {
    for name in ["ci.yml", "release.yml"] {
        for mut checker in [schema, zizmor].map(|it| it(&rules::path(FOLDER).join(name))) {
            let (code, said) = verdict(&mut checker);
            assert_eq!(code, Some(0), "{name}: {said}");
        }
    }
    // They do find mistakes.
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(verdict(&mut schema(&with(dir.path(), "runs-on:", "runs_on:"))).0, Some(1));
    let unpinned = with(dir.path(), "attest@1e69f48acb82d1966a394da916b4c1698aa569d6", "attest@v4");
    let (code, said) = verdict(&mut zizmor(&unpinned));
    assert!(code != Some(0) && said.contains("unpinned-uses"), "{said}");
}

#[test]
fn workflows_call_what_exists() {
    let called = regex_lite::Regex::new(r"(?m)(?:^| |sudo )(scripts/[a-z-]+|\.ci/run)").unwrap();
    let targets = regex_lite::Regex::new(r"\bmake ([a-z][a-z -]*)").unwrap();
    let makefile = rules::text(&rules::path("Makefile"));
    for name in ["ci.yml", "release.yml"] {
        let text = rules::text(&rules::path(FOLDER).join(name));
        let commands: Vec<&str> = text.lines().filter(|it| it.contains("run:")).collect();
        let commands = commands.join("\n");
        for script in called.captures_iter(&commands) {
            assert!(rules::path(&script[1]).is_file(), "{name}: {}", &script[1]);
        }
        let made: Vec<String> =
            targets.captures_iter(&commands).map(|it| it[1].to_owned()).collect();
        assert!(!made.is_empty() || commands.contains(".ci/run"), "{name}");
        for target in made.iter().flat_map(|it| it.split_whitespace()) {
            assert!(makefile.contains(&format!("\n{target}:")), "{name}: make {target}");
        }
    }
}
