//! `history export`: writes a window for other programs.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};

use fabric_history::export;
use fabric_history::export::{ExportError, ExportFilter, TableFormat};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Port, Window};
use fabric_history::{Reader, Source};

use super::origin::OriginArgs;
use super::window::WindowArgs;
use super::{Exit, Fatal, dump, ports};

/// The arguments of `history export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    #[command(flatten)]
    window: WindowArgs,
    /// What is exported [default: counters]
    #[arg(long, value_enum)]
    what: Option<What>,
    /// How it is written [default: by the ending of -o, or csv]
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
    /// Only of this node, with its ports and links: a name or a GUID; may be repeated
    #[arg(long, value_name = "NODE")]
    node: Vec<String>,
    /// Only of this link: its id, or NODE[PORT]; may be repeated
    #[arg(long, value_name = "LINK")]
    link: Vec<String>,
    /// Of totals (openmetrics) one sample in each of these [default: each sweep's]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    step: Option<Duration>,
    /// Write it there (.csv, .jsonl, .parquet, .om) and not to standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// What counters grew by, a row a reading
    Counters,
    /// What happened, a row an event
    Events,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A head and a line a row
    Csv,
    /// A JSON object a line
    Jsonl,
    /// Apache Parquet
    Parquet,
    /// Totals and states with times, as a Prometheus would have scraped them
    Openmetrics,
}

/// Exports the window; returns the summary.
pub(super) fn run(
    args: &ExportArgs,
    origin: OriginArgs,
    clock: &LocalClock,
) -> Result<String, Fatal> {
    let format = args.format()?;
    let origin = origin.open()?;
    let window = args.window.window(clock, origin.source())?;
    let (reader, _copy) = dump::reader(origin, window)?;
    let filter = args.filter(window, &reader)?;
    let began = std::time::Instant::now();
    let written = match &args.output {
        None => args.write(format, &reader, &filter, Box::new(std::io::stdout())),
        Some(file) => match std::fs::File::create(file) {
            Ok(out) => args.write(format, &reader, &filter, Box::new(out)),
            Err(error) => Err(error.into()),
        },
    };
    let to = || args.output.as_deref().unwrap_or(Path::new("standard output")).display();
    match written {
        Ok(what) => Ok(format!(
            "{}: {what} from {} to {}, in {:.1} s; times are UTC",
            to(),
            utc(filter.window.from),
            utc(filter.window.to.min(clock.time())),
            began.elapsed().as_secs_f64(),
        )),
        // The reader closed the pipe.
        Err(ExportError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(format!("{}: nobody reads any more", to()))
        }
        Err(ExportError::Write(error)) => {
            Err(Fatal::new(Exit::Failed, format!("cannot write to {}: {error}", to())))
        }
        Err(error @ ExportError::NoParquet) => Err(Fatal::new(Exit::Usage, error)),
        Err(error) => Err(Fatal::new(Exit::Failed, error)),
    }
}

fn utc(at: SystemTime) -> humantime::Rfc3339Timestamp {
    humantime::format_rfc3339_seconds(at)
}

impl ExportArgs {
    fn format(&self) -> Result<ExportFormat, Fatal> {
        let ending =
            |file: &PathBuf| file.extension().and_then(|it| it.to_str()).map(str::to_owned);
        let format = match (self.format, self.output.as_ref().map(ending)) {
            (Some(format), _) => format,
            (None, None) => ExportFormat::Csv,
            (None, Some(ending)) => match ending.as_deref() {
                Some("csv") => ExportFormat::Csv,
                Some("jsonl" | "ndjson") => ExportFormat::Jsonl,
                Some("parquet") => ExportFormat::Parquet,
                Some("om" | "openmetrics" | "prom" | "txt") => ExportFormat::Openmetrics,
                _ => {
                    let problem =
                        "--output: ends in none of .csv, .jsonl, .parquet, .om: name a --format";
                    return Err(Fatal::new(Exit::Usage, problem));
                }
            },
        };
        if format == ExportFormat::Openmetrics && self.what == Some(What::Events) {
            let problem = "--what events: OpenMetrics has no events: write csv, jsonl or parquet";
            return Err(Fatal::new(Exit::Usage, problem));
        }
        if format != ExportFormat::Openmetrics && self.step.is_some() {
            return Err(Fatal::new(Exit::Usage, "--step: thins totals alone (openmetrics)"));
        }
        Ok(format)
    }

    fn filter(&self, window: Window, reader: &Reader) -> Result<ExportFilter, Fatal> {
        let mut filter = ExportFilter { step: self.step, ..ExportFilter::all(window) };
        for node in &self.node {
            let guids = ports(reader, "--node", node)?.into_iter().map(|port| port.guid);
            filter.nodes.get_or_insert_with(HashSet::new).extend(guids);
        }
        for link in &self.link {
            let ends: Vec<_> = ports(reader, "--link", link)?.iter().map(Port::end).collect();
            // An end names its cable, which has another end.
            let cables = reader.cables(&ends, filter.window).map_err(super::unreadable)?;
            let others = cables.iter().flat_map(|cable| cable.ends.iter().map(Port::end));
            filter
                .ports
                .get_or_insert_with(HashSet::new)
                .extend(ends.iter().copied().chain(others));
        }
        Ok(filter)
    }

    fn write(
        &self,
        format: ExportFormat,
        reader: &Reader,
        filter: &ExportFilter,
        out: Box<dyn Write + Send>,
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
            ExportFormat::Parquet => TableFormat::Parquet,
        };
        Ok(match self.what {
            Some(What::Events) => {
                format!("{} events", export::events(reader, filter, format, Box::new(out))?)
            }
            _ => format!("{} readings", export::counters(reader, filter, format, Box::new(out))?),
        })
    }
}
