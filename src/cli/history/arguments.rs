//! Which history is read, and which period of it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::config::Settings;
use crate::config::options::Options;
use crate::history_client::HistoryClient;
use crate::remote::Access;
use fabric_dumps::Dump;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Port, Window};
use fabric_history::settings::HistorySettings;
use fabric_history::source::SourceError;
use fabric_history::{HistoryError, Reader, Recorder, Source};
use fabric_observation::RecorderMetrics;
use ib_fabric::reference::Reference;

use crate::cli::dumps::{self, ReadingArgs};
use crate::cli::leftovers::TemporaryFolder;
use crate::exit::Fatal;

/// The window's extent before and after `--at`.
pub(super) const AROUND: Duration = Duration::from_secs(10 * 60);

/// The default length of the window.
pub(super) const DEFAULT_LENGTH: Duration = Duration::from_secs(24 * 3600);

/// A file whose last sweep is older than this is not being recorded.
pub(super) const STALE_AFTER: Duration = Duration::from_secs(3600);

/// How long before the first sweep, and after the last one, there are events of the exporter itself.
pub(super) const MARGIN: Duration = Duration::from_secs(10);

/// Which history is read.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Source")]
pub struct OriginArgs {
    /// History file (--history.file of the "serve" command)
    ///
    /// It can be in use by a running exporter.
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Address of a running exporter that records a history
    ///
    /// Such as http://127.0.0.1:10315.
    #[arg(long, visible_alias = "source", value_name = "URL", global = true)]
    url: Option<String>,
    #[command(flatten)]
    access: Access,
    /// Dumps of other tools: files or directories
    ///
    /// The formats are those of "links --from". Each dump counts as one sweep.
    #[arg(id = "dumps", long = "from", value_name = "PATH", num_args = 1.., global = true, help_heading = "Source")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// The arguments that name a window.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Period")]
pub struct WindowArgs {
    /// Start of the period [default: 24h before --until]
    ///
    /// 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 as in 2026-11-21T03:12:00Z.
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    pub(super) since: Option<String>,
    /// End of the period [default: the end of the data]
    ///
    /// In the formats of --since.
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    until: Option<String>,
    /// Period from 10 minutes before to 10 minutes after this time
    ///
    /// Instead of --since and --until, in the same formats.
    #[arg(long, value_name = "TIME")]
    pub(super) at: Option<String>,
}

/// What a command prints: the result, and a line on standard error.
pub(super) struct Output {
    pub text: String,
    pub summary: String,
}

impl From<SourceError> for Fatal {
    fn from(error: SourceError) -> Self {
        Fatal::failed(error)
    }
}

impl From<HistoryError> for Fatal {
    fn from(error: HistoryError) -> Self {
        SourceError::from(error).into()
    }
}

/// The history of a file or of an exporter.
pub(super) enum Origin {
    /// A file on this host; that of dumps is in a directory which is deleted in the end.
    File(Box<Reader>, Option<TemporaryFolder>),
    /// A running exporter; it also makes copies of its file.
    Exporter(HistoryClient),
}

impl Origin {
    pub(super) fn source(&self) -> &dyn Source {
        match self {
            Origin::File(reader, _) => &**reader,
            Origin::Exporter(api) => api,
        }
    }
}

impl OriginArgs {
    /// Whether dumps are read.
    pub(super) fn has_dumps(&self) -> bool {
        !self.from.is_empty()
    }

