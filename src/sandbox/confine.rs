//! The process gives up what it does not need.
//!
//! Once devices are open, sockets bound and the history's file is held, a monitor has only to read on:
//! it starts no programs, connects to nobody, and has no use for a capability. Whatever a hostile MAD,
//! file or request might make of it is kept from the rest of the host by the kernel (landlock(7),
//! capabilities(7), `PR_SET_NO_NEW_PRIVS`). All of it is inherited by threads and cannot be taken back,
//! so it is done before the first thread is started.
//!
//! A kernel that cannot do all of it does what it can. Nothing here keeps the program from running.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What is handled: all that Linux 6.12 can. Older kernels do less; what newer ones could deny
/// besides is of no use here.
const KNOWN: ABI = ABI::V6;

/// What the process goes on to need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files and folders that are read.
    pub read: Vec<PathBuf>,
    /// Files in these folders that are read again, whoever owns them.
    pub files: Vec<PathBuf>,
    /// Folders in which files are made, written, renamed and removed.
    pub write: Vec<PathBuf>,
    /// Folders in which empty folders are removed.
    pub empty: Vec<PathBuf>,
    /// Folders of devices that are opened, written to and controlled.
    pub devices: Vec<PathBuf>,
}

/// Gives up all but these, and tells the log what came of it.
pub fn confine(needs: &Needs) {
    if let Err(error) = set_no_new_privs(true) {
        tracing::warn!(%error, "new privileges cannot be given up");
    }
    if let Err(error) = drop_capabilities(needs) {
        tracing::warn!(%error, "capabilities cannot be given up");
    }
    match restrict(needs) {
        Ok(RulesetStatus::FullyEnforced) => {
            tracing::debug!("confined to its own files and sockets");
        }
        Ok(RulesetStatus::PartiallyEnforced) => {
            tracing::info!("confined to its own files and sockets as far as this kernel can");
        }
        Ok(RulesetStatus::NotEnforced) => tracing::warn!(
            "not confined to its own files: this kernel has no Landlock, or was booted without \
             (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)"
        ),
        Err(error) => tracing::warn!(%error, "not confined to its own files"),
    }
}

/// Root's user id alone opens root's devices and files. Files of others, and in folders of others, it
/// opens by a capability.
fn drop_capabilities(needs: &Needs) -> Result<(), Errno> {
    let held = capabilities(None)?;
    let folders = needs.write.iter().map(|folder| existing(folder));
    let (writes, reads) =
        (!folders.into_iter().all(is_own), !are_readable_without(held, &needs.files)?);
    let kept = kept(held.permitted, writes, reads);
    if (held.permitted | held.inheritable).difference(kept).is_empty() {
        return Ok(());
    }
    // Kernels before 4.3 have no ambient set. Where CAP_SETPCAP is missing, the bounding set stays as
    // it is; without new privileges it means nothing.
    let _ = clear_ambient_capability_set();
    for capability in CapabilitySet::all().difference(kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

/// The capabilities that stay, of those that are held: for folders of others that it writes to, or for files
/// of others that it reads. Docker's default set has CAP_DAC_OVERRIDE, and not CAP_DAC_READ_SEARCH, which reads
/// whatever the file's mode and writes nothing.
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

fn is_own(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    std::fs::metadata(folder).map_or(true, |folder| folder.uid() == user)
}

/// Whether this thread can read these files, or the folders of those that are not there yet, without a
/// capability. It is tried, for what counts is more than the owner: the file's mode and lists, and those
/// of each folder on the way.
fn are_readable_without(held: CapabilitySets, files: &[PathBuf]) -> Result<bool, Errno> {
    let reading = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    if !held.permitted.intersects(reading) {
        return Ok(true);
    }
    set_capabilities(
        None,
        CapabilitySets { effective: held.effective.difference(reading), ..held },
    )?;
    let readable = files.iter().all(|file| match open(file) {
        Err(Errno::ACCESS) => false,
        Err(Errno::NOENT) => open(existing(file.parent().unwrap_or(file))) != Err(Errno::ACCESS),
        _ => true,
    });
    set_capabilities(None, held)?;
    Ok(readable)
}

/// Opens a file for reading, and does not wait for the other end of a pipe.
fn open(path: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(drop)
}

fn restrict(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        // No rule allows any: sockets are bound by now, and nobody is connected to.
        .handle_access(AccessNet::from_all(KNOWN))?
        // Abstract Unix sockets stay: a service manager may have its own there.
        .scope(Scope::Signal)?
        .create()?
        .set_compatibility(CompatLevel::BestEffort);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let write =
        read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let ruleset = allow(ruleset, &needs.read, read)?;
    let ruleset = allow(ruleset, &needs.devices, device)?;
    // A folder that is not there yet may be mounted or made later.
    let folders = needs.write.iter().map(|folder| existing(folder).to_owned()).collect::<Vec<_>>();
    let ruleset = allow(ruleset, &folders, write)?;
    let ruleset = allow(ruleset, &needs.empty, AccessFs::RemoveDir.into())?;
    // It sets no_new_privs, too.
    Ok(ruleset.restrict_self()?.ruleset)
}

/// Allows access to what is there of these: what is not there now is not needed.
fn allow(
    mut ruleset: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        let Ok(found) = PathFd::new(path) else { continue };
        // A file knows fewer rights than a folder, and a rule may not name others.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) };
        ruleset = ruleset.add_rule(PathBeneath::new(found, access))?;
    }
    Ok(ruleset)
}

/// The nearest folder on the way to this one that is there.
fn existing(folder: &Path) -> &Path {
    let mut ancestors = folder.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    ancestors.find(|folder| folder.is_dir()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_of_what_is_held() {
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
    fn a_folder_to_come_is_made_in_the_nearest_one_there_is() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(existing(dir.path()), dir.path());
        assert_eq!(existing(&dir.path().join("a/b")), dir.path());
        assert_eq!(existing(Path::new("not-there/at-all")), Path::new("."));
    }
}
