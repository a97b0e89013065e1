//! The MADs in a capture file, read without the code under test.

use std::path::Path;

/// A management datagram.
pub type Mad = [u8; 256];

/// The pcap link type of Endace's ERF, whose InfiniBand records Wireshark decodes.
const LINKTYPE_ERF: u32 = 197;

/// What stands before the MAD in a packet: ERF header, LRH, BTH, DETH.
const BEFORE_MAD: usize = 16 + 8 + 12 + 8;

/// The methods of a program that only reads: `Get` and `GetTable`, and their responses.
const READING_METHODS: [u8; 4] = [0x01, 0x12, 0x81, 0x92];

/// Reads all MADs of a pcap file; panics when the file is not whole.
pub fn read(path: &Path) -> Vec<Mad> {
    let file = path.display();
    let bytes =
        std::fs::read(path).unwrap_or_else(|e| panic!("cannot read the capture {file}: {e}"));
    let (header, mut rest) = bytes
        .split_at_checked(24)
        .unwrap_or_else(|| panic!("{file}: no pcap header in {} bytes", bytes.len()));
    // The magic number, for times in micro- or nanoseconds, tells the order of all numbers.
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
    let mut mads = Vec::new();
    while !rest.is_empty() {
        let record = mads.len();
        let cut = || panic!("{file}: record {record} is cut short");
        let (head, after) = rest.split_at_checked(16).unwrap_or_else(cut);
        let (packet, after) =
            after.split_at_checked(number(&head[8..]) as usize).unwrap_or_else(cut);
        let mad = packet.get(BEFORE_MAD..BEFORE_MAD + 256).unwrap_or_else(|| {
            panic!("{file}: record {record} of {} bytes has no room for a MAD", packet.len())
        });
        mads.push(mad.try_into().expect("a slice of 256 bytes"));
        rest = after;
    }
    mads
}

/// Panics unless each MAD in the file, and there is one at least, only reads.
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
