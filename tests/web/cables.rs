//! Cables by serial and part number: the search, the links, spares, and `/modules`.

use test_rig as rig;

use std::process::Command;
use std::time::Duration;

use fabric_api::model::{Links, Modules, PortModule, Search, Spares};
use rig::{Exporter, program, wait_until};
use serde::de::DeserializeOwned;

const LIMIT: Duration = Duration::from_secs(120);

/// A cable with errors in both directions, and one that is replaced.
const STORY: &str = "
fabric: {fat-tree: {levels: 2, hosts: 36, radix: 16, down: 9, up: 6}}
timeline:
  - bad-cable: {at: 1s, into: 'leaf-0-1[1]', ratio: 2e-9}
  - bad-cable: {at: 1s, into: 'host-9[1]', ratio: 2e-9}
  - swap-cable: {at: 8m, link: 'leaf-0-2[10]', down: 20s}
";

fn json<T: DeserializeOwned>(exporter: &Exporter, path: &str) -> T {
    let response = exporter.get(path, &[]);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    serde_json::from_str(response.text()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn modules(exporter: &Exporter) -> Modules {
    json(exporter, "/api/v1/modules")
}

/// What the port has now.
fn at(exporter: &Exporter, node: &str, port: u8) -> Option<PortModule> {
    let modules = modules(exporter).fabrics.into_iter().flat_map(|it| it.modules);
    modules.into_iter().find(|it| it.name.node == node && it.name.port == port)
}

fn links(exporter: &Exporter, args: &[&str]) -> (bool, String, String) {
    let url = format!("http://{}", exporter.address());
    let output = Command::new(program()).args(["links", "--url", &url]).args(args).output();
    let output = output.unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.success(), out, err)
}

#[test]
fn cables_are_found_by_serial_number_and_needed_spares_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let [story, file] = ["story.yml", "history.db"].map(|name| folder.path().join(name));
    std::fs::write(&story, STORY).unwrap();
    let flags = [
        format!("--scenario={}", story.display()),
        format!("--history.file={}", file.display()),
        "--clock=30".into(),
        "--fabric.module-interval=1m".into(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut exporter = Exporter::demo_uncaptured(&flags);
    exporter.wait_ready();

    let before = wait_until(LIMIT, "the modules", || at(&exporter, "leaf-0-2", 10));
    let spare = wait_until(LIMIT, "the spare", || {
        modules(&exporter).fabrics.remove(0).spares.into_iter().next()
    });
    let bad = at(&exporter, "leaf-0-1", 1).unwrap();
    assert_eq!(
        (spare.needed, &*spare.what, spare.links[0].ends[0].as_str()),
        (1, "cable", "leaf-0-1 port 1")
    );
    assert_eq!(spare.part_number.as_ref(), Some(&bad.module.part_number));
    assert_eq!(spare.links[0].serial_number.as_ref(), Some(&bad.module.serial_number));
    let page = exporter.get("/modules", &[]).text().to_owned();
    assert!(page.contains("Spares needed now") && page.contains("part numbers"), "{page}");
    // The worst first: both ends of the bad cable.
    let csv = exporter.get("/modules?format=csv", &[]).text().to_owned();
    let first: Vec<&str> = csv.lines().skip(1).take(2).collect();
    assert!(first.iter().all(|line| line.contains(&bad.module.serial_number)), "{csv}");

    // By serial number: the link; with another filter, nothing.
    let serial = &*bad.module.serial_number;
    let (ok, out, _) = links(&exporter, &["--serial", &serial.to_lowercase(), "--json"]);
    let found: Links = serde_json::from_str(&out).unwrap();
    assert!(ok && found.fabrics[0].links.len() == 1, "{out}");
    let (ok, out, err) = links(&exporter, &["--serial", serial, "--verdict=ok"]);
    assert!(ok && out.is_empty() && err.contains("no selected links"), "{out}{err}");
    let (ok, _, err) = links(&exporter, &["--serial", "nobody"]);
    assert!(!ok && err.contains("history cable nobody"), "{err}");
    let (_, out, err) = links(&exporter, &["--spares"]);
    assert!(
        out.contains(&bad.module.part_number) && err.contains("1 spare needed now"),
        "{out}{err}"
    );
    let mut spares: Spares =
        serde_json::from_str(&links(&exporter, &["--spares", "--json"]).1).unwrap();
    // The cable may have become worse between the two requests.
    let [listed] = &mut spares.spares[..] else { panic!("{spares:?}") };
    assert!(["watch", "bad"].contains(&&*listed.links[0].verdict));
    listed.links[0].verdict = spare.links[0].verdict.clone();
    assert_eq!(*listed, spare);
    let found: Search = json(&exporter, &format!("/api/v1/search?q={serial}"));
    assert_eq!(
        (found.hits.len(), &*found.hits[0].kind, &*found.hits[0].matched),
        (1, "link", "serial_number")
    );

    // A cable that was replaced is at no port, and was there.
    wait_until(LIMIT, "the new cable", || {
        let now = at(&exporter, "leaf-0-2", 10)?;
        (now.module.serial_number != before.module.serial_number).then_some(())
    });
    let path = format!("/search?q={}", before.module.serial_number);
    let page = wait_until(LIMIT, "the former place", || {
        let page = exporter.get(&path, &[]).text().to_owned();
        page.contains("No port has it now").then_some(page)
    });
    assert!(page.contains("leaf-0-2 port 10"), "{page}");
    assert!(exporter.stop().success());
}
