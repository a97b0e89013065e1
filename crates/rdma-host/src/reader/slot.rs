//! A device that is read: where its reader is, and whether the device is slow or hangs.
//!
//! A device whose reads take long is read in the background: a read is started at one call of
//! [`HostReader::read`](super::HostReader), and its values are published at the next one, with the time at which they
//! were read. If one file blocks, its thread is left to it, and the other files are read by another reader.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::Device;
use ib_mad::Moment;

use super::access::CounterAccess;
use super::device::DeviceReader;
use super::failures::FailureLog;
use super::options::ReadContext;
use super::sysfs;
use super::time::Time;
use super::watch::FileWatch;

/// A read that takes this long makes a device slow, so that no other one waits for it. It takes milliseconds otherwise.
const SLOW: Duration = Duration::from_secs(1);
/// So many reads in sequence in half that time end it.
const QUICK_READS: u8 = 10;

/// How long a read may take before the device counts as hanging, and how much longer for each port: one of mlx5 has
/// some 60 files, and busy firmware takes 80 ms for each. A switchdev device has a port for each function, up to
/// hundreds.
const HANGS: Duration = Duration::from_secs(10);
const HANGS_PER_PORT: Duration = Duration::from_secs(5);

/// How many threads may be stuck in reads of a device's files. With as many the device counts as hanging.
const MAX_BLOCKED: usize = 3;

/// A device; see the module.
#[derive(Debug)]
pub(super) struct Slot {
    /// The device without its ports and counters, as it was last read.
    pub device: Device,
    access: Arc<CounterAccess>,
    /// While no read is running.
    reader: Option<DeviceReader>,
    running: Option<Running>,
    /// The files whose reads have not returned, each with the watch of the reader that was left to it.
    blocked: Vec<(Arc<FileWatch>, PathBuf)>,
    /// What the last read gave, with its time; nothing once the device hangs.
    latest: Option<Device>,
    pace: Pace,
    is_hanging: bool,
    /// The reader must read all that it has cached, once it is back.
    must_refresh: bool,
    failures: FailureLog,
}

/// How long its reads take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Quick,
    /// It was slow, and has been read quickly so many times since.
    Slow(u8),
}

#[derive(Debug)]
struct Running {
    watch: Arc<FileWatch>,
    began: Moment,
    ports: usize,
}

impl Slot {
    pub fn open(sysfs: &Path, name: &str, time: &Time) -> io::Result<Self> {
        let access = Arc::default();
        let watch = FileWatch::new(time.clone());
        let reader = DeviceReader::open(sysfs, name, watch, Arc::clone(&access))?;
        Ok(Slot {
            device: reader.device.clone(),
            access,
            reader: Some(reader),
            running: None,
            blocked: Vec::new(),
            latest: None,
            pace: Pace::Quick,
            is_hanging: false,
            must_refresh: false,
            failures: FailureLog::default(),
        })
    }

    /// Whether its device is the one of this path: not renamed, nor removed and made again.
    pub fn is_at(&self, path: &Path) -> bool {
        sysfs::inode(path).is_ok_and(|inode| Some(inode) == self.device.instance)
    }

    /// Whether the other devices should not wait for it.
    pub fn is_background(&self) -> bool {
        self.pace != Pace::Quick
            || self.reader.as_ref().is_some_and(|reader| reader.watch.tries_again())
    }

    /// Whether it has nothing to publish.
    pub fn is_unread(&self) -> bool {
        self.latest.is_none()
    }

    /// Begins a read, if none is running and not too many are stuck.
    pub fn start(&mut self, now: Moment) -> Option<DeviceReader> {
        if self.blocked.len() >= MAX_BLOCKED {
            return None;
        }
        let reader = self.reader.take()?;
        let watch = Arc::clone(&reader.watch);
        self.running = Some(Running { watch, began: now, ports: reader.port_count() });
        Some(reader)
    }

    /// Takes back a reader that could not be started.
    pub fn put_back(&mut self, reader: DeviceReader) {
        (self.running, self.reader) = (None, Some(reader));
    }

