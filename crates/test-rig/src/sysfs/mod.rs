//! Trees like the kernel's `/sys`, made from descriptions of devices.
//!
//! The layout is the kernel's: a device is below its PCI function or below `devices/virtual`, and
//! `class/infiniband` and `class/net` have links to it. File contents have the kernel's format; the
//! numbers are made up and different for each file, so that a mix-up shows.
//!
//! In a plain folder no read fails with EINVAL. A folder in place of a file fails with EISDIR instead,
//! which is handled in the same way.

mod device;
mod hosts;
mod makes;
mod nvidia;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

pub use device::{Content, Device, Netdev};
pub use hosts::{Host, every_host, hgx};
pub use nvidia::{Copies, Vpd, connectx8, connectx8_ethernet, hgx_b200};

/// A sysfs of its own, deleted with this value and its readers.
pub struct Tree {
    path: PathBuf,
    dir: Arc<TempDir>,
}

impl Tree {
    /// The tree of these devices.
    pub fn new(devices: impl IntoIterator<Item = Device>) -> Self {
        let tree = Tree::empty();
        devices.into_iter().for_each(|device| tree.add(&device));
        tree
    }

    /// The tree of a host with the classes and no device.
    pub fn empty() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory for a sysfs");
        let tree = Tree { path: dir.path().join("sys"), dir: Arc::new(dir) };
        for class in ["class/infiniband", "class/net", "bus/pci/drivers"] {
            make_dir(&tree.path().join(class));
        }
        tree
    }

    /// The tree of a manifest: a line for each file, `path = "text"` with `\n`, `\t`, `\"` and
    /// `\\` in it, and for each link, `path -> target`.
    pub fn from_manifest(text: &str) -> Self {
        let tree = Tree::empty();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some((path, target)) = line.split_once(" -> ") {
                tree.link(path, target);
            } else {
                let (path, text) = line.split_once(" = ").expect(line);
                tree.put(path, &serde_json::from_str::<String>(text).expect(line));
            }
        }
        tree
    }

    /// The value of `--path.sysfs`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder for a program that reads it; the tree exists as long as it is kept.
    pub fn dir_for(&self, program: &str) -> (PathBuf, Arc<TempDir>) {
        let dir = tempfile::Builder::new().prefix(program).tempdir_in(self.dir.path());
        let dir =
            dir.unwrap_or_else(|e| panic!("no temporary directory for {program}: {e}")).keep();
        (dir, Arc::clone(&self.dir))
    }

    /// The flag for a program to read this tree.
    pub fn flag(&self) -> String {
        format!("--path.sysfs={}", self.path().display())
    }

    /// Adds a device.
    pub fn add(&self, device: &Device) {
        let home = device.home();
        for netdev in &device.netdevs {
            self.add_netdev(device.function.as_ref().map(|_| home.as_path()), netdev);
        }
        if let Some(function) = &device.function {
            let driver = format!("bus/pci/drivers/{}", function.driver);
            make_dir(&self.path().join(&driver));
            // Another device may be on the same function.
            if !self.path().join(&home).join("driver").exists() {
                self.link_to(&home.join("driver"), Path::new(&driver));
            }
        }
        let place = home.join("infiniband").join(&device.name);
        for (path, content) in &device.files {
            self.fill(&place.join(path), content);
        }
        if device.function.is_some() {
            self.link_to(&place.join("device"), &home);
        }
        self.link_to(&place.join("subsystem"), Path::new("class/infiniband"));
        // Last, as the kernel does it: the entries of a class are complete.
        self.link_to(&Path::new("class/infiniband").join(&device.name), &place);
    }

    /// Adds a PCI function to the bus, with these files; its devices may exist already.
    pub fn on_bus(&self, address: &str, files: &[(&str, &str)]) {
        let home = Path::new("devices/pci0000:00").join(address);
        for (file, text) in files {
            self.fill(&home.join(file), &Content::Text(format!("{text}\n")));
        }
        self.link_to(&Path::new("bus/pci/devices").join(address), &home);
    }

    /// Binds a driver to a PCI function without a device.
    pub fn bind(&self, address: &str, driver: &str) {
        let driver = Path::new("bus/pci/drivers").join(driver);
        make_dir(&self.path().join(&driver));
        self.link_to(&Path::new("devices/pci0000:00").join(address).join("driver"), &driver);
    }

    /// Removes a device and its interfaces, as the kernel does it: the classes first.
    pub fn remove(&self, device: &Device) {
        let home = self.path().join(device.home());
        let remove = |path: PathBuf| {
            let done = if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            done.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        };
        remove(self.path().join("class/infiniband").join(&device.name));
        for netdev in &device.netdevs {
            remove(self.path().join("class/net").join(&netdev.name));
            if device.function.is_some() {
                remove(home.join("net").join(&netdev.name));
            }
        }
        if device.function.is_some() {
            remove(home.join("driver"));
        }
        remove(home.join("infiniband").join(&device.name));
    }

    /// Adds an interface, below a PCI function or by itself.
    pub fn add_netdev(&self, function: Option<&Path>, netdev: &Netdev) {
        let place = function.unwrap_or(Path::new("devices/virtual")).join("net").join(&netdev.name);
        for (path, text) in &netdev.files {
            self.fill(&place.join(path), &Content::Text(text.clone()));
        }
        if let Some(function) = function {
            self.link_to(&place.join("device"), function);
        }
        self.link_to(&Path::new("class/net").join(&netdev.name), &place);
    }

    /// Replaces a file of a device atomically: no reader sees half of it.
    pub fn set(&self, device: &str, file: &str, text: &str) {
        let path = self.path().join("class/infiniband").join(device).join(file);
        let new = self.dir.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Writes a file, by its path below the tree.
    pub fn put(&self, path: &str, text: &str) {
        self.fill(Path::new(path), &Content::Text(text.to_owned()));
    }

    /// Creates a link, by its path below the tree, with this target as it is.
    pub fn link(&self, path: &str, target: &str) {
        self.fill(Path::new(path), &Content::Link(target.to_owned()));
    }

    /// The devices in its class.
    pub fn devices(&self) -> Vec<String> {
        names(&self.path().join("class/infiniband"))
    }

    /// The ports of a device, by number.
    pub fn ports(&self, device: &str) -> Vec<String> {
        names(&self.path().join("class/infiniband").join(device).join("ports"))
    }

    /// The files of a directory of a device's that hold a number, by name.
    pub fn numbers(&self, device: &str, directory: &str) -> BTreeMap<String, u64> {
        let directory = self.path().join("class/infiniband").join(device).join(directory);
        let number = |name: String| {
            let text = std::fs::read_to_string(directory.join(&name)).ok()?;
            Some((name, text.trim().parse().ok()?))
        };
        names(&directory).into_iter().filter_map(number).collect()
    }

    fn fill(&self, path: &Path, content: &Content) {
        let path = self.path().join(path);
        make_dir(path.parent().unwrap());
        let done = match content {
            Content::Text(text) => std::fs::write(&path, text),
            Content::Refuses => std::fs::create_dir_all(&path),
            Content::Link(target) => symlink(target, &path),
            Content::Pipe => {
                use rustix::fs::{CWD, FileType, Mode, mknodat};
                mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(Into::into)
            }
        };
        done.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// A link as the kernel writes them: relative.
    fn link_to(&self, from: &Path, to: &Path) {
        let depth = from.components().count() - 1;
        let target: PathBuf = std::iter::repeat_n("..", depth).collect::<PathBuf>().join(to);
        self.fill(from, &Content::Link(target.to_str().unwrap().to_owned()));
    }
}

fn make_dir(path: &Path) {
    std::fs::create_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}
