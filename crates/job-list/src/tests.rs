//! Outputs in the forms of several versions of Slurm.

use proptest::prelude::*;

use super::*;

fn job(id: &str, hosts: &[&str]) -> Job {
    Job {
        id: id.into(),
        user: Some("alice".into()),
        partition: Some("gpu".into()),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        gpus: None,
        start: Some(1_700_000_000),
        end: Some(1_700_086_400),
    }
}

/// 21.08: plain numbers, states as text, hosts as objects whose keys are numbers.
const SLURM_21_08: &str = r#"{
  "meta": {"Slurm": {"version": {"major": 21, "micro": 8, "minor": 8}, "release": "21.08.8"}},
  "errors": [],
  "jobs": [
    {"account": "a", "array_job_id": 0, "array_task_id": null, "job_id": 4711, "job_state": "RUNNING",
     "user_name": "alice", "partition": "gpu", "start_time": 1700000000, "end_time": 1700086400,
     "nodes": "gpu[001-002]", "tres_alloc_str": "cpu=64,mem=512G,node=2,billing=64,gres/gpu=16",
     "job_resources": {"nodes": "gpu[001-002]", "allocated_cpus": 64,
       "allocated_nodes": {"0": {"sockets": {}, "memory": 1}, "1": {"sockets": {}}}}},
    {"job_id": 4712, "job_state": "PENDING", "nodes": "", "start_time": 0, "end_time": 0, "job_resources": {}}
  ]}"#;

/// 22.05: the hosts in `job_resources` are objects of a list.
const SLURM_22_05: &str = r#"{
  "meta": {"plugin": {"type": "openapi/v0.0.38"}}, "errors": [],
  "jobs": [
    {"job_id": 4711, "array_job_id": 0, "job_state": "RUNNING", "user_name": "alice", "partition": "gpu",
     "start_time": 1700000000, "end_time": 1700086400, "nodes": "",
     "tres_alloc_str": "cpu=64,node=2,gres/gpu:h100=8,gres/gpu:a100=8",
     "job_resources": {"nodes": "", "allocated_nodes": [{"nodename": "gpu001"}, {"nodename": "gpu002"}]}},
    {"job_id": 4713, "job_state": "COMPLETING", "nodes": "gpu003"}
  ]}"#;

/// 23.11 (data_parser v0.0.40): numbers as objects, states as lists, `job_resources.nodes` as a text.
const SLURM_23_11: &str = r#"{
  "jobs": [
    {"job_id": 4711, "array_job_id": {"set": true, "infinite": false, "number": 0},
     "array_task_id": {"set": false, "infinite": false, "number": 0}, "job_state": ["RUNNING"],
     "user_name": "alice", "partition": "gpu",
     "start_time": {"set": true, "infinite": false, "number": 1700000000},
     "end_time": {"set": true, "infinite": false, "number": 1700086400},
     "nodes": "gpu[001-002]", "tres_alloc_str": "cpu=64,gres/gpu=16",
     "job_resources": {"nodes": "gpu[001-002]", "allocated_cores": 64}},
    {"job_id": 4714, "job_state": ["CANCELLED", "COMPLETING"], "nodes": "gpu003"}
  ],
  "last_backfill": {"set": true, "infinite": false, "number": 1700000001}, "meta": {}, "errors": [], "warnings": []}"#;

/// 24.05 and 24.11 (v0.0.41, v0.0.42): `job_resources.nodes` is an object.
const SLURM_24: &str = r#"{
  "jobs": [
    {"job_id": 4711, "job_state": ["RUNNING", "CONFIGURING"], "user_name": "alice", "partition": "gpu",
     "start_time": {"set": true, "infinite": false, "number": 1700000000},
     "end_time": {"set": true, "infinite": false, "number": 1700086400},
     "nodes": "", "tres_alloc_str": "cpu=64,gres/gpu=16",
     "job_resources": {"select_type": ["CPU"], "nodes": {"count": 2, "list": "gpu[001-002]", "whole": true,
       "allocation": [{"index": 0, "name": "gpu001"}, {"index": 1, "name": "gpu002"}]}}}
  ], "meta": {}, "errors": [], "warnings": []}"#;

