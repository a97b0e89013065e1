//! The commands that write what was recorded for other programs: `history export` and `dump`.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use humantime::format_rfc3339_seconds as utc;

use display_text::plural;
use fabric_history::export::{self, ExportError, ExportFilter, TableFormat};
use fabric_history::file::dump::{Existing, temporary_beside};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Port, Window};
use fabric_history::source::until_known;
use fabric_history::{Reader, Source};
use yaml_config::units::HumanDuration;

use super::super::leftovers::{Leftover, TemporaryFolder};
use super::super::terminal::PrintableWriter;
use super::arguments::{Origin, OriginArgs, Output, WindowArgs, ports};
use super::hosts::{HostsArgs, period};
use crate::exit::Fatal;

/// The arguments of `history export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// What to export [default: counters]
    #[arg(long, value_enum)]
    what: Option<What>,
    /// Output format [default: by the extension of --output, or csv]
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
    /// Export only this node
    ///
    /// With its ports and links. A name or GUID. May be repeated.
    #[arg(long, value_name = "NODE")]
    node: Vec<String>,
    /// Export only this link
    ///
    /// Its id, or one of its ports, such as leaf-0-1/9. May be repeated.
    #[arg(long, value_name = "LINK")]
    link: Vec<String>,
    /// Interval of samples [default: one per sweep]
    ///
    /// Such as 5m. Only for --format openmetrics.
    #[arg(long, value_name = "DURATION")]
    step: Option<HumanDuration>,
    /// Output file [default: standard output]
    ///
    /// Its extension (.csv, .jsonl, .om) selects the format.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    window: WindowArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Increases of counters, one row per reading
    Counters,
    /// Events, one row each
    Events,
    /// Incidents, one row each: events grouped by their cause
    Incidents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// Comma-separated values with a header
    Csv,
    /// One JSON object per line
    Jsonl,
    /// Counter totals and states with timestamps, as Prometheus would have scraped them
    Openmetrics,
}

/// The arguments of `history dump`.
#[derive(Args, Debug)]
pub struct DumpArgs {
    /// File to create
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    window: WindowArgs,
}

impl ExportArgs {
    pub(super) fn run(&self, origin: OriginArgs, clock: &LocalClock) -> Result<Output, Fatal> {
        let format = self.format()?;
        let origin = origin.open()?;
        let hosts = self.hosts.read()?;
        let window = period(&self.window, hosts.as_ref(), clock, origin.source())?;
        let (reader, _folder) = reader(origin, window)?;
        let mut filter = self.filter(window, &reader)?;
        if let Some(hosts) = hosts {
            let scope = hosts.scope(&reader, until_known(&reader, window, clock.time())?)?;
            filter.nodes.extend(scope.hcas());
            filter.ports.extend(scope.ends());
        }
        let began = Instant::now();
        let written = match &self.output {
            None if std::io::stdout().is_terminal() => {
                let out = PrintableWriter::new(std::io::stdout());
                self.write(format, &reader, &filter, out)
            }
            None => self.write(format, &reader, &filter, std::io::stdout()),
            Some(file) => File::create(file)
                .map_err(ExportError::from)
                .and_then(|out| self.write(format, &reader, &filter, out)),
        };
        let to = self.output.as_deref().unwrap_or(Path::new("standard output")).display();
        let summary = match written {
            Ok(what) => format!(
                "{to}: {what} from {} to {} (UTC), written in {:.1} s",
                utc(window.from),
                utc(window.to.min(clock.time())),
                began.elapsed().as_secs_f64(),
            ),
            // The reader closed the pipe.
            Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
                format!("{to}: the reader closed the pipe")
            }
            Err(ExportError::Write(error)) => {
                return Err(Fatal::failed(format!("cannot write to {to}: {error}")));
            }
            Err(error) => return Err(Fatal::failed(error)),
        };
        Ok(Output { text: String::new(), summary })
    }

    fn format(&self) -> Result<ExportFormat, Fatal> {
        let ending = self.output.as_ref().map(|file| file.extension().and_then(|it| it.to_str()));
        let format = match (self.format, ending) {
            (Some(format), _) => format,
            (None, None | Some(Some("csv"))) => ExportFormat::Csv,
            (None, Some(Some("jsonl" | "ndjson"))) => ExportFormat::Jsonl,
            (None, Some(Some("om" | "openmetrics" | "prom" | "txt"))) => ExportFormat::Openmetrics,
            _ => {
                return Err(Fatal::usage(
                    "--output: unknown extension: use .csv, .jsonl or .om, or set --format",
                ));
            }
        };
        let is_totals = format == ExportFormat::Openmetrics;
        if is_totals && matches!(self.what, Some(What::Events | What::Incidents)) {
            return Err(Fatal::usage(
                "--what: events and incidents are not possible in openmetrics: use csv or jsonl",
            ));
        }
        if !is_totals && self.step.is_some() {
            return Err(Fatal::usage("--step: only for --format openmetrics"));
        }
        Ok(format)
    }

    fn filter(&self, window: Window, reader: &Reader) -> Result<ExportFilter, Fatal> {
        let step = self.step.map(Duration::from);
        let mut filter = ExportFilter { step, ..ExportFilter::all(window) };
        for node in &self.node {
            filter.nodes.extend(ports(reader, "--node", node)?.iter().map(|port| port.guid));
        }
        for link in &self.link {
            let ends: Vec<_> = ports(reader, "--link", link)?.iter().map(Port::end).collect();
            // An end names its cable, which has another end.
            let cables = reader.cables(&ends, window)?;
            let others = cables.iter().flat_map(|cable| cable.ends.iter().map(Port::end));
            filter.ports.extend(others.chain(ends));
        }
        Ok(filter)
    }

    fn write(
        &self,
        format: ExportFormat,
        reader: &Reader,
        filter: &ExportFilter,
        out: impl Write,
    ) -> Result<String, ExportError> {
        let mut out = BufWriter::with_capacity(1 << 18, out);
        let format = match format {
            ExportFormat::Openmetrics => {
                let written = export::openmetrics(reader, filter, &mut out)?;
                return Ok(format!(
                    "{} samples of {} series, {} sweeps",
                    written.samples, written.series, written.sweeps
                ));
            }
            ExportFormat::Csv => TableFormat::Csv,
            ExportFormat::Jsonl => TableFormat::JsonLines,
        };
        Ok(match self.what {
            Some(What::Events) => {
                format!("{} events", export::events(reader, filter, format, out)?)
            }
            Some(What::Incidents) => {
                plural(export::incidents(reader, filter, format, out)?, "incident")
            }
            _ => format!("{} rows", export::counters(reader, filter, format, out)?),
        })
    }
}

