//! The place of a P_Key in our own port's table: what the kernel wants to know of a partition.
//!
//! The subnet manager writes the table, and may give keys other places when partitions change; so
//! places are looked up again at each discovery. It is read from sysfs,
//! `class/infiniband/<hca>/ports/<port>/pkeys/<index>`, one file a place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ib_mad::p_key::PKey;

use super::device::{DeviceError, UmadPort};
use super::{Header, sys};

/// More places than any port has: devices have 128 at the most.
const MOST_PLACES: u16 = 4096;

/// The partitions of a port, as far as requests need them.
#[derive(Debug)]
pub(super) struct Partitions {
    port: UmadPort,
    directory: PathBuf,
    /// What `--fabric.pkey` names.
    wanted: Option<PKey>,
    /// Its place; `None` where the table does not have it.
    index: Option<u16>,
    /// The form of the header has a field for it.
    has_field: bool,
    /// Places of other keys, which redirects name.
    others: HashMap<PKey, Option<u16>>,
}

/// The table, place after place, as it is read.
fn table(directory: &Path) -> impl Iterator<Item = (u16, PKey)> {
    let text = move |index: u16| sys::read_text(&directory.join(index.to_string())).ok();
    (0..MOST_PLACES)
        .map_while(move |index| text(index).map(|text| (index, text)))
        .filter_map(|(index, text)| Some((index, text.trim().parse().ok()?)))
}

impl Partitions {
    /// Those of a port, to ask in the wanted one; place 0 if none is named.
    pub(super) fn of(
        sysfs: &Path,
        port: &UmadPort,
        wanted: Option<PKey>,
        header: Header,
    ) -> Result<Self, DeviceError> {
        let about = sysfs.join("class/infiniband").join(&port.hca).join("ports");
        let mut partitions = Partitions {
            directory: about.join(port.port.to_string()).join("pkeys"),
            port: port.clone(),
            wanted,
            index: Some(0),
            has_field: header == Header::Long,
            others: HashMap::new(),
        };
        let Some(asked) = wanted else { return Ok(partitions) };
        let (hca, number) = (port.hca.clone(), port.port);
        let Some((index, key)) = asked.place_in(table(&partitions.directory)) else {
            let known = partitions.known();
            return Err(DeviceError::UnknownPKey { hca, port: number, asked, known });
        };
        if index != 0 && !partitions.has_field {
            return Err(DeviceError::NoPKeyIndex { asked, index });
        }
        if !key.is_full() {
            tracing::warn!(
                hca,
                port = number,
                p_key = %key,
                "this port is a limited member of the partition of --fabric.pkey: hosts that are limited members as \
                 well drop its requests; make it a full member in the subnet manager's partitions.conf"
            );
        }
        tracing::debug!(hca, port = number, p_key = %key, index, "asking in this partition");
        partitions.index = Some(index);
        Ok(partitions)
    }

    fn known(&self) -> String {
        let keys: Vec<String> = table(&self.directory).map(|(_, key)| key.to_string()).collect();
        if keys.is_empty() { "none".into() } else { keys.join(", ") }
    }

    /// Forgets places, and looks the wanted key up again.
    pub(super) fn look_again(&mut self) {
        self.others.clear();
        let Some(wanted) = self.wanted else { return };
        let place = wanted.place_in(table(&self.directory)).map(|(index, _)| index);
        let found = self.usable(place);
        if found == self.index {
            return;
        }
        let (hca, port) = (&self.port.hca, self.port.port);
        if let (None, Some(index)) = (found, place) {
            tracing::error!(
                hca,
                port,
                p_key = %wanted,
                index,
                "the P_Key of --fabric.pkey has another place in the table, and this kernel can only send \
                 with the P_Key at index 0: no counters can be asked for until the subnet manager puts it there"
            );
        } else if let Some(index) = found {
            tracing::info!(
                hca,
                port,
                p_key = %wanted,
                index,
                "the P_Key has another place in the table"
            );
        } else {
            let known = self.known();
            tracing::error!(
                hca,
                port,
                p_key = %wanted,
                known,
                "the P_Key of --fabric.pkey is no longer in the port's table: no counters can be asked \
                 for until the subnet manager gives it back"
            );
        }
        self.index = found;
    }

    /// The place, if the header can name it: without the field the kernel takes index 0.
    fn usable(&self, index: Option<u16>) -> Option<u16> {
        index.filter(|index| *index == 0 || self.has_field)
    }

