//! Sandboxes the process: it drops the privileges that it does not need.
//!
//! Once devices are open, sockets are bound and the history's file is locked, the exporter only reads: it starts no
//! programs, opens no connections (except to another exporter, for its totals), and needs no capability (except to read
//! modules). So the kernel keeps a process that a hostile MAD, file or request has taken over from the rest of the host
//! (landlock(7), capabilities(7), `PR_SET_NO_NEW_PRIVS`). Threads inherit the restrictions, which cannot be removed again,
//! so they are applied before the first thread starts.
//!
//! An old kernel applies those that it has. Failures here do not stop the program.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{FabricSettings, Settings};
use crate::remote::{Access as Login, Remote};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// The access rights that are restricted: those of Linux 6.12. Older kernels restrict fewer.
const LANDLOCK_ABI: ABI = ABI::V6;

/// What `libibverbs` reads in addition to devices and sysfs: it loads its drivers when the first device appears.
const LIBRARIES: [&str; 8] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/libibverbs.d",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
];

/// What the resolver of host names reads, and CA certificates.
const NETWORK: [&str; 8] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
    "/run/systemd/resolve",
];

/// Time zones, and the seeds of SQLite and hash tables.
const ALWAYS: [&str; 3] = ["/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom"];

/// What the process accesses from now on.
struct AllowedPaths {
    /// Files and folders to read.
    read: Vec<PathBuf>,
    /// Files to read again in these folders, regardless of their owner.
    files: Vec<PathBuf>,
    /// Folders in which to create, write, rename and remove files.
    write: Vec<PathBuf>,
    /// Folders in which to remove empty folders.
    remove_dirs: Vec<PathBuf>,
    /// Folders of devices to open, write to and control (ioctl).
    devices: Vec<PathBuf>,
    /// Whether modules of network interfaces are read.
    modules: bool,
    /// TCP ports of other exporters, to connect to.
    connect: Vec<u16>,
}

/// Restricts the process to what it needs with these settings, these files of its web config, and a temporary
/// folder that it removes at its end; and logs the result.
pub fn enter(settings: &Settings, web: &[PathBuf], temporary: Option<&Path>) {
    let paths = &needs(settings, web, temporary);
    if let Err(error) = set_no_new_privs(true) {
        tracing::warn!(%error, "setting no_new_privs failed");
    }
    if let Err(error) = drop_capabilities(paths) {
        tracing::warn!(%error, "dropping capabilities failed");
    }
    match restrict(paths) {
        Ok(RulesetStatus::FullyEnforced) => tracing::debug!("sandboxed"),
        Ok(RulesetStatus::PartiallyEnforced) => {
            tracing::info!("sandboxed in part: this kernel lacks newer Landlock features");
        }
        Ok(RulesetStatus::NotEnforced) => tracing::warn!(
            "file access is not restricted: Landlock is not available in this kernel, or not enabled at \
             boot (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)"
        ),
        Err(error) => tracing::warn!(%error, "file access is not restricted: Landlock failed"),
    }
}

fn needs(settings: &Settings, web: &[PathBuf], temporary: Option<&Path>) -> AllowedPaths {
    let mut read: Vec<PathBuf> = ALWAYS.map(PathBuf::from).into();
    read.push(settings.procfs.clone());
    // Files that are reloaded, and may have been replaced by then.
    let files = settings.fabrics.iter().flat_map(|fabric| {
        let FabricSettings { node_name_map, m_key_file, vs_key_file, maintenance_file, .. } =
            fabric;
        [node_name_map, m_key_file, vs_key_file, maintenance_file].into_iter().flatten()
    });
    let files: Vec<PathBuf> = files.chain(web).cloned().collect();
    read.extend(files.iter().flat_map(|file| [folders_of(file), folders_of_links(file)].concat()));
    let mut devices = Vec::new();
    let events = settings.host.as_ref().is_some_and(|host| host.events);
    read.push(settings.sysfs.clone());
    if events || !settings.fabrics.is_empty() {
        // Not only /dev/infiniband: it disappears with its last device, and returns with a driver
        // as another folder. The permissions in /dev decide which devices the process may open.
        devices.push("/dev".into());
    }
    if events {
        read.extend(LIBRARIES.map(PathBuf::from));
    }
    let others = settings.fabrics.iter().filter_map(|fabric| fabric.totals_from.as_ref());
    let others = others.filter_map(|(url, _)| {
        Remote::new(url, &Login::default(), Duration::ZERO, Duration::ZERO).ok()
    });
    let connect: Vec<u16> = others.map(|other| other.port()).collect();
    if !connect.is_empty() {
        // The resolver loads its modules when it is first used.
        read.extend(NETWORK.into_iter().chain(LIBRARIES).map(PathBuf::from));
    }
    let history = settings.history.iter();
    let write = history.flat_map(|history| folders_of(&history.file)).collect();
    let empty = temporary.and_then(Path::parent).map(Path::to_owned).into_iter().collect();
    let modules = settings.host.as_ref().is_some_and(|host| host.read.modules);
    AllowedPaths { read, files, write, remove_dirs: empty, devices, modules, connect }
}

/// The folders that contain a symbolic link to a folder in a file's path, such as `certs` in
/// `certs/current/server.pem`: the link may lead to a neighbor later.
fn folders_of_links(file: &Path) -> Vec<PathBuf> {
    let Ok(file) = std::path::absolute(file) else { return Vec::new() };
    let links = file.ancestors().skip(1).filter(|folder| folder.is_symlink());
    // Not / and /var (for /var/run): that would be half of the host.
    let holders = links.filter_map(Path::parent).filter(|holder| holder.components().count() > 2);
    holders.map(Path::to_owned).collect()
}

