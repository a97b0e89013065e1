//! What code that has taken over a sandboxed process can still reach.
//!
//! The test runs itself again. That process enters the sandbox and then attempts everything below; nothing of it would
//! do harm if it succeeded. Landlock and seccomp are of the kernel that runs the tests: a test in the guest
//! (tests/real_kernel) holds for a kernel that has both.
#![expect(unsafe_code, reason = "attempts at system calls that no library has")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use clap::Parser;
use libc::{c_int, c_long};
use rustix::net::SocketType;

use super::*;
use crate::config::options::Options;

/// The environment variable that gives the second process its folder.
const INSIDE: &str = "SANDBOX_TEST_INSIDE";

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    options: Options,
}

/// The fixture, prepared before the process enters the sandbox.
struct Outside {
    /// Files of this user that no setting names.
    folder: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagrams: UnixDatagram,
    /// What the server of the exporter would have.
    listener: TcpListener,
}

/// What is attempted, and by which means it is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The filter of system calls.
    Seccomp,
    /// The limits of files.
    Landlock,
    /// Nothing: the exporter needs it.
    Nobody,
}

struct Attempt {
    name: &'static str,
    by: By,
    outcome: io::Result<()>,
}

/// The result of a system call.
fn check(result: c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A system call with these arguments.
fn call(number: c_long, args: [c_long; 6]) -> io::Result<()> {
    // SAFETY: the callers pass numbers, or pointers to what lives longer than the call.
    check(unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) })
}

fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<()> {
    call(libc::SYS_socket, [family.into(), kind.into(), protocol.into(), 0, 0, 0])
}

fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Connects with data, from a socket that is already there: after shutdown() a listening socket is like a new one.
fn fast_open(socket: &TcpListener, to: &TcpListener) -> io::Result<()> {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
    let address = to.local_addr()?;
    let flags = rustix::net::SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
    rustix::net::sendto(socket, b"secret", flags, &address).map(drop).map_err(Into::into)
}

fn map(protection: c_int) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    call(libc::SYS_mmap, [0, 4096, protection.into(), flags.into(), -1, 0])
}

