//! The fabric of a scenario: what its file says of it, and the net that this makes.

use std::path::{Path, PathBuf};

use super::error::{Problem, ScenarioError};
use super::file::{BackToBackEntry, DragonflyPlusEntry, FatTreeEntry, ShapeEntry};
use super::value::line_of;
use crate::device::{MODELS, Model};
use crate::net::shapes;
use crate::net::shapes::{BackToBack, DragonflyPlus, FatTree, ShapeError};
use crate::net::{Net, file};
use ib_mad::node::NodeKind;
use site_config::near::{meant, quoted};
use site_config::yaml::Spanned;

/// What is to be built.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// By rules.
    Built(shapes::Shape),
    /// As a topology file has it.
    File(PathBuf),
}

/// The shape that the file describes; paths in it start from the folder.
pub(super) fn shape(entry: Option<&Spanned<ShapeEntry>>, folder: &Path) -> Result<Shape, Problem> {
    let shape = match entry.map(|entry| &entry.value) {
        None => fat_tree(&FatTreeEntry::default()),
        Some(ShapeEntry::FatTree(tree)) => fat_tree(tree),
        Some(ShapeEntry::BackToBack(pair)) => back_to_back(pair),
        Some(ShapeEntry::DragonflyPlus(dragonfly)) => dragonfly_plus(dragonfly),
        Some(ShapeEntry::File(path)) if path.value.is_empty() => {
            Err(Problem::at(line_of(path), "file: it must not be empty"))
        }
        Some(ShapeEntry::File(path)) => return Ok(Shape::File(folder.join(&path.value))),
    };
    shape.map_err(|problem| problem.of("fabric"))
}

/// The net of a topology file.
pub(super) fn read(path: &Path) -> Result<Net, ScenarioError> {
    let wrong = |problem| ScenarioError::File { file: path.display().to_string(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    file::parse(&text).map_err(|error| wrong(error.to_string()))
}

/// Why the entry cannot be built, with the line of what is wrong, as far as it is one thing.
pub(super) fn unbuilt(entry: Option<&Spanned<ShapeEntry>>, error: &ShapeError) -> Problem {
    let name = match error {
        ShapeError::Range { name, .. } => name,
        ShapeError::Apart { .. } => "hosts",
        ShapeError::Model { kind: NodeKind::Switch, .. } => "switch",
        ShapeError::Model { .. } => "hca",
        ShapeError::Radix { .. } | ShapeError::Uneven { .. } | ShapeError::Build(_) => "",
    };
    let line = entry.map_or(1, |entry| key_line(&entry.value, name).unwrap_or(line_of(entry)));
    Problem::at(line, error.to_string()).of("fabric")
}

/// The line of a key of the entry, if it is there.
fn key_line(entry: &ShapeEntry, key: &str) -> Option<u64> {
    fn at<T>(given: Option<&Spanned<T>>) -> Option<u64> {
        given.map(line_of)
    }
    match entry {
        ShapeEntry::FatTree(tree) => match key {
            "levels" => at(tree.levels.as_ref()),
            "hosts" => at(tree.hosts.as_ref()),
            "radix" => at(tree.radix.as_ref()),
            "down" => at(tree.down.as_ref()),
            "up" => at(tree.up.as_ref()),
            "ports" => at(tree.ports.as_ref()),
            "planes" => at(tree.planes.as_ref()),
            "aggregation-nodes" => at(tree.aggregation_nodes.as_ref()),
            "switch" => at(tree.switch.as_ref()),
            "hca" => at(tree.hca.as_ref()),
            _ => None,
        },
        ShapeEntry::DragonflyPlus(dragonfly) => match key {
            "groups" => at(dragonfly.groups.as_ref()),
            "leaves" => at(dragonfly.leaves.as_ref()),
            "spines" => at(dragonfly.spines.as_ref()),
            "hosts-per-leaf" => at(dragonfly.hosts_per_leaf.as_ref()),
            "global" => at(dragonfly.global.as_ref()),
            "radix" => at(dragonfly.radix.as_ref()),
            "switch" => at(dragonfly.switch.as_ref()),
            "hca" => at(dragonfly.hca.as_ref()),
            _ => None,
        },
        ShapeEntry::BackToBack(pair) if key == "hca" => at(pair.hca.as_ref()),
        ShapeEntry::BackToBack(_) | ShapeEntry::File(_) => None,
    }
}

/// A number that the file gives, or the usual one.
fn number<T: Copy>(given: Option<&Spanned<T>>, usual: T) -> T {
    given.map_or(usual, |given| given.value)
}

fn switch(given: Option<&Spanned<String>>) -> Result<&'static Model, Problem> {
    model(NodeKind::Switch, given, "quantum-2").map_err(|problem| problem.of("switch"))
}

fn hca(given: Option<&Spanned<String>>) -> Result<&'static Model, Problem> {
    model(NodeKind::Ca, given, "connectx-7").map_err(|problem| problem.of("hca"))
}

