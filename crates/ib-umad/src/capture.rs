//! Capture of all sent and received MADs in a pcap file that Wireshark reads.
//!
//! Wireshark does not support LINKTYPE_INFINIBAND (247) but dissects InfiniBand in ERF records (pcap link type
//! 197; record type 21). Each MAD is wrapped in a packet with the headers that Wireshark needs: LRH, BTH, DETH
//! and zeroed CRCs. The pcap frame is 40 constant bytes, which need no crate. A global route header is omitted.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ib_mad::moment::Anchor;
use ib_mad::{Lid, Mad, Moment};

use crate::transport::{
    LocalPort, MadTransport, OutgoingMad, QP1_QKEY, Received, SendError, TransportError,
};

const LINKTYPE_ERF: u32 = 197;
const ERF_INFINIBAND: u32 = 21;
const ERF_LEN: usize = 16;
const LRH_LEN: usize = 8;
const BTH_LEN: usize = 12;
const DETH_LEN: usize = 8;
const CRC_LEN: usize = 6;
const WIRE_LEN: usize = LRH_LEN + BTH_LEN + DETH_LEN + ib_mad::LEN + CRC_LEN;
/// One packet with the 16 bytes of its pcap header.
const RECORD_LEN: usize = 16 + ERF_LEN + WIRE_LEN;
/// BTH opcode: unreliable datagram, send only.
const UD_SEND_ONLY: u32 = 0x64;

/// A capture file with a maximum size.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: BufWriter<File>,
    remaining: u64,
    is_closed: bool,
}

impl Capture {
    /// Creates or overwrites a file, which does not exceed `limit` bytes.
    pub fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, LINKTYPE_ERF].map(u32::to_le_bytes);
        file.write_all(header.as_flattened())?;
        let remaining = limit.saturating_sub(header.as_flattened().len() as u64);
        Ok(Capture { path: path.to_owned(), file, remaining, is_closed: false })
    }

    /// Writes one MAD. A full or failing disk ends the capture, not the exporter.
    fn write(&mut self, mad: &Mad, headers: &Headers) {
        if self.is_closed {
            return;
        }
        let path = self.path.display();
        if self.remaining < RECORD_LEN as u64 {
            tracing::warn!(%path, "capture stopped: size limit reached");
        } else {
            self.remaining -= RECORD_LEN as u64;
            // The M_Key is enough to manage the subnet, and captures are shared.
            let record = record(&mad.without_m_key(), headers, SystemTime::now());
            let Err(error) = self.file.write_all(&record) else { return };
            tracing::error!(%path, %error, "capture stopped: write failed");
        }
        self.is_closed = true;
        self.flush();
    }

    fn flush(&mut self) {
        if let Err(error) = self.file.flush() {
            self.is_closed = true;
            tracing::error!(path = %self.path.display(), %error, "capture write failed");
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Headers {
    from: Lid,
    to: Lid,
    qp: u32,
    qkey: u32,
    sl: u8,
}

fn record(mad: &Mad, headers: &Headers, at: SystemTime) -> Vec<u8> {
    let Headers { from, to, qp, qkey, sl } = *headers;
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (length, wire_length) = ((ERF_LEN + WIRE_LEN) as u32, WIRE_LEN as u32);
    // ERF time is in 2^-32 s.
    let fraction = ((u64::from(since.subsec_nanos()) << 32) / 1_000_000_000) as u32;
    let (seconds, lane) = (since.as_secs() as u32, if qp == 0 { 15 } else { 0 });
    // pcap: seconds, microseconds, bytes here, bytes there; then the ERF time. All little-endian.
    let times = [seconds, since.subsec_micros(), length, length, fraction, seconds];
    let headers = [
        // ERF: type, flags (variable length), length; lost packets, length.
        ERF_INFINIBAND << 24 | 4 << 16 | length,
        wire_length,
        // LRH: virtual lane, service level, next header BTH; length in words without the VCRC.
        lane << 28 | u32::from(sl) << 20 | 2 << 16 | u32::from(to.0),
        ((wire_length - 2) / 4) << 16 | u32::from(from.0),
        // BTH: opcode, flags, the default P_Key; queue pair; sequence number.
        UD_SEND_ONLY << 24 | 0xffff,
        qp,
        0,
        // DETH: Q_Key, source queue pair.
        qkey,
        qp,
    ];
    let mut record = times.map(u32::to_le_bytes).concat();
    record.extend(headers.map(u32::to_be_bytes).as_flattened());
    record.extend(mad.0);
    record.resize(RECORD_LEN, 0);
    record
}

/// A transport that writes its MADs to a capture.
#[derive(Debug)]
pub struct CapturingTransport<'a, T> {
    inner: &'a mut T,
    capture: Option<&'a mut Capture>,
}

impl<'a, T: MadTransport> CapturingTransport<'a, T> {
    /// Wraps a transport; without a capture it writes nothing.
    pub fn new(inner: &'a mut T, capture: Option<&'a mut Capture>) -> Self {
        CapturingTransport { inner, capture }
    }
}

impl<T> Drop for CapturingTransport<'_, T> {
    /// After each run the file is complete.
    fn drop(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.flush();
        }
    }
}

