//! Capabilities: the few that files and modules need are kept.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::files::{AllowedPaths, nearest_existing};

/// The capabilities to keep of those that are permitted: one that is needed for files or folders of other users, and
/// the one to read modules. The user root can open root's devices and files without a capability.
pub(super) fn needed(paths: &AllowedPaths, modules: bool) -> Result<CapabilitySet, Errno> {
    let held = capabilities(None)?;
    let mut folders = paths.write.iter().map(|folder| nearest_existing(folder));
    let mut history = paths.history.iter();
    let writes = !folders.all(is_writable_without) || !history.all(|file| is_writable(file));
    let reads = !are_readable_without(held, paths.files.iter().chain(&paths.read))?;
    let mut kept = kept(held.permitted, writes, reads);
    if modules {
        kept |= held.permitted & CapabilitySet::NET_ADMIN;
    }
    Ok(kept)
}

/// Drops all others.
pub(super) fn keep(kept: CapabilitySet) -> Result<(), Errno> {
    let held = capabilities(None)?;
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

/// Whether a file is missing, or can be written without a capability. A file of this user is: whatever its mode is, a
/// process that was taken over may have chosen it, so that the next one keeps a capability.
fn is_writable(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid();
    let is_own = || std::fs::symlink_metadata(file).is_ok_and(|it| it.uid() == user.as_raw());
    user.is_root()
        || rustix::fs::accessat(CWD, file, Access::WRITE_OK, AtFlags::empty()) != Err(Errno::ACCESS)
        || is_own()
}

/// Whether files can be created in a folder without a capability.
pub(super) fn is_writable_without(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid();
    if user.is_root() {
        // access() would count the capabilities of root.
        return std::fs::metadata(folder).map_or(true, |folder| folder.uid() == user.as_raw());
    }
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(CWD, folder, wanted, AtFlags::empty()).is_ok()
}

/// Whether this thread can read these files, or the folders of missing ones, without a capability. It tries,
/// because more than the owner matters: mode and access lists of the file, and of each folder on its path.
fn are_readable_without<'a>(
    held: CapabilitySets,
    mut files: impl Iterator<Item = &'a PathBuf>,
) -> Result<bool, Errno> {
    let reading = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    if !held.permitted.intersects(reading) {
        return Ok(true);
    }
    let effective = held.effective.difference(reading);
    set_capabilities(None, CapabilitySets { effective, ..held })?;
    let readable = files.all(|file| {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
