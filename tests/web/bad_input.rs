//! Bad settings and unsuitable hosts: one clear line with the remedy, and a specific exit code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use rig::{Exporter, Ibsim, OpenSm, run_to_exit, topology};

const USAGE: i32 = 2;
const NO_DEVICE: i32 = 3;
const NO_LISTENER: i32 = 4;

/// Runs the program without a fabric.
fn alone(args: &[&str]) -> Output {
    Command::new(rig::program()).args(args).output().expect("the program under test starts")
}

fn refused(code: Option<i32>, stderr: &str, expected: i32, says: &[&str]) {
    assert_eq!(code, Some(expected), "{stderr}");
    // Only the last line counts, after the log.
    let last = stderr.lines().last().unwrap_or_default();
    for part in says {
        assert!(last.contains(part), "{part:?} is not in: {last}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

fn refused_alone(args: &[&str], expected: i32, says: &[&str]) {
    let output = alone(args);
    refused(output.status.code(), &String::from_utf8_lossy(&output.stderr), expected, says);
}

/// A sysfs with one RDMA port with these attributes.
fn sysfs(root: &Path, attributes: &[(&str, &str)]) -> String {
    let mut files = vec![
        ("infiniband_mad/umad0/ibdev".to_owned(), "mlx5_0"),
        ("infiniband_mad/umad0/port".to_owned(), "1"),
    ];
    files.extend(
        attributes
            .iter()
            .map(|(name, value)| (format!("infiniband/mlx5_0/ports/1/{name}"), *value)),
    );
    for (path, text) in files {
        let path = root.join("class").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }
    format!("--path.sysfs={}", root.display())
}

#[test]
fn host_without_rdma_device_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = format!("--path.sysfs={}", root.path().display());
    refused_alone(&["serve", &sysfs], NO_DEVICE, &["no RDMA device", "load the driver"]);
}

#[test]
fn roce_port_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = sysfs(root.path(), &[("link_layer", "Ethernet"), ("phys_state", "5: LinkUp")]);
    refused_alone(
        &["serve", &sysfs],
        NO_DEVICE,
        &["mlx5_0 port 1", "Ethernet (RoCE)", "--fabric.hca"],
    );
}

#[test]
fn port_without_a_link_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = sysfs(root.path(), &[("link_layer", "InfiniBand"), ("phys_state", "2: Polling")]);
    refused_alone(
        &["serve", &sysfs],
        NO_DEVICE,
        &["mlx5_0 port 1", "no link", "connect its cable"],
    );
}

#[test]
fn unknown_hca_and_port_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = sysfs(root.path(), &[("link_layer", "InfiniBand"), ("phys_state", "5: LinkUp")]);
    refused_alone(&["serve", &sysfs, "--fabric.hca=mlx5_7"], NO_DEVICE, &["\"mlx5_7\"", "mlx5_0"]);
    refused_alone(&["serve", &sysfs, "--fabric.port=2"], NO_DEVICE, &["mlx5_0 has no port 2"]);
}

#[test]
fn bad_flags_and_files_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = root.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let config = file("c.yml", "fabric:\n  interval: 15s\n  intervall: 1s\n");
    refused_alone(&["serve", "--config.file", &config], USAGE, &["c.yml", "intervall", "3"]);
    refused_alone(
        &["serve", "--config.file=/nowhere.yml"],
        USAGE,
        &["/nowhere.yml", "No such file"],
    );
    refused_alone(&["serve", "--fabric.interval=soon"], USAGE, &[]);
    refused_alone(&["serve", "--fabric.gmp-window=0"], USAGE, &["--fabric.gmp-window"]);
    refused_alone(&["dance"], USAGE, &[]);
}

