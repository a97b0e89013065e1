//! Sandboxes the process: it drops the privileges that it does not need.
//!
//! Once devices are open, sockets are bound and the history's file is locked, the exporter only reads: it starts no
//! programs, opens no connections (except to another exporter, for its totals, to UFM, for its data, and to a webhook),
//! and needs no capability (except to read modules). So the kernel keeps a process that a hostile MAD, file or request
//! has taken over from the rest of the host
//! (seccomp(2), landlock(7), capabilities(7), `PR_SET_NO_NEW_PRIVS`, and another user than root). Threads inherit the
//! restrictions, which cannot be removed again, so they are applied before the first thread starts.
//!
//! An old kernel applies those that it has. Failures here do not stop the program.

mod capabilities;
mod files;
pub mod opener;
mod system_calls;
#[cfg(test)]
mod tests;
mod user;

use std::path::{Path, PathBuf};

use landlock::RulesetStatus;
use rustix::thread::{CapabilitySet, set_no_new_privs};

use crate::config::Settings;
use files::AllowedPaths;
use system_calls::Needs;
pub use user::User;

/// Restricts the process to what it needs with these settings, these files of its web config, and a temporary
/// folder that it removes at its end; and logs the result. It becomes this user, if there is one.
pub fn enter(settings: &Settings, web: &[PathBuf], temporary: Option<&Path>, user: Option<&User>) {
    let mut paths = AllowedPaths::of(settings, web, temporary);
    let switched = user.is_some_and(|user| switch(user, &paths));
    if settings.confine
        && let Err(error) = set_no_new_privs(true)
    {
        tracing::warn!(%error, "setting no_new_privs failed");
    }
    if !settings.confine && !switched {
        return;
    }
    let modules = settings.host.as_ref().is_some_and(|host| host.read.modules);
    let kept = capabilities::needed(&paths, modules).unwrap_or_else(|error| {
        tracing::warn!(%error, "reading capabilities failed");
        CapabilitySet::empty()
    });
    if switched {
        explain(kept, settings);
    }
    if kept.contains(CapabilitySet::DAC_OVERRIDE) {
        // It can open every device, also disks.
        paths.without_other_devices();
    }
    if settings.confine {
        restrict_files(&paths);
    }
    if let Err(error) = capabilities::keep(kept) {
        tracing::warn!(%error, "dropping capabilities failed");
    }
    if settings.confine {
        let events = settings.host.as_ref().is_some_and(|host| host.events);
        let connections = !paths.connect.is_empty();
        let needs = Needs { events, modules, connections, pass_descriptors: false };
        if let Err(error) = system_calls::restrict(needs) {
            tracing::warn!(%error, "system calls are not restricted: seccomp failed");
        }
    }
}

/// Restricts a process that runs programs of the site: it becomes this user, has no capabilities, cannot change files
/// and cannot gain privileges, and so cannot the programs. They may read files and open connections, as any program of
/// this user may: a command of a scheduler reads its configuration and asks its controller. What fails here has failed,
/// and was logged, in the exporter as well.
pub fn enter_for_programs(user: Option<&User>, confine: bool) {
    let switched = user.is_some_and(|user| user.become_it().is_ok());
    if confine {
        let _ = set_no_new_privs(true);
        let _ = files::forbid_writing();
    }
    if confine || switched {
        let _ = capabilities::keep(CapabilitySet::empty());
    }
}

/// Becomes a user, who takes over the history if its directory is the user's. Returns whether that succeeded.
fn switch(user: &User, paths: &AllowedPaths) -> bool {
    match user.become_it() {
        Ok(()) => {
            tracing::info!(user = user.name, "no longer root");
            // While all capabilities are still effective.
            let mut folders = paths.write.iter().map(|folder| files::nearest_existing(folder));
            if folders.all(capabilities::is_writable_without) {
                user.take_over(&paths.history);
            }
            true
        }
        Err(error) => {
            tracing::warn!(
                user = user.name, %error,
                "running as root: changing the user failed. Start the exporter as another user, or give it \
                 CAP_SETUID and CAP_SETGID"
            );
            false
        }
    }
}

/// Says which capability a process that is no longer root keeps, and how it can do without.
fn explain(kept: CapabilitySet, settings: &Settings) {
    if kept.contains(CapabilitySet::DAC_OVERRIDE) {
        let history = settings.history.as_ref().map(|history| history.file.display().to_string());
        tracing::warn!(
            history,
            "CAP_DAC_OVERRIDE is kept: the user of the exporter cannot write to the directory of the history. \
             Make the user the owner of the directory and its files"
        );
    } else if kept.contains(CapabilitySet::DAC_READ_SEARCH) {
        tracing::info!(
            "CAP_DAC_READ_SEARCH is kept: only root can read some of the configured files. Give their group to the \
             user of the exporter"
        );
    }
}

fn restrict_files(paths: &AllowedPaths) {
    match paths.restrict() {
        Ok(RulesetStatus::FullyEnforced) => tracing::debug!("sandboxed"),
        Ok(RulesetStatus::PartiallyEnforced) => {
            tracing::debug!("sandboxed in part: this kernel lacks newer Landlock features");
        }
        Ok(RulesetStatus::NotEnforced) => tracing::warn!(
            "file access is not restricted: Landlock is not available in this kernel, or not enabled at \
             boot (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)"
        ),
        Err(error) => tracing::warn!(%error, "file access is not restricted: Landlock failed"),
    }
}
