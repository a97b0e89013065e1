//! Sends recorded MADs through a umad device and ignores the responses: the least that a sweep can cost on this path.

// The preload library of ibsim replaces calls of libc, which have no safe wrapper for its made-up descriptors.
#![allow(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use super::capture::Request;
use super::{cpu_time, thread_cpu_time};

/// `struct ib_user_mad_reg_req` (kernel: include/uapi/rdma/ib_user_mad.h).
#[repr(C)]
#[derive(Default)]
struct RegisterAgent {
    id: u32,
    method_mask: [u32; 4],
    qpn: u8,
    class: u8,
    class_version: u8,
    oui: [u8; 3],
    rmpp_version: u8,
}

/// `IB_USER_MAD_REGISTER_AGENT`: `_IOWR(0x1b, 1, struct ib_user_mad_reg_req)`.
const REGISTER_AGENT: libc::Ioctl = 0xc01c_1b01_u32 as libc::Ioctl;

/// The header of `struct ib_user_mad` without the P_Key index, and the MAD: all that ibsim knows.
const HEADER: usize = 56;
const PACKET: usize = HEADER + 256;

/// The Q_Key of QP1.
const QP1_QKEY: u32 = 0x8001_0000;

/// A response that takes this long is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests in flight on QP0 and QP1.
pub type Windows = [usize; 2];

/// What a replay took.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Responses, each with the transaction id of another request.
    pub matched: usize,
    /// From the first request to the last response.
    pub took: Duration,
    /// CPU time of the loop.
    pub cpu: Duration,
    /// CPU time of the rest of the process, which is the preload library's thread: it receives for the loop.
    pub library: Duration,
}

/// A umad device that takes recorded requests. It belongs to a process with ibsim's preload library.
pub struct Device {
    fd: libc::c_int,
    agents: Vec<(u8, u32)>,
}

impl Device {
    /// Opens the device of a process on a [`Seat`](crate::Seat), for the classes of these requests.
    pub fn open(requests: &[Request]) -> Self {
        // The preload library writes its sysfs at the first call that it replaces.
        assert!(std::fs::read_dir("/sys/class/infiniband_mad").is_ok(), "no umad: not on a seat?");
        // SAFETY: the path is a NUL-terminated constant.
        let fd = unsafe {
            libc::open(c"/dev/infiniband/umad0".as_ptr(), libc::O_RDWR | libc::O_NONBLOCK)
        };
        assert!(fd >= 0, "umad0: {}", std::io::Error::last_os_error());
        let mut device = Device { fd, agents: Vec::new() };
        for class in requests.iter().map(Request::class) {
            if !device.agents.iter().any(|(known, _)| *known == class) {
                let agent = device.register(class, u8::from(!Request::is_smp_class(class)));
                device.agents.push((class, agent));
            }
        }
        device
    }

    fn register(&self, class: u8, qpn: u8) -> u32 {
        let mut request = RegisterAgent { qpn, class, class_version: 1, ..Default::default() };
        // SAFETY: the request is of the type that the ioctl's number names, and lives beyond the call.
        let result = unsafe { libc::ioctl(self.fd, REGISTER_AGENT, &raw mut request) };
        assert!(result >= 0, "class {class:#04x}: {result}");
        request.id
    }

    /// What is written for a request: all but the transaction id, which is its position.
    fn packet(&self, position: usize, request: &Request) -> [u8; PACKET] {
        let mut packet = [0; PACKET];
        let class = request.class();
        let (_, agent) =
            self.agents.iter().find(|(known, _)| *known == class).expect("a registered class");
        let mut put = |at: usize, bytes: &[u8]| {
            packet[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(0, &agent.to_ne_bytes());
        put(8, &500_u32.to_ne_bytes());
        put(16, &256_u32.to_ne_bytes());
        if !request.is_smp() {
            put(20, &1_u32.to_be_bytes());
            put(24, &QP1_QKEY.to_be_bytes());
        }
        put(28, &request.lid.to_be_bytes());
        put(HEADER, &request.mad);
        put(HEADER + 12, &u32::try_from(position).expect("few requests").to_be_bytes());
        packet
    }

    /// Sends all requests in their order, with no more in flight than `windows`, and counts the responses.
    pub fn replay(&self, requests: &[Request], windows: Windows) -> Replay {
        let packets: Vec<_> =
            requests.iter().enumerate().map(|(at, request)| self.packet(at, request)).collect();
        // Per queue pair, as the windows are.
        let mut queues = [Vec::new(), Vec::new()];
        for (at, request) in requests.iter().enumerate() {
            queues[usize::from(!request.is_smp())].push(at);
        }
        let mut is_open = vec![true; packets.len()];
        let (mut next, mut in_flight, mut matched) = ([0; 2], [0; 2], 0);
        let mut buffer = [0; PACKET];
        let own = std::process::id();
        let (began, process, cpu) = (Instant::now(), cpu_time(own), thread_cpu_time());
        loop {
            for qp in 0..2 {
                while in_flight[qp] < windows[qp] && next[qp] < queues[qp].len() {
                    self.write(&packets[queues[qp][next[qp]]]);
                    next[qp] += 1;
                    in_flight[qp] += 1;
                }
            }
            if in_flight == [0; 2] {
                break;
            }
            while !self.read(&mut buffer) {
                self.wait();
            }
            let id = [12, 13, 14, 15].map(|byte| buffer[HEADER + byte]);
            let at = u32::from_be_bytes(id) as usize;
            if is_open.get_mut(at).is_some_and(std::mem::take) {
                in_flight[usize::from(!requests[at].is_smp())] -= 1;
                matched += 1;
            }
        }
        let took = began.elapsed();
        let cpu = thread_cpu_time().saturating_sub(cpu);
        let library = cpu_time(own).saturating_sub(process).saturating_sub(cpu);
        Replay { matched, took, cpu, library }
    }

    fn write(&self, packet: &[u8; PACKET]) {
        // SAFETY: pointer and length are those of a live array.
        let result = unsafe { libc::write(self.fd, packet.as_ptr().cast(), packet.len()) };
        assert!(result > 0, "write: {result}");
    }

    /// Reads one response; false if there is none.
    fn read(&self, buffer: &mut [u8; PACKET]) -> bool {
        // SAFETY: pointer and length are those of a live array without other writers.
        let result = unsafe { libc::read(self.fd, buffer.as_mut_ptr().cast(), buffer.len()) };
        // The preload library returns the negated error.
        assert!(result > 0 || result == -(libc::EAGAIN as isize), "read: {result}");
        result > 0
    }

    fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd that lives beyond the call.
        let ready = unsafe { libc::poll(&raw mut poll, 1, PATIENCE.as_millis() as libc::c_int) };
        assert!(ready > 0, "no response in {PATIENCE:?}");
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and is used no more.
        unsafe { libc::close(self.fd) };
    }
}

/// Reads requests that [`save`] wrote.
pub fn load(path: &Path) -> Vec<Request> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let record = |bytes: &[u8]| Request {
        at: Duration::ZERO,
        lid: u16::from_be_bytes([bytes[0], bytes[1]]),
        mad: bytes[2..].try_into().expect("a MAD"),
    };
    bytes.chunks_exact(2 + 256).map(record).collect()
}

/// Writes requests for another process.
pub fn save(path: &Path, requests: &[Request]) {
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|request| request.lid.to_be_bytes().into_iter().chain(request.mad))
        .collect();
    std::fs::write(path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
