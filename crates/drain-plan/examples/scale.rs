//! Measures assessments and plans of fabrics with 1,000 switches and 60,000 links:
//! `cargo run --release -p drain-plan --example scale`.
#![allow(clippy::print_stdout, reason = "an example")]

use std::collections::BTreeSet;
use std::time::Instant;

use drain_plan::{Link, LinkId, Net, NodeId, Repair, Share, UnknownPart, assess, plan};

struct Scale {
    name: &'static str,
    net: Net,
    leaves: Vec<NodeId>,
    /// Switches of the level above, and of the highest level.
    above: Vec<NodeId>,
    top: Vec<NodeId>,
}

impl Scale {
    fn new(name: &'static str, leaves: usize, above: usize, top: usize) -> Self {
        let mut net = Net::default();
        let mut switches = |count| (0..count).map(|_| net.add_switch()).collect::<Vec<_>>();
        let (leaves, above, top) = (switches(leaves), switches(above), switches(top));
        Scale { name, net, leaves, above, top }
    }

    fn add_links(&mut self, ends: [NodeId; 2], count: usize) -> Result<(), UnknownPart> {
        for _ in 0..count {
            self.net.add_link(Link::usable(ends, 400))?;
        }
        Ok(())
    }

    fn add_hosts(&mut self, of_each_leaf: usize) -> Result<(), UnknownPart> {
        for leaf in self.leaves.clone() {
            for _ in 0..of_each_leaf {
                let host = self.net.add_host();
                let hca = self.net.add_hca(host)?;
                self.add_links([hca, leaf], 1)?;
            }
        }
        Ok(())
    }

    /// 800 leaves with 30 hosts and 45 uplinks to different ones of 200 spines.
    fn two_levels() -> Result<Self, UnknownPart> {
        let mut scale = Scale::new("two levels", 800, 0, 200);
        for (index, leaf) in scale.leaves.clone().into_iter().enumerate() {
            for uplink in 0..45 {
                let spine = scale.top[(index * 7 + uplink * 4) % 200];
                scale.add_links([leaf, spine], 1)?;
            }
        }
        scale.add_hosts(30)?;
        Ok(scale)
    }

    /// 20 pods of 20 leaves and 20 switches above, with two links between each two, and 200 switches above the pods.
    fn three_levels() -> Result<Self, UnknownPart> {
        let mut scale = Scale::new("three levels", 400, 400, 200);
        for pod in 0..20 {
            let switches = |all: &[NodeId]| all[pod * 20..pod * 20 + 20].to_vec();
            let (leaves, aboves) = (switches(&scale.leaves), switches(&scale.above));
            for &above in &aboves {
                for &leaf in &leaves {
                    scale.add_links([leaf, above], 2)?;
                }
            }
            for (place, above) in aboves.into_iter().enumerate() {
                for uplink in 0..20 {
                    scale.add_links([above, scale.top[(place * 10 + uplink) % 200]], 2)?;
                }
            }
        }
        scale.add_hosts(64)?;
        Ok(scale)
    }

    /// Each leaf has a switch above of its own, so all flows lead over the highest level, and need a search.
    fn own_switch_above() -> Result<Self, UnknownPart> {
        let mut scale = Scale::new("one leaf for each switch above", 400, 400, 200);
        for index in 0..400 {
            let above = scale.above[index];
            scale.add_links([scale.leaves[index], above], 40)?;
            for uplink in 0..70 {
                scale.add_links([above, scale.top[(index * 11 + uplink * 3) % 200]], 1)?;
            }
        }
        scale.add_hosts(40)?;
        Ok(scale)
    }

    /// The first uplink of each of ten leaves; all to different switches if possible.
    fn ten_uplinks(&self) -> Vec<Repair> {
        let uplinks = self.leaves.iter().step_by(self.leaves.len() / 10).enumerate();
        uplinks.map(|(place, &leaf)| Repair::Link(self.uplinks(leaf)[place])).collect()
    }

    fn uplinks(&self, leaf: NodeId) -> Vec<LinkId> {
        let is_uplink = |link: &&LinkId| {
            let ends = self.net.links()[link.index()].ends;
            ends.iter().all(|&end| self.net.nodes()[end.index()] == drain_plan::Node::Switch)
        };
        self.net.links_of(leaf).iter().filter(is_uplink).copied().collect()
    }
}

/// Prints how long it takes.
fn measure<T>(what: &str, mut run: impl FnMut() -> T) -> T {
    let start = Instant::now();
    let result = run();
    println!("  {what}: {:.1} ms", start.elapsed().as_secs_f64() * 1_000.0);
    result
}

fn main() -> Result<(), UnknownPart> {
    let nobody = BTreeSet::new();
    for scale in [Scale::two_levels()?, Scale::three_levels()?, Scale::own_switch_above()?] {
        let Scale { name, net, leaves, top, .. } = &scale;
        println!(
            "{name}: {} switches, {} hosts, {} links",
            leaves.len() + scale.above.len() + top.len(),
            net.host_count(),
            net.links().len()
        );
        let uplinks = scale.ten_uplinks();
        let of_one_leaf: Vec<Repair> =
            scale.uplinks(leaves[0]).into_iter().take(10).map(Repair::Link).collect();
        let spines: Vec<Repair> = top.iter().take(10).copied().map(Repair::Node).collect();
        let off: Vec<Repair> = leaves.iter().take(10).copied().map(Repair::Node).collect();
        for (what, repairs) in [
            ("a cable", &uplinks[..1]),
            ("ten cables", &uplinks),
            ("a switch of the highest level", &spines[..1]),
            ("ten of them", &spines),
            ("ten leaves with undrained hosts", &off),
        ] {
            let assessment = measure(&format!("assess {what}"), || assess(net, repairs, &nobody))?;
            println!(
                "    {} cut hosts, {} reduced leaves, {:.3} remains",
                assessment.cut_hosts.len(),
                assessment.reduced_leaves.len(),
                assessment.remaining_capacity().get()
            );
        }
        let mixed: Vec<Repair> = spines[..5].iter().chain(&of_one_leaf[..5]).copied().collect();
        for (what, repairs) in [
            ("ten cables", &uplinks),
            ("ten cables of a leaf", &of_one_leaf),
            ("ten switches of the highest level", &spines),
            ("five switches, five cables", &mixed),
        ] {
            for share in [0.99, 0.98, 0.95, 0.9, 0.8] {
                let Some(min_capacity) = Share::new(share) else { continue };
                let found = measure(&format!("plan {what} at {share}"), || {
                    plan(net, repairs, &nobody, min_capacity)
                })?;
                println!(
                    "    {} windows, {} repairs not safe",
                    found.windows.len(),
                    found.unsafe_repairs.len()
                );
            }
        }
        let every: Vec<Repair> =
            leaves.iter().take(100).map(|&leaf| Repair::Link(scale.uplinks(leaf)[0])).collect();
        if let Some(min_capacity) = Share::new(0.95) {
            let found =
                measure("plan 100 cables at 0.95", || plan(net, &every, &nobody, min_capacity))?;
            println!("    {} windows ({:?})", found.windows.len(), found.window_count);
        }
    }
    Ok(())
}
