//! The source of a history: a file, or an exporter that records.

use std::path::PathBuf;

use clap::Args;

use crate::history_client::HistoryClient;
use fabric_history::{Reader, Source};

use crate::remote::Access;

use super::{Exit, Fatal, unreadable};

/// Which history is read.
#[derive(Args, Clone, Debug, Default)]
pub struct OriginArgs {
    /// File that an exporter records in, or has recorded in (--history.file)
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Address of a running exporter that records, such as http://127.0.0.1:10315
    #[arg(long, visible_alias = "source", value_name = "URL", global = true)]
    url: Option<String>,
    #[command(flatten)]
    access: Access,
}

/// The history of a file or of an exporter.
pub(super) enum Origin {
    /// A file on this host.
    File(Reader),
    /// A running exporter; it also makes copies of its file.
    Exporter(HistoryClient),
}

impl Origin {
    /// The source that answers queries.
    pub fn source(&self) -> &dyn Source {
        match self {
            Origin::File(reader) => reader,
            Origin::Exporter(api) => api,
        }
    }
}

impl OriginArgs {
    /// Opens the history that the flags name.
    pub fn open(self) -> Result<Origin, Fatal> {
        let usage = |problem: String| Fatal::new(Exit::Usage, problem);
        match (self.file, self.url) {
            (Some(file), None) => {
                let reader = Reader::open(&file).map_err(|error| unreadable(error.into()))?;
                Ok(Origin::File(reader))
            }
            (None, Some(url)) => {
                let api = HistoryClient::new(&url, &self.access);
                Ok(Origin::Exporter(api.map_err(|error| usage(format!("--url: {error}")))?))
            }
            (None, None) => {
                Err(usage("--file or --url: which history? (see --history.file of serve)".into()))
            }
            (Some(_), Some(_)) => {
                Err(usage("--file and --url: one of them alone can be asked".into()))
            }
        }
    }
}
