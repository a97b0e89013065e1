//! Which HCAs are of one host, and hosts by their names.

use std::collections::{BTreeSet, HashMap, HashSet};

use ib_mad::node::NodeKind;

use super::parts::{NetHost, NetNode};
use crate::cli::host_list::short;

/// The hosts of some nodes.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub all: Vec<NetHost>,
    /// By node: its host, if it is an end of paths.
    pub of_nodes: Vec<Option<usize>>,
    /// HCAs whose host is not certain.
    pub notes: Vec<String>,
}

/// The HCAs with the same host label are one host. Two with the same name may be those of different hosts that were never
/// named, such as `localhost HCA-1`: each is a host of its own, so each has to keep its paths. Routers and nodes of unknown
/// types are hosts, too.
pub(super) fn find(nodes: &[NetNode]) -> Hosts {
    let mut labelled: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if let (Some(NodeKind::Ca), Some(label)) = (node.kind, &node.label) {
            labelled.entry(label).or_default().push(index);
        }
    }
    let mut hosts = Hosts { of_nodes: vec![None; nodes.len()], ..Hosts::default() };
    labelled.retain(|label, its| {
        let mut names = HashSet::new();
        let names_of = its.iter().map(|node| &*nodes[*node].description);
        let is_one = names_of.filter(|name| !name.is_empty()).all(|name| names.insert(name));
        if !is_one {
            hosts.notes.push(format!(
                "{} HCAs of {label} have the same name: each counts as a host of its own",
                its.len()
            ));
        }
        is_one
    });
    hosts.notes.sort();
    for (index, node) in nodes.iter().enumerate() {
        let is_end = !matches!(node.kind, Some(NodeKind::Switch | NodeKind::AggregationNode));
        if !is_end || hosts.of_nodes[index].is_some() {
            continue;
        }
        let label = node.label.as_deref().filter(|_| node.kind == Some(NodeKind::Ca));
        let (name, its) = match label.and_then(|label| Some((label, labelled.get(label)?))) {
            Some((label, its)) => (label, its.clone()),
            None => (&*node.name, vec![index]),
        };
        for node in &its {
            hosts.of_nodes[*node] = Some(hosts.all.len());
        }
        let is_drained = its.iter().all(|node| nodes[*node].is_drained);
        hosts.all.push(NetHost { name: name.to_owned(), is_drained, nodes: its });
    }
    hosts
}

/// The hosts of these names, as indexes, in any case and with or without domain; and the names of which there is none.
pub(super) fn called(hosts: &[NetHost], names: &[String]) -> (BTreeSet<usize>, Vec<String>) {
    let mut whole: HashMap<String, Vec<usize>> = HashMap::new();
    let mut shortened: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, host) in hosts.iter().enumerate() {
        let name = host.name.to_lowercase();
        shortened.entry(short(&name).to_owned()).or_default().push(index);
        whole.entry(name).or_default().push(index);
    }
    let (mut found, mut unknown) = (BTreeSet::new(), Vec::new());
    for name in names {
        let lower = name.to_lowercase();
        // Two hosts of different domains may share a short name: then only the whole one names one.
        let of_short = shortened.get(short(&lower)).filter(|hosts| hosts.len() == 1);
        match whole.get(&lower).or(of_short) {
            Some(hosts) => found.extend(hosts),
            None => unknown.push(name.clone()),
        }
    }
    (found, unknown)
}
