//! Valid and invalid web config files: what `check` prints, and what a start does.

use std::process::Command;
use std::time::Duration;

use crate::web_config::{Site, TLS, tls_with};
use test_rig::certs::{Ca, hash};
use test_rig::program;
use test_rig::wait_until;

/// The text without columns, so that a table of mistakes stays readable.
fn without_columns(text: &str) -> String {
    let mut parts = text.split(", column ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|it: char| it.is_ascii_digit()))
}

/// The output of `check` for a web config file, without columns, and its exit code.
fn check(site: &Site, web: &str) -> (String, Option<i32>) {
    site.write(web);
    let output = Command::new(program())
        .current_dir(site.path())
        .args(["check", "--web.config.file=web.yml"])
        .output()
        .unwrap();
    (without_columns(&String::from_utf8(output.stdout).unwrap()), output.status.code())
}

/// Runs the program, which has to end by itself: `timeout` would end it with 124.
fn ended(site: &Site, args: &[&str]) -> (String, Option<i32>) {
    let output = Command::new("timeout")
        .current_dir(site.path())
        .args(["60", program()])
        .args(args)
        .output()
        .unwrap();
    let told = [output.stdout, output.stderr].concat();
    (String::from_utf8(told).unwrap(), output.status.code())
}

#[test]
fn all_mistakes_are_reported_with_line_column_and_key() {
    let site = Site::new("");
    site.write(
        "tls_server_config:\n  cert_file: nowhere.pem\n  key_file: [a]\n  min_version: TLS99\n  \
         client_auth_type: x\nhttp_server_config:\n  http2: perhaps\n  headers: {X-Frame-Options: foo, Server: \
         a}\nbasic_auth_users: {a: b, c: d}\nrate_limit: {interval: soon, burst: -1}\nextra: 1\n",
    );
    let (told, code) = ended(&site, &["check", "--web.config.file=web.yml"]);
    assert_eq!(code, Some(2), "{told}");
    for says in [
        "line 2, column 14: tls_server_config.cert_file: cannot read nowhere.pem: No such file",
        "line 3, column 13: tls_server_config.key_file: must be a single value, not a list",
        "line 4, column 16: tls_server_config.min_version: \"TLS99\" is not one of: TLS12, TLS13",
        "line 5, column 21: tls_server_config.client_auth_type: \"x\" is not one of: NoClientCert, ",
        "line 7, column 10: http_server_config.http2: \"perhaps\" is neither true nor false",
        "line 8, column 30: http_server_config.headers.X-Frame-Options: \"foo\" is not one of: deny, sameorigin",
        "line 8, column 43: http_server_config.headers.Server: header cannot be set; allowed: ",
        "line 9, column 23: basic_auth_users.a: is not a bcrypt hash",
        "line 9, column 29: basic_auth_users.c: is not a bcrypt hash",
        "line 10, column 24: rate_limit.interval: \"soon\" is not a duration",
        "line 10, column 37: rate_limit.burst: \"-1\" is not a whole number between 0 and 4294967295",
        "line 11, column 1: extra: unknown key; known: tls_server_config, ",
    ] {
        let line = format!("error web config file web.yml: {says}");
        assert!(told.lines().any(|told| told.starts_with(&line)), "{line}\n{told}");
    }
    let errors = told.lines().filter(|line| line.starts_with("error ")).count();
    assert_eq!(errors, 12, "{told}");
    assert!(told.contains("check failed: 12 errors"), "{told}");
}

#[test]
fn start_refuses_an_unusable_site_file() {
    let site = Site::new("");
    let write = |name: &str, text: &str| std::fs::write(site.path().join(name), text).unwrap();
    write("work.yml", "- {node: a, from: 2026-12-02T00:00:00Z, until: 2026-12-01T00:00:00Z}\n");
    write("names", "leaf\n");
    write("key", "not a key\n");
    let serve =
        ["serve", "--no-collector.fabric", "--path.sysfs=.", "--web.listen-address=127.0.0.1:0"];
    for (flag, says) in [
        ("--health.maintenance-file=missing.yml", "maintenance file missing.yml: No such file"),
        (
            "--health.maintenance-file=work.yml",
            "maintenance file work.yml: line 1, column 48: [0].until: 2026-12-01T00:00:00Z is not later than \"from\"",
        ),
        ("--fabric.node-name-map=names", "node-name-map names: line 1: \"leaf\" is not a GUID"),
        ("--fabric.m-key-file=key", "M_Key file key: line 1: "),
    ] {
        let (told, code) = ended(&site, &[&serve[..], &[flag]].concat());
        assert_eq!(code, Some(2), "{flag}: {told}");
        assert!(told.starts_with(&format!("fabric-exporter: {says}")), "{flag}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    // So does `check` for a config file with the fabric collector off.
    write("c.yml", "collector: {fabric: false}\nhealth: {maintenance-file: missing.yml}\n");
    let (told, code) = ended(&site, &["check", "--config.file=c.yml"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("error maintenance file missing.yml: No such file"), "{told}");
}

#[test]
fn pipe_or_device_in_place_of_a_file_is_an_error_at_once() {
    let site = Site::new("");
    let made = Command::new("mkfifo").arg(site.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let serve =
        ["serve", "--no-collector.fabric", "--path.sysfs=.", "--web.listen-address=127.0.0.1:0"];
    for (flag, kind) in [
        ("--config.file", "config file"),
        ("--web.config.file", "web config file"),
        ("--health.maintenance-file", "maintenance file"),
        ("--fabric.node-name-map", "node-name-map"),
        ("--fabric.m-key-file", "M_Key file"),
    ] {
        for (path, what) in [("pipe", "a pipe"), ("/dev/zero", "a device"), (".", "a directory")] {
            let (told, code) = ended(&site, &[&serve[..], &[&format!("{flag}={path}")]].concat());
            assert_eq!(code, Some(2), "{flag} {path}: {told}");
            assert!(told.contains(&format!("{kind} {path}: ")) && told.contains(what), "{told}");
        }
    }
}

#[test]
fn valid_files() {
    let site = Site::new("");
    let user = format!("basic_auth_users:\n  alice: {}\n  '': {0}\n", hash("x"));
    let inline = |file: &str| std::fs::read_to_string(site.path().join(file)).unwrap();
    let indented = |text: String| text.replace('\n', "\n    ");
    let (cert, key) = (indented(inline("server.pem")), indented(inline("server.key")));
    let inline = format!("tls_server_config:\n  cert: |\n    {cert}\n  key: |\n    {key}\n");
    let headers = "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n    \
                   X-XSS-Protection: 1\n    Content-Security-Policy: ''\n";
    let suites = "  cipher_suites:\n  - TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA\n  - TLS_AES_128_GCM_SHA256\n  \
                  - TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384\n  curve_preferences: [CurveP521, X25519]\n";
    for (web, says) in [
        ("", "no TLS; no login"),
        ("# nothing\n", "no TLS; no login"),
        (
            "tls_server_config: {}\nhttp_server_config: {}\nbasic_auth_users:\nrate_limit:\n",
            "no TLS",
        ),
        (TLS, "TLS, NoClientCert; no login"),
        (&inline, "TLS, NoClientCert"),
        (&user, "no TLS; 2 users"),
        (headers, "2 headers"),
        ("rate_limit: {interval: 1m30s, burst: 5}", "rate limit 1 request per 90s, burst 5"),
        ("rate_limit: {interval: 0, burst: 0}", "no login\n"),
        (
            &tls_with("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"),
            "RequireAndVerify",
        ),
        (&tls_with("  client_auth_type: RequireClientCert\n"), "RequireAnyClientCert"),
        (
            &tls_with(suites),
            "warning web config file web.yml: line 5: tls_server_config.cipher_suites: is ignored",
        ),
        (&tls_with(suites), "curve_preferences: is ignored"),
        (
            &tls_with("  min_version: TLS10\n  max_version: TLS12\n"),
            "line 4: tls_server_config.min_version: TLS10 is not supported; the minimum is TLS12",
        ),
    ] {
        let (told, code) = check(&site, web);
        assert_eq!(code, Some(0), "{web}\n{told}");
        assert!(told.contains(says), "{says:?} is not in: {told}\n{web}");
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn each_mistake_is_one_line_with_file_line_and_key() {
    let site = Site::new("");
    Ca::new("another").server().write(site.path(), "other");
    std::fs::write(site.path().join("empty.pem"), "").unwrap();
    std::fs::write(
        site.path().join("junk.pem"),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let tls = |more: &str| tls_with(&format!("  {more}\n"));
    let pair = |cert: &str, key: &str| {
        format!("tls_server_config:\n  cert_file: {cert}\n  key_file: {key}\n")
    };
    for (web, says) in [
        (
            "junk".into(),
            "line 1: must be a mapping (one line \"key: value\" per key), not a single value",
        ),
        (
            "\ntls_server: {}".into(),
            "line 2: tls_server: unknown key (did you mean \"tls_server_config\"?)",
        ),
        (
            "tls_server_config:\n  cert_filse: x".into(),
            "line 2: tls_server_config.cert_filse: unknown key (did you mean \"cert_file\"?)",
        ),
        (
            "http_server_config:\n  http2: maybe".into(),
            "line 2: http_server_config.http2: \"maybe\" is neither true nor false",
        ),
        (
            format!("basic_auth_users: {{a: {0}, a: {0}}}", hash("x")),
            "line 1: basic_auth_users.a: the key is given twice (first in line 1)",
        ),
        (
            "tls_server_config: {cert_file: server.pem}".into(),
            "line 1: tls_server_config: key_file is missing",
        ),
        (
            "\ntls_server_config:\n  key_file: server.key".into(),
            "line 3: tls_server_config: cert_file is missing",
        ),
        (
            "tls_server_config: {min_version: TLS13, key_file: server.key}".into(),
            "line 1: tls_server_config: cert_file is missing",
        ),
        (pair("''", "server.key"), "cert_file is missing"),
        (
            pair("nowhere.pem", "server.key"),
            "line 2: tls_server_config.cert_file: cannot read nowhere.pem: No such file",
        ),
        (
            pair("server.pem", "nowhere.key"),
            "line 3: tls_server_config.key_file: cannot read nowhere.key: No such file",
        ),
        (pair("/dev/zero", "server.key"), "it is a device"),
        (
            pair("empty.pem", "server.key"),
            "line 2: tls_server_config.cert_file: empty.pem: contains no PEM certificate",
        ),
        (
            pair("junk.pem", "server.key"),
            "line 2: tls_server_config.cert_file: junk.pem: is not a certificate",
        ),
        (pair("server.key", "server.key"), "contains no PEM certificate"),
        (
            pair("server.pem", "server.pem"),
            "line 3: tls_server_config.key_file: server.pem: contains no unencrypted PEM private key",
        ),
        (
            pair("server.pem", "other.key"),
            "line 3: tls_server_config.key_file: other.key: the private key does not match the certificate",
        ),
        (tls("key: x"), "line 3: tls_server_config.key_file: tls_server_config.key is set, too"),
        (
            tls("client_auth_type: x"),
            "line 4: tls_server_config.client_auth_type: \"x\" is not one of: NoClientCert, ",
        ),
        (
            tls("client_ca_file: ca.pem"),
            "line 4: tls_server_config.client_ca_file: has no effect without client_auth_type",
        ),
        (tls("client_ca_file: nowhere.pem"), "cannot read nowhere.pem"),
        (
            tls("client_auth_type: RequireAndVerifyClientCert"),
            "line 4: tls_server_config.client_auth_type: client_ca_file is missing",
        ),
        (
            tls("client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: empty.pem"),
            "line 5: tls_server_config.client_ca_file: empty.pem: contains no PEM certificate",
        ),
        (
            tls("client_allowed_sans: [a]"),
            "line 4: tls_server_config.client_allowed_sans: client certificates are not requested",
        ),
        (
            tls("client_auth_type: RequireAnyClientCert\n  client_allowed_sans: []"),
            "line 5: tls_server_config.client_allowed_sans: an empty list",
        ),
        (
            tls("min_version: TLS111"),
            "line 4: tls_server_config.min_version: \"TLS111\" is not one of: TLS12, TLS13",
        ),
        (
            tls("max_version: TLS11"),
            "line 4: tls_server_config.max_version: no supported version is left",
        ),
        (
            tls("min_version: TLS13\n  max_version: TLS12"),
            "line 5: tls_server_config.max_version: no supported version is left",
        ),
        (
            tls("cipher_suites:\n  - TLS_AES_128_GCM_SHA256\n  - TLS_INVENTED"),
            "line 6: tls_server_config.cipher_suites: \"TLS_INVENTED\" is not one of: ",
        ),
        (
            tls("curve_preferences: [CurveP257]"),
            "line 4: tls_server_config.curve_preferences: \"CurveP257\" is not one of: ",
        ),
        (
            "http_server_config:\n  headers:\n    Content-Type: foo".into(),
            "line 3: http_server_config.headers.Content-Type: header cannot be set; allowed: ",
        ),
        (
            "http_server_config:\n  headers:\n    X-Frame-Options: foo".into(),
            "line 3: http_server_config.headers.X-Frame-Options: \"foo\" is not one of: deny, sameorigin",
        ),
        (
            "http_server_config:\n  headers:\n    X-Content-Type-Options: sniff".into(),
            "is not one of: nosniff",
        ),
        (
            "http_server_config:\n  headers:\n    X-XSS-Protection: \"a\\nb\"".into(),
            "is not a valid header value",
        ),
        (
            "basic_auth_users:\n  \"jo\\nhn\": doe".into(),
            "line 2: basic_auth_users.jo\\nhn: is not a bcrypt hash",
        ),
        ("ba\0\rsic: x".into(), "line 1: the character"),
        (
            "basic_auth_users:\n  john: doe".into(),
            "line 2: basic_auth_users.john: is not a bcrypt hash",
        ),
        (
            format!("basic_auth_users:\n  a: {}", hash("x").replace("$04$", "$99$")),
            "line 2: basic_auth_users.a: the cost",
        ),
        (
            "rate_limit:\n  interval: soon\n  burst: 1".into(),
            "line 2: rate_limit.interval: \"soon\" is not a duration",
        ),
        (
            "rate_limit:\n  interval: 1s\n  burst: 0".into(),
            "line 3: rate_limit.burst: must be more than 0",
        ),
        ("rate_limit:\n  interval: 1s".into(), "line 2: rate_limit: burst is missing"),
        (
            "rate_limit:\n  burst: 4".into(),
            "line 2: rate_limit.burst: rate_limit.interval is missing",
        ),
    ] {
        let (told, code) = check(&site, &web);
        assert_eq!(code, Some(2), "{web}\n{told}");
        let lines: Vec<&str> = told.lines().filter(|line| !line.starts_with("warning ")).collect();
        let [line] = lines[..] else { panic!("one line: {told}\n{web}") };
        assert!(line.starts_with("error web config file web.yml: "), "{line}");
        assert!(line.contains(says), "{says:?} is not in: {line}\n{web}");
        assert!(!line.contains("PRIVATE KEY-----") && !line.contains("$2b$"), "a secret: {line}");
    }
}

#[test]
fn start_with_an_invalid_file_prints_the_mistake_and_exits() {
    let site = Site::new("basic_auth_users:\n  john: doe\n");
    for file in ["web.yml", "nowhere.yml"] {
        let output = Command::new(program())
            .current_dir(site.path())
            .args(["demo", "--web.listen-address=127.0.0.1:0"])
            .arg(format!("--web.config.file={file}"))
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("web config file {file}: ")), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn expired_certificate_is_a_warning() {
    let site = Site::new(TLS);
    site.ca.client(&[], 2001).write(site.path(), "server");
    let (told, code) = check(&site, TLS);
    assert_eq!(code, Some(0));
    let says = "warning web config file web.yml: line 1: tls_server_config.cert_file: server.pem: the certificate \
                expired at 2001-12-31T00:00:00Z";
    assert!(told.contains(says), "{told}");
}

#[test]
fn start_and_check_have_the_same_warnings() {
    let site = Site::new(TLS);
    let slow = format!("basic_auth_users:\n  ann: {}\n  bob: {0}\n", hash("x"))
        .replacen("$04$", "$18$", 1);
    let (told, code) = check(&site, &slow);
    assert_eq!(code, Some(0), "{told}");
    let [warning, ok] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
    for says in [
        "warning web config file web.yml: line 2: basic_auth_users.ann: bcrypt cost 18: ",
        "about 15 s of CPU time",
        "`htpasswd -nBC 10 NAME`",
    ] {
        assert!(warning.contains(says), "{says:?} is not in: {warning}");
    }
    assert!(!warning.contains("$2b$"), "a secret: {warning}");
    assert_eq!(ok, "ok web config file web.yml: no TLS; 2 users");

    let (told, code) = check(&site, &tls_with("  client_auth_type: VerifyClientCertIfGiven\n"));
    assert_eq!(code, Some(0), "{told}");
    let says = "warning web config file web.yml: line 4: tls_server_config.client_auth_type: \
                client_ca_file is missing: clients without a certificate are accepted";
    assert!(told.starts_with(says), "{told}");

    // At a start, and at a reload.
    site.write(&slow);
    let exporter = site.exporter();
    let warned = |user: &str| {
        wait_until(Duration::from_secs(30), user, || {
            let says = format!("basic_auth_users.{user}: bcrypt cost 18: ");
            let log = exporter.log();
            log.lines().find(|line| line.contains(&says)).map(str::to_owned)
        })
    };
    assert!(warned("ann").contains("level=warn") && warned("ann").contains("web.yml"));
    site.write(&slow.replace("ann", "eve"));
    assert!(warned("eve").contains("level=warn"));
}

#[test]
fn check_reads_all_files_that_a_start_reads() {
    let site = Site::new(TLS);
    let write = |name: &str, text: &str| std::fs::write(site.path().join(name), text).unwrap();
    write(
        "c.yml",
        "web: {config-file: web.yml}\nfabric: {node-name-map: map}\nhealth: {maintenance-file: work.yml}\n",
    );
    write("map", "0x1 \"leaf\"\n");
    write("work.yml", "- {node: a}\n- {node: b}\n");
    let check = |args: &[&str]| {
        let output = Command::new(program())
            .current_dir(site.path())
            .arg("check")
            .args(args)
            .output()
            .unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    };
    let config = &["--config.file=c.yml"];
    let all = "ok config file c.yml\nok node-name-map map: 1 name\nok maintenance file work.yml: 2 entries\nok \
               web config file web.yml: TLS, NoClientCert; no login\n";
    assert_eq!(check(config), (all.into(), Some(0)));
    // Each is checked, whatever is wrong with another.
    write("map", "leaf\n");
    write("work.yml", "- {nod: a}\n");
    site.write("basic: {}\n");
    let (told, code) = check(config);
    assert_eq!(code, Some(2));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 4, "{told}");
    for (line, says) in lines.iter().zip([
        "ok config",
        "error node-name-map map: line 1: ",
        "error maintenance file work.yml: line 1, column 4: [0].nod: unknown key (did you mean \"node\"?)",
        "error web config file web.yml: line 1, column 1: basic: unknown key",
    ]) {
        assert!(line.starts_with(says), "{says:?}: {line}");
    }
    write("c.yml", "fabric:\n  intervall: 1s\n");
    let (told, code) = check(config);
    assert_eq!(code, Some(2));
    assert!(
        told.starts_with("error config file c.yml: line 2, column 3: fabric.intervall: unknown key (did you mean \"interval\"?)"),
        "{told}"
    );
    assert_eq!(check(&[]).1, Some(2), "nothing to look at");
}
