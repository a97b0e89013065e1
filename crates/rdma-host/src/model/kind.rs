//! What ports stand for: only some of them are the end of a cable of their own.

use display_text::labeled_enum;

labeled_enum! {
    /// What a port, or all ports of a device, stand for.
    #[derive(Default)]
    pub enum PortKind {
        #[default]
        Physical, "physical", "The port of an adapter, with a cable.";
        VirtualFunction, "virtual_function", "SR-IOV: the host may hand it to a guest at any time.";
        SubFunction, "sub_function", "A part of an adapter that the host creates and removes (mlx5's SF).";
        Representor, "representor", "The port of the embedded switch that leads to a virtual or sub-function.";
        SecondFunction, "second_function", "Another PCI function of the same port of an adapter (Socket Direct).";
        Smi, "smi", "A plane of a port of a multi-plane HCA, whose device has the same PCI function.";
        NvlinkBridge, "nvlink_bridge", "The management port of NVSwitches (HGX and DGX B200).";
        Restricted, "restricted", "A function that refuses to read the port counters, as NVLink bridges do.";
        Software, "software", "Soft RoCE or soft iWARP: a port without an adapter.";
    }
}

impl PortKind {
    /// Whether a lost link is that of a cable which no other port of the host reports.
    pub fn has_cable(self) -> bool {
        matches!(self, PortKind::Physical | PortKind::Software)
    }
}
