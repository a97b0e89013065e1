//! Which jobs run on which hosts: read from the output of Slurm's commands, or from the files that a prolog writes.
//!
//! All of it comes from outside: bytes, jobs and hosts are limited, and what cannot be read is counted or is an error.
//!
//! ```
//! let text = "4711|alice|gpu|RUNNING|1700000000|1700086400|gpu[001-002]\n";
//! let list = job_list::squeue_text(text).unwrap();
//! assert_eq!(list.jobs[0].hosts, ["gpu001", "gpu002"]);
//! ```

mod files;
mod job;
mod slurm_json;
mod slurm_text;

pub use files::{HostFile, HostFiles, gpu_of_file};
pub use job::{Job, JobList, JobListError, MAX_JOBS, MAX_PLACEMENTS, hosts_of, unix_time};
pub use slurm_json::squeue_json;
pub use slurm_text::{SINFO_FORMAT, SQUEUE_FORMAT, drained_text, squeue_text};

#[cfg(test)]
mod tests;