#[test]
fn all_forms_of_squeue_say_the_same() {
    let expected = Job { gpus: Some(16), ..job("4711", &["gpu001", "gpu002"]) };
    for (version, text) in
        [("21.08", SLURM_21_08), ("22.05", SLURM_22_05), ("23.11", SLURM_23_11), ("24.x", SLURM_24)]
    {
        let list = squeue_json(text.as_bytes()).unwrap();
        assert_eq!(list.jobs, std::slice::from_ref(&expected), "{version}");
        assert_eq!(list.unreadable, 0, "{version}");
    }
    // Only the hosts by their names.
    let by_name = SLURM_24.replace("\"list\": \"gpu[001-002]\", ", "");
    assert_eq!(squeue_json(by_name.as_bytes()).unwrap().jobs, [expected]);
    let text = "4711|alice|gpu|RUNNING|1700000000|1700086400|gpu[001-002]\n\
                4712|alice|gpu|PENDING|N/A|N/A|\n4713|alice|gpu|COMPLETING|1|2|gpu003\n";
    assert_eq!(squeue_text(text).unwrap().jobs, [job("4711", &["gpu001", "gpu002"])]);
}

#[test]
fn tasks_of_arrays_and_unlimited_jobs_are_understood() {
    let of = |fields: &str| {
        let text = format!(r#"{{"jobs": [{{"job_state": "SUSPENDED", "nodes": "a", {fields}}}]}}"#);
        squeue_json(text.as_bytes()).unwrap().jobs.remove(0)
    };
    let array = of(
        r#""job_id": 99, "array_job_id": {"set": true, "number": 90}, "array_task_id": {"set": true, "number": 3}"#,
    );
    assert_eq!(array.id, "90_3");
    assert_eq!(of(r#""job_id": 99, "array_job_id": 90, "array_task_id": 0"#).id, "90_0");
    let unlimited = of(
        r#""job_id": 1, "end_time": {"set": true, "infinite": true, "number": 0}, "start_time": {"set": false, "number": 7}"#,
    );
    assert_eq!((unlimited.start, unlimited.end, unlimited.gpus), (None, None, None));
    assert_eq!(of(r#""job_id": 1, "user_name": "", "partition": null"#).user, None);
}

#[test]
fn what_is_not_a_list_of_jobs_is_an_error() {
    let error = |text: &str| squeue_json(text.as_bytes()).unwrap_err().to_string();
    assert!(error("").contains("is not the JSON"));
    assert!(error("slurm_load_jobs error: Unable to contact").contains("is not the JSON"));
    assert!(error("[]").contains("is not the JSON"));
    assert!(error(r#"{"jobs": 7}"#).contains("a list of jobs"));
    assert_eq!(error("{}"), "the JSON has no list \"jobs\"");
    assert_eq!(error(r#"{"jobs": null}"#), "the JSON has no list \"jobs\"");
    let down = r#"{"jobs": [], "errors": [{"error_number": 1, "error": "Unable to contact slurm controller"}]}"#;
    assert_eq!(error(down), "it reports: Unable to contact slurm controller");
    let line = squeue_text("1|a|p|RUNNING|1|2|h\n\nsqueue: error\n").unwrap_err().to_string();
    assert!(line.starts_with("line 3: \"squeue: error\" is not ID|USER"), "{line}");
}

#[test]
fn jobs_whose_hosts_cannot_be_read_are_counted() {
    let text = r#"{"jobs": [
        {"job_id": 1, "job_state": "RUNNING", "nodes": "gpu[1-"},
        {"job_id": 2, "job_state": "RUNNING"},
        {"job_state": "RUNNING", "nodes": "a"},
        {"job_id": 3, "job_state": "RUNNING", "nodes": "b,a,b"}]}"#;
    let list = squeue_json(text.as_bytes()).unwrap();
    assert_eq!((list.jobs.len(), list.unreadable), (1, 3));
    assert_eq!(list.jobs[0].hosts, ["a", "b"]);
    assert_eq!(squeue_text("1|a|p|RUNNING|1|2|gpu[1-\n").unwrap().unreadable, 1);
}

#[test]
fn more_jobs_or_hosts_than_any_cluster_has_are_refused() {
    let lines: Vec<String> = (0..=MAX_JOBS).map(|id| format!("{id}|u|p|RUNNING|1|2|h\n")).collect();
    let lines = lines.concat();
    assert_eq!(squeue_text(&lines).unwrap_err(), JobListError::TooManyJobs);
    let wide =
        |id: u32| format!(r#"{{"job_id": {id}, "job_state": "RUNNING", "nodes": "h[0-65535]"}}"#);
    let jobs: Vec<String> = (1..=16).map(wide).collect();
    let text = format!(r#"{{"jobs": [{}], "errors": []}}"#, jobs.join(","));
    assert_eq!(squeue_json(text.as_bytes()).unwrap_err(), JobListError::TooManyHosts);
}

#[test]
fn only_hosts_without_jobs_are_drained() {
    let text = "gpu001|idle\ngpu002|drained\ngpu003|draining\ngpu004|drained*\ngpu002|drained\n\
                gpu005|mixed\ngpu006|drained$\ngpu007|drain\ngpu008|down*\n";
    assert_eq!(drained_text(text).unwrap(), ["gpu002", "gpu004", "gpu006", "gpu007"]);
    assert_eq!(drained_text("\n").unwrap(), [""; 0]);
    let error = drained_text("gpu001 drained").unwrap_err().to_string();
    assert!(error.contains("is not HOST|STATE"), "{error}");
}

#[test]
fn files_of_hosts_and_of_gpus_are_jobs() {
    let file = |gpu, text: &str| HostFile { gpu, text: text.to_owned() };
    let mut files = HostFiles::default();
    files.add(
        "gpu002",
        &[file(None, "4711 user=alice partition=gpu start=1700000000 end=1700086400\n")],
    );
    files.add("gpu001", &[file(None, "# two jobs\n4711 gpus=4 note=x\n\n4712\n")]);
    // A directory of the DCGM exporter: a part of a GPU is not one more.
    files.add(
        "gpu003",
        &[file(Some(0), "9\n"), file(Some(0), "9\n"), file(Some(1), "9\n10\n"), file(Some(2), "")],
    );
    let list = files.finish().unwrap();
    let told: Vec<_> = list.jobs.iter().map(|it| (&*it.id, it.hosts.join(","), it.gpus)).collect();
    let expected = [
        ("10", "gpu003", Some(1)),
        ("4711", "gpu001,gpu002", Some(4)),
        ("4712", "gpu001", None),
        ("9", "gpu003", Some(2)),
    ];
    assert_eq!(told, expected.map(|(id, hosts, gpus)| (id, hosts.to_owned(), gpus)));
    assert_eq!(list.jobs[1].user.as_deref(), Some("alice"));
    assert_eq!((list.jobs[1].start, list.jobs[1].end), (Some(1_700_000_000), Some(1_700_086_400)));
    let gpus = ["0", "12", "0.1", "", ".", "0.", ".1", "a", "0.x", "-1", "1.2.3"].map(gpu_of_file);
    assert_eq!(gpus[..3], [Some(0), Some(12), Some(0)]);
    assert!(gpus[3..].iter().all(Option::is_none), "{gpus:?}");
    let mut files = HostFiles::default();
    files.add("h", &[file(None, &"x".repeat(1000)), file(None, "\u{7}\n")]);
    assert_eq!(files.finish().unwrap(), JobList { jobs: Vec::new(), unreadable: 2 });
}

/// JSON in which any value may be at any place.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let key = prop::sample::select(vec![
        "jobs",
        "errors",
        "job_id",
        "job_state",
        "nodes",
        "job_resources",
        "list",
        "allocation",
        "name",
        "allocated_nodes",
        "number",
        "set",
        "infinite",
        "start_time",
        "end_time",
        "array_job_id",
        "tres_alloc_str",
    ]);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        prop::sample::select(vec![
            "RUNNING",
            "gpu[001-3]",
            "gpu[",
            "",
            "gres/gpu=99999999999999999999",
            "None assigned"
        ])
        .prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        let object =
            prop::collection::hash_map(key.clone().prop_map(str::to_owned), inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Into::into),
            object.prop_map(|it| serde_json::Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn junk_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[|\\[\\]0-9a-zA-Z,=# \n-]{0,200}") {
        let _ = squeue_json(&bytes);
        let _ = squeue_text(&text);
        let _ = squeue_text(&String::from_utf8_lossy(&bytes));
        let _ = drained_text(&text);
        let mut files = HostFiles::default();
        files.add(&text, &[HostFile { gpu: gpu_of_file(&text), text: text.clone() }]);
        let _ = files.finish();
    }

    #[test]
    fn json_of_other_forms_never_panics(jobs in prop::collection::vec(value(), 0..4), errors in value()) {
        let text = serde_json::json!({"jobs": jobs, "errors": errors}).to_string();
        if let Ok(list) = squeue_json(text.as_bytes()) {
            prop_assert!(list.jobs.iter().all(|job| !job.id.is_empty() && !job.hosts.is_empty()));
        }
    }

    #[test]
    fn cut_output_is_an_error(at in 0..SLURM_24.len()) {
        prop_assume!(SLURM_24.is_char_boundary(at));
        prop_assert!(squeue_json(&SLURM_24.as_bytes()[..at]).is_err());
    }
}
