//! Files of hosts, which a prolog writes and an epilog removes.
//!
//! A host has a file, whose lines are its jobs; or a directory with a file for each GPU, as the DCGM exporter reads it
//! (`--hpc-job-mapping-dir`): then the GPUs of a job are known, too.

use std::collections::{BTreeMap, BTreeSet};

use crate::job::{Collected, Job, JobList, JobListError, label, unix_time};

/// A file of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFile {
    /// The GPU, of a file for one GPU.
    pub gpu: Option<u64>,
    /// Its lines.
    pub text: String,
}

/// The GPU whose jobs a file has, by its name: `0`, or `0.1` for a part of it (MIG). `None` if it is no such file.
pub fn gpu_of_file(name: &str) -> Option<u64> {
    let (gpu, part) = name.split_once('.').unwrap_or((name, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    gpu.parse().ok().filter(|_| is_number(gpu) && is_number(part))
}

/// The jobs of files of hosts.
#[derive(Debug, Default)]
pub struct HostFiles {
    jobs: BTreeMap<String, Job>,
    unreadable: usize,
}

/// What the lines of a host say of a job.
#[derive(Debug, Default)]
struct OnHost {
    job: Job,
    gpus: BTreeSet<u64>,
}

impl HostFiles {
    /// Adds the files of a host.
    pub fn add(&mut self, host: &str, files: &[HostFile]) {
        let Some(host) = label(host) else { return };
        let mut found: BTreeMap<String, OnHost> = BTreeMap::new();
        for file in files {
            for line in file.text.lines() {
                let line = line.split('#').next().unwrap_or_default();
                let mut words = line.split_whitespace();
                let Some(id) = words.next() else { continue };
                let Some(id) = label(id).filter(|label| label == id) else {
                    self.unreadable += 1;
                    continue;
                };
                let on_host = found.entry(id).or_default();
                on_host.gpus.extend(file.gpu);
                words.for_each(|word| on_host.read(word));
            }
        }
        for (id, OnHost { job: told, gpus }) in found {
            let job = self.jobs.entry(id.clone()).or_insert_with(|| Job { id, ..Job::default() });
            job.hosts.push(host.clone());
            let counted = Some(gpus.len() as u64).filter(|count| *count > 0);
            let own = told.gpus.or(counted);
            job.gpus =
                job.gpus.zip(own).map(|(sum, own)| sum.saturating_add(own)).or(job.gpus).or(own);
            job.user = job.user.take().or(told.user);
            job.partition = job.partition.take().or(told.partition);
            job.start = job.start.into_iter().chain(told.start).min();
            job.end = job.end.into_iter().chain(told.end).max();
        }
    }

    /// Counts a file that cannot be read.
    pub fn add_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// All jobs.
    pub fn finish(self) -> Result<JobList, JobListError> {
        let mut collected = Collected::default();
        for job in self.jobs.into_values() {
            collected.add(job)?;
        }
        collected.list.unreadable += self.unreadable;
        Ok(collected.list)
    }
}

impl OnHost {
    /// Reads `user=alice` and the like. Other words are for other programs.
    fn read(&mut self, word: &str) {
        let Some((key, value)) = word.split_once('=') else { return };
        match key {
            "user" => self.job.user = label(value),
            "partition" => self.job.partition = label(value),
            "start" => self.job.start = unix_time(value),
            "end" => self.job.end = unix_time(value),
            "gpus" => self.job.gpus = value.parse().ok(),
            _ => {}
        }
    }
}
