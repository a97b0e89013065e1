//! Device files that have to be opened, and limits.
//!
//! umadN is what the fabric is asked through; issmN beside it is not needed, and is not even opened to
//! try it: who holds it open tells the fabric that a subnet manager runs here.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use ib_umad::umad::UmadPort;

use super::finding::{Finding, Level, Subject};
use super::host::{Host, port_name};

const SUBJECT: Subject = Subject::Permissions;

/// Enough locked memory for verbs to be of use: kernels lock what a program registers, and gave 64 KiB
/// by default until 5.16, 8 MiB since.
const ENOUGH_LOCKED: u64 = 64 << 20;

/// A kind of device file.
struct Kind {
    /// As its files begin.
    name: &'static str,
    /// Its class, as udev knows it.
    class: &'static str,
    rule: &'static str,
    why: &'static str,
}

const UMAD: Kind = Kind {
    name: "umad",
    class: "infiniband_mad",
    rule: r#"KERNEL=="umad*", GROUP="rdma", MODE="0660""#,
    why: "the fabric is asked through it",
};

const UVERBS: Kind = Kind {
    name: "uverbs",
    class: "infiniband_verbs",
    rule: r#"KERNEL=="uverbs*", MODE="0666""#,
    why: "devices tell their events through it; without, what happens is seen at the next look",
};

/// Looks at files and limits.
pub fn check(host: &Host) -> Vec<Finding> {
    let mut findings = umads(host);
    findings.extend(uverbs(host));
    if host.devices.is_empty() {
        if findings.is_empty() {
            findings.push(Finding::note(SUBJECT, "device files", "none without a device"));
        }
        return findings;
    }
    findings.push(locked_memory());
    findings
}

/// Those of the InfiniBand ports; RoCE's have one each that nobody needs.
fn umads(host: &Host) -> Vec<Finding> {
    let all = UmadPort::all(&host.sysfs);
    let mut findings = Vec::new();
    for (device, port) in host.infiniband_ports() {
        let umad = all.iter().find(|umad| umad.hca == *device.name && umad.port == port.number);
        let what = port_name(device, port);
        let name = umad.and_then(|umad| umad.device.file_name());
        findings.push(match name {
            Some(name) => opened(&host.dev.join("infiniband").join(name), &what, &UMAD),
            None => Finding::note(SUBJECT, what, "has no umad device")
                .wanted("one, to ask the fabric from this port")
                .mend("modprobe ib_umad"),
        });
    }
    findings
}

fn uverbs(host: &Host) -> Vec<Finding> {
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
            let finding = opened(&host.dev.join("infiniband").join(name), &of, &UVERBS);
            // Nothing stops without it.
            Finding { level: finding.level.min(Level::Warn), ..finding }
        })
        .collect()
}

/// Tries to open a device file as the exporter would, and closes it again.
fn opened(path: &Path, of: &str, kind: &Kind) -> Finding {
    let what = path.display().to_string();
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::bad(
                SUBJECT,
                &what,
                format!("missing, and the kernel has it for {of}"),
            )
            .wanted(kind.why)
            .mend(format!(
                "udevadm trigger --subsystem-match={}; for a container: --device {what}",
                kind.class
            ));
        }
        Err(error) => {
            return Finding::bad(SUBJECT, &what, format!("cannot be looked at: {error}"))
                .wanted(kind.why)
                .mend(format!("ls -l {what}"));
        }
    };
    let owned = ownership(&about);
    // Without waiting: somebody may have put a pipe there.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) if !about.file_type().is_char_device() => {
            let found = format!("no character device ({owned})");
            Finding::bad(SUBJECT, &what, found)
                .wanted(format!("the device of {of}: {}", kind.why))
                .mend(format!("rm {what}; udevadm trigger --subsystem-match={}", kind.class))
        }
        Ok(_) => Finding::ok(SUBJECT, what, format!("{of}: opens ({owned})")),
        Err(Errno::ACCESS | Errno::PERM) => {
            let user = rustix::process::geteuid().as_raw();
            let found = format!("{of}: user {user} may not open it ({owned})");
            let rules = "/etc/udev/rules.d/90-fabric-exporter.rules";
            Finding::bad(SUBJECT, &what, found)
                .wanted(format!("read and write for the exporter's user: {}", kind.why))
                .mend(format!(
                    "echo '{}' > {rules} && udevadm control --reload && udevadm trigger \
                     --subsystem-match={}; and the user into the group, or run as root",
                    kind.rule, kind.class
                ))
        }
        Err(error) => Finding::bad(SUBJECT, &what, format!("{of}: cannot be opened: {error}"))
            .wanted(kind.why)
            .mend("dmesg | tail; lsmod | grep ib_"),
    }
}

/// Owner, group and mode, as numbers: names may come from a directory that is not to be asked here.
fn ownership(about: &Metadata) -> String {
    let who = |id: u32| if id == 0 { "root".into() } else { id.to_string() };
    format!("{}:{} {:04o}", who(about.uid()), who(about.gid()), about.mode() & 0o7777)
}

/// The exporter itself locks nothing; programs that use verbs on this host do.
fn locked_memory() -> Finding {
    let what = "memory lock limit";
    match getrlimit(Resource::Memlock).current {
        None => Finding::ok(SUBJECT, what, "unlimited, in this session"),
        Some(most) if most >= ENOUGH_LOCKED => {
            Finding::ok(SUBJECT, what, format!("{} MiB, in this session", most >> 20))
        }
        Some(most) => {
            Finding::note(SUBJECT, what, format!("{} KiB, in this session", most >> 10))
                .wanted("unlimited for MPI and storage, which lock what they send from; the exporter locks nothing")
                .mend("echo '* - memlock unlimited' > /etc/security/limits.d/rdma.conf; for services LimitMEMLOCK=infinity")
        }
    }
}
