//! Checks that imports between the source files of the workspace run one way: no files form a circle, nothing imports
//! from a higher layer (`layers.txt`), and nothing is exported under another name. Code of tests is not read.
//!
//! Run it in the root of the repository: `cargo run -p source-check`.

mod arrows;
mod modules;
mod syntax;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use arrows::Arrows;
use modules::Modules;

fn main() -> ExitCode {
    match read_workspace() {
        Ok(counts) => {
            println!("{counts}");
            ExitCode::SUCCESS
        }
        Err(findings) => {
            println!("{findings}");
            ExitCode::FAILURE
        }
    }
}

fn read_workspace() -> Result<String, String> {
    let read = |file: &Path| fs::read_to_string(file).ok();
    let mut modules = Modules::new(&read);
    modules.add_package("fabric-exporter", "src")?;
    let unreadable = |e| format!("crates: {e}");
    for folder in fs::read_dir("crates").map_err(unreadable)? {
        let name = folder.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        modules.add_package(&name, &format!("crates/{name}/src"))?;
    }
    let layers = "crates/source-check/layers.txt";
    check(&modules, &fs::read_to_string(layers).map_err(|e| format!("{layers}: {e}"))?)
}

/// Returns counts, or what was found.
fn check(modules: &Modules, layers: &str) -> Result<String, String> {
    let arrows = Arrows::find(modules);
    let files: BTreeSet<&Path> = modules.all.iter().map(|module| module.file.as_path()).collect();
    let mut found = arrows.circles();
    found.extend(arrows.against(layers, &files));
    found.extend(renames(modules));
    if found.is_empty() {
        return Ok(format!(
            "source-check: {} files, {} arrows, no circle",
            files.len(),
            arrows.count()
        ));
    }
    found.push(format!(
        "source-check: {} findings. Move what both files of a circle need into a file below them; export an item \
         under its own name; order the layers in crates/source-check/layers.txt.",
        found.len(),
    ));
    Err(found.join("\n"))
}

/// `pub use x as y`: who searches for the file of `y` finds none.
fn renames(modules: &Modules) -> Vec<String> {
    let mut found = Vec::new();
    for module in &modules.all {
        let exports = module.declarations.imports.iter().filter(|import| import.public);
        for export in exports.filter(|it| !["*", "_"].contains(&it.name.as_str())) {
            if export.path.last() != Some(&export.name) {
                let (file, path) = (module.file.display(), export.path.join("::"));
                found.push(format!(
                    "exported under another name: {file}: {path} as {}",
                    export.name
                ));
            }
        }
    }
    found
}
