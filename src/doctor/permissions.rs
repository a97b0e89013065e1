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
use ib_mad::port_state::PhysicalState;
use ib_umad::umad::UmadPort;
use rdma_host::model::{Device, Port};

use super::Subject::{Partitions, Permissions};
use super::checked_host::{CheckedHost, NO_DEVICE, NO_SWEEP, port_name};
use super::finding::{Finding, Level, bad, note, ok, shortened, warn};
use super::planes::smi_ports;

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
    let mut findings = if host.sweeps() { check_umad(host) } else { Vec::new() };
    if host.receives_events() {
        findings.extend(check_uverbs(host));
    }
    if !host.devices.is_empty() {
        findings.push(check_locked_memory());
    } else if findings.is_empty() {
        findings.push(note(Permissions, "device files", NO_DEVICE));
    }
    findings
}

/// The umad devices of InfiniBand ports. Those of RoCE ports are not needed.
fn check_umad(host: &CheckedHost) -> Vec<Finding> {
    let all = UmadPort::all(&host.settings().sysfs);
    let check = |(device, port): (&Device, &Port)| {
        let umad = all.iter().find(|umad| umad.hca == *device.name && umad.port == port.number);
        let what = port_name(device, port);
        match umad.and_then(|umad| umad.device.file_name()) {
            Some(name) => check_file(&host.options.dev.join("infiniband").join(name), &what, &UMAD),
            None => note(Permissions, what, "no umad device")
                .expected("a umad device, if the exporter sweeps the fabric from this port")
                .fix("modprobe ib_umad"),
        }
    };
    host.fabric_ports().chain(smi_ports(host)).map(check).collect()
}

fn check_uverbs(host: &CheckedHost) -> Vec<Finding> {
    let class = format!("class/{}", UVERBS.class);
    let mut findings = Vec::new();
    for name in host.names(&class).unwrap_or_default() {
        let number = name.strip_prefix(UVERBS.name).map(str::parse::<u32>);
        let of = host.directory(&format!("{class}/{name}")).map(|it| it.text("ibdev"));
        let of = of.filter(|of| !of.is_empty()).unwrap_or_else(|| name.clone());
        let is_seen = of == name || host.devices.iter().any(|device| *device.name == *of);
        if is_seen && matches!(number, Some(Ok(_))) {
            let path = host.options.dev.join("infiniband").join(&name);
            let finding = check_file(&path, &of, &UVERBS);
            // The exporter works without it.
            findings.push(Finding { level: finding.level.min(Level::Warn), ..finding });
        }
    }
    findings
}

/// Opens a device file as the exporter would, and closes it again.
fn check_file(path: &Path, of: &str, kind: &DeviceFile) -> Finding {
    let what = path.display().to_string();
    let trigger = format!("udevadm trigger --subsystem-match={}", kind.class);
    let wrong = |found| bad(Permissions, &what, found).expected(kind.why);
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return wrong(format!("missing, but the kernel has {of}"))
                .fix(format!("{trigger}   # in a container: --device {what}"));
        }
        Err(error) => return wrong(format!("stat failed: {error}")).fix(format!("ls -l {what}")),
    };
    let owned = ownership(&about);
    // NONBLOCK: to open a FIFO must not wait for its other end.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) if !about.file_type().is_char_device() => {
            wrong(format!("not a character device ({owned})"))
                .expected(format!("the character device of {of}; {}", kind.why))
                .fix(format!("rm {what}; {trigger}"))
        }
        Ok(_) => ok(Permissions, what, format!("{of}: can be opened ({owned})")),
        Err(Errno::ACCESS | Errno::PERM) => {
            let user = rustix::process::geteuid().as_raw();
            let rules = "/etc/udev/rules.d/90-fabric-exporter.rules";
            wrong(format!("{of}: permission denied for user {user} ({owned})"))
                .expected(format!("readable and writable for the exporter's user; {}", kind.why))
                .fix(format!(
                    "echo '{}' > {rules} && udevadm control --reload && {trigger}; add the exporter's \
                     user to the group",
                    kind.rule
                ))
        }
        Err(error) => {
            wrong(format!("{of}: open failed: {error}")).fix("dmesg | tail; lsmod | grep ib_")
        }
    }
}

/// Owner, group and mode, as numbers: names may need a query to a directory service.
fn ownership(about: &Metadata) -> String {
    let who = |id: u32| if id == 0 { "root".into() } else { id.to_string() };
    format!("{}:{} {:04o}", who(about.uid()), who(about.gid()), about.mode() & 0o7777)
}

/// For programs on this host that use verbs. The exporter locks memory only to receive device events on old kernels.
fn check_locked_memory() -> Finding {
    let what = "memory lock limit";
    let fix = "echo '* - memlock unlimited' > /etc/security/limits.d/rdma.conf   # in units: \
               LimitMEMLOCK=infinity";
    match getrlimit(Resource::Memlock).current {
        None => ok(Permissions, what, "unlimited (this session)"),
        Some(most) if most >= ENOUGH_LOCKED => {
            ok(Permissions, what, format!("{} MiB (this session)", most >> 20))
        }
        Some(most) => note(Permissions, what, format!("{} KiB (this session)", most >> 10))
            .expected("unlimited, for MPI and RDMA storage; 64 MiB for the exporter (device events on old kernels)")
            .fix(fix),
    }
}

