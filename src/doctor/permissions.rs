//! Permissions of device files, limits, and P_Keys.
//!
//! The exporter sends MADs through umadN. It does not need issmN, which is not opened here either: while it is
//! open, the port has IsSM set, as if a subnet manager ran here.
//!
//! GMPs belong to a partition, and two limited members of one cannot communicate (IBTA 1.4, 10.9.1.1). The
//! exporter sends them with the key of `--fabric.pkey`, else with the first one of the table, which is that of
//! the default partition unless it was changed.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::config::FabricSettings;
use ib_mad::p_key::PKey;
use ib_mad::port_state::physical;
use ib_umad::umad::UmadPort;
use rdma_host::model::{Device, Port};

use super::Subject::{Partitions, Permissions};
use super::{CheckedHost, Finding, Level, bad, note, ok, port_name, shortened, warn};

/// Enough locked memory to use verbs: the kernel locks what a program registers. The default limit was 64 KiB
/// until Linux 5.16, and is 8 MiB since.
const ENOUGH_LOCKED: u64 = 64 << 20;

struct DeviceFile {
    /// The beginning of the names.
    name: &'static str,
    /// The class, which is the subsystem of udev.
    class: &'static str,
    rule: &'static str,
    why: &'static str,
}

const UMAD: DeviceFile = DeviceFile {
    name: "umad",
    class: "infiniband_mad",
    rule: r#"KERNEL=="umad*", GROUP="rdma", MODE="0660""#,
    why: "the exporter sends MADs through it",
};

const UVERBS: DeviceFile = DeviceFile {
    name: "uverbs",
    class: "infiniband_verbs",
    rule: r#"KERNEL=="uverbs*", MODE="0666""#,
    why: "without it the exporter receives no device events and sees changes at its next read",
};

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    let mut findings = check_umad(host);
    findings.extend(check_uverbs(host));
    if host.devices.is_empty() {
        if findings.is_empty() {
            findings.push(note(Permissions, "device files", "not checked: no RDMA device"));
        }
        return findings;
    }
    findings.push(check_locked_memory());
    findings
}

/// The umad devices of InfiniBand ports. Those of RoCE ports are not needed.
fn check_umad(host: &CheckedHost) -> Vec<Finding> {
    let all = UmadPort::all(&host.sysfs);
    let mut findings = Vec::new();
    for (device, port) in host.infiniband_ports() {
        let umad = all.iter().find(|umad| umad.hca == *device.name && umad.port == port.number);
        let what = port_name(device, port);
        let name = umad.and_then(|umad| umad.device.file_name());
        findings.push(match name {
            Some(name) => check_file(&host.dev.join("infiniband").join(name), &what, &UMAD),
            None => note(Permissions, what, "no umad device")
                .expected("a umad device, if the exporter sweeps the fabric from this port")
                .fix("modprobe ib_umad"),
        });
    }
    findings
}

