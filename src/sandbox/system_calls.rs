//! The seccomp filter: which system calls remain after the start.
//!
//! It lists what is permitted. Everything else fails with ENOSYS, as on a kernel that is older than the call: libraries
//! expect that of calls which a later version of them starts to use, and fall back to an older one. EPERM they would
//! report. Landlock limits files and TCP ports; the filter closes what Landlock does not know: other kinds of
//! sockets, changes of modes, owners and attributes, programs, io_uring, keyrings, and the parts of the kernel that a
//! monitoring program never calls.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// What settings need beyond the calls that are always permitted.
#[expect(clippy::struct_excessive_bools, reason = "independent needs, not states")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Kernel events, and libibverbs: netlink sockets of these two protocols.
    pub events: bool,
    /// Modules of network interfaces: generic netlink.
    pub modules: bool,
    /// Connections to another exporter or a webhook, whose name is resolved: TCP and UDP sockets.
    pub connections: bool,
    /// Passing descriptors to another process.
    pub pass_descriptors: bool,
}

/// Permitted whatever the arguments are. Memory, threads, signals of its own, time, descriptors, files, and
/// sockets that are already connected or listening.
const ALWAYS: &[c_long] = &[
    // Memory. mmap and mprotect are conditional.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Threads. clone is conditional; clone3 has its flags in memory, so libc falls back to clone.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getpriority,
    libc::SYS_gettid,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    // The end of programs that were started before.
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Signals. tgkill is conditional.
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Time.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    // What the process and the host are. prctl and prlimit64 are conditional.
    libc::SYS_capget,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getuid,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    // Descriptors. fcntl and ioctl are conditional.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    // Files: Landlock limits which ones. No links, device nodes, modes, owners, attributes or times.
    libc::SYS_copy_file_range,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_lseek,
    libc::SYS_mkdirat,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_readlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_sendfile,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sync_file_range,
    libc::SYS_unlinkat,
    // Connections of clients. Those that send, and setsockopt, are conditional.
    libc::SYS_accept4,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
];

/// The older forms of these calls, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_dup2,
    libc::SYS_epoll_wait,
    libc::SYS_getdents,
    libc::SYS_getrlimit,
    libc::SYS_inotify_init,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Requests of ioctl: statistics and index of an interface (`linux/sockios.h`), and those that libc makes to find
/// out about a descriptor. Not TIOCSTI, which types into the terminal that started the program.
const REQUESTS: [u32; 6] = [
    SIOCETHTOOL,
    SIOCGIFINDEX,
    libc::FIONBIO as u32,
    libc::FIONREAD as u32,
    libc::TCGETS as u32,
    libc::TIOCGWINSZ as u32,
];
const SIOCETHTOOL: u32 = 0x8946;
const SIOCGIFINDEX: u32 = 0x8933;
/// The type of all requests of umad and uverbs devices, in bits 8 to 15 (`RDMA_IOCTL_MAGIC` of
/// `rdma/rdma_user_ioctl_cmds.h`).
const RDMA_REQUESTS: u32 = 0x1b00;

/// Commands of fcntl: descriptors, flags and locks. Not F_SETOWN and F_SETSIG, by which the kernel sends signals to others.
const COMMANDS: [i32; 11] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
];

/// Options of sockets that attach a program for the kernel.
const PROGRAMS: [i32; 4] = [
    libc::SO_ATTACH_FILTER,
    libc::SO_ATTACH_BPF,
    libc::SO_ATTACH_REUSEPORT_CBPF,
    libc::SO_ATTACH_REUSEPORT_EBPF,
];

/// Options of TCP: of loading a module, and of connecting when data is sent.
const TCP: [i32; 2] = [libc::TCP_ULP, libc::TCP_FASTOPEN_CONNECT];

/// The netlink protocols (`linux/netlink.h`).
const NETLINK_ROUTE: u32 = 0;
const NETLINK_KOBJECT_UEVENT: u32 = 15;
const NETLINK_GENERIC: u32 = 16;
/// By which libibverbs lists devices. Without it, libibverbs finds no soft-RoCE device that was renamed.
const NETLINK_RDMA: u32 = 20;

/// `SOCK_CLOEXEC` and `SOCK_NONBLOCK` are flags in the type of a socket.
const TYPE: u32 = 0xf;

