//! The machine the guest runs on.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::super::child::{self, Running};
use super::super::require;

/// How long the boot may take: some 4 s on an idle machine, 20 s with Debian's systemd.
const BOOT_LIMIT: Duration = Duration::from_secs(240);

/// How long a guest may live, however long its test process does.
const LIFETIME: Duration = Duration::from_secs(3600);

/// Where the guest's `httpd` listens (see `tests/kernel/init`).
const CONTROL_PORT: u16 = 8080;

/// The ports for programs of the tests.
const PORTS: std::ops::Range<u16> = 9000..9048;

/// A running QEMU.
///
/// It ends with this process, as each [`Running`] program does.
pub struct Qemu {
    /// Where the control channel is reached.
    pub control: String,
    /// The guest's ports and where each is reached.
    pub forwards: Vec<(u16, String)>,
    /// What the guest has as `/share`.
    pub share: PathBuf,
    console: PathBuf,
    errors: PathBuf,
    ended: Arc<OnceLock<ExitStatus>>,
}

impl Qemu {
    /// Boots the kernel in `rig`, and waits until it accepts scripts. With a disk it starts from the disk's
    /// content, which is not changed: what the guest writes is lost when it ends.
    pub fn boot(rig: &Path, disk: Option<&Path>) -> Self {
        let dir = run_dir();
        let (share, monitor) = (dir.join("share"), dir.join("monitor"));
        std::fs::create_dir(&share).expect("a directory of our own");
        let mut qemu = Self {
            control: String::new(),
            forwards: Vec::new(),
            share,
            console: dir.join("console"),
            errors: dir.join("stderr"),
            ended: Arc::default(),
        };
        let mut command =
            qemu.command(rig, &monitor, if disk.is_some() { " rig_disk" } else { "" });
        if let Some(disk) = disk {
            command.args(["-device", "virtio-blk-pci,drive=disk", "-drive"]).arg(format!(
                "if=none,id=disk,file={},format=raw,snapshot=on,cache=unsafe",
                disk.display()
            ));
        }
        keep(command, Arc::clone(&qemu.ended));

        let mut forwards = qemu.wait("to report its ports", || forwards(&monitor));
        let control = forwards.iter().position(|(port, _)| *port == CONTROL_PORT);
        qemu.control = forwards.swap_remove(control.expect("the control port is among them")).1;
        qemu.forwards = forwards;
        qemu.wait("to boot", || qemu.console().contains(" ready\n").then_some(()));
        qemu
    }

    fn command(&self, rig: &Path, monitor: &Path, words: &str) -> Command {
        // Port 0 makes QEMU choose a free one. The guest cannot reach the outside network.
        let forwards: String = std::iter::once(CONTROL_PORT)
            .chain(PORTS)
            .fold(String::new(), |list, port| list + &format!(",hostfwd=tcp:127.0.0.1:0-:{port}"));
        let mut command = Command::new(require("qemu-system-x86_64"));
        command
            .args("-nodefaults -no-user-config -no-reboot -display none".split(' '))
            // No KVM: it is not available in most containers and virtual machines.
            .args("-machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 768".split(' '))
            .arg("-kernel")
            .arg(rig.join("vmlinux"))
            .arg("-initrd")
            .arg(rig.join("initrd.cpio"))
            .arg("-append")
            .arg(format!(
                // A kernel after an oops must not run tests: it prints the oops and ends.
                "console=ttyS0 quiet oops=panic panic=-1 mitigations=off random.trust_cpu=on \
                 rig_lifetime={}{words}",
                LIFETIME.as_secs()
            ))
            .args(["-device", "virtio-net-pci,netdev=way-out,romfile=", "-netdev"])
            .arg(format!("user,id=way-out,restrict=on{forwards}"))
            .arg("-virtfs")
            .arg(format!("local,path={},mount_tag=share,security_model=none", self.share.display()))
            .arg("-serial")
            .arg(format!("file:{}", self.console.display()))
            .arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", monitor.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(child::create(&self.errors));
        command
    }

    /// What the kernel has printed so far.
    pub fn console(&self) -> String {
        child::read_lossy(&self.console).replace('\r', "")
    }

    /// Its state, for the message of a panic.
    pub fn last_words(&self) -> String {
        let console = self.console();
        let lines: Vec<&str> = console.lines().collect();
        let tail = &lines[lines.len().saturating_sub(40)..];
        let state = match self.ended.get() {
            Some(status) => format!("QEMU has ended ({status})"),
            None => "QEMU runs".to_owned(),
        };
        let errors = child::read_lossy(&self.errors);
        format!("{state}; its stderr:\n{errors}\nthe end of its console:\n{}", tail.join("\n"))
    }

    fn wait<T>(&self, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + BOOT_LIMIT;
        loop {
            if let Some(found) = probe() {
                return found;
            }
            let hopeful = self.ended.get().is_none() && Instant::now() < deadline;
            assert!(hopeful, "the guest was {what}; {}", self.last_words());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Starts QEMU, and waits for its end in a thread.
fn keep(mut command: Command, ended: Arc<OnceLock<ExitStatus>>) {
    let kept = move || {
        let mut running = Running::spawn("qemu-system-x86_64", &mut command);
        let status = running.wait_at_most(LIFETIME);
        if status.is_none() {
            running.kill();
        }
        let _ = ended.set(status.or(running.try_wait()).expect("it has been killed"));
    };
    std::thread::Builder::new().name("guest".into()).spawn(kept).expect("a thread");
}

/// A directory for this process; those of ended processes are removed first, because what belongs
/// to a `static` is never dropped.
fn run_dir() -> PathBuf {
    let runs = crate::paths::target_tmp().join("guests");
    std::fs::create_dir_all(&runs).expect("a directory below target/tmp");
    for entry in std::fs::read_dir(&runs).expect("it has just been made").flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let dir = runs.join(std::process::id().to_string());
    // An earlier process may have had our id.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).unwrap_or_else(|e| panic!("cannot create {}: {e}", dir.display()));
    dir
}

/// The guest's ports and where the host reaches each; none while QEMU is not that far.
fn forwards(monitor: &Path) -> Option<Vec<(u16, String)>> {
    let mut stream = UnixStream::connect(monitor).ok()?;
    let table = r#"{"execute": "qmp_capabilities"}
        {"execute": "human-monitor-command", "arguments": {"command-line": "info usernet"}}"#;
    stream.write_all(table.as_bytes()).ok()?;
    // First a greeting, then an answer to each command; events may come between them.
    let answer = BufReader::new(stream).lines().map_while(Result::ok).find_map(|line| {
        let answer: serde_json::Value = serde_json::from_str(&line).ok()?;
        Some(answer.get("return")?.as_str()?.to_owned())
    })?;
    //   Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
    //   TCP[HOST_FORWARD]  12       127.0.0.1 35177       10.0.2.15  8080     0     0
    let forwards = answer.lines().filter(|line| line.contains("[HOST_FORWARD]")).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let guest_port = words[5].parse().unwrap_or_else(|e| panic!("{line:?}: {e}"));
        (guest_port, format!("{}:{}", words[2], words[3]))
    });
    Some(forwards.collect())
}
