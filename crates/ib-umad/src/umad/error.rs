//! Why no port of this host can be used.

use std::{fmt, io};

use ib_mad::PortNumber;
use ib_mad::p_key::PKey;
use thiserror::Error;

use super::missing_qp0::MissingQp0;

/// Why no fabric is swept from an HCA unless it is asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsuitable {
    /// The settings exclude it.
    Excluded,
    /// Its fabric is that of the NVSwitches of this host.
    NvlinkBridge,
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsuitable::Excluded => "excluded by --host.device-exclude",
            Unsuitable::NvlinkBridge => "the bridge of an NVSwitch",
        })
    }
}

/// Why no port could be opened. Each message says what to do.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum DeviceError {
    #[error(
        "no RDMA device on this host ({directory} lists none): load the driver of the HCA; \
         `fabric-exporter doctor` shows what is missing"
    )]
    NoDevice { directory: String },
    #[error(
        "only Ethernet (RoCE) devices on this host, which have no subnet ({hcas}): disable the fabric \
         collector with --no-collector.fabric"
    )]
    OnlyEthernet { hcas: String },
    #[error("no umad device of the InfiniBand devices {hcas}: load ib_umad (modprobe ib_umad)")]
    NoUmad { hcas: String },
    #[error(
        "no HCA is left to choose from ({hcas}): name one with --fabric.hca, or disable the fabric collector \
         with --no-collector.fabric"
    )]
    Unsuitable { hcas: String },
    #[error("no HCA {requested:?} on this host: {option} may be {known}")]
    UnknownHca { option: &'static str, requested: String, known: String },
    #[error("HCA {hca} has no port {requested}: {option} may be {known}")]
    UnknownPort { option: &'static str, hca: String, requested: PortNumber, known: String },
    #[error(
        "{hca} port {port} is an Ethernet (RoCE) port without a subnet: choose an \
         InfiniBand port with --fabric.hca, or disable the fabric collector with --no-collector.fabric"
    )]
    Ethernet { hca: String, port: PortNumber },
    /// The port has no QP0, and nothing else was searched.
    #[error(
        "{hca} port {port} does not support subnet management: choose the SMI device of the HCA with \
         --fabric.smi-hca (`rdma dev show` lists them as type smi)"
    )]
    NoQp0 { hca: String, port: PortNumber },
    #[error("{hca} port {port} does not support subnet management: {why}; {}", why.remedy())]
    NoSubnetManagement { hca: String, port: PortNumber, why: MissingQp0 },
    #[error(
        "{hca} port {port} supports nothing but subnet management: it is a plane of a multi-plane HCA, and no device \
         with the counters of its port is visible here; choose that one, the parent in `rdma dev show {hca}`, with \
         --fabric.hca, and give the container its umad device"
    )]
    NoQp1 { hca: String, port: PortNumber },
    #[error(
        "{hca} port {port} has no link (physical state {state}): connect its cable, or choose a \
         port that is up with --fabric.hca and --fabric.port"
    )]
    Down { hca: String, port: PortNumber, state: String },
    #[error(
        "{hca} port {port} is not in the partition of P_Key {requested}: its table has {known}; choose one of \
         those with --fabric.pkey, or add the port's GUID to the partition in the subnet manager's \
         partitions.conf"
    )]
    UnknownPKey { hca: String, port: PortNumber, requested: PKey, known: String },
    #[error(
        "P_Key {requested} has index {index} in the port's table, and umad of this kernel can only send with \
         index 0: leave out --fabric.pkey, or use kernel 3.18 or later"
    )]
    NoPKeyIndex { requested: PKey, index: u16 },
    #[error(
        "no permission to open {device}: run as root, or give the group of the service access by a \
         udev rule: KERNEL==\"umad*\", GROUP=\"rdma\", MODE=\"0660\""
    )]
    Permission { device: String },
    #[error(
        "umad of this kernel has ABI version {found}, and this program knows version 5 only: use a release of it \
         that supports this kernel, or disable the fabric collector with --no-collector.fabric"
    )]
    AbiVersion { found: u32 },
    #[error("{device}: {action}: {error}")]
    Unusable { device: String, action: &'static str, error: io::Error },
}

impl DeviceError {
    pub(super) fn from_open(device: String, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => DeviceError::Permission { device },
            _ => DeviceError::Unusable { device, action: "open", error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_error_differs_from_missing_device() {
        let message = |code| {
            let error = io::Error::from_raw_os_error(code);
            DeviceError::from_open("/dev/infiniband/umad0".into(), error).to_string()
        };
        let denied = message(libc::EACCES);
        assert!(denied.contains("no permission to open /dev/infiniband/umad0"), "{denied}");
        assert!(denied.contains("udev rule") && !denied.contains('\n'), "{denied}");
        let missing = message(libc::ENOENT);
        assert!(missing.contains("umad0: open: No such file"), "{missing}");
    }
}