/// The bit of `MSG_FASTOPEN`: it connects a socket without connect(), past Landlock.
const FAST_OPEN: u32 = libc::MSG_FASTOPEN.cast_unsigned();

/// A condition on one argument.
#[derive(Clone, Copy)]
struct Argument(u8, Test);

#[derive(Clone, Copy)]
enum Test {
    Is(u32),
    Not(u32),
    /// The bits of the first value are those of the second.
    Bits(u32, u32),
    /// All 64 bits: a pointer.
    IsNull,
}

impl Argument {
    fn condition(self) -> Result<SeccompCondition, seccompiler::BackendError> {
        let Argument(index, test) = self;
        let (length, compare, value) = match test {
            Test::Is(value) => (Length::Dword, Compare::Eq, value.into()),
            Test::Not(value) => (Length::Dword, Compare::Ne, value.into()),
            Test::Bits(mask, value) => {
                (Length::Dword, Compare::MaskedEq(mask.into()), value.into())
            }
            Test::IsNull => (Length::Qword, Compare::Eq, 0),
        };
        SeccompCondition::new(index, length, compare, value)
    }
}

/// The rules that are collected: a call is permitted if one of its lists of conditions holds, or if it has none.
#[derive(Default)]
struct Rules(BTreeMap<c_long, Vec<SeccompRule>>);

impl Rules {
    fn permit(&mut self, call: c_long) {
        self.0.insert(call, Vec::new());
    }

    fn permit_if(
        &mut self,
        call: c_long,
        conditions: &[Argument],
    ) -> Result<(), seccompiler::BackendError> {
        let conditions = conditions.iter().map(|it| it.condition()).collect::<Result<_, _>>()?;
        self.0.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok(())
    }
}

/// Installs the filter for this thread and those that it starts.
///
/// # Errors
///
/// On an architecture that `seccompiler` does not support, and if the kernel has no seccomp.
pub fn restrict(needs: Needs) -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(&program(needs)?)
}

fn program(needs: Needs) -> Result<BpfProgram, seccompiler::BackendError> {
    let refusal = SeccompAction::Errno(libc::ENOSYS as u32);
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let rules = rules(needs)?.0;
    SeccompFilter::new(rules, refusal, SeccompAction::Allow, architecture)?.try_into()
}

fn rules(needs: Needs) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::default();
    for call in ALWAYS.iter().chain(OLDER) {
        rules.permit(*call);
    }
    // No memory that is both writable and executable, nor executable after it was written. Code is mapped from the file
    // of a library: of libibverbs, and of the resolver.
    let (write, execute) = (libc::PROT_WRITE.cast_unsigned(), libc::PROT_EXEC.cast_unsigned());
    rules.permit_if(libc::SYS_mmap, &[Argument(2, Test::Bits(execute, 0))])?;
    if needs.events || needs.connections {
        rules.permit_if(libc::SYS_mmap, &[Argument(2, Test::Bits(execute | write, execute))])?;
    }
    rules.permit_if(libc::SYS_mprotect, &[Argument(2, Test::Bits(execute, 0))])?;
    // Its own threads: PRIO_PROCESS is 0, and so is the calling thread.
    rules
        .permit_if(libc::SYS_setpriority, &[Argument(0, Test::Is(0)), Argument(1, Test::Is(0))])?;
    for command in COMMANDS {
        let is_it = Argument(1, Test::Is(command.cast_unsigned()));
        rules.permit_if(libc::SYS_fcntl, &[is_it])?;
    }
    let (set, signals) = (libc::F_SETFL.cast_unsigned(), libc::O_ASYNC.cast_unsigned());
    let without_signals = [Argument(1, Test::Is(set)), Argument(2, Test::Bits(signals, 0))];
    rules.permit_if(libc::SYS_fcntl, &without_signals)?;
    let (socket, tcp) = (libc::SOL_SOCKET.cast_unsigned(), libc::IPPROTO_TCP.cast_unsigned());
    rules.permit_if(
        libc::SYS_setsockopt,
        &[Argument(1, Test::Not(socket)), Argument(1, Test::Not(tcp))],
    )?;
    for (level, refused) in [(socket, &PROGRAMS[..]), (tcp, &TCP[..])] {
        let others = refused.iter().map(|option| Argument(2, Test::Not(option.cast_unsigned())));
        let conditions: Vec<_> = [Argument(1, Test::Is(level))].into_iter().chain(others).collect();
        rules.permit_if(libc::SYS_setsockopt, &conditions)?;
    }
    // Threads, not processes.
    let thread = libc::CLONE_THREAD.cast_unsigned();
    rules.permit_if(libc::SYS_clone, &[Argument(0, Test::Bits(thread, thread))])?;
    // abort() of a panic in a panic.
    let own = rustix::process::getpid().as_raw_nonzero().get().cast_unsigned();
    rules.permit_if(libc::SYS_tgkill, &[Argument(0, Test::Is(own))])?;
    // The name of a thread.
    rules
        .permit_if(libc::SYS_prctl, &[Argument(0, Test::Is(libc::PR_SET_NAME.cast_unsigned()))])?;
    // Limits are read, and only its own.
    rules.permit_if(libc::SYS_prlimit64, &[Argument(0, Test::Is(0)), Argument(2, Test::IsNull)])?;
    rules.permit_if(libc::SYS_ioctl, &[Argument(1, Test::Bits(0xff00, RDMA_REQUESTS))])?;
    for request in REQUESTS {
        rules.permit_if(libc::SYS_ioctl, &[Argument(1, Test::Is(request))])?;
    }
    sockets(&mut rules, needs)?;
    Ok(rules)
}

