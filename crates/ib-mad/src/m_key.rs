//! M_Keys: the keys by which management agents admit subnet management (IBTA 1.4, 14.2.4).
//!
//! A port with M_KeyProtectBits 2 or 3 answers no Get without its key, counts an M_Key violation for
//! it and may send trap 256. So a key is sent where it is known, and none is ever tried.
//!
//! Keys come from one of two files. Either it has one key, as `m_key` of opensm.conf does; or it is
//! `guid2mkey`, which OpenSM keeps in its cache directory: lines `0xPORTGUID 0xMKEY`
//! (osm_db_pack.c, both with 16 digits). Where the keys of that file differ, the key of a node that has not answered yet
//! depends on which node it is. OpenSM looks that up in its file `neighbors` (osm_req.c), lines
//! `0xPORTGUID:PORT 0xPORTGUID:PORT`, and so does this.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::{Guid, PortNumber};

/// An M_Key. It is a secret: its `Debug` form does not show it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct MKey(pub u64);

impl MKey {
    /// No key: what a sender without one writes, and a port without one has.
    pub const NONE: MKey = MKey(0);

    /// Whether it is a key.
    pub fn is_set(self) -> bool {
        self != MKey::NONE
    }
}

impl fmt::Debug for MKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "MKey(set)" } else { "MKey(none)" })
    }
}

/// The keys of a fabric; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MKeys {
    /// The key of all ports, where they have the same.
    common: MKey,
    by_port: HashMap<Guid, MKey>,
    /// The port GUID behind a port GUID's port.
    neighbors: HashMap<(Guid, PortNumber), Guid>,
}

/// A line that is none of such a file. It does not repeat what stands there: that may be a key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct MKeysError {
    /// The line's number, from 1 on.
    pub line: usize,
    /// What is wrong with it, and what a line has to be.
    pub problem: &'static str,
}

const WANTED: &str = "it must be one M_Key (0x0123456789abcdef), or a port GUID and its M_Key as in OpenSM's guid2mkey";
const SEVERAL: &str =
    "a second M_Key without a GUID; the file has one key for all ports, or lines of GUID and M_Key";
const SHORT: &str = "the M_Key behind a port GUID must have 16 hexadecimal digits, as OpenSM writes it: is the \
                     file a copy that was cut off?";
const ZERO: &str = "0 is no M_Key: leave --fabric.m-key-file out where ports have none";
const EMPTY: &str =
    "the file has no M_Key; write one (0x0123456789abcdef), or name OpenSM's guid2mkey";
const NEIGHBOR: &str =
    "it must be two ports, as OpenSM writes them: 0xPORTGUID:PORT 0xPORTGUID:PORT";

fn digits(text: &str) -> &str {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text)
}

fn hex(text: &str) -> Option<u64> {
    let digits = digits(text);
    // from_str_radix takes a sign.
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// The fields of each line that has any, with the line's number; `#` starts a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let fields = |line: &str| line.split('#').next().unwrap_or_default().trim().len();
    text.lines().enumerate().filter(move |(_, line)| fields(line) > 0).map(|(index, line)| {
        (index + 1, line.split('#').next().unwrap_or_default().split_whitespace().collect())
    })
}

impl MKeys {
    /// Reads a file's text.
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
                // A copy that was cut off has a shorter key, which would be sent and refused.
                [_, key] if digits(key).len() != 16 => return Err(fault(SHORT)),
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

    /// Adds what the text of OpenSM's `neighbors` says of who is behind which port.
    pub fn with_neighbors(mut self, text: &str) -> Result<Self, MKeysError> {
        let place = |text: &str| {
            let (guid, port) = text.split_once(':')?;
            Some((Guid(hex(guid)?), port.parse::<PortNumber>().ok()?))
        };
        for (line, fields) in lines(text) {
            let ends = match *fields {
                [near, far] => place(near).zip(place(far)),
                _ => None,
            };
            let (near, far) = ends.ok_or(MKeysError { line, problem: NEIGHBOR })?;
            self.neighbors.insert(near, far.0);
        }
        Ok(self)
    }

    /// Whether the keys are the same, whatever is known of who is behind which port.
    pub fn has_same_keys(&self, other: &MKeys) -> bool {
        self.common == other.common && self.by_port == other.by_port
    }

    /// Whether there is any key.
    pub fn is_empty(&self) -> bool {
        !self.common.is_set() && self.by_port.is_empty()
    }

    /// How many ports have an entry; 1 for a file with one key.
    pub fn len(&self) -> usize {
        self.by_port.len().max(usize::from(self.common.is_set()))
    }

    /// Whether keys differ, so that it matters whom one is for.
    pub fn differ(&self) -> bool {
        !self.common.is_set() && self.by_port.values().any(|key| key.is_set())
    }

    /// The key of a port, by its GUID; a switch's ports have that of its port 0.
    pub fn of(&self, port: Guid) -> MKey {
        if self.common.is_set() {
            return self.common;
        }
        self.by_port.get(&port).copied().unwrap_or_default()
    }

