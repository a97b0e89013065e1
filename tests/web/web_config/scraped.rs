//! Clients with TLS, a password and a certificate: a Prometheus, and the exporter's own verbs.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::web_config::{Site, tls_with};
use test_rig::certs::{Ca, San, hash};
use test_rig::program;
use test_rig::{Prometheus, wait_until};

#[test]
fn prometheus_scrapes_with_password_and_certificate() {
    let site = Site::new(&tls_with(&format!(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n  client_allowed_sans: \
         [prometheus]\nbasic_auth_users:\n  prom: {}\n",
        hash("secret")
    )));
    let mut exporter = site.exporter();
    site.ca.client(&[San::Dns("prometheus")], 2999).write(site.path(), "client");
    site.ca.client(&[San::Dns("somebody")], 2999).write(site.path(), "other");
    let job = |name: &str, cert: &str, password: &str| {
        let file = |name: &str| site.path().join(name).display().to_string();
        json!({
            "job_name": name,
            "scheme": "https",
            "basic_auth": {"username": "prom", "password": password},
            "tls_config": {
                "ca_file": file("ca.pem"),
                "cert_file": file(&format!("{cert}.pem")),
                "key_file": file(&format!("{cert}.key")),
            },
            "static_configs": [{"targets": [exporter.address()]}],
        })
    };
    let prometheus = Prometheus::configured(
        &json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                job("welcome", "client", "secret"),
                job("wrong password", "client", "guess"),
                job("wrong name", "other", "secret"),
            ],
        })
        .to_string(),
    );
    let limit = Duration::from_secs(60);
    let number = |query: &str| prometheus.number(query);
    wait_until(limit, "a scrape", || (number("up{job='welcome'}") == Some(1.0)).then_some(()));
    wait_until(limit, "what was scraped", || {
        number("count(infiniband_port_transmit_bytes_total{job='welcome'})").filter(|n| *n > 50.0)
    });
    for job in ["wrong password", "wrong name"] {
        let query = format!("max_over_time(up{{job='{job}'}}[1h])");
        wait_until(limit, "an attempt", || number(&query).filter(|up| *up == 0.0));
    }
    assert!(exporter.stop().success());
}

#[test]
fn own_verbs_connect_with_password_and_certificate() {
    let site = Site::new(&tls_with(&format!(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\nbasic_auth_users:\n  me: {}\n",
        hash("my secret")
    )));
    let file = |name: &str| site.path().join(name).display().to_string();
    site.ca.client(&[San::Dns("me")], 2999).write(site.path(), "me");
    Ca::new("another").client(&[], 2999).write(site.path(), "other");
    std::fs::write(file("password"), "my secret\n").unwrap();
    std::fs::write(file("wrong"), "a guess").unwrap();
    let flag = format!("--history.file={}", file("h.db"));
    let mut exporter = site.exporter_with(&[&flag]);
    let url = |user: &str| format!("https://{user}{}", exporter.address());
    let ca = format!("--source.ca-file={}", file("ca.pem"));
    let pair = |name: &str| {
        let (cert, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        [format!("--source.cert-file={cert}"), format!("--source.key-file={key}")]
    };
    let password = |name: &str| format!("--source.password-file={}", file(name));
    let ask = |verb: &[&str], user: &str, more: &[&str]| {
        let output = Command::new(program())
            .args(verb)
            .args(["--url", &url(user)])
            .args(more)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let ([cert, key], [other, other_key]) = (pair("me"), pair("other"));
    let events = &["history", "events"][..];
    let nowhere = "--source.ca-file=/nowhere".to_owned();
    let (good, bad) = (password("password"), password("wrong"));
    for (verb, user, more, code, says) in [
        (events, "me@", &[&ca, &cert, &key, &good][..], 0, ""),
        (&["links"], "me@", &[&ca, &cert, &key, &good], 0, ""),
        (&["links"], "me:my%20secret@", &[&ca, &cert, &key], 0, ""),
        (&["links"], "me@", &[&ca, &cert, &key, &bad], 1, "login required"),
        (events, "", &[&ca, &cert, &key], 1, "login required"),
        (&["links"], "me@", &[&ca, &good], 1, "request failed"),
        (&["links"], "me@", &[&ca, &other, &other_key, &good], 1, "request failed"),
        (&["links"], "me@", &[&cert, &key, &good], 1, "request failed"),
        (&["links"], "", &[&good], 2, "--source.password-file: the user is missing"),
        (&["links"], "me:my%20secret@", &[&good], 2, "the address also contains a password"),
        (events, "me@", &[&cert], 2, "both are required"),
        (events, "", &[&nowhere], 2, "--source.ca-file: /nowhere: No such file"),
    ] {
        let more: Vec<&str> = more.iter().map(|flag| flag as &str).collect();
        let (exit, told) = ask(verb, user, &more);
        assert_eq!(exit, Some(code), "{verb:?} {more:?}: {told}");
        assert!(told.contains(says) && !told.contains("secret"), "{verb:?} {more:?}: {told}");
    }
    assert!(exporter.stop().success());
}
