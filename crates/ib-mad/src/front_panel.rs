//! What is printed at the front panel beside a port, as HierarchyInfo reports it.
//!
//! The labels are those of ibdiagnet (`createLabel` of ibdm/Fabric.h, which is public with GPL and BSD headers).
//! Template 3 was seen in public dumps of Quantum-2 and ConnectX-7, the XDR templates only in headers: each part may
//! be absent. Where ibdiagnet prints `-1` or `N/A` for an absent part, the label has no such part.

use std::fmt::Write;

use display_text::labeled_enum;

use crate::hierarchy::{HierarchyInfo, template};
use crate::node::NodeKind;

labeled_enum! {
    /// Kind of a port of an XDR device; the discriminants are the codes, the labels those of ibdiagnet.
    #[repr(u8)]
    pub enum PanelPortType {
        Fnm1 = 1, "FNM1", "Port of fabric network management at the front panel, with a cable.";
        Fnm = 2, "FNM", "Port between the ASICs of a switch, without a cable.";
        Switch = 3, "sw", "Port of a switch.";
        Hca = 4, "HCA", "Port of a channel adapter.";
        Access = 5, "Access", "Access port of an NVLink switch.";
        Gpu = 6, "GPU", "Port of a GPU.";
    }
}

labeled_enum! {
    /// Name of an ASIC in an XDR switch; the discriminants are the codes, the labels those of ibdiagnet.
    #[repr(u16)]
    pub enum AsicName {
        A1 = 1, "A1", "The first ASIC of a switch of several nodes, each of which has one plane.";
        A2 = 2, "A2", "The second one.";
        A3 = 3, "A3", "The third one.";
        A4 = 4, "A4", "The fourth one.";
        A = 256, "A", "The first ASIC of a switch whose nodes have all planes of their ports.";
        B = 257, "B", "The second one.";
    }
}

/// How a label is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Style {
    /// `1/19/1`: a Quantum-2 switch.
    Slashes,
    /// `B202D0F0/1/1`: a ConnectX-7.
    Adapter,
    /// `sw10p2s1`: an XDR switch.
    Words,
    /// `ibB3D0F0HCA1p1`, `GPUP1`: an XDR adapter or a GPU.
    AdapterWords,
}

/// The address of a PCI function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PciFunction(u16);

impl PciFunction {
    /// `B202D0F0`, in decimal numbers.
    fn label(self) -> String {
        format!("B{}D{}F{}", self.0 >> 8, self.0 >> 3 & 0x1f, self.0 & 7)
    }
}

/// Where a port is at the front panel of its device. All numbers are those of labels, not of the subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrontPanel {
    style: Style,
    /// The kind of port.
    pub port_type: Option<PanelPortType>,
    /// The name of the port's ASIC.
    pub asic_name: Option<AsicName>,
    /// The number of the ASIC.
    pub asic: Option<u8>,
    /// The number of a port that has no cage.
    pub internal_port: Option<u8>,
    /// The cage: two ports of a twin-port module share one.
    pub cage: Option<u8>,
    /// The port in the cage.
    pub port: Option<u8>,
    /// The part of a port that is split.
    pub split: Option<u8>,
    /// The plane, from 1 on.
    pub plane: Option<u8>,
    /// The number of planes of the aggregated port.
    pub planes: Option<u8>,
    /// The aggregated port, of which this one is a plane.
    pub aggregated_port: Option<u16>,
    /// The physical slot of an adapter.
    slot: Option<u16>,
    pci: Option<PciFunction>,
}

/// A port has as many planes at most; another number is none that is known.
const MAX_PLANES: u8 = 4;

/// SlotType of template 3: the slot has a number.
const PHYSICAL_SLOT: u32 = 1;

impl FrontPanel {
    /// Decodes the first block of HierarchyInfo of a port; `None` for another template, and for a port that has neither a
    /// label nor a plane.
    pub fn new(info: &HierarchyInfo, kind: NodeKind) -> Option<Self> {
        let value = |level: usize| info.values.get(level).copied().filter(|it| *it != u32::MAX);
        let small = |level| value(level).and_then(|value| u8::try_from(value).ok());
        let pci = |level| value(level).and_then(|it| u16::try_from(it).ok()).map(PciFunction);
        let none = FrontPanel {
            style: Style::Slashes,
            port_type: None,
            asic_name: None,
            asic: None,
            internal_port: None,
            cage: None,
            port: None,
            split: None,
            plane: None,
            planes: None,
            aggregated_port: None,
            slot: None,
            pci: None,
        };
        let is_switch = kind == NodeKind::Switch;
        let panel = match info.template {
            template::NDR => FrontPanel {
                style: if is_switch { Style::Slashes } else { Style::Adapter },
                split: small(0),
                port: small(1),
                cage: small(2),
                asic: small(3),
                slot: value(4).filter(|it| it & 3 == PHYSICAL_SLOT).map(|it| (it >> 8) as u16),
                pci: pci(6),
                ..none
            },
            template::XDR_SWITCH | template::XDR_ADAPTER => {
                let is_adapter = info.template == template::XDR_ADAPTER;
                let asic_name = value(1).and_then(AsicName::from_discriminant);
                FrontPanel {
                    style: if is_adapter { Style::AdapterWords } else { Style::Words },
                    port_type: value(0).and_then(PanelPortType::from_discriminant),
                    asic_name: asic_name.filter(|_| !is_adapter),
                    internal_port: small(2),
                    cage: small(3),
                    port: small(4),
                    split: small(5),
                    asic: small(6).filter(|_| !is_adapter),
                    pci: pci(9).filter(|_| is_adapter),
                    plane: small(10).filter(|plane| (1..=MAX_PLANES).contains(plane)),
                    planes: small(11).filter(|planes| (1..=MAX_PLANES).contains(planes)),
                    aggregated_port: value(12)
                        .and_then(|it| u16::try_from(it).ok())
                        .filter(|port| *port > 0),
                    ..none
                }
            }
            _ => return None,
        };
        Some(panel).filter(|panel| panel.plane.is_some() || panel.label().is_some())
    }

