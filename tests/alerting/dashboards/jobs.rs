//! The dashboard of jobs: what its panels show for stored series of the rules in `alerts/jobs.rules.yml`, whose own
//! tests are in `alerts/tests/jobs.test.yml`.

use crate::dashboards::situations::Sample;
use crate::dashboards::stored::Stored;

/// A fabric that is swept, and all rules.
const SWEPT: [Sample; 12] = [
    (r#"up{job="j",instance="a"}"#, 1.0, 5.0),
    (r#"fabric_exporter_sweep_interval_seconds{job="j",instance="a",fabric="f"}"#, 60.0, 5.0),
    (r#"infiniband_fabric_links{job="j",instance="a",fabric="f",verdict="ok"}"#, 9.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="cables"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="cables-by-host"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="congestion"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="exporter"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="hosts"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="jobs"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="nodes"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="ports"}"#, 1.0, 5.0),
    (r#"fabric_exporter:rules:loaded{file="subnet"}"#, 1.0, 5.0),
];

/// Twelve hosts run jobs, and two of them are in no fabric.
const SCHEDULED: [Sample; 4] = [
    (r#"source:scheduled_hosts:count{source="slurm_node_job"}"#, 12.0, 5.0),
    (r#"source:scheduled_hosts:unknown{source="slurm_node_job"}"#, 2.0, 5.0),
    (r#"source:scheduled_hosts:count{source="kube_pod_info"}"#, 3.0, 5.0),
    (r#"source:scheduled_hosts:unknown{source="kube_pod_info"}"#, 0.0, 5.0),
];

/// Two jobs on one host with a bad cable, one of them also on a host with a degraded one, where a third job runs; a pod
/// with GPUs on the first; and a host with a bad cable where nothing runs.
const BAD: [Sample; 15] = [
    (
        r#"fabric_host_link:infiniband_link_verdict:suspect{fabric="f",host="h1",link="l1"}"#,
        3.0,
        5.0,
    ),
    (
        r#"fabric_host_link:infiniband_link_verdict:suspect{fabric="f",host="h1",link="l2"}"#,
        2.0,
        5.0,
    ),
    (
        r#"fabric_host_link:infiniband_link_verdict:suspect{fabric="f",host="h2",link="l3"}"#,
        2.0,
        5.0,
    ),
    (
        r#"fabric_host_link:infiniband_link_verdict:suspect{fabric="f",host="h3",link="l4"}"#,
        3.0,
        5.0,
    ),
    (r#"host:infiniband_link_verdict:count{host="h1"}"#, 2.0, 5.0),
    (r#"host:infiniband_link_verdict:count{host="h2"}"#, 1.0, 5.0),
    (r#"host_job_id:slurm_job:info{host="h1",job_id="11"}"#, 1.0, 5.0),
    (r#"host_job_id:slurm_job:info{host="h2",job_id="11"}"#, 1.0, 5.0),
    (
        r#"host_job_id:infiniband_link_verdict:max{host="h1",job_id="11",fabric="f",link="l1"}"#,
        3.0,
        5.0,
    ),
    (
        r#"host_job_id:infiniband_link_verdict:max{host="h2",job_id="11",fabric="f",link="l3"}"#,
        2.0,
        5.0,
    ),
    (
        r#"host_job_id:infiniband_link_verdict:max{host="h1",job_id="12",fabric="f",link="l1"}"#,
        3.0,
        5.0,
    ),
    (
        r#"host_job_id:infiniband_link_verdict:max{host="h2",job_id="13",fabric="f",link="l3"}"#,
        2.0,
        5.0,
    ),
    (
        r#"host_namespace_pod:infiniband_link_verdict:max{host="h1",namespace="n",pod="p",fabric="f",link="l1"}"#,
        3.0,
        5.0,
    ),
    (r#"host_namespace_pod:kube_pod_info:topk1{host="h1",namespace="n",pod="p"}"#, 1.0, 5.0),
    (r#"cluster_namespace_pod:kube_pod_gpus:sum{namespace="n",pod="p"}"#, 8.0, 5.0),
];

#[test]
fn jobs_and_pods_on_bad_cables_are_counted_once() {
    Stored::new(&[&SWEPT[..], &SCHEDULED, &BAD].concat()).assert(&[
        ("jobs", "Data", "fresh green"),
        ("jobs", "Jobs on bad cables", "2 red"),
        ("jobs", "Jobs on degraded cables", "1 orange"),
        ("jobs", "Pods on bad cables", "1 red"),
        ("jobs", "Free hosts with bad cables", "1 blue"),
        ("jobs", "Hosts in no fabric", "2 blue"),
        ("jobs", "Jobs", "rows orange+red"),
        ("jobs", "Pods", "rows red"),
        ("jobs", "Cables of hosts", "rows orange+red"),
        ("jobs", "Hosts that can be repaired now", "rows "),
        ("jobs", "Sources of jobs", "rows "),
    ]);
}

#[test]
fn no_job_on_a_bad_cable_is_a_zero() {
    Stored::new(&[&SWEPT[..], &SCHEDULED].concat()).assert(&[
        ("jobs", "Jobs on bad cables", "0 green"),
        ("jobs", "Jobs on degraded cables", "0 green"),
        ("jobs", "Pods on bad cables", "0 green"),
        ("jobs", "Free hosts with bad cables", "0 blue"),
        ("jobs", "Jobs", "none, if Data is green "),
    ]);
}

/// Else a zero would say that all jobs are on good cables, where nothing is known about them.
#[test]
fn jobs_on_unknown_hosts_are_no_zero() {
    let strangers: [Sample; 2] = [
        (r#"source:scheduled_hosts:count{source="cgroup_info"}"#, 12.0, 5.0),
        (r#"source:scheduled_hosts:unknown{source="cgroup_info"}"#, 12.0, 5.0),
    ];
    for (samples, unknown) in
        [(SWEPT.to_vec(), "No data text"), ([&SWEPT[..], &strangers].concat(), "12 blue")]
    {
        Stored::new(&samples).assert(&[
            ("jobs", "Jobs on bad cables", "No data text"),
            ("jobs", "Jobs on degraded cables", "No data text"),
            ("jobs", "Pods on bad cables", "No data text"),
            ("jobs", "Hosts in no fabric", unknown),
        ]);
    }
    let stale = [&SWEPT[..1], &SWEPT[1..2], &SWEPT[3..], &SCHEDULED].concat();
    Stored::new(&stale).assert(&[
        ("jobs", "Data", "stale red"),
        ("jobs", "Jobs on bad cables", "No data text"),
        ("jobs", "Free hosts with bad cables", "No data text"),
    ]);
}
