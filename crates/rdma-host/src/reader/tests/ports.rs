//! Ports that appear, disappear or are made again under a device that stays.

use super::*;

fn ports(host: &mut HostReader) -> Vec<(u8, Option<PortState>)> {
    host.read().devices[0].ports.iter().map(|port| (port.number, port.state)).collect()
}

#[test]
fn ports_that_come_and_go_are_noticed_at_the_next_read() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    let second = "infiniband/mlx5_0/ports/2";
    let mut host = sysfs.host();
    assert_eq!(ports(&mut host), [(1, Some(PortState::Active))]);
    sysfs.put(&format!("{second}/state"), "2: INIT\n");
    assert_eq!(ports(&mut host), [(1, Some(PortState::Active)), (2, Some(PortState::Init))]);
    fs::remove_dir_all(sysfs.path(second)).unwrap();
    assert_eq!(ports(&mut host), [(1, Some(PortState::Active))]);
}

#[test]
fn port_whose_files_come_later_is_noticed() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    let mut host = sysfs.host();
    assert_eq!(ports(&mut host).len(), 1);
    fs::create_dir(sysfs.path("infiniband/mlx5_0/ports/2")).unwrap();
    assert_eq!(ports(&mut host).len(), 1);
    sysfs.put("infiniband/mlx5_0/ports/2/state", "4: ACTIVE\n");
    assert_eq!(ports(&mut host).len(), 2);
}

#[test]
fn port_that_is_made_again_is_read_at_once() {
    let sysfs = Sysfs::new();
    sysfs.device("mlx5_0", 1);
    let port = sysfs.path("infiniband/mlx5_0/ports/1");
    let mut host = sysfs.host();
    assert_eq!(ports(&mut host), [(1, Some(PortState::Active))]);
    fs::remove_dir_all(&port).unwrap();
    sysfs.put("infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    sysfs.put("infiniband/mlx5_0/ports/1/counters/symbol_error", "5\n");
    // The kernel does not always update the time of the directory above, nor is the number of ports another one.
    host.slots[0].forget_version();
    let device = &host.read().devices[0];
    assert_eq!(device.ports[0].state, Some(PortState::Down));
    assert_eq!(device.ports[0].reading.get(Counter::SymbolErrors), Some(5));
}
