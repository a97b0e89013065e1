//! Landlock: which files, TCP ports, processes and sockets can be reached.

use std::path::{Path, PathBuf};
use std::time::Duration;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::config::{DataFrom, EndpointUrl, FabricSettings, JobsFrom, Settings};
use crate::remote::{Access as Login, Remote};

/// The newest access rights: those of Linux 7.2. Older kernels restrict fewer.
const LANDLOCK_ABI: ABI = ABI::V10;

/// All rights that change files. Later versions also restrict devices and sockets, which programs may need.
const WRITING_ABI: ABI = ABI::V3;

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
const NETWORK: [&str; 6] =
    ["/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/pki", "/etc/ssl"];

/// Where the resolver finds its servers, and the sockets of systemd-resolved and nscd.
const RESOLVERS: [&str; 3] = ["/etc/resolv.conf", "/run/systemd/resolve", "/run/nscd"];

/// UDP ports that the resolver sends to: DNS, and none: it asks the kernel for the route to an address.
const RESOLVER_PORTS: [u16; 2] = [53, 0];

/// Time zones, and the seeds of SQLite and hash tables.
const ALWAYS: [&str; 3] = ["/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom"];

/// The folder of devices that is there from the start.
const RDMA_DEVICES: &str = "/dev/infiniband";

/// What the process accesses from now on.
#[derive(Debug, Default)]
pub(super) struct AllowedPaths {
    /// Files and folders to read.
    pub read: Vec<PathBuf>,
    /// Files to read again in these folders, regardless of their owner.
    pub files: Vec<PathBuf>,
    /// Folders in which to create, write, rename and remove files.
    pub write: Vec<PathBuf>,
    /// The files in them that may exist: those of the history.
    pub history: Vec<PathBuf>,
    /// Folders in which to remove empty folders.
    pub remove_dirs: Vec<PathBuf>,
    /// Folders of devices to open, write to and control (ioctl).
    pub devices: Vec<PathBuf>,
    /// TCP ports of other exporters and of a webhook, to connect to.
    pub connect: Vec<u16>,
}

