//! The links that repairs take out of service.

use crate::net::{LinkState, Net, Repair};

/// The usable links that a set of repairs takes out of service.
pub(crate) struct Outage {
    /// By link.
    out: Vec<bool>,
    /// The same links as indexes, each once.
    links: Vec<usize>,
}

impl Outage {
    /// Without repairs.
    pub(crate) fn none(net: &Net) -> Self {
        Outage { out: vec![false; net.links().len()], links: Vec::new() }
    }

    /// Links that are down are not in it: they carry nothing anyway.
    pub(crate) fn of(net: &Net, repairs: impl IntoIterator<Item = Repair>) -> Self {
        let mut outage = Outage::none(net);
        for repair in repairs {
            let of_nodes = net.powered_off(&repair).iter().flat_map(|&node| net.links_of(node));
            for link in net.pulled(&repair).iter().chain(of_nodes) {
                outage.add(net, link.index());
            }
        }
        outage
    }

    fn add(&mut self, net: &Net, link: usize) {
        let usable = net.links().get(link).is_some_and(|it| it.state == LinkState::Usable);
        if usable && !self.out[link] {
            self.out[link] = true;
            self.links.push(link);
        }
    }

    /// The indexes of the links, each once.
    pub(crate) fn links(&self) -> &[usize] {
        &self.links
    }

    /// Whether the link carries traffic during the repairs.
    pub(crate) fn carries(&self, net: &Net, link: usize) -> bool {
        net.links()[link].state == LinkState::Usable && !self.out[link]
    }
}
