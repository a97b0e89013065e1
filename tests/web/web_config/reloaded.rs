//! Reloads of the web config file and the files that it names, while requests come in.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::web_config::{Site, TLS, get};
use test_rig::certs::{Ca, hash, login};
use test_rig::sysfs::Tree;
use test_rig::{Exporter, wait_until};

const LIMIT: Duration = Duration::from_secs(30);

/// How many reloads the exporter has logged.
fn reloads(exporter: &Exporter) -> usize {
    exporter.log().matches("web config reloaded").count()
}

#[test]
fn no_request_is_lost_during_reloads() {
    let mut site = Site::new("");
    let (alice, right) = (hash("a"), login("alice", "a"));
    let web = |round: usize| {
        // The password stays the same, and its hash changes.
        let hash = if round.is_multiple_of(2) { alice.clone() } else { hash("a") };
        format!(
            "{TLS}basic_auth_users:\n  alice: {hash}\n  user-{round}: {alice}\nhttp_server_config:\n  headers: \
             {{X-XSS-Protection: round-{round}}}\n"
        )
    };
    site.write(&web(0));
    let mut exporter = site.exporter();
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let ask = |agent: &ureq::Agent| {
        let response = get(agent, &exporter, "/-/healthy", Some(&right));
        let response = response.unwrap_or_else(|error| panic!("{error}\n{}", exporter.log()));
        assert_eq!(response.status, 200);
        answered.fetch_add(1, Ordering::Relaxed);
    };
    let mut signalled = 0;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (site, ask, done) = (&site, &ask, &done);
            scope.spawn(move || {
                let kept = site.ca.agent(None);
                while !done.load(Ordering::Relaxed) {
                    // Half of the requests have a connection of their own.
                    if thread % 2 == 0 { ask(&kept) } else { ask(&site.ca.agent(None)) }
                }
            });
        }
        for round in 1..=6 {
            let before = reloads(&exporter);
            // Of the same CA, so that clients trust it; first the certificate, then the file: a pair that
            // does not fit for a moment is not used.
            site.ca.server().write(site.path(), "server");
            site.write(&web(round));
            wait_until(LIMIT, "the file to be read", || {
                (reloads(&exporter) > before).then_some(())
            });
            let seen = answered.load(Ordering::Relaxed);
            wait_until(LIMIT, "requests", || {
                (answered.load(Ordering::Relaxed) > seen + 20).then_some(())
            });
            signalled += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(signalled, 6);
    // The last file is in force, and its certificate.
    let last = |exporter: &Exporter, ca: &Ca| get(&ca.agent(None), exporter, "/", Some(&right));
    let header = last(&exporter, &site.ca).unwrap();
    assert_eq!(header.header("x-xss-protection"), Some("round-6"));
    site.ca = Ca::new("another");
    assert!(last(&exporter, &site.ca).is_err(), "the certificate is of the CA before");
    site.ca.server().write(site.path(), "server");
    wait_until(LIMIT, "the new certificate", || last(&exporter, &site.ca).ok());
    // A removed user is rejected, although its login was cached.
    let gone = login("user-6", "a");
    assert_eq!(get(&site.ca.agent(None), &exporter, "/", Some(&gone)).unwrap().status, 200);
    site.write(&web(7));
    exporter.signal("HUP");
    wait_until(LIMIT, "the user to be gone", || {
        (get(&site.ca.agent(None), &exporter, "/", Some(&gone)).unwrap().status == 401)
            .then_some(())
    });
}

#[test]
fn sighup_without_a_file_is_harmless() {
    let mut exporter = Exporter::on_host(&Tree::empty(), &[]);
    exporter.signal("HUP");
    wait_until(LIMIT, "the signal", || {
        exporter.log().contains("no web config file to reload").then_some(())
    });
    assert_eq!(exporter.get("/-/healthy", &[]).status, 200);
    assert_eq!(exporter.stop().code(), Some(0));
}

#[test]
fn invalid_file_is_logged_once_and_the_one_before_stays() {
    let site = Site::new(TLS);
    let exporter = site.exporter();
    let fine = || get(&site.ca.agent(None), &exporter, "/-/healthy", None).unwrap().status;
    let logged = |what: &str| {
        wait_until(LIMIT, what, || exporter.log().contains(what).then_some(()));
        assert_eq!(fine(), 200);
    };
    let reload_successful = |wanted: &str| {
        let line = format!("fabric_exporter_web_config_last_reload_successful {wanted}\n");
        wait_until(LIMIT, &line, || {
            let metrics = get(&site.ca.agent(None), &exporter, "/metrics", None).unwrap();
            metrics.text().contains(&line).then_some(())
        });
    };
    reload_successful("1");
    site.write("tls_server_config: {cert_file: server.pem}\n");
    logged("line 1, column 20: tls_server_config: key_file is missing");
    reload_successful("0");
    site.write("");
    logged("TLS cannot be switched off without a restart");
    std::fs::remove_file(site.path().join("web.yml")).unwrap();
    logged("cannot read");
    std::fs::write(site.path().join("web.yml"), TLS).unwrap();
    logged("web config reloaded");
    reload_successful("1");
    Ca::new("x").server().write(site.path(), "other");
    std::fs::rename(site.path().join("other.key"), site.path().join("server.key")).unwrap();
    logged("the private key does not match the certificate");
    // The file is checked each second, and logged once.
    let before = reloads(&exporter);
    site.ca.server().write(site.path(), "server");
    wait_until(LIMIT, "the file to be read", || (reloads(&exporter) > before).then_some(()));
    for once in ["key_file is missing", "switched off", "cannot read"] {
        assert_eq!(exporter.log().matches(once).count(), 1, "{once}: {}", exporter.log());
    }
}

/// The user `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn key_of_another_owner_is_reloaded() {
    // Root reads the files of others before it drops capabilities; another user has its own files.
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let renew = |site: &Site| {
        site.ca.server().write(site.path(), "server");
        let key = site.path().join("server.key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o400)).unwrap();
        if is_root {
            std::os::unix::fs::chown(&key, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    };
    let site = Site::new(TLS);
    renew(&site);
    let exporter = site.prompt_exporter();
    std::fs::remove_file(site.path().join("server.key")).unwrap();
    renew(&site);
    wait_until(LIMIT, "the new key", || {
        let log = exporter.log();
        assert!(!log.contains("Permission denied"), "{log}");
        (reloads(&exporter) > 0).then_some(())
    });
    assert_eq!(get(&site.ca.agent(None), &exporter, "/-/healthy", None).unwrap().status, 200);
}
