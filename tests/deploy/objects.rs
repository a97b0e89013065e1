//! The chart as Helm renders it, for each set of values.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::judges::{script, text, yaml};
use test_rig::{rules, tools};

pub const CHART: &str = "deploy/helm/fabric-exporter";
pub const NAMESPACE: &str = "watching";

/// What is to be rendered.
pub struct Job {
    pub values: Value,
    pub release: &'static str,
    pub namespace: &'static str,
}

impl Job {
    pub fn new(values: Value) -> Self {
        Job { values, release: "ib", namespace: NAMESPACE }
    }
}

/// What Helm says.
#[derive(Deserialize)]
pub struct Outcome {
    /// Why it refuses.
    pub error: Option<String>,
    /// What came of each template.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    #[serde(default)]
    pub lint: Vec<Value>,
    /// Bytes of the chart as an archive.
    #[serde(default)]
    pub packed: u64,
    #[serde(default)]
    pub packed_is_the_same: bool,
}

impl Outcome {
    /// What came of each template but the notes.
    pub fn manifests(&self) -> impl Iterator<Item = (&String, &String)> {
        assert_eq!(self.error, None);
        self.files.iter().filter(|(name, _)| !name.contains("NOTES"))
    }

    /// The objects that Kubernetes would get.
    pub fn objects(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for (name, text) in self.manifests() {
            let read: Vec<Value> = serde_saphyr::from_multiple(text)
                .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            found.extend(read.into_iter().filter(|it| !it.is_null()));
        }
        found
    }
}

pub fn render(jobs: &[Job]) -> Vec<Outcome> {
    let chart = rules::path(CHART);
    let asked: Vec<Value> = jobs
        .iter()
        .map(|job| json!({"chart": chart, "values": job.values, "name": job.release, "namespace": job.namespace}))
        .collect();
    let said = tools::answer(&mut script("chart.py"), &json!(asked).to_string());
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The sets of values: none, and those in the chart's ci/, by their names.
pub fn sets() -> BTreeMap<String, Value> {
    let files = rules::files(&format!("{CHART}/ci"), "-values.yaml");
    let named = files.iter().map(|path| {
        let name = rules::file_name(path);
        (name.strip_suffix("-values.yaml").unwrap().to_owned(), yaml(path))
    });
    std::iter::once(("default".to_owned(), json!({}))).chain(named).collect()
}

/// What Helm says of each of them.
pub fn outcomes() -> &'static BTreeMap<String, Outcome> {
    static MADE: OnceLock<BTreeMap<String, Outcome>> = OnceLock::new();
    MADE.get_or_init(|| {
        let (names, values): (Vec<_>, Vec<_>) = sets().into_iter().unzip();
        let jobs: Vec<Job> = values.into_iter().map(Job::new).collect();
        names.into_iter().zip(render(&jobs)).collect()
    })
}

/// All objects of all sets, each with the name of its set.
pub fn all() -> Vec<(&'static str, Value)> {
    let sets = outcomes().iter();
    sets.flat_map(|(set, made)| made.objects().into_iter().map(move |it| (set.as_str(), it)))
        .collect()
}

pub fn of_set(set: &str) -> Vec<Value> {
    outcomes()[set].objects()
}

pub fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub fn shown(object: &Value) -> String {
    format!("{} {}", kind(object), name(object))
}

pub fn is_monitoring(object: &Value) -> bool {
    text(object, "/apiVersion").starts_with("monitoring.coreos.com/")
}