impl<T: MadTransport> MadTransport for CapturingTransport<'_, T> {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn anchor(&self) -> Anchor {
        self.inner.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.inner.local_port()
    }

    fn refresh(&mut self) {
        self.inner.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        self.inner.send(outgoing)?;
        if let Some(capture) = &mut self.capture {
            // The local LID is not known here, nor needed.
            let OutgoingMad { lid: to, qp, qkey, sl, .. } = *outgoing;
            capture.write(&outgoing.mad, &Headers { from: Lid::default(), to, qp, qkey, sl });
        }
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let received = self.inner.receive(until)?;
        if let (Some(capture), Some(Received::Mad { from, mad })) = (&mut self.capture, &received) {
            let (qp, qkey) = if mad.is_smp() { (0, 0) } else { (1, QP1_QKEY) };
            capture.write(mad, &Headers { from: *from, qp, qkey, ..Headers::default() });
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::m_key::MKey;
    use ib_mad::{DirectedRoute, smp};

    #[test]
    fn capture_redacts_keys() {
        let key = 0x5ec2_e75e_c2e7_5ec2_u64;
        // M_Key at the begin of PortInfo, and SM_Key after the GUID of SMInfo.
        for (query, offset) in [(smp::port_info(1), 0), (smp::sm_info(), 8)] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("c.pcap");
            let mut capture = Capture::create(&path, 1 << 20).unwrap();
            let mut mad = query.with_m_key(MKey(key)).request(Some(&DirectedRoute::LOCAL), 1);
            mad.put_be(ib_mad::DATA + offset, 8, key);
            capture.write(&mad, &Headers::default());
            drop(capture);
            let written = std::fs::read(&path).unwrap();
            assert!(!written.windows(8).any(|bytes| bytes == key.to_be_bytes()), "{query:?}");
        }
    }

    #[test]
    fn capture_stays_within_size_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.pcap");
        let limit = 24 + 2 * RECORD_LEN as u64 + 5;
        let mut capture = Capture::create(&path, limit).unwrap();
        let mad = smp::node_info().request(Some(&DirectedRoute::LOCAL), 1);
        for _ in 0..5 {
            capture.write(&mad, &Headers::default());
        }
        drop(capture);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 24 + 2 * RECORD_LEN as u64);
    }

    #[test]
    fn capture_record_has_declared_length() {
        let mad = smp::node_info().request(Some(&DirectedRoute::LOCAL), 1);
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
        let headers = Headers { from: Lid(1), to: Lid(0x1234), ..Headers::default() };
        let record = record(&mad, &headers, at);
        assert_eq!(record[0..8], [1, 0, 0, 0, 0x20, 0xa1, 7, 0]);
        assert_eq!(record[16..24], (3u64 << 31).to_le_bytes());
        assert_eq!(usize::from(u16::from_be_bytes([record[26], record[27]])), record.len() - 16);
        assert_eq!(record[16 + ERF_LEN] >> 4, 15, "SMPs ride virtual lane 15");
        assert_eq!(record[16 + ERF_LEN + 2..][..2], [0x12, 0x34]);
        assert_eq!(record[16 + ERF_LEN + 28..][..256], mad.0);
    }
}
