//! The user that `serve` becomes when root started it.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, chownat, fstat, open};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// The user that the packages create.
const PACKAGE: &str = "fabric-exporter";

/// The user that owns nothing: its name, and its number where /etc/passwd does not have it.
const NOBODY: (&str, u32) = ("nobody", 65534);

/// A user without privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name, or number.
    pub name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl User {
    /// The user that this process is to become: the wanted one, or else that of the packages, or nobody. `None` if the
    /// process is not root, or stays root. An error says which option has to change.
    pub fn choose(wanted: Option<&str>, allow_root: bool) -> Result<Option<User>, String> {
        let current = rustix::process::geteuid();
        let accounts = Accounts::read();
        let wanted = wanted.map(|name| accounts.find(name).map(|user| (name, user))).transpose()?;
        match wanted {
            Some((name, user)) if !current.is_root() => {
                let is_it = user.uid == current;
                let problem = || {
                    format!(
                        "--process.user: only root can become {name}: start the exporter as root or as {name}"
                    )
                };
                if is_it { Ok(None) } else { Err(problem()) }
            }
            Some((_, user)) if user.uid.is_root() => {
                Err("--process.user: to stay root, use --process.allow-root instead".to_owned())
            }
            Some((_, user)) => Ok(Some(user)),
            None if !current.is_root() || allow_root => Ok(None),
            None => Ok(Some(accounts.default_user())),
        }
    }

    /// A text by which another process [finds](Self::choose) the same user.
    pub fn reference(&self) -> String {
        if Accounts::read().named(&self.name).is_some() {
            return self.name.clone();
        }
        format!("{}:{}", self.uid.as_raw(), self.gid.as_raw())
    }

    /// Becomes this user. The permitted capabilities are kept, and effective, until [`keep`](super::capabilities::keep).
    ///
    /// It is for the thread that starts all others: the kernel changes only the calling one.
    pub(super) fn become_it(&self) -> Result<(), Errno> {
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        if !capabilities(None)?.effective.contains(needed) {
            return Err(Errno::PERM);
        }
        // A process that was root may not read /proc/self/auxv, from which rustix and procfs take this once.
        let _ = (rustix::param::page_size(), rustix::param::clock_ticks_per_second());
        set_keep_capabilities(true)?;
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(self.gid, self.gid, self.gid)?;
        set_thread_res_uid(self.uid, self.uid, self.uid)?;
        let held = capabilities(None)?;
        set_capabilities(None, CapabilitySets { effective: held.permitted, ..held })
    }

    /// Makes this user the owner of root's files, such as those of a history that root has just created, in a folder in
    /// which the user can create files. Other files stay as they are.
    pub(super) fn take_over(&self, files: &[PathBuf]) {
        for file in files {
            match self.take(file) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => {
                    let file = file.display();
                    tracing::debug!(%file, %error, "owner of the file not changed");
                }
            }
        }
    }

    fn take(&self, file: &Path) -> Result<(), Errno> {
        // PATH: closing another kind of descriptor would release the locks of SQLite on the file.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = open(file, flags, Mode::empty())?;
        let found = fstat(&opened)?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        // A second hard link may be a file of root elsewhere.
        if !is_file || found.st_nlink != 1 || found.st_uid != 0 {
            return Ok(());
        }
        chownat(&opened, "", Some(self.uid), Some(self.gid), AtFlags::EMPTY_PATH)
    }
}

/// `/etc/passwd` and `/etc/group`. Not getpwnam(): it would load modules of this system's libc into a static program.
struct Accounts {
    passwd: String,
    group: String,
}

impl Accounts {
    fn read() -> Self {
        let text = |file| std::fs::read(file).unwrap_or_default();
        let text = |file| String::from_utf8_lossy(&text(file)).into_owned();
        Accounts { passwd: text("/etc/passwd"), group: text("/etc/group") }
    }

    fn default_user(&self) -> User {
        self.named(PACKAGE).or_else(|| self.named(NOBODY.0)).unwrap_or_else(|| User {
            name: NOBODY.0.to_owned(),
            uid: Uid::from_raw(NOBODY.1),
            gid: Gid::from_raw(NOBODY.1),
            groups: Vec::new(),
        })
    }

    /// A user by name, number, or number of user and group (`65534:65534`).
    fn find(&self, wanted: &str) -> Result<User, String> {
        let known = self.named(wanted);
        let number = || {
            let (uid, gid) = wanted.split_once(':').unwrap_or((wanted, wanted));
            let id = |text: &str| text.parse::<u32>().ok().filter(|id| *id != u32::MAX);
            let (uid, gid) = (Uid::from_raw(id(uid)?), Gid::from_raw(id(gid)?));
            Some(User { name: wanted.to_owned(), uid, gid, groups: Vec::new() })
        };
        known.or_else(number).ok_or_else(|| {
            format!("--process.user: no user {wanted} in /etc/passwd; a number is accepted, too")
        })
    }

    /// The user with this name, if its line is complete.
    fn named(&self, name: &str) -> Option<User> {
        let fields =
            self.passwd.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let mut numbers = fields?.split(':').skip(1).map(|field| field.parse::<u32>().ok());
        let (uid, gid) = (numbers.next()??, numbers.next()??);
        let groups = self.group.lines().filter_map(|line| {
            // NAME:PASSWORD:NUMBER:MEMBERS
            let mut fields = line.split(':').skip(2);
            let (number, members) = (fields.next()?, fields.next()?);
            members.split(',').any(|member| member == name).then(|| number.parse().ok())?
        });
        let groups = groups.map(Gid::from_raw).collect();
        let name = name.to_owned();
        Some(User { name, uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nfabric-exporter2:x:7:7::/:/bin/false\n\
                      fabric-exporter:x:990:980::/:/bin/false\nbroken:x:\nnobody:x:65534:65533::/:\n";
        let group = "rdma:x:27:other,fabric-exporter\nfabric-exporter:x:980:\nbad\nx:y:z:nobody\n";
        Accounts { passwd: passwd.into(), group: group.into() }
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        let user = |name: &str, uid, gid, groups: &[u32]| User {
            name: name.into(),
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
            groups: groups.iter().copied().map(Gid::from_raw).collect(),
        };
        let accounts = accounts();
        let package = user("fabric-exporter", 990, 980, &[27]);
        assert_eq!(accounts.default_user(), package);
        assert_eq!(accounts.find("fabric-exporter"), Ok(package));
        assert_eq!(accounts.find("nobody"), Ok(user("nobody", 65534, 65533, &[])));
        assert_eq!(accounts.find("1000"), Ok(user("1000", 1000, 1000, &[])));
        assert_eq!(accounts.find("1000:5"), Ok(user("1000:5", 1000, 5, &[])));
        for wrong in ["broken", "fabric", "", "-1", "4294967295", "1:x", "1000:5:6"] {
            assert!(accounts.find(wrong).is_err(), "{wrong}");
        }
        let none = Accounts { passwd: String::new(), group: String::new() };
        assert_eq!(none.default_user(), user("nobody", 65534, 65534, &[]));
    }
}
