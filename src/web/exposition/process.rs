//! Our own process: what it takes of the machine, as procfs has it, and what becomes of its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::web::reload::Reload;

/// What is known of our own process, apart from what is read anew each time.
#[derive(Clone, Debug)]
pub struct Process {
    procfs: PathBuf,
    web_config: Option<Arc<Reload>>,
}

impl Process {
    /// Reads from where procfs is mounted.
    pub fn new(procfs: &Path) -> Self {
        Process { procfs: procfs.to_owned(), web_config: None }
    }

    /// What becomes of the web config file, if there is one.
    pub fn web_config(&self) -> Option<&Arc<Reload>> {
        self.web_config.as_ref()
    }

    /// The same with what becomes of the web config file.
    #[must_use]
    pub fn with_web_config(self, web_config: Option<Arc<Reload>>) -> Self {
        Process { web_config, ..self }
    }
}

/// What is read of our own process, anew for each scrape.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// In itself and in the kernel.
    pub cpu_seconds: f64,
    /// In RAM.
    pub resident_bytes: u64,
    /// Of address space.
    pub virtual_bytes: u64,
    /// How many there are.
    pub threads: u64,
    /// When it began, since 1970.
    pub start_seconds: f64,
    /// Descriptors that are open.
    pub open_files: Option<u64>,
    /// Descriptors that may be; `None` without a limit.
    pub most_files: Option<u64>,
}

impl Numbers {
    /// `None` where procfs does not tell: no number is better than a wrong one.
    pub(super) fn read(process: &Process) -> Option<Self> {
        let own = procfs::process::Process::new_with_root(process.procfs.join("self")).ok()?;
        let stat = own.stat().ok()?;
        let per_second = procfs::ticks_per_second() as f64;
        let boot = procfs::boot_time_secs().ok()? as f64;
        let limit = own.limits().ok().map(|limits| limits.max_open_files.soft_limit);
        Some(Numbers {
            cpu_seconds: (stat.utime + stat.stime) as f64 / per_second,
            resident_bytes: stat.rss * procfs::page_size(),
            virtual_bytes: stat.vsize,
            threads: u64::try_from(stat.num_threads).unwrap_or(0),
            start_seconds: boot + stat.starttime as f64 / per_second,
            open_files: own.fd_count().ok().map(|count| count as u64),
            most_files: match limit {
                Some(procfs::process::LimitValue::Value(most)) => Some(most),
                _ => None,
            },
        })
    }
}
