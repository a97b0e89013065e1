//! Listening sockets: addresses that are bound, or sockets from systemd.
//!
//! To be called before any thread is started: the capability that binds low ports may be dropped afterwards.

use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use listenfd::ListenFd;

/// Why an address cannot be bound, and what to do about it.
fn problem(address: SocketAddr, error: &Error) -> String {
    let port = address.port();
    let suggestion = match error.kind() {
        ErrorKind::AddrInUse => {
            return format!(
                "cannot listen on {address}: the port is in use (`ss -ltnp 'sport = :{port}'` shows the \
                 program): stop that program or choose another port with --web.listen-address"
            );
        }
        ErrorKind::PermissionDenied if port < 1024 => {
            "a port below 1024 needs CAP_NET_BIND_SERVICE: choose a higher port with \
             --web.listen-address"
        }
        ErrorKind::PermissionDenied => {
            "a security policy (SELinux, seccomp, systemd's SocketBindDeny=) forbids it: allow the \
             port there or choose another one with --web.listen-address"
        }
        _ if is_missing_address(error) => {
            "this host does not have that address (`ip addr` lists its addresses): choose one of \
             them with --web.listen-address"
        }
        _ => "choose another address with --web.listen-address",
    };
    format!("cannot listen on {address}: {error}: {suggestion}")
}

/// Whether an address cannot be bound because this host does not have it, or no such family.
pub fn is_missing_address(error: &Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

/// Binds all addresses of a name. Those that this host does not have are skipped if there is another:
/// `localhost` is `::1`, too, on a host without IPv6. A port that is in use on one of them is still an
/// error, because clients would reach the other program there.
pub fn bind(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, String> {
    let (mut bound, mut missing) = (Vec::new(), Vec::new());
    for &address in addresses {
        let listener = try_bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match listener {
            Ok(listener) => bound.push(listener),
            Err(error) if is_missing_address(&error) => missing.push((address, error)),
            Err(error) => return Err(problem(address, &error)),
        }
    }
    if bound.is_empty()
        && let Some((address, error)) = missing.pop()
    {
        return Err(problem(address, &error));
    }
    for (address, error) in missing {
        tracing::warn!(%address, %error, "listen failed on one address of the name; listening on the others");
    }
    Ok(bound)
}

/// Binds an address. `::` is 0.0.0.0 on a host without IPv6.
pub fn try_bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).or_else(|error| {
        let without_ipv6 = error.raw_os_error() == Some(libc::EAFNOSUPPORT);
        if without_ipv6 && address.is_ipv6() && address.ip().is_unspecified() {
            return TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()));
        }
        Err(error)
    })
}

/// The sockets that systemd passes: one at least, and all TCP.
pub fn systemd_sockets() -> Result<Vec<TcpListener>, String> {
    let mut sockets = ListenFd::from_env();
    let count = sockets.len();
    let mut take = |index| {
        let listener = sockets.take_tcp_listener(index)?;
        let listener = listener.ok_or_else(|| Error::other("already in use"))?;
        // A socket of another family has no such address.
        listener.local_addr()?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listeners = (0..count).map(|index| {
        take(index).map_err(|error: Error| {
            format!(
                "--web.systemd-socket: socket {} is not a listening TCP socket ({error}): the .socket unit \
                 needs ListenStream= with a port or an address and port, and Accept=no",
                index + 1
            )
        })
    });
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    if listeners.is_empty() {
        return Err("--web.systemd-socket: systemd passed no socket: enable and start the .socket unit, or \
                    remove the flag"
            .into());
    }
    Ok(listeners)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &[&str]) -> Vec<SocketAddr> {
        text.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn name_is_bound_at_all_its_addresses() {
        // 192.0.2.0/24 and 198.51.100.0/24 are for documentation (RFC 5737).
        let named = addresses(&["127.0.0.1:0", "192.0.2.1:0", "127.0.0.2:0"]);
        let bound = bind(&named).unwrap();
        let bound: Vec<_> = bound.iter().map(|it| it.local_addr().unwrap().ip()).collect();
        assert_eq!(bound, [named[0].ip(), named[2].ip()]);

        let error = bind(&addresses(&["192.0.2.1:0", "198.51.100.1:0"])).unwrap_err();
        assert!(error.starts_with("cannot listen on 198.51.100.1:0: "), "{error}");
        let taken = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let named = [format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}")];
        let error = bind(&addresses(&[&named[0], &named[1]])).unwrap_err();
        assert!(error.contains(" on 127.0.0.") && error.contains("the port is in use"), "{error}");
    }

    #[test]
    fn suggestion_depends_on_the_error() {
        for (address, errno, says) in [
            ("192.0.2.1:80", libc::EADDRINUSE, "'sport = :80'"),
            ("127.0.0.1:443", libc::EACCES, "CAP_NET_BIND_SERVICE"),
            ("127.0.0.1:8443", libc::EACCES, "SELinux"),
            ("192.0.2.1:80", libc::EADDRNOTAVAIL, "`ip addr`"),
            ("[::1]:80", libc::EAFNOSUPPORT, "`ip addr`"),
            ("127.0.0.1:80", libc::EMFILE, "--web.listen-address"),
        ] {
            let (address, error) = (address.parse().unwrap(), Error::from_raw_os_error(errno));
            let text = problem(address, &error);
            assert!(text.contains(says) && text.contains("--web.listen-address"), "{text}");
            assert_eq!(text.contains("the port is in use"), errno == libc::EADDRINUSE, "{text}");
            assert!(!text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}
