//! Lists of hosts in arguments: as Slurm writes them, in a file or on standard input.

use std::io::Read;

use crate::exit::Fatal;

/// The largest file of hosts.
const MAX_BYTES: u64 = 16 << 20;

/// The hosts of an argument: a list, a file if it contains a slash, or - for standard input. `option` begins errors.
pub(super) fn read(option: &str, list: &str) -> Result<Vec<String>, Fatal> {
    let wrong = |error: &dyn std::fmt::Display| Fatal::usage(format!("{option}: {error}"));
    let text = match list {
        "-" => text(&mut std::io::stdin().lock()).map_err(|error| wrong(&error))?,
        // As Slurm tells files from lists.
        path if path.contains('/') => {
            let read = std::fs::File::open(path).and_then(|mut file| text(&mut file));
            read.map_err(|error| wrong(&format!("{path}: {error}")))?
        }
        list => list.to_owned(),
    };
    hostlist::parse(&text).map_err(|error| wrong(&error))
}

/// A host's name without its domain: schedulers know the one, and NodeDescriptions the other.
pub(super) fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Hosts without comments.
fn text(from: &mut dyn Read) -> std::io::Result<String> {
    let mut text = String::new();
    from.take(MAX_BYTES).read_to_string(&mut text)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_or_file_names_hosts() {
        assert_eq!(read("--drained", "gpu[1-2],login").unwrap(), ["gpu1", "gpu2", "login"]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        std::fs::write(&file, "# drained\ngpu[01-02] # two\nlogin\n").unwrap();
        assert_eq!(read("--drained", file.to_str().unwrap()).unwrap(), ["gpu01", "gpu02", "login"]);
        let missing = read("--drained", "./none").unwrap_err().message;
        assert!(missing.starts_with("--drained: ./none: No such file"), "{missing}");
        let wrong = read("--drained", "gpu[1-").unwrap_err().message;
        assert!(wrong.starts_with("--drained: "), "{wrong}");
        assert_eq!(short("gpu1.cluster"), "gpu1");
    }
}
