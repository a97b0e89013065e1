//! The address to serve at: is it free, is it ours already, or does somebody else have it?

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use super::finding::{Finding, Subject};

const SUBJECT: Subject = Subject::Listener;

/// How long whoever has the port may take to say who it is.
const LIMIT: Duration = Duration::from_secs(1);

/// As much of the metrics as is read: what an exporter tells of itself stands first.
const MOST: u64 = 1 << 18;

/// What `/-/healthy` says.
const HEALTHY: &str = "healthy\n";

/// Looks at each address.
pub fn check(addresses: &[SocketAddr], telemetry_path: &str) -> Vec<Finding> {
    addresses.iter().map(|address| of_address(*address, telemetry_path)).collect()
}

/// Binds to an address for a moment, as `serve` would.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let bound = TcpListener::bind(address);
    match &bound {
        // All addresses, on a host without IPv6.
        Err(error)
            if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                && error.raw_os_error() == Some(libc::EAFNOSUPPORT) =>
        {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        }
        _ => bound,
    }
}

fn of_address(address: SocketAddr, telemetry_path: &str) -> Finding {
    let what = address.to_string();
    let firewall = if address.ip().is_loopback() {
        "; only this host reaches it there"
    } else {
        "; a firewall has to let Prometheus in"
    };
    let Err(error) = bind(address) else {
        return Finding::ok(SUBJECT, what, format!("free{firewall}"));
    };
    let port = address.port();
    match error.kind() {
        ErrorKind::AddrInUse => match who(address, telemetry_path) {
            Some(version) => {
                let found = format!("fabric-exporter{version} runs there{firewall}");
                Finding::ok(SUBJECT, what, found)
            }
            None => Finding::bad(SUBJECT, what, "taken by a program that is no fabric-exporter")
                .wanted("a port that is free: serve ends without")
                .mend(format!("ss -ltnp 'sport = :{port}'; or another with --web.listen-address")),
        },
        ErrorKind::PermissionDenied => {
            Finding::bad(SUBJECT, what, format!("may not be listened on: {error}"))
                .wanted("a port above 1023, or the capability for those below")
                .mend("--web.listen-address=:10315, or AmbientCapabilities=CAP_NET_BIND_SERVICE")
        }
        _ => Finding::bad(SUBJECT, what, format!("cannot be listened on: {error}"))
            .wanted("an address of this host")
            .mend("ip addr   # shows them; another with --web.listen-address"),
    }
}

/// The version of the exporter that answers there, with a blank before it, if it is one.
fn who(address: SocketAddr, telemetry_path: &str) -> Option<String> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // Who listens at all of IPv6's listens at IPv4's, too, where there is either.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = format!("http://{}", SocketAddr::new(ip, address.port()));
    if get(&format!("{url}/-/healthy"))? != HEALTHY {
        return None;
    }
    let version = get(&format!("{url}{telemetry_path}")).as_deref().and_then(version);
    Some(version.map(|version| format!(" {version}")).unwrap_or_default())
}

fn get(url: &str) -> Option<String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(LIMIT))
        // It is this very host.
        .proxy(None)
        .max_redirects(0)
        .user_agent(concat!("fabric-exporter/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut answer = agent.get(url).call().ok().filter(|answer| answer.status() == 200)?;
    let mut text = Vec::new();
    // What came before an error, or before the end of our patience, may do.
    let _ = answer.body_mut().as_reader().take(MOST).read_to_end(&mut text);
    Some(String::from_utf8_lossy(&text).into_owned())
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
    fn the_version_is_that_of_build_info() {
        let text = "# HELP x\nfabric_exporter_build_info{revision=\"\",version=\"0.1.0\"} 1\n";
        assert_eq!(version(text).as_deref(), Some("0.1.0"));
        for text in ["", "fabric_exporter_build_info 1", "fabric_exporter_build_info{version=\"1"] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
