//! Whose traffic a bad cable hurt: reports that are limited to the hosts of a job.

use std::path::Path;
use std::time::Duration;

use fabric_history::Reader;
use fabric_history::host_scope::Relation;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Window;
use fabric_history::report::{Report, markdown};

use crate::{RecordedSimulation, minutes, wall};

/// 25 leaves with 20 hosts each. One cable from a spine to the leaf of host-60 to host-79 is bad, and one host of
/// another leaf flaps.
const STORY: &str = "{fabric: {fat-tree: {levels: 2, hosts: 500, radix: 40, down: 20, up: 20}}, \
    traffic: {pattern: across, load: 20%}, timeline: [\
    bad-cable: {at: 2m, into: \"leaf-0-3[23]\", ratio: 1e-10}, \
    flap: {at: 5m, link: \"host-410[1]\", down: 3s}]}";

fn report(file: &Path, hosts: &str) -> Report {
    let reader = Reader::open(file).unwrap();
    let window = Window { from: wall(minutes(1)), to: wall(minutes(18)) };
    let time = |at| humantime::format_rfc3339_seconds(at).to_string();
    let hosts = hostlist::parse(hosts).unwrap();
    // A day later, the exporter has long been stopped.
    let now = window.to + Duration::from_secs(24 * 3_600);
    Report::compute(&reader, window, Some(&hosts), now, &time).unwrap()
}

#[test]
fn report_of_a_job_names_the_bad_cable_that_its_traffic_crossed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(18));
    drop(simulation);

    // 64 hosts at the leaves 3 to 6.
    let hurt = report(&file, "host-[60-123]");
    let first = &hurt.findings[0];
    assert!(first.incident.title.contains("leaf-0-3 port 23"), "{}", first.incident.title);
    assert_eq!(first.relation, Some(Relation::Crossed));
    assert_eq!(hurt.findings.len(), 1);
    let hosts = hurt.hosts.as_ref().unwrap();
    assert_eq!((hosts.hosts.len(), hosts.is_clean), (64, false));
    assert!(hurt.others.iter().all(|moved| moved.port.node != "host-410"));
    let page = markdown::write(&hurt, &LocalClock::now());
    let text = "- 64 hosts (host-\\[60-123\\]) with 64 HCAs and 64 cables of their own.";
    assert!(page.contains(text), "{page}");
    // Four leaves with twenty cables each to the spines.
    assert!(page.contains("may have crossed 80 other cables"), "{page}");
    assert!(page.contains("**Relation:** The traffic between the hosts may have crossed it."));

    // 64 hosts at the leaves 10 to 13, and one that is not in the fabric.
    let elsewhere = report(&file, "host-[200-263],login1");
    assert!(elsewhere.findings.is_empty() && elsewhere.others.is_empty());
    let hosts = elsewhere.hosts.as_ref().unwrap();
    assert!(hosts.is_clean, "{:?}", hosts.sentences);
    assert_eq!(hosts.unknown, ["login1"]);
    let page = markdown::write(&elsewhere, &LocalClock::now());
    assert!(page.contains("The fabric shows nothing for these hosts in this period"), "{page}");
    assert!(page.contains("Not in the history: login1."), "{page}");

    // Its own cable concerns a host, and that of another host at the same leaf does not.
    let own = report(&file, "host-[409-411]");
    assert_eq!(own.hosts.as_ref().unwrap().hosts.len(), 3);
    let relations: Vec<_> = own.findings.iter().map(|finding| finding.relation).collect();
    let others = own.incidents.iter().filter(|it| it.title.contains("host-410")).count();
    assert!(relations.contains(&Some(Relation::Own)) || others == 1, "{own:?}");
    assert!(!own.findings.iter().any(|it| it.incident.title.contains("leaf-0-3")));
    assert!(report(&file, "host-[408-409]").hosts.unwrap().is_clean);
}
