//! The fabric of a scenario: its parameters checked, and the one place where it is built.

use std::path::{Path, PathBuf};

use serde_saphyr::Spanned;

use super::error::{Problem, meant, quoted};
use super::file::{BackToBackEntry, DragonflyPlusEntry, FatTreeEntry, ShapeEntry};
use super::value::line_of;
use crate::fabric::topology::NodeKind;
use crate::sim::device::{MODELS, Model};
use crate::sim::net::Net;

/// A subnet has no more unicast LIDs (IBTA 1.4, 4.1.3), and so no more hosts.
const MOST_HOSTS: u32 = 0xbfff;

/// What is to be built.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A fat tree.
    FatTree(FatTree),
    /// Two hosts and a cable.
    BackToBack(BackToBack),
    /// Groups of leaves and spines, each connected with each.
    DragonflyPlus(DragonflyPlus),
    /// A topology file.
    File(PathBuf),
}

/// A fat tree.
#[derive(Clone, Debug, PartialEq)]
pub struct FatTree {
    /// Of switches.
    pub levels: u8,
    /// Of the whole.
    pub hosts: u32,
    /// Ports of a switch.
    pub radix: u8,
    /// Of these, how many lead down.
    pub down: u8,
    /// And how many up.
    pub up: u8,
    /// Ports of each adapter.
    pub ports: u8,
    /// Trees next to each other; each host has an adapter in each.
    pub planes: u8,
    /// What its switches are.
    pub switch: &'static Model,
    /// What its adapters are.
    pub hca: &'static Model,
}

/// Two hosts and a cable.
#[derive(Clone, Debug, PartialEq)]
pub struct BackToBack {
    /// What its adapters are.
    pub hca: &'static Model,
}

/// Groups of leaves and spines, each connected with each.
#[derive(Clone, Debug, PartialEq)]
pub struct DragonflyPlus {
    /// How many groups.
    pub groups: u8,
    /// Leaves of a group.
    pub leaves: u8,
    /// Spines of a group.
    pub spines: u8,
    /// Hosts of a leaf.
    pub hosts_per_leaf: u8,
    /// Links of each spine to other groups.
    pub global: u8,
    /// Ports of a switch.
    pub radix: u8,
    /// What its switches are.
    pub switch: &'static Model,
    /// What its adapters are.
    pub hca: &'static Model,
}

/// Builds a fabric: here, and nowhere else, a scenario meets the shapes of nets.
pub fn build(shape: &Shape) -> Result<Net, String> {
    match shape {
        Shape::FatTree(tree) => super::standin::fat_tree(tree),
        Shape::BackToBack(pair) => Ok(super::standin::back_to_back(pair)),
        Shape::DragonflyPlus(_) => Err("this shape cannot be built yet".into()),
        Shape::File(path) => {
            let _text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
            Err("topology files cannot be read yet".into())
        }
    }
}

/// The shape that the file describes, with so many hosts if `hosts` says so; paths in it start
/// from the folder.
pub(super) fn shape(
    entry: Option<&Spanned<ShapeEntry>>,
    folder: &Path,
    hosts: Option<u32>,
) -> Result<Shape, Problem> {
    let line = entry.map_or(1, line_of);
    let shape = match entry.map(|entry| &entry.value) {
        None => fat_tree(&FatTreeEntry::default(), hosts, line).map(Shape::FatTree),
        Some(ShapeEntry::FatTree(tree)) => fat_tree(tree, hosts, line).map(Shape::FatTree),
        Some(ShapeEntry::BackToBack(pair)) => back_to_back(pair).map(Shape::BackToBack),
        Some(ShapeEntry::DragonflyPlus(dragonfly)) => {
            dragonfly_plus(dragonfly, line).map(Shape::DragonflyPlus)
        }
        Some(ShapeEntry::File(path)) if path.value.is_empty() => {
            Err(Problem::at(line_of(path), "file: it must not be empty"))
        }
        Some(ShapeEntry::File(path)) => Ok(Shape::File(folder.join(&path.value))),
    };
    shape.map_err(|problem| problem.of("fabric"))
}

