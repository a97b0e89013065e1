//! The nodes and cables of a site: pods of two levels, joined by core switches, as ibnetdiscover lists them.

use std::fmt::Write as _;

use ib_sim::net::{Net, NodeId, file};

use super::size::Size;

/// DeviceIDs, as in the PCI database.
const CONNECTX_3: u16 = 4099;
const CONNECTX_4: u16 = 4115;
const CONNECTX_5: u16 = 4119;
const CONNECTX_6: u16 = 4123;
const CONNECTX_7: u16 = 4129;
const BLUEFIELD_3: u16 = 41_692;
const QUANTUM: u16 = 54_000;
const QUANTUM_2: u16 = 54_002;
const AGGREGATION_NODE: u16 = 53_001;

/// LinkSpeedExtEnabled: FDR, EDR, HDR and NDR.
const FDR: u8 = 1;
const EDR: u8 = 3;
const HDR: u8 = 7;
const NDR: u8 = 15;

/// LinkWidthEnabled: 1x and 4x; from HDR on 2x, too.
const WIDE: u8 = 3;
const SPLIT: u8 = 19;

/// Hosts at the end of the list that run the monitor and the subnet managers.
pub(super) const MANAGERS: usize = 4;

/// A node and its cables, before it is text.
struct NodeText {
    kind: &'static str,
    id: String,
    description: String,
    device: u16,
    ports: u32,
    widths: u8,
    speeds: u8,
    /// By port number from 1 on.
    cables: Vec<Option<(usize, u32)>>,
}

#[derive(Default)]
struct Wiring {
    nodes: Vec<NodeText>,
    switches: usize,
}

impl Wiring {
    fn add(
        &mut self,
        kind: &'static str,
        description: String,
        device: u16,
        ports: u32,
        (widths, speeds): (u8, u8),
    ) -> usize {
        let id = format!("{}-{:04}", if kind == "Switch" { 'S' } else { 'H' }, self.nodes.len());
        let cables = vec![None; ports as usize];
        self.nodes.push(NodeText { kind, id, description, device, ports, widths, speeds, cables });
        self.nodes.len() - 1
    }

    /// A switch with its aggregation node, at its last port.
    fn switch(&mut self, description: String, device: u16) -> usize {
        let (ports, speeds) = if device == QUANTUM { (41, HDR) } else { (65, NDR) };
        let switch = self.add("Switch", description, device, ports, (SPLIT, speeds));
        let name = "Mellanox Technologies Aggregation Node".to_owned();
        let node = self.add("Ca", name, AGGREGATION_NODE, 1, (SPLIT, speeds));
        self.connect((switch, ports), (node, 1));
        self.switches += 1;
        switch
    }

    fn connect(&mut self, a: (usize, u32), b: (usize, u32)) {
        for (end, far) in [(a, b), (b, a)] {
            let cable = &mut self.nodes[end.0].cables[end.1 as usize - 1];
            assert!(cable.is_none(), "{}[{}] has a cable", self.nodes[end.0].id, end.1);
            *cable = Some(far);
        }
    }

    /// The first free port from this one on.
    fn free(&self, node: usize, from: u32) -> u32 {
        let is_free = |port: &u32| self.nodes[node].cables[*port as usize - 1].is_none();
        (from..=self.nodes[node].ports).find(is_free).unwrap()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (nth, node) in self.nodes.iter().enumerate() {
            let NodeText { kind, id, description, device, ports, widths, speeds, .. } = node;
            let key = if *kind == "Switch" { "switchguid" } else { "caguid" };
            // Switches and adapters have GUIDs of their own ranges, with room for those of ports.
            let guid =
                if *kind == "Switch" { 0xfc6a_1c03_0000_0000 } else { 0xa088_c203_0000_0000 };
            let guid: u64 = guid + 0x40 * (nth as u64 + 1);
            writeln!(text, "vendid=0x2c9\ndevid={device}\n{key}={guid:#x}").unwrap();
            writeln!(text, "width={widths}\nspeed=7\nextspeed={speeds}").unwrap();
            writeln!(text, "{kind} {ports} \"{id}\" # \"{description}\"").unwrap();
            for (port, cable) in node.cables.iter().enumerate() {
                let Some((far, number)) = cable else { continue };
                writeln!(text, "[{}] \"{}\"[{number}]", port + 1, self.nodes[*far].id).unwrap();
            }
            text.push('\n');
        }
        text
    }
}

/// A pod of leaves and spines, each leaf with the same number of cables to each spine. Returns its leaves, and its
/// spines with the first of their uplinks.
fn pod(wiring: &mut Wiring, name: &str, device: u16, leaves: u32) -> (Vec<usize>, Vec<usize>) {
    let half = if device == QUANTUM { 20 } else { 32 };
    let mut switches = |kind: &str| -> Vec<usize> {
        let one = |n| wiring.switch(format!("{name}-{kind}{n:02}"), device);
        (1..=leaves).map(one).collect()
    };
    let (leaf, spine) = (switches("leaf"), switches("spine"));
    for (l, from) in leaf.iter().enumerate() {
        for up in 0..half {
            let to = spine[(up % leaves) as usize];
            let port = up / leaves * leaves + l as u32 + 1;
            wiring.connect((*from, half + up + 1), (to, port));
        }
    }
    (leaf, spine)
}

