//! The process as procfs has it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use procfs::{FromReadSI as _, KernelStats};

/// The process below a mount point of procfs.
#[derive(Clone, Debug)]
pub(super) struct Process {
    procfs: PathBuf,
    /// When the host was booted, in seconds since 1970, once that was read: `stat` has a line of some 10 kB on large
    /// hosts.
    booted: OnceLock<u64>,
}

impl Process {
    /// Reads from where procfs is mounted.
    pub fn new(procfs: &Path) -> Self {
        Process { procfs: procfs.to_owned(), booted: OnceLock::new() }
    }

    fn booted(&self) -> Option<u64> {
        if let Some(booted) = self.booted.get() {
            return Some(*booted);
        }
        let info = procfs::current_system_info();
        let stat = KernelStats::from_file(self.procfs.join("stat"), info).ok()?;
        Some(*self.booted.get_or_init(|| stat.btime))
    }
}

/// Values of the process that are read at each scrape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub threads: u64,
    /// When it began, in seconds since 1970.
    pub start_seconds: Option<f64>,
    pub open_files: Option<u64>,
    /// The limit of open descriptors; `None` without one.
    pub most_files: Option<u64>,
}

impl Numbers {
    /// Reads procfs; `None` if it cannot be read: no number is better than a wrong one.
    pub fn read(process: &Process) -> Option<Self> {
        let own = procfs::process::Process::new_with_root(process.procfs.join("self")).ok()?;
        let stat = own.stat().ok()?;
        let per_second = procfs::ticks_per_second() as f64;
        let limit = own.limits().ok().map(|limits| limits.max_open_files.soft_limit);
        Some(Numbers {
            cpu_seconds: (stat.utime + stat.stime) as f64 / per_second,
            resident_bytes: stat.rss * procfs::page_size(),
            virtual_bytes: stat.vsize,
            threads: u64::try_from(stat.num_threads).unwrap_or(0),
            start_seconds: process
                .booted()
                .map(|booted| booted as f64 + stat.starttime as f64 / per_second),
            open_files: open_files(&own, &process.procfs),
            most_files: match limit {
                Some(procfs::process::LimitValue::Value(most)) => Some(most),
                _ => None,
            },
        })
    }
}

/// The number of open descriptors. Since Linux 6.2 it is the size of the folder, which a process may read that was root
/// when it started and may not list it any more. A list of the 550 of a host with nine devices takes 0.2 ms.
fn open_files(own: &procfs::process::Process, procfs: &Path) -> Option<u64> {
    let size = std::fs::metadata(procfs.join("self/fd")).ok()?.len();
    if size > 0 { Some(size) } else { own.fd_count().ok().map(|count| count as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `--path.procfs` the process may be confined to that folder, and `/proc` be another host's.
    #[test]
    fn everything_is_read_below_path_procfs() {
        let procfs = tempfile::tempdir().unwrap();
        let own = procfs.path().join("4711");
        std::fs::create_dir_all(own.join("fd")).unwrap();
        std::os::unix::fs::symlink("4711", procfs.path().join("self")).unwrap();
        for name in ["stat", "limits"] {
            std::fs::copy(Path::new("/proc/self").join(name), own.join(name)).unwrap();
        }
        let process = Process::new(procfs.path());
        let numbers = Numbers::read(&process).unwrap();
        assert_eq!(numbers.start_seconds, None);
        assert!(numbers.threads > 0 && numbers.most_files.is_some());
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let booted = |line: &str| line.starts_with("btime ");
        let lines = stat.lines().map(|line| if booted(line) { "btime 1000000000" } else { line });
        let stat = lines.collect::<Vec<_>>().join("\n");
        std::fs::write(procfs.path().join("stat"), stat).unwrap();
        let real = Numbers::read(&Process::new(Path::new("/proc"))).unwrap();
        let after = |numbers: Numbers, boot: u64| numbers.start_seconds.unwrap() - boot as f64;
        let booted = procfs::boot_time_secs().unwrap();
        let late = after(Numbers::read(&process).unwrap(), 1_000_000_000);
        assert!((late - after(real, booted)).abs() < 0.01, "{late} s after the boot");
    }
}
