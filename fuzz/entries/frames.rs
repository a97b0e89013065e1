//! The frames of the history file: packed counters, by sweep and digested.

use fabric_history::file::frame::{Digest, Entry, Frame};
use fabric_history::file::packed;
use fabric_history::file::packed::FrameError;

use super::input::Input;

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (base, wanted) = (i64::from(input.u32()), u32::from(input.u8()));
    let rest = input.bytes(bytes.len());
    // Unchanged: nearly always the CRC is wrong.
    let _ = (Frame::unpack(rest), Digest::unpack(rest, base));
    // With the right CRC, as from another version.
    let packed = packed::pack(rest).unwrap();
    assert_eq!(packed::unpack(&packed).as_deref(), Ok(rest));
    let part = Frame::unpack_of(&packed, |port| port == wanted);
    if let Ok(frame) = Frame::unpack(&packed) {
        same(&frame, wanted, part);
    }
    if let Ok(digest) = Digest::unpack(&packed, base) {
        let value = digest.readings(None).count();
        assert_eq!(value, digest.frame().entries().len());
        assert!(digest.readings(Some(wanted)).all(|(_, entry)| entry.port == wanted));
        let again = Digest::unpack(&digest.pack(base).unwrap(), base);
        assert_eq!(again.as_ref(), Ok(&digest));
    }
}

fn values<'a>(frame: &'a Frame, entry: &'a Entry) -> (u32, u32, Vec<(u8, u64)>) {
    (entry.port, entry.after, frame.values(entry).collect())
}

fn same(frame: &Frame, wanted: u32, part: Result<Frame, FrameError>) {
    let entries = frame.entries();
    assert!(entries.is_sorted_by_key(|entry| entry.port));
    assert_eq!(Frame::unpack(&frame.pack().unwrap()).as_ref(), Ok(frame));
    let part = part.expect("what is whole is whole in parts");
    let of_whole = entries.iter().filter(|entry| entry.port == wanted);
    let of_whole: Vec<_> = of_whole.map(|entry| values(frame, entry)).collect();
    let of_part: Vec<_> = part.entries().iter().map(|entry| values(&part, entry)).collect();
    assert_eq!(of_whole, of_part);
    assert_eq!(frame.get(wanted).is_some(), !of_part.is_empty());
}
