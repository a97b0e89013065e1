//! PORT_HIERARCHY_INFO: HierarchyInfo of each port, a column for each level that any template has.
//!
//! No header of this section is public. That it has a label, NodeGUID, PortNum and `ExtendedLabel` is known from programs
//! that read it (ufm_sdk_3.0), and the other columns from the members of ibdiagnet's record (ibdiag_csv_records.h). So a
//! column is found in whichever way its name is written, and one that is absent, or says something else, is no value.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use ib_mad::hierarchy::{HierarchyInfo, template};

use super::table::{Row, Section, by_name, cells};
use crate::contents::Contents;
use crate::text;

/// The columns of the levels of a template, by the index of the level.
const NDR: [(usize, &str); 4] = [(0, "split"), (1, "port"), (2, "cage"), (3, "asic")];
const XDR: [(usize, &str); 10] = [
    (0, "porttype"),
    (1, "asicname"),
    (2, "ibport"),
    (3, "cage"),
    (4, "port"),
    (5, "split"),
    (6, "asic"),
    (10, "plane"),
    (11, "numofplanes"),
    (12, "aport"),
];

/// Other ways to write a column.
const SYNONYMS: [(&str, &str); 3] =
    [("aport", "aggregatedport"), ("numofplanes", "numplanes"), ("asic", "asicnum")];

/// A column without what versions write differently: `Num_Of_Planes`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Where the cells of a row are, by level.
struct Columns {
    ndr: Vec<(usize, usize)>,
    xdr: Vec<(usize, usize)>,
    /// Bus, device and function.
    pci: Option<[usize; 3]>,
}

impl Columns {
    /// Those of a header.
    fn of(names: &[Cow<'_, str>]) -> Self {
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            places.entry(plain(&name.to_ascii_lowercase())).or_insert(place);
        }
        // By its own name before another one.
        let place = |name: &str| {
            let other = || SYNONYMS.iter().find(|(known, _)| *known == name);
            let by_other = || other().and_then(|(_, other)| places.get(*other));
            places.get(name).or_else(by_other).copied()
        };
        let places_of = |levels: &[(usize, &str)]| {
            let known = levels.iter().filter_map(|(level, name)| Some((*level, place(name)?)));
            known.collect()
        };
        let pci = (place("bus"), place("device"), place("function"));
        let pci = if let (Some(bus), Some(device), Some(function)) = pci {
            Some([bus, device, function])
        } else {
            None
        };
        Columns { ndr: places_of(&NDR), xdr: places_of(&XDR), pci }
    }
}

