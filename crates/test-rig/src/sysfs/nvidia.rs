//! Hosts with ConnectX-8, and with the bridges of NVSwitches.

use super::Tree;
use super::device::{Content, Device, Netdev};

/// The name of the device with the planes: an administrator chooses it.
const PLANES: &str = "planes";

/// Whether the kernel reports the error counters of the whole port for each plane: before Linux 6.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Copies {
    Yes,
    No,
}

/// Whether this user may read VPD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Vpd {
    Readable,
    Refused,
}

/// A multi-plane HCA and its SMI device: the same PCI function, GUIDs, LID and states, and a port for each plane, of one
/// lane each (kernel: drivers/infiniband/hw/mlx5/main.c, Linux 6.11).
pub fn connectx8(copies: Copies) -> Tree {
    let gid = "fe80:0000:0000:0000:e09d:7303:0012:3456";
    let parent = Device::mlx5_xdr("mlx5_0").file("ports/1/gids/0", gid);
    let files = parent.files.clone();
    let bare = Device::bare(PLANES).on("0000:d0:00.0", "mlx5_core");
    let about =
        ["node_guid", "sys_image_guid", "node_type", "node_desc", "fw_ver", "board_id", "hca_type"];
    let mut planes =
        about.into_iter().fold(bare, |planes, file| planes.has(file, files[file].clone()));
    for number in 1..=4 {
        planes = planes
            .port(number, "4: ACTIVE", "5: LinkUp", "200 Gb/sec (1X XDR)", "InfiniBand")
            .lid(number, 0x2ff, 1)
            .file(&format!("ports/{number}/gids/0"), gid)
            .counters(number);
        let counters = files.iter().filter_map(|(path, content)| {
            let name = path.strip_prefix("ports/1/counters/")?;
            let is_error = !name.contains("data") && !name.contains("packets");
            (is_error && copies == Copies::Yes).then_some((name, content))
        });
        for (name, content) in counters {
            planes = planes.has(&format!("ports/{number}/counters/{name}"), content.clone());
        }
    }
    Tree::new([parent, planes])
}

/// ConnectX-8 on Ethernet: 12 ports for each device, of which 3, 6, 9 and 12 have an interface (scitix/sichek, pull
/// request 98).
pub fn connectx8_ethernet() -> Tree {
    let device = Device::mlx5_bond("mlx5_0", 0x30).without("ports/1/");
    let mut device = device.hardware("0", "NVD0000000054", "MT4131");
    device.netdevs.clear();
    for number in 1..=12 {
        let is_used = number % 3 == 0;
        let (state, physical) =
            if is_used { ("4: ACTIVE", "5: LinkUp") } else { ("1: DOWN", "3: Disabled") };
        let rate = "200 Gb/sec (1X XDR)";
        device = device.port(number, state, physical, rate, "Ethernet").counters(number);
        if is_used {
            let netdev = format!("ens9np{}", number / 3 - 1);
            let index = format!("{}", number / 3 - 1);
            device = device
                .gid_on(number, &netdev)
                .netdev(Netdev::ethernet(&netdev).file("dev_port", &index));
        }
    }
    Tree::new([device])
}

/// HGX B200 with two adapters. The four bridges are ConnectX-7, too: a full and a limited function for each of two ports
/// (siderolabs/extensions, pull request 895). Their counters refuse to be read.
pub fn hgx_b200(vpd: Vpd) -> Tree {
    let tree = Tree::new(
        (0..4)
            .map(bridge)
            .chain((4..6).map(|number| Device::mlx5_ndr(&format!("mlx5_{number}"), number))),
    );
    for number in 0..6 {
        let address = address(number);
        tree.on_bus(&address, &[("vendor", "0x15b3"), ("device", "0x1021")]);
        let (name, model) = match number {
            1 | 3 => ("Nvidia Umbriel CX7 mezz", "SMDL=SW_MNG"),
            0 | 2 => ("Nvidia Umbriel CX7 mezz", "MODL=CX7"),
            _ => ("Nvidia ConnectX-7 NDR adapter", "MODL=CX7"),
        };
        let vendor = format!("MLX:MN=MLNX:{model}:PCI=V0");
        let mut text = vec![0x82, name.len() as u8, 0];
        text.extend(name.bytes());
        text.extend([0x90, 3 + vendor.len() as u8, 0]);
        text.extend([b'V', b'A', vendor.len() as u8]);
        text.extend(vendor.bytes());
        text.push(0x78);
        if vpd == Vpd::Readable {
            let path = tree.path().join("devices/pci0000:00").join(&address).join("vpd");
            std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
    tree
}

/// The PCI function of a device by its number: that of an adapter as [`Device::mlx5_ndr`] has it.
fn address(number: u16) -> String {
    if number < 4 {
        format!("0000:0b:00.{number}")
    } else {
        format!("0000:{:02x}:00.0", 0x10 + number)
    }
}

fn bridge(number: u16) -> Device {
    let name = format!("mlx5_{number}");
    let (state, physical) =
        if number < 2 { ("2: INIT", "5: LinkUp") } else { ("1: DOWN", "2: Polling") };
    let device = Device::mlx5(&name, "400 Gb/sec (4X NDR)", "InfiniBand")
        .on(&address(number), "mlx5_core")
        .guid(0x5c25_7303_00aa_0008 + u64::from(number))
        .file("ports/1/state", state)
        .file("ports/1/phys_state", physical);
    let counters = |file: &&String| file.contains("/counters/");
    let files: Vec<String> = device.files.keys().filter(counters).cloned().collect();
    files.iter().fold(device, |device, file| device.has(file, Content::Refuses))
}
