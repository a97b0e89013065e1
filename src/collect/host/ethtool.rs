//! What a driver counts on its Ethernet port: ETHTOOL_GSTATS, which `ethtool -S` prints.

use std::collections::HashMap;

use ethtool::{Ethtool, EthtoolReadable};

use crate::fabric::host::EthernetValue;
use crate::fabric::host::ethernet::{self, Meaning};

use super::file::Directory;

/// Reads the statistics of an interface whose driver is known.
pub(super) struct EthernetReader {
    /// The socket to ask by; `None` where the driver is none that is known.
    ethtool: Option<Ethtool>,
    driver: String,
    /// What each string means, in the driver's order, found out once: an mlx5 has thousands, most
    /// of them of its queues. Found anew if there is another string at a place.
    meanings: HashMap<String, Option<Meaning>>,
}

impl EthernetReader {
    /// Looks whether an interface has statistics that are known.
    ///
    /// The kernel is asked by the interface's name, in the network namespace that we are in; so the
    /// one that sysfs shows must be the one that has this name here, which its index tells.
    pub(super) fn open(directory: &Directory, name: &str) -> Self {
        let driver = directory.link("device/driver").unwrap_or_default();
        let known = ethernet::knows(&driver) && is_ours(directory, name);
        let ethtool = if known { Ethtool::new(name).ok() } else { None };
        EthernetReader { ethtool, driver, meanings: HashMap::new() }
    }

    /// Reads them; none if the driver refuses.
    pub(super) fn read(&mut self) -> Vec<EthernetValue> {
        let Some(ethtool) = &self.ethtool else { return Vec::new() };
        let statistics = ethtool.stats().unwrap_or_default();
        let mut values = Vec::new();
        for (name, value) in statistics {
            let driver = &self.driver;
            let meaning = self
                .meanings
                .entry(name)
                .or_insert_with_key(|name| ethernet::meaning(driver, name));
            if let Some(Meaning { row, index }) = *meaning {
                values.push(EthernetValue { row, index, value });
            }
        }
        values
    }
}

impl std::fmt::Debug for EthernetReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EthernetReader").field("driver", &self.driver).finish_non_exhaustive()
    }
}

fn is_ours(directory: &Directory, name: &str) -> bool {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let index = directory.text("ifindex").parse().ok();
    let here = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .and_then(|socket| netdevice::name_to_index(socket, name))
        .ok();
    index.is_some() && index == here
}
