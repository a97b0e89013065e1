//! Everything on the wire can be watched: each MAD, out and in, as a capture that Wireshark reads.
//!
//! Wireshark does not know LINKTYPE_INFINIBAND (247) but dissects InfiniBand in ERF records
//! (pcap link type 197; record type 21). A packet is made up around each MAD, with the headers
//! that Wireshark needs to find it: LRH, BTH, DETH and zeroed CRCs. The pcap frame is 40 bytes of
//! constants, less than a crate for it would ask to be told. A global route header is left out.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ib_mad::Mad;
use ib_mad::moment::Anchor;
use ib_mad::{Lid, Moment};

use super::{Parcel, Received, SendError, Wire, WireError};

/// pcap's link type of ERF records.
const LINKTYPE_ERF: u32 = 197;
/// ERF's type of InfiniBand records.
const ERF_INFINIBAND: u8 = 21;
const ERF_LEN: usize = 16;
const LRH_LEN: usize = 8;
const BTH_LEN: usize = 12;
const DETH_LEN: usize = 8;
const CRC_LEN: usize = 6;
const WIRE_LEN: usize = LRH_LEN + BTH_LEN + DETH_LEN + ib_mad::LEN + CRC_LEN;
/// One packet with pcap's own 16 bytes.
const RECORD_LEN: usize = 16 + ERF_LEN + WIRE_LEN;
/// Opcode of an unreliable datagram's only packet.
const UD_SEND_ONLY: u8 = 0x64;

/// A capture file with a size that it does not pass.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: BufWriter<File>,
    left: u64,
    ended: bool,
}

impl Capture {
    /// Begins a file, in place of what was there; it ends before it is larger than `limit` bytes.
    pub fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let mut header = Vec::with_capacity(24);
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, LINKTYPE_ERF] {
            header.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.write_all(&header)?;
        let left = limit.saturating_sub(header.len() as u64);
        Ok(Capture { path: path.to_owned(), file, left, ended: false })
    }

    /// Writes one MAD down. A full or failing disk ends the capture, not the exporter.
    fn write(&mut self, mad: &Mad, from: Lid, to: Lid, qp: u32, qkey: u32, sl: u8) {
        if self.ended {
            return;
        }
        let path = self.path.display();
        if self.left < RECORD_LEN as u64 {
            self.ended = true;
            tracing::warn!(%path, "the capture has reached its size limit and ends here");
        } else {
            self.left -= RECORD_LEN as u64;
            // The key is enough to manage the subnet, and captures are sent to others.
            let record = record(&mad.without_m_key(), from, to, qp, qkey, sl, SystemTime::now());
            if let Err(error) = self.file.write_all(&record) {
                self.ended = true;
                tracing::error!(%path, %error, "the capture cannot be written and ends here");
            }
        }
        if self.ended {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Err(error) = self.file.flush() {
            self.ended = true;
            tracing::error!(path = %self.path.display(), %error, "the capture cannot be written");
        }
    }
}

fn record(
    mad: &Mad,
    from: Lid,
    to: Lid,
    qp: u32,
    qkey: u32,
    sl: u8,
    at: SystemTime,
) -> [u8; RECORD_LEN] {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let smp = u8::from(qp == 0);
    let mut record = Vec::with_capacity(RECORD_LEN);
    // pcap: seconds, microseconds, bytes here, bytes there.
    let length = (ERF_LEN + WIRE_LEN) as u32;
    for word in [since.as_secs() as u32, since.subsec_micros(), length, length] {
        record.extend_from_slice(&word.to_le_bytes());
    }
    // ERF: time in 2^-32 s, little-endian; the rest big-endian. Flags: variable length.
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    let erf_time = (since.as_secs() << 32) | fraction;
    record.extend_from_slice(&erf_time.to_le_bytes());
    record.extend_from_slice(&[ERF_INFINIBAND, 4]);
    record.extend_from_slice(&(length as u16).to_be_bytes());
    record.extend_from_slice(&[0, 0]);
    record.extend_from_slice(&(WIRE_LEN as u16).to_be_bytes());
    // LRH: virtual lane 15 for SMPs; service level, next header BTH; length in words, less the VCRC.
    record.extend_from_slice(&[(smp * 15) << 4, sl << 4 | 2]);
    record.extend_from_slice(&to.0.to_be_bytes());
    record.extend_from_slice(&(((WIRE_LEN - 2) / 4) as u16).to_be_bytes());
    record.extend_from_slice(&from.0.to_be_bytes());
    // BTH: opcode, flags, the default P_Key, queue pair, sequence number.
    record.extend_from_slice(&[UD_SEND_ONLY, 0, 0xff, 0xff]);
    record.extend_from_slice(&qp.to_be_bytes());
    record.extend_from_slice(&[0; 4]);
    // DETH: Q_Key, source queue pair.
    record.extend_from_slice(&qkey.to_be_bytes());
    record.extend_from_slice(&qp.to_be_bytes());
    record.extend_from_slice(&mad.0);
    let mut bytes = [0; RECORD_LEN];
    bytes[..record.len()].copy_from_slice(&record);
    bytes
}

