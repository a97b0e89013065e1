//! The vendor-specific class 0x0A of NVIDIA (Mellanox) devices: GeneralInfo, and the statuses of its agents.
//!
//! Sources: mstflint (`mtcr_ul/mtcr_ib_ofed.c`, `tools_layouts`), rdma-core (`infiniband-diags/vendstat.c`), and
//! the capability bits of ibdiagnet's headers (`ibis_types.h`). Not seen on hardware: what a device does not
//! report is 0 and decodes as absent.

use crate::layout::{attribute, bytes_at, dword_at};
use crate::mad::VENDOR_DATA;
use crate::query::Query;
use crate::register::{RegisterQuery, text};

/// VendorID of NodeInfo: NVIDIA (Mellanox). Devices of other vendors are sent no MAD of the class.
pub const NVIDIA: u32 = 0x2c9;

/// AttributeID of AccessRegister.
pub const ACCESS_REGISTER: u16 = 0x0051;

/// The statuses of the class. They are in the low byte of the MAD's status; the high byte is a detail of the vendor.
pub mod status {
    /// The device does not have the register.
    pub const UNSUPPORTED_REGISTER: u16 = 0x14;
    /// The device refuses a field that selects: the port, the page or the index.
    pub const BAD_PARAMETER: u16 = 0x1c;

    /// Whether a request with this status would get the same response again.
    pub fn is_final(status: u16) -> bool {
        matches!(status & 0xff, 0x04 | 0x08 | 0x0c | UNSUPPORTED_REGISTER | BAD_PARAMETER)
    }
}

/// Reads GeneralInfo.
pub fn general_info() -> Query {
    Query::vendor(GeneralInfo::ID, 0)
}

/// Reads a register.
pub fn access_register(register: RegisterQuery) -> Query {
    let modifier = register.kind().0.into();
    Query { register: Some(register), ..Query::vendor(ACCESS_REGISTER, modifier) }
}

attribute! {
    /// GeneralInfo: hardware, firmware, uptime and capabilities of a device. Its first 128 bytes are those of the
    /// register MGIR.
    pub struct GeneralInfo = 0x0017 {
        revision: u16 = dword_at(VENDOR_DATA, 31, 16), "Revision of the hardware.";
        device_id: u16 = dword_at(VENDOR_DATA, 15, 0), "Device ID.";
        uptime: u32 = dword_at(VENDOR_DATA + 0x1c, 31, 0), "Seconds since the last reset.";
        // Old firmware has only this version; its parts have 8 bits.
        major: u8 = dword_at(VENDOR_DATA + 0x20, 23, 16), "Major version of the firmware.";
        minor: u8 = dword_at(VENDOR_DATA + 0x20, 15, 8), "Minor version.";
        subminor: u8 = dword_at(VENDOR_DATA + 0x20, 7, 0), "Subminor version.";
        psid: [u8; 16] = bytes_at(VENDOR_DATA + 0x30, 1), "PSID: identifies the board and its configuration; ASCII.";
        extended: [u32; 3] = bytes_at(VENDOR_DATA + 0x44, 4), "The version with parts of 32 bits; 0 in old firmware.";
        capabilities: [u32; 4] = bytes_at(VENDOR_DATA + 0x80, 4), "CapabilityMask: bit k of element w is capability 32w + k.";
    }
}

impl GeneralInfo {
    /// Capability 20: registers are read by AccessRegister.
    pub const ACCESS_REGISTER: u32 = 20;

    /// Whether the device announces a capability.
    pub fn has(&self, capability: u32) -> bool {
        let word = self.capabilities.get(capability as usize / 32);
        word.is_some_and(|word| word >> (capability % 32) & 1 == 1)
    }

    /// The numbers of the firmware's version; `None` if none is reported.
    pub fn firmware_version(&self) -> Option<[u32; 3]> {
        let short = [self.major, self.minor, self.subminor].map(u32::from);
        let version = if self.extended == [0; 3] { short } else { self.extended };
        Some(version).filter(|version| *version != [0; 3])
    }

    /// The version of the firmware, `28.39.2048`; empty if none is reported.
    pub fn firmware(&self) -> String {
        let text = |[major, minor, subminor]: [u32; 3]| format!("{major}.{minor}.{subminor:04}");
        self.firmware_version().map_or_else(String::new, text)
    }

    /// PSID; empty if none is reported.
    pub fn board(&self) -> String {
        text(&self.psid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::{LEN, Mad};

    #[test]
    fn firmware_version_is_the_extended_one_if_reported() {
        let short = GeneralInfo { major: 12, minor: 28, subminor: 20, ..GeneralInfo::default() };
        assert_eq!(short.firmware(), "12.28.0020");
        assert_eq!(GeneralInfo { extended: [31, 2012, 1024], ..short }.firmware(), "31.2012.1024");
        assert_eq!(GeneralInfo::default().firmware(), "");
    }

    #[test]
    fn fields_are_where_vendstat_reads_them() {
        // vendstat.c: hardware at byte 32, firmware at 64, capability mask at 160.
        let mut mad = Mad([0; LEN]);
        mad.0[32..36].copy_from_slice(&[0x00, 0xa0, 0xd2, 0xf0]);
        mad.0[60..64].copy_from_slice(&3600u32.to_be_bytes());
        mad.0[64..68].copy_from_slice(&[0, 31, 12, 4]);
        mad.0[80..93].copy_from_slice(b"MT_0000000542");
        mad.0[160..164].copy_from_slice(&(1u32 << 20).to_be_bytes());
        let info = GeneralInfo::decode(&mad);
        assert_eq!((info.revision, info.device_id, info.uptime), (0xa0, 0xd2f0, 3600));
        assert_eq!((info.firmware(), info.board()), ("31.12.0004".into(), "MT_0000000542".into()));
        assert!(info.has(GeneralInfo::ACCESS_REGISTER) && !info.has(52) && !info.has(999));
    }

    #[test]
    fn status_has_its_meaning_in_the_low_byte() {
        assert!(status::is_final(status::UNSUPPORTED_REGISTER) && status::is_final(0x031c));
        assert!(!status::is_final(0x0001) && !status::is_final(0));
    }
}