/// A device that the file names, or the usual one. Whether it is of that kind is for the shape to
/// say.
fn model(
    kind: NodeKind,
    given: Option<&Spanned<String>>,
    usual: &str,
) -> Result<&'static Model, Problem> {
    let (text, line) = given.map_or((usual, 1), |given| (given.value.as_str(), line_of(given)));
    Model::named(text).ok_or_else(|| {
        let of_kind = MODELS.iter().filter(|model| model.kind == kind);
        let known: Vec<&str> = of_kind.map(|model| model.name).collect();
        let near = meant(text, known.iter().copied());
        let problem = format!("no model {}{near}; known: {}", quoted(text), known.join(", "));
        Problem::at(line, problem)
    })
}

fn fat_tree(entry: &FatTreeEntry) -> Result<Shape, Problem> {
    Ok(Shape::Built(shapes::Shape::FatTree(FatTree {
        levels: number(entry.levels.as_ref(), 2),
        radix: number(entry.radix.as_ref(), 16),
        hosts: number(entry.hosts.as_ref(), 24),
        down: entry.down.as_ref().map(|down| down.value),
        up: entry.up.as_ref().map(|up| up.value),
        ports: number(entry.ports.as_ref(), 1),
        planes: number(entry.planes.as_ref(), 1),
        aggregation_nodes: number(entry.aggregation_nodes.as_ref(), false),
        switch: switch(entry.switch.as_ref())?,
        hca: hca(entry.hca.as_ref())?,
    })))
}

fn back_to_back(entry: &BackToBackEntry) -> Result<Shape, Problem> {
    Ok(Shape::Built(shapes::Shape::BackToBack(BackToBack { hca: hca(entry.hca.as_ref())? })))
}

fn dragonfly_plus(entry: &DragonflyPlusEntry) -> Result<Shape, Problem> {
    Ok(Shape::Built(shapes::Shape::DragonflyPlus(DragonflyPlus {
        groups: number(entry.groups.as_ref(), 3),
        leaves: number(entry.leaves.as_ref(), 2),
        spines: number(entry.spines.as_ref(), 2),
        hosts_per_leaf: number(entry.hosts_per_leaf.as_ref(), 4),
        global: number(entry.global.as_ref(), 1),
        radix: number(entry.radix.as_ref(), 16),
        switch: switch(entry.switch.as_ref())?,
        hca: hca(entry.hca.as_ref())?,
    })))
}

#[cfg(test)]
mod tests {
    use super::super::{Overrides, Scenario};
    use super::*;

    fn shaped(fabric: &str) -> Shape {
        let scenario = Scenario::parse("x.yml", fabric).unwrap();
        scenario.shape(&Overrides::default()).unwrap()
    }

