//! Reads the statistics of an Ethernet driver: ETHTOOL_GSTATS, which `ethtool -S` prints; and modules by netlink.

pub(crate) mod netlink;
mod sys;

use std::io;
use std::path::Path;

use crate::model::EthernetValue;
use crate::model::ethernet::{self, StatId};

use super::backoff::{Attempt, Backoff};
use super::sysfs::Directory;
use super::watch;
use sys::Socket;

pub use sys::split_strings;

/// Reads the statistics of an interface whose driver is known.
#[derive(Debug)]
pub(super) struct EthernetReader {
    socket: Socket,
    name: String,
    driver: String,
    /// The CRC-32 of the strings that `ids` belong to.
    strings_crc: Option<u32>,
    /// The row of each statistic, in the driver's order, found once: an mlx5 has thousands of them, most of
    /// its queues.
    ids: Vec<Option<StatId>>,
    backoff: Backoff,
}

impl EthernetReader {
    /// Opens the statistics of an interface, if its driver is in the [table](ethernet).
    ///
    /// The ioctl takes the name of an interface in the network namespace of this process, which need not be
    /// that of the sysfs; so the index of the interface must be the same in both.
    pub(super) fn open(directory: &Directory, name: &str) -> Option<Self> {
        let driver = directory.link_target("device/driver").filter(|it| ethernet::is_known(it))?;
        let index: u32 = directory.text("ifindex").parse().ok()?;
        let socket = Socket::open().ok()?;
        let is_same = socket.index(name).is_ok_and(|here| here == index);
        is_same.then(|| EthernetReader {
            socket,
            name: name.to_owned(),
            driver,
            strings_crc: None,
            ids: Vec::new(),
            backoff: Backoff::default(),
        })
    }

    /// Reads the statistics that are in the table; none if the read fails, and until its backoff is over.
    pub(super) fn read(&mut self, attempt: Attempt<'_>) -> Vec<EthernetValue> {
        if !self.backoff.is_over(attempt) {
            return Vec::new();
        }
        let values = self.try_read().inspect_err(|error| {
            tracing::debug!(netdev = self.name, %error, "interface statistics cannot be read");
        });
        self.backoff = Backoff::after(attempt, &values);
        values.unwrap_or_default()
    }

    fn try_read(&mut self) -> io::Result<Vec<EthernetValue>> {
        let _watched = watch::begin(Path::new("ethtool -S"), &self.name)?;
        let values = self.socket.statistics(&self.name)?;
        // The strings may change while their number stays: channels come and go, and mlx5 has statistics of
        // PFC only for priorities where it is enabled (mlx5/core/en_stats.c).
        let strings = self.socket.strings(&self.name)?;
        let crc = Some(crc32fast::hash(&strings));
        if self.strings_crc != crc {
            let find = |string: String| ethernet::find(&self.driver, &string);
            self.ids = split_strings(&strings).map(find).collect();
            self.strings_crc = crc;
        }
        if values.len() != self.ids.len() {
            let problem = "the number of strings does not match";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Ok(known_values(&self.ids, &values))
    }
}

fn known_values(ids: &[Option<StatId>], values: &[u64]) -> Vec<EthernetValue> {
    let pairs = ids.iter().zip(values);
    pairs.filter_map(|(id, &value)| Some(EthernetValue { stat: (*id)?, value })).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reader::kept::Allowance;
    use ib_mad::Moment;

    #[test]
    fn values_belong_to_strings_of_same_index() {
        let stat = StatId { row: 4, index: Some(3) };
        let ids = [None, Some(stat), None];
        let value = EthernetValue { stat, value: 20 };
        assert_eq!(known_values(&ids, &[10, 20, 30]), [value]);
    }

    #[test]
    fn failed_read_backs_off() {
        let mut reader = EthernetReader {
            socket: Socket::open().unwrap(),
            name: "lo".to_owned(),
            driver: "mlx5_core".to_owned(),
            strings_crc: None,
            ids: Vec::new(),
            backoff: Backoff::default(),
        };
        let at = |seconds| Moment::default() + Duration::from_secs(seconds);
        let mut read_at = |seconds| {
            let (error_backoff, files) = (Duration::from_secs(60), &Allowance::new(0));
            let attempt = Attempt { now: at(seconds), error_backoff, files };
            let read = reader.read(attempt);
            assert!(read.is_empty(), "{read:?}");
            reader.backoff.until
        };
        assert_eq!(read_at(0), Some(at(60)));
        assert_eq!(read_at(59), Some(at(60)), "it was not read");
        assert_eq!(read_at(60), Some(at(120)), "it was read");
    }
}