/// New sockets, and calls by which a socket reaches an address.
fn sockets(rules: &mut Rules, needs: Needs) -> Result<(), seccompiler::BackendError> {
    // Pairs for the runtime and for ethtool. Not of datagrams: one of a pair could send to the socket of another
    // program.
    let (unix, stream) = (libc::AF_UNIX.cast_unsigned(), libc::SOCK_STREAM.cast_unsigned());
    rules.permit_if(
        libc::SYS_socketpair,
        &[Argument(0, Test::Is(unix)), Argument(1, Test::Bits(TYPE, stream))],
    )?;
    let mut protocols = Vec::new();
    if needs.events {
        protocols.extend([NETLINK_KOBJECT_UEVENT, NETLINK_RDMA]);
    }
    if needs.modules {
        protocols.push(NETLINK_GENERIC);
    }
    if needs.connections {
        // The resolver asks for the addresses of this host.
        protocols.push(NETLINK_ROUTE);
        rules.permit(libc::SYS_connect);
        for family in [libc::AF_INET, libc::AF_INET6] {
            for (kind, protocol) in [
                (libc::SOCK_STREAM, libc::IPPROTO_IP),
                (libc::SOCK_STREAM, libc::IPPROTO_TCP),
                (libc::SOCK_DGRAM, libc::IPPROTO_IP),
                (libc::SOCK_DGRAM, libc::IPPROTO_UDP),
            ] {
                // Not IPPROTO_MPTCP, which Landlock does not limit.
                rules.permit_if(
                    libc::SYS_socket,
                    &[
                        Argument(0, Test::Is(family.cast_unsigned())),
                        Argument(1, Test::Bits(TYPE, kind.cast_unsigned())),
                        Argument(2, Test::Is(protocol.cast_unsigned())),
                    ],
                )?;
            }
        }
    }
    for protocol in &protocols {
        rules.permit_if(
            libc::SYS_socket,
            &[
                Argument(0, Test::Is(libc::AF_NETLINK.cast_unsigned())),
                Argument(2, Test::Is(*protocol)),
            ],
        )?;
    }
    if !protocols.is_empty() {
        rules.permit(libc::SYS_bind);
    }
    let mut conditions = vec![Argument(3, Test::Bits(FAST_OPEN, 0))];
    if !needs.connections {
        // Only to the peer of a connection, and to the kernel.
        conditions.push(Argument(4, Test::IsNull));
    }
    rules.permit_if(libc::SYS_sendto, &conditions)?;
    // libnl of libibverbs names the kernel as the address. The only other socket that takes an address then is that of
    // the service manager, for datagrams.
    if needs.connections || needs.events || needs.pass_descriptors {
        rules.permit_if(libc::SYS_sendmsg, &[Argument(2, Test::Bits(FAST_OPEN, 0))])?;
    }
    if needs.connections {
        // The resolver sends both of its questions at once.
        rules.permit_if(libc::SYS_sendmmsg, &[Argument(3, Test::Bits(FAST_OPEN, 0))])?;
    }
    Ok(())
}