    /// The key of the node behind a port, which has not answered yet.
    pub fn behind(&self, port: Guid, number: PortNumber) -> MKey {
        if self.common.is_set() {
            return self.common;
        }
        self.neighbors.get(&(port, number)).map_or(MKey::NONE, |neighbor| self.of(*neighbor))
    }

    /// The key of a port of which nothing is known: none, unless all have the same.
    pub fn of_unknown(&self) -> MKey {
        self.common
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenSM writes them.
    fn keys_of(ports: &[(u64, u64)]) -> MKeys {
        let line = |(guid, key): &(u64, u64)| format!("{guid:#018x} {key:#018x}\n\n");
        MKeys::parse(&ports.iter().map(line).collect::<String>()).unwrap()
    }

    #[test]
    fn a_file_has_one_key_or_one_for_each_port_guid() {
        let a = Guid(0xa);
        for (text, len, key) in [
            ("0x0123456789abcdef\n", 1, 0x0123_4567_89ab_cdef),
            ("deadbeef", 1, 0xdead_beef),
            ("\n# our key\n 0xA  # since May\n\n", 1, 10),
            // As OpenSM writes it, blank lines included: the same key everywhere.
            (
                "0x000000000000000a 0x0000000000000007\n\n0x000000000000000b 0x0000000000000007\n\n",
                2,
                7,
            ),
            ("a 0000000000000007\r\n", 1, 7),
        ] {
            let keys = MKeys::parse(text).unwrap();
            assert_eq!((keys.len(), keys.differ()), (len, false), "{text:?}");
            assert_eq!(keys.of(a), MKey(key), "{text:?}");
            // One key for all: also for who is not known.
            assert_eq!(keys.of_unknown(), MKey(key), "{text:?}");
            assert_eq!(keys.behind(Guid(99), 1), MKey(key), "{text:?}");
        }
    }

    #[test]
    fn different_keys_are_sent_only_to_the_ports_that_have_them() {
        let keys = keys_of(&[(0xa, 1), (0xb, 2), (0xc, 0)]);
        assert_eq!((keys.len(), keys.differ(), keys.is_empty()), (3, true, false));
        assert_eq!([0xa, 0xb, 0xc, 0xd].map(|guid| keys.of(Guid(guid)).0), [1, 2, 0, 0]);
        assert_eq!(keys.of_unknown(), MKey::NONE);
        assert_eq!(keys.behind(Guid(0xa), 3), MKey::NONE, "no file says which node that is");
        let before = keys.clone();
        let keys = keys.with_neighbors("0x0a:3 0x0b:1\n\n0x0b:1 0x0a:3\n").unwrap();
        assert!(keys.has_same_keys(&before) && keys != before);
        assert!(!keys.has_same_keys(&keys_of(&[(0xa, 1), (0xb, 2), (0xc, 3)])));
        assert_eq!(keys.behind(Guid(0xa), 3), MKey(2));
        assert_eq!(keys.behind(Guid(0xb), 1), MKey(1));
        assert_eq!(keys.behind(Guid(0xa), 4), MKey::NONE);
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line_and_without_its_key() {
        for (text, line, says) in [
            ("", 1, "no M_Key; write one"),
            ("# nothing\n\n", 1, "no M_Key"),
            ("secret", 1, "it must be one M_Key"),
            ("\n0x5ec2e7g", 2, "it must be one M_Key"),
            ("0x5ec2e75ec2e75ec2e7", 1, "it must be one M_Key"),
            ("-5", 1, "it must be one M_Key"),
            ("0x", 1, "it must be one M_Key"),
            ("0x0", 1, "0 is no M_Key"),
            ("0x5ec2e7\n0x5ec2e7", 2, "a second M_Key"),
            ("0x5ec2e7\n0xa 0x5ec2e7", 2, "a second M_Key"),
            ("0xa 0x00000000005ec2e7\n0x5ec2e7", 2, "a second M_Key"),
            // Cut off in a copy.
            ("0xa 0x00000000005ec2e7\n0xb 0x00000000005ec2e", 2, "16 hexadecimal digits"),
            ("0xa 0x5ec2e75ec2e75ec2e7", 1, "16 hexadecimal digits"),
            ("0xa 0x5ec2e7 0x5ec2e7", 1, "a port GUID and its M_Key"),
            ("leaf-1 0x00000000005ec2e7", 1, "a port GUID and its M_Key"),
        ] {
            let error = MKeys::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            let told = error.to_string();
            assert!(told.contains(says) && !told.contains("5ec2e7"), "{text:?}: {told}");
        }
        for text in ["0xa:1", "0xa 0xb", "0xa:1 0xb:300", "0xa:1 0xb:1 0xc:1"] {
            let error = MKeys::parse("1").unwrap().with_neighbors(text).unwrap_err();
            assert!(error.to_string().contains("0xPORTGUID:PORT"), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let keys = keys_of(&[(0xa, 0x5e_c2e7), (0xb, 0x5e_c2e8)]);
        assert!(!format!("{keys:?}").contains(&0x5e_c2e7_u64.to_string()));
        assert_eq!(format!("{:?} {:?}", MKey(5), MKey::NONE), "MKey(set) MKey(none)");
    }
}
