//! The output of `squeue --json`, whose form has changed with the versions of Slurm (its `data_parser`).
//!
//! Numbers are plain, or `{"set": …, "infinite": …, "number": …}` since 23.02. A state is a text, or a list of a state
//! and its flags. The hosts are a text in `nodes`, and in `job_resources` a text, a list or objects. So each field may
//! be anything here, and one that is not of a known form counts as missing.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde_json::Value;

use crate::job::{Collected, Job, JobList, JobListError, has_hosts, hosts_of, label};

/// The document, of which only this is kept.
#[derive(Deserialize)]
struct Document {
    jobs: Option<Jobs>,
    #[serde(default)]
    errors: Value,
}

/// The jobs, each reduced before the next one is read: as text one takes some 5 KB.
struct Jobs(Result<Collected, JobListError>);

impl<'de> Deserialize<'de> for Jobs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(JobsVisitor)
    }
}

struct JobsVisitor;

impl<'de> Visitor<'de> for JobsVisitor {
    type Value = Jobs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut jobs: A) -> Result<Jobs, A::Error> {
        let mut collected = Collected::default();
        while let Some(job) = jobs.next_element::<RawJob>()? {
            if let Err(error) = job.collect(&mut collected) {
                // The rest must be read, or serde_json reports another error.
                while jobs.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Jobs(Err(error)));
            }
        }
        Ok(Jobs(Ok(collected)))
    }

    fn visit_unit<E: Error>(self) -> Result<Jobs, E> {
        Err(Error::invalid_type(Unexpected::Unit, &self))
    }
}

/// A job as Slurm writes it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawJob {
    job_id: Value,
    array_job_id: Value,
    array_task_id: Value,
    user_name: Value,
    partition: Value,
    job_state: Value,
    start_time: Value,
    end_time: Value,
    nodes: Value,
    job_resources: Value,
    tres_alloc_str: Value,
}

impl RawJob {
    fn collect(self, collected: &mut Collected) -> Result<(), JobListError> {
        if !self.has_hosts() {
            return Ok(());
        }
        let Some(hosts) = self.hosts() else {
            collected.add_unreadable();
            return Ok(());
        };
        let time = |value: &Value| number(value).filter(|seconds| *seconds > 0);
        collected.add(Job {
            id: self.id(),
            user: self.user_name.as_str().and_then(label),
            partition: self.partition.as_str().and_then(label),
            hosts,
            gpus: self.tres_alloc_str.as_str().and_then(gpus),
            start: time(&self.start_time),
            end: time(&self.end_time),
        })
    }

    fn has_hosts(&self) -> bool {
        match &self.job_state {
            Value::String(state) => has_hosts(state),
            Value::Array(states) => states.iter().filter_map(Value::as_str).any(has_hosts),
            _ => false,
        }
    }

    /// As users know it: of an array with the number of the task.
    fn id(&self) -> String {
        let of_array = number(&self.array_job_id).filter(|id| *id > 0);
        match (of_array.zip(number(&self.array_task_id)), number(&self.job_id)) {
            (Some((array, task)), _) => format!("{array}_{task}"),
            (None, Some(id)) => id.to_string(),
            (None, None) => String::new(),
        }
    }

    /// `None` if they cannot be read.
    fn hosts(&self) -> Option<Vec<String>> {
        let resources = &self.job_resources;
        let places = [
            &self.nodes,
            &resources["nodes"],
            &resources["nodes"]["list"],
            &resources["nodes"]["allocation"],
            &resources["allocated_nodes"],
        ];
        places.into_iter().filter(|it| !it.is_null()).find_map(|place| match place {
            Value::String(list) => match hosts_of(list) {
                Ok(hosts) if hosts.is_empty() => None,
                hosts => Some(hosts.ok()),
            },
            Value::Array(nodes) => named(nodes.iter()).map(Some),
            // In 21.08 the keys are numbers.
            Value::Object(nodes) => named(nodes.values()).map(Some),
            _ => None,
        })?
    }
}

/// The names of objects, each of a node; `None` if there are none.
fn named<'a>(nodes: impl Iterator<Item = &'a Value>) -> Option<Vec<String>> {
    let name = |node: &Value| {
        let name = ["name", "nodename", "hostname"].into_iter().find_map(|key| node[key].as_str());
        name.and_then(label)
    };
    let names: Vec<String> = nodes.filter_map(name).collect();
    (!names.is_empty()).then_some(names)
}

/// A number in one of its forms; `None` if it is not set or infinite.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        Value::Object(object) => {
            let is = |key: &str, wanted: bool| object.get(key) == Some(&Value::Bool(wanted));
            let is_known = !is("infinite", true) && !is("set", false);
            object.get("number").and_then(Value::as_u64).filter(|_| is_known)
        }
        _ => None,
    }
}

/// The GPUs of `cpu=64,node=2,gres/gpu=16,gres/gpu:h100=16`. A site that does not account for them has none here, which
/// does not mean that the job has none.
fn gpus(tres: &str) -> Option<u64> {
    let items = || tres.split(',').filter_map(|item| item.split_once('='));
    let all = items().find(|(key, _)| *key == "gres/gpu").and_then(|(_, count)| count.parse().ok());
    all.or_else(|| {
        let typed = items().filter(|(key, _)| key.starts_with("gres/gpu:"));
        let counts = typed.filter_map(|(_, count)| count.parse::<u64>().ok());
        counts.reduce(u64::saturating_add)
    })
}

/// Reads the output of `squeue --json`.
pub fn squeue_json(bytes: &[u8]) -> Result<JobList, JobListError> {
    let wrong = |error: serde_json::Error| JobListError::Json(error.to_string());
    let document: Document = serde_json::from_slice(bytes).map_err(wrong)?;
    let list = document.jobs.map(|Jobs(collected)| collected).transpose()?.map(|it| it.list);
    // Some versions end with success, although the controller did not respond.
    let error = document.errors.as_array().and_then(|errors| errors.first());
    match (list, error) {
        (Some(list), None) => Ok(list),
        (Some(list), Some(_)) if !list.jobs.is_empty() => Ok(list),
        (_, Some(error)) => Err(JobListError::Slurm(told(error))),
        (None, None) => Err(JobListError::NoJobs),
    }
}

fn told(error: &Value) -> String {
    let text = ["error", "description", "source"].into_iter().find_map(|key| error[key].as_str());
    text.or(error.as_str()).and_then(label).unwrap_or_else(|| "an error".to_owned())
}
