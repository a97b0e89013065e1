//! Reads small text files of sysfs, relative to directories that are held open, and parses their values.
//!
//! Reading a node of eight HCAs reads some 500 files; those that are read each time stay open (module `kept`). Opened
//! by its name in a directory that is open already, and read into a buffer on the stack, a file costs three system
//! calls and no allocation; by its whole path the kernel walks eight directories for each. An open directory of sysfs
//! keeps no device alive: when the device is removed, its files are not found any more.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ib_mad::Lid;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width};
use rustix::fs::{Mode, OFlags, openat};

use super::watch;

/// The most bytes that are read of a value; the longest here, a node description, has 64.
const MAX_VALUE: usize = 256;

/// How many names that are not UTF-8 are remembered, so that each is logged once.
const MAX_LOGGED_NAMES: usize = 256;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// Where it was opened.
    pub(super) path: PathBuf,
}

impl Directory {
    /// Opens a directory by its path.
    pub fn open(path: &Path) -> io::Result<Directory> {
        #[cfg(test)]
        hooks::count(path, hooks::Call::Open);
        let fd = openat(rustix::fs::CWD, path, DIRECTORY, Mode::empty())?;
        Ok(Directory { fd, path: path.to_owned() })
    }

    /// Opens a directory below this one.
    pub fn open_below(&self, path: &str) -> io::Result<Directory> {
        #[cfg(test)]
        hooks::count(&self.path, hooks::Call::Open);
        let fd = openat(&self.fd, path, DIRECTORY, Mode::empty())?;
        Ok(Directory { fd, path: self.path.join(path) })
    }

    /// The inode number: it stays when the directory is renamed, and a directory that is made again under
    /// the same name has another one.
    pub(crate) fn inode(&self) -> Option<u64> {
        rustix::fs::fstat(&self.fd).ok().map(|stat| stat.st_ino)
    }

    /// Whether `path` leads to this directory now. An open directory stays that of its device when the
    /// device is renamed and another one takes its name.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        #[cfg(test)]
        hooks::count(path, hooks::Call::Other);
        let stats =
            rustix::fs::fstat(&self.fd).and_then(|open| Ok((open, rustix::fs::stat(path)?)));
        stats.is_ok_and(|(a, b)| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
    }

    /// The names of its entries, sorted, without those that start with a dot. A name that is not UTF-8 is
    /// skipped, because no label can hold it, and logged once.
    pub fn names(&self) -> io::Result<Vec<String>> {
        #[cfg(test)]
        hooks::count(&self.path, hooks::Call::List);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            match name.to_str() {
                Ok(name) if name.starts_with('.') => {}
                Ok(name) => names.push(name.to_owned()),
                Err(_) => warn_once(self.path.join(OsStr::from_bytes(name.to_bytes()))),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Another one once a directory in it is made or removed.
    pub(super) fn version(&self) -> Option<Version> {
        #[cfg(test)]
        hooks::count(&self.path, hooks::Call::Other);
        let stat = rustix::fs::fstat(&self.fd).ok()?;
        let modified = (i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec));
        Some(Version { links: i128::from(stat.st_nlink), modified })
    }

    pub(super) fn open_file(&self, name: &str) -> io::Result<OwnedFd> {
        #[cfg(test)]
        hooks::count(&self.path, hooks::Call::Open);
        // NONBLOCK: to open a FIFO must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(openat(&self.fd, name, flags, Mode::empty())?)
    }

    /// Reads a file, and parses its value without the blanks around it.
    pub(crate) fn read<T>(&self, name: &str, parse: impl FnOnce(&str) -> T) -> io::Result<T> {
        let _watched = watch::begin(&self.path, name)?;
        self.read_open(&self.open_file(name)?, name)?.parse(parse)
    }

    /// Reads what an open file of it, of this name, has now.
    #[cfg_attr(
        not(test),
        expect(unused_variables, clippy::unused_self, reason = "only tests look at them")
    )]
    pub(super) fn read_open(&self, file: &OwnedFd, name: &str) -> io::Result<Text> {
        #[cfg(test)]
        {
            hooks::count(&self.path, hooks::Call::Read);
            hooks::call(&self.path, name)?;
        }
        let mut bytes = [0; MAX_VALUE];
        let length = rustix::io::pread(file, &mut bytes[..], 0)?;
        Ok(Text { bytes, length })
    }

    /// Reads the first bytes of a file; fewer if a later part cannot be read.
    pub(super) fn read_bytes(&self, name: &str, max: usize) -> io::Result<Vec<u8>> {
        let _watched = watch::begin(&self.path, name)?;
        let file = self.open_file(name)?;
        #[cfg(test)]
        hooks::call(&self.path, name)?;
        let (mut bytes, mut length) = (vec![0; max], 0);
        while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(&file, rest) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if length == 0 => return Err(error.into()),
                Err(_) => break,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Reads a file; empty if it is missing or cannot be read.
    pub fn text(&self, name: &str) -> String {
        self.read(name, str::to_owned).unwrap_or_default()
    }

    /// The last part of a symbolic link's target: `mlx5_core` for `driver`, a link to `…/drivers/mlx5_core`.
    pub fn link_target(&self, name: &str) -> Option<String> {
        #[cfg(test)]
        hooks::count(&self.path, hooks::Call::Other);
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new()).ok()?;
        let target = target.into_string().ok()?;
        target.rsplit('/').next().filter(|last| !last.is_empty()).map(str::to_owned)
    }
}

