//! The output of a scheduler, and the files of hosts.

use job_list::{HostFile, HostFiles, JobList, drained_text, gpu_of_file, squeue_json, squeue_text};

/// The first byte says what the rest is.
pub(super) fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    let list = match kind % 4 {
        0 => squeue_json(bytes).ok(),
        1 => squeue_text(&text).ok(),
        2 => {
            if let Ok(hosts) = drained_text(&text) {
                assert!(hosts.is_sorted() && hosts.iter().all(|host| !host.is_empty()));
            }
            return;
        }
        _ => {
            let (name, text) = text.split_once('\n').unwrap_or((&text, ""));
            let mut files = HostFiles::default();
            files.add(name, &[HostFile { gpu: gpu_of_file(name), text: text.to_owned() }]);
            files.finish().ok()
        }
    };
    let Some(list) = list else { return };
    for job in &list.jobs {
        assert!(!job.id.is_empty() && !job.hosts.is_empty() && job.hosts.is_sorted());
    }
    // A process passes them on in this form.
    let passed: JobList = serde_json::from_slice(&serde_json::to_vec(&list).unwrap()).unwrap();
    assert_eq!(passed, list);
}