/// Builds the net, and lists the adapters of each host.
pub(super) fn build(size: &Size) -> (Net, Vec<Vec<NodeId>>) {
    let mut wiring = Wiring::default();
    let mut hosts: Vec<Vec<usize>> = Vec::new();
    let cores: Vec<usize> =
        (1..=size.cores).map(|n| wiring.switch(format!("core{n:02}"), QUANTUM_2)).collect();
    let mut next_core = 0;
    let mut up = |wiring: &mut Wiring, from: (usize, u32)| {
        let core = cores[next_core % cores.len()];
        next_core += 1;
        let port = wiring.free(core, 1);
        wiring.connect(from, (core, port));
    };
    for p in 1..=size.ndr_pods {
        let (leaves, spines) = pod(&mut wiring, &format!("pod{p}"), QUANTUM_2, size.ndr_leaves);
        for spine in spines {
            for port in 33..=64 {
                up(&mut wiring, (spine, port));
            }
        }
        gpu_hosts(&mut wiring, &mut hosts, size, p, &leaves);
    }
    for p in 1..=size.hdr_pods {
        let (leaves, spines) = pod(&mut wiring, &format!("cpu{p}"), QUANTUM, size.hdr_leaves);
        for spine in spines {
            // Half of the uplinks: the other ports are dark.
            for port in 21..=30 {
                up(&mut wiring, (spine, port));
            }
        }
        for n in 0..size.cpu_hosts {
            let name = format!("cpu{p}n{n:03} mlx5_0");
            let adapter = wiring.add("Ca", name, CONNECTX_6, 1 + n % 2, (SPLIT, HDR));
            let leaf = leaves[(n % size.hdr_leaves) as usize];
            let port = wiring.free(leaf, 1);
            wiring.connect((adapter, 1), (leaf, port));
            hosts.push(vec![adapter]);
        }
    }
    let leaves: Vec<usize> = (1..=size.service_leaves)
        .map(|n| wiring.switch(format!("svc-leaf{n:02}"), QUANTUM))
        .collect();
    for leaf in &leaves {
        for port in 29..=40 {
            up(&mut wiring, (*leaf, port));
        }
    }
    service_hosts(&mut wiring, &mut hosts, size, &leaves);
    let net = file::parse(&wiring.text()).unwrap();
    let id = |nth: &usize| NodeId(*nth as u32);
    (net, hosts.iter().map(|host| host.iter().map(id).collect()).collect())
}

/// Hosts with a rail to each of eight leaves.
fn gpu_hosts(
    wiring: &mut Wiring,
    hosts: &mut Vec<Vec<usize>>,
    size: &Size,
    pod: u32,
    leaves: &[usize],
) {
    for n in 0..size.gpu_hosts {
        let host = (0..8).map(|rail| {
            let name = format!("gpu{pod}n{n:03} mlx5_{rail}");
            let device = if n % 30 == 7 { BLUEFIELD_3 } else { CONNECTX_7 };
            let adapter = wiring.add("Ca", name, device, 1, (SPLIT, NDR));
            let leaf = leaves[((n * 8 + rail) % size.ndr_leaves) as usize];
            let port = wiring.free(leaf, 1);
            wiring.connect((adapter, 1), (leaf, port));
            adapter
        });
        hosts.push(host.collect());
    }
}

/// Logins, storage and old hosts, and the managers at the end.
fn service_hosts(wiring: &mut Wiring, hosts: &mut Vec<Vec<usize>>, size: &Size, leaves: &[usize]) {
    for n in 0..size.service_hosts {
        // The generations of ten years.
        let (device, rates) = match n % 12 {
            0 => (CONNECTX_3, (WIDE, FDR)),
            1..=3 => (CONNECTX_4, (WIDE, EDR)),
            4..=6 => (CONNECTX_5, (WIDE, EDR)),
            7 => (CONNECTX_7, (SPLIT, NDR)),
            _ => (CONNECTX_6, (SPLIT, HDR)),
        };
        let is_manager = n + MANAGERS as u32 >= size.service_hosts;
        let name =
            if is_manager { format!("ufm{n:03} mlx5_0") } else { format!("svc{n:03} mlx5_0") };
        let uses_two = n < size.two_ports;
        let adapter = wiring.add("Ca", name, device, if uses_two { 2 } else { 1 + n % 2 }, rates);
        for port in 1..=if uses_two { 2 } else { 1 } {
            let leaf = leaves[((n + port) as usize) % leaves.len()];
            let free = wiring.free(leaf, 1);
            wiring.connect((adapter, port), (leaf, free));
        }
        hosts.push(vec![adapter]);
    }
}