/// Runs a demo that is refused with one line.
fn refused_demo(args: &[&str], expected: i32, says: &[&str]) {
    let output = alone(&[&["demo"], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    refused(output.status.code(), &stderr, expected, says);
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
}

/// A file for the demo; its directory, and its name.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("input");
    std::fs::write(&path, text).unwrap();
    let name = path.display().to_string();
    (directory, name)
}

#[test]
fn bad_demo_arguments_are_refused() {
    let free = "--web.listen-address=127.0.0.1:0";
    let (_a, unknown_key) = file("seed: 1\n\nnonsense: 2\n");
    let (_b, unknown_place) = file("timeline:\n- unplug: {link: 'leaf-9-9[1]'}\n");
    let (_c, no_yaml) = file("fabric: {fat-tree: {\n");
    let (_d, loose_end) = file("Switch 8 \"S\"\n[1] \"nobody\"[1]\n");
    let (_e, nothing) = file("# nothing\n");
    let (_h, no_host) = file("Switch 8 \"S\"\n");
    let (_i, small) = file("fabric: {fat-tree: {hosts: 4}}\n");
    let (_f, lost_topology) = file("fabric: {file: not-there}\n");
    for (flags, says) in [
        (&["--scenario=/nowhere.yml"][..], &["/nowhere.yml", "No such file"][..]),
        (&["--scenario", &unknown_key], &[&unknown_key, "line 3: nonsense: unknown key; known: "]),
        (&["--scenario", &unknown_place], &[&unknown_place, "line 2", "leaf-9-9"]),
        (&["--scenario", &no_yaml], &[&no_yaml, "line "]),
        (&["--scenario", &lost_topology], &["not-there", "No such file"]),
        (&["--topology=/nowhere"], &["/nowhere", "No such file"]),
        (&["--topology", &loose_end], &[&loose_end, "line 2", "S[1]", "\"nobody\""]),
        (&["--topology", &nothing], &[&nothing]),
        (&["--topology", &no_host], &[&no_host, "no host"]),
        (&["--hosts=0"], &["--hosts: 0 is not between 2 and 30000"]),
        (&["--hosts=1", "--speedup=2"], &["--hosts: 1 is not between 2 and 30000"]),
        (&["--hosts=0", "--scenario", &small], &["hosts: 0", "between 1 and"]),
        (&["--hosts=4000000000"], &["hosts: 4000000000", "between 2 and"]),
        (&["--hosts=3", "--topology", &loose_end], &["hosts", "topology file"]),
        (&["--speedup=0"], &["speedup: 0", "between"]),
        (&["--speedup=-1"], &["speedup: -1", "between"]),
        (&["--speedup=nan"], &["speedup: NaN", "between"]),
        (&["--fabric.hca=mlx5_0"], &["--fabric.hca", "seat"]),
        (&["--fabric.port=1"], &["--fabric.port", "seat"]),
        (&["--fabric.interval=0s"], &["--fabric.interval"]),
    ] {
        refused_demo(&[&[free], flags].concat(), USAGE, says);
    }
    // Neither read until memory ends, nor waited for; and the error names what the user gave.
    let (folder, zeros) = file("fabric: {file: /dev/zero}\n");
    let fifo = folder.path().join("fifo").display().to_string();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (_j, wrong_dump) =
        file("START_NODES\nNodeDesc,NumPorts,NodeType,NodeGUID\nx,1,1\nEND_NODES\n");
    for (flags, says) in [
        (["--scenario", "/dev/zero"], ["/dev/zero: it is a device, not a regular file"]),
        (["--scenario", &zeros], ["/dev/zero: it is a device, not a regular file"]),
        (["--topology", "/dev/zero"], ["/dev/zero: it is a device, not a regular file"]),
        (["--scenario", &fifo], ["fifo: it is a pipe, not a regular file"]),
        (["--topology", &fifo], ["fifo: it is a pipe, not a regular file"]),
        (["--topology", &wrong_dump], [&*wrong_dump]),
    ] {
        refused_demo(&[free, flags[0], flags[1]], USAGE, &says);
    }
    let (_g, planes) = file("fabric: {fat-tree: {planes: 2}}\n");
    let flags = ["--scenario", &planes, "--fabric.capture=/nowhere.pcap", free];
    refused_demo(&flags, USAGE, &["--fabric.capture", "several planes"]);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--web.listen-address={}", taken.local_addr().unwrap());
    let says = ["cannot listen on 127.0.0.1", "the port is in use (`ss ", "--web.listen-address"];
    refused_demo(&[&listen], NO_LISTENER, &says);
    // 192.0.2.0/24 is for documentation (RFC 5737).
    let says = ["cannot listen on 192.0.2.1:0: ", "does not have that address (`ip addr` "];
    refused_demo(&["--web.listen-address=192.0.2.1:0"], NO_LISTENER, &says);
}

/// A closed terminal sends SIGHUP.
#[test]
fn demo_that_is_ended_by_a_signal_leaves_nothing_behind() {
    for signal in ["TERM", "INT", "HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let folder_of = |name: &str| folder.path().join(name);
        std::fs::create_dir(folder_of("tmp")).unwrap();
        let log = std::fs::File::create(folder_of("log")).unwrap();
        let mut demo = Command::new(rig::program())
            .args(["demo", "--web.listen-address=127.0.0.1:0", "--hosts=4"])
            .env("TMPDIR", folder_of("tmp"))
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let made = || std::fs::read_dir(folder_of("tmp")).unwrap().count();
        rig::wait_until(std::time::Duration::from_secs(60), "the demo to serve", || {
            let said = std::fs::read_to_string(folder_of("log")).unwrap();
            (said.contains("Ctrl-C") && made() == 1).then_some(())
        });
        let kill = Command::new("kill").args(["-s", signal, &demo.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let status = demo.wait().unwrap();
        let log = std::fs::read_to_string(folder_of("log")).unwrap();
        assert_eq!((status.code(), made()), (Some(0), 0), "SIG{signal}: {log}");
    }
}

#[test]
fn demos_serve_until_sigterm() {
    let (_a, scenario) = file("fabric: {fat-tree: {hosts: 4, radix: 4}}\nseed: 7\n");
    let picture = {
        let ibsim = Ibsim::start(&topology::fat_tree_2(8, 10, 4, 3));
        let _opensm = OpenSm::start(&ibsim);
        ibsim.tool("ibnetdiscover", &[])
    };
    let (_b, picture) = file(&picture);
    // The exporter's own host has eight.
    for (flags, hosts) in [
        (&[][..], 36 + 8),
        (&["--scenario", &scenario], 4),
        (&["--topology", &picture], 10),
        (&["--hosts=29"], 29 + 8),
        (&["--speedup=10"], 36 + 8),
    ] {
        let mut exporter = Exporter::demo(flags);
        exporter.wait_ready();
        let metrics = exporter.metrics();
        let adapters = metrics
            .all("infiniband_node_info")
            .filter(|(labels, _)| labels["node_type"] == "ca")
            .count();
        assert_eq!(adapters, hosts, "{flags:?}");
        assert_eq!(metrics.get("fabric_exporter_nodes_failed", &[]), Some(0.0), "{flags:?}");
        assert_eq!(metrics.get("fabric_exporter_ports_failed", &[]), Some(0.0), "{flags:?}");
        assert_eq!(exporter.get("/", &[]).status, 200);
        assert_eq!(exporter.stop().code(), Some(0), "{flags:?}");
    }
}

/// The demos of the README and the quick start, and the Makefile's example.
#[test]
fn documented_demos_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let (documents, makefile) = (text("README.md") + &text("docs/quickstart.md"), text("Makefile"));
    let begin = "$ fabric-exporter demo";
    let mut lines: Vec<&str> = documents
        .lines()
        .filter_map(|line| line.strip_prefix(begin))
        .map(|flags| flags.split('#').next().unwrap_or_default())
        .collect();
    assert!(lines.len() >= 3, "{lines:?}");
    let example = makefile.split_once("for example DEMO=\"").unwrap().1.split('"').next().unwrap();
    lines.push(example);
    let (_picture, picture) =
        file("Switch 8 \"s\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n\nHca 1 \"a\"\n\nHca 1 \"b\"\n");
    for line in lines {
        let place = |word: &str| match word {
            "my-fabric.topo" => picture.clone(),
            path if root.join(path).is_file() => root.join(path).display().to_string(),
            word => word.to_owned(),
        };
        let flags: Vec<String> = line.split_whitespace().map(place).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        // It listens when the scenario is resolved and the simulation built.
        let mut exporter = Exporter::demo(&flags);
        assert_eq!(exporter.get("/", &[]).status, 200, "{line}");
        // Before the first request there are no metrics of requests.
        exporter.wait_ready();
        assert_eq!(exporter.stop().code(), Some(0), "{line}");
    }
}

#[test]
fn demo_runs_with_closed_stdout() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut child = Command::new(rig::program());
    child
        .args(["demo", "--web.listen-address=127.0.0.1:0", "--log.level=info"])
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .stderr(rig::child::create(&log));
    let mut running = rig::child::Running::spawn("fabric-exporter", &mut child);
    // That comes after the introduction.
    rig::wait_until(std::time::Duration::from_secs(30), "a discovery", || {
        let log = rig::child::read_lossy(&log);
        assert!(!log.contains("panicked"), "{log}");
        log.contains("discovery finished").then_some(())
    });
    assert_eq!(running.stop().code(), Some(0), "{}", rig::child::read_lossy(&log));
}

#[test]
fn demo_with_two_planes_has_two_fabrics() {
    let text = "fabric: {fat-tree: {planes: 2, hosts: 8, radix: 8, down: 4, up: 4}}\n";
    let (_directory, scenario) = file(text);
    let mut exporter = Exporter::demo_uncaptured(&["--scenario", &scenario]);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    for fabric in ["default-0", "default-1"] {
        let is = |name: &str| metrics.get(name, &[("fabric", fabric)]);
        // Eight adapters, two leaves and a spine in each tree.
        assert_eq!(is("fabric_exporter_nodes_seen"), Some(8.0 + 2.0 + 1.0), "{fabric}");
        assert_eq!(is("fabric_exporter_nodes_failed"), Some(0.0), "{fabric}");
    }
    let guids: Vec<&String> =
        metrics.all("infiniband_node_info").map(|(labels, _)| &labels["guid"]).collect();
    let distinct: BTreeSet<&&String> = guids.iter().collect();
    assert_eq!((guids.len(), distinct.len()), (22, 22), "no node is in both");
    assert_eq!(exporter.stop().code(), Some(0));
}

#[test]
fn errors_on_a_present_fabric() {
    let ibsim = Ibsim::start(&topology::example("net.1"));
    let root = tempfile::tempdir().unwrap();
    let names = root.path().join("names");
    std::fs::write(&names, "0x1 \"one\"\n0x2 \"two\n").unwrap();
    let names = format!("--fabric.node-name-map={}", names.display());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--web.listen-address={}", taken.local_addr().unwrap());
    for (flag, code, says) in [
        (names.as_str(), USAGE, &["names", "line 2", "closing quote"][..]),
        ("--fabric.node-name-map=/nowhere", USAGE, &["/nowhere", "No such file"]),
        ("--fabric.capture=/nowhere/c.pcap", USAGE, &["/nowhere/c.pcap", "No such file"]),
        ("--fabric.hca=mlx5_0", NO_DEVICE, &["\"mlx5_0\"", "ibsim0"]),
        ("--fabric.pkey=0x8001", NO_DEVICE, &["ibsim0 port 1", "0x8001", "its table has 0xffff"]),
        ("--fabric.port=9", NO_DEVICE, &["no port 9"]),
        (&listen, NO_LISTENER, &["cannot listen on 127.0.0.1", "--web.listen-address"]),
    ] {
        let output = run_to_exit(&ibsim, &["serve", flag]);
        refused(output.status.code(), &output.stderr, code, says);
    }
}

#[test]
fn port_without_cable_at_start_is_refused() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 6, 4, 2));
    ibsim.console("Unlink \"host-1\"");
    let output = run_to_exit(&ibsim, &["serve"]);
    refused(output.status.code(), &output.stderr, NO_DEVICE, &["ibsim0 port 1", "no link"]);
}

