//! The patterns of `--host.device-include` and `--host.device-exclude`.

use std::fmt;

use regex_lite::Regex;

use crate::model::PortKind;
use crate::reader::sysfs::Directory;

/// The kinds that are known before any counter is read, without a comparison with other devices.
const KINDS: [PortKind; 5] = [
    PortKind::NvlinkBridge,
    PortKind::Smi,
    PortKind::VirtualFunction,
    PortKind::SubFunction,
    PortKind::Software,
];

/// A device matches one of these.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    /// Matches whole names.
    pub name: Option<Regex>,
    pub kinds: Vec<PortKind>,
    pub functions: Vec<PciFunction>,
}

/// PCI functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PciFunction {
    /// Those with a vendor ID and device ID.
    Model { vendor: u16, device: u16 },
    /// The one with this address, in lower case: `0000:0b:00.0`.
    At(String),
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// Not a regular expression; what is wrong with it.
    Name(String, String),
    /// `kind:` with something else than one of the kinds.
    Kind(String),
    /// `pci:` with something else than IDs or an address.
    Pci(String),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Name(text, error) => {
                write!(f, "{text:?} is not a regular expression of device names: {error}")?;
                write!(f, "; other forms are kind:smi, pci:15b3:1021 and pci:0000:0b:00.0")
            }
            PatternError::Kind(text) => {
                let known = KINDS.map(|kind| format!("kind:{}", kind.label())).join(", ");
                write!(f, "{text:?} is not one of {known}")
            }
            PatternError::Pci(text) => write!(
                f,
                "{text:?} has neither the form pci:VENDOR:DEVICE, as in pci:15b3:1021, nor that of an address, as in \
                 pci:0000:0b:00.0"
            ),
        }
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Parses alternatives separated by `|`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (mut pattern, mut names) = (Pattern::default(), Vec::new());
        for part in alternatives(text) {
            let trimmed = part.trim();
            if let Some(kind) = trimmed.strip_prefix("kind:") {
                let known = PortKind::from_label(kind).filter(|kind| KINDS.contains(kind));
                pattern.kinds.push(known.ok_or_else(|| PatternError::Kind(trimmed.to_owned()))?);
            } else if let Some(function) = trimmed.strip_prefix("pci:") {
                let function = PciFunction::parse(function);
                let function = function.ok_or_else(|| PatternError::Pci(trimmed.to_owned()))?;
                pattern.functions.push(function);
            } else {
                names.push(part);
            }
        }
        if !names.is_empty() {
            let names = names.join("|");
            let regex = Regex::new(&format!("^(?:{names})$"))
                .map_err(|error| PatternError::Name(names, error.to_string().replace('\n', " ")));
            pattern.name = Some(regex?);
        }
        Ok(pattern)
    }
}

/// The alternatives of a regular expression: separated by `|` that is neither in a group or class, nor escaped.
fn alternatives(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut groups, mut is_class, mut is_escaped) = (0_usize, false, false);
    for (index, character) in text.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match character {
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => groups += 1,
            ')' if !is_class => groups = groups.saturating_sub(1),
            '|' if groups == 0 && !is_class => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

impl PciFunction {
    /// `15b3:1021`, or `0000:0b:00.0`.
    fn parse(text: &str) -> Option<Self> {
        let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            (is_hex && digits.contains(&text.len())).then(|| u32::from_str_radix(text, 16).ok())?
        };
        let parts: Vec<&str> = text.split(':').collect();
        match *parts {
            [vendor, device] => Some(PciFunction::Model {
                vendor: hex(vendor, 4..=4)? as u16,
                device: hex(device, 4..=4)? as u16,
            }),
            [domain, bus, place] => {
                let (slot, function) = place.split_once('.')?;
                // A domain of a VMD controller has more than 16 bits.
                let (domain, bus) = (hex(domain, 4..=8)?, hex(bus, 2..=2)?);
                let (slot, function) = (hex(slot, 2..=2)?, hex(function, 1..=1)?);
                Some(PciFunction::At(format!("{domain:04x}:{bus:02x}:{slot:02x}.{function:x}")))
            }
            _ => None,
        }
    }

    /// Whether a device is on one of these functions.
    pub fn is_of(&self, device: &Directory) -> bool {
        let id = |file: &str| {
            let text = device.text(file);
            u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        match self {
            PciFunction::Model { vendor, device } => {
                id("device/vendor") == Some(*vendor) && id("device/device") == Some(*device)
            }
            PciFunction::At(address) => {
                device.link_target("device").is_some_and(|it| it.eq_ignore_ascii_case(address))
            }
        }
    }
}
