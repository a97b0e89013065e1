//! Who is asked: a file, an exporter, or a Prometheus.

use std::path::PathBuf;

use clap::Args;

use crate::history_sources::Api;
use crate::history_sources::prometheus::Prometheus;
use fabric_history::{Reader, Source};

use crate::remote::Access;

use super::{Exit, Fatal, unreadable};

/// Who is asked.
#[derive(Args, Clone, Debug, Default)]
pub struct OriginArgs {
    /// File that an exporter records in, or has recorded in (--history.file)
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Address of a running exporter that records, such as http://127.0.0.1:10315
    #[arg(long, value_name = "URL", global = true)]
    url: Option<String>,
    /// Address of a Prometheus that has scraped an exporter, or of what answers like one (Thanos,
    /// Mimir, VictoriaMetrics), such as http://127.0.0.1:9090
    #[arg(long, value_name = "URL", global = true)]
    source: Option<String>,
    /// Header that goes with each question to --source, such as "X-Scope-OrgID: fabric"; may be
    /// repeated
    #[arg(long = "source.header", value_name = "NAME: VALUE", global = true, value_parser = header)]
    header: Vec<(String, String)>,
    #[command(flatten)]
    access: Access,
}

/// Who has the file.
pub(super) enum File {
    /// It is here.
    Here(Reader),
    /// A running exporter, which makes a copy of it.
    There(Api),
}

impl File {
    /// Who tells of it.
    pub fn source(&self) -> &dyn Source {
        match self {
            File::Here(reader) => reader,
            File::There(api) => api,
        }
    }
}

impl OriginArgs {
    /// The same for a verb that needs the file.
    pub fn file(self, verb: &str) -> Result<File, Fatal> {
        let usage = |problem: String| Fatal::new(Exit::Usage, problem);
        if self.source.is_some() {
            return Err(usage(format!(
                "--source: {verb} is of a file (--file, --url): a Prometheus has its samples already"
            )));
        }
        match (&self.file, &self.url) {
            (Some(file), None) => {
                Ok(File::Here(Reader::open(file).map_err(|error| unreadable(error.into()))?))
            }
            (None, Some(url)) => {
                let api = Api::new(url, &self.access)
                    .map_err(|error| usage(format!("--url: {error}")))?;
                Ok(File::There(api))
            }
            // What is wrong is said as for the others.
            _ => match self.open() {
                Err(fatal) => Err(fatal),
                Ok(_) => Err(usage(format!("--file or --url: which history? ({verb})"))),
            },
        }
    }

    /// Opens what is meant.
    pub fn open(self) -> Result<Box<dyn Source>, Fatal> {
        let usage = |problem: String| Fatal::new(Exit::Usage, problem);
        if self.source.is_none() && !self.header.is_empty() {
            return Err(usage("--source.header: goes with --source alone".into()));
        }
        match (self.file, self.url, self.source) {
            (Some(file), None, None) => {
                let reader = Reader::open(&file).map_err(|error| unreadable(error.into()))?;
                Ok(Box::new(reader))
            }
            (None, Some(url), None) => {
                let api = Api::new(&url, &self.access)
                    .map_err(|error| usage(format!("--url: {error}")))?;
                Ok(Box::new(api))
            }
            (None, None, Some(url)) => {
                let access = Access { headers: self.header, ..self.access };
                let source = Prometheus::new(&url, &access)
                    .map_err(|error| usage(format!("--source: {error}")))?;
                Ok(Box::new(source))
            }
            (None, None, None) => Err(usage(
                "--file, --url or --source: which history? (see --history.file of serve)".into(),
            )),
            _ => Err(usage("--file, --url and --source: one of them alone can be asked".into())),
        }
    }
}

/// Reads a header as HTTP has it.
fn header(text: &str) -> Result<(String, String), String> {
    use ureq::http::{HeaderName, HeaderValue};
    let (name, value) = text.split_once(':').ok_or("no \"NAME: VALUE\"")?;
    let (name, value) = (name.trim(), value.trim());
    let is_one = name.parse::<HeaderName>().is_ok() && HeaderValue::from_str(value).is_ok();
    if is_one { Ok((name.into(), value.into())) } else { Err("no \"NAME: VALUE\"".into()) }
}