fn check_uverbs(host: &CheckedHost) -> Vec<Finding> {
    let class = format!("class/{}", UVERBS.class);
    let names = host.names(&class).unwrap_or_default();
    let numbered = |name: &&String| {
        let number = name.strip_prefix(UVERBS.name);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let of = |name: &String| {
        let of = host.directory(&format!("{class}/{name}")).map(|it| it.text("ibdev"));
        of.filter(|of| !of.is_empty()).unwrap_or_else(|| name.clone())
    };
    let is_seen = |of: &str| host.devices.iter().any(|device| *device.name == *of);
    names
        .iter()
        .filter(numbered)
        .map(|name| (name, of(name)))
        .filter(|(name, of)| *name == of || is_seen(of))
        .map(|(name, of)| {
            let finding = check_file(&host.dev.join("infiniband").join(name), &of, &UVERBS);
            // The exporter works without it.
            Finding { level: finding.level.min(Level::Warn), ..finding }
        })
        .collect()
}

/// Opens a device file as the exporter would, and closes it again.
fn check_file(path: &Path, of: &str, kind: &DeviceFile) -> Finding {
    let what = path.display().to_string();
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return bad(Permissions, &what, format!("missing, but the kernel has {of}"))
                .expected(kind.why)
                .fix(format!(
                    "udevadm trigger --subsystem-match={}   # in a container: --device {what}",
                    kind.class
                ));
        }
        Err(error) => {
            return bad(Permissions, &what, format!("stat failed: {error}"))
                .expected(kind.why)
                .fix(format!("ls -l {what}"));
        }
    };
    let owned = ownership(&about);
    // NONBLOCK: to open a FIFO must not wait for its other end.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) if !about.file_type().is_char_device() => {
            let found = format!("not a character device ({owned})");
            bad(Permissions, &what, found)
                .expected(format!("the character device of {of}; {}", kind.why))
                .fix(format!("rm {what}; udevadm trigger --subsystem-match={}", kind.class))
        }
        Ok(_) => ok(Permissions, what, format!("{of}: can be opened ({owned})")),
        Err(Errno::ACCESS | Errno::PERM) => {
            let user = rustix::process::geteuid().as_raw();
            let found = format!("{of}: permission denied for user {user} ({owned})");
            let rules = "/etc/udev/rules.d/90-fabric-exporter.rules";
            bad(Permissions, &what, found)
                .expected(format!("readable and writable for the exporter's user; {}", kind.why))
                .fix(format!(
                    "echo '{}' > {rules} && udevadm control --reload && udevadm trigger \
                     --subsystem-match={}; add the exporter's user to the group",
                    kind.rule, kind.class
                ))
        }
        Err(error) => bad(Permissions, &what, format!("{of}: open failed: {error}"))
            .expected(kind.why)
            .fix("dmesg | tail; lsmod | grep ib_"),
    }
}

/// Owner, group and mode, as numbers: names may need a query to a directory service.
fn ownership(about: &Metadata) -> String {
    let who = |id: u32| if id == 0 { "root".into() } else { id.to_string() };
    format!("{}:{} {:04o}", who(about.uid()), who(about.gid()), about.mode() & 0o7777)
}

/// The exporter itself locks nothing; programs that use verbs on this host do.
fn check_locked_memory() -> Finding {
    let what = "memory lock limit";
    match getrlimit(Resource::Memlock).current {
        None => ok(Permissions, what, "unlimited (this session)"),
        Some(most) if most >= ENOUGH_LOCKED => {
            ok(Permissions, what, format!("{} MiB (this session)", most >> 20))
        }
        Some(most) => note(Permissions, what, format!("{} KiB (this session)", most >> 10))
            .expected("unlimited, for MPI and RDMA storage; the exporter locks no memory")
            .fix(
                "echo '* - memlock unlimited' > /etc/security/limits.d/rdma.conf   # in units: \
                     LimitMEMLOCK=infinity",
            ),
    }
}

/// The default partition: bit 15 is full membership (IBTA 1.4, 10.9.1.2).
const DEFAULT_FULL: u16 = 0xffff;
const DEFAULT_LIMITED: u16 = 0x7fff;

const MAX_LISTED: usize = 6;

pub fn check_partitions(host: &CheckedHost, fabrics: &[FabricSettings]) -> Vec<Finding> {
    let chosen: Vec<(&str, u8, PKey)> =
        fabrics.iter().filter_map(|fabric| chosen_for(host, fabric)).collect();
    let ports = host.infiniband_ports().map(|(device, port)| {
        let is_it = |of: &&(&str, u8, PKey)| (of.0, of.1) == (&*device.name, port.number);
        check_p_keys(host, device, port, chosen.iter().find(is_it).map(|(.., key)| *key))
    });
    let findings: Vec<Finding> = ports.collect();
    if findings.is_empty() {
        return vec![if host.devices.is_empty() {
            note(Partitions, "ports", "not checked: no RDMA device")
        } else {
            ok(Partitions, "ports", "not needed: this host has no InfiniBand port")
        }];
    }
    findings
}

