//! A Prometheus that scrapes by TLS, with a password and a certificate of its own.

use std::time::Duration;

use serde_json::json;

use crate::rig::certs::{San, hash};
use crate::rig::{Prometheus, wait_until};
use crate::{Site, tls_with};

#[test]
fn prometheus_scrapes_with_a_password_and_a_certificate() {
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
    let prometheus = Prometheus::configured(&json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            job("welcome", "client", "secret"),
            job("wrong password", "client", "guess"),
            job("wrong name", "other", "secret"),
        ],
    }));
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
