//! Access by TLS, client certificates and passwords.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::web_config::raw::{self, Greeted};
use crate::web_config::{Site, TLS, get, tls_with};
use test_rig::certs::{Ca, San, hash, login};
use test_rig::{Exporter, require, wait_until};

#[test]
fn every_path_needs_the_right_password() {
    let site = Site::new(&format!("{TLS}basic_auth_users:\n  alice: {}\n", hash("wonder:land")));
    let exporter = site.exporter();
    let agent = site.ca.agent(None);
    let right = login("alice", "wonder:land");
    for path in ["/", "/metrics", "/-/healthy", "/api/v1/links", "/nowhere"] {
        for wrong in [
            None,
            Some(login("alice", "x")),
            Some(login("bob", "wonder:land")),
            Some("Basic !".into()),
        ] {
            // Twice: the cached result is the same.
            for _ in 0..2 {
                let response = get(&agent, &exporter, path, wrong.as_deref()).unwrap();
                assert_eq!(response.status, 401, "{path} {wrong:?}");
                assert_eq!(response.header("www-authenticate"), Some("Basic"));
            }
        }
        let response = get(&agent, &exporter, path, Some(&right)).unwrap();
        assert_eq!(response.status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
}

/// Sends a request with a login from an address of the loopback.
fn send_login(exporter: &Exporter, own: [u8; 4], user: &str, password: &str) -> TcpStream {
    let mut stream = raw::connect_from(own, exporter.address());
    let login = login(user, password);
    let request = format!(
        "GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {login}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status of the response, if it is there by now.
fn try_status(stream: &mut TcpStream) -> Option<u16> {
    stream.set_nonblocking(true).unwrap();
    let is_there = matches!(stream.peek(&mut [0; 16]), Ok(1..));
    stream.set_nonblocking(false).unwrap();
    is_there.then(|| raw::status(&raw::rest(stream)).unwrap())
}

/// The hash that is guessed at takes 15 s to check.
#[test]
fn guesses_do_not_delay_logins_of_others() {
    let slow = hash("x").replace("$04$", "$18$");
    let site = Site::new(&format!("basic_auth_users:\n  alice: {}\n  slow: {slow}\n", hash("a")));
    let exporter = site.prompt_exporter();
    let (attacker, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let mut guesses: Vec<_> =
        (0..40).map(|guess| send_login(&exporter, attacker, "slow", &guess.to_string())).collect();
    // One is being checked and eight wait.
    let mut refused = 0;
    wait_until(Duration::from_secs(30), "the guesses to be refused", || {
        guesses.retain_mut(|guess| match try_status(guess) {
            Some(status) => {
                assert_eq!(status, 503);
                refused += 1;
                false
            }
            None => true,
        });
        (refused >= 7).then_some(())
    });
    // The first login of another client, and one of an unknown user, are answered meanwhile.
    for (user, status) in [("alice", 200), ("nobody", 401)] {
        let answer = raw::rest(&mut send_login(&exporter, other, user, "a"));
        assert_eq!(raw::status(&answer), Some(status), "{user}");
    }
    wait_until(Duration::from_secs(30), "all but nine to be refused", || {
        guesses.retain_mut(|guess| try_status(guess).is_none());
        (guesses.len() == 9).then_some(())
    });
    // Clients that disconnect free their places, and their passwords are not checked.
    drop(guesses);
    wait_until(Duration::from_secs(30), "a free place", || {
        let guess = send_login(&exporter, attacker, "slow", "again");
        guess.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        guess.peek(&mut [0; 16]).is_err().then_some(())
    });
}

/// Whether clients with these certificates are accepted.
fn check_clients(
    exporter: &Exporter,
    ca: &Ca,
    cases: &[(&str, Option<test_rig::certs::Pair>, bool)],
) {
    for (who, pair, accepted) in cases {
        let got = get(&ca.agent(pair.as_ref()), exporter, "/metrics", None);
        match got {
            Ok(response) => assert!(*accepted && response.status == 200, "{who}: {response:?}"),
            Err(error) => assert!(!*accepted, "{who}: {error}"),
        }
    }
}

#[test]
fn client_certificate_has_to_be_of_the_right_ca() {
    let site = Site::new(&tls_with(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n",
    ));
    let exporter = site.exporter();
    let foreign = Ca::new("the site's");
    check_clients(
        &exporter,
        &site.ca,
        &[
            ("ours", Some(site.ca.client(&[San::Dns("prometheus")], 2999)), true),
            ("no certificate", None, false),
            ("expired", Some(site.ca.client(&[San::Dns("prometheus")], 2001)), false),
            (
                "another's of the same name",
                Some(foreign.client(&[San::Dns("prometheus")], 2999)),
                false,
            ),
            ("a server's", Some(site.ca.server()), false),
        ],
    );
}

#[test]
fn client_certificate_needs_an_allowed_name() {
    let site = Site::new(&tls_with(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n  \
         client_allowed_sans: [prometheus, 192.0.2.7, '2001:db8::1', ops@example.org, 'spiffe://site/prom']\n",
    ));
    let exporter = site.exporter();
    let client = |san| Some(site.ca.client(&[San::Dns("other"), san], 2999));
    check_clients(
        &exporter,
        &site.ca,
        &[
            ("dns", client(San::Dns("prometheus")), true),
            ("address", client(San::Ip("192.0.2.7")), true),
            ("long address", client(San::Ip("2001:db8::1")), true),
            ("mail", client(San::Mail("ops@example.org")), true),
            ("uri", client(San::Uri("spiffe://site/prom")), true),
            ("another", client(San::Dns("prometheus.example.org")), false),
            ("a part", client(San::Uri("spiffe://site/prom/2")), false),
            ("no name", Some(site.ca.client(&[], 2999)), false),
            ("foreign", Some(Ca::new("x").client(&[San::Dns("prometheus")], 2999)), false),
        ],
    );
}

#[test]
fn client_auth_policies() {
    let foreign = Ca::new("foreign").client(&[], 2999);
    for (policy, without, with_foreign) in [
        ("RequestClientCert\n", true, true),
        ("RequireAnyClientCert\n", false, true),
        ("VerifyClientCertIfGiven\n  client_ca_file: ca.pem\n", true, false),
    ] {
        let site = Site::new(&tls_with(&format!("  client_auth_type: {policy}")));
        let ours = Some(site.ca.client(&[], 2999));
        check_clients(
            &site.exporter(),
            &site.ca,
            &[
                ("none", None, without),
                ("foreign", Some(foreign.clone()), with_foreign),
                ("ours", ours, true),
            ],
        );
    }
}

#[test]
fn verify_if_given_without_a_ca_refuses_every_certificate() {
    let site = Site::new(&tls_with("  client_auth_type: VerifyClientCertIfGiven\n"));
    let exporter = site.exporter();
    let warning = "client_ca_file is missing: clients without a certificate are accepted";
    assert_eq!(exporter.log().matches(warning).count(), 1, "{}", exporter.log());
    let ours = Some(site.ca.client(&[], 2999));
    check_clients(&exporter, &site.ca, &[("none", None, true), ("any", ours, false)]);
}

#[test]
fn refused_client_is_logged_with_the_reason() {
    let site = Site::new(&tls_with(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n",
    ));
    let exporter = site.prompt_exporter();
    let refused = |reason: &str| {
        wait_until(Duration::from_secs(30), reason, || {
            let log = exporter.log();
            let line =
                log.lines().find(|line| line.contains("client refused") && line.contains(reason));
            line.map(str::to_owned)
        })
    };
    for _ in 0..20 {
        check_clients(&exporter, &site.ca, &[("no certificate", None, false)]);
    }
    let reasons = [
        "no client certificate",
        "client certificate is not signed by a CA in client_ca_file",
        "no common TLS version, cipher suite or group",
        "plain HTTP request on an HTTPS port",
    ];
    let line = refused(reasons[0]);
    for says in ["level=info", "peer=127.0.0.1:", "suppressed=0"] {
        assert!(line.contains(says), "{says:?}: {line}");
    }
    // One in ten seconds: far fewer than there were.
    assert!(exporter.log().matches(reasons[0]).count() < 10, "{}", exporter.log());
    let foreign = Some(Ca::new("foreign").client(&[], 2999));
    check_clients(&exporter, &site.ca, &[("foreign", foreign, false)]);
    assert_eq!(raw::greet(exporter.address(), 0x0302), Greeted::Alert(70));
    curl(&site, &format!("http://{}/", exporter.address()), &[]);
    // A probe that connects and disconnects is not logged.
    drop(raw::connect(exporter.address()));
    check_clients(&exporter, &site.ca, &[("ours", Some(site.ca.client(&[], 2999)), true)]);
    for reason in reasons {
        refused(reason);
    }
    for line in exporter.log().lines().filter(|line| line.contains("client refused")) {
        assert!(reasons.iter().any(|reason| line.contains(reason)), "{line}");
    }
}

#[test]
fn tls_1_2_and_1_3_are_spoken_and_no_older_ones() {
    let site = Site::new(TLS);
    let exporter = site.exporter();
    assert_eq!(raw::greet(exporter.address(), 0x0303), Greeted::Hello);
    // protocol_version, RFC 8446, 6.2.
    for older in [0x0300, 0x0301, 0x0302] {
        assert_eq!(raw::greet(exporter.address(), older), Greeted::Alert(70), "{older:#x}");
    }
    for version in ["-tls1_2", "-tls1_3"] {
        let (said, reaches) = s_client(&exporter, &site, &[version]);
        assert!(reaches, "{version}: {said}");
    }
    let twelve = Site::new(&tls_with("  max_version: TLS12\n"));
    let exporter = twelve.exporter();
    assert!(s_client(&exporter, &twelve, &["-tls1_2"]).1);
    assert!(!s_client(&exporter, &twelve, &["-tls1_3"]).1);
}

#[test]
fn cipher_suites_and_curves_of_the_file_are_ignored() {
    let site = Site::new(&tls_with(
        "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n  curve_preferences: [CurveP384]\n",
    ));
    let exporter = site.exporter();
    for key in ["cipher_suites", "curve_preferences"] {
        let warning = format!("tls_server_config.{key}: is ignored");
        assert_eq!(exporter.log().matches(&warning).count(), 1, "{}", exporter.log());
    }
    for (flags, connects) in [
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"][..], true),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], true),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], false),
        (&["-tls1_3", "-curves", "P-384"], true),
        (&["-tls1_3", "-curves", "X25519"], true),
    ] {
        let (output, connected) = s_client(&exporter, &site, flags);
        assert_eq!(connected, connects, "{flags:?}: {output}");
    }
}

/// The output of openssl, and whether it connects.
fn s_client(exporter: &Exporter, site: &Site, flags: &[&str]) -> (String, bool) {
    let output = Command::new(require("openssl"))
        .args(["s_client", "-connect", exporter.address(), "-verify_return_error", "-CAfile"])
        .arg(site.path().join("ca.pem"))
        .args(flags)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (said, output.status.success())
}

/// The output of curl.
fn curl(site: &Site, url: &str, flags: &[&str]) -> String {
    let output = Command::new(require("curl"))
        .args(["-sS", "--noproxy", "*", "--cacert"])
        .arg(site.path().join("ca.pem"))
        .args(flags)
        .arg(url)
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn http_1_1_is_spoken_whatever_the_file_says_of_http_2() {
    let version = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
    for (more, warnings) in [("", 0), ("false", 0), ("true", 1)] {
        let more = if more.is_empty() {
            String::new()
        } else {
            format!("http_server_config: {{http2: {more}}}")
        };
        let site = Site::new(&format!("{TLS}{more}"));
        let exporter = site.exporter();
        let url = format!("https://{}/metrics", exporter.address());
        assert_eq!(curl(&site, &url, &[&version[..], &["--http2"]].concat()), "1.1 200");
        let warning = "http_server_config.http2: HTTP/2 is not supported";
        assert_eq!(exporter.log().matches(warning).count(), warnings, "{}", exporter.log());
        let plain = format!("http://{}/metrics", exporter.address());
        let refused = curl(&site, &plain, &["-i", "--http0.9"]);
        assert!(refused.contains("this port requires HTTPS"), "{refused}");
        assert!(refused.contains("\r\nX-Content-Type-Options: nosniff\r\n"), "{refused}");
    }
}

#[test]
fn demo_with_tls_prints_https_addresses() {
    let site = Site::new(TLS);
    let exporter = site.exporter_with(&["--web.telemetry-path=/numbers"]);
    let told = wait_until(Duration::from_secs(30), "the introduction", || {
        let told = std::fs::read_to_string(exporter.dir().join("stdout")).ok()?;
        told.contains("Ctrl-C").then_some(told)
    });
    assert!(!told.contains("http://"), "{told}");
    for path in ["/ ", "/topology ", "/numbers ", "\n"] {
        assert!(told.contains(&format!("https://{}{path}", exporter.address())), "{path}: {told}");
    }
    // Its MADs are checked as it ends: it has to have sent some.
    wait_until(Duration::from_secs(30), "the first MADs", || {
        let capture = std::fs::metadata(exporter.dir().join("capture.pcap")).ok()?;
        (capture.len() > 4_096).then_some(())
    });
}

#[test]
fn configured_headers_are_in_each_response() {
    let site = Site::new(
        "http_server_config:\n  headers: {X-Frame-Options: deny, Strict-Transport-Security: max-age=5, \
         X-Content-Type-Options: ''}\n",
    );
    let exporter = site.exporter();
    for path in ["/", "/metrics", "/nowhere"] {
        let response = exporter.get(path, &[]);
        assert_eq!(response.header("x-frame-options"), Some("deny"), "{path}");
        assert_eq!(response.header("strict-transport-security"), Some("max-age=5"), "{path}");
        // An empty value sets nothing; the server's own header stays.
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

#[test]
fn requests_beyond_the_rate_limit_are_a_429() {
    let site = Site::new("rate_limit: {interval: 1h, burst: 3}\n");
    let exporter = site.exporter();
    let status: Vec<u16> = (0..5).map(|_| exporter.get("/-/healthy", &[]).status).collect();
    assert_eq!(status, [200, 200, 200, 429, 429]);
}
