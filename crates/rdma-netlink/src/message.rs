//! Messages of netlink (include/uapi/linux/netlink.h): their headers and attributes.

use std::io;

/// NLMSG_ERROR.
pub const ERROR: u16 = 2;
/// NLMSG_DONE: the last message of a dump.
pub const DONE: u16 = 3;
/// NLM_F_REQUEST.
const REQUEST: u16 = 1;
/// NLM_F_DUMP: all entries, in several messages.
pub const DUMP: u16 = 0x300;
/// NLA_F_NESTED, of the type of an attribute.
pub const NESTED: u16 = 1 << 15;
/// Of the type of an attribute, without the flags.
const TYPE_MASK: u16 = 0x3fff;

/// The length of the header of a message: its length, type, flags, sequence number and port.
pub const HEADER: usize = 16;

/// The error of a message that breaks the format.
pub fn malformed(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// The header of a request, whose length [`finish`] sets.
pub fn request(kind: u16, flags: u16, sequence: u32) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message[4..6].copy_from_slice(&kind.to_ne_bytes());
    message[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
    message[8..12].copy_from_slice(&sequence.to_ne_bytes());
    message
}

/// Sets the length of a message.
pub fn finish(message: &mut [u8]) {
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
}

/// Adds an attribute: length, type and value, padded to four bytes.
pub fn add(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// A message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u16,
    /// That of the request, in a response.
    pub sequence: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// The error that the kernel returned, if it is one.
    pub fn error(&self) -> Option<io::Error> {
        let number = self.payload.first_chunk().map_or(0, |number| i32::from_ne_bytes(*number));
        (self.kind == ERROR).then(|| io::Error::from_raw_os_error(number.saturating_neg()))
    }
}

/// The messages of a datagram; it ends where they are malformed.
pub fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let head: &[u8; HEADER] = rest.first_chunk()?;
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        let sequence = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
        let payload = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, sequence, payload })
    })
}

/// The types and values of attributes; it ends where they are malformed.
pub fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & TYPE_MASK;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_parsed() {
        let mut bytes = Vec::new();
        add(&mut bytes, 3, &[7]);
        add(&mut bytes, 7 | NESTED, &[1, 2, 3, 4, 5]);
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(3, &[7][..]), (7, &[1, 2, 3, 4, 5])]);
        assert_eq!(attributes(&bytes[..10]).count(), 1);
    }

    #[test]
    fn messages_of_a_datagram_are_parsed() {
        let mut datagram = request(7, DUMP, 5);
        add(&mut datagram, 1, b"ab");
        finish(&mut datagram);
        let mut error = request(ERROR, 0, 5);
        error.extend((-libc::EPERM).to_ne_bytes());
        finish(&mut error);
        datagram.extend(&error);
        let found: Vec<_> = messages(&datagram).collect();
        assert_eq!((found.len(), found[0].kind, found[0].sequence), (2, 7, 5));
        assert_eq!(attributes(found[0].payload).collect::<Vec<_>>(), [(1, &b"ab"[..])]);
        assert!(found[0].error().is_none());
        assert_eq!(found[1].error().unwrap().raw_os_error(), Some(libc::EPERM));
        assert_eq!(messages(&datagram[..datagram.len() - 1]).count(), 1);
    }

    proptest! {
        #[test]
        fn any_datagram_is_parsed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let found: usize = messages(&bytes).map(|it| attributes(it.payload).count()).sum();
            prop_assert!(found <= bytes.len());
        }
    }
}