/// A wire with a tap on it.
#[derive(Debug)]
pub struct Tapped<'a, W> {
    wire: &'a mut W,
    capture: Option<&'a mut Capture>,
}

impl<'a, W: Wire> Tapped<'a, W> {
    /// Taps a wire, if there is a capture to write to.
    pub fn new(wire: &'a mut W, capture: Option<&'a mut Capture>) -> Self {
        Tapped { wire, capture }
    }
}

impl<W> Drop for Tapped<'_, W> {
    /// At the end of each walk the file holds all of it.
    fn drop(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.flush();
        }
    }
}

impl<W: Wire> Wire for Tapped<'_, W> {
    fn now(&self) -> Moment {
        self.wire.now()
    }

    fn anchor(&self) -> Anchor {
        self.wire.anchor()
    }

    fn send(&mut self, parcel: &Parcel) -> Result<(), SendError> {
        self.wire.send(parcel)?;
        if let Some(capture) = &mut self.capture {
            // Our own LID is not known here, and nobody needs it.
            capture.write(
                &parcel.mad,
                Lid::default(),
                parcel.lid,
                parcel.qp,
                parcel.qkey,
                parcel.sl,
            );
        }
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, WireError> {
        let received = self.wire.receive(until)?;
        if let (Some(capture), Some(Received::Mad { from, mad })) = (&mut self.capture, &received) {
            let gmp = mad.class() == ib_mad::Class::Performance as u8;
            let qkey = if gmp { super::GSI.1 } else { 0 };
            capture.write(mad, *from, Lid::default(), u32::from(gmp), qkey, 0);
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::m_key::MKey;
    use ib_mad::{Path, smp};

    #[test]
    fn a_capture_has_no_m_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.pcap");
        let mut capture = Capture::create(&path, 1 << 20).unwrap();
        let key = 0x5ec2_e75e_c2e7_5ec2_u64;
        let query = smp::port_info(1).with_m_key(MKey(key));
        let mut mad = Mad::get(&query, Some(&Path::HERE), 1);
        mad.put_be(ib_mad::DATA, 8, key);
        capture.write(&mad, Lid(1), Lid(2), 0, 0, 0);
        drop(capture);
        let written = std::fs::read(&path).unwrap();
        assert!(!written.windows(8).any(|bytes| bytes == key.to_be_bytes()));
    }

    #[test]
    fn a_file_never_passes_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.pcap");
        let limit = 24 + 2 * RECORD_LEN as u64 + 5;
        let mut capture = Capture::create(&path, limit).unwrap();
        let mad = Mad::get(&smp::node_info(), Some(&Path::HERE), 1);
        for _ in 0..5 {
            capture.write(&mad, Lid(1), Lid(2), 0, 0, 0);
        }
        drop(capture);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 24 + 2 * RECORD_LEN as u64);
    }

    #[test]
    fn a_record_is_as_long_as_it_says() {
        let mad = Mad::get(&smp::node_info(), Some(&Path::HERE), 1);
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
        let record = record(&mad, Lid(1), Lid(0x1234), 0, 0, 0, at);
        assert_eq!(record[0..8], [1, 0, 0, 0, 0x20, 0xa1, 7, 0]);
        assert_eq!(record[16..24], (3u64 << 31).to_le_bytes());
        assert_eq!(usize::from(u16::from_be_bytes([record[26], record[27]])), record.len() - 16);
        assert_eq!(record[16 + ERF_LEN] >> 4, 15, "SMPs ride virtual lane 15");
        assert_eq!(record[16 + ERF_LEN + 2..][..2], [0x12, 0x34]);
        assert_eq!(record[16 + ERF_LEN + 28..][..256], mad.0);
    }
}
