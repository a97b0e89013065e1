//! P_Key indexes of the local port, by which the kernel selects the partition.
//!
//! The subnet manager writes the P_Key table and may move keys when partitions change. By an old index requests would
//! go out in another partition, and each port that they reach may count a violation, so indexes are checked before each
//! sweep, from sysfs: `class/infiniband/<hca>/ports/<port>/pkeys/<index>`. While the one file has the key, no other is
//! read: each may cost a firmware command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ib_mad::p_key::PKey;

use super::device::{self, UmadPort};
use super::error::DeviceError;
use super::header::HeaderFormat;
use super::sys;

/// More entries than any P_Key table has: devices have at most 128.
const MAX_ENTRIES: u16 = 4096;

#[derive(Debug)]
pub(super) struct Partitions {
    port: UmadPort,
    directory: PathBuf,
    /// The P_Key of `--fabric.pkey`.
    wanted: Option<PKey>,
    /// Its index; `None` if it is not in the table.
    index: Option<u16>,
    /// The header format has a field for the index.
    has_field: bool,
    /// Indexes of the P_Keys of redirects.
    redirects: HashMap<PKey, Option<u16>>,
}

/// The entry of the P_Key table with this index, if it is valid.
fn entry(directory: &Path, index: u16) -> Option<PKey> {
    sys::read_text(&directory.join(index.to_string())).ok()?.trim().parse().ok()
}

/// The P_Key table: index and key of each valid entry, read lazily.
fn table(directory: &Path) -> impl Iterator<Item = (u16, PKey)> {
    let text = move |index: u16| sys::read_text(&directory.join(index.to_string())).ok();
    (0..MAX_ENTRIES)
        .map_while(move |index| text(index).map(|text| (index, text)))
        .filter_map(|(index, text)| Some((index, text.trim().parse().ok()?)))
}

impl Partitions {
    /// The indexes of a port, for requests with the wanted P_Key; index 0 without one.
    pub(super) fn new(
        sysfs: &Path,
        port: &UmadPort,
        wanted: Option<PKey>,
        header: HeaderFormat,
    ) -> Result<Self, DeviceError> {
        let mut partitions = Partitions {
            directory: device::directory(sysfs, &port.hca, port.port).join("pkeys"),
            port: port.clone(),
            wanted,
            index: Some(0),
            has_field: header == HeaderFormat::Long,
            redirects: HashMap::new(),
        };
        let Some(requested) = wanted else { return Ok(partitions) };
        let (hca, number) = (port.hca.clone(), port.port);
        let Some((index, key)) = requested.find_in(table(&partitions.directory)) else {
            let known = partitions.known();
            return Err(DeviceError::UnknownPKey { hca, port: number, requested, known });
        };
        if index != 0 && !partitions.has_field {
            return Err(DeviceError::NoPKeyIndex { requested, index });
        }
        if !key.is_full() {
            tracing::warn!(
                hca, port = number, p_key = %key,
                "limited P_Key membership: hosts that are limited members, too, drop requests of this port; make \
                 it a full member in the subnet manager's partitions.conf"
            );
        }
        tracing::debug!(hca, port = number, p_key = %key, index, "P_Key selected");
        partitions.index = Some(index);
        Ok(partitions)
    }

    fn known(&self) -> String {
        let keys: Vec<String> = table(&self.directory).map(|(_, key)| key.to_string()).collect();
        if keys.is_empty() { "none".into() } else { keys.join(", ") }
    }

    /// Finds P_Keys again that are not where they were.
    pub(super) fn refresh(&mut self) {
        self.refresh_redirects();
        let Some(wanted) = self.wanted else { return };
        if self.index.is_some_and(|index| entry(&self.directory, index) == Some(wanted)) {
            return;
        }
        let entry = wanted.find_in(table(&self.directory)).map(|(index, _)| index);
        let found = self.usable(entry);
        if found == self.index {
            return;
        }
        let (hca, port) = (&self.port.hca, self.port.port);
        if let (None, Some(index)) = (found, entry) {
            tracing::error!(
                hca, port, p_key = %wanted, index,
                "P_Key index changed, and this kernel can only send with index 0: no counters can be read until \
                 the subnet manager moves it to index 0"
            );
        } else if let Some(index) = found {
            tracing::info!(hca, port, p_key = %wanted, index, "P_Key index changed");
        } else {
            let known = self.known();
            tracing::error!(
                hca, port, p_key = %wanted, known,
                "P_Key removed from the port's table: no counters can be read until the subnet manager adds it \
                 again"
            );
        }
        self.index = found;
    }

    fn refresh_redirects(&mut self) {
        let directory = &self.directory;
        for (key, index) in &mut self.redirects {
            if index.is_none_or(|index| entry(directory, index) != Some(*key)) {
                *index = key.find_in(table(directory)).map(|(index, _)| index);
            }
        }
    }

    /// The index, if the header can carry it: without the field the kernel uses index 0.
    fn usable(&self, index: Option<u16>) -> Option<u16> {
        index.filter(|index| *index == 0 || self.has_field)
    }

    /// Whether the wanted P_Key is usable; without one, index 0 is used whatever it holds.
    pub(super) fn has_wanted(&self) -> bool {
        self.index.is_some()
    }

