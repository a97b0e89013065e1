//! Reads the files that a site writes: regular ones, of a size that makes sense, within a time.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long a start waits for a file. A file system that answers takes milliseconds; a hard NFS mount
/// whose server is gone never returns.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A config file has a few kB; a guid2mkey of 48,000 ports, the most that a subnet has, 2 MB.
pub const MOST_BYTES: u64 = 16 << 20;

/// What of a file differs when it has changed. Who replaces it, as a Kubernetes secret is, changes the
/// inode; who writes into it, or changes its mode, the times.
pub type Stamp = [i128; 5];

/// The stamp of a file; `None` if there is none, or it cannot be looked at.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let of = |about: Metadata| {
        [
            about.dev().into(),
            about.ino().into(),
            about.size().into(),
            nanos(about.mtime(), about.mtime_nsec()),
            nanos(about.ctime(), about.ctime_nsec()),
        ]
    };
    std::fs::metadata(path).ok().map(of)
}

/// Reads a regular file of at most `most` bytes. A pipe or a device is an error at once: to open or
/// read one may take for ever.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() {
            "a directory"
        } else if kind.is_fifo() {
            "a pipe"
        } else if kind.is_char_device() || kind.is_block_device() {
            "a device"
        } else {
            "a special file"
        };
        return Err(io::Error::other(format!("it is {what}, and has to be a regular file")));
    }
    let mut bytes = Vec::new();
    let length = file.take(most + 1).read_to_end(&mut bytes)?;
    if length as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Runs what reads a file on a thread of its own, and waits for it as long as a start does.
pub fn within<T: Send + 'static>(
    limit: Duration,
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("file".into()).spawn(move || {
        // Nobody waits any more, if it took too long.
        let _ = done.send(read());
    })?;
    result.recv_timeout(limit).map_err(|_| {
        let problem =
            format!("it could not be read within {limit:?}: does its file system answer?");
        io::Error::new(io::ErrorKind::TimedOut, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        path
    }

    #[test]
    fn a_pipe_a_device_and_a_directory_are_errors_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for (path, says) in [
            (pipe(folder.path()), "a pipe"),
            ("/dev/zero".into(), "a device"),
            (folder.path().to_owned(), "a directory"),
        ] {
            let error = read(&path, 10).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_file_has_at_most_so_many_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(read(file.path(), 5).unwrap(), b"12345");
        assert!(read(file.path(), 4).unwrap_err().to_string().contains("larger than 4 bytes"));
    }

    #[test]
    fn a_read_that_hangs_ends_as_an_error() {
        let (release, held) = mpsc::channel::<()>();
        let hangs = move || held.recv();
        let error = within(Duration::from_millis(20), hangs).unwrap_err().to_string();
        assert!(error.contains("20ms") && error.contains("file system"), "{error}");
        drop(release);
        assert_eq!(within(PATIENCE, || 5).unwrap(), 5);
    }

    #[test]
    fn a_stamp_changes_with_the_file_and_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(stamp(&path), None);
        std::fs::write(&path, "a").unwrap();
        let first = stamp(&path);
        assert!(first.is_some() && stamp(&path) == first);
        std::fs::write(&path, "ab").unwrap();
        assert_ne!(stamp(&path), first);
    }
}
