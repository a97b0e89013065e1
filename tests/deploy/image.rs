//! The container image with libibverbs. It is not built here: its Dockerfile is checked. (The static image: tests/packages.)

use std::path::Path;
use std::process::Command;

use crate::judges::{program, verdict};
use test_rig::rules;

const FILE: &str = "deploy/docker/Dockerfile";

/// The instructions, one per line.
fn instructions() -> Vec<String> {
    let text = rules::text(&rules::path(FILE));
    let lines: Vec<&str> = text.lines().filter(|it| !it.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    joined.lines().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

#[test]
fn hadolint_passes() {
    let (code, said) = verdict(program("hadolint").arg(rules::path(FILE)));
    assert_eq!((code, said.as_str()), (Some(0), ""), "{said}");
    // It does find mistakes.
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("Dockerfile");
    std::fs::write(&wrong, rules::text(&rules::path(FILE)).replace("--no-install-recommends", ""))
        .unwrap();
    assert_eq!(verdict(program("hadolint").arg(&wrong)).0, Some(1));
}

#[test]
fn image_runs_as_an_unprivileged_user() {
    let all = instructions();
    let last = all.iter().rposition(|it| it.starts_with("FROM ")).unwrap();
    let has = |line: &str| all[last..].iter().any(|it| it == line);
    // Kubernetes' runAsNonRoot needs a numeric user.
    assert!(has("USER 65532:65532"), "{all:?}");
    assert!(has("EXPOSE 10315"), "{all:?}");
    assert!(has("ENTRYPOINT [\"/usr/bin/fabric-exporter\"]"), "{all:?}");
    assert!(has("CMD [\"serve\"]"), "{all:?}");
}

#[test]
fn build_image_has_the_required_compiler() {
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

/// The files that the build copies pass its .dockerignore, and are all that cargo needs.
#[test]
fn all_needed_files_are_copied() {
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
    // No source file includes a file from elsewhere.
    let included = regex_lite::Regex::new(r#"include_(?:str|bytes)!\(\s*"([^"]+)""#).unwrap();
    let roots = [rules::path("src"), rules::path("crates"), rules::path("alerts/runbooks")];
    let mut folders = roots.to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                for found in included.captures_iter(&rules::text(&path)) {
                    let file = path.parent().unwrap().join(&found[1]).canonicalize().unwrap();
                    assert!(
                        roots.iter().any(|root| file.starts_with(root)),
                        "{} includes {}: the image's build needs to copy it",
                        path.display(),
                        file.display()
                    );
                }
            }
        }
    }
}
