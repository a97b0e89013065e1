//! M_Keys: the keys that subnet management agents check (IBTA 1.4, 14.2.4).
//!
//! A port with M_KeyProtectBits 2 or 3 drops a Get without its key, counts an M_Key violation and may send
//! trap 256. So a key is sent where it is known, and keys are never guessed.
//!
//! A key file has one key, like `m_key` of opensm.conf, or it is the `guid2mkey` file of OpenSM's cache
//! directory: lines `0xPORTGUID 0xMKEY` (osm_db_pack.c, both with 16 digits). If keys differ, the key of a
//! node that has not responded yet depends on which node it is. OpenSM looks that up in its file
//! `neighbors` (osm_req.c), lines `0xPORTGUID:PORT 0xPORTGUID:PORT`, and so does this module.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::ids::hex_digits;
use crate::ids::{Guid, PortNumber};

/// An M_Key. It is a secret: `Debug` does not print it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct MKey(pub u64);

impl MKey {
    /// No key: the value of senders and ports without a key.
    pub const NONE: MKey = MKey(0);

    /// Whether this is a key.
    pub fn is_set(self) -> bool {
        self != MKey::NONE
    }
}

impl fmt::Debug for MKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "MKey(set)" } else { "MKey(none)" })
    }
}

/// The M_Keys of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MKeys {
    /// The key of all ports, if they share one: that of an unknown port.
    pub common: MKey,
    by_port: HashMap<Guid, MKey>,
    /// The neighbor's port GUID, by port GUID and port number.
    neighbors: HashMap<(Guid, PortNumber), Guid>,
}

/// An invalid line of a key file. The message does not quote the line, which may contain a key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct MKeysError {
    /// Line number, from 1 on.
    pub line: usize,
    /// The problem, and the expected format.
    pub problem: &'static str,
}

const WANTED: &str = "it must be one M_Key (0x0123456789abcdef), or a port GUID and its M_Key as in OpenSM's guid2mkey";
const SEVERAL: &str =
    "a second M_Key without a GUID; the file has one key for all ports, or lines of GUID and M_Key";
const SHORT: &str = "the M_Key after a port GUID must have 16 hexadecimal digits, as OpenSM writes it: is the \
                     file a truncated copy?";
const ZERO: &str = "0 is not an M_Key: omit --fabric.m-key-file if the ports have none";
const EMPTY: &str =
    "the file has no M_Key; write one (0x0123456789abcdef), or name OpenSM's guid2mkey";
const NEIGHBOR: &str =
    "it must be two ports, as OpenSM writes them: 0xPORTGUID:PORT 0xPORTGUID:PORT";

fn hex(text: &str) -> Option<u64> {
    let digits = hex_digits(text);
    // from_str_radix accepts a sign.
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Line number and fields of each line that has any; `#` starts a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let fields =
        |line| str::split(line, '#').next().unwrap_or_default().split_whitespace().collect();
    (1..).zip(text.lines().map(fields)).filter(|(_, fields): &(_, Vec<&str>)| !fields.is_empty())
}

impl MKeys {
    /// Parses a key file.
    pub fn parse(text: &str) -> Result<Self, MKeysError> {
        let mut single = None;
        let mut by_port = HashMap::new();
        let mut last = 1;
        for (line, fields) in lines(text) {
            last = line;
            let fault = |problem| MKeysError { line, problem };
            match *fields {
                [_] | [_, _] if single.is_some() => return Err(fault(SEVERAL)),
                [key] if by_port.is_empty() => {
                    let key = hex(key).map(MKey).ok_or_else(|| fault(WANTED))?;
                    single = Some(if key.is_set() { key } else { return Err(fault(ZERO)) });
                }
                // A truncated copy has a shorter key, which would be sent and refused.
                [_, key] if hex_digits(key).len() != 16 => return Err(fault(SHORT)),
                [guid, key] => {
                    let (guid, key) = hex(guid).zip(hex(key)).ok_or_else(|| fault(WANTED))?;
                    by_port.insert(Guid(guid), MKey(key));
                }
                [_] => return Err(fault(SEVERAL)),
                _ => return Err(fault(WANTED)),
            }
        }
        let first = single.or_else(|| by_port.values().next().copied());
        let Some(first) = first else { return Err(MKeysError { line: last, problem: EMPTY }) };
        let common = if by_port.values().all(|key| *key == first) { first } else { MKey::NONE };
        Ok(MKeys { common, by_port, neighbors: HashMap::new() })
    }

    /// Adds the neighbors of OpenSM's `neighbors` file.
    pub fn with_neighbors(mut self, text: &str) -> Result<Self, MKeysError> {
        let end = |text: &str| {
            let (guid, port) = text.split_once(':')?;
            Some((Guid(hex(guid)?), port.parse::<PortNumber>().ok()?))
        };
        for (line, fields) in lines(text) {
            let ends = match *fields {
                [near, far] => end(near).zip(end(far)),
                _ => None,
            };
            let (near, far) = ends.ok_or(MKeysError { line, problem: NEIGHBOR })?;
            self.neighbors.insert(near, far.0);
        }
        Ok(self)
    }

    /// Whether the keys are the same, regardless of the neighbors.
    pub fn has_same_keys(&self, other: &MKeys) -> bool {
        self.common == other.common && self.by_port == other.by_port
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        !self.common.is_set() && self.by_port.is_empty()
    }

    /// Number of ports with an entry; 1 for a file with one key.
    pub fn len(&self) -> usize {
        self.by_port.len().max(usize::from(self.common.is_set()))
    }

