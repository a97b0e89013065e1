//! The container image. Nobody builds it here: its file is read.

use std::path::Path;
use std::process::Command;

use crate::judges::{program, verdict};
use test_rig::rules;

const FILE: &str = "deploy/docker/Dockerfile";

/// The instructions, each on one line.
fn instructions() -> Vec<String> {
    let text = rules::text(&rules::path(FILE));
    let lines: Vec<&str> = text.lines().filter(|it| !it.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    joined.lines().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

/// The stages that are shipped: those that start something.
fn shipped() -> Vec<Vec<String>> {
    let mut stages: Vec<Vec<String>> = Vec::new();
    for line in instructions() {
        if line.starts_with("FROM ") {
            stages.push(Vec::new());
        }
        if let Some(stage) = stages.last_mut() {
            stage.push(line);
        }
    }
    stages.retain(|stage| stage.iter().any(|it| it.starts_with("ENTRYPOINT")));
    stages
}

#[test]
fn hadolint_has_nothing_against_it() {
    let (code, said) = verdict(program("hadolint").arg(rules::path(FILE)));
    assert_eq!((code, said.as_str()), (Some(0), ""), "{said}");
    // It does find what is wrong.
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("Dockerfile");
    std::fs::write(&wrong, rules::text(&rules::path(FILE)).replace("--no-install-recommends", ""))
        .unwrap();
    assert_eq!(verdict(program("hadolint").arg(&wrong)).0, Some(1));
}

#[test]
fn what_is_shipped_is_nobody_s_root() {
    let shipped = shipped();
    assert_eq!(shipped.len(), 2);
    for stage in &shipped {
        let has = |line: &str| stage.iter().any(|it| it == line);
        // Kubernetes' runAsNonRoot understands numbers alone.
        assert!(has("USER 65532:65532"), "{stage:?}");
        assert!(has("EXPOSE 10315"), "{stage:?}");
        assert!(has("ENTRYPOINT [\"/usr/bin/fabric-exporter\"]"), "{stage:?}");
        assert!(has("CMD [\"serve\"]"), "{stage:?}");
    }
    // Whoever names no stage gets the last.
    assert!(shipped[1][0].contains("distroless"), "{:?}", shipped[1]);
}

#[test]
fn it_is_built_with_a_compiler_that_is_new_enough() {
    let version =
        |text: &str| -> Vec<u32> { text.split('.').map(|it| it.parse().unwrap()).collect() };
    let all = instructions();
    let own = all.iter().find_map(|it| it.strip_prefix("ARG RUST_VERSION=")).unwrap();
    assert!(version(own) >= version(env!("CARGO_PKG_RUST_VERSION")), "{own}");
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
}

/// What the build copies is what its .dockerignore lets through, and is all that cargo needs.
#[test]
fn what_is_copied_is_all_that_is_needed() {
    let ignored = rules::text(&rules::path(FILE).with_extension("dockerignore"));
    let mut let_through: Vec<&str> =
        ignored.lines().filter_map(|it| it.strip_prefix('!')).collect();
    let_through.sort_unstable();
    let all = instructions();
    let mut copied: Vec<&str> = Vec::new();
    for line in all.iter().filter(|it| it.starts_with("COPY ") && !it.contains("--from")) {
        let words: Vec<&str> = line.split(' ').collect();
        copied.extend(&words[1..words.len() - 1]);
    }
    copied.sort_unstable();
    assert_eq!(copied, let_through);
    let dir = tempfile::tempdir().unwrap();
    for name in copied {
        copy(&rules::path(name), &dir.path().join(name));
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"]);
    let (code, said) = verdict(cargo.current_dir(dir.path()));
    assert_eq!(code, Some(0), "{said}");
    // No file of the program's takes in another from elsewhere.
    let outside =
        regex_lite::Regex::new(r#"include_(str|bytes)!\(\s*(concat!\(|"(\.\./|/))"#).unwrap();
    let mut folders = vec![rules::path("src"), rules::path("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let found = outside.find(&rules::text(&path)).map(|it| it.as_str().to_owned());
                assert_eq!(found, None, "{}: the image's build needs to copy it", path.display());
            }
        }
    }
}