/// What a file has, on the stack.
#[derive(Debug)]
pub(super) struct Text {
    bytes: [u8; MAX_VALUE],
    length: usize,
}

impl Text {
    /// Parses it without the blanks around it.
    pub fn parse<T>(&self, parse: impl FnOnce(&str) -> T) -> io::Result<T> {
        let text = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(text).map(str::trim).map(parse).map_err(io::Error::other)
    }
}

/// The number of links of a directory, one for each directory in it, and when it was modified. The kernel counts the
/// links of a directory of sysfs, but does not always update its time (fs/kernfs/inode.c: `kernfs_refresh_inode`);
/// other file systems do not always count the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    links: i128,
    /// Seconds and nanoseconds.
    modified: (i128, i128),
}

impl Version {
    /// How long ago the directory was modified, as far as the clock was not set since.
    pub fn age(&self) -> Option<Duration> {
        let (seconds, nanos) = self.modified;
        let modified = Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?);
        SystemTime::UNIX_EPOCH.checked_add(modified)?.elapsed().ok()
    }
}

/// Logs a name that is not UTF-8. A directory may be listed at each reading, so each path is logged once.
fn warn_once(path: PathBuf) {
    static LOGGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MAX_LOGGED_NAMES && !logged.contains(&path) {
        let shown = path.as_os_str().as_bytes().escape_ascii().to_string();
        tracing::warn!(path = shown, "name is not UTF-8: ignored");
        logged.insert(path);
    }
}

