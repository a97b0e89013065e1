//! The programs that judge, and small things that all of the tests need.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clap::Parser;
use fabric_exporter::cli::Cli;
use fabric_exporter::config::{Settings, options::Options};
use serde_json::Value;

use test_rig::{rules, tools};

/// The program of this name, with Python's or in its environment.
pub fn program(name: &str) -> Command {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let folder = MADE.get_or_init(|| tools::python("tests/deploy/requirements.txt"));
    let mut command = Command::new(folder.join(name));
    // Ansible looks for its own programs there.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command
}

/// A script beside this file, run by Python.
pub fn script(name: &str) -> Command {
    let mut command = program("python");
    command.arg(rules::path("tests/deploy").join(name));
    command
}

/// A judge's exit code, and all that it says.
pub fn verdict(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

pub fn yaml(path: &Path) -> Value {
    rules::yaml(path)
}

pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list.
pub fn texts(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer).iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Panics with all of them, if there are any.
pub fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// What the exporter has against such a command line, if anything.
pub fn refused(args: &[String]) -> Option<String> {
    let words = std::iter::once("fabric-exporter").chain(args.iter().map(String::as_str));
    Cli::try_parse_from(words).err().map(|error| error.to_string())
}

/// The settings that a config file of this text makes.
pub fn settings(config: &str) -> Settings {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yml");
    std::fs::write(&file, config).unwrap();
    Settings::load(Options::default(), Some(&file)).unwrap_or_else(|e| panic!("{e}\n{config}"))
}

/// A folder in which Prometheus finds what a configuration in deploy/ expects beside it.
pub fn beside(configs: &[(&str, PathBuf)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, target) in configs {
        std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
    }
    dir
}
