//! Device models: what the agents of each generation of switches and adapters support. To add one, add a
//! row to `devices.tsv`.

use std::sync::LazyLock;

use ib_mad::class_port_info::PmaCapabilities;
use ib_mad::counter::{Counter, TABLE};
use ib_mad::hierarchy::template;
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;

const TEXT: &str = include_str!("devices.tsv");

/// The vendor of all models, by its OUI (Mellanox).
pub(crate) const VENDOR_ID: u32 = 0x2c9;

/// A generation of switches or adapters: a row of `devices.tsv`, which describes the columns.
#[derive(Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the file describes its columns")]
#[expect(clippy::struct_excessive_bools, reason = "features that a device has or has not")]
pub struct DeviceModel {
    pub name: &'static str,
    pub kind: NodeKind,
    /// 0 for unknown devices.
    pub device_id: u16,
    pub related_ids: Vec<u16>,
    pub fastest: Speed,
    /// LinkWidthSupported, a mask of codes.
    pub widths: u8,
    pub performance: PmaCapabilities,
    pub tick: Option<u8>,
    pub options: u64,
    pub unused64: Vec<Counter>,
    pub details: bool,
    pub fec: bool,
    pub benign: bool,
    pub general_info: bool,
    pub registers: bool,
    pub state_table: bool,
    pub nvlink: bool,
    /// Template of HierarchyInfo; 0 if it has none.
    pub hierarchy: u64,
    /// Major, minor and subminor version of the firmware, in GeneralInfo.
    pub firmware: [u32; 3],
}

/// All models.
pub static MODELS: LazyLock<Vec<DeviceModel>> = LazyLock::new(|| {
    let rows = TEXT.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.filter_map(DeviceModel::parse).collect()
});

/// The values between commas; none for a dash.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| *part != "-")
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A version of three numbers; zeros for a dash.
fn version(text: &str) -> Option<[u32; 3]> {
    let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    if text == "-" { Some([0; 3]) } else { parts?.try_into().ok() }
}

impl DeviceModel {
    /// Reads a row. The tests check that each can be read.
    fn parse(row: &'static str) -> Option<DeviceModel> {
        let mut columns = row.split('\t');
        let mut next = || columns.next();
        let counter = |name| TABLE.iter().find(|row| row.ibta == name).map(|row| row.counter);
        let (name, kind) = (next()?, NodeKind::from_label(next()?)?);
        let mut ids = list(next()?).map(str::parse);
        let mut model = DeviceModel {
            name,
            kind,
            device_id: ids.next()?.ok()?,
            related_ids: ids.collect::<Result<_, _>>().ok()?,
            fastest: Speed::from_label(next()?)?,
            widths: next()?.parse().ok()?,
            performance: PmaCapabilities {
                mask: number(next()?)?.try_into().ok()?,
                mask2: number(next()?)?.try_into().ok()?,
            },
            tick: list(next()?).next().map(str::parse).transpose().ok()?,
            options: number(next()?)?,
            unused64: list(next()?).map(counter).collect::<Option<_>>()?,
            firmware: version(next()?)?,
            details: false,
            fec: false,
            benign: false,
            general_info: false,
            registers: false,
            state_table: false,
            nvlink: false,
            hierarchy: 0,
        };
        for feature in list(next()?) {
            match feature {
                "details" => model.details = true,
                "fec" => model.fec = true,
                "benign" => model.benign = true,
                "general" => model.general_info = true,
                "state-table" => model.state_table = true,
                "nvlink" => model.nvlink = true,
                "template-3" => model.hierarchy = template::NDR,
                "template-4" => model.hierarchy = template::XDR_SWITCH,
                "template-5" => model.hierarchy = template::XDR_ADAPTER,
                "registers" => (model.general_info, model.registers) = (true, true),
                _ => return None,
            }
        }
        Some(model)
    }

    /// The model with this name.
    pub fn by_name(name: &str) -> Option<&'static DeviceModel> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// Its index in the table.
    pub fn index(&'static self) -> usize {
        MODELS.iter().position(|row| std::ptr::eq(row, self)).unwrap_or_default()
    }

    /// The model of a DeviceID, or that of unknown devices of the kind.
    pub fn for_device(kind: NodeKind, device_id: u16) -> &'static DeviceModel {
        let kind = if kind == NodeKind::AggregationNode { NodeKind::Ca } else { kind };
        let of_kind = || MODELS.iter().filter(move |model| model.kind == kind);
        let is = |model: &&DeviceModel| {
            model.device_id == device_id || model.related_ids.contains(&device_id)
        };
        // The last row of each kind is for unknown devices.
        of_kind().find(is).or_else(|| of_kind().next_back()).unwrap_or(&MODELS[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let rows = TEXT.lines().filter(|line| line.contains('\t')).count() - 1;
        assert_eq!((MODELS.len(), rows), (18, 18));
        let known =
            ["details", "fec", "benign", "general", "registers", "state-table", "nvlink", "-"];
        let known = [&known[..], &["template-3", "template-4", "template-5"]].concat();
        for row in TEXT.lines().filter(|line| line.contains('\t')).skip(1) {
            let features = row.rsplit('\t').next().unwrap();
            assert!(features.split(',').all(|feature| known.contains(&feature)), "{row}");
        }
    }

    #[test]
    fn index_and_name_identify_each_model() {
        for (index, model) in MODELS.iter().enumerate() {
            assert_eq!(model.index(), index, "{}", model.name);
            assert_eq!(DeviceModel::by_name(model.name).map(DeviceModel::index), Some(index));
        }
    }

    #[test]
    fn device_id_selects_the_model() {
        assert_eq!(DeviceModel::for_device(NodeKind::Ca, 4129).name, "connectx-7");
        assert_eq!(DeviceModel::for_device(NodeKind::Ca, 41692).name, "connectx-7");
        assert_eq!(DeviceModel::for_device(NodeKind::Ca, 4115).name, "connectx-4");
        assert_eq!(
            DeviceModel::for_device(NodeKind::AggregationNode, 53001).name,
            "aggregation-node"
        );
        assert_eq!(DeviceModel::for_device(NodeKind::Switch, 54004).name, "quantum-3");
        assert_eq!(DeviceModel::for_device(NodeKind::Switch, 52000).name, "switch-ib-2");
        for (kind, name) in [
            (NodeKind::Ca, "any-hca"),
            (NodeKind::AggregationNode, "any-hca"),
            (NodeKind::Switch, "any-switch"),
            (NodeKind::Router, "any-router"),
        ] {
            assert_eq!(DeviceModel::for_device(kind, 9).name, name);
        }
    }
}
