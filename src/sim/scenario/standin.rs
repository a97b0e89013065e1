//! A small builder of trees, until the shapes of nets are there: two levels, one cable a pair.

use super::fabric::{BackToBack, FatTree};
use crate::fabric::Guid;
use crate::fabric::rate::SpeedSet;
use crate::fabric::topology::NodeKind;
use crate::sim::device::Model;
use crate::sim::net::{Net, Node, NodeId, Port, PortId};

use super::value::SPEEDS;

/// More than this is for the real builder.
const MOST: u32 = 4096;

fn add(net: &mut Net, id: String, description: String, model: &'static Model, ports: u8) -> NodeId {
    let guid = Guid(0x0002_c900_0000_0000 + ((net.nodes.len() as u64 + 1) << 8));
    let node = NodeId(net.nodes.len() as u32);
    net.nodes.push(Node {
        id,
        description,
        kind: model.kind,
        guid,
        system_guid: guid,
        vendor_id: model.vendor_id,
        device_id: model.device_id,
        model,
        port_count: ports,
        enhanced_port0: false,
        first_port: net.ports.len() as u32,
    });
    let speeds: SpeedSet = SPEEDS.into_iter().filter(|speed| *speed <= model.fastest).collect();
    net.ports.extend((0..=ports).map(|number| Port {
        node,
        number,
        guid: if model.kind == NodeKind::Switch { guid } else { Guid(guid.0 + u64::from(number)) },
        cable: None,
        widths: model.widths,
        speeds,
        lid: None,
        lmc: 0,
    }));
    node
}

fn plug(net: &mut Net, one: (NodeId, u8), other: (NodeId, u8)) {
    let port = |net: &Net, (node, number)| net.port_of(node, number);
    if let (Some(one), Some(other)) = (port(net, one), port(net, other)) {
        let ends: [(PortId, PortId); 2] = [(one, other), (other, one)];
        for (end, far) in ends {
            net.ports[end.0 as usize].cable = Some(far);
        }
    }
}

pub(super) fn back_to_back(pair: &BackToBack) -> Net {
    let mut net = Net::default();
    let [one, other] = ["host-0", "host-1"]
        .map(|id| add(&mut net, id.into(), format!("{id} mlx5_0"), pair.hca, 1));
    plug(&mut net, (one, 1), (other, 1));
    net
}

pub(super) fn fat_tree(tree: &FatTree) -> Result<Net, String> {
    let leaves = tree.hosts.div_ceil(u32::from(tree.down));
    if tree.levels > 2 || tree.ports != 1 || tree.hosts > MOST {
        return Err("this tree cannot be built yet".into());
    }
    if leaves > if tree.levels == 1 { 1 } else { u32::from(tree.radix) } {
        return Err(format!("{} hosts do not fit", tree.hosts));
    }
    let mut net = Net::default();
    for plane in 0..tree.planes {
        let spines: Vec<NodeId> = (0..tree.up)
            .map(|number| {
                let id =
                    format!("spine-{}", u16::from(plane) * u16::from(tree.up) + u16::from(number));
                add(&mut net, id.clone(), id, tree.switch, tree.radix)
            })
            .collect();
        let mut host = 0;
        for number in 0..leaves {
            let id = format!("leaf-{plane}-{number}");
            let leaf = add(&mut net, id.clone(), id, tree.switch, tree.radix);
            for (up, spine) in (0..).zip(&spines) {
                plug(&mut net, (leaf, tree.down + up + 1), (*spine, number as u8 + 1));
            }
            for down in 1..=tree.down {
                if host < tree.hosts {
                    let id = if plane == 0 { String::new() } else { format!("-{plane}") };
                    let about = format!("host-{host} mlx5_{plane}");
                    let adapter = add(&mut net, format!("host-{host}{id}"), about, tree.hca, 1);
                    plug(&mut net, (leaf, down), (adapter, 1));
                    host += 1;
                }
            }
        }
    }
    Ok(net)
}

/// The net that a scenario's `fabric` describes, for tests.
#[cfg(test)]
pub(super) fn net(fabric: &str) -> Net {
    use super::fabric::{Shape, shape};
    let file = super::file::parse(&format!("fabric: {fabric}")).unwrap();
    match shape(file.fabric.as_ref(), "".as_ref(), None).unwrap() {
        Shape::FatTree(tree) => fat_tree(&tree).unwrap(),
        Shape::BackToBack(pair) => back_to_back(&pair),
        other => panic!("{other:?}"),
    }
}
