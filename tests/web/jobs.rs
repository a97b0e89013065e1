//! Running jobs, from files or from commands of Slurm, and what bad cables may do to them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fabric_api::impact::IMPACT;
use fabric_api::model::{Impact, LinkImpact};
use test_rig::{Exporter, program, wait_until};

const LIMIT: Duration = Duration::from_secs(120);

/// Four hosts; the cable of host-1 has one lane left.
const STORY: &str = "
fabric: {fat-tree: {hosts: 4, radix: 8, down: 2, up: 2}}
traffic: {load: 10%}
timeline:
- degrade: {at: 2s, link: 'host-1[1]', width: 1x}
";

/// The flags of a demo of that story, with jobs from somewhere.
fn flags(folder: &Path, from: &str) -> Vec<String> {
    flags_of(STORY, folder, from)
}

fn flags_of(story: &str, folder: &Path, from: &str) -> Vec<String> {
    let scenario = folder.join("scenario.yml");
    std::fs::write(&scenario, story).unwrap();
    let scenario = format!("--scenario={}", scenario.display());
    let from = format!("--jobs.from={from}");
    let others = ["--fabric.interval=1s", "--jobs.interval=10s"].map(str::to_owned);
    [vec![scenario, from], others.to_vec()].concat()
}

fn impact(exporter: &Exporter) -> Impact {
    let response = exporter.get(IMPACT, &[]);
    assert_eq!(response.status, 200, "{}", response.text());
    serde_json::from_str(response.text()).unwrap()
}

/// Waits until a bad link has jobs at risk.
fn repair(exporter: &Exporter) -> LinkImpact {
    wait_until(LIMIT, "a repair that frees jobs", || {
        let repairs = impact(exporter).repairs;
        repairs.into_iter().next().filter(|repair| repair.jobs_at_risk > 0)
    })
}

#[test]
fn jobs_of_a_directory_are_at_risk_until_they_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("jobs");
    std::fs::create_dir(&jobs).unwrap();
    for (host, text) in [
        ("host-0", "4711 user=alice gpus=8\n"),
        ("host-1.cluster.example", "4711 user=alice gpus=8 end=4102444800\n"),
        ("host-2", "4712\n"),
    ] {
        std::fs::write(jobs.join(host), text).unwrap();
    }
    let flags = flags(folder.path(), &jobs.display().to_string());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut exporter = Exporter::demo(&flags);
    exporter.wait_ready();
    let found = repair(&exporter);
    assert_eq!((found.jobs_at_risk, found.nodes_at_risk), (1, 2), "{found:?}");
    assert_eq!((&*found.jobs[0].id, found.jobs[0].gpus), ("4711", Some(16)));
    assert!(found.node_hours_left > Some(0.0) && found.gpu_hours_left > Some(0.0), "{found:?}");
    let metrics = exporter.metrics();
    let of_link = [("link", &*found.link)];
    assert_eq!(metrics.get("infiniband_link_jobs_at_risk", &of_link), Some(1.0));
    assert_eq!(metrics.get("infiniband_link_nodes_at_risk", &of_link), Some(2.0));
    let good = metrics.all("infiniband_link_jobs_at_risk").count();
    assert_eq!(good, 1, "only bad links");
    let read = "fabric_exporter_jobs_last_read_successful";
    assert_eq!(metrics.get(read, &[("source", "directory")]), Some(1.0));
    let page = exporter.get(&format!("/link/{}", found.link), &[]);
    assert!(page.text().contains("Jobs that it may hurt") && page.text().contains("4711"));
    assert!(exporter.get("/", &[]).text().contains("Repairs by what they free"));
    let url = format!("http://{}", exporter.address());
    let output = Command::new(program()).args(["impact", "--url", &url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("4711") && !text.contains("4712"), "{text}");

    std::fs::remove_dir_all(&jobs).unwrap();
    let failed = wait_until(LIMIT, "a read that fails", || {
        Some(impact(&exporter)).filter(|it| it.jobs.problem.is_some())
    });
    assert!(failed.jobs.problem.unwrap().contains("No such file"));
    assert!(failed.jobs.known && failed.repairs[0].jobs_at_risk == 1, "the last known ones");
    assert_eq!(exporter.metrics().get(read, &[]), Some(0.0));
    let forgotten = wait_until(LIMIT, "the end of five intervals", || {
        Some(impact(&exporter)).filter(|it| !it.jobs.known)
    });
    assert!(forgotten.repairs.is_empty() && forgotten.jobs.age_seconds > Some(50.0));
    assert_eq!(exporter.metrics().all("infiniband_link_jobs_at_risk").count(), 0);
    let output = Command::new(program()).args(["impact", "--url", &url]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("No such file"), "{text}");
    let warnings = exporter.log().matches("running jobs not read").count();
    assert_eq!(warnings, 1, "logged once: {}", exporter.log());
    assert!(exporter.stop().success());
}

/// A cable between two switches has one lane left. It is the cable of no host.
const UPLINK: &str = "
fabric: {fat-tree: {hosts: 8, radix: 6, down: 2, up: 2}}
traffic: {pattern: none}
timeline:
- degrade: {at: 2s, link: 'leaf-0-1[3]', width: 1x}
";