impl Outside {
    fn prepare(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder.join("history"))?;
        fs::create_dir_all(folder.join("elsewhere"))?;
        fs::write(folder.join("elsewhere/file"), "content")?;
        Ok(Outside {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            udp: UdpSocket::bind("127.0.0.1:0")?,
            stream: UnixListener::bind(folder.join("stream"))?,
            datagrams: UnixDatagram::bind(folder.join("datagrams"))?,
            listener: TcpListener::bind("127.0.0.1:0")?,
            folder: folder.join("elsewhere"),
        })
    }

    /// Attempts everything. The last of each group may leave the fixture unusable.
    #[expect(clippy::too_many_lines, reason = "a list")]
    fn attempt(&self) -> Vec<Attempt> {
        use By::{Landlock, Nobody, Seccomp};
        let mut attempts = Vec::new();
        let mut add = |name, by, outcome| attempts.push(Attempt { name, by, outcome });
        let file = self.folder.join("file");
        let (name, inside) = (path(&file), self.folder.with_file_name("history"));
        let pointer = name.as_ptr() as c_long;
        let at = c_long::from(libc::AT_FDCWD);

        // What the exporter does after its start.
        add("write the history", Nobody, fs::write(inside.join("h.db"), "x"));
        add(
            "rename in the history's folder",
            Nobody,
            fs::rename(inside.join("h.db"), inside.join("i")),
        );
        add("remove a file of the history", Nobody, fs::remove_file(inside.join("i")));
        add("read sysfs", Nobody, fs::read_dir("/sys/class").map(drop));
        add("read its own status", Nobody, fs::read("/proc/self/stat").map(drop));
        let command = fs::read(format!("/proc/{}/cmdline", std::os::unix::process::parent_id()));
        add("read the command line of another process", Nobody, command.map(drop));
        let thread = std::thread::Builder::new().spawn(|| 1).map(|thread| thread.join().is_ok());
        add("start a thread", Nobody, thread.map(drop));
        add("pair of sockets", Nobody, UnixStream::pair().map(drop));
        add("accept a connection", Nobody, self.accept());
        add(
            "lower its priority",
            Nobody,
            rustix::process::setpriority_process(None, 15).map_err(Into::into),
        );

        // Other hosts and processes.
        add(
            "connect by TCP",
            Seccomp,
            TcpStream::connect(self.tcp.local_addr().unwrap()).map(drop),
        );
        add("socket of MPTCP", Seccomp, socket(libc::AF_INET, libc::SOCK_STREAM, 262));
        add("TCP Fast Open", Seccomp, fast_open(&self.listener, &self.tcp));
        let udp = UdpSocket::bind("127.0.0.1:0");
        let udp = udp.and_then(|it| it.send_to(b"secret", self.udp.local_addr()?)).map(drop);
        add("send by UDP", Seccomp, udp);
        let stream = self.stream.local_addr().unwrap();
        let connected = UnixStream::connect(stream.as_pathname().unwrap()).map(drop);
        add("connect to a Unix socket", Seccomp, connected);
        let to = self.datagrams.local_addr().unwrap();
        let sent =
            UnixDatagram::unbound().and_then(|it| it.send_to(b"x", to.as_pathname().unwrap()));
        add("send to a Unix socket", Seccomp, sent.map(drop));
        let pair = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            SocketType::DGRAM,
            rustix::net::SocketFlags::empty(),
            None,
        );
        add("pair of datagram sockets", Seccomp, pair.map(drop).map_err(Into::into));
        add("socket of vsock", Seccomp, socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0));
        add("raw packets", Seccomp, socket(libc::AF_PACKET, libc::SOCK_RAW, 0));
        add("netlink of routes", Seccomp, socket(libc::AF_NETLINK, libc::SOCK_RAW, 0));
        add("listen", Seccomp, TcpListener::bind("127.0.0.1:0").map(drop));
        let parent = c_long::from(rustix::process::getppid().unwrap().as_raw_nonzero().get());
        add("signal", Seccomp, call(libc::SYS_kill, [parent, 0, 0, 0, 0, 0]));
        let own = self.tcp.as_fd().as_raw_fd().into();
        let set_owner = [own, libc::F_SETOWN.into(), parent, 0, 0, 0];
        add("signal by the kernel", Seccomp, call(libc::SYS_fcntl, set_owner));
        add("priority of others", Seccomp, call(libc::SYS_setpriority, [0, parent, 19, 0, 0, 0]));
        add("ptrace", Seccomp, call(libc::SYS_ptrace, [0x4206, parent, 0, 0, 0, 0]));
        add("process_vm_readv", Seccomp, call(libc::SYS_process_vm_readv, [parent, 0, 0, 0, 0, 0]));
        add("pidfd_open", Seccomp, call(libc::SYS_pidfd_open, [parent, 0, 0, 0, 0, 0]));

        // Files.
        add("chmod", Seccomp, fs::set_permissions(&file, fs::Permissions::from_mode(0o4777)));
        add("chown", Seccomp, std::os::unix::fs::chown(&file, None, None));
        let now = SystemTime::now();
        let times = File::open(inside.join(".")).and_then(|folder| folder.set_modified(now));
        add("utimes", Seccomp, times);
        let value = c"value";
        let attribute = [pointer, c"user.x".as_ptr() as c_long, value.as_ptr() as c_long, 5, 0, 0];
        add("setxattr", Seccomp, call(libc::SYS_setxattr, attribute));
        add("symbolic link", Seccomp, std::os::unix::fs::symlink("/etc", inside.join("link")));
        add("hard link", Seccomp, fs::hard_link(&file, inside.join("hard")));
        add("device node", Seccomp, call(libc::SYS_mknodat, [at, pointer, 0o20666, 0x0103, 0, 0]));
        add("mount", Seccomp, call(libc::SYS_mount, [pointer, pointer, 0, 0x1000, 0, 0]));
        add("read a file of the user elsewhere", Landlock, fs::read(&file).map(drop));
        add("write a file of the user elsewhere", Landlock, fs::write(&file, "x"));
        add("create a file elsewhere", Landlock, fs::write(self.folder.join("new"), "x"));
        add("remove a file elsewhere", Landlock, fs::remove_file(&file));
        add("read /etc/passwd", Landlock, fs::read("/etc/passwd").map(drop));

        // Programs and the kernel.
        add("exec", Seccomp, Command::new("/bin/true").status().map(drop));
        let arguments = [c"/bin/true".as_ptr() as c_long, 0, 0, 0, 0, 0];
        add("execve in place", Seccomp, call(libc::SYS_execve, arguments));
        add("fork", Seccomp, call(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0, 0, 0]));
        add("namespace", Seccomp, call(libc::SYS_unshare, [0x1000_0000, 0, 0, 0, 0, 0]));
        add("file in memory", Seccomp, call(libc::SYS_memfd_create, [pointer, 0, 0, 0, 0, 0]));
        add("writable code", Seccomp, map(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC));
        let page = &raw const *self as c_long & !0xfff;
        let protection = c_long::from(libc::PROT_READ | libc::PROT_EXEC);
        let (execute, private) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
        let options = File::options().read(true).write(true).create(true).truncate(true).clone();
        let code = options.open(inside.join("code")).map(|file| {
            call(
                libc::SYS_mmap,
                [0, 4096, execute.into(), private.into(), file.as_raw_fd().into(), 0],
            )
        });
        add("code of a written file", Seccomp, code.and_then(|mapped| mapped));
        let program = [own, libc::SOL_SOCKET.into(), libc::SO_ATTACH_FILTER.into(), pointer, 16, 0];
        add("packet filter", Seccomp, call(libc::SYS_setsockopt, program));
        add(
            "code of written memory",
            Seccomp,
            call(libc::SYS_mprotect, [page, 4096, protection, 0, 0, 0]),
        );
        add("io_uring", Seccomp, call(libc::SYS_io_uring_setup, [1, pointer, 0, 0, 0, 0]));
        add("keyring", Seccomp, call(libc::SYS_keyctl, [0, -3, 0, 0, 0, 0]));
        add("bpf", Seccomp, call(libc::SYS_bpf, [0, 0, 0, 0, 0, 0]));
        add("perf_event_open", Seccomp, call(libc::SYS_perf_event_open, [0, 0, -1, -1, 0, 0]));
        add("userfaultfd", Seccomp, call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0]));
        add("type into the terminal", Seccomp, self.type_into_terminal());
        add("raise a limit", Seccomp, raise_limit());
        add("the filter itself", Seccomp, call(libc::SYS_seccomp, [0, 0, 0, 0, 0, 0]));
        attempts
    }

    /// As the server does: accepts, reads, writes, closes.
    fn accept(&self) -> io::Result<()> {
        self.tcp.set_nonblocking(false)?;
        let (mut stream, _) = self.tcp.accept()?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut request = [0; 7];
        stream.read_exact(&mut request)?;
        stream.write_all(b"response")
    }

    fn type_into_terminal(&self) -> io::Result<()> {
        let descriptor = self.listener.as_fd().as_raw_fd().into();
        let attempt = call(
            libc::SYS_ioctl,
            [descriptor, libc::TIOCSTI.cast_signed(), c"x".as_ptr() as c_long, 0, 0, 0],
        );
        // On a socket the kernel itself says ENOTTY, so only the code of the filter counts.
        match attempt {
            Err(error) if error.raw_os_error() != Some(libc::ENOSYS) => Ok(()),
            other => other,
        }
    }
}