/// The local port of a fabric and its P_Key, if `--fabric.pkey` names one.
fn chosen_for<'a>(host: &'a CheckedHost, fabric: &FabricSettings) -> Option<(&'a str, u8, PKey)> {
    let wanted = fabric.p_key?;
    let is_named = |(device, port): &(&Device, &Port)| {
        fabric.hca.as_ref().is_none_or(|hca| **hca == *device.name)
            && fabric.port.is_none_or(|number| number == port.number)
    };
    let named = || host.infiniband_ports().filter(is_named);
    let has_link = |(_, port): &(&Device, &Port)| port.physical_state == Some(physical::LINK_UP);
    let (device, port) = named().find(has_link).or_else(|| named().next())?;
    Some((&device.name, port.number, wanted))
}

/// Why a port has to be a full member.
const FULL_MEMBER: &str =
    "full membership; limited members cannot communicate, so hosts' counters cannot be read";

/// Whether the port is a member of the partition of `--fabric.pkey`.
fn check_chosen(what: String, shown: &str, wanted: PKey, keys: &[(u16, u16)]) -> Finding {
    let table = keys.iter().filter_map(|(index, key)| Some((*index, PKey::new(*key)?)));
    match wanted.find_in(table) {
        Some((_, key)) if key.is_full() => {
            let found = format!("{shown}: full member of the partition of --fabric.pkey {wanted}");
            ok(Partitions, what, found)
        }
        Some(_) => {
            let found =
                format!("{shown}: limited member of the partition of --fabric.pkey {wanted}");
            warn(Partitions, what, found)
                .expected(FULL_MEMBER)
                .fix("partitions.conf on the SM's host: <this port's GUID>=full in that partition")
        }
        None => {
            let found = format!("{shown}: not in the partition of --fabric.pkey {wanted}");
            bad(Partitions, what, found)
                .expected("a P_Key of the port's table; otherwise `serve` exits with code 3")
                .fix(
                    "set --fabric.pkey to one of these, or add the port's GUID to the partition in \
                     partitions.conf",
                )
        }
    }
}

fn check_p_keys(host: &CheckedHost, device: &Device, port: &Port, chosen: Option<PKey>) -> Finding {
    let path = format!("class/infiniband/{}/ports/{}/pkeys", device.name, port.number);
    let what = port_name(device, port);
    let Some(table) = host.directory(&path) else {
        return note(Partitions, what, "P_Key table cannot be read");
    };
    // In numerical order, which is not that of names.
    let mut indexes: Vec<u16> =
        table.names().unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
    indexes.sort_unstable();
    let keys: Vec<(u16, u16)> = indexes
        .into_iter()
        .filter_map(|index| {
            let text = table.text(&index.to_string());
            Some((index, u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()?))
        })
        .filter(|(_, key)| *key != 0)
        .collect();
    let has = |wanted| keys.iter().any(|(_, key)| *key == wanted);
    let first = keys.iter().find(|(index, _)| *index == 0).map(|(_, key)| *key);
    let shown = keys.iter().map(|(_, key)| format!("{key:#06x}")).collect();
    let shown = if keys.is_empty() { "none".into() } else { shortened(shown, MAX_LISTED) };
    if let Some(wanted) = chosen {
        return check_chosen(what, &shown, wanted, &keys);
    }
    let fix = "partitions.conf on the SM's host: Default=0x7fff, ipoib: ALL=limited, SELF=full, \
               <this port's GUID>=full;";
    match first {
        Some(DEFAULT_FULL) => {
            ok(Partitions, what, format!("{shown}: full member of the default partition"))
        }
        _ if has(DEFAULT_FULL) => {
            let found = format!("{shown}: the default partition is not first");
            warn(Partitions, what, found)
                .expected("0xffff first; the exporter sends GMPs with the first P_Key")
                .fix("set --fabric.pkey=0xffff, or check partitions.conf and restart the SM")
        }
        _ if has(DEFAULT_LIMITED) => {
            let found = format!("{shown}: limited member of the default partition");
            warn(Partitions, what, found).expected(FULL_MEMBER).fix(fix)
        }
        // The table may be empty until a subnet manager fills it.
        None if port.lid.is_none() => {
            note(Partitions, what, format!("{shown}: no SM has configured the port yet"))
        }
        _ => {
            let found = format!("{shown}: not in the default partition");
            warn(Partitions, what, found)
                .expected("0xffff, which subnet administration and performance management need")
                .fix(fix)
        }
    }
}