/// A number that the file gives, or the usual one.
fn number<T: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    given: Option<&Spanned<T>>,
    usual: T,
    (least, most): (T, T),
) -> Result<T, Problem> {
    match given {
        None => Ok(usual),
        Some(given) if (least..=most).contains(&given.value) => Ok(given.value),
        Some(given) => Err(Problem::at(
            line_of(given),
            format!("{name}: {} is not between {least} and {most}", given.value),
        )),
    }
}

/// A device that the file names, or the usual one.
fn model(
    name: &str,
    given: Option<&Spanned<String>>,
    usual: &str,
) -> Result<&'static Model, Problem> {
    let kind = if name == "switch" { NodeKind::Switch } else { NodeKind::Ca };
    let (text, line) = given.map_or((usual, 1), |given| (given.value.as_str(), line_of(given)));
    let problem = match Model::named(text) {
        Some(model) if model.kind == kind => return Ok(model),
        Some(_) => format!("{name}: {} is another kind of device", quoted(text)),
        None => {
            let of_kind = || MODELS.iter().filter(|model| model.kind == kind);
            let near = meant(text, of_kind().map(|model| model.name));
            let known: Vec<&str> = of_kind().map(|model| model.name).collect();
            format!("{name}: no model {}{near}; known: {}", quoted(text), known.join(", "))
        }
    };
    Err(Problem::at(line, problem))
}

fn fat_tree(entry: &FatTreeEntry, hosts: Option<u32>, line: u64) -> Result<FatTree, Problem> {
    let levels = number("levels", entry.levels.as_ref(), 2, (1, 4))?;
    let radix = number("radix", entry.radix.as_ref(), 16, (2, 254))?;
    let tree = FatTree {
        levels,
        hosts: number("hosts", entry.hosts.as_ref(), 24, (1, MOST_HOSTS))?,
        radix,
        // A single switch has nothing above it.
        down: number(
            "down",
            entry.down.as_ref(),
            if levels == 1 { radix } else { radix / 2 },
            (1, 254),
        )?,
        up: number("up", entry.up.as_ref(), if levels == 1 { 0 } else { radix / 2 }, (0, 254))?,
        ports: number("ports", entry.ports.as_ref(), 1, (1, 4))?,
        planes: number("planes", entry.planes.as_ref(), 1, (1, 8))?,
        switch: model("switch", entry.switch.as_ref(), "quantum-2")?,
        hca: model("hca", entry.hca.as_ref(), "connectx-7")?,
    };
    if u16::from(tree.down) + u16::from(tree.up) > u16::from(radix) {
        let line = entry.down.as_ref().or(entry.up.as_ref()).map_or(line, line_of);
        let sum = format!("{} down and {} up", tree.down, tree.up);
        return Err(Problem::at(
            line,
            format!("{sum} are more ports than the {radix} of a switch"),
        ));
    }
    if levels > 1 && tree.up == 0 {
        let line = entry.up.as_ref().map_or(line, line_of);
        return Err(Problem::at(line, "up: with several levels there must be a way up"));
    }
    Ok(FatTree { hosts: hosts.unwrap_or(tree.hosts), ..tree })
}

/// The number of hosts, where somebody wants another than the file's.
pub(super) fn other_hosts(shape: &Shape, hosts: u32) -> Result<(), String> {
    if !matches!(shape, Shape::FatTree(_)) {
        Err("only a fat tree can have another number of hosts".into())
    } else if !(1..=MOST_HOSTS).contains(&hosts) {
        Err(format!("{hosts} is not between 1 and {MOST_HOSTS}"))
    } else {
        Ok(())
    }
}

fn back_to_back(entry: &BackToBackEntry) -> Result<BackToBack, Problem> {
    Ok(BackToBack { hca: model("hca", entry.hca.as_ref(), "connectx-7")? })
}

