//! The tree of modules, and where a name in it is defined.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::path::{Path as FilePath, PathBuf};

use proc_macro2::TokenStream;

use crate::syntax::{Declarations, Path};

/// Index of a module in [`Modules::all`].
pub type ModuleId = usize;

/// Names that were looked up: modules may import all names of each other.
type Seen<'a> = BTreeSet<(ModuleId, &'a str)>;

/// A module of a crate.
pub struct Module {
    /// The root of the crate that it belongs to.
    root: ModuleId,
    parent: Option<ModuleId>,
    /// The file in which it stands.
    pub file: PathBuf,
    /// The modules below. It may export what they define.
    pub children: BTreeMap<String, ModuleId>,
    /// What it declares.
    pub declarations: Declarations,
}

/// All modules of all crates.
pub struct Modules<'a> {
    /// In the order in which they were read.
    pub all: Vec<Module>,
    /// The roots of libraries by the names of their crates.
    libraries: BTreeMap<String, ModuleId>,
    /// Reads a file. `None`: it does not exist.
    read: &'a dyn Fn(&FilePath) -> Option<String>,
}

/// What a path means.
pub enum Target<'a> {
    Module(ModuleId),
    /// A named item that a module defines.
    Item(ModuleId, &'a str),
}

impl<'r> Modules<'r> {
    /// No modules yet. `read` reads a file, if it exists.
    pub fn new(read: &'r dyn Fn(&FilePath) -> Option<String>) -> Self {
        Self { all: Vec::new(), libraries: BTreeMap::new(), read }
    }

    /// Reads the library and the program of a package, if they exist.
    pub fn add_package(&mut self, name: &str, folder: &str) -> Result<(), String> {
        for root in ["lib.rs", "main.rs"] {
            let file = FilePath::new(folder).join(root);
            if (self.read)(&file).is_some() {
                let root = self.add_file(&file, None)?;
                self.libraries.entry(name.replace('-', "_")).or_insert(root);
            }
        }
        Ok(())
    }

    fn add_file(&mut self, file: &FilePath, parent: Option<ModuleId>) -> Result<ModuleId, String> {
        let shown = file.display();
        let text = (self.read)(file)
            .ok_or_else(|| format!("{shown}: no such file, but a `mod` names it"))?;
        let tokens: TokenStream = text.parse().map_err(|e| format!("{shown}: {e}"))?;
        let below = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") => file.with_file_name(""),
            _ => file.with_extension(""),
        };
        self.add(Declarations::read(tokens), file, &below, parent)
    }

    /// `below`: the folder of the modules below.
    fn add(
        &mut self,
        mut declarations: Declarations,
        file: &FilePath,
        below: &FilePath,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let id = self.all.len();
        let root = parent.map_or(id, |parent| self.all[parent].root);
        let modules = take(&mut declarations.modules);
        let module =
            Module { root, parent, file: file.to_owned(), children: BTreeMap::new(), declarations };
        self.all.push(module);
        for (name, inline) in modules {
            let path = below.join(&name);
            let nested = path.join("mod.rs");
            let child = match inline {
                Some(inline) => self.add(inline, file, &path, Some(id))?,
                None if (self.read)(&nested).is_some() => self.add_file(&nested, Some(id))?,
                None => self.add_file(&path.with_extension("rs"), Some(id))?,
            };
            self.all[id].children.insert(name, child);
        }
        Ok(id)
    }

    /// What a path in a module means. `None`: something outside of the workspace, or a local name.
    pub fn resolve<'a>(&'a self, from: ModuleId, path: &'a Path) -> Option<Target<'a>> {
        self.resolve_unseen(from, path, &mut Seen::new())
    }

    fn resolve_unseen<'a>(
        &'a self,
        from: ModuleId,
        path: &'a Path,
        seen: &mut Seen<'a>,
    ) -> Option<Target<'a>> {
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(self.all[from].root),
            "self" => Target::Module(from),
            "super" => Target::Module(self.all[from].parent?),
            name => {
                match (self.lookup(from, name, rest.is_empty(), seen), self.libraries.get(name)) {
                    (Some(target), _) => target,
                    (None, Some(&root)) => Target::Module(root),
                    (None, None) => self.macro_of(self.all[from].root, name.strip_suffix('!')?)?,
                }
            }
        };
        for (index, name) in rest.iter().enumerate() {
            target = match target {
                Target::Module(module) if name == "super" => {
                    Target::Module(self.all[module].parent?)
                }
                // What is not found is defined by a macro of the module.
                Target::Module(module) => self
                    .lookup(module, name, index + 1 == rest.len(), seen)
                    .unwrap_or(Target::Item(module, name)),
                Target::Item(..) => break, // followed by a variant or an associated function
            };
        }
        Some(target)
    }

    /// Where a name of a module is defined. `last`: it ends a path, so an item comes before a module of this name.
    fn lookup<'a>(
        &'a self,
        module: ModuleId,
        name: &'a str,
        last: bool,
        seen: &mut Seen<'a>,
    ) -> Option<Target<'a>> {
        if !seen.insert((module, name)) {
            return None;
        }
        let Module { root, children, declarations, .. } = &self.all[module];
        let child = children.get(name).map(|&child| Target::Module(child));
        let item = declarations.items.contains(name).then_some(Target::Item(module, name));
        if let Some(target) = if last { item.or(child) } else { child.or(item) } {
            return Some(target);
        }
        if let Some(import) = declarations.imports.iter().find(|import| import.name == name) {
            return self.resolve_unseen(module, &import.path, seen);
        }
        let mut globs = declarations.imports.iter().filter(|import| import.name == "*");
        let imported =
            globs.find_map(|glob| match self.resolve_unseen(module, &glob.path, seen)? {
                Target::Module(all) => self.lookup(all, name, last, seen),
                Target::Item(..) => None, // the variants of an enum
            });
        // `#[macro_export]` exports from the root.
        imported.or_else(|| self.macro_of(*root, name).filter(|_| *root == module))
    }

    fn macro_of<'a>(&'a self, root: ModuleId, name: &'a str) -> Option<Target<'a>> {
        let found =
            self.all.iter().position(|it| it.root == root && it.declarations.macros.contains(name));
        found.map(|module| Target::Item(module, name))
    }
}