/// The default partition: bit 15 is full membership (IBTA 1.4, 10.9.1.2).
const DEFAULT_FULL: u16 = 0xffff;
const DEFAULT_LIMITED: u16 = 0x7fff;

const MAX_LISTED: usize = 6;

pub fn check_partitions(host: &CheckedHost) -> Vec<Finding> {
    if !host.has_infiniband() {
        return vec![host.without_ports(Partitions)];
    }
    if !host.sweeps() {
        return vec![ok(Partitions, "ports", NO_SWEEP)];
    }
    let fabrics = host.settings().fabrics.iter();
    let chosen: Vec<_> = fabrics.filter_map(|fabric| chosen_for(host, fabric)).collect();
    let ports = host.fabric_ports().map(|(device, port)| {
        let is_it = |of: &&(&str, u8, PKey)| (of.0, of.1) == (&*device.name, port.number);
        check_p_keys(host, device, port, chosen.iter().find(is_it).map(|(.., key)| *key))
    });
    ports.collect()
}

/// The local port of a fabric and its P_Key, if `--fabric.pkey` names one.
fn chosen_for<'a>(host: &'a CheckedHost, fabric: &FabricSettings) -> Option<(&'a str, u8, PKey)> {
    let wanted = fabric.p_key?;
    let is_named = |(device, port): &(&Device, &Port)| {
        fabric.hca.as_ref().is_none_or(|hca| **hca == *device.name)
            && fabric.port.is_none_or(|number| number == port.number)
    };
    let named = || host.fabric_ports().filter(is_named);
    let has_link =
        |(_, port): &(&Device, &Port)| port.physical_state == Some(PhysicalState::LinkUp);
    let (device, port) = named().find(has_link).or_else(|| named().next())?;
    Some((&device.name, port.number, wanted))
}

/// Why a port has to be a full member.
const FULL_MEMBER: &str =
    "full membership; limited members cannot communicate, so hosts' counters cannot be read";

/// Whether the port is a member of the partition of `--fabric.pkey`.
fn check_chosen(what: String, shown: &str, wanted: PKey, keys: &[(u16, u16)]) -> Finding {
    let table = keys.iter().filter_map(|(index, key)| Some((*index, PKey::new(*key)?)));
    let found = |is| format!("{shown}: {is} the partition of --fabric.pkey {wanted}");
    match wanted.find_in(table) {
        Some((_, key)) if key.is_full() => ok(Partitions, what, found("full member of")),
        Some(_) => warn(Partitions, what, found("limited member of"))
            .expected(FULL_MEMBER)
            .fix("partitions.conf on the SM's host: <this port's GUID>=full in that partition"),
        None => bad(Partitions, what, found("not in"))
            .expected("a P_Key of the port's table; otherwise `serve` exits with code 3")
            .fix(
                "set --fabric.pkey to one of these, or add the port's GUID to the partition in \
                 partitions.conf",
            ),
    }
}

fn check_p_keys(host: &CheckedHost, device: &Device, port: &Port, chosen: Option<PKey>) -> Finding {
    let path = format!("class/infiniband/{}/ports/{}/pkeys", device.name, port.number);
    let what = port_name(device, port);
    let Some(table) = host.directory(&path) else {
        return note(Partitions, what, "P_Key table cannot be read");
    };
    let key = |name: String| {
        let key = u16::from_str_radix(table.text(&name).strip_prefix("0x")?, 16).ok()?;
        Some((name.parse::<u16>().ok()?, key)).filter(|(_, key)| *key != 0)
    };
    let mut keys: Vec<_> = table.names().unwrap_or_default().into_iter().filter_map(key).collect();
    // In numerical order, which is not that of names.
    keys.sort_unstable();
    let has = |wanted| keys.iter().any(|(_, key)| *key == wanted);
    let first = keys.iter().find(|(index, _)| *index == 0).map(|(_, key)| *key);
    let shown = keys.iter().map(|(_, key)| format!("{key:#06x}")).collect();
    let shown = if keys.is_empty() { "none".into() } else { shortened(shown, MAX_LISTED) };
    if let Some(wanted) = chosen {
        return check_chosen(what, &shown, wanted, &keys);
    }
    let fix = "partitions.conf on the SM's host: Default=0x7fff, ipoib: ALL=limited, SELF=full, \
               <this port's GUID>=full;";
    let (found, expected, fix) = match first {
        Some(DEFAULT_FULL) => {
            return ok(Partitions, what, format!("{shown}: full member of the default partition"));
        }
        _ if has(DEFAULT_FULL) => (
            "the default partition is not first",
            "0xffff first; the exporter sends GMPs with the first P_Key",
            "set --fabric.pkey=0xffff, or check partitions.conf and restart the SM",
        ),
        _ if has(DEFAULT_LIMITED) => ("limited member of the default partition", FULL_MEMBER, fix),
        // The table may be empty until a subnet manager fills it.
        None if port.lid.is_none() => {
            return note(Partitions, what, format!("{shown}: no SM has configured the port yet"));
        }
        _ => (
            "not in the default partition",
            "0xffff, which subnet administration and performance management need",
            fix,
        ),
    };
    warn(Partitions, what, format!("{shown}: {found}")).expected(expected).fix(fix)
}
