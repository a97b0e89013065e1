//! The exporter's own files and its address.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::doctor::patient::TestHost;
use test_rig::Exporter;
use test_rig::certs::{Ca, hash};
use test_rig::sysfs::{Device, Tree};

fn patient() -> TestHost {
    TestHost::with([Device::mlx4("mlx4_0")])
}

#[test]
fn unusable_files_are_findings() {
    let patient = patient();
    let file = |name: &str, text: &str| {
        std::fs::write(patient.path(name), text).unwrap();
        patient.path(name).display().to_string()
    };
    let config = file("config.yml", "fabric: {intervall: 5s}\n");
    let found = patient.report(&[&format!("--config.file={config}")]);
    found.one("configuration", "--config.file").says("bad", "intervall", "docs/configuration.md");
    assert_eq!(found.troubles(), ["configuration: --config.file"], "the rest is checked");
    assert_eq!(found.code, 6);

    // A program writes it, and may not have done so yet.
    let drained = patient.path("drained").display().to_string();
    let flag = format!("--health.drained-hosts-file={drained}");
    let what = "--health.drained-hosts-file";
    for (text, says) in [(None, "No such file"), (Some("gpu[1-4]\ngpu[8-\n"), "line 2: \"gpu[8-\"")]
    {
        let _ = text.map(|text| file("drained", text));
        let found = patient.report(&[&flag]);
        let all =
            found.of_subject("configuration").into_iter().filter(|it| it.text("what") == what);
        let warned = all.filter(|it| it.text("level") == "warn").collect::<Vec<_>>();
        assert_eq!(warned.len(), 1, "{:#}", found.json);
        warned[0].says("warn", says, "run what writes it");
    }
    file("drained", "gpu[001-004,7]\n");
    let found = patient.report(&[&flag]);
    found.one("configuration", what).says("ok", "entries: 1", "");

    let (names, work) = (file("names", "no guid here\n"), file("work.yml", "- {nod: x}\n"));
    let flags = [
        &*format!("--fabric.node-name-map={names}"),
        &*format!("--health.maintenance-file={work}"),
        "--history.file=/proc/none/history.db",
    ];
    let found = patient.report(&flags);
    found.one("configuration", "--fabric.node-name-map").says("bad", &names, "edit it");
    found.one("configuration", "--health.maintenance-file").says("bad", "nod", "edit it");
    found.one("configuration", "--history.file").says("bad", "not writable", "mkdir -p /proc");

    let config = file("config.yml", &format!("fabric: {{node-name-map: {names}}}\n"));
    file("names", "0x0002c90300000001 \"leaf 1\"\n");
    file("work.yml", "- {node: leaf-1}\n");
    let history = patient.path("history.db").display().to_string();
    let found = patient.report(&[
        &format!("--config.file={config}"),
        flags[1],
        // The required free space does not depend on the disk of the tests, except for the minimum.
        &format!("--history.file={history}"),
        "--history.size=16MiB",
    ]);
    found.one("configuration", "--config.file").says("ok", "valid; fabrics: 1", "");
    found.one("configuration", "--fabric.node-name-map").says("ok", "entries: 1", "");
    found.one("configuration", "--health.maintenance-file").says("ok", "entries: 1", "");
    found.one("configuration", "--history.file").says("ok", "size 0 MiB", "");
    assert!(!patient.path("history.db").exists(), "doctor creates no file");

    let flag = format!("--web.config.file={}", file("web.yml", "basic_auth_users: {a: plain}\n"));
    let found = patient.report(&[&flag]);
    found.one("configuration", "--web.config.file").says("bad", "not a bcrypt hash", "security.md");
    file("web.yml", &format!("basic_auth_users: {{'a:b': {}}}\n", hash("b")));
    let found = patient.report(&[&flag]);
    let told = found.of_subject("configuration").into_iter();
    let told: Vec<_> = told.filter(|it| it.text("what") == "--web.config.file").collect();
    let [loads, warned] = told[..] else { panic!("{told:#?}") };
    loads.says("ok", "no TLS; 1 user", "");
    warned.says("warn", "a colon in its name", "security.md");

    let usage = patient.run(&["--fabric.retries=99"]);
    assert_eq!(usage.status.code(), Some(2), "{}", usage.stderr);
    assert_eq!(usage.stderr.lines().count(), 1, "{}", usage.stderr);
}

#[test]
fn used_listen_address_is_a_finding() {
    let patient = patient();
    let at = |address: &str| {
        let found = patient.report(&[&format!("--web.listen-address={address}")]);
        found.one("listener", address).text("found").to_owned()
    };
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_eq!(at(&free), "free; loopback, reachable only from this host");

    let mut exporter = Exporter::on_host(&Tree::empty(), &[]);
    let version = env!("CARGO_PKG_VERSION");
    let ours =
        format!("in use by fabric-exporter {version}; loopback, reachable only from this host");
    assert_eq!(at(exporter.address()), ours);
    assert!(exporter.stop().success());

    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "SSH-2.0-x\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let found = patient.report(&[&format!("--web.listen-address={address}")]);
        let fix = "ss -ltnp 'sport = :";
        found.one("listener", &address).says("bad", "other than fabric-exporter", fix);
        assert_eq!(found.code, 6);
    }
    let certs = tempfile::tempdir().unwrap();
    Ca::new("a site's").server().write(certs.path(), "server");
    let web = |name: &str, text: &str| {
        let file = certs.path().join(name);
        std::fs::write(&file, text).unwrap();
        format!("--web.config.file={}", file.display())
    };
    let tls = web("tls.yml", "tls_server_config: {cert_file: server.pem, key_file: server.key}\n");
    let login = web("login.yml", &format!("basic_auth_users: {{a: {}}}\n", hash("b")));
    for (flag, how) in [(tls, "requires TLS"), (login, "requires a login")] {
        let exporter = Exporter::on_host(&Tree::empty(), &[&flag]);
        let found = patient.report(&[&format!("--web.listen-address={}", exporter.address())]);
        found.one("listener", exporter.address()).says("note", how, "ss -ltnp");
    }
    let found = patient.report(&["--web.systemd-socket"]);
    found.one("listener", "--web.systemd-socket").says("note", "systemd passes", "list-sockets");
    // 192.0.2.0/24 is reserved (RFC 5737).
    let found = patient.report(&["--web.listen-address=192.0.2.1:10315"]);
    found.one("listener", "192.0.2.1:10315").says("bad", "cannot listen", "ip addr");
}