#[test]
fn jobs_whose_packets_cross_a_bad_uplink_are_at_risk() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("jobs");
    std::fs::create_dir(&jobs).unwrap();
    for host in 0..8 {
        std::fs::write(jobs.join(format!("host-{host}")), "4711\n").unwrap();
    }
    let flags = flags_of(UPLINK, folder.path(), &jobs.display().to_string());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut exporter = Exporter::demo(&flags);
    exporter.wait_ready();
    let found = repair(&exporter);
    assert!(found.hosts.is_empty() && found.crossing_hosts > Some(0), "{found:?}");
    assert_eq!((found.jobs_at_risk, found.nodes_at_risk), (1, 8), "{found:?}");
    let [job] = &found.jobs[..] else { panic!("one job: {found:?}") };
    assert_eq!(job.nodes_at_link, 0);
    assert_eq!(Some(job.nodes_crossing), found.crossing_hosts);
    let page = exporter.get(&format!("/link/{}", found.link), &[]);
    assert!(page.text().contains("no host’s own cable"), "{}", page.text());
    let count = exporter.metrics().get("infiniband_link_jobs_at_risk", &[("link", &*found.link)]);
    assert_eq!(count, Some(1.0));
    assert!(exporter.stop().success());
}

/// Writes commands of Slurm into a folder. `squeue` tries to write a file, and says in the user of the job whether it could.
fn commands(folder: &Path) -> PathBuf {
    let programs = folder.join("bin");
    std::fs::create_dir(&programs).unwrap();
    let marker = folder.join("marker");
    let squeue = format!(
        "#!/bin/sh\nif (echo x > {}) 2>/dev/null; then user=wrote; else user=refused; fi\n\
         cat <<END\n{{\"jobs\": [{{\"job_id\": 4711, \"job_state\": [\"RUNNING\"], \"nodes\": \"host-[0-1]\",\n\
         \"user_name\": \"$user\", \"partition\": \"$NOTIFY_SOCKET$SLURM_TIME_FORMAT\"}}], \"errors\": []}}\nEND\n",
        marker.display()
    );
    let sinfo = "#!/bin/sh\necho 'host-0|mixed'\necho 'host-3|drained*'\n";
    for (name, script) in [("squeue", squeue.as_str()), ("sinfo", sinfo)] {
        // Another process writes it: a file that this one has open, and so what it starts meanwhile, cannot be run.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"]);
        assert!(shell.arg(programs.join(name)).arg(script).status().unwrap().success());
    }
    programs
}

/// The process that runs the commands of an exporter.
fn helper_of(exporter: u32) -> Option<procfs::process::Process> {
    let processes = procfs::process::all_processes().unwrap();
    let is_it = |process: &procfs::process::Process| {
        process.stat().is_ok_and(|stat| stat.ppid == exporter.cast_signed() && stat.state != 'Z')
            && process.cmdline().is_ok_and(|line| line[0].contains("runs squeue and sinfo"))
    };
    processes.filter_map(Result::ok).find(is_it)
}

#[test]
fn squeue_runs_beside_the_confined_exporter() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}:/usr/bin:/bin", commands(folder.path()).display());
    let flags = flags(folder.path(), "slurm");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut exporter = Exporter::demo_with_path(&flags, &path);
    exporter.wait_ready();
    let found = repair(&exporter);
    assert_eq!((&*found.jobs[0].id, found.nodes_at_risk), ("4711", 2), "{found:?}");
    let user = found.jobs[0].user.as_deref();
    let is_restricted = !exporter.log().contains("file access is not restricted");
    assert_eq!(user, Some(if is_restricted { "refused" } else { "wrote" }));
    assert_eq!(folder.path().join("marker").exists(), !is_restricted);
    assert_eq!(found.jobs[0].partition.as_deref(), Some("%s"));
    wait_until(LIMIT, "the drained host to be in maintenance", || {
        let metrics = exporter.metrics();
        let mut nodes = metrics.all("infiniband_node_maintenance");
        let (labels, _) = nodes.next()?;
        let name = metrics.all("infiniband_node_info").find(|(it, _)| it["guid"] == labels["guid"]);
        assert_eq!(name.unwrap().0["host"], "host-3");
        nodes.next().is_none().then_some(())
    });
    let helper = helper_of(exporter.pid()).expect("the process that runs squeue");
    let status = helper.status().unwrap();
    assert_eq!((status.capeff, status.capprm, status.nonewprivs), (0, 0, Some(1)));
    assert!(exporter.stop().success());
    wait_until(LIMIT, "the end of the process", || (!helper.is_alive()).then_some(()));
}

#[test]
fn missing_slurm_is_said_once_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let flags = flags(folder.path(), "slurm");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut exporter = Exporter::demo_with_path(&flags, "/nowhere");
    exporter.wait_ready();
    let found = wait_until(LIMIT, "the problem", || {
        Some(impact(&exporter)).filter(|it| it.jobs.problem.is_some())
    });
    let problem = found.jobs.problem.unwrap();
    assert!(problem.contains("squeue: it is not installed"), "{problem}");
    exporter.wait_sweeps(2);
    let metrics = exporter.metrics();
    assert_eq!(metrics.get("fabric_exporter_jobs_last_read_successful", &[]), Some(0.0));
    assert_eq!(metrics.all("infiniband_link_jobs_at_risk").count(), 0);
    assert!(exporter.stop().success());
}
