//! How devices are read.

use std::sync::Arc;
use std::time::Duration;

use super::backoff::Attempt;
use super::kept::Allowance;
use super::kernel_devices::KernelDevices;
use super::time::Time;

/// How to read devices.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// How long a file is not read again after a read that failed.
    pub error_backoff: Duration,
    /// Whether to read the statistics of Ethernet drivers.
    pub ethtool: bool,
    /// Whether to read the connection manager's counters.
    pub cm: bool,
    /// Whether to read the modules of Ethernet ports, which requires CAP_NET_ADMIN.
    pub modules: bool,
}

/// The options of a reader, with its time and the files that it may keep open.
#[derive(Clone, Debug)]
pub(super) struct ReadContext {
    pub time: Time,
    pub options: ReadOptions,
    pub files: Arc<Allowance>,
    pub kernel: Arc<KernelDevices>,
}

impl ReadContext {
    /// For reads that begin now.
    pub fn attempt(&self) -> Attempt<'_> {
        let error_backoff = self.options.error_backoff;
        Attempt { now: self.time.now(), error_backoff, files: &self.files }
    }
}
