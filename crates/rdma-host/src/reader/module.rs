//! Reads the cable or module of a network interface, page by page: the bus of a module is slow, so each read of the
//! device reads one page only.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::Moment;
use ib_mad::register::Module;

use crate::model::eeprom::{self, FIRST, HALF};

use super::backoff::{Attempt, Backoff};
use super::ethtool::netlink::EthtoolNetlink;
use super::watch;

/// Time from the end of one reading to the start of the next.
const INTERVAL: Duration = Duration::from_secs(60);

/// A reading is dropped when it could not be renewed for this long.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub(super) struct ModuleReader {
    netlink: EthtoolNetlink,
    netdev: Arc<str>,
    /// The pages that were read since the reading began.
    pages: Vec<[u8; HALF]>,
    latest: Option<(Arc<Module>, Moment)>,
    next: Moment,
    /// How often the carrier had changed at the latest read: after a change the module may be another one.
    carrier_changes: Option<u64>,
    backoff: Backoff,
    /// The missing capability was logged.
    has_warned: bool,
}

impl ModuleReader {
    /// Opens a socket. Logs why it cannot.
    pub fn open(netdev: &Arc<str>) -> Option<Self> {
        let opened = EthtoolNetlink::open();
        let netlink = opened.inspect_err(|error| {
            tracing::debug!(netdev = &**netdev, %error, "modules cannot be read");
        });
        Some(ModuleReader {
            netlink: netlink.ok()?,
            netdev: Arc::clone(netdev),
            pages: Vec::new(),
            latest: None,
            next: Moment::default(),
            carrier_changes: None,
            backoff: Backoff::default(),
            has_warned: false,
        })
    }

    /// Reads the next page if it is due. Returns the latest complete reading.
    pub fn read(
        &mut self,
        attempt: Attempt<'_>,
        carrier_changes: Option<u64>,
    ) -> Option<Arc<Module>> {
        let now = attempt.now;
        if self.carrier_changes != carrier_changes {
            self.carrier_changes = carrier_changes;
            self.pages.clear();
            (self.next, self.backoff) = (now, Backoff::default());
        }
        if now >= self.next && self.backoff.is_over(attempt) {
            let outcome = self.read_page(now);
            self.backoff = Backoff::after(attempt, &outcome);
            if let Err(error) = outcome {
                self.pages.clear();
                self.log(&error);
            }
        }
        let is_current = |(_, at): &&(_, Moment)| now.since(*at) < MAX_AGE;
        self.latest.as_ref().filter(is_current).map(|(module, _)| Arc::clone(module))
    }

    fn read_page(&mut self, now: Moment) -> io::Result<()> {
        let further = self.pages.first().map(eeprom::further_pages).unwrap_or_default();
        let page = match self.pages.len().checked_sub(1) {
            None => Some(FIRST),
            Some(index) => further.get(index).copied(),
        };
        if let Some(page) = page {
            let _watched = watch::begin(Path::new("ethtool -m"), &self.netdev)?;
            self.pages.push(self.netlink.module_page(&self.netdev, page)?);
        }
        let Some((first, read)) = self.pages.split_first() else { return Ok(()) };
        if read.len() == eeprom::further_pages(first).len() {
            self.latest = eeprom::decode(first, read).map(|module| (Arc::new(module), now));
            self.pages.clear();
            self.next = now + INTERVAL;
        }
        Ok(())
    }

    fn log(&mut self, error: &io::Error) {
        let netdev = &*self.netdev;
        match error.raw_os_error() {
            Some(libc::EPERM) if !self.has_warned => {
                self.has_warned = true;
                tracing::warn!(
                    netdev,
                    "modules cannot be read without CAP_NET_ADMIN: give the exporter this capability, or unset \
                     --host.modules"
                );
            }
            // No module is plugged, or the driver cannot read it.
            _ => tracing::debug!(netdev, %error, "module cannot be read"),
        }
        // It may have been unplugged.
        self.latest = None;
    }
}
