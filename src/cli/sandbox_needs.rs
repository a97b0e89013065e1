//! The files and devices that the process needs after its start, by its settings.

use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::sandbox::AllowedPaths;
use exporter_web::Sources;

/// What `libibverbs` reads in addition to devices and sysfs: it loads its drivers when the first device
/// appears.
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

/// Time zones, and the seeds of SQLite and hash tables.
const ALWAYS: [&str; 3] = ["/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom"];

/// The needs of a process with these settings, these files of its web config, and a temporary
/// folder that it removes at its end.
pub fn needs(settings: &Settings, web: Option<&Sources>, temporary: Option<&Path>) -> AllowedPaths {
    let mut read: Vec<PathBuf> = ALWAYS.map(PathBuf::from).into();
    read.push(settings.procfs.clone());
    // Files that are reloaded, and may have been replaced by then.
    let files = settings.fabrics.iter().flat_map(|fabric| {
        [&fabric.node_name_map, &fabric.m_key_file, &fabric.maintenance_file].into_iter().flatten()
    });
    let files = files.map(PathBuf::as_path).chain(web.into_iter().flat_map(Sources::paths));
    let files: Vec<PathBuf> = files.map(Path::to_owned).collect();
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
    let history = settings.history.iter();
    let write = history.flat_map(|history| folders_of(&history.file)).collect();
    let empty = temporary.and_then(Path::parent).map(Path::to_owned).into_iter().collect();
    AllowedPaths { read, files, write, remove_dirs: empty, devices }
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
}