    /// The label that ibdiagnet prints: `1/19/1`, `sw10p2s1`, `FNMA1P145`. A plane may have none.
    pub fn label(&self) -> Option<String> {
        Some(self.text()).filter(|text| !text.is_empty())
    }

    /// The label; empty if there is none.
    fn text(&self) -> String {
        match self.style {
            Style::Slashes if self.port.is_none() => String::new(),
            Style::Slashes => slashes([self.asic, self.cage, self.port, self.split]),
            Style::Adapter => {
                let place = slashes([self.cage, self.port, self.split]);
                let device = match (self.slot, self.pci) {
                    (Some(slot), _) => format!("Physical{slot}"),
                    (None, Some(pci)) if pci.0 != 0 => pci.label(),
                    _ => return String::new(),
                };
                if place.is_empty() { device } else { format!("{device}/{place}") }
            }
            Style::Words => {
                let mut text = self.port_type.map_or("", PanelPortType::label).to_owned();
                text += self.asic_name.map_or("", AsicName::label);
                self.write_words(&mut text, true);
                if self.has_place() { text } else { String::new() }
            }
            Style::AdapterWords if self.port_type == Some(PanelPortType::Gpu) => {
                let port = self.internal_port.map(|port| format!("GPUP{port}"));
                port.unwrap_or_default()
            }
            Style::AdapterWords => {
                let mut text = "ib".to_owned();
                text += &self.pci.map(PciFunction::label).unwrap_or_default();
                text += self.port_type.map_or("", PanelPortType::label);
                self.write_words(&mut text, false);
                if self.has_place() || self.pci.is_some() { text } else { String::new() }
            }
        }
    }

    /// Whether the port is one of several planes of an aggregated port.
    pub fn is_plane(&self) -> bool {
        self.plane.is_some() && self.planes != Some(1)
    }

    /// Whether people call the port so, in any case: by its label, also with `IB` before it, as `19/1` without the
    /// ASIC, or as `sw19p1`.
    pub fn is_called(&self, text: &str) -> bool {
        let text = text.trim();
        let is = |name: &str| text.eq_ignore_ascii_case(name);
        let Some(label) = self.label() else { return false };
        if is(&label) {
            return true;
        }
        let without_prefix = text.get(2..).filter(|_| text.to_ascii_lowercase().starts_with("ib"));
        if without_prefix.is_some_and(|text| text.eq_ignore_ascii_case(&label)) {
            return true;
        }
        let (Some(cage), Some(port)) = (self.cage, self.port) else { return false };
        let split = self.split.map_or_else(String::new, |split| format!("s{split}"));
        let short = format!("{cage}/{port}");
        // Of a split port that would be all of its parts.
        let is_short = self.split.is_none() && (is(&short) || without_prefix == Some(&short));
        is_short || is(&format!("sw{cage}p{port}{split}"))
    }

    /// Whether anything tells the port from the others of the device.
    fn has_place(&self) -> bool {
        self.internal_port.or(self.cage).or(self.port).is_some()
            || self.port_type == Some(PanelPortType::Fnm1)
    }

    fn write_words(&self, text: &mut String, has_internal_port: bool) {
        let internal_port = self.internal_port.filter(|_| has_internal_port);
        let words = [("P", internal_port), ("", self.cage), ("p", self.port), ("s", self.split)];
        for (word, number) in words {
            if let Some(number) = number {
                // Writing to a text does not fail.
                let _ = write!(text, "{word}{number}");
            }
        }
    }
}

/// The numbers that are present, between slashes.
fn slashes<const N: usize>(numbers: [Option<u8>; N]) -> String {
    let present: Vec<String> = numbers.iter().flatten().map(u8::to_string).collect();
    present.join("/")
}

#[cfg(test)]
mod tests;
