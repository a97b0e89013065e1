//! Opens umad devices for an exporter that is no longer root.
//!
//! A device that returns has to be opened again, and only root can open `/dev/infiniband/umadN` where no rule of udev
//! gives it to a group. So an exporter that root started leaves a second process behind, as root, which opens these
//! devices and passes them on. It accepts nothing but the name of a umad device, and ends with the exporter.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send,
    sendmsg, socketpair,
};
use rustix::thread::{CapabilitySet, capabilities, set_no_new_privs};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::capabilities::keep;
use super::files::AllowedPaths;
use super::system_calls::{Needs, restrict};

/// The first argument of the second process, instead of the name of the program.
pub const NAME: &str = "fabric-exporter: opens umad devices";

const DEVICES: &str = "/dev/infiniband";

/// Longer than the name of any device.
const MAX_NAME: usize = 32;

/// The second process.
#[derive(Debug)]
pub struct DeviceOpener(Mutex<OwnedFd>);

impl DeviceOpener {
    /// Starts it. `sysfs` says which devices are umad devices.
    pub fn start(sysfs: &Path) -> io::Result<Self> {
        Self::start_program(&std::env::current_exe()?, sysfs)
    }

    /// The same with this exporter, for tests.
    pub fn start_program(program: &Path, sysfs: &Path) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, its) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(program);
        // Without the environment: the socket of the service manager and the like are not for it.
        command.arg0(NAME).arg(sysfs).env_clear().stdin(Stdio::from(its)).stdout(Stdio::null());
        // It ends when the other end of its socket is closed; nobody waits for it.
        command.spawn()?;
        Ok(DeviceOpener(Mutex::new(ours)))
    }

    /// Opens a umad device for reading and writing, without waiting.
    pub fn open(&self, device: &Path) -> io::Result<OwnedFd> {
        let name = device.file_name().unwrap_or_default().as_encoded_bytes();
        // One request at a time: the responses have no other order.
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send(&*socket, name, SendFlags::NOSIGNAL)?;
        receive(socket.as_fd())
    }
}

/// The error code of a response, and the descriptor that came with it.
fn receive(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut code = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut code)];
    let received = recvmsg(socket, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes != 4 || received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::other("the process that opens devices has ended"));
    }
    let code = i32::from_ne_bytes(code);
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::Error::other("the process that opens devices sent no device"))
}

/// The second process: answers requests on standard input until the exporter ends.
pub fn run(sysfs: Option<&OsStr>) -> ExitCode {
    let sysfs = PathBuf::from(sysfs.unwrap_or_else(|| OsStr::new("/sys")));
    // The exporter ends on these, and this with it. SIGHUP is for its web config.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    confine(&sysfs);
    let stdin = io::stdin();
    let mut name = [0; MAX_NAME];
    loop {
        let length = match rustix::io::read(&stdin, &mut name) {
            Err(Errno::INTR) => continue,
            Ok(0) | Err(_) => return ExitCode::SUCCESS,
            Ok(length) => length,
        };
        let opened = open(&sysfs, &name[..length]);
        let code = opened.as_ref().map_or_else(|error| error.raw_os_error(), |_| 0);
        if respond(stdin.as_fd(), code, opened.ok().as_ref()).is_err() {
            return ExitCode::SUCCESS;
        }
    }
}

/// Nothing but devices and sysfs. Without the capability, root cannot open a device that belongs to a group.
fn confine(sysfs: &Path) {
    let paths = AllowedPaths {
        read: vec![sysfs.to_owned()],
        devices: vec!["/dev".into()],
        ..AllowedPaths::default()
    };
    let permitted = capabilities(None).map_or(CapabilitySet::empty(), |held| held.permitted);
    // What fails here has failed, and was logged, in the exporter as well.
    let _ = set_no_new_privs(true);
    let _ = paths.restrict();
    let _ = keep(permitted & CapabilitySet::DAC_OVERRIDE);
    let _ = restrict(Needs { pass_descriptors: true, ..Needs::default() });
}

/// Opens a device by its name, such as `umad0`, if sysfs has it as a umad device.
fn open(sysfs: &Path, name: &[u8]) -> Result<OwnedFd, Errno> {
    let name = std::str::from_utf8(name).map_err(|_| Errno::INVAL)?;
    let digits = name.strip_prefix("umad").ok_or(Errno::INVAL)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let device = rustix::fs::open(Path::new(DEVICES).join(name), flags, Mode::empty())?;
    let found = fstat(&device)?;
    let number =
        format!("{}:{}", rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
    let expected = sysfs.join("class/infiniband_mad").join(name).join("dev");
    let expected = std::fs::read_to_string(expected).map_err(|_| Errno::NODEV)?;
    let is_it = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
        && expected.trim() == number;
    if is_it { Ok(device) } else { Err(Errno::NODEV) }
}

fn respond(socket: BorrowedFd<'_>, code: i32, device: Option<&OwnedFd>) -> Result<(), Errno> {
    let descriptors: Vec<BorrowedFd<'_>> = device.into_iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let code = code.to_ne_bytes();
    sendmsg(socket, &[IoSlice::new(&code)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_umad_devices_are_opened() {
        let sysfs = tempfile::tempdir().unwrap();
        for name in
            ["", "umad", "umadx", "umad0/../../null", "../null", "uverbs0", "umad-1", "\u{0}"]
        {
            assert_eq!(open(sysfs.path(), name.as_bytes()).unwrap_err(), Errno::INVAL, "{name:?}");
        }
        assert_eq!(open(sysfs.path(), b"\xff").unwrap_err(), Errno::INVAL);
        assert!(open(sysfs.path(), b"umad4294967295").is_err());
    }

    #[test]
    fn response_has_the_error_or_the_device() {
        let (ours, its) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        respond(its.as_fd(), Errno::NODEV.raw_os_error(), None).unwrap();
        let error = receive(ours.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NODEV.raw_os_error()));
        let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        respond(its.as_fd(), 0, Some(&null)).unwrap();
        let passed = receive(ours.as_fd()).unwrap();
        assert_eq!(fstat(&passed).unwrap().st_rdev, fstat(&null).unwrap().st_rdev);
        respond(its.as_fd(), 0, None).unwrap();
        assert!(receive(ours.as_fd()).unwrap_err().to_string().contains("no device"));
        drop(its);
        assert!(receive(ours.as_fd()).unwrap_err().to_string().contains("ended"));
    }
}
