//! From files to readings: each has one format, one time, and the file that it is from.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use display_text::plural;

use crate::contents::Contents;
use crate::format::{Format, damaged_format};
use crate::front::{self, MAX_BYTES};
use crate::ibnetdiscover;
use crate::lines::{Line, Lines};
use crate::problem::Problem;
use crate::remark::Remark;
use crate::telemetry;

/// The most nodes: a subnet has 49,151 unicast LIDs (IBA 4.1.3), and each node needs one. A node takes some 10 kB until it
/// is evaluated, and in a dense format 100 bytes of its file.
const MAX_NODES: usize = 100_000;

/// The most readings: each is compared with all others.
const MAX_READINGS: usize = 20_000;

/// Why dumps could not be read, in one line.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// A file or folder cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What was read is no dump, or not all of one.
    #[error("{0}")]
    Invalid(String),
}

impl DumpError {
    /// A file, and what is wrong with it.
    pub(crate) fn invalid(path: &Path, problem: impl Display) -> Self {
        DumpError::Invalid(format!("{}: {problem}", path.display()))
    }
}

/// Why a file is no dump.
const UNKNOWN_FORMAT: &str = "unknown format: expected a file of ibdiagnet2 (db_csv, lst, net_dump, pm, cables) or the output of \
     ibnetdiscover, iblinkinfo, ibqueryerrors or perfquery, or UFM Telemetry (CSV, Prometheus)";

/// The offsets of time zones are at most 14 hours, and a command takes some minutes.
pub const MAX_ZONE: Duration = Duration::from_secs(14 * 3600 + 1800);

/// The remark on a file of another format in a directory.
pub const UNKNOWN_FILE: &str = "ignored: unknown format";

/// The remark on a file that repeats another one.
const AGGREGATED: &str = "ignored: its planes are in the file without _agg";

/// The file of planes beside a file of aggregated ports: `x.net_dump` beside `x.net_dump_agg`, `x.pm` beside `x.pm_agg`.
fn aggregated(file: &Path) -> Option<PathBuf> {
    Some(file.with_file_name(file.file_name()?.to_str()?.strip_suffix("_agg")?))
}

/// A reading of a file.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// Files of one folder may belong together.
    pub folder: PathBuf,
    /// Its format.
    pub format: Format,
    /// What it says.
    pub contents: Contents,
    /// When the file was last modified.
    pub modified: SystemTime,
}

impl Source {
    /// When it was taken, as far as that is known.
    pub fn time(&self) -> SystemTime {
        self.own_time().unwrap_or(self.modified)
    }

    /// When it was taken, if the file says it. A time without a zone that may be the one at which the file was written
    /// says no more than that.
    pub fn own_time(&self) -> Option<SystemTime> {
        let taken_at = self.contents.taken_at?;
        let apart = taken_at.max(self.modified).duration_since(taken_at.min(self.modified));
        let is_modified = self.contents.is_zoneless && apart.is_ok_and(|apart| apart <= MAX_ZONE);
        (!is_modified).then_some(taken_at)
    }
}

/// The readings of some files, and remarks on files that were not used.
#[derive(Debug, Default)]
pub struct Sources {
    /// In the order of the files.
    pub readings: Vec<Source>,
    /// On files without readings.
    pub remarks: Vec<Remark>,
}

impl Sources {
    /// Reads the files of arguments. Files of a directory that are no dumps are left out, with a remark.
    pub fn of_paths(paths: &[PathBuf]) -> Result<Sources, DumpError> {
        let mut found = Sources::default();
        for path in paths {
            let failed = |error| DumpError::File { path: path.clone(), error };
            if !fs::metadata(path).map_err(failed)?.is_dir() {
                let folder = path.parent().unwrap_or(Path::new(""));
                found.add_file(path, folder)?.map_err(|why| DumpError::invalid(path, why))?;
                continue;
            }
            let mut files = Vec::new();
            for entry in fs::read_dir(path).map_err(failed)? {
                let file = entry.map_err(failed)?.path();
                if file.is_file() {
                    files.push(file);
                }
            }
            files.sort();
            let planes = files.clone();
            files.retain(|file| {
                let is_aggregated = aggregated(file).is_some_and(|of| planes.contains(&of));
                if is_aggregated {
                    let remark = Remark::unused(0, AGGREGATED);
                    found.remarks.push(Remark { file: file.clone(), ..remark });
                }
                !is_aggregated
            });
            let before = found.readings.len();
            for file in files {
                if let Err(why) = found.add_file(&file, path)? {
                    let what = match fs::metadata(&file).map(|about| about.len()) {
                        Ok(0) => "ignored: the file is empty".into(),
                        _ if why == UNKNOWN_FORMAT => UNKNOWN_FILE.into(),
                        _ => format!("ignored: {why}"),
                    };
                    found.remarks.push(Remark { file, ..Remark::unused(0, what) });
                }
            }
            if found.readings.len() == before {
                return Err(DumpError::invalid(path, "no dumps in this directory"));
            }
        }
        Ok(found)
    }

    /// Reads files in memory, each with a name, which count as files of one directory.
    pub fn of_files(files: Vec<(PathBuf, Vec<u8>)>) -> Result<Sources, DumpError> {
        let mut found = Sources::default();
        for (path, bytes) in files {
            let added = found.add(&path, Path::new(""), bytes, SystemTime::UNIX_EPOCH)?;
            added.map_err(|why| DumpError::invalid(&path, why))?;
        }
        Ok(found)
    }

