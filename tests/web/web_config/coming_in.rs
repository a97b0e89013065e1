//! Who comes in by TLS, with which certificate, and with which password.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::web_config::raw::{self, Greeted};
use crate::web_config::{Site, TLS, get, tls_with};
use test_rig::certs::{Ca, San, hash, login};
use test_rig::{Exporter, require, wait_until};

#[test]
fn a_password_has_to_be_right_everywhere() {
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
            // Twice: what is remembered is the same.
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

/// A request with a login, by a connection from an address of the loopback.
fn asks(exporter: &Exporter, own: [u8; 4], user: &str, password: &str) -> TcpStream {
    let mut stream = raw::connect_from(own, exporter.address());
    let login = login(user, password);
    let request = format!(
        "GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {login}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status of the answer that comes, if one has come by now.
fn answered(stream: &mut TcpStream) -> Option<u16> {
    stream.set_nonblocking(true).unwrap();
    let is_there = matches!(stream.peek(&mut [0; 16]), Ok(1..));
    stream.set_nonblocking(false).unwrap();
    is_there.then(|| raw::status(&raw::rest(stream)).unwrap())
}

/// What the one address is answered while the other guesses at a hash that takes a minute to check.
#[test]
fn one_that_guesses_delays_nobody_else() {
    let slow = hash("x").replace("$04$", "$18$");
    let site = Site::new(&format!("basic_auth_users:\n  alice: {}\n  slow: {slow}\n", hash("a")));
    let exporter = site.prompt_exporter();
    let (attacker, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let mut guesses: Vec<_> =
        (0..40).map(|guess| asks(&exporter, attacker, "slow", &guess.to_string())).collect();
    // One is being checked and eight wait.
    let mut refused = 0;
    wait_until(Duration::from_secs(30), "the guesses to be refused", || {
        guesses.retain_mut(|guess| match answered(guess) {
            Some(status) => {
                assert_eq!(status, 503);
                refused += 1;
                false
            }
            None => true,
        });
        (refused >= 7).then_some(())
    });
    // Another's first login, and an unknown user's, come to an end meanwhile.
    for (user, status) in [("alice", 200), ("nobody", 401)] {
        let answer = raw::rest(&mut asks(&exporter, other, user, "a"));
        assert_eq!(raw::status(&answer), Some(status), "{user}");
    }
    wait_until(Duration::from_secs(30), "all but nine to be refused", || {
        guesses.retain_mut(|guess| answered(guess).is_none());
        (guesses.len() == 9).then_some(())
    });
    // Who goes away leaves the place to others, and nothing of what it asked is done.
    drop(guesses);
    wait_until(Duration::from_secs(30), "a free place", || {
        let guess = asks(&exporter, attacker, "slow", "again");
        guess.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        guess.peek(&mut [0; 16]).is_err().then_some(())
    });
}

/// What becomes of clients with these certificates.
fn clients(exporter: &Exporter, ca: &Ca, cases: &[(&str, Option<test_rig::certs::Pair>, bool)]) {
    for (who, pair, welcome) in cases {
        let got = get(&ca.agent(pair.as_ref()), exporter, "/metrics", None);
        match got {
            Ok(response) => assert!(*welcome && response.status == 200, "{who}: {response:?}"),
            Err(error) => assert!(!*welcome, "{who}: {error}"),
        }
    }
}

#[test]
fn a_client_needs_a_certificate_of_the_right_authority() {
    let site = Site::new(&tls_with(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n",
    ));
    let exporter = site.exporter();
    let foreign = Ca::new("the site's");
    clients(
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
fn a_client_needs_a_name_that_is_allowed() {
    let site = Site::new(&tls_with(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n  \
         client_allowed_sans: [prometheus, 192.0.2.7, '2001:db8::1', ops@example.org, 'spiffe://site/prom']\n",
    ));
    let exporter = site.exporter();
    let client = |san| Some(site.ca.client(&[San::Dns("other"), san], 2999));
    clients(
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
fn other_policies_on_certificates() {
    let foreign = Ca::new("foreign").client(&[], 2999);
    for (policy, without, with_foreign) in [
        ("RequestClientCert\n", true, true),
        ("RequireAnyClientCert\n", false, true),
        ("VerifyClientCertIfGiven\n  client_ca_file: ca.pem\n", true, false),
    ] {
        let site = Site::new(&tls_with(&format!("  client_auth_type: {policy}")));
        let ours = Some(site.ca.client(&[], 2999));
        clients(
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
fn without_a_ca_a_certificate_is_not_wanted_and_none_is_accepted() {
    let site = Site::new(&tls_with("  client_auth_type: VerifyClientCertIfGiven\n"));
    let exporter = site.exporter();
    let warning = "client_ca_file is missing: clients without a certificate are accepted";
    assert_eq!(exporter.log().matches(warning).count(), 1, "{}", exporter.log());
    let ours = Some(site.ca.client(&[], 2999));
    clients(&exporter, &site.ca, &[("none", None, true), ("any", ours, false)]);
}

#[test]
fn a_client_that_is_refused_is_in_the_log_with_the_reason() {
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
        clients(&exporter, &site.ca, &[("no certificate", None, false)]);
    }
    let reasons = [
        "no client certificate",
        "client certificate is of no CA in client_ca_file",
        "no TLS version, cipher suite or group in common",
        "HTTP where HTTPS is spoken",
    ];
    let line = refused(reasons[0]);
    for says in ["level=info", "peer=127.0.0.1:", "suppressed=0"] {
        assert!(line.contains(says), "{says:?}: {line}");
    }
    // One in ten seconds: far fewer than there were.
    assert!(exporter.log().matches(reasons[0]).count() < 10, "{}", exporter.log());
    let foreign = Some(Ca::new("foreign").client(&[], 2999));
    clients(&exporter, &site.ca, &[("foreign", foreign, false)]);
    assert_eq!(raw::greet(exporter.address(), 0x0302), Greeted::Alert(70));
    curl(&site, &format!("http://{}/", exporter.address()), &[]);
    // A probe that connects and leaves is not refused.
    drop(raw::connect(exporter.address()));
    clients(&exporter, &site.ca, &[("ours", Some(site.ca.client(&[], 2999)), true)]);
    for reason in reasons {
        refused(reason);
    }
    for line in exporter.log().lines().filter(|line| line.contains("client refused")) {
        assert!(reasons.iter().any(|reason| line.contains(reason)), "{line}");
    }
}

#[test]
fn tls_1_2_and_1_3_are_spoken_and_older_ones_are_not() {
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
fn cipher_suites_and_curves_are_those_of_the_file() {
    let site = Site::new(&tls_with(
        "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n  curve_preferences: [CurveP384]\n",
    ));
    let exporter = site.exporter();
    for (flags, reaches) in [
        (&["-tls1_2"][..], true),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"], true),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], false),
        (&["-tls1_3", "-curves", "P-384"], true),
        (&["-tls1_3", "-curves", "X25519"], false),
    ] {
        let (said, reached) = s_client(&exporter, &site, flags);
        assert_eq!(reached, reaches, "{flags:?}: {said}");
    }
}

/// Whether openssl reaches the exporter.
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

/// What curl says of an address.
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
fn http_2_is_spoken_over_tls_unless_it_is_switched_off() {
    let version = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
    for (more, says) in [("", "2 200"), ("http_server_config: {http2: false}", "1.1 200")] {
        let site = Site::new(&format!("{TLS}{more}"));
        let exporter = site.exporter();
        let url = format!("https://{}/metrics", exporter.address());
        assert_eq!(curl(&site, &url, &version), says);
        assert_eq!(curl(&site, &url, &[&version[..], &["--http1.1"]].concat()), "1.1 200");
        let plain = format!("http://{}/metrics", exporter.address());
        assert!(curl(&site, &plain, &[]).contains("https:// is spoken here"));
    }
}

#[test]
fn a_demo_with_tls_says_so_where_it_tells_its_address() {
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
    // What it sent is looked at as it ends: it is to have sent something.
    wait_until(Duration::from_secs(30), "the first MADs", || {
        let capture = std::fs::metadata(exporter.dir().join("capture.pcap")).ok()?;
        (capture.len() > 4_096).then_some(())
    });
}

#[test]
fn headers_go_with_each_answer() {
    let site = Site::new(
        "http_server_config:\n  headers: {X-Frame-Options: deny, Strict-Transport-Security: max-age=5, \
         X-Content-Type-Options: ''}\n",
    );
    let exporter = site.exporter();
    for path in ["/", "/metrics", "/nowhere"] {
        let response = exporter.get(path, &[]);
        assert_eq!(response.header("x-frame-options"), Some("deny"), "{path}");
        assert_eq!(response.header("strict-transport-security"), Some("max-age=5"), "{path}");
        // Empty says nothing; what pages have of themselves stays.
        let own = (path != "/metrics").then_some("nosniff");
        assert_eq!(response.header("x-content-type-options"), own, "{path}");
    }
}

#[test]
fn requests_beyond_the_limit_are_turned_away() {
    let site = Site::new("rate_limit: {interval: 1h, burst: 3}\n");
    let exporter = site.exporter();
    let status: Vec<u16> = (0..5).map(|_| exporter.get("/-/healthy", &[]).status).collect();
    assert_eq!(status, [200, 200, 200, 429, 429]);
}
