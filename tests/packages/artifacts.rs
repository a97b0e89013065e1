//! The files of `make dist`: the tarball and the container image, packed as there. `make check-dist` builds the static
//! program and runs it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{MANUALS, TREE, deb, program, tool};
use test_rig::require;

/// Packs with a script, and returns the file. `name` is that of the folder in the tarball, or the version of the image.
fn pack(kind: &str, program: &Path, name: &str, dir: &Path, umask: &str) -> PathBuf {
    let file = dir.join(format!("{kind}-{umask}"));
    let arguments = match kind {
        // In place of the SBOM.
        "tarball" => vec![Path::new(TREE).join("Cargo.lock"), MANUALS.clone()],
        _ => vec![PathBuf::from("arm64")],
    };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", &format!("umask {umask}; exec \"$@\"")]).arg("sh");
    shell.arg(Path::new(TREE).join("scripts").join(kind)).arg(program).arg(name);
    // Also without git.
    tool(shell.args(arguments).arg(&file).env("SOURCE_DATE_EPOCH", "1700000000"));
    file
}

fn unpack(archive: &Path, dir: &Path) {
    std::fs::create_dir(dir).unwrap();
    tool(Command::new(require("tar")).arg("-xf").arg(archive).arg("-C").arg(dir));
}

/// Names below a folder; for files of the Debian package, where the tarball has them.
fn place(packaged: &str) -> String {
    let file = packaged.trim_end_matches(".gz");
    let (folder, name) = file.rsplit_once('/').unwrap();
    match folder {
        "usr/bin" => name.to_owned(),
        "usr/share/man/man1" => format!("man/{name}"),
        "usr/share/bash-completion/completions" => format!("completions/{name}.bash"),
        "usr/share/zsh/vendor-completions" | "usr/share/fish/vendor_completions.d" => {
            format!("completions/{name}")
        }
        "etc/fabric-exporter" => format!("etc/{name}"),
        "etc/default" => format!("etc/{name}.default"),
        "usr/lib/sysusers.d" => format!("sysusers/{name}"),
        _ if folder.ends_with("udev/rules.d") => format!("udev/{name}"),
        _ if folder.ends_with("systemd/system") => format!("systemd/{name}"),
        _ => {
            let documents = file.strip_prefix("usr/share/doc/fabric-exporter/");
            match documents {
                Some("copyright") => "LICENSE".to_owned(),
                Some(top @ ("README.md" | "CHANGELOG.md")) => top.to_owned(),
                Some(document) => format!("docs/{document}"),
                None => file.trim_start_matches("usr/share/fabric-exporter/").to_owned(),
            }
        }
    }
}

#[test]
fn tarball_has_the_files_of_the_packages() {
    let dir = tempfile::tempdir().unwrap();
    let packed = pack("tarball", program(), "here", dir.path(), "022");
    let root = dir.path().join("root");
    unpack(&packed, &root);
    let mut find = Command::new(require("find"));
    let found = tool(find.arg(root.join("here")).args(["-type", "f", "-printf", "%P\n"]));
    let mut files: BTreeSet<String> = found.lines().map(str::to_owned).collect();
    for own in ["sbom.cdx.json", "licenses/LGPL-2.1"] {
        assert!(files.remove(own), "{own}");
    }
    let packaged: BTreeSet<String> = deb::contents().iter().map(|file| place(file)).collect();
    let differing: Vec<_> = files.symmetric_difference(&packaged).collect();
    assert!(differing.is_empty(), "tarball and package have different files: {differing:#?}");
    // It runs where it was unpacked.
    let version = tool(Command::new(root.join("here/fabric-exporter")).arg("--version"));
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn packing_is_reproducible() {
    let dir = tempfile::tempdir().unwrap();
    let small = dir.path().join("program");
    std::fs::write(&small, "a program").unwrap();
    for kind in ["tarball", "image"] {
        let files = ["022", "077"].map(|umask| pack(kind, &small, "0.1.0", dir.path(), umask));
        let [one, two] = files.map(|file| std::fs::read(file).unwrap());
        assert!(one == two, "{kind}");
    }
}

/// The JSON of a blob, whose size and digest must be those of its descriptor.
fn blob(image: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let path = image.join("blobs/sha256").join(digest);
    assert_eq!(path.metadata().unwrap().len(), descriptor["size"].as_u64().unwrap());
    let sum = tool(Command::new(require("sha256sum")).arg(&path));
    assert!(sum.starts_with(digest), "{sum}");
    path
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn image_has_only_the_program_and_runs_as_an_unprivileged_user() {
    let dir = tempfile::tempdir().unwrap();
    let small = dir.path().join("program");
    std::fs::write(&small, "a program").unwrap();
    let packed = pack("image", &small, "0.1.0", dir.path(), "077");
    let image = dir.path().join("image");
    unpack(&packed, &image);
    let index = json(&image.join("index.json"));
    let manifest = json(&blob(&image, &index["manifests"][0]));
    let config = blob(&image, &manifest["config"]);
    let layer = blob(&image, &manifest["layers"][0]);
    // For older Docker.
    let legacy = json(&image.join("manifest.json"));
    assert_eq!(legacy[0]["Config"].as_str().map(|it| image.join(it)), Some(config.clone()));
    assert_eq!(legacy[0]["Layers"][0].as_str().map(|it| image.join(it)), Some(layer.clone()));
    let config = json(&config);
    assert_eq!(config["architecture"], "arm64");
    // Kubernetes' runAsNonRoot needs a numeric user.
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/fabric-exporter");
    let mut tar = Command::new(require("tar"));
    let listing = tool(tar.args(["--numeric-owner", "-tvf"]).arg(&layer));
    let entries: BTreeSet<String> = listing.lines().map(entry).collect();
    let expected = [
        "drwxrwxrwt 0/0 tmp/",
        "drwxr-xr-x 0/0 usr/",
        "drwxr-xr-x 0/0 usr/bin/",
        "-rwxr-xr-x 0/0 usr/bin/fabric-exporter",
        "drwxr-xr-x 0/0 usr/share/",
        "drwxr-xr-x 0/0 usr/share/doc/",
        "drwxr-xr-x 0/0 usr/share/doc/fabric-exporter/",
        "-rw-r--r-- 0/0 usr/share/doc/fabric-exporter/LGPL-2.1",
        "-rw-r--r-- 0/0 usr/share/doc/fabric-exporter/LICENSE",
        "drwxr-xr-x 0/0 var/",
        "drwxr-xr-x 0/0 var/lib/",
        // A new volume there gets this owner.
        "drwxr-x--- 65532/65532 var/lib/fabric-exporter/",
    ];
    assert_eq!(entries, expected.map(str::to_owned).into());
}

/// Mode, owner and name in a line of `tar -tv`.
fn entry(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    format!("{} {} {}", words[0], words[1], words[words.len() - 1])
}