    /// Whether the read with this watch is that of the values to publish next.
    pub fn is_running(&self, watch: &Arc<FileWatch>) -> bool {
        self.running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.watch, watch))
    }

    /// The blocked read with this watch has returned, if it is one of this device's.
    pub fn release(&mut self, watch: &Arc<FileWatch>, context: &ReadContext) -> bool {
        let Some(index) = self.blocked.iter().position(|(of, _)| Arc::ptr_eq(of, watch)) else {
            return false;
        };
        let (_, path) = self.blocked.swap_remove(index);
        let until = context.time.now() + context.options.error_backoff;
        let reader = self.reader.iter().map(|reader| &reader.watch);
        let watches = reader.chain(self.running.iter().map(|running| &running.watch));
        watches.for_each(|watch| watch.release(&path, until));
        true
    }

    /// Takes the result of its read.
    pub fn complete(&mut self, mut reader: DeviceReader, device: Device, context: &ReadContext) {
        let (name, duration) = (&*device.name, reader.watch.last_duration());
        if self.is_hanging {
            tracing::info!(device = name, took = ?duration, "device responds again");
            self.is_hanging = false;
        }
        if duration >= SLOW {
            self.set_slow(duration);
        } else if let Pace::Slow(quick_reads) = &mut self.pace {
            *quick_reads = if duration < SLOW / 2 { *quick_reads + 1 } else { 0 };
            if *quick_reads >= QUICK_READS {
                tracing::info!(device = name, took = ?duration, "device is no longer slow");
                self.pace = Pace::Quick;
            }
        }
        if self.access.must_log_refusal() {
            tracing::warn!(
                device = name,
                "device refuses to read its counters (Invalid argument): they are not read again, for each such read \
                 floods the kernel log. If it is the bridge of an NVSwitch, exclude it with --host.device-exclude"
            );
        }
        if device.unreadable_files > 0
            && let Some(files) = self.failures.add(reader.failing_files(), context.time.now())
        {
            let backoff = context.options.error_backoff;
            tracing::warn!(
                device = name,
                files,
                ?backoff,
                "files of the device cannot be read: tried again after the backoff"
            );
        }
        if std::mem::take(&mut self.must_refresh) {
            reader.refresh();
        }
        let identity = reader.device.clone();
        self.device = Device { kind: device.kind, ..identity };
        (self.running, self.reader) = (None, Some(reader));
        self.latest = Some(device);
    }

    fn set_slow(&mut self, duration: Duration) {
        if self.pace == Pace::Quick {
            tracing::warn!(
                device = &*self.device.name,
                took = ?duration,
                "device is slow: it is read in the background, and its values are published one read later"
            );
        }
        self.pace = Pace::Slow(0);
    }

    /// If a file blocks the read that is running, leaves the file to it, and returns a reader of the others.
    pub fn replace_blocked(&mut self, sysfs: &Path) -> Option<()> {
        let running = self.running.as_ref()?;
        let path = running.watch.blocked_file()?;
        let watch = Arc::clone(&running.watch);
        watch.abandon();
        tracing::debug!(device = &*self.device.name, path = %path.display(), "read of a file hangs");
        let successor = watch.successor(&path);
        self.running = None;
        self.blocked.push((watch, path));
        let name = &*self.device.name;
        let reader = DeviceReader::open(sysfs, name, successor, Arc::clone(&self.access));
        // Without one the device has just been removed, or cannot be opened; that is found out at the next read.
        let mut reader = reader.ok()?;
        if reader.device.instance != self.device.instance {
            return None;
        }
        reader.device = self.device.clone();
        self.reader = Some(reader);
        Some(())
    }

    /// Does not wait for the read that is running, nor for the next ones.
    pub fn leave_to_background(&mut self, now: Moment) {
        if let Some(running) = &self.running {
            self.set_slow(now.since(running.began));
        }
    }

    /// Lets the next read read all that is cached.
    pub fn refresh(&mut self) {
        match &mut self.reader {
            Some(reader) => reader.refresh(),
            None => self.must_refresh = true,
        }
    }

    /// Whether no reader of it is left, so that it has to be opened again.
    pub fn is_lost(&self) -> bool {
        self.reader.is_none() && self.running.is_none()
    }

    /// What to publish of it now.
    pub fn publish(&mut self, now: Moment) -> Device {
        if !self.is_hanging && self.hangs(now) {
            self.is_hanging = true;
            let files: Vec<_> =
                self.blocked.iter().map(|(_, path)| path.display().to_string()).collect();
            tracing::warn!(
                device = &*self.device.name,
                ?files,
                "device hangs: not read until it responds"
            );
        }
        if self.is_hanging {
            self.latest = None;
        }
        // Kept, for the next read may be late.
        self.latest.clone().unwrap_or_else(|| Device { is_readable: false, ..self.device.clone() })
    }

    fn hangs(&self, now: Moment) -> bool {
        let takes_too_long = |running: &Running| {
            now.since(running.began) >= HANGS + HANGS_PER_PORT * running.ports as u32
        };
        self.blocked.len() >= MAX_BLOCKED || self.running.as_ref().is_some_and(takes_too_long)
    }
}

#[cfg(test)]
impl Slot {
    pub fn blocked_reads(&self) -> usize {
        self.blocked.len()
    }

    pub fn forget_version(&mut self) {
        self.reader.iter_mut().for_each(DeviceReader::forget_version);
    }
}