fn raise_limit() -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    let pointer = &raw const limit as c_long;
    call(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE.into(), pointer, 0, 0, 0])
}

/// Whether this kernel limits files and TCP ports, as since Linux 6.7.
fn has_landlock() -> bool {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    };
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = ruleset.handle_access(AccessFs::from_all(ABI::V4));
    let ports = files.and_then(|it| it.handle_access(AccessNet::from_all(ABI::V4)));
    ports.and_then(Ruleset::create).is_ok()
}

/// The second process.
fn inside(folder: &Path) {
    let outside = Outside::prepare(folder).unwrap();
    // A client that connected before: the process itself cannot.
    let mut client = TcpStream::connect(outside.tcp.local_addr().unwrap()).unwrap();
    client.write_all(b"request").unwrap();
    let history = format!("--history.file={}", folder.join("history/h.db").display());
    let flags = ["x", "--no-collector.fabric", "--host.events=false", &history];
    let flags = Flags::try_parse_from(flags).unwrap();
    let settings = Settings::load(flags.options, None).unwrap();
    enter(&settings, &[], None, None);
    for Attempt { name, by, outcome } in outside.attempt() {
        let by = match by {
            By::Seccomp => "seccomp",
            By::Landlock => "landlock",
            By::Nobody => "nobody",
        };
        match outcome {
            Ok(()) => println!("attempt|{name}|{by}|succeeded"),
            Err(error) => println!("attempt|{name}|{by}|refused: {error}"),
        }
    }
}

