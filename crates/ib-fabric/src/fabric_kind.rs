//! What kind of network a fabric is.

use display_text::labeled_enum;

labeled_enum! {
    /// The kind of a fabric, by what its switches announce in GeneralInfo of subnet management.
    pub enum FabricKind {
        InfiniBand, "infiniband", "InfiniBand.";
        NvLink, "nvlink", "NVLink between GPUs: its switches have the management of InfiniBand.";
    }
}
