//! An HTTP client of another exporter: its address, TLS and login.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use percent_encoding::percent_decode_str;
use rustls::crypto::ring;
use ureq::config::ConfigBuilder;
use ureq::http::Uri;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

/// Credentials for a server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Remote exporter")]
pub struct Access {
    /// CA certificates for https:// (PEM) [default: those of the system]
    #[arg(long = "source.ca-file", value_name = "FILE", global = true, hide_short_help = true)]
    pub ca_file: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long = "source.cert-file", value_name = "FILE", global = true, hide_short_help = true)]
    pub cert_file: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long = "source.key-file", value_name = "FILE", global = true, hide_short_help = true)]
    pub key_file: Option<PathBuf>,
    /// File with the password for HTTP basic authentication
    ///
    /// The user name is in --url, as in https://USER@HOST:10315.
    #[arg(long = "source.password-file", value_name = "FILE", global = true)]
    pub password_file: Option<PathBuf>,
}

/// An exporter at an address.
#[derive(Clone, Debug)]
pub struct Remote {
    base: String,
    /// The value of `Authorization`.
    login: Option<String>,
    agent: ureq::Agent,
}

impl Remote {
    /// Parses an address such as `http://user@host:10315/prefix`, and reads the files of the
    /// credentials. A connection takes `connect` at most, and a request `limit`.
    pub fn new(
        url: &str,
        access: &Access,
        connect: Duration,
        limit: Duration,
    ) -> Result<Self, String> {
        let wrong = || format!("{url:?} is not an address such as http://127.0.0.1:10315");
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let base = format!("{scheme}://{host}{}", path.trim_end_matches('/'));
        let is_plain = !host.is_empty() && !base.contains(['?', '#', ' ']);
        if !matches!(scheme, "http" | "https") || !is_plain || parse_uri(&base).is_none() {
            return Err(wrong());
        }
        let login = login(user, access.password_file.as_deref())?;
        let config = agent_config(scheme == "https", access, connect, limit)?;
        Ok(Remote { base, login, agent: config.build().into() })
    }

    /// The status and body of a response of at most `limit` bytes.
    pub fn read(
        &self,
        path: &str,
        pairs: &[(&str, String)],
        limit: u64,
    ) -> Result<(u16, Vec<u8>), ureq::Error> {
        body(&mut self.request(path, pairs).call()?, limit)
    }

    /// Why a request failed, without the kind of error that ureq puts before an I/O error.
    pub fn reason(error: &ureq::Error) -> String {
        match error {
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        }
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        let default = if self.base.starts_with("https") { 443 } else { 80 };
        parse_uri(&self.base).and_then(|uri| uri.port_u16()).unwrap_or(default)
    }

    /// Its address, without the password.
    pub fn name(&self) -> &str {
        &self.base
    }

    /// A GET request for a path below its address, with these query parameters.
    pub fn request(
        &self,
        path: &str,
        pairs: &[(&str, String)],
    ) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        let pairs = pairs.iter().map(|(key, value)| (key, value));
        let request = self.agent.get(format!("{}{path}", self.base)).query_pairs(pairs);
        match &self.login {
            Some(login) => request.header("Authorization", login),
            None => request,
        }
    }
}

/// An address with a host. `Uri` accepts a port such as 99999 or x, and a client then connects to port 80 or 443.
pub(crate) fn parse_uri(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let authority = uri.authority()?;
    let (_, server) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    let is_valid = server == authority.host() || authority.port_u16().is_some();
    is_valid.then_some(uri)
}

/// The configuration of a client that connects in `connect` at most, and has the response within `limit`. With TLS the
/// certificate files are read.
pub(crate) fn agent_config(
    is_secure: bool,
    access: &Access,
    connect: Duration,
    limit: Duration,
) -> Result<ConfigBuilder<AgentScope>, String> {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(connect))
        .timeout_global(Some(limit))
        // Servers are on the site's network, not behind a proxy.
        .proxy(None)
        .user_agent(concat!("fabric-exporter/", env!("CARGO_PKG_VERSION")));
    Ok(if is_secure { config.tls_config(tls(access)?) } else { config })
}

/// The status and body of a response of at most `limit` bytes.
pub fn body(
    response: &mut ureq::http::Response<ureq::Body>,
    limit: u64,
) -> Result<(u16, Vec<u8>), ureq::Error> {
    let body = response.body_mut().with_config().limit(limit).read_to_vec()?;
    Ok((response.status().as_u16(), body))
}

/// The header of a basic login, if there is a user.
fn login(user: Option<&str>, password_file: Option<&Path>) -> Result<Option<String>, String> {
    let flag = "--source.password-file";
    let Some(user) = user else {
        return match password_file {
            None => Ok(None),
            Some(_) => {
                Err(format!("{flag}: the user is missing in the address: use http://USER@HOST"))
            }
        };
    };
    let mut login = percent_decode_str(user).decode_utf8_lossy().into_owned();
    if let Some(file) = password_file {
        if user.contains(':') {
            return Err(format!("{flag}: the address also contains a password: use one of them"));
        }
        let password = String::from_utf8_lossy(&read(file, flag, MAX_FILE)?).into_owned();
        // Editors end the last line.
        login = format!("{login}:{}", password.trim_end_matches(['\r', '\n']));
    } else if !login.contains(':') {
        login.push(':');
    }
    Ok(Some(format!("Basic {}", BASE64_STANDARD.encode(login))))
}

/// The most bytes of a password, certificate or key file.
const MAX_FILE: u64 = 1 << 20;

/// Reads a file of at most `limit` bytes, which may be a pipe such as bash makes of `<(command)`.
pub(crate) fn read(file: &Path, flag: &str, limit: u64) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn Display| format!("{flag}: {}: {error}", file.display());
    let mut bytes = Vec::new();
    let length = File::open(file).and_then(|opened| opened.take(limit + 1).read_to_end(&mut bytes));
    let length = length.map_err(|error| failed(&error))? as u64;
    if length > limit {
        return Err(failed(&format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

fn tls(access: &Access) -> Result<TlsConfig, String> {
    let mut config = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        // The program has no process-wide provider.
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    if let Some(file) = &access.ca_file {
        config =
            config.root_certs(RootCerts::new_with_certs(&certificates(file, "--source.ca-file")?));
    }
    match (&access.cert_file, &access.key_file) {
        (None, None) => {}
        (Some(cert), Some(key)) => {
            let flag = "--source.key-file";
            let key = PrivateKey::from_pem(&read(key, flag, MAX_FILE)?)
                .map_err(|error| format!("{flag}: {}: {error}", key.display()))?;
            let chain = certificates(cert, "--source.cert-file")?;
            config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
        }
        _ => {
            return Err("--source.cert-file and --source.key-file: both are required".into());
        }
    }
    Ok(config.build())
}

fn certificates(file: &Path, flag: &str) -> Result<Vec<Certificate<'static>>, String> {
    let mut all = Vec::new();
    for item in parse_pem(&read(file, flag, MAX_FILE)?) {
        match item {
            Ok(PemItem::Certificate(certificate)) => all.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("{flag}: {}: {error}", file.display())),
        }
    }
    if all.is_empty() {
        return Err(format!("{flag}: {}: contains no PEM certificate", file.display()));
    }
    Ok(all)
}

/// As much of a text from outside as fits in a message, without what would move a terminal's cursor.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|char| !char.is_control()).take(300).collect()
}