    /// Whether ports have different keys.
    pub fn differ(&self) -> bool {
        !self.common.is_set() && self.by_port.values().any(|key| key.is_set())
    }

    /// The key of a port, by its GUID; a switch's ports have the key of its port 0.
    pub fn get(&self, port: Guid) -> MKey {
        self.by_port.get(&port).copied().unwrap_or(self.common)
    }

    /// The key of the neighbor of a port, which has not responded yet.
    pub fn get_neighbor(&self, port: Guid, number: PortNumber) -> MKey {
        self.neighbors.get(&(port, number)).map_or(self.common, |neighbor| self.get(*neighbor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `guid2mkey` file as OpenSM writes it.
    fn keys_of(ports: &[(u64, u64)]) -> MKeys {
        let line = |(guid, key): &(u64, u64)| format!("{guid:#018x} {key:#018x}\n\n");
        MKeys::parse(&ports.iter().map(line).collect::<String>()).unwrap()
    }

    #[test]
    fn parses_single_key_and_guid2mkey() {
        let a = Guid(0xa);
        for (text, len, key) in [
            ("0x0123456789abcdef\n", 1, 0x0123_4567_89ab_cdef),
            ("deadbeef", 1, 0xdead_beef),
            ("\n# our key\n 0xA  # since May\n\n", 1, 10),
            // As OpenSM writes it, with blank lines: the same key everywhere.
            (
                "0x000000000000000a 0x0000000000000007\n\n0x000000000000000b 0x0000000000000007\n\n",
                2,
                7,
            ),
            ("a 0000000000000007\r\n", 1, 7),
        ] {
            let keys = MKeys::parse(text).unwrap();
            assert_eq!((keys.len(), keys.differ()), (len, false), "{text:?}");
            assert_eq!(keys.get(a), MKey(key), "{text:?}");
            // One key for all ports, unknown ones included.
            assert_eq!(keys.common, MKey(key), "{text:?}");
            assert_eq!(keys.get_neighbor(Guid(99), 1), MKey(key), "{text:?}");
        }
    }

    #[test]
    fn distinct_keys_apply_only_to_their_ports() {
        let keys = keys_of(&[(0xa, 1), (0xb, 2), (0xc, 0)]);
        assert_eq!((keys.len(), keys.differ(), keys.is_empty()), (3, true, false));
        assert_eq!([0xa, 0xb, 0xc, 0xd].map(|guid| keys.get(Guid(guid)).0), [1, 2, 0, 0]);
        assert_eq!(keys.common, MKey::NONE);
        assert_eq!(keys.get_neighbor(Guid(0xa), 3), MKey::NONE, "the neighbor is unknown");
        let before = keys.clone();
        let keys = keys.with_neighbors("0x0a:3 0x0b:1\n\n0x0b:1 0x0a:3\n").unwrap();
        assert!(keys.has_same_keys(&before) && keys != before);
        assert!(!keys.has_same_keys(&keys_of(&[(0xa, 1), (0xb, 2), (0xc, 3)])));
        assert_eq!(keys.get_neighbor(Guid(0xa), 3), MKey(2));
        assert_eq!(keys.get_neighbor(Guid(0xb), 1), MKey(1));
        assert_eq!(keys.get_neighbor(Guid(0xa), 4), MKey::NONE);
    }

    #[test]
    fn bad_key_file_error_has_line_and_no_key() {
        for (text, line, says) in [
            ("", 1, "no M_Key; write one"),
            ("# nothing\n\n", 1, "no M_Key"),
            ("secret", 1, "it must be one M_Key"),
            ("\n0x5ec2e7g", 2, "it must be one M_Key"),
            ("0x5ec2e75ec2e75ec2e7", 1, "it must be one M_Key"),
            ("-5", 1, "it must be one M_Key"),
            ("0x", 1, "it must be one M_Key"),
            ("0x0", 1, "0 is not an M_Key"),
            ("0x5ec2e7\n0x5ec2e7", 2, "a second M_Key"),
            ("0x5ec2e7\n0xa 0x5ec2e7", 2, "a second M_Key"),
            ("0xa 0x00000000005ec2e7\n0x5ec2e7", 2, "a second M_Key"),
            // Truncated copies.
            ("0xa 0x00000000005ec2e7\n0xb 0x00000000005ec2e", 2, "16 hexadecimal digits"),
            ("0xa 0x5ec2e75ec2e75ec2e7", 1, "16 hexadecimal digits"),
            ("0xa 0x5ec2e7 0x5ec2e7", 1, "a port GUID and its M_Key"),
            ("leaf-1 0x00000000005ec2e7", 1, "a port GUID and its M_Key"),
        ] {
            let error = MKeys::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            let message = error.to_string();
            assert!(message.contains(says) && !message.contains("5ec2e7"), "{text:?}: {message}");
        }
        for text in ["0xa:1", "0xa 0xb", "0xa:1 0xb:300", "0xa:1 0xb:1 0xc:1"] {
            let error = MKeys::parse("1").unwrap().with_neighbors(text).unwrap_err();
            assert!(error.to_string().contains("0xPORTGUID:PORT"), "{text:?}: {error}");
        }
    }

    #[test]
    fn debug_output_hides_m_key() {
        let keys = keys_of(&[(0xa, 0x5e_c2e7), (0xb, 0x5e_c2e8)]);
        assert!(!format!("{keys:?}").contains(&0x5e_c2e7_u64.to_string()));
        assert_eq!(format!("{:?} {:?}", MKey(5), MKey::NONE), "MKey(set) MKey(none)");
    }
}
