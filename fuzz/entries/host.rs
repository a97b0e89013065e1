//! The files of a host's sysfs, with arbitrary content.
//!
//! Records are separated by NUL: the first byte selects a file, the rest is its content. Other files have
//! their usual content.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fabric_exporter::config::HostSettings;
use fabric_exporter::config::Settings;
use fabric_exporter::config::options::Options;
use fabric_exporter::monitor::host::HostMonitor;
use fabric_observation::SharedState;
use process_clock::Clock;
use rdma_host::reader::ReadOptions;
use tempfile::TempDir;
use tokio::sync::watch;

use super::exposition;

/// The files below `class`, and their usual content.
const FILES: &[(&str, &str)] = &[
    ("infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
    ("infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n"),
    ("infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n"),
    ("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
    ("infiniband/mlx5_0/ports/1/lid", "0x8\n"),
    ("infiniband/mlx5_0/ports/1/sm_lid", "0x1\n"),
    ("infiniband/mlx5_0/ports/1/counters/symbol_error", "7\n"),
    ("infiniband/mlx5_0/ports/1/counters/port_xmit_data", "4294967295\n"),
    ("infiniband/mlx5_0/ports/1/counters/link_downed", "255\n"),
    ("infiniband/mlx5_0/ports/1/counters_ext/port_rcv_data_64", "0x12\n"),
    ("infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "3\n"),
    ("infiniband/mlx5_0/ports/1/hw_counters/lifespan", "10\n"),
    ("infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "ib0\n"),
    ("infiniband/mlx5_0/hw_counters/rx_total", "9\n"),
    ("infiniband/mlx5_0/node_guid", "0c42:a103:0012:3456\n"),
    ("infiniband/mlx5_0/sys_image_guid", "0c42:a103:0012:3456\n"),
    ("infiniband/mlx5_0/node_type", "1: CA\n"),
    ("infiniband/mlx5_0/node_desc", "host HCA-1\n"),
    ("infiniband/mlx5_0/fw_ver", "20.36.1010\n"),
    ("infiniband/mlx5_0/hw_rev", "0\n"),
    ("infiniband/mlx5_0/board_id", "MT_0000000223\n"),
    ("infiniband/mlx5_0/hca_type", "MT4123\n"),
    ("infiniband/mlx5_0/parent", ""),
    ("infiniband/mlx5_0/device/net/ib0", ""),
    ("net/ib0/type", "32\n"),
    ("net/ib0/mode", "datagram\n"),
    ("net/ib0/operstate", "up\n"),
    ("net/ib0/mtu", "2044\n"),
    ("net/ib0/carrier_changes", "2\n"),
    ("net/ib0/dev_port", "0\n"),
    ("net/ib0/dev_id", "0x0\n"),
    ("net/ib0/phys_port_name", "p0\n"),
    ("net/ib0/bonding/slaves", "ib0 ib1\n"),
    ("infiniband_mad/umad0/ibdev", "mlx5_0\n"),
    ("infiniband_mad/umad0/port", "1\n"),
];

/// Directories in which the text of a record names a file.
const FOLDERS: &[&str] = &[
    "infiniband/mlx5_0/ports/1/hw_counters",
    "infiniband/mlx5_0/hw_counters",
    "infiniband/mlx5_0/ports/1/counters",
    "infiniband/mlx5_0/ports",
    "infiniband",
];

/// A sysfs with one device.
struct Tree {
    folder: TempDir,
    settings: HostSettings,
}

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::load(Options::default(), None).unwrap().host.unwrap();
        let tree = Tree {
            settings: HostSettings {
                sysfs: folder.path().into(),
                interval: Duration::from_secs(1),
                events: false,
                read: ReadOptions { ethtool: false, ..settings.read },
                ..settings
            },
            folder,
        };
        for (name, usual) in FILES {
            let path = tree.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, usual).unwrap();
        }
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("class").join(name)
    }
}

thread_local! {
    static TREE: RefCell<Option<Tree>> = const { RefCell::new(None) };
}

pub fn run(bytes: &[u8]) {
    TREE.with_borrow_mut(|tree| look(tree.get_or_insert_with(Tree::new), bytes));
}

fn look(tree: &Tree, bytes: &[u8]) {
    let mut changed = Vec::new();
    let mut made = Vec::new();
    for record in bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let (which, text) = (usize::from(record[0]), &record[1..]);
        if let Some((name, usual)) = FILES.get(which) {
            fs::write(tree.path(name), text).unwrap();
            changed.push((name, usual));
        } else if let Some(path) = inside(tree, which - FILES.len(), text) {
            let exists = path.exists();
            // An existing entry with that name is not a new file.
            if !exists && fs::write(&path, "5\n").is_ok() {
                made.push(path);
            }
        }
    }
    let (board, seen) = watch::channel(SharedState::default());
    let clock = Clock::start();
    let devices = Box::new(tree.settings.reader(clock));
    let monitor = HostMonitor::new(&tree.settings, devices, clock, Arc::new(board));
    // One read.
    monitor.queue.end();
    monitor.run();
    let board = seen.borrow().clone();
    for (name, usual) in changed {
        fs::write(tree.path(name), usual).unwrap();
    }
    for path in made {
        fs::remove_file(path).unwrap();
    }
    let device = board.host.as_ref().and_then(|host| host.snapshot.as_ref());
    assert!(device.is_some_and(|it| it.devices.iter().any(|device| &*device.name == "mlx5_0")));
    exposition::check(board);
}

/// The path of the file with this name; `None` if the name is invalid.
fn inside(tree: &Tree, which: usize, name: &[u8]) -> Option<PathBuf> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let is_name = !name.is_empty() && name.len() < 256 && !name.contains(&b'/');
    let name = Path::new(OsStr::from_bytes(name)).file_name().filter(|_| is_name)?;
    Some(tree.path(FOLDERS[which % FOLDERS.len()]).join(name))
}