impl AllowedPaths {
    /// What these settings need, these files of the web config, and a temporary folder that is removed at the end.
    pub fn of(settings: &Settings, web: &[PathBuf], temporary: Option<&Path>) -> Self {
        let mut read: Vec<PathBuf> = ALWAYS.map(PathBuf::from).into();
        read.push(settings.procfs.clone());
        // Files that are reloaded, and may have been replaced by then.
        let files = settings.fabrics.iter().flat_map(|fabric| {
            let FabricSettings { node_name_map, m_key_file, vs_key_file, .. } = fabric;
            let FabricSettings { maintenance_file, drained_hosts_file, .. } = fabric;
            [node_name_map, m_key_file, vs_key_file, maintenance_file, drained_hosts_file]
                .into_iter()
                .flatten()
        });
        let token = settings.notify.as_ref().and_then(|notify| notify.token_file.as_ref());
        let files: Vec<PathBuf> = files.chain(web).chain(token).cloned().collect();
        read.extend(
            files.iter().flat_map(|file| [folders_of(file), folders_of_links(file)].concat()),
        );
        if let Some(JobsFrom::Directory(folder)) = settings.jobs.as_ref().map(|jobs| &jobs.from) {
            read.push(folder.clone());
        }
        let sources = || settings.fabrics.iter().filter_map(|fabric| fabric.from.as_ref());
        for from in sources() {
            if let DataFrom::Directory(folder) = from {
                // It may be replaced as a whole, or be a link that leads to another one next time.
                read.extend(folders_of(folder));
                read.extend(folders_of_links(folder));
                read.push(folder.clone());
            }
        }
        let mut devices = Vec::new();
        let events = settings.host.as_ref().is_some_and(|host| host.events);
        read.push(settings.sysfs.clone());
        if events || settings.fabrics.iter().any(|fabric| fabric.from.is_none()) {
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
        let webhook = settings.notify.as_ref().map(|notify| notify.webhook.port());
        let endpoints = sources().flat_map(|from| match from {
            DataFrom::Endpoints(urls, _) => &**urls,
            DataFrom::Directory(_) => &[],
        });
        let endpoints = endpoints.filter_map(EndpointUrl::port);
        let others = others.map(|other| other.port());
        let connect: Vec<u16> = others.chain(endpoints).chain(webhook).collect();
        if !connect.is_empty() {
            // The resolver loads its modules when it is first used.
            read.extend(NETWORK.into_iter().chain(RESOLVERS).chain(LIBRARIES).map(PathBuf::from));
        }
        let history = settings.history.as_ref().map(|history| &history.file);
        let write = history.into_iter().flat_map(|file| folders_of(file)).collect();
        let history = history.into_iter().flat_map(|file| fabric_history::files_of(file)).collect();
        let remove_dirs =
            temporary.and_then(Path::parent).map(Path::to_owned).into_iter().collect();
        AllowedPaths { read, files, write, history, remove_dirs, devices, connect }
    }

    /// Leaves only the folder of RDMA devices of /dev, for a process that can open every device in it.
    pub fn without_other_devices(&mut self) {
        for folder in &mut self.devices {
            *folder = RDMA_DEVICES.into();
        }
    }

    /// Restricts this thread, and those that it starts, to these.
    pub fn restrict(&self) -> Result<RulesetStatus, RulesetError> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
            // Sockets are bound already; connections are only allowed to other exporters and a webhook.
            .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)?
            .create()?
            .set_compatibility(CompatLevel::BestEffort);
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let device = read | AccessFs::WriteFile | AccessFs::IoctlDev;
        let write = read
            | AccessFs::WriteFile
            | AccessFs::Truncate
            | AccessFs::MakeReg
            | AccessFs::RemoveFile;
        // A missing folder may be mounted or created later.
        let folders = self.write.iter().map(|folder| nearest_existing(folder));
        let mut ruleset = ruleset
            .add_rules(path_beneath_rules(&self.read, read))?
            .add_rules(path_beneath_rules(&self.devices, device))?
            .add_rules(path_beneath_rules(folders, write))?
            .add_rules(path_beneath_rules(&self.remove_dirs, AccessFs::RemoveDir))?;
        let tcp = self.connect.iter().map(|port| NetPort::new(*port, AccessNet::ConnectTcp));
        ruleset = ruleset.add_rules(tcp.map(Ok::<_, RulesetError>))?;
        if !self.connect.is_empty() {
            let udp = RESOLVER_PORTS.iter().chain(&self.connect);
            let udp = udp.map(|port| NetPort::new(*port, AccessNet::ConnectSendUdp));
            ruleset = ruleset
                .add_rules(udp.map(Ok::<_, RulesetError>))?
                // A port of the kernel's choice.
                .add_rule(NetPort::new(0, AccessNet::BindUdp))?
                .add_rules(path_beneath_rules(RESOLVERS, AccessFs::ResolveUnix))?;
        }
        // Sets no_new_privs, too.
        Ok(ruleset.restrict_self()?.ruleset)
    }
}

/// Keeps this thread, and the programs that it starts, from changing any file: of all rights only those to write are
/// restricted.
pub(super) fn forbid_writing() -> Result<RulesetStatus, RulesetError> {
    let write = AccessFs::from_write(WRITING_ABI);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)?
        .create()?
        .set_compatibility(CompatLevel::BestEffort)
        .add_rules(path_beneath_rules(["/dev/null"], AccessFs::WriteFile | AccessFs::Truncate))?;
    Ok(ruleset.restrict_self()?.ruleset)
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

/// The folder itself, or the nearest one above it that exists.
pub(super) fn nearest_existing(folder: &Path) -> &Path {
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
    fn missing_folder_gives_nearest_above() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nearest_existing(dir.path()), dir.path());
        assert_eq!(nearest_existing(&dir.path().join("a/b")), dir.path());
        assert_eq!(nearest_existing(Path::new("not-there/at-all")), Path::new("."));
    }
}
