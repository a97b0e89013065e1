//! The exporter's own settings and files: whether `serve` would start with them and could record; and whether each
//! listen address is free, or in use by an exporter or another program.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::config::{DataFrom, Settings};
use crate::monitor::{inspect_site_file, inspect_source};
use crate::remote::{self, Remote};
use exporter_web::WebConfig;
use exporter_web::listen::{is_missing_address, try_bind};
use fabric_history::file::free;
use fabric_history::settings::HistorySettings;
use fabric_observation::SiteFileKind;
use yaml_config::ConfigError;

use super::Subject::{Configuration, Listener};
use super::checked_host::{CheckedHost, DoctorOptions};
use super::finding::{Finding, bad, note, ok, warn};

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    let settings = host.settings();
    let mut findings = vec![check_config_file(&host.options)];
    findings.extend(settings.web_config.iter().flat_map(|path| check_web_config(path)));
    if !settings.fabrics.is_empty() {
        let files = settings.site_files.iter();
        findings.extend(files.flat_map(|(kind, path)| check_site_file(*kind, path)));
    }
    let sources = settings.fabrics.iter().filter_map(|fabric| fabric.from.as_ref());
    findings.extend(sources.map(check_source));
    findings.extend(settings.history.iter().map(check_history));
    findings
}

fn check_config_file(options: &DoctorOptions) -> Finding {
    let what = "--config.file";
    let shown = options.file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    match &options.problem {
        Some(problem) => {
            let expected = "a valid file; otherwise `serve` exits with code 2. The other checks used only flags";
            let fix = format!("edit {shown}   # keys: docs/configuration.md");
            bad(Configuration, what, problem).expected(expected).fix(fix)
        }
        None if options.file.is_none() => {
            ok(Configuration, what, "not set; using flags and defaults")
        }
        None => {
            let fabrics = options.settings.fabrics.len();
            ok(Configuration, what, format!("{shown} is valid; fabrics: {fabrics}"))
        }
    }
}

/// The finding of a file that the settings name, and one for each warning.
fn check_file(
    what: &str,
    read: Result<(String, Vec<String>), ConfigError>,
    fix: String,
    warned: impl Fn(Finding) -> Finding,
) -> Vec<Finding> {
    match read {
        Ok((found, warnings)) => {
            let warnings = warnings.into_iter().map(|it| warned(warn(Configuration, what, it)));
            std::iter::once(ok(Configuration, what, found)).chain(warnings).collect()
        }
        Err(error) => {
            let expected = "a valid file that the exporter's user can read; otherwise `serve` exits \
                            with code 2";
            let finding = bad(Configuration, what, error.lines().join("; "));
            vec![finding.expected(expected).fix(fix)]
        }
    }
}

fn check_web_config(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    let read = WebConfig::load(path).1.map(|config| {
        let warnings = config.warnings.iter().map(|warning| format!("{shown}: {warning}"));
        (format!("{shown}: {config}"), warnings.collect())
    });
    let keys = "# keys: docs/security.md";
    check_file("--web.config.file", read, format!("edit {shown}   {keys}"), |warning| {
        warning.fix(format!("edit {shown}, or renew the certificate   {keys}"))
    })
}

fn check_site_file(kind: SiteFileKind, path: &Path) -> Vec<Finding> {
    let what = match kind {
        SiteFileKind::NodeNameMap => "--fabric.node-name-map",
        SiteFileKind::MKey => "--fabric.m-key-file",
        SiteFileKind::VsKey => "--fabric.vs-key-file",
        SiteFileKind::Maintenance => "--health.maintenance-file",
        SiteFileKind::DrainedHosts => "--health.drained-hosts-file",
    };
    let shown = path.display();
    let read = inspect_site_file(kind, path)
        .map(|(entries, warnings)| (format!("{shown} is valid; entries: {entries}"), warnings));
    check_file(what, read, format!("ls -l {shown}; edit it, or remove {what}"), |warning| {
        if kind == SiteFileKind::DrainedHosts {
            let expected = "hosts or Slurm host lists, one per line; until then no host is drained";
            return warning.expected(expected).fix(format!("ls -l {shown}; run what writes it"));
        }
        warning
            .expected(
                "readable for owner and group only; for several M_Keys also OpenSM's file \"neighbors\" \
                 in the same directory",
            )
            .fix(format!(
                "chgrp fabric-exporter {shown} && chmod 0640 {shown}; if the keys differ, copy \
                 OpenSM's file \"neighbors\" to the same directory"
            ))
    })
}