/// The second process of an exporter that receives events of the kernel, as by default.
fn inside_with_events(folder: &Path) {
    let outside = Outside::prepare(folder).unwrap();
    let flags = Flags::try_parse_from(["x", "--no-collector.fabric"]).unwrap();
    let settings = Settings::load(flags.options, None).unwrap();
    enter(&settings, &[], None, None);
    let report = |name: &str, by, outcome: io::Result<()>| match outcome {
        Ok(()) => println!("attempt|{name}|{by}|succeeded"),
        Err(error) => println!("attempt|{name}|{by}|refused: {error}"),
    };
    let raw = libc::SOCK_RAW;
    report("netlink of uevents", "nobody", socket(libc::AF_NETLINK, raw, 15));
    report("netlink of RDMA", "nobody", socket(libc::AF_NETLINK, raw, 20).or_else(is_unsupported));
    report("netlink of routes", "seccomp", socket(libc::AF_NETLINK, raw, 0));
    report("socket of Unix", "seccomp", socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
    report("TCP Fast Open", "seccomp", fast_open(&outside.listener, &outside.tcp));
    report("writable code", "seccomp", map(libc::PROT_WRITE | libc::PROT_EXEC));
}

/// A kernel without RDMA has no such protocol.
fn is_unsupported(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) { Ok(()) } else { Err(error) }
}

/// The second process of an exporter that takes totals from another one.
fn inside_with_connections(folder: &Path) {
    attempt_connections(folder, "--fabric.totals-from=http://ADDRESS");
}

/// The second process of an exporter whose data UFM Telemetry collects.
fn inside_with_endpoint(folder: &Path) {
    attempt_connections(folder, "--fabric.from=http://ADDRESS/metrics");
}

fn attempt_connections(folder: &Path, option: &str) {
    let outside = Outside::prepare(folder).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let option = option.replace("ADDRESS", &outside.tcp.local_addr().unwrap().to_string());
    let flags = Flags::try_parse_from(["x", "--no-collector.host", &option]).unwrap();
    let settings = Settings::load(flags.options, None).unwrap();
    enter(&settings, &[], None, None);
    let report = |name: &str, by, outcome: io::Result<()>| match outcome {
        Ok(()) => println!("attempt|{name}|{by}|succeeded"),
        Err(error) => println!("attempt|{name}|{by}|refused: {error}"),
    };
    let connect = |address| TcpStream::connect(address).map(drop);
    report("connect to the other exporter", "nobody", connect(outside.tcp.local_addr().unwrap()));
    // Landlock of Linux 6.7 refuses it with EACCES before it is known that nobody listens.
    let elsewhere = connect(other);
    let elsewhere = elsewhere.or_else(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Ok(()),
        _ => Err(error),
    });
    report("connect to another port", "landlock", elsewhere);
    let fast_open = fast_open(&outside.listener, &outside.tcp);
    report("TCP Fast Open", "seccomp", fast_open);
    report("socket of MPTCP", "seccomp", socket(libc::AF_INET, libc::SOCK_STREAM, 262));
    report("socket of Unix", "seccomp", socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
    report("raw packets", "seccomp", socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP));
    report("listen", "seccomp", rustix::net::listen(&outside.listener, 1).map_err(Into::into));
}

#[test]
fn taken_over_process_reaches_only_what_the_exporter_needs() {
    attempted("taken_over_process_reaches_only_what_the_exporter_needs", 45, inside);
}

#[test]
fn exporter_with_events_has_two_kinds_of_netlink() {
    attempted("exporter_with_events_has_two_kinds_of_netlink", 6, inside_with_events);
}

#[test]
fn exporter_with_another_one_connects_only_to_that() {
    attempted("exporter_with_another_one_connects_only_to_that", 6, inside_with_connections);
}

#[test]
fn exporter_with_an_endpoint_connects_only_to_that() {
    attempted("exporter_with_an_endpoint_connects_only_to_that", 6, inside_with_endpoint);
}

/// Runs a test of this file again, in which `inside` attempts at least so many things, and checks the outcomes.
fn attempted(test: &str, least: usize, inside: fn(&Path)) {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return inside(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", &format!("sandbox::tests::{test}")])
        .env(INSIDE, folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let attempts: Vec<Vec<&str>> = printed
        .lines()
        .filter_map(|line| Some(line.split_once("attempt|")?.1.split('|').collect()))
        .collect();
    assert!(attempts.len() >= least, "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let has_landlock = has_landlock();
    let wrong = attempts.iter().filter(|fields| match fields[1] {
        "nobody" => fields[2] != "succeeded",
        "landlock" => fields[2] == "succeeded" && has_landlock,
        // Other errors are those of the kernel, which would have done it.
        _ => !fields[2].ends_with("(os error 38)"),
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{printed}");
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/security.md")).unwrap();
    for fields in attempts {
        assert!(page.contains(&format!("\"{}\"", fields[0])), "{} is not on the page", fields[0]);
    }
    if !has_landlock {
        println!("not tested here: files, for this kernel has no Landlock of Linux 6.7");
    }
}