#[test]
fn hostile_node_names_are_escaped() {
    let net = topology::fat_tree_2(8, 6, 4, 2).replace("# \"host-3\"", "# \"<b>ho\\st {3}, 'x'\"");
    let ibsim = Ibsim::start(&net);
    let opensm = OpenSm::start(&ibsim);
    let names = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(names.path(), "0x0002c90300000000 \"rack \\ 7\"\n").unwrap();
    let flag = format!("--fabric.node-name-map={}", names.path().display());
    let mut exporter = Exporter::start(&ibsim, &[&flag]);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    let nodes: Vec<String> =
        metrics.all("infiniband_node_info").map(|(labels, _)| labels["node"].clone()).collect();
    assert!(nodes.contains(&"rack \\ 7".to_owned()), "{nodes:?}");
    assert!(nodes.contains(&"<b>ho\\st {3}, 'x'".to_owned()), "{nodes:?}");
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn hostile_requests_are_refused() {
    let ibsim = Ibsim::start(&topology::example("net.1"));
    let mut exporter = Exporter::start(&ibsim, &["--web.telemetry-path=/numbers"]);
    exporter.wait_ready();
    assert_eq!(exporter.get("/metrics", &[]).status, 404);
    assert_eq!(exporter.get("/numbers", &[]).status, 200);
    let landing = exporter.get("/", &[]);
    assert!(landing.text().contains("href=\"/numbers\""));
    for header in ["Accept", "Accept-Encoding"] {
        for value in
            [";;;,,,q=", "application/openmetrics-text;version=\"", "gzip;q=NaN", "*/*;q=1e400"]
        {
            assert_eq!(
                exporter.get("/numbers", &[(header, value)]).status,
                200,
                "{header}: {value}"
            );
        }
    }
    assert!(exporter.stop().success());
}

#[test]
fn parts_of_a_request_in_an_error_cannot_control_the_terminal() {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s"]);
    exporter.wait_ready();
    let hostile = "%1B%5B2J%C2%9B31m%E2%80%AE%0D%0Ax";
    for path in [
        format!("/api/v1/links?{hostile}=1"),
        format!("/api/v1/links?fabric={hostile}"),
        format!("/api/v1/history/events?kind={hostile}"),
        format!("/api/v1/nodes/{hostile}"),
        format!("/api/v1/{hostile}"),
        format!("/metrics?shard={hostile}"),
        format!("/metrics?collect[]={hostile}"),
        format!("/{hostile}"),
    ] {
        let answer = exporter.get(&path, &[]);
        let text = answer.text();
        assert!(matches!(answer.status, 400 | 404), "{path}: {} {text}", answer.status);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        let is_obeyed = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
        assert!(!text.contains(is_obeyed), "{path}: {text:?}");
    }
    assert!(exporter.stop().success());
}

/// Requests each of these from a demo after its first sweep; each has to be refused with this line.
fn refusals(cases: &[(&str, u16, &str)]) {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s"]);
    exporter.wait_ready();
    for (path, status, says) in cases {
        let answer = exporter.get(path, &[]);
        let text = answer.text();
        assert_eq!(answer.status, *status, "{path}: {text:.300}");
        assert!(text.contains(says), "{path}: {says:?} is not in: {text}");
        // A page has its own text, of any number of lines.
        assert!(text.starts_with("<!DOCTYPE") || text.lines().count() == 1, "{path}: {text}");
    }
    assert!(exporter.stop().success());
}

#[test]
fn bad_parameter_is_named_with_its_values() {
    let window = "from=2026-11-21T03:12:00Z&to=2026-11-21T03:13:00Z";
    let events = format!("/api/v1/history/events?{window}");
    let asked = |rest: &str| format!("{events}&{rest}");
    let series = format!("/api/v1/history/series?{window}");
    refusals(&[
        ("/api/v1/links?suspect=maybe", 400, "suspect: \"maybe\" must be true or false\n"),
        ("/api/v1/links?suspect=true&suspect=true", 400, "suspect: is given more than once\n"),
        ("/api/v1/links?fabric=x", 400, "fabric: unknown fabric \"x\"; known: default\n"),
        (
            "/api/v1/links?suspects=true",
            400,
            "\"suspects\"; known: fabric, node, suspect, verdict, name, limit, at\n",
        ),
        ("/api/v1/nodes?kind=hub", 400, "kind: \"hub\" must be one of: switch, ca, router, "),
        ("/api/v1/nodes?fabric=x", 400, "fabric: unknown fabric \"x\"; known: default\n"),
        ("/api/v1/topology?x=1", 400, "unknown parameter \"x\"; known: fabric, at\n"),
        ("/api/v1/overview?x=1", 400, "unknown parameter \"x\"; known: at\n"),
        ("/api/v1/search", 400, "parameter \"q\" is required\n"),
        ("/api/v1/search?query=x", 400, "unknown parameter \"query\"; known: q, at\n"),
        ("/api/v1/history/span?x=1", 400, "unknown parameter \"x\": this path has no parameters\n"),
        ("/api/v1/history/dump?from=noon", 400, "from: \"noon\" must be a time such as 2026-"),
        (&asked("kind=party"), 400, "kind: \"party\" must be one of: exporter_start, "),
        (&asked("node=x"), 400, "node: \"x\" must be a GUID such as 0x"),
        (&asked("port=0x1"), 400, "port: \"0x1\" must be a port such as 0x"),
        (&asked("knd=flap"), 400, "unknown parameter \"knd\"; known: from, to, kind, "),
        (&format!("{series}&detail=most"), 400, "detail: \"most\" must be errors or all\n"),
        ("/links?verdict=worse", 400, "verdict: &quot;worse&quot; must be one of: "),
        ("/links?page=0", 400, "page: &quot;0&quot; must be a positive integer."),
        ("/events?kind=party", 400, "kind: &quot;party&quot; must be one of: exporter_start, "),
        ("/events?page=501", 400, "page: &quot;501&quot; must be a number from 1 to 500."),
        ("/events?window=2y", 400, "window: &quot;2y&quot; must be one of: 1h, 6h, 24h, 7d, 30d."),
    ]);
}

#[test]
fn scrape_parameters_select_groups_and_shards() {
    let choices = "choose from: self, fabric, nodes, links, state, ";
    refusals(&[
        ("/metrics?collect[]=nosuch", 400, &format!("collect[]: \"nosuch\" is unknown; {choices}")),
        ("/metrics?exclude%5B%5D=port", 400, &format!("exclude[]: \"port\" is unknown; {choices}")),
        ("/metrics?profile=fat", 400, "profile: \"fat\" is unknown; choose from: full, lean\n"),
        ("/metrics?shard=8/8", 400, "shard: \"8/8\" is not K/N such as 0/8: N is a power of two "),
        ("/metrics?shard=0/2&shard=1/2", 400, "shard: given more than once\n"),
    ]);
    // Without devices of its own host: these have all metrics in every profile.
    let (_scenario, path) = file("fabric: {fat-tree: {hosts: 36}}\n");
    let flags = ["--fabric.interval=1s", "--web.profile=lean", "--scenario", &path];
    let mut exporter = Exporter::demo(&flags);
    exporter.wait_ready();
    let names = |path: &str| -> BTreeSet<String> {
        let response = exporter.get(path, &[]);
        assert_eq!(response.status, 200, "{path}");
        let samples = response.text().lines().filter(|line| !line.starts_with('#'));
        let names = samples.filter_map(|line| line.split(['{', ' ']).next());
        names.filter(|name| name.starts_with("infiniband_")).map(str::to_owned).collect()
    };
    let errors = "infiniband_port_symbol_errors_total";
    assert!(!names("/metrics").contains(errors));
    assert!(names("/metrics?profile=full&module=x").contains(errors));
    assert!(names("/metrics?profile=full&shard=3/4").contains(errors));
    let bytes = ["infiniband_port_receive_bytes_total", "infiniband_port_transmit_bytes_total"];
    assert_eq!(names("/metrics?collect[]=traffic"), bytes.map(str::to_owned).into());
    assert_eq!(names("/metrics?collect[]=traffic&exclude[]=traffic"), BTreeSet::new());
    assert!(exporter.stop().success());
}

/// RFC 9112, 3.2.
#[test]
fn request_with_several_hosts_is_refused() {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s"]);
    exporter.wait_ready();
    for (head, status, says) in [
        ("GET /-/healthy HTTP/1.1\r\nHost: monitor:10315", "200", "healthy\n"),
        ("GET /-/healthy HTTP/1.0", "200", "healthy\n"),
        ("GET /-/healthy HTTP/1.1", "400", "the Host header is missing\n"),
        ("GET /nowhere HTTP/1.1", "400", "the Host header is missing\n"),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b", "400", "more than one Host header\n"),
        ("GET /metrics HTTP/1.1\r\nHost: a/b", "400", "the Host header must be a host, "),
        // Every refusal has a text.
        (
            "POST /metrics HTTP/1.1\r\nHost: a",
            "405",
            "POST is not allowed for /metrics; allowed: GET, HEAD\n",
        ),
        ("PUT /api/v1/links HTTP/1.1\r\nHost: a", "405", "PUT is not allowed for /api/v1/links; "),
        ("POST / HTTP/1.1\r\nHost: a", "405", "POST is not allowed for /; allowed: GET, HEAD\n"),
    ] {
        let mut stream = TcpStream::connect(exporter.address()).unwrap();
        write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (top, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(top.split(' ').nth(1), Some(status), "{head:?}: {answer}");
        assert!(body.starts_with(says) && body.lines().count() == 1, "{head:?}: {answer}");
        let allow = top.to_lowercase().contains("\r\nallow: get,head");
        assert_eq!(allow, status == "405", "{head:?}: {answer}");
    }
    assert!(exporter.stop().success());
}

#[test]
fn bad_m_key_file_is_refused_without_showing_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m_key");
    std::fs::write(&file, "0x0002c90300000001 0x00000000005ec2e7\n0x5ec2e7\n").unwrap();
    let config = folder.path().join("config.yml");
    std::fs::write(&config, format!("fabric: {{m-key-file: {}}}\n", file.display())).unwrap();
    let output = alone(&["check", &format!("--config.file={}", config.display())]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(USAGE), "{said}");
    let line = said.lines().find(|line| line.starts_with("error M_Key file")).unwrap_or_default();
    assert!(line.contains("line 2: a second M_Key"), "{said}");
    std::fs::write(&file, "0x5ec2e7\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file, mode).unwrap();
    let output = alone(&["check", &format!("--config.file={}", config.display())]);
    let said = [said, String::from_utf8_lossy(&output.stdout).into_owned()].concat();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("warning M_Key file") && said.contains("chmod 0640"), "{said}");
    assert!(said.contains("m_key: 1 entry"), "{said}");
    assert!(!said.contains("5ec2e7"), "{said}");
}