/// Reads the data that another program collects.
fn check_source(from: &DataFrom) -> Finding {
    let (what, name) = ("--fabric.from", from.name());
    match inspect_source(from) {
        Ok(found) => ok(Configuration, what, format!("{name}: {found}")),
        Err(problem) => {
            let fix = match from {
                DataFrom::Endpoints(..) => {
                    format!("curl -s '{name}' | head -2   # docs/collected.md")
                }
                DataFrom::Directory(path) => {
                    format!("ls -l {}   # docs/collected.md", path.display())
                }
            };
            bad(Configuration, what, problem)
                .expected(
                    "UFM Telemetry, or dumps of ibdiagnet; until then the fabric has no metrics",
                )
                .fix(fix)
        }
    }
}

fn check_history(history: &HistorySettings) -> Finding {
    let what = "--history.file";
    let path = &history.file;
    let about = std::fs::metadata(path).ok();
    if about.as_ref().is_some_and(|about| !about.is_file()) {
        let found = format!("{} is not a regular file", path.display());
        return bad(Configuration, what, found)
            .expected("a regular file, or a path at which one can be created")
            .fix("set --history.file to another path");
    }
    // SQLite creates files beside it.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    for path in std::iter::once(folder).chain(about.is_some().then_some(&**path)) {
        if let Err(error) = accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
            let shown = path.display();
            let fix = if path.exists() {
                format!("chown fabric-exporter {shown}   # or StateDirectory= in the unit")
            } else {
                format!("mkdir -p {shown} && chown fabric-exporter {shown}")
            };
            let found = format!("not writable: {shown}: {error}");
            let expected = "writable for the exporter's user; otherwise nothing is recorded";
            return bad(Configuration, what, found).expected(expected).fix(fix);
        }
    }
    let size = about.map_or(0, |about| about.len());
    match free(path) {
        Ok(room) => room_for(history, size, room),
        Err(error) => warn(Configuration, what, error.to_string()),
    }
}

/// Whether the disk has space for the largest size of the file and for the reserve of the host.
fn room_for(history: &HistorySettings, size: u64, room: u64) -> Finding {
    let (shown, least) = (history.file.display(), history.least_free);
    let mib = |bytes: u64| bytes >> 20;
    let what = "--history.file";
    let found = format!("{shown}: size {} MiB, free on its disk {} MiB", mib(size), mib(room));
    let fix = "free space on the disk, or lower --history.size";
    if room < least {
        return bad(Configuration, what, found)
            .expected(format!("at least {} MiB free; below that nothing is recorded", mib(least)))
            .fix(fix);
    }
    let grows = history.size.saturating_sub(size);
    if room - least < grows {
        return warn(Configuration, what, found)
            .expected(format!(
                "at least {} MiB free; --history.size is {} MiB, and {} MiB of the disk stay free",
                mib(grows.saturating_add(least)),
                mib(history.size),
                mib(least)
            ))
            .fix(fix);
    }
    ok(Configuration, what, found)
}

/// How long a request to the program that has the port may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bytes of the metrics are read: the build info comes first.
const MAX_RESPONSE: u64 = 1 << 18;

/// The response of `/-/healthy`.
const HEALTHY: &str = "healthy\n";

/// Checks each address of each host name. With a systemd socket nothing is bound or requested: a request would
/// start the service.
pub fn check_listeners(host: &CheckedHost) -> Vec<Finding> {
    let Settings { systemd_socket, listen, telemetry_path, .. } = host.settings();
    if *systemd_socket {
        let found = "not checked: systemd passes the sockets";
        let finding = note(Listener, "--web.systemd-socket", found);
        return vec![finding.fix("systemctl list-sockets   # lists the addresses")];
    }
    listen.iter().flat_map(|name| check_name(name, telemetry_path)).collect()
}

fn check_name(addresses: &[SocketAddr], telemetry_path: &str) -> Vec<Finding> {
    let is_missing =
        |address: &SocketAddr| try_bind(*address).is_err_and(|error| is_missing_address(&error));
    let serves = !addresses.iter().all(is_missing);
    addresses.iter().map(|address| check_address(*address, telemetry_path, serves)).collect()
}

/// Checks an address; `serves` is whether its name has one of this host.
fn check_address(address: SocketAddr, telemetry_path: &str, serves: bool) -> Finding {
    let what = address.to_string();
    let firewall = if address.ip().is_loopback() {
        "; loopback, reachable only from this host"
    } else {
        "; firewalls not checked"
    };
    let Err(error) = try_bind(address) else {
        return ok(Listener, what, format!("free{firewall}"));
    };
    match error.kind() {
        ErrorKind::AddrInUse => check_occupant(address, telemetry_path, firewall),
        ErrorKind::PermissionDenied => bad(Listener, what, format!("cannot listen: {error}"))
            .expected("a port above 1023, or CAP_NET_BIND_SERVICE")
            .fix("--web.listen-address=:10315, or AmbientCapabilities=CAP_NET_BIND_SERVICE"),
        _ if serves && is_missing_address(&error) => {
            let found =
                format!("skipped: not on this host, but another address of the name is: {error}");
            note(Listener, what, found)
        }
        _ => bad(Listener, what, format!("cannot listen: {error}"))
            .expected("an address of this host")
            .fix("ip addr   # lists them; set one with --web.listen-address"),
    }
}

