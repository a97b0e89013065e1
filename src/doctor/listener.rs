//! The listen addresses: whether each is free, in use by an exporter, or by another program.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use exporter_web::listen::{is_missing_address, try_bind};

use super::finding::{Finding, Subject};

const SUBJECT: Subject = Subject::Listener;

/// How long a request to the program that has the port may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bytes of the metrics are read: the build info comes first.
const MAX_RESPONSE: u64 = 1 << 18;

/// The response of `/-/healthy`.
const HEALTHY: &str = "healthy\n";

/// With a systemd socket nothing is bound or requested here: a request would start the service.
pub fn systemd_socket() -> Finding {
    let found = "systemd listens, and hands its sockets over";
    Finding::note(SUBJECT, "--web.systemd-socket", found)
        .mend("systemctl list-sockets   # shows where")
}

/// Checks each address of each host name.
pub fn check(names: &[Vec<SocketAddr>], telemetry_path: &str) -> Vec<Finding> {
    let check_name = |addresses: &Vec<SocketAddr>| {
        let is_here = |address: &SocketAddr| {
            !try_bind(*address).is_err_and(|error| is_missing_address(&error))
        };
        let serves = addresses.iter().any(is_here);
        let found = addresses.iter().map(|address| check_address(*address, telemetry_path, serves));
        found.collect::<Vec<_>>()
    };
    names.iter().flat_map(check_name).collect()
}

/// Checks an address; `serves` is whether its name has one of this host.
fn check_address(address: SocketAddr, telemetry_path: &str, serves: bool) -> Finding {
    let what = address.to_string();
    let firewall = if address.ip().is_loopback() {
        "; only this host reaches it there"
    } else {
        "; a firewall has to let Prometheus in"
    };
    let Err(error) = try_bind(address) else {
        return Finding::ok(SUBJECT, what, format!("free{firewall}"));
    };
    let port = address.port();
    match error.kind() {
        ErrorKind::AddrInUse => match occupant(address, telemetry_path) {
            Occupant::Exporter(version) => {
                let found = format!("fabric-exporter{version} runs there{firewall}");
                Finding::ok(SUBJECT, what, found)
            }
            Occupant::Guarded(how) => {
                let found = format!("taken by somebody who {how}: perhaps this exporter{firewall}");
                Finding::note(SUBJECT, what, found)
                    .mend(format!("ss -ltnp 'sport = :{port}'   # shows who it is"))
            }
            Occupant::Another => {
                Finding::bad(SUBJECT, what, "taken by a program that is no fabric-exporter")
                    .wanted("a port that is free: serve ends without")
                    .mend(format!(
                        "ss -ltnp 'sport = :{port}'; or another with --web.listen-address"
                    ))
            }
        },
        ErrorKind::PermissionDenied => {
            Finding::bad(SUBJECT, what, format!("may not be listened on: {error}"))
                .wanted("a port above 1023, or the capability for those below")
                .mend("--web.listen-address=:10315, or AmbientCapabilities=CAP_NET_BIND_SERVICE")
        }
        _ if serves && is_missing_address(&error) => {
            let found = format!("passed over, for the name has another address: {error}");
            Finding::note(SUBJECT, what, found)
        }
        _ => Finding::bad(SUBJECT, what, format!("cannot be listened on: {error}"))
            .wanted("an address of this host")
            .mend("ip addr   # shows them; another with --web.listen-address"),
    }
}

/// The program that listens on an address.
enum Occupant {
    /// An exporter, and its version after a blank, if it is known.
    Exporter(String),
    /// A program that requires a login or TLS.
    Guarded(&'static str),
    /// Another program.
    Another,
}

fn occupant(address: SocketAddr, telemetry_path: &str) -> Occupant {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // A socket on all IPv6 addresses accepts IPv4, too.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = format!("http://{}", SocketAddr::new(ip, address.port()));
    match get(&format!("{url}/-/healthy")) {
        Some((200, text)) if text == HEALTHY => {
            let metrics = get(&format!("{url}{telemetry_path}"));
            let version = metrics.and_then(|(_, text)| version(&text));
            Occupant::Exporter(version.map(|version| format!(" {version}")).unwrap_or_default())
        }
        Some((401, _)) => Occupant::Guarded("asks for a login"),
        // The response of this exporter, and of others with the exporter toolkit.
        Some((400, text)) if text.to_ascii_lowercase().contains("https") => {
            Occupant::Guarded("speaks TLS")
        }
        _ => Occupant::Another,
    }
}

/// The status and text of a response.
fn get(url: &str) -> Option<(u16, String)> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(REQUEST_TIMEOUT))
        // It is this host.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(concat!("fabric-exporter/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut response = agent.get(url).call().ok()?;
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

    #[test]
    fn name_needs_one_address_of_this_host() {
        use crate::doctor::finding::Level;
        // 198.51.100.0/24 is for documentation (RFC 5737).
        let [here, missing] = ["127.0.0.1:0", "198.51.100.1:0"].map(|it| it.parse().unwrap());
        let levels = |names: &[Vec<SocketAddr>]| {
            check(names, "/metrics").iter().map(|finding| finding.level).collect::<Vec<_>>()
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
