//! Calls of libibverbs, all of them by the listening thread: a device that hangs may block any of them.
#![expect(unsafe_code, reason = "libibverbs is a library of C")]

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::registry::{EventSource, RawEvent};
use rdma_sys::{
    ibv_ack_async_event, ibv_async_event, ibv_close_device, ibv_context, ibv_device,
    ibv_free_device_list, ibv_get_async_event, ibv_get_device_list, ibv_open_device,
};

// An event is read through these, because a kind of event newer than rdma-sys would not be a value of its enum.
const _: () = assert!(size_of::<rdma_sys::ibv_event_type>() == size_of::<u32>());
const _: () = assert!(size_of::<ibv_async_event>() == 16);

pub(super) fn open(node: &str) -> io::Result<Option<Box<dyn EventSource>>> {
    let refused = |error| io::Error::other(format!("cannot open the device: {error}"));
    let list = DeviceList::new()
        .map_err(|error| io::Error::other(format!("libibverbs cannot list devices: {error}")))?;
    let unlisted = "unknown to libibverbs: install its provider (ibverbs-providers)";
    let context = list.open(node).ok_or_else(|| io::Error::other(unlisted))?.map_err(refused)?;
    fcntl_getfl(context.fd())
        .and_then(|flags| fcntl_setfl(context.fd(), flags | OFlags::NONBLOCK))
        .map_err(|error| refused(error.into()))?;
    Ok(Some(Box::new(context)))
}

struct DeviceList {
    list: NonNull<*mut ibv_device>,
    count: usize,
}

impl DeviceList {
    /// Lists the kernel's devices, and loads the providers of those that have one.
    fn new() -> io::Result<DeviceList> {
        let mut count = 0;
        // SAFETY: the count outlives the call.
        let list = NonNull::new(unsafe { ibv_get_device_list(&raw mut count) });
        let count = usize::try_from(count).unwrap_or(0);
        list.map(|list| DeviceList { list, count }).ok_or_else(io::Error::last_os_error)
    }

    /// Opens the device behind this node (`uverbs0`); `None` if it is not among them.
    fn open(&self, node: &str) -> Option<io::Result<Context>> {
        // SAFETY: the list has this many devices, and is ours until it is dropped.
        let devices = unsafe { std::slice::from_raw_parts(self.list.as_ptr(), self.count) };
        let is_it = |device: &&*mut ibv_device| {
            // SAFETY: a device of a list that was not freed, and its name is an array in it of which
            // only the elements are read.
            let name = unsafe { (&raw const (***device).dev_name).read() };
            name.iter().take_while(|&&c| c != 0).flat_map(|c| c.to_ne_bytes()).eq(node.bytes())
        };
        let device = *devices.iter().find(is_it)?;
        // SAFETY: as above. The context keeps its own reference to the device.
        let context = NonNull::new(unsafe { ibv_open_device(device) });
        Some(context.map(Context).ok_or_else(io::Error::last_os_error))
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list came from ibv_get_device_list and is freed once.
        unsafe { ibv_free_device_list(self.list.as_ptr()) };
    }
}

struct Context(NonNull<ibv_context>);

impl EventSource for Context {
    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the context is open until it is dropped, and its descriptor with it.
        unsafe { BorrowedFd::borrow_raw((*self.0.as_ptr()).async_fd) }
    }

    /// The number of the port is valid only for events of ports.
    fn next_event(&mut self) -> io::Result<RawEvent> {
        let mut event = MaybeUninit::<ibv_async_event>::zeroed();
        // SAFETY: errno is the thread's own. libibverbs does not set it on a short read, and an old
        // EAGAIN in it would make a short read look like an empty queue.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: an open context, and room for one event.
        if unsafe { ibv_get_async_event(self.0.as_ptr(), event.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let event = event.as_mut_ptr();
        // SAFETY: both fields were zeroed and then written, and any bits make an integer. No
        // reference is made, neither to the enum nor to the event: what has not been checked is
        // never taken for one of its values. The port is the first member of the union.
        let (code, port) = unsafe {
            let code = (&raw const (*event).event_type).cast::<u32>().read();
            let port = (&raw const (*event).element).cast::<c_int>().read();
            (code, port)
        };
        // SAFETY: the event as it came, acknowledged once; an event of a queue carries the queue
        // by which libibverbs finds its count of them.
        unsafe { ibv_ack_async_event(event) };
        Ok(RawEvent { code, port: u8::try_from(port).unwrap_or(0) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context came from ibv_open_device, is closed once and not used again. Nothing
        // was made from it. Its result says nothing that one could act on.
        unsafe { ibv_close_device(self.0.as_ptr()) };
    }
}