/// Identifies the program that listens on an address by its responses.
fn check_occupant(address: SocketAddr, telemetry_path: &str, firewall: &str) -> Finding {
    let (what, port) = (address.to_string(), address.port());
    // A socket on all IPv6 addresses accepts IPv4, too.
    let ip = if address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { address.ip() };
    let url = format!("http://{}", SocketAddr::new(ip, port));
    let guard = match get(&url, "/-/healthy") {
        Some((200, text)) if text == HEALTHY => {
            let version = get(&url, telemetry_path).and_then(|(_, text)| version(&text));
            let version = version.map(|version| format!(" {version}")).unwrap_or_default();
            let found = format!("in use by fabric-exporter{version}{firewall}");
            return ok(Listener, what, found);
        }
        Some((401, _)) => "requires a login",
        // The response of this exporter, and of others with the exporter toolkit.
        Some((400, text)) if text.to_ascii_lowercase().contains("https") => "requires TLS",
        _ => {
            return bad(Listener, what, "in use by a program other than fabric-exporter")
                .expected("a free port; otherwise `serve` exits with code 4")
                .fix(format!(
                    "ss -ltnp 'sport = :{port}'   # stop that program, or set --web.listen-address"
                ));
        }
    };
    let found = format!("in use by a program that {guard}, maybe fabric-exporter{firewall}");
    note(Listener, what, found).fix(format!("ss -ltnp 'sport = :{port}'   # shows the program"))
}

/// The status and text of a response.
fn get(url: &str, path: &str) -> Option<(u16, String)> {
    let access = remote::Access::default();
    let remote = Remote::new(url, &access, REQUEST_TIMEOUT, REQUEST_TIMEOUT).ok()?;
    let mut response = remote.request(path, &[]).config().max_redirects(0).build().call().ok()?;
    let mut text = Vec::new();
    // The text up to an error or the timeout may be enough.
    let _ = response.body_mut().as_reader().take(MAX_RESPONSE).read_to_end(&mut text);
    Some((response.status().as_u16(), String::from_utf8_lossy(&text).into_owned()))
}

/// The version in `fabric_exporter_build_info{version="0.1.0",…} 1`.
fn version(metrics: &str) -> Option<String> {
    let of = |line: &str| {
        let labels = line.strip_prefix("fabric_exporter_build_info{")?;
        let (_, version) = labels.split_once("version=\"")?;
        Some(version.split_once('"')?.0.to_owned())
    };
    metrics.lines().find_map(of).filter(|version| version.len() < 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn room_includes_growth_of_the_file() {
        const MIB: u64 = 1 << 20;
        let history = HistorySettings::new("/var/lib/history.db".into());
        for (size, room, level) in [
            (0, 2000 * MIB, Level::Ok),
            (0, 1000 * MIB, Level::Warn),
            (900 * MIB, 1000 * MIB, Level::Ok),
            (5000 * MIB, 300 * MIB, Level::Ok),
            (5000 * MIB, 200 * MIB, Level::Bad),
        ] {
            assert_eq!(room_for(&history, size, room).level, level, "{size} {room}");
        }
    }

    #[test]
    fn name_needs_one_address_of_this_host() {
        // 198.51.100.0/24 is for documentation (RFC 5737).
        let [here, missing] = ["127.0.0.1:0", "198.51.100.1:0"].map(|it| it.parse().unwrap());
        let levels = |names: &[Vec<SocketAddr>]| {
            let found = names.iter().flat_map(|name| check_name(name, "/metrics"));
            found.map(|finding| finding.level).collect::<Vec<_>>()
        };
        assert_eq!(levels(&[vec![missing, here]]), [Level::Note, Level::Ok]);
        assert_eq!(levels(&[vec![missing], vec![here]]), [Level::Bad, Level::Ok]);
    }

    #[test]
    fn version_is_read_from_build_info() {
        let text = "# HELP x\nfabric_exporter_build_info{revision=\"\",version=\"0.1.0\"} 1\n";
        assert_eq!(version(text).as_deref(), Some("0.1.0"));
        for text in ["", "fabric_exporter_build_info 1", "fabric_exporter_build_info{version=\"1"] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
