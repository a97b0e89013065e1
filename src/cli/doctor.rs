//! `doctor`: what is missing on this host, and the remedy.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::config::Settings;
use crate::config::options::Options;
use crate::doctor::finding::{Finding, Level};
use crate::doctor::{Configuration, DoctorOptions, Report, examine};

use super::links::tame;
use super::{Exit, Fatal};

/// The arguments of `doctor`: those of `serve`, for that is what it is to work with.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Ask nothing on the wire, not even the subnet manager
    #[arg(long)]
    offline: bool,
    /// Where the device files are [default: /dev]
    #[arg(
        long = "path.dev",
        value_name = "DIR",
        default_value = "/dev",
        hide_default_value = true
    )]
    dev: PathBuf,
    /// YAML file with the settings of `serve`; a flag wins over its key
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// What `--json` writes.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// What to mend first.
    first: Option<&'a Finding>,
    exit_code: u8,
}

/// Looks at the host, tells what was found, and ends with what that comes to.
pub fn run(args: DoctorArgs) -> Result<Option<Exit>, Fatal> {
    let json = args.json;
    let report = examine(options(args)?);
    let exit = exit(&report);
    match write(&report, exit, json) {
        // Whoever reads has enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let problem = format!("cannot write to standard output: {error}");
            Err(Fatal::new(Exit::Failed, problem))
        }
        _ => Ok(exit),
    }
}

fn options(args: DoctorArgs) -> Result<DoctorOptions, Fatal> {
    let DoctorArgs { offline, dev, config_file: file, options, .. } = args;
    let loaded = match &file {
        Some(path) => Settings::load(options.clone(), Some(path)).map_err(|e| e.lines().join("; ")),
        None => Err(String::new()),
    };
    let (settings, problem) = match loaded {
        Ok(settings) => (settings, None),
        // A file that is wrong is a finding; flags that are wrong by themselves cannot be gone by.
        Err(problem) => {
            let usage = |error| Fatal::new(Exit::Usage, error);
            (Settings::load(options, None).map_err(usage)?, file.is_some().then_some(problem))
        }
    };
    let configuration = Configuration { settings, file, problem };
    Ok(DoctorOptions { configuration, dev, offline })
}

/// What the findings come to; `None` where all is well.
fn exit(report: &Report) -> Option<Exit> {
    match report.worst {
        _ if !report.has_rdma => Some(Exit::NoDevice),
        Level::Ok | Level::Note => None,
        Level::Warn => Some(Exit::Wanting),
        Level::Bad => Some(Exit::Sick),
    }
}

fn write(report: &Report, exit: Option<Exit>, json: bool) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        let exit_code = exit.map_or(0, |exit| exit as u8);
        serde_json::to_writer_pretty(&mut out, &Told { report, first: report.first(), exit_code })?;
        writeln!(out)?;
    } else {
        table(&mut out, report)?;
    }
    out.flush()
}

fn mark(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Note => "--",
        Level::Warn => " !",
        Level::Bad => "!!",
    }
}

/// What is wider than this has its finding in the next line, so that one long name moves no column.
const WIDEST: usize = 28;

/// The findings for people: a paragraph a subject, and what to do first.
fn table(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let tamed = |text: &str| text.chars().map(tame).collect::<String>();
    for findings in report.findings.chunk_by(|a, b| a.subject == b.subject) {
        let Some(first) = findings.first() else { continue };
        writeln!(out, "{}", first.subject.label())?;
        let widths = findings.iter().map(|finding| finding.what.chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
        let blank = " ".repeat(width + 8);
        for finding in findings {
            let what = tamed(&finding.what);
            write!(out, "  {}  {what:<width$}", mark(finding.level))?;
            if what.chars().count() > WIDEST {
                write!(out, "\n{}", &blank[2..])?;
            }
            writeln!(out, "  {}", tamed(&finding.found))?;
            for (name, text) in [("wanted", &finding.wanted), ("mend", &finding.mend)] {
                if let Some(text) = text {
                    writeln!(out, "{blank}{name}: {}", tamed(text))?;
                }
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", tamed(&summary(report)))
}

/// The last line: how bad it is, and what to do first.
fn summary(report: &Report) -> String {
    let count = |level| report.findings.iter().filter(|finding| finding.level == level).count();
    let Some(first) = report.first() else {
        return "all is well".into();
    };
    let counts = format!("{} bad, {} to look at", count(Level::Bad), count(Level::Warn));
    let place = format!("{}, {}", first.subject.label(), first.what);
    let mend = first.mend.as_deref().unwrap_or(&first.found);
    format!("{counts}; first: {place}: {mend}")
}