/// A value of a level; `None` for `N/A`, and for text.
fn level(cells: &[Cow<'_, str>], place: usize) -> Option<u32> {
    text::number(cells.get(place)?).and_then(|number| u32::try_from(number).ok())
}

/// Reads the section. What is in an XDR fabric's is not known, so that a row that cannot be read is left out, where one
/// of another section would mean that the file is damaged.
pub(super) fn section(section: &Section<'_>, found: &mut Contents) {
    let Some((header, rows)) = section.lines.split_first() else { return };
    let names = cells(header.text, 0).unwrap_or_default();
    let (by_name, columns) = (by_name(&names), Columns::of(&names));
    for line in rows {
        let cells = cells(line.text, names.len()).filter(|cells| cells.len() == names.len());
        let Some(cells) = cells else { continue };
        let row = Row { columns: &by_name, cells: &cells, damaged: RefCell::default() };
        let template = text::number(row.cell(&["templateguid", "template_guid", "template"]));
        if let (Ok(port), Some(template)) = (row.key(), template) {
            found.port(port).hierarchy = Some(Box::new(hierarchy(template, &cells, &columns)));
        }
    }
}

fn hierarchy(template: u64, cells: &[Cow<'_, str>], columns: &Columns) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template);
    let is_ndr = template == template::NDR;
    for &(at, place) in if is_ndr { &columns.ndr } else { &columns.xdr } {
        info.values[at] = level(cells, place).unwrap_or(u32::MAX);
    }
    let pci = columns.pci.map(|places| places.map(|place| level(cells, place)));
    if let Some([Some(bus @ ..=0xff), Some(device @ ..=0x1f), Some(function @ ..=7)]) = pci {
        info.values[if is_ndr { 6 } else { 9 }] = bus << 8 | device << 3 | function;
    }
    info
}

#[cfg(test)]
mod tests {
    use ib_mad::node::NodeKind;
    use ib_mad::{FrontPanel, Guid};

    use crate::contents::PortName;
    use crate::format::Format;

    /// Label, plane, planes and aggregated port of a port, as text.
    fn panel(columns: &str, row: &str, kind: NodeKind) -> String {
        let table =
            format!("START_PORT_HIERARCHY_INFO\n{columns}\n{row}\nEND_PORT_HIERARCHY_INFO\n");
        let found = Format::DbCsv.parse_text(&table).unwrap().remove(0);
        let port = &found.ports[&PortName::node(Guid(0xa0), 37)];
        let panel = port.hierarchy.as_ref().and_then(|info| FrontPanel::new(info, kind));
        panel.map_or("none".into(), |it| {
            let of = |value: Option<u16>| value.map_or("-".into(), |value| value.to_string());
            let plane = [it.plane.map(u16::from), it.planes.map(u16::from), it.aggregated_port];
            format!("{} {}", it.label().unwrap_or_default(), plane.map(of).join(" "))
        })
    }

    #[test]
    fn columns_are_found_by_name_however_it_is_written() {
        let columns =
            "NodeGUID,PortGUID,TemplateGUID,PortNum,Label,Bus,Device,Function,ASIC,Cage,Port,Split";
        let row = "0xa0,0xa0,0x3,37,1/19/1,N/A,N/A,N/A,1,19,1,N/A";
        assert_eq!(panel(columns, row, NodeKind::Switch), "1/19/1 - - -");
        let columns =
            "NodeGUID,TemplateGUID,PortNum,Port_Type,Cage,Port,Num_Of_Planes,Plane,APort,Asic_Name";
        let row = "0xa0,0x4,37,3,10,2,4,1,20,N/A";
        assert_eq!(panel(columns, row, NodeKind::Switch), "sw10p2 1 4 20");
        let row = "0xa0,0x4,37,2,N/A,N/A,N/A,N/A,N/A,1";
        assert_eq!(panel(columns, row, NodeKind::Switch), "none");
        let columns = "NodeGUID,TemplateGUID,PortNum,PortType,IBPort,Bus,Device,Function,Plane,NumOfPlanes,AggregatedPort";
        let row = "0xa0,0x5,37,4,1,3,0,0,2,4,1";
        assert_eq!(panel(columns, row, NodeKind::Ca), "ibB3D0F0HCA 2 4 1");
    }

    #[test]
    fn row_that_cannot_be_read_is_left_out() {
        let columns = "NodeGUID,TemplateGUID,PortNum,PortType,Cage,Port";
        for bad in ["N/A,0x4,37,3,9,9", "0xa0,0x4,N/A,3,9,9", "0xa0,0x4,37", "0xa0,0x4,37,3,9,9,9"]
        {
            let rows = format!("{bad}\n0xa0,0x4,37,3,10,2\n{bad}");
            assert_eq!(panel(columns, &rows, NodeKind::Switch), "sw10p2 - - -", "{bad}");
        }
    }

    #[test]
    fn own_name_of_a_column_is_before_another_one() {
        let columns = "NodeGUID,TemplateGUID,PortNum,PortType,Cage,Port,Plane,AggregatedPort,APort";
        let row = "0xa0,0x4,37,3,10,2,1,19,20";
        assert_eq!(panel(columns, row, NodeKind::Switch), "sw10p2 1 - 20");
    }

    #[test]
    fn unknown_words_and_templates_are_no_values() {
        let columns = "NodeGUID,TemplateGUID,PortNum,PortType,Cage,Port,Plane,NumOfPlanes,APort";
        for (row, expected) in [
            ("0xa0,0x4,37,switch,10,2,1,4,20", "10p2 1 4 20"),
            ("0xa0,0x9,37,3,10,2,1,4,20", "none"),
            ("0xa0,0x4,37,3,10,2,N/A,N/A,N/A", "sw10p2 - - -"),
            ("0xa0,0x4,37,3,999,2,300,4,70000", "swp2 - 4 -"),
        ] {
            assert_eq!(panel(columns, row, NodeKind::Switch), expected, "{row}");
        }
    }
}
