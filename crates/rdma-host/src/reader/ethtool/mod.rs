//! What a driver counts on its Ethernet port: ETHTOOL_GSTATS, which `ethtool -S` prints.

mod sys;

use std::io;

use crate::model::EthernetValue;
use crate::model::ethernet;
use crate::model::ethernet::Meaning;

use super::asked::{Asking, LeftAlone};
use super::file::Directory;
use sys::Socket;

pub use sys::each as strings;

/// Reads the statistics of an interface whose driver is known.
#[derive(Debug)]
pub(super) struct EthernetReader {
    /// What to ask by; `None` where the driver is none that is known.
    socket: Option<Socket>,
    name: String,
    statistics: Statistics,
    left_alone: LeftAlone,
}

/// The statistics of a driver.
#[derive(Debug)]
struct Statistics {
    driver: String,
    /// A sum over the strings whose meanings are known.
    strings: Option<u32>,
    /// What each means, in the driver's order, found out once: an mlx5 has thousands, most of them
    /// of its queues.
    meanings: Vec<Option<Meaning>>,
    /// Those of the last look.
    values: Vec<u64>,
}

impl EthernetReader {
    /// Looks whether an interface has statistics that are known.
    ///
    /// The kernel is asked by the interface's name, in the network namespace that we are in; so the
    /// one that sysfs shows must be the one that has this name here, which its index tells.
    pub(super) fn open(directory: &Directory, name: &str) -> Self {
        let driver = directory.link("device/driver").unwrap_or_default();
        let socket = if ethernet::knows(&driver) { Socket::open().ok() } else { None };
        EthernetReader {
            socket: socket.filter(|socket| is_ours(socket, directory, name)),
            name: name.to_owned(),
            statistics: Statistics {
                driver,
                strings: None,
                meanings: Vec::new(),
                values: Vec::new(),
            },
            left_alone: LeftAlone::default(),
        }
    }

    /// Reads them; none if the driver refuses, and for a while after.
    pub(super) fn read(&mut self, asking: Asking) -> Vec<EthernetValue> {
        let Some(socket) = &self.socket else { return Vec::new() };
        if !self.left_alone.may_be_asked(asking) {
            return Vec::new();
        }
        let read = self.statistics.read(socket, &self.name);
        self.left_alone = match &read {
            Ok(_) => LeftAlone::default(),
            Err(_) => LeftAlone::after(asking),
        };
        read.unwrap_or_else(|error| {
            tracing::debug!(netdev = self.name, %error, "the interface tells no statistics");
            Vec::new()
        })
    }
}

impl Statistics {
    fn read(&mut self, socket: &Socket, name: &str) -> io::Result<Vec<EthernetValue>> {
        socket.statistics(name, &mut self.values)?;
        // As many strings may be others: channels come and go, and mlx5 has PFC's only of priorities
        // where it is on (mlx5/core/en_stats.c), so that one may take another's place.
        let strings = socket.strings(name)?;
        let sum = Some(crc32fast::hash(&strings));
        if self.strings != sum {
            let meaning = |string: String| ethernet::meaning(&self.driver, &string);
            self.meanings = sys::each(&strings).map(meaning).collect();
            self.strings = sum;
        }
        if self.values.len() != self.meanings.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a string for each"));
        }
        Ok(told(&self.meanings, &self.values))
    }
}

/// The values that mean something.
fn told(meanings: &[Option<Meaning>], values: &[u64]) -> Vec<EthernetValue> {
    let value = |(meaning, &value): (&Option<Meaning>, &u64)| {
        meaning.map(|Meaning { row, index }| EthernetValue { row, index, value })
    };
    meanings.iter().zip(values).filter_map(value).collect()
}

fn is_ours(socket: &Socket, directory: &Directory, name: &str) -> bool {
    let index: Option<u32> = directory.text("ifindex").parse().ok();
    index.is_some() && index == socket.index(name).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ib_mad::Moment;

    #[test]
    fn values_are_told_by_the_place_of_their_string() {
        let meanings = [None, Some(Meaning { row: 4, index: Some(3) }), None];
        let value = EthernetValue { row: 4, index: Some(3), value: 20 };
        assert_eq!(told(&meanings, &[10, 20, 30]), [value]);
    }

    #[test]
    fn one_that_refused_is_left_alone() {
        let mut reader = EthernetReader {
            socket: Some(Socket::open().unwrap()),
            name: "lo".to_owned(),
            statistics: Statistics {
                driver: "mlx5_core".to_owned(),
                strings: None,
                meanings: Vec::new(),
                values: Vec::new(),
            },
            left_alone: LeftAlone::default(),
        };
        let at = |seconds| Moment::default() + Duration::from_secs(seconds);
        let mut look = |seconds| {
            let read = reader.read(Asking { now: at(seconds), rest: Duration::from_secs(60) });
            assert!(read.is_empty(), "{read:?}");
            reader.left_alone.until
        };
        assert_eq!(look(0), Some(at(60)));
        assert_eq!(look(59), Some(at(60)), "it was not asked");
        assert_eq!(look(60), Some(at(120)), "it was");
    }
}
