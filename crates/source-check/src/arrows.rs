//! Which file takes which names from which file, and whether the arrows run one way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as FilePath, PathBuf};

use crate::modules::{ModuleId, Modules, Target};
use crate::syntax::Path;

/// The names that a file takes from each other file.
#[derive(Default)]
pub struct Arrows(BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>);

impl Arrows {
    /// The arrows between all files, also of different crates.
    pub fn find(modules: &Modules) -> Self {
        let mut arrows = Self::default();
        for (id, module) in modules.all.iter().enumerate() {
            for path in &module.declarations.paths {
                arrows.add(modules, id, path);
            }
            for import in &module.declarations.imports {
                // A module exports what those below define. It depends on them only if its own code names it.
                if !import.public || module.children.is_empty() {
                    arrows.add(modules, id, &import.path);
                }
            }
        }
        arrows
    }

    fn add(&mut self, modules: &Modules, from: ModuleId, path: &Path) {
        let Some(Target::Item(module, name)) = modules.resolve(from, path) else { return };
        let (from, to) = (&modules.all[from].file, &modules.all[module].file);
        if from != to {
            let targets = self.0.entry(from.clone()).or_default();
            targets.entry(to.clone()).or_default().insert(name.to_owned());
        }
    }

    /// How many files import how many others.
    pub fn count(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// The arrows of each group of files that import each other in a loop.
    pub fn circles(&self) -> Vec<String> {
        let reached: BTreeMap<_, _> =
            self.0.keys().map(|file| (file, self.reachable(file))).collect();
        let circle_of = |file| -> BTreeSet<&PathBuf> {
            let back = |other: &&PathBuf| reached.get(*other).is_some_and(|it| it.contains(file));
            reached[file].iter().copied().filter(back).collect()
        };
        let circles: BTreeSet<_> =
            self.0.keys().map(circle_of).filter(|circle| !circle.is_empty()).collect();
        let text = |circle: &BTreeSet<&PathBuf>| {
            let arrows = circle
                .iter()
                .flat_map(|&from| self.0[from].iter().map(move |(to, names)| (from, to, names)));
            let inside = arrows.filter(|(_, to, _)| circle.contains(to));
            let lines: Vec<String> =
                inside.map(|(from, to, names)| arrow(from, to, names)).collect();
            format!("circle of {} files:\n  {}", circle.len(), lines.join("\n  "))
        };
        circles.iter().map(text).collect()
    }

    fn reachable(&self, file: &PathBuf) -> BTreeSet<&PathBuf> {
        let targets = |file| self.0.get(file).into_iter().flat_map(BTreeMap::keys);
        let mut reached = BTreeSet::new();
        let mut open: Vec<&PathBuf> = targets(file).collect();
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(targets(next));
            }
        }
        reached
    }

    /// `layers`: crates and modules of the program, lowest first. Returns those that it does not name, the names that
    /// do not exist, and the arrows that run up.
    pub fn against(&self, layers: &str, files: &BTreeSet<&FilePath>) -> Vec<String> {
        let lines =
            layers.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let levels: BTreeMap<&str, usize> =
            lines.enumerate().map(|(level, name)| (name, level)).collect();
        let units: BTreeSet<String> = files.iter().map(|file| unit(file)).collect();
        let unlisted = units.iter().filter(|unit| !levels.contains_key(unit.as_str()));
        let stale = levels.keys().filter(|name| !units.contains(**name));
        let mut found: Vec<String> = unlisted
            .map(|unit| format!("not in layers.txt: {unit}"))
            .chain(stale.map(|name| format!("does not exist, but in layers.txt: {name}")))
            .collect();
        for (from, targets) in &self.0 {
            let level = levels.get(unit(from).as_str());
            let up = targets
                .iter()
                .filter(|(to, _)| level.is_some() && level < levels.get(unit(to).as_str()));
            found
                .extend(up.map(|(to, names)| format!("up the layers: {}", arrow(from, to, names))));
        }
        found
    }
}

fn arrow(from: &FilePath, to: &FilePath, names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("{} -> {}: {}", from.display(), to.display(), names.join(", "))
}

/// The crate or module of the program that a file belongs to: `ib-mad`, `src/metrics`.
fn unit(file: &FilePath) -> String {
    let path = file.with_extension("");
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    match (parts.next().as_deref(), parts.next()) {
        (Some("crates"), Some(name)) => name.into_owned(),
        (_, module) => format!("src/{}", module.unwrap_or_default()),
    }
}