    fn built(fabric: &str) -> Result<Net, String> {
        let scenario = Scenario::parse("x.yml", fabric).map_err(|error| error.to_string())?;
        scenario.net(&Overrides::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_is_a_tree_of_24_hosts() {
        let Shape::Built(shapes::Shape::FatTree(tree)) = shaped("") else { panic!("a tree") };
        assert_eq!((tree.levels, tree.hosts, tree.radix), (2, 24, 16));
        assert_eq!((tree.down, tree.up, tree.ports, tree.planes), (None, None, 1, 1));
        assert_eq!((tree.switch.name, tree.hca.name), ("quantum-2", "connectx-7"));
    }

    #[test]
    fn what_is_usual_can_be_built() {
        for (shape, nodes) in [("fat-tree", 24 + 5), ("back-to-back", 2), ("dragonfly-plus", 36)] {
            assert_eq!(built(&format!("fabric: {{{shape}: {{}}}}")).unwrap().nodes.len(), nodes);
        }
    }

    #[test]
    fn what_is_said_arrives() {
        assert_eq!(shaped("fabric: {file: a/b.topo}"), Shape::File("a/b.topo".into()));
        assert_eq!(
            shaped("fabric: {back-to-back: {hca: connectx-5}}"),
            Shape::Built(shapes::Shape::BackToBack(BackToBack {
                hca: Model::named("connectx-5").unwrap()
            }))
        );
        let text = "fabric: {dragonfly-plus: {groups: 5, leaves: 4, spines: 3, hosts-per-leaf: 2, \
                    global: 6, radix: 32, switch: quantum, hca: connectx-6}}";
        assert_eq!(
            shaped(text),
            Shape::Built(shapes::Shape::DragonflyPlus(DragonflyPlus {
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
        let text = "fabric: {fat-tree: {levels: 3, hosts: 9, radix: 8, down: 3, up: 2, ports: 2, \
                    planes: 4, aggregation-nodes: true, switch: quantum, hca: connectx-6}}";
        assert_eq!(
            shaped(text),
            Shape::Built(shapes::Shape::FatTree(FatTree {
                levels: 3,
                radix: 8,
                hosts: 9,
                down: Some(3),
                up: Some(2),
                ports: 2,
                planes: 4,
                aggregation_nodes: true,
                switch: Model::named("quantum").unwrap(),
                hca: Model::named("connectx-6").unwrap(),
            }))
        );
    }

    #[test]
    fn what_cannot_be_built_is_told_with_its_line() {
        for (text, says) in [
            ("{fat-tree: {hosts: 0}}", "line 1: fabric: hosts is 0, not 1 to 49151"),
            ("\n  fat-tree:\n    levels: 9", "line 3: fabric: levels is 9, not 2 to 3"),
            (
                "\n  fat-tree:\n    radix: 8\n    down: 7",
                "line 2: fabric: a leaf with its down and up needs 11 ports, and a switch has 8",
            ),
            ("\n  fat-tree:\n    hosts: 24\n    up: 0", "line 4: fabric: up is 0, not 1 to"),
            (
                "\n  fat-tree:\n    radix: 4\n    hosts: 99",
                "line 4: fabric: 99 hosts are too many:",
            ),
            (
                "\n  fat-tree:\n    radix: 8\n    hca: quantum",
                "line 4: fabric: model quantum is no ca",
            ),
            ("{back-to-back:\n  {hca: switchx}}", "line 2: fabric: model switchx is no ca"),
            (
                "\n  dragonfly-plus:\n    groups: 3\n    hosts-per-leaf: 0",
                "line 4: fabric: hosts-per-leaf is 0, not 1 to 254",
            ),
            (
                "\n  dragonfly-plus:\n    groups: 3\n    switch: connectx-7",
                "line 4: fabric: model connectx-7 is no switch",
            ),
            (
                "\n  dragonfly-plus:\n    groups: 4",
                "line 2: fabric: 2 global cables of a group cannot be spread evenly over 3 other",
            ),
            ("{file: ''}", "line 1: fabric: file: it must not be empty"),
            (
                "{fat-tree: {hca: conectx-7}}",
                "line 1: fabric: hca: no model \"conectx-7\" (did you mean \"connectx-7\"?)",
            ),
            ("{fat-tree: {switch: fast}}", "line 1: fabric: switch: no model \"fast\"; known: "),
        ] {
            let error = built(&format!("fabric: {text}")).unwrap_err();
            assert!(error.starts_with(&format!("x.yml: {says}")), "{text}: {error}");
        }
    }

    #[test]
    fn a_topology_file_is_read_from_the_scenarios_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("x.yml"), "fabric: {file: a.topo}\nseat: h2").unwrap();
        let scenario = Scenario::read(&path("x.yml")).unwrap();
        let cable = "Switch 4 \"s\"\n[1] \"h1\"\n[2] \"h2\"\n\nHca 1 \"h1\"\n\nHca 1 \"h2\"\n";
        std::fs::write(path("a.topo"), cable).unwrap();
        let story = scenario.story(&Overrides::default()).unwrap();
        assert_eq!(story.net.label(story.seats[0]), "h2[1]");
        // In place of what another scenario says.
        let instead = Overrides { fabric: Some(path("a.topo")), ..Overrides::default() };
        let other = Scenario::parse("y.yml", "fabric: {back-to-back: {}}").unwrap();
        assert_eq!(other.net(&instead).unwrap(), story.net);
        // Its mistakes are told with its own name and lines.
        std::fs::write(path("a.topo"), cable.replace("[2] \"h2\"", "[9] \"h2\"")).unwrap();
        for error in [scenario.net(&Overrides::default()), other.net(&instead)] {
            let error = error.unwrap_err().to_string();
            let begins = format!("{}: line 3: ", path("a.topo").display());
            assert!(error.starts_with(&begins), "{error}");
        }
    }
}