/// The inode number of a directory, by its path.
pub(super) fn inode(path: &Path) -> io::Result<u64> {
    #[cfg(test)]
    hooks::count(path, hooks::Call::Other);
    Ok(rustix::fs::stat(path)?.st_ino)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

// The parsers return `None` for a text that is not of the expected form.

/// PortState by its number (kernel: `state_show` in drivers/infiniband/core/sysfs.c).
const STATES: [&str; 7] = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER", "UNKNOWN"];

/// PortPhysicalState by its number (kernel: `phys_state_to_str` there).
const PHYSICAL_STATES: [&str; 8] = [
    "<unknown>",
    "Sleep",
    "Polling",
    "Disabled",
    "PortConfigurationTraining",
    "LinkUp",
    "LinkErrorRecovery",
    "Phy Test",
];

/// PortState: `4: ACTIVE`, or the word alone.
pub(super) fn state(text: &str) -> Option<PortState> {
    numbered(text, &STATES).map(PortState::from_code)
}

/// PortPhysicalState: `5: LinkUp`, or the word alone.
pub(super) fn physical_state(text: &str) -> Option<PhysicalState> {
    numbered(text, &PHYSICAL_STATES).map(PhysicalState::from_code)
}

/// The number before the colon; without a colon the index of the word in the list.
fn numbered(text: &str, words: &[&str]) -> Option<u8> {
    match text.split_once(':') {
        Some((number, _)) => number.trim().parse().ok(),
        None => (0..).zip(words).find_map(|(n, word)| word.eq_ignore_ascii_case(text).then_some(n)),
    }
}

/// The word after the colon of `1: CA`, in lower case.
pub(super) fn word(text: &str) -> String {
    text.split_once(':').map_or("", |(_, word)| word.trim()).to_ascii_lowercase()
}

/// A LID: `0x1a`, or 0 for none. A LID of Omni-Path may have more than 16 bits, and counts as none.
#[expect(clippy::option_option, reason = "a file can say that there is no LID")]
pub(super) fn lid(text: &str) -> Option<Option<Lid>> {
    let lid = u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    Some(u16::try_from(lid).ok().map(Lid).filter(|lid| lid.is_unicast()))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    pub bytes_per_second: Option<u64>,
    pub width: Option<Width>,
    pub speed: Option<Speed>,
}

/// A rate: `100 Gb/sec (4X EDR)`, `2.5 Gb/sec (1X)`, or `400 Gb/sec` alone, where width and speed are not
/// known. A width without a speed means SDR, or a speed that the kernel is too old to know.
pub(super) fn rate(text: &str) -> Option<Rate> {
    let (number, kind) = text.split_once("Gb/sec")?;
    let bytes_per_second = tenths(number.trim())?.checked_mul(100_000_000 / 8)?;
    if kind.trim().is_empty() {
        return Some(Rate { bytes_per_second: Some(bytes_per_second), ..Rate::default() });
    }
    let kind = kind.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (lanes, speed) = kind.split_once('X')?;
    let width = Width::from_discriminant(lanes.parse::<u8>().ok()?);
    let speed = match speed.trim() {
        // SDR only if the rate is that of SDR on this width.
        "" => Some(Speed::Sdr).filter(|&sdr| {
            width
                .is_some_and(|width| ib_mad::rate::bytes_per_second(width, sdr) == bytes_per_second)
        }),
        label => Speed::from_label(label),
    };
    Some(Rate { bytes_per_second: Some(bytes_per_second), width, speed })
}

/// A number with at most one decimal place, in tenths: that is how the kernel writes rates.
fn tenths(text: &str) -> Option<u64> {
    let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
    let tenth: u64 = tenth.parse().ok().filter(|_| tenth.len() == 1)?;
    whole.parse::<u64>().ok()?.checked_mul(10)?.checked_add(tenth)
}

/// What tests do at the read of a file: count it, delay it, let it fail; and count system calls.
#[cfg(test)]
pub(super) mod hooks {
    use std::collections::BTreeMap;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};

    /// A system call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Call {
        /// And the one that closes it.
        Open,
        Read,
        List,
        /// Of the state of a directory, or where a link leads.
        Other,
    }

    /// The calls below each directory whose calls are counted.
    static CALLS: Mutex<BTreeMap<PathBuf, BTreeMap<Call, usize>>> = Mutex::new(BTreeMap::new());

    /// Counts a call, if a test wants to know it.
    pub fn count(path: &Path, call: Call) {
        for (_, calls) in CALLS.lock().unwrap().iter_mut().filter(|(of, _)| path.starts_with(of)) {
            *calls.entry(call).or_default() += 1;
        }
    }

    /// The calls below a directory since this was last called.
    pub fn calls(directory: &Path) -> BTreeMap<Call, usize> {
        CALLS.lock().unwrap().insert(directory.to_owned(), BTreeMap::new()).unwrap_or_default()
    }

    type Hook = Arc<dyn Fn(&str) -> io::Result<()> + Send + Sync>;

    /// By directory: tests have different ones.
    static HOOKS: Mutex<BTreeMap<PathBuf, Hook>> = Mutex::new(BTreeMap::new());

    /// Calls `hook` with the name of each file of a directory before it is read.
    pub fn set(directory: &Path, hook: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) {
        HOOKS.lock().unwrap().insert(directory.to_owned(), Arc::new(hook));
    }

    pub fn call(directory: &Path, name: &str) -> io::Result<()> {
        let hook = HOOKS.lock().unwrap().get(directory).cloned();
        hook.map_or(Ok(()), |hook| hook(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_trimmed_and_missing_files_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("a", "12\n"), ("b", " 3 \n\n"), ("c", ""), ("d", "7")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::write(dir.path().join("latin"), [0xe9, b'\n']).unwrap();
        std::fs::write(dir.path().join("long"), "9".repeat(5000)).unwrap();
        let open = Directory::open(dir.path()).unwrap();
        let values = ["a", "b", "c", "d", "e", "latin"].map(|name| open.text(name));
        assert_eq!(values, ["12", "3", "", "7", "", ""]);
        assert_eq!(open.text("long").len(), MAX_VALUE, "cut off");
        assert_eq!(open.names().unwrap(), ["a", "b", "c", "d", "latin", "long"]);
    }

    #[test]
    fn is_at_tells_renamed_directory_from_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        std::fs::create_dir(path("a")).unwrap();
        let open = Directory::open(&path("a")).unwrap();
        assert!(open.is_at(&path("a")));
        std::fs::rename(path("a"), path("b")).unwrap();
        assert!(!open.is_at(&path("a")) && open.is_at(&path("b")));
        std::fs::create_dir(path("a")).unwrap();
        assert!(!open.is_at(&path("a")));
    }

    #[test]
    fn fifo_without_writer_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(Directory::open(dir.path()).unwrap().text("pipe"), "");
    }

    #[test]
    fn rates_of_all_speeds_parse() {
        for (text, gbps_tenths, lanes, speed) in [
            ("10 Gb/sec (4X)", 100, 4, Some(Speed::Sdr)),
            ("2.5 Gb/sec (1X)", 25, 1, Some(Speed::Sdr)),
            ("2.5 Gb/sec (1X SDR)", 25, 1, Some(Speed::Sdr)),
            ("20 Gb/sec (4X DDR)", 200, 4, Some(Speed::Ddr)),
            ("40 Gb/sec (4X QDR)", 400, 4, Some(Speed::Qdr)),
            ("40 Gb/sec (4X FDR10)", 400, 4, Some(Speed::Fdr10)),
            ("56 Gb/sec (4X FDR)", 560, 4, Some(Speed::Fdr)),
            ("100 Gb/sec (4X EDR)", 1000, 4, Some(Speed::Edr)),
            ("100 Gb/sec (1X NDR)", 1000, 1, Some(Speed::Ndr)),
            ("200 Gb/sec (2X NDR)", 2000, 2, Some(Speed::Ndr)),
            ("800 Gb/sec (8X NDR)", 8000, 8, Some(Speed::Ndr)),
            ("800 Gb/sec (4X XDR)", 8000, 4, Some(Speed::Xdr)),
            // A kernel that does not know the speed yet.
            ("40 Gb/sec (4X)", 400, 4, None),
            ("1600 Gb/sec (4X GDR)", 16000, 4, None),
        ] {
            let rate = rate(text).unwrap_or_default();
            assert_eq!(rate.bytes_per_second, Some(gbps_tenths * 12_500_000), "{text}");
            assert_eq!(rate.width.map(Width::lanes), Some(lanes), "{text}");
            assert_eq!(rate.speed, speed, "{text}");
        }
        for text in [
            "",
            "fast",
            "10 Gb/sec 4X",
            "x Gb/sec (4X)",
            "x Gb/sec",
            "99999999999999999999 Gb/sec (4X)",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
        assert_eq!(rate("30 Gb/sec (3X DDR)").map(|rate| rate.width), Some(None));
        let unknown = Rate { bytes_per_second: Some(50_000_000_000), width: None, speed: None };
        assert_eq!(rate("400 Gb/sec"), Some(unknown));
    }

    #[test]
    fn states_words_and_lids_parse() {
        assert_eq!(state("4: ACTIVE"), Some(PortState::Active));
        assert_eq!(state("0: <unknown>"), Some(PortState::Other(0)));
        assert_eq!(
            (state("DOWN"), state("active"), state("ACTIVE_DEFER")),
            (Some(PortState::Down), Some(PortState::Active), Some(PortState::ActiveDefer))
        );
        assert_eq!((state("LinkUp"), state("x: y"), state("")), (None, None, None));
        assert_eq!(
            (physical_state("3: Disabled"), physical_state("Disabled")),
            (Some(PhysicalState::Disabled), Some(PhysicalState::Disabled))
        );
        assert_eq!(
            (physical_state("LinkUp"), physical_state("<unknown>")),
            (Some(PhysicalState::LinkUp), Some(PhysicalState::Other(0)))
        );
        assert_eq!((physical_state("ACTIVE"), physical_state("")), (None, None));
        assert_eq!(
            (word("1: CA"), word("4: RNIC"), word("CA")),
            ("ca".into(), "rnic".into(), String::new())
        );
        assert_eq!(lid("0x1a"), Some(Some(Lid(0x1a))));
        for none in ["0x0", "0xffff", "0x10000"] {
            assert_eq!(lid(none), Some(None), "{none}");
        }
        for nonsense in ["12", "0x", "0x100000000", ""] {
            assert_eq!(lid(nonsense), None, "{nonsense}");
        }
    }
}
