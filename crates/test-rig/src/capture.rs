//! The MADs in a capture file, read without the code under test.

use std::path::Path;
use std::time::Duration;

/// A MAD.
pub type Mad = [u8; 256];

/// The pcap link type of Endace's ERF, whose InfiniBand records Wireshark decodes.
const LINKTYPE_ERF: u32 = 197;

/// The bytes before the MAD in a packet: ERF header, LRH, BTH, DETH.
const BEFORE_MAD: usize = 16 + 8 + 12 + 8;

/// The methods of a program that only reads: `Get` and `GetTable`, and their responses.
const READING_METHODS: [u8; 4] = [0x01, 0x12, 0x81, 0x92];

/// A request of a capture, with its destination.
#[derive(Clone, Debug)]
pub struct Request {
    /// When it was sent, since the epoch.
    pub at: Duration,
    /// LID of the destination; the permissive one for a directed route.
    pub lid: u16,
    /// Its bytes.
    pub mad: Mad,
}

impl Request {
    /// The management class.
    pub fn class(&self) -> u8 {
        self.mad[1]
    }

    /// Whether a class is one of subnet management, on QP0.
    pub fn is_smp_class(class: u8) -> bool {
        matches!(class, 0x01 | 0x81)
    }

    /// Whether it is on QP0.
    pub fn is_smp(&self) -> bool {
        Self::is_smp_class(self.class())
    }
}

/// Reads all requests of a pcap file; panics when the file is incomplete.
pub fn requests(path: &Path) -> Vec<Request> {
    let is_request = |packet: &Request| packet.mad[3] & 0x80 == 0;
    packets(path).into_iter().filter(is_request).collect()
}

/// Reads all MADs of a pcap file; panics when the file is incomplete.
pub fn read(path: &Path) -> Vec<Mad> {
    packets(path).into_iter().map(|packet| packet.mad).collect()
}

fn packets(path: &Path) -> Vec<Request> {
    let file = path.display();
    let bytes =
        std::fs::read(path).unwrap_or_else(|e| panic!("cannot read the capture {file}: {e}"));
    let (header, mut rest) = bytes
        .split_at_checked(24)
        .unwrap_or_else(|| panic!("{file}: no pcap header in {} bytes", bytes.len()));
    // The magic number, for times in micro- or nanoseconds, gives the byte order.
    let number: fn(&[u8]) -> u32 = match header[..4] {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => {
            |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])
        }
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => {
            |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])
        }
        ref magic => panic!("{file}: not a pcap file: it begins with {magic:02x?}"),
    };
    assert_eq!(number(&header[20..]), LINKTYPE_ERF, "{file}: the link type");
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let record = packets.len();
        let cut = || panic!("{file}: record {record} is cut short");
        let (head, after) = rest.split_at_checked(16).unwrap_or_else(cut);
        let (packet, after) =
            after.split_at_checked(number(&head[8..]) as usize).unwrap_or_else(cut);
        let mad = packet.get(BEFORE_MAD..BEFORE_MAD + 256).unwrap_or_else(|| {
            panic!("{file}: record {record} of {} bytes has no room for a MAD", packet.len())
        });
        packets.push(Request {
            // In microseconds: the only captures that are asked for times are our own.
            at: Duration::new(number(head).into(), number(&head[4..]) * 1_000),
            // In the LRH, after the ERF header.
            lid: u16::from_be_bytes([packet[18], packet[19]]),
            mad: mad.try_into().expect("a slice of 256 bytes"),
        });
        rest = after;
    }
    packets
}

/// Panics unless there is a MAD in the file, and all MADs only read.
pub fn assert_read_only(path: &Path) {
    let mads = read(path);
    assert!(!mads.is_empty(), "{}: no MADs at all, so nothing is proved", path.display());
    for (record, mad) in mads.iter().enumerate() {
        assert!(
            READING_METHODS.contains(&mad[3]),
            "{}: record {record} has method {:#04x} (class {:#04x}, attribute {:#06x})",
            path.display(),
            mad[3],
            mad[1],
            u16::from_be_bytes([mad[16], mad[17]])
        );
    }
}
