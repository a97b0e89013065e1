//! The address to serve at: is it free, is it ours already, or does somebody else have it?

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use exporter_web::listen::{is_not_here, try_bind};

use super::finding::{Finding, Subject};

const SUBJECT: Subject = Subject::Listener;

/// How long whoever has the port may take to say who it is.
const LIMIT: Duration = Duration::from_secs(1);

/// As much of the metrics as is read: what an exporter tells of itself stands first.
const MOST: u64 = 1 << 18;

/// What `/-/healthy` says.
const HEALTHY: &str = "healthy\n";

/// Nothing is bound here, and to ask there would start the service.
pub fn handed_over() -> Finding {
    let found = "systemd listens, and hands its sockets over";
    Finding::note(SUBJECT, "--web.systemd-socket", found)
        .mend("systemctl list-sockets   # shows where")
}

/// Looks at each address of each name.
pub fn check(names: &[Vec<SocketAddr>], telemetry_path: &str) -> Vec<Finding> {
    let of_name = |addresses: &Vec<SocketAddr>| {
        let is_here =
            |address: &SocketAddr| !try_bind(*address).is_err_and(|error| is_not_here(&error));
        let serves = addresses.iter().any(is_here);
        let found = addresses.iter().map(|address| of_address(*address, telemetry_path, serves));
        found.collect::<Vec<_>>()
    };
    names.iter().flat_map(of_name).collect()
}

/// Looks at an address; `serves` says whether its name has one that this host has.
fn of_address(address: SocketAddr, telemetry_path: &str, serves: bool) -> Finding {
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
        ErrorKind::AddrInUse => match who(address, telemetry_path) {
            Who::Exporter(version) => {
                let found = format!("fabric-exporter{version} runs there{firewall}");
                Finding::ok(SUBJECT, what, found)
            }
            Who::Guarded(how) => {
                let found = format!("taken by somebody who {how}: perhaps this exporter{firewall}");
                Finding::note(SUBJECT, what, found)
                    .mend(format!("ss -ltnp 'sport = :{port}'   # shows who it is"))
            }
            Who::Another => {
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
        _ if serves && is_not_here(&error) => {
            let found = format!("passed over, for the name has another address: {error}");
            Finding::note(SUBJECT, what, found)
        }
        _ => Finding::bad(SUBJECT, what, format!("cannot be listened on: {error}"))
            .wanted("an address of this host")
            .mend("ip addr   # shows them; another with --web.listen-address"),
    }
}

/// Who has an address.
enum Who {
    /// An exporter, and its version with a blank before it, if it tells that.
    Exporter(String),
    /// Somebody who lets not everybody in.
    Guarded(&'static str),
    /// Another program.
    Another,
}

fn who(address: SocketAddr, telemetry_path: &str) -> Who {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // Who listens at all of IPv6's listens at IPv4's, too, where there is either.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = format!("http://{}", SocketAddr::new(ip, address.port()));
    match get(&format!("{url}/-/healthy")) {
        Some((200, text)) if text == HEALTHY => {
            let metrics = get(&format!("{url}{telemetry_path}"));
            let version = metrics.and_then(|(_, text)| version(&text));
            Who::Exporter(version.map(|version| format!(" {version}")).unwrap_or_default())
        }
        Some((401, _)) => Who::Guarded("asks for a login"),
        // So we say, and so do the servers of other exporters.
        Some((400, text)) if text.to_ascii_lowercase().contains("https") => {
            Who::Guarded("speaks TLS")
        }
        _ => Who::Another,
    }
}

/// The status of an answer, and its text.
fn get(url: &str) -> Option<(u16, String)> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(LIMIT))
        // It is this very host.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(concat!("fabric-exporter/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut answer = agent.get(url).call().ok()?;
    let mut text = Vec::new();
    // What came before an error, or before the end of our patience, may do.
    let _ = answer.body_mut().as_reader().take(MOST).read_to_end(&mut text);
    Some((answer.status().as_u16(), String::from_utf8_lossy(&text).into_owned()))
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
    fn a_name_works_with_one_of_its_addresses() {
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
    fn the_version_is_that_of_build_info() {
        let text = "# HELP x\nfabric_exporter_build_info{revision=\"\",version=\"0.1.0\"} 1\n";
        assert_eq!(version(text).as_deref(), Some("0.1.0"));
        for text in ["", "fabric_exporter_build_info 1", "fabric_exporter_build_info{version=\"1"] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
