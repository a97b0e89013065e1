//! What is refused is counted.

use std::io::Write;

use axum::Router;
use axum::routing::get;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use exporter_web::{AllowedHosts, Limits, Refusal, RequestClass, Security};

use crate::served::{Served, request, rest, status, wait_until};

fn router() -> Router {
    Router::new().route("/", get(|| async { "fine\n" }))
}

#[test]
fn wrong_logins_and_hosts_are_counted_and_errors_have_nosniff() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("web.yml");
    let hash = bcrypt::hash("right", 4).unwrap();
    std::fs::write(&file, format!("basic_auth_users:\n  a: {hash}\n")).unwrap();
    let hosts = AllowedHosts::new(&["x".to_owned()], &[]);
    let security = Security::load(Some(&file)).unwrap().only_for(hosts);
    let refusals = security.refusals();
    let served = Served::secured(Limits::default(), router(), |_| RequestClass::Ready, security);
    let answer = |host: &str, login: Option<&str>| {
        let login = login
            .map(|login| format!("\r\nAuthorization: Basic {}", BASE64_STANDARD.encode(login)));
        let head = format!("Host: {host}{}", login.unwrap_or_default());
        let mut stream = served.connect();
        stream.write_all(request("/").replace("Host: x", &head).as_bytes()).unwrap();
        let response = rest(&mut stream);
        assert!(response.contains("\r\nx-content-type-options: nosniff\r\n"), "{response}");
        status(&response).unwrap()
    };
    assert_eq!(answer("x", Some("a:right")), 200);
    assert_eq!(answer("x", None), 401);
    assert_eq!([answer("x", Some("a:b")), answer("x", Some("b:right"))], [401, 401]);
    assert_eq!(answer("evil.example", Some("a:right")), 421);
    let counts = [Refusal::LoginMissing, Refusal::LoginWrong, Refusal::Host, Refusal::LoginBusy]
        .map(|refusal| refusals.count(refusal));
    assert_eq!(counts, [1, 2, 1, 0]);
}

#[test]
fn closed_connections_are_counted() {
    let security = Security::load(None).unwrap();
    let refusals = security.refusals();
    let limits = Limits { connections: 4, ..Limits::default() };
    let served = Served::secured(limits, router(), |_| RequestClass::Ready, security);
    let _open: Vec<_> = (0..6).map(|_| served.connect()).collect();
    wait_until("the count", || refusals.count(Refusal::ConnectionDisplaced) == 2);
    assert_eq!(status(&served.get("/")), Some(200));
}