fn dragonfly_plus(entry: &DragonflyPlusEntry, line: u64) -> Result<DragonflyPlus, Problem> {
    let some = |name, given, usual| number(name, given, usual, (1, 254));
    let dragonfly = DragonflyPlus {
        groups: some("groups", entry.groups.as_ref(), 3)?,
        leaves: some("leaves", entry.leaves.as_ref(), 2)?,
        spines: some("spines", entry.spines.as_ref(), 2)?,
        hosts_per_leaf: some("hosts-per-leaf", entry.hosts_per_leaf.as_ref(), 4)?,
        global: some("global", entry.global.as_ref(), 1)?,
        radix: number("radix", entry.radix.as_ref(), 16, (2, 254))?,
        switch: model("switch", entry.switch.as_ref(), "quantum-2")?,
        hca: model("hca", entry.hca.as_ref(), "connectx-7")?,
    };
    let hosts = [dragonfly.groups, dragonfly.leaves, dragonfly.hosts_per_leaf];
    let hosts = hosts.into_iter().map(u32::from).product::<u32>();
    if hosts > MOST_HOSTS {
        return Err(Problem::at(line, format!("{hosts} hosts are more than {MOST_HOSTS}")));
    }
    Ok(dragonfly)
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    fn shaped(text: &str, hosts: Option<u32>) -> Result<Shape, String> {
        let file = parse(text).map_err(|problem| problem.text)?;
        shape(file.fabric.as_ref(), Path::new("/there"), hosts)
            .map_err(|problem| format!("{}: {}", problem.line, problem.text))
    }

    #[test]
    fn nothing_said_is_a_tree_of_24_hosts() {
        let Ok(Shape::FatTree(tree)) = shaped("", None) else { panic!("a tree") };
        assert_eq!((tree.levels, tree.hosts, tree.radix), (2, 24, 16));
        assert_eq!((tree.down, tree.up, tree.ports, tree.planes), (8, 8, 1, 1));
        assert_eq!((tree.switch.name, tree.hca.name), ("quantum-2", "connectx-7"));
        let Ok(Shape::FatTree(tree)) = shaped("", Some(7)) else { panic!("a tree") };
        assert_eq!(tree.hosts, 7);
    }

    #[test]
    fn what_is_said_arrives() {
        assert_eq!(
            shaped("fabric: {file: a/b.topo}", None),
            Ok(Shape::File("/there/a/b.topo".into()))
        );
        assert_eq!(
            shaped("fabric: {back-to-back: {hca: connectx-5}}", None),
            Ok(Shape::BackToBack(BackToBack { hca: Model::named("connectx-5").unwrap() }))
        );
        let text = "fabric: {dragonfly-plus: {groups: 5, leaves: 4, spines: 3, hosts-per-leaf: 2, \
                    global: 6, radix: 32, switch: quantum, hca: connectx-6}}";
        assert_eq!(
            shaped(text, None),
            Ok(Shape::DragonflyPlus(DragonflyPlus {
                groups: 5,
                leaves: 4,
                spines: 3,
                hosts_per_leaf: 2,
                global: 6,
                radix: 32,
                switch: Model::named("quantum").unwrap(),
                hca: Model::named("connectx-6").unwrap(),
            }))
        );
    }

    #[test]
    fn what_cannot_be_built_is_told_with_its_line() {
        for (text, says) in [
            ("{fat-tree: {hosts: 0}}", "1: fabric: hosts: 0 is not between 1 and 49151"),
            ("\n  fat-tree:\n    levels: 9", "3: fabric: levels: 9 is not between 1 and 4"),
            (
                "\n  fat-tree:\n    radix: 8\n    down: 7",
                "4: fabric: 7 down and 4 up are more ports than the 8 of a switch",
            ),
            ("{fat-tree: {up: 0}}", "1: fabric: up: with several levels there must be a way up"),
            ("{fat-tree: {hca: quantum}}", "fabric: hca: \"quantum\" is another kind of device"),
            ("{dragonfly-plus: {groups: 250, leaves: 250, hosts-per-leaf: 250}}", "are more than"),
            ("{file: ''}", "1: fabric: file: it must not be empty"),
        ] {
            let error = shaped(&format!("fabric: {text}"), None).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        let error = shaped("fabric: {fat-tree: {hca: conectx-7}}", None).unwrap_err();
        assert!(error.contains("no model \"conectx-7\" (did you mean \"connectx-7\"?)"), "{error}");
    }
}
