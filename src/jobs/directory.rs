//! The files of hosts in a directory: `DIRECTORY/HOST` with the jobs of a host, or `DIRECTORY/HOST/GPU`.

use std::fs::{DirEntry, ReadDir};
use std::io::{self, ErrorKind};
use std::path::Path;

use job_list::{HostFile, HostFiles, JobList, gpu_of_file};
use yaml_config::file;

/// The most entries: more hosts than any cluster has.
const MAX_HOSTS: usize = 100_000;

/// The most files of a host: those of its GPUs and their parts.
const MAX_FILES: usize = 256;

/// The largest file: some thousand jobs of one host.
const MAX_FILE: u64 = 64 << 10;

/// All files together.
const MAX_BYTES: usize = 64 << 20;

/// Reads all files. A file that disappears meanwhile is one of a job that has ended. One that cannot be read is counted.
pub(super) fn read(folder: &Path) -> Result<JobList, String> {
    let wrong = |problem: &dyn std::fmt::Display| format!("{}: {problem}", folder.display());
    let mut reader = Reader::default();
    for (count, entry) in entries(folder).map_err(|error| wrong(&error))?.enumerate() {
        if count >= MAX_HOSTS {
            return Err(wrong(&format!("more than {MAX_HOSTS} entries")));
        }
        let entry = entry.map_err(|error| wrong(&error))?;
        let Some(host) = visible_name(&entry) else { continue };
        let files = reader.files_of(&entry);
        reader.files.add(&host, &files);
        if reader.bytes > MAX_BYTES {
            return Err(wrong(&format!("more than {MAX_BYTES} bytes")));
        }
    }
    reader.files.finish().map_err(|error| wrong(&error))
}

fn entries(folder: &Path) -> io::Result<ReadDir> {
    std::fs::read_dir(folder)
}

/// The name of an entry, unless it is hidden: programs write files that are not complete under such names.
fn visible_name(entry: &DirEntry) -> Option<String> {
    let name = entry.file_name().into_string().ok()?;
    Some(name).filter(|name| !name.starts_with('.'))
}

#[derive(Default)]
struct Reader {
    files: HostFiles,
    bytes: usize,
}

impl Reader {
    /// The files of a host: its own one, or those of its GPUs.
    fn files_of(&mut self, entry: &DirEntry) -> Vec<HostFile> {
        let path = entry.path();
        // Follows links: a host may have two names.
        if !path.is_dir() {
            return self
                .text_of(&path)
                .map(|text| HostFile { gpu: None, text })
                .into_iter()
                .collect();
        }
        let Ok(gpus) = entries(&path) else {
            self.files.add_unreadable();
            return Vec::new();
        };
        let mut files = Vec::new();
        for entry in gpus.flatten().take(MAX_FILES) {
            let gpu = visible_name(&entry).and_then(|name| gpu_of_file(&name));
            let Some(gpu) = gpu else { continue };
            let text = self.text_of(&entry.path());
            files.extend(text.map(|text| HostFile { gpu: Some(gpu), text }));
        }
        files
    }

    fn text_of(&mut self, path: &Path) -> Option<String> {
        match file::read(path, MAX_FILE) {
            Ok(bytes) => {
                self.bytes = self.bytes.saturating_add(bytes.len());
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(_) => {
                self.files.add_unreadable();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_hosts_and_directories_of_gpus_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
        std::fs::create_dir(folder.path().join("gpu3")).unwrap();
        write("gpu1", "4711 user=alice gpus=8\n");
        write("gpu2", "4711 gpus=8\n");
        write(".gpu9.tmp", "4712\n");
        write("gpu3/0", "9\n");
        write("gpu3/1", "9\n");
        write("gpu3/README", "10\n");
        write("gpu4", &"1\n".repeat(40_000));
        std::os::unix::fs::symlink("nowhere", folder.path().join("gpu5")).unwrap();
        let list = read(folder.path()).unwrap();
        let told: Vec<_> =
            list.jobs.iter().map(|it| (&*it.id, it.hosts.join(","), it.gpus)).collect();
        let expected =
            [("4711", "gpu1,gpu2".to_owned(), Some(16)), ("9", "gpu3".to_owned(), Some(2))];
        assert_eq!(told, expected);
        assert_eq!(list.unreadable, 1, "the file that is too large");
    }

    #[test]
    fn missing_directory_is_a_problem_and_an_empty_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), Ok(JobList::default()));
        let problem = read(&folder.path().join("jobs")).unwrap_err();
        assert!(problem.contains("/jobs: No such file"), "{problem}");
    }
}