    /// Adds the readings of a file. The inner error says why it has none; the outer one, that it is damaged.
    fn add_file(&mut self, path: &Path, folder: &Path) -> Result<Result<(), String>, DumpError> {
        let failed = |error| DumpError::File { path: path.to_owned(), error };
        let file = File::open(path).map_err(failed)?;
        let modified =
            file.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut bytes = Vec::new();
        // A pipe has no length.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(DumpError::invalid(path, "larger than 1 GiB"));
        }
        self.add(path, folder, bytes, modified)
    }

    fn add(
        &mut self,
        path: &Path,
        folder: &Path,
        bytes: Vec<u8>,
        modified: SystemTime,
    ) -> Result<Result<(), String>, DumpError> {
        let damaged = |problem| DumpError::invalid(path, problem);
        let bytes = front::unpack(bytes).map_err(damaged)?;
        if let Some(added) = self.add_telemetry(path, folder, &bytes, modified) {
            return added;
        }
        let texts = front::read(bytes).map_err(damaged)?;
        let before = self.readings.len();
        let mut remarks = Vec::new();
        let (mut damaged, mut has_lines) = (None, false);
        for text in texts {
            remarks.extend(text.remarks);
            let segments = front::segments(&text.lines);
            if segments.is_empty() {
                damaged = damaged.or_else(|| problem_of_unknown(&text.lines));
                if let Some(line) = text.lines.get(0) {
                    let count = plural(text.lines.len(), "line");
                    let what = format!("{count} skipped, the first one here");
                    remarks.push(Remark::unused(line.number, what));
                }
                continue;
            }
            has_lines = true;
            let mut end = 0;
            for (nth, segment) in segments.iter().enumerate() {
                let format = segment.format;
                let invalid = |problem: &dyn Display| {
                    DumpError::invalid(path, format!("{problem} (format {})", format.label()))
                };
                let too_many = || invalid(&format!("contains more than {MAX_NODES} nodes"));
                // What is between two segments, or after the last one, belongs to the one before.
                let is_last = nth + 1 == segments.len();
                let last = if is_last { text.lines.len() } else { segment.lines.end };
                let lines = || text.lines.range(end.min(segment.lines.start)..last);
                // Before memory is needed for all of them.
                let is_node = |line: &Line<'_>| ibnetdiscover::is_node(line.text);
                if format == Format::IbNetDiscover
                    && lines().filter(is_node).nth(MAX_NODES).is_some()
                {
                    return Err(too_many());
                }
                for contents in format.parse(lines()).map_err(|problem| invalid(&problem))? {
                    if contents.nodes.len() > MAX_NODES {
                        return Err(too_many());
                    }
                    if contents.is_empty() {
                        remarks.extend(contents.remarks);
                        continue;
                    }
                    if self.readings.len() >= MAX_READINGS {
                        let what = format!("contains more than {MAX_READINGS} readings: split it");
                        return Err(invalid(&what));
                    }
                    self.readings.push(Source {
                        path: path.to_owned(),
                        folder: folder.to_owned(),
                        format,
                        contents,
                        modified,
                    });
                }
                end = last;
            }
        }
        let Some(first) = self.readings.get_mut(before) else {
            if let Some((format, problem)) = damaged {
                return Ok(Err(format!("{problem} (format {})", format.label())));
            }
            let unused = remarks.iter().find(|remark| remark.is_unused && remark.line > 0);
            return Ok(Err(match unused {
                Some(remark) if has_lines => format!("{remark}: contains no nodes and no ports"),
                _ => UNKNOWN_FORMAT.into(),
            }));
        };
        first.contents.remarks.splice(0..0, remarks);
        Ok(Ok(()))
    }
}

impl Sources {
    /// Adds the readings of a file if it is telemetry, of which each row is its own.
    fn add_telemetry(
        &mut self,
        path: &Path,
        folder: &Path,
        bytes: &[u8],
        modified: SystemTime,
    ) -> Option<Result<Result<(), String>, DumpError>> {
        let decoded = front::decode(bytes);
        let writing = telemetry::recognize(&decoded.text)?;
        let format = Format::of_telemetry(writing);
        let readings = match telemetry::parse(writing, &decoded.text) {
            Ok(readings) => readings,
            Err(what) => return Some(Err(DumpError::invalid(path, format!("{what}: split it")))),
        };
        let readings: Vec<Contents> = readings.into_iter().filter(|it| !it.is_empty()).collect();
        if readings.is_empty() {
            return Some(Ok(Err(format!("contains no ports (format {})", format.label()))));
        }
        if readings.iter().any(|contents| contents.nodes.len() > MAX_NODES)
            || self.readings.len() + readings.len() > MAX_READINGS
        {
            let what = format!("contains more than {MAX_NODES} nodes or {MAX_READINGS} readings");
            return Some(Err(DumpError::invalid(path, what)));
        }
        self.readings.extend(readings.into_iter().map(|contents| Source {
            path: path.to_owned(),
            folder: folder.to_owned(),
            format,
            contents,
            modified,
        }));
        Some(Ok(Ok(())))
    }
}

/// What is wrong with a text that has damaged lines of a format, but no whole one.
fn problem_of_unknown(lines: &Lines) -> Option<(Format, Problem)> {
    let format = lines.iter().find_map(|line| damaged_format(line.text))?;
    let inner = lines.iter().map(|line| Line { is_edge: false, is_open: false, ..line });
    Some((format, format.parse(inner).err()?))
}

/// The formats of a file in memory; none if it is no dump.
pub fn formats(bytes: &[u8]) -> Vec<Format> {
    let bytes = front::unpack(bytes.to_vec()).unwrap_or_default();
    if let Some(writing) = telemetry::recognize(&front::decode(&bytes).text) {
        return vec![Format::of_telemetry(writing)];
    }
    let texts = front::read(bytes).unwrap_or_default();
    let segments = texts.iter().flat_map(|text| front::segments(&text.lines));
    let mut formats: Vec<Format> = segments.map(|segment| segment.format).collect();
    formats.dedup();
    formats
}