/// The file to export from. That of a running exporter is fetched to a temporary folder, which is deleted when
/// the second value is dropped, as that of dumps is.
fn reader(origin: Origin, window: Window) -> Result<(Reader, Option<TemporaryFolder>), Fatal> {
    let api = match origin {
        Origin::File(reader, folder) => return Ok((*reader, folder)),
        Origin::Exporter(api) => api,
    };
    // Only its owner can read it.
    let folder = TemporaryFolder::new("fabric-exporter-")?;
    let copy = folder.path().join("copy.db");
    api.dump(window, &copy)?;
    Ok((Reader::open(&copy)?, Some(folder)))
}

impl DumpArgs {
    pub(super) fn run(&self, origin: OriginArgs, clock: &LocalClock) -> Result<Output, Fatal> {
        let file = &*self.output;
        self.ensure_free()?;
        let origin = origin.open()?;
        let window = self.window.window(clock, origin.source())?;
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        match origin {
            Origin::File(reader, _) => drop(reader.dump(window, file, existing, 0)?),
            Origin::Exporter(api) => {
                let part = temporary_beside(file)?;
                let _leftover = Leftover::new(part.path())?;
                api.dump(window, part.path())?;
                // Only a valid history replaces a file.
                Reader::open(part.path())?;
                existing.give(part, file)?;
            }
        }
        let (sweeps, events) = Reader::open(file)?.counts()?;
        let bytes = std::fs::metadata(file).map_or(0, |data| data.len());
        let summary = format!(
            "{}: {sweeps} sweeps and {events} events from {} to {}, {:.1} MB; time zone: {}",
            file.display(),
            clock.format(window.from),
            clock.format(window.to.min(clock.time())),
            bytes as f64 / 1e6,
            clock.zone()
        );
        Ok(Output { text: String::new(), summary })
    }

    /// An error if the file exists, or is a history in use.
    fn ensure_free(&self) -> Result<(), Fatal> {
        let exists_with = |suffix: &str| {
            let mut name = self.output.as_os_str().to_owned();
            name.push(suffix);
            Path::new(&name).exists()
        };
        let problem = if exists_with("-wal") || exists_with("-shm") {
            "is a history in use: use another file"
        } else if exists_with("") && !self.force {
            "already exists (--force overwrites it)"
        } else {
            return Ok(());
        };
        Err(Fatal::usage(format!("--output: {}: {problem}", self.output.display())))
    }
}
