//! The programs that check the files, and helpers of all tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clap::Parser;
use fabric_exporter::cli::Cli;
use fabric_exporter::config::{Settings, options::Options};
use serde_json::Value;

use test_rig::{rules, tools};

/// The path of a program, with Python's or in its environment.
pub fn program(name: &str) -> Command {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let folder = MADE.get_or_init(|| tools::python("tests/deploy/requirements.txt"));
    let mut command = Command::new(folder.join(name));
    // Ansible looks for its own programs there.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command
}

/// A script next to this file, run by Python.
pub fn script(name: &str) -> Command {
    let mut command = program("python");
    command.arg(rules::path("tests/deploy").join(name));
    command
}

/// The exit code of a checker, and its output.
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

/// Panics with all problems, if there are any.
pub fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// The exporter's error message for a command line, if any.
pub fn refused(args: &[String]) -> Option<String> {
    let words = std::iter::once("fabric-exporter").chain(args.iter().map(String::as_str));
    Cli::try_parse_from(words).err().map(|error| error.to_string())
}

/// The settings of a config file with this text.
pub fn settings(config: &str) -> Settings {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yml");
    std::fs::write(&file, config).unwrap();
    Settings::load(Options::default(), Some(&file)).unwrap_or_else(|e| panic!("{e}\n{config}"))
}

/// A rule file with other names for the severities critical, warning and info.
pub fn with_severities(file: &Path, [critical, warning, info]: [&str; 3]) -> Value {
    let level = regex_lite::Regex::new(r"\b(critical|warning|info)\b").unwrap();
    let renamed = |found: &regex_lite::Captures<'_>| match &found[1] {
        "critical" => critical.to_owned(),
        "warning" => warning.to_owned(),
        _ => info.to_owned(),
    };
    let text: String = (rules::text(file).lines())
        .map(|line| {
            if line.trim_start().starts_with("severity:") {
                format!("{}\n", level.replace_all(line, renamed))
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    serde_saphyr::from_str(&text).unwrap()
}

/// A folder in which Prometheus finds the files that a configuration in deploy/ expects next to it.
pub fn beside(configs: &[(&str, PathBuf)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, target) in configs {
        std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
    }
    dir
}