    /// The P_Key index of a request: of its redirect, else of the wanted P_Key.
    pub(super) fn index(&mut self, redirect: Option<PKey>) -> Option<u16> {
        let Some(key) = redirect else { return self.index };
        let (directory, port) = (&self.directory, &self.port);
        let index = *self.redirects.entry(key).or_insert_with(|| {
            let found = key.find_in(table(directory)).map(|(index, _)| index);
            if found.is_none() {
                tracing::warn!(
                    hca = port.hca, port = port.port, p_key = %key,
                    "redirect unusable: an agent redirects requests to a P_Key that this port does not have; this \
                     agent cannot be queried"
                );
            }
            found
        });
        self.usable(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> UmadPort {
        UmadPort {
            hca: "mlx5_0".into(),
            port: 1,
            device: "/dev/infiniband/umad0".into(),
            link_layer: None,
            state: None,
            physical_state: None,
        }
    }

    fn write(sysfs: &Path, keys: &[&str]) {
        let directory = sysfs.join("class/infiniband/mlx5_0/ports/1/pkeys");
        std::fs::create_dir_all(&directory).unwrap();
        for (index, key) in keys.iter().enumerate() {
            std::fs::write(directory.join(index.to_string()), format!("{key}\n")).unwrap();
        }
    }

    fn p_key(text: &str) -> PKey {
        text.parse().unwrap()
    }

    fn opened(
        sysfs: &Path,
        wanted: Option<PKey>,
        header: HeaderFormat,
    ) -> Result<Partitions, String> {
        Partitions::new(sysfs, &port(), wanted, header).map_err(|error| error.to_string())
    }

    #[test]
    fn p_key_index_follows_table() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x0000", "0x8001", "0x0002"]);
        assert_eq!(opened(sysfs.path(), None, HeaderFormat::Long).unwrap().index(None), Some(0));
        let mut partitions =
            opened(sysfs.path(), Some(p_key("0x8001")), HeaderFormat::Long).unwrap();
        assert_eq!(partitions.index(None), Some(2));
        // The subnet manager moves it, removes it, and adds it again.
        for (keys, index) in [
            (["0xffff", "0x8001", "0x0000", "0x0002"], Some(1)),
            (["0xffff", "0x0000", "0x0000", "0x0002"], None),
            (["0xffff", "0x0000", "0x0000", "0x8001"], Some(3)),
        ] {
            write(sysfs.path(), &keys);
            partitions.refresh();
            assert_eq!(partitions.index(None), index, "{keys:?}");
            assert_eq!(partitions.has_wanted(), index.is_some(), "{keys:?}");
        }
    }

    #[test]
    fn p_key_that_stays_costs_one_file() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x0000", "0x8001"]);
        let mut partitions =
            opened(sysfs.path(), Some(p_key("0x8001")), HeaderFormat::Long).unwrap();
        // A table that is read from its first entry on would have it there.
        write(sysfs.path(), &["0x8001", "0x0000", "0x8001"]);
        partitions.refresh();
        assert_eq!(partitions.index(None), Some(2));
        write(sysfs.path(), &["0x8001", "0x0000", "0xffff"]);
        partitions.refresh();
        assert_eq!(partitions.index(None), Some(0));
    }

    #[test]
    fn short_header_sends_only_with_p_key_index_0() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0x8001", "0xffff"]);
        let mut partitions =
            opened(sysfs.path(), Some(p_key("0x8001")), HeaderFormat::Short).unwrap();
        assert_eq!(partitions.index(None), Some(0));
        for (keys, index) in [(["0xffff", "0x8001"], None), (["0x8001", "0xffff"], Some(0))] {
            write(sysfs.path(), &keys);
            partitions.refresh();
            assert_eq!(partitions.index(None), index, "{keys:?}");
        }
    }

    #[test]
    fn redirect_p_key_index_or_none() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x0002", "0x8003"]);
        let mut partitions = opened(sysfs.path(), None, HeaderFormat::Long).unwrap();
        for (redirect, index) in [("0xffff", 0), ("0x8003", 2), ("0x8002", 1), ("0x7fff", 0)] {
            assert_eq!(partitions.index(Some(p_key(redirect))), Some(index), "{redirect}");
        }
        assert_eq!(partitions.index(Some(p_key("0x8009"))), None);
        write(sysfs.path(), &["0xffff", "0x0002", "0x8009"]);
        assert_eq!(partitions.index(Some(p_key("0x8009"))), None, "the table is cached");
        partitions.refresh();
        assert_eq!(partitions.index(Some(p_key("0x8009"))), Some(2));
        let mut short = opened(sysfs.path(), None, HeaderFormat::Short).unwrap();
        assert_eq!(
            (short.index(Some(p_key("0xffff"))), short.index(Some(p_key("0x8009")))),
            (Some(0), None)
        );
    }

    #[test]
    fn unusable_p_key_error_names_remedy() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x8001"]);
        let error = opened(sysfs.path(), Some(p_key("0x8002")), HeaderFormat::Long).unwrap_err();
        for part in
            ["mlx5_0 port 1", "0x8002", "0xffff, 0x8001", "--fabric.pkey", "partitions.conf"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = opened(sysfs.path(), Some(p_key("0x8001")), HeaderFormat::Short).unwrap_err();
        assert!(error.contains("index 1") && error.contains("--fabric.pkey"), "{error}");
        assert!(
            opened(sysfs.path(), Some(p_key("0xffff")), HeaderFormat::Short).is_ok(),
            "index 0 needs no field"
        );
        let nothing = tempfile::tempdir().unwrap();
        let error = opened(nothing.path(), Some(p_key("0xffff")), HeaderFormat::Long).unwrap_err();
        assert!(error.contains("its table has none"), "{error}");
    }
}