    /// Whether the wanted key can be sent with; without one, index 0 is used whatever it holds.
    pub(super) fn has_wanted(&self) -> bool {
        self.index.is_some()
    }

    /// The place of the key to send a request with: that of a redirect, else the wanted one.
    pub(super) fn index(&mut self, redirect: Option<PKey>) -> Option<u16> {
        let Some(key) = redirect else { return self.index };
        let (directory, port) = (&self.directory, &self.port);
        let index = *self.others.entry(key).or_insert_with(|| {
            let found = key.place_in(table(directory)).map(|(index, _)| index);
            if found.is_none() {
                tracing::warn!(
                    hca = port.hca,
                    port = port.port,
                    p_key = %key,
                    "an agent redirects into a partition that this port is no member of: it is not asked"
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

    fn opened(sysfs: &Path, wanted: Option<PKey>, header: Header) -> Result<Partitions, String> {
        Partitions::of(sysfs, &port(), wanted, header).map_err(|error| error.to_string())
    }

    #[test]
    fn the_place_of_a_p_key_follows_the_table() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x0000", "0x8001", "0x0002"]);
        assert_eq!(opened(sysfs.path(), None, Header::Long).unwrap().index(None), Some(0));
        let mut partitions = opened(sysfs.path(), Some(p_key("0x8001")), Header::Long).unwrap();
        assert_eq!(partitions.index(None), Some(2));
        // The subnet manager puts it elsewhere, takes it away, and gives it back.
        for (keys, place) in [
            (["0xffff", "0x8001", "0x0000", "0x0002"], Some(1)),
            (["0xffff", "0x0000", "0x0000", "0x0002"], None),
            (["0xffff", "0x0000", "0x0000", "0x8001"], Some(3)),
        ] {
            write(sysfs.path(), &keys);
            partitions.look_again();
            assert_eq!(partitions.index(None), place, "{keys:?}");
            assert_eq!(partitions.has_wanted(), place.is_some(), "{keys:?}");
        }
    }

    #[test]
    fn a_short_header_never_sends_with_another_p_key_than_the_wanted_one() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0x8001", "0xffff"]);
        let mut partitions = opened(sysfs.path(), Some(p_key("0x8001")), Header::Short).unwrap();
        assert_eq!(partitions.index(None), Some(0));
        for (keys, place) in [(["0xffff", "0x8001"], None), (["0x8001", "0xffff"], Some(0))] {
            write(sysfs.path(), &keys);
            partitions.look_again();
            assert_eq!(partitions.index(None), place, "{keys:?}");
        }
    }

    #[test]
    fn a_redirect_is_asked_in_its_own_partition_or_not_at_all() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x0002", "0x8003"]);
        let mut partitions = opened(sysfs.path(), None, Header::Long).unwrap();
        for (redirect, place) in [("0xffff", 0), ("0x8003", 2), ("0x8002", 1), ("0x7fff", 0)] {
            assert_eq!(partitions.index(Some(p_key(redirect))), Some(place), "{redirect}");
        }
        assert_eq!(partitions.index(Some(p_key("0x8009"))), None);
        write(sysfs.path(), &["0xffff", "0x0002", "0x8009"]);
        assert_eq!(
            partitions.index(Some(p_key("0x8009"))),
            None,
            "the table is not read each time"
        );
        partitions.look_again();
        assert_eq!(partitions.index(Some(p_key("0x8009"))), Some(2));
        let mut short = opened(sysfs.path(), None, Header::Short).unwrap();
        assert_eq!(
            (short.index(Some(p_key("0xffff"))), short.index(Some(p_key("0x8009")))),
            (Some(0), None)
        );
    }

    #[test]
    fn a_p_key_that_cannot_be_used_is_refused_with_what_to_do() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), &["0xffff", "0x8001"]);
        let error = opened(sysfs.path(), Some(p_key("0x8002")), Header::Long).unwrap_err();
        for part in
            ["mlx5_0 port 1", "0x8002", "0xffff, 0x8001", "--fabric.pkey", "partitions.conf"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = opened(sysfs.path(), Some(p_key("0x8001")), Header::Short).unwrap_err();
        assert!(error.contains("index 1") && error.contains("--fabric.pkey"), "{error}");
        assert!(
            opened(sysfs.path(), Some(p_key("0xffff")), Header::Short).is_ok(),
            "index 0 needs no field"
        );
        let nothing = tempfile::tempdir().unwrap();
        let error = opened(nothing.path(), Some(p_key("0xffff")), Header::Long).unwrap_err();
        assert!(error.contains("its table has none"), "{error}");
    }
}