/// The folder of a file as named, and its real one.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let folder = |file: &Path| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let real = std::fs::canonicalize(file).ok();
    std::iter::once(folder(file)).chain(real.map(|real| folder(&real))).collect()
}

/// Drops all capabilities, except one that is needed for files or folders of other users, and the one to read modules.
/// The user root can open root's devices and files without a capability.
fn drop_capabilities(paths: &AllowedPaths) -> Result<(), Errno> {
    let held = capabilities(None)?;
    let folders = paths.write.iter().map(|folder| nearest_existing(folder));
    let (writes, reads) =
        (!folders.into_iter().all(is_owned), !are_readable_without(held, &paths.files)?);
    let mut kept = kept(held.permitted, writes, reads);
    if paths.modules {
        kept |= held.permitted & CapabilitySet::NET_ADMIN;
    }
    if (held.permitted | held.inheritable).difference(kept).is_empty() {
        return Ok(());
    }
    // Kernels before 4.3 have no ambient set. Without CAP_SETPCAP the bounding set stays as it is, which has no
    // effect with no_new_privs.
    let _ = clear_ambient_capability_set();
    for capability in CapabilitySet::all().difference(kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

/// The permitted capabilities to keep: to write to folders of other users, or to read files of other users.
/// CAP_DAC_READ_SEARCH reads whatever the file's mode and writes nothing, but Docker's default set has only
/// CAP_DAC_OVERRIDE.
fn kept(permitted: CapabilitySet, writes: bool, reads: bool) -> CapabilitySet {
    let needed = if writes || reads && !permitted.contains(CapabilitySet::DAC_READ_SEARCH) {
        CapabilitySet::DAC_OVERRIDE
    } else if reads {
        CapabilitySet::DAC_READ_SEARCH
    } else {
        CapabilitySet::empty()
    };
    permitted & needed
}

fn is_owned(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    std::fs::metadata(folder).map_or(true, |folder| folder.uid() == user)
}

/// Whether this thread can read these files, or the folders of missing ones, without a capability. It tries,
/// because more than the owner matters: mode and access lists of the file, and of each folder on its path.
fn are_readable_without(held: CapabilitySets, files: &[PathBuf]) -> Result<bool, Errno> {
    let reading = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    if !held.permitted.intersects(reading) {
        return Ok(true);
    }
    let effective = held.effective.difference(reading);
    set_capabilities(None, CapabilitySets { effective, ..held })?;
    let readable = files.iter().all(|file| {
        let folder = || open(nearest_existing(file.parent().unwrap_or(file)));
        let opened = open(file);
        (if opened == Err(Errno::NOENT) { folder() } else { opened }) != Err(Errno::ACCESS)
    });
    set_capabilities(None, held)?;
    Ok(readable)
}

/// Opens a file for reading. NONBLOCK: to open a FIFO must not wait for its other end.
fn open(path: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(drop)
}

fn restrict(paths: &AllowedPaths) -> Result<RulesetStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        // Sockets are bound already; connections are only allowed to other exporters.
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        // Abstract Unix sockets stay accessible: the service manager may have its own there.
        .scope(Scope::Signal)?
        .create()?
        .set_compatibility(CompatLevel::BestEffort);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let write =
        read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    // A missing folder may be mounted or created later.
    let folders = paths.write.iter().map(|folder| nearest_existing(folder));
    let ruleset = ruleset
        .add_rules(path_beneath_rules(&paths.read, read))?
        .add_rules(path_beneath_rules(&paths.devices, device))?
        .add_rules(path_beneath_rules(folders, write))?
        .add_rules(path_beneath_rules(&paths.remove_dirs, AccessFs::RemoveDir))?
        .add_rules(
            paths
                .connect
                .iter()
                .map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))),
        )?;
    // Sets no_new_privs, too.
    Ok(ruleset.restrict_self()?.ruleset)
}

/// The folder itself, or the nearest one above it that exists.
fn nearest_existing(folder: &Path) -> &Path {
    let mut ancestors = folder.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    ancestors.find(|folder| folder.is_dir()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_of_a_linked_folder_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let certs = dir.path().join("certs");
        std::fs::create_dir_all(certs.join("1")).unwrap();
        std::os::unix::fs::symlink("1", certs.join("current")).unwrap();
        assert!(folders_of_links(&certs.join("current/server.pem")).contains(&certs));
        assert!(!folders_of_links(&certs.join("1/server.pem")).contains(&certs));
        assert!(
            folders_of_links(Path::new("/proc/self/status")).is_empty(),
            "/proc holds the link"
        );
    }

    #[test]
    fn needed_capability_is_kept_if_permitted() {
        let (all, over, read, none) = (
            CapabilitySet::all(),
            CapabilitySet::DAC_OVERRIDE,
            CapabilitySet::DAC_READ_SEARCH,
            CapabilitySet::empty(),
        );
        for (permitted, writes, reads, stays) in [
            (all, false, false, none),
            (all, true, false, over),
            (all, false, true, read),
            (all, true, true, over),
            // Docker's default set.
            (over | CapabilitySet::CHOWN, false, true, over),
            (read, false, true, read),
            (none, true, true, none),
        ] {
            assert_eq!(kept(permitted, writes, reads), stays, "{permitted:?} {writes} {reads}");
        }
    }

    #[test]
    fn missing_folder_gives_nearest_above() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nearest_existing(dir.path()), dir.path());
        assert_eq!(nearest_existing(&dir.path().join("a/b")), dir.path());
        assert_eq!(nearest_existing(Path::new("not-there/at-all")), Path::new("."));
    }
}
