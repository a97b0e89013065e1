//! Files that stay open from one read to the next.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::*;
use crate::reader::kept::Allowance;
use crate::reader::sysfs::hooks::{self, Call};

const COUNTERS: [&str; 4] = ["link_downed", "port_rcv_errors", "port_xmit_wait", "symbol_error"];
const DEVICES: [&str; 3] = ["mlx5_0", "mlx5_1", "mlx5_2"];

/// Devices with a state and counters, in directories that have not changed for an hour.
fn host(most: usize) -> (Sysfs, HostReader) {
    let sysfs = Sysfs::new();
    for (device, guid) in DEVICES.iter().zip(1..) {
        sysfs.device(device, guid);
        sysfs.counters(device, &COUNTERS, 1);
        age(&sysfs, device);
    }
    let mut host = sysfs.host_at(&Time::manual());
    host.context.files = Allowance::new(most);
    host.executor = executor(&host.context);
    (sysfs, host)
}

fn age(sysfs: &Sysfs, device: &str) {
    for below in ["ports/1", "ports/1/counters"] {
        let directory = fs::File::open(sysfs.path(&format!("infiniband/{device}/{below}")));
        let hour = Duration::from_secs(3600);
        directory.unwrap().set_modified(SystemTime::now() - hour).unwrap();
    }
}

fn symbol_errors(host: &mut HostReader) -> Vec<Option<u64>> {
    let of = |device: &Device| device.ports[0].reading.get(Counter::SymbolErrors);
    host.read().devices.iter().map(of).collect()
}

/// The system calls of a read.
fn calls(sysfs: &Sysfs, host: &mut HostReader) -> BTreeMap<Call, usize> {
    hooks::calls(sysfs.0.path());
    host.read();
    hooks::calls(sysfs.0.path())
}

/// Puts another file in the place of one.
fn replace(sysfs: &Sysfs, text: &str) {
    let path = sysfs.path("infiniband/mlx5_0/ports/1/counters/symbol_error");
    fs::write(path.with_extension("new"), text).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

#[test]
fn later_reads_open_nothing_but_the_list_of_devices() {
    let (sysfs, mut host) = host(100);
    let files = DEVICES.len() * (1 + COUNTERS.len());
    host.read();
    for _ in 0..3 {
        let calls = calls(&sysfs, &mut host);
        assert_eq!(calls[&Call::Read], files, "{calls:?}");
        assert_eq!((calls[&Call::Open], calls[&Call::List]), (1, 1), "{calls:?}");
        // The device by its name, and whether its ports, those of each port and its counters have changed.
        assert!(calls[&Call::Other] <= 4 * DEVICES.len(), "{calls:?}");
    }
}

#[test]
fn files_beyond_the_allowance_are_opened_for_each_read() {
    let (sysfs, mut host) = host(6);
    let files = DEVICES.len() * (1 + COUNTERS.len());
    host.read();
    let with_some = calls(&sysfs, &mut host);
    assert_eq!((with_some[&Call::Open], with_some[&Call::Read]), (1 + files - 6, files));
    assert_eq!(symbol_errors(&mut host), [Some(1); 3]);
    // A device that goes leaves its share to the others.
    fs::remove_dir_all(sysfs.path("infiniband/mlx5_0")).unwrap();
    host.read();
    let with_some = calls(&sysfs, &mut host);
    assert_eq!((with_some[&Call::Open], with_some[&Call::Read]), (1 + files - 5 - 6, files - 5));
    drop(host);
}

#[test]
fn open_file_has_the_value_of_now() {
    let (sysfs, mut host) = host(100);
    for value in [1, 22, 3, 4444, 5] {
        sysfs.counters("mlx5_0", &COUNTERS, value);
        assert_eq!(symbol_errors(&mut host), [Some(value), Some(1), Some(1)]);
    }
}

#[test]
fn file_that_is_replaced_is_read_anew() {
    let (sysfs, mut host) = host(100);
    assert_eq!(symbol_errors(&mut host)[0], Some(1));
    for (value, text) in [(2, "2\n"), (30, "30\n")] {
        replace(&sysfs, text);
        assert_eq!(symbol_errors(&mut host)[0], Some(value), "the directory has just changed");
    }
    age(&sysfs, "mlx5_0");
    assert_eq!(symbol_errors(&mut host)[0], Some(30));
    let calls = calls(&sysfs, &mut host);
    assert_eq!(calls[&Call::Open], 1, "{calls:?}");
}

#[test]
fn device_that_is_made_again_under_its_name_is_read_anew() {
    let (sysfs, mut host) = host(100);
    host.read();
    fs::remove_dir_all(sysfs.path("infiniband/mlx5_0")).unwrap();
    sysfs.device("mlx5_0", 9);
    sysfs.counters("mlx5_0", &COUNTERS, 7);
    age(&sysfs, "mlx5_0");
    assert_eq!(symbol_errors(&mut host), [Some(7), Some(1), Some(1)]);
    sysfs.rename("mlx5_0", "mlx5_9");
    assert_eq!(symbol_errors(&mut host), [Some(1), Some(1), Some(7)]);
}

#[test]
fn device_that_is_renamed_after_it_was_listed_is_not_one_of_its_old_name() {
    let (sysfs, mut host) = host(100);
    host.read();
    sysfs.rename("mlx5_0", "mlx5_9");
    host.open_listed(&DEVICES.map(str::to_owned));
    assert!(host.closed.is_empty(), "{:?}", host.closed);
    let names: Vec<Arc<str>> = host.read().devices.iter().map(|it| Arc::clone(&it.name)).collect();
    assert_eq!(
        names.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["mlx5_1", "mlx5_2", "mlx5_9"]
    );
}

/// As sysfs says it of an open file whose directory was removed and made again.
#[test]
fn file_that_was_removed_is_opened_again_in_the_same_read() {
    let (sysfs, mut host) = host(100);
    host.read();
    let fails = Arc::new(Mutex::new(None));
    let next = Arc::clone(&fails);
    sysfs.hook("mlx5_0", move |name| {
        let error = (name == "symbol_error").then(|| next.lock().unwrap().take()).flatten();
        error.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
    });
    for (error, value, opened) in [
        (libc::ENODEV, Some(1), 2),
        // Not asked twice; what is there next is opened again.
        (libc::EINVAL, None, 1),
    ] {
        *fails.lock().unwrap() = Some(error);
        hooks::calls(sysfs.0.path());
        assert_eq!(symbol_errors(&mut host)[0], value);
        assert_eq!(hooks::calls(sysfs.0.path())[&Call::Open], opened);
    }
    assert_eq!(symbol_errors(&mut host)[0], Some(1));
}

#[test]
fn limit_of_descriptors_leaves_most_to_others() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let allowed = Allowance::of_process().most();
    assert!(allowed > 0 && limit.is_none_or(|limit| allowed as u64 <= limit / 4), "{allowed}");
}