    /// Opens the history that the flags name.
    pub(super) fn open(self) -> Result<Origin, Fatal> {
        match (self.from.is_empty(), self.file, self.url) {
            (false, None, None) => {
                let read = dumps::read(&self.from, &self.reading)?;
                for note in dumps::notes(&read).iter().chain(&dumps::unused(&read)) {
                    let _ = writeln!(std::io::stderr(), "{note}");
                }
                import(&read.dumps)
            }
            (true, Some(file), None) => Ok(Origin::File(Box::new(Reader::open(&file)?), None)),
            (true, None, Some(url)) => HistoryClient::new(&url, &self.access)
                .map(Origin::Exporter)
                .map_err(|error| Fatal::usage(format!("--url: {error}"))),
            (true, None, None) => Err(Fatal::usage(
                "--file, --url or --from is required: a history file, an exporter, or dumps",
            )),
            (false, ..) => Err(Fatal::usage("--from excludes --file and --url: use one of them")),
            (true, Some(_), Some(_)) => {
                Err(Fatal::usage("--file and --url exclude each other: use one of them"))
            }
        }
    }
}

/// Records dumps in a temporary file.
pub(super) fn import(dumps: &[Dump]) -> Result<Origin, Fatal> {
    let folder = TemporaryFolder::new("fabric-exporter-")?;
    let file = folder.path().join("dumps.db");
    // Whatever is in dumps is kept.
    let forever = Duration::from_secs(100 * 365 * 24 * 3600);
    let settings = HistorySettings {
        traffic_retention: forever,
        retention: forever,
        ..HistorySettings::new(file.clone())
    };
    let metrics = Arc::<RecorderMetrics>::default();
    let mut recorder = Recorder::new(settings, Arc::clone(&metrics));
    let defaults = Settings::load(Options::default(), None).map_err(Fatal::usage)?;
    let times = dumps.iter().map(|dump| dump.taken_at);
    let mut times = times.chain(std::iter::repeat(SystemTime::now()));
    dumps::judge(dumps, &defaults, |observation| {
        if let Some(at) = times.next() {
            recorder.import(observation, at);
        }
    })?;
    drop(recorder);
    if metrics.get().errors.iter().any(|count| *count > 0) {
        return Err(Fatal::failed("the dumps could not be recorded: see the log"));
    }
    Ok(Origin::File(Box::new(Reader::open(&file)?), Some(folder)))
}

impl WindowArgs {
    /// Whether any of them is given.
    pub(super) fn is_given(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.at.is_some()
    }

    /// The start, if one is given.
    pub(super) fn start(&self, clock: &LocalClock) -> Result<Option<SystemTime>, Fatal> {
        self.since.as_ref().map(|text| parse_time(clock, "--since", text)).transpose()
    }

    pub(super) fn window(&self, clock: &LocalClock, source: &dyn Source) -> Result<Window, Fatal> {
        let parse = |flag, text: &Option<String>| {
            text.as_ref().map(|text| parse_time(clock, flag, text)).transpose()
        };
        if let Some(at) = parse("--at", &self.at)? {
            let from = at.checked_sub(AROUND).unwrap_or(SystemTime::UNIX_EPOCH);
            return Ok(Window { from, to: at + AROUND });
        }
        let (since, until) = (parse("--since", &self.since)?, parse("--until", &self.until)?);
        let known = source.span()?;
        // A copy has whole hours, and was made for one period; it may have been recorded further.
        let copied = source.copied()?.filter(|copied| {
            let is_longer = known.last.is_some_and(|last| last > copied.to + STALE_AFTER);
            since.is_none() && until.is_none() && !is_longer
        });
        if let Some(copied) = copied {
            return Ok(copied);
        }
        // Of a file that is not being recorded, the last recorded day is shown.
        let is_stale = |last: &SystemTime| *last + STALE_AFTER < clock.time();
        let to = match known.last.filter(is_stale) {
            Some(last) if since.is_none_or(|since| since <= last) => until.unwrap_or(last + MARGIN),
            _ => until.unwrap_or_else(|| open_end(clock)),
        };
        let from = since.unwrap_or_else(|| {
            let end = known.last.unwrap_or(clock.time()).min(to);
            let day = end.checked_sub(DEFAULT_LENGTH).unwrap_or(SystemTime::UNIX_EPOCH);
            // With the exporter's start, which is before the first sweep.
            let first = known.first.and_then(|first| first.checked_sub(MARGIN));
            first.map_or(day, |first| first.max(day)).min(end)
        });
        if from > to {
            return Err(Fatal::usage("--until is before --since"));
        }
        Ok(Window { from, to })
    }
}

/// The end of a window without `--until`: a simulated clock may be ahead of the host's.
pub(super) fn open_end(clock: &LocalClock) -> SystemTime {
    open_end_at(clock.time())
}

/// The same at another time than that of the start of the command.
pub(super) fn open_end_at(now: SystemTime) -> SystemTime {
    now + Duration::from_secs(365 * 24 * 3600)
}

pub(super) fn parse_time(clock: &LocalClock, flag: &str, text: &str) -> Result<SystemTime, Fatal> {
    clock.parse(text).map_err(|error| Fatal::usage(format!("{flag}: {error}")))
}

/// The ports that a name means; an error if there are none.
pub(super) fn ports(source: &dyn Source, what: &str, name: &str) -> Result<Vec<Port>, Fatal> {
    let ports = source.ports(name)?;
    if ports.is_empty() {
        let mut problem = format!("{what}: {name:?} not found in {}", source.name());
        if Reference::new(name).lid.is_some() {
            problem += "; a history has no LIDs: use a name or GUID, or --url of the exporter for a current LID";
        }
        return Err(Fatal::usage(problem));
    }
    Ok(ports)
}
