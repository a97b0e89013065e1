//! `doctor`: checks the prerequisites on this host, and prints a fix for each problem.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use crate::config::Settings;
use crate::config::options::Options;
use crate::doctor::{DoctorOptions, Level, Report, examine};
use display_text::plural;

use super::terminal::{Color, ColorChoice, Progress, printable};
use crate::cli::output::{as_json, print};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter doctor
  sudo -u fabric-exporter fabric-exporter doctor --config.file=/etc/fabric-exporter/config.yml
  fabric-exporter doctor --offline --json

Run it as the user of the exporter. Exit codes: 0 no problems; 3 this host has neither an RDMA
device nor an RDMA adapter; 5 the exporter works, with warnings; 6 the exporter cannot work until
something is fixed.";

/// The arguments of `doctor`: those of `serve`, which it checks, and more.
#[derive(Args, Debug)]
#[command(
    after_long_help = EXAMPLES,
    // A single check does not depend on them.
    mut_arg("interval", |arg| arg.hide_short_help(true)),
    mut_arg("host_interval", |arg| arg.hide_short_help(true)),
    mut_arg("level", |arg| arg.hide_short_help(true)),
)]
pub struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Send no MADs, not even to the subnet manager
    #[arg(long)]
    offline: bool,
    /// Directory of the device files [default: /dev]
    #[arg(long = "path.dev", value_name = "DIR", hide_short_help = true)]
    dev: Option<PathBuf>,
    /// Config file of the "serve" command
    ///
    /// Options override its keys.
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Checks the host, prints the report, and returns the exit code.
pub fn run(args: DoctorArgs, color: ColorChoice) -> Result<u8, Fatal> {
    let json = args.json;
    let options = options(args)?;
    let progress = Progress::start("checking this host and the fabric", None);
    let report = examine(options);
    drop(progress);
    let mut out = Vec::new();
    if json {
        out = as_json(&report)?.into_bytes();
    } else {
        write_text(&mut out, &report, color.is_on()).map_err(Fatal::failed)?;
    }
    print(&out)?;
    Ok(report.exit_code)
}

fn options(args: DoctorArgs) -> Result<DoctorOptions, Fatal> {
    let DoctorArgs { offline, dev, config_file: file, options, .. } = args;
    let loaded = Settings::load(options.clone(), file.as_deref());
    let (settings, problem) = match loaded {
        Ok(settings) => (settings, None),
        // An error in the file is a finding; with an error in the flags nothing can be checked.
        Err(error) => {
            let settings = Settings::load(options, None).map_err(Fatal::usage)?;
            (settings, Some(error.lines().join("; ")))
        }
    };
    let dev = dev.unwrap_or_else(|| "/dev".into());
    Ok(DoctorOptions { settings, file, problem, dev, offline })
}

/// After a wider name the finding is in the next line, so that one long name does not widen the column.
const MAX_NAME_WIDTH: usize = 28;

/// The findings as text: a paragraph for each subject, and what to fix first.
fn write_text(out: &mut impl Write, report: &Report, colors: bool) -> io::Result<()> {
    for findings in report.findings.chunk_by(|a, b| a.subject == b.subject) {
        let Some(first) = findings.first() else { continue };
        writeln!(out, "{}", first.subject.label())?;
        let widths = findings.iter().map(|finding| finding.what.chars().count());
        let width = widths.filter(|width| *width <= MAX_NAME_WIDTH).max().unwrap_or(0);
        let blank = " ".repeat(width + 8);
        for finding in findings {
            let what = printable(&finding.what);
            let level = Color::paint(color_of(finding.level), finding.level.label(), colors);
            write!(out, "  {level}  {what:<width$}")?;
            if what.chars().count() > MAX_NAME_WIDTH {
                write!(out, "\n{}", &blank[2..])?;
            }
            writeln!(out, "  {}", printable(&finding.found))?;
            for (name, text) in [("expected", &finding.expected), ("fix", &finding.fix)] {
                if let Some(text) = text {
                    writeln!(out, "{blank}{name}: {}", printable(text))?;
                }
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", printable(&summary(report)))
}

fn color_of(level: Level) -> Option<Color> {
    match level {
        Level::Ok => Some(Color::Good),
        Level::Note => None,
        Level::Warn => Some(Color::Warning),
        Level::Bad => Some(Color::Bad),
    }
}

/// The last line: the number of problems, and what to fix first.
fn summary(report: &Report) -> String {
    let count = |level| report.findings.iter().filter(|finding| finding.level == level).count();
    let Some(first) = &report.first else { return "no problems found".into() };
    let errors = plural(count(Level::Bad), "error");
    let warnings = plural(count(Level::Warn), "warning");
    let item = format!("{}, {}", first.subject.label(), first.what);
    let fix = first.fix.as_deref().unwrap_or(&first.found);
    format!("{errors} (!!), {warnings} (!); fix first: {item}: {fix}")
}
