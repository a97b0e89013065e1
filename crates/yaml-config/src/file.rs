//! Reads the files that a site writes: regular ones, up to a size, within a timeout.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long a start waits for a file. A read takes milliseconds; one from a hard NFS mount whose server is
/// down never returns.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest file that is read. A config file has a few kB; a guid2mkey of 48,000 ports, the most that a
/// subnet has, 2 MB.
pub const MAX_BYTES: u64 = 16 << 20;

/// Differs when a file has changed: device, inode, size, mtime and ctime. A file that is replaced, as a
/// Kubernetes secret is, has another inode; one that is written to, or whose mode changes, other times.
pub type Stamp = [i64; 7];

/// The stamp of a file; `None` if there is none, or its metadata cannot be read.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    let [device, inode, size] = [about.dev(), about.ino(), about.size()].map(u64::cast_signed);
    let times = (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec());
    Some([device, inode, size, times.0, times.1, times.2, times.3])
}

/// Reads a regular file of at most `max` bytes. A pipe or a device is an error at once: to open or read one
/// may block forever.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() {
        let what = match kind {
            _ if kind.is_dir() => "a directory",
            _ if kind.is_fifo() => "a pipe",
            _ if kind.is_char_device() || kind.is_block_device() => "a device",
            _ => "a special file",
        };
        return Err(io::Error::other(format!("it is {what}, not a regular file")));
    }
    let mut bytes = Vec::new();
    let length = file.take(max + 1).read_to_end(&mut bytes)?;
    if length as u64 > max {
        return Err(io::Error::other(format!("it is larger than {max} bytes")));
    }
    Ok(bytes)
}

/// Runs `read` on a thread of its own, and waits for its result up to a timeout.
pub fn with_timeout<T: Send + 'static>(
    timeout: Duration,
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("file".into()).spawn(move || {
        // Fails after the timeout.
        let _ = done.send(read());
    })?;
    result.recv_timeout(timeout).map_err(|_| {
        let problem =
            format!("reading timed out after {timeout:?}: its file system does not respond");
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
    fn pipes_devices_and_directories_are_errors() {
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
    fn larger_file_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(read(file.path(), 5).unwrap(), b"12345");
        assert!(read(file.path(), 4).unwrap_err().to_string().contains("larger than 4 bytes"));
    }

    #[test]
    fn hanging_read_times_out() {
        let (release, held) = mpsc::channel::<()>();
        let hangs = move || held.recv();
        let error = with_timeout(Duration::from_millis(20), hangs).unwrap_err().to_string();
        assert!(error.contains("20ms") && error.contains("file system"), "{error}");
        drop(release);
        assert_eq!(with_timeout(READ_TIMEOUT, || 5).unwrap(), 5);
    }

    #[test]
    fn stamp_changes_with_the_file() {
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
