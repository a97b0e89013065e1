//! An HTTP client of another exporter: its address, TLS and login.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::crypto::ring;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The TLS files and the password for an address.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// A file with the CAs that are trusted, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// A file with the client certificate.
    pub cert_file: Option<PathBuf>,
    /// A file with its key.
    pub key_file: Option<PathBuf>,
    /// A file with the password of the user in the address.
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
    /// Parses an address such as `http://user@host:10315/prefix`, and reads the files. A response may take
    /// `limit`, and a connection `connect`.
    pub fn new(
        url: &str,
        access: &Access,
        connect: Duration,
        limit: Duration,
    ) -> Result<Self, String> {
        let wrong = || format!("{url:?} is no address such as http://127.0.0.1:10315");
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let base = format!("{scheme}://{host}{}", path.trim_end_matches('/'));
        let is_plain = !host.is_empty() && !base.contains(['?', '#', ' ']);
        if !matches!(scheme, "http" | "https")
            || !is_plain
            || base.parse::<ureq::http::Uri>().is_err()
        {
            return Err(wrong());
        }
        let login = login(user, access.password_file.as_deref())?;
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(connect))
            .timeout_global(Some(limit))
            // Exporters are within the site; proxies lead outside.
            .proxy(None)
            .user_agent(concat!("fabric-exporter/", env!("CARGO_PKG_VERSION")));
        if scheme == "https" {
            config = config.tls_config(tls(access)?);
        }
        Ok(Remote { base, login, agent: config.build().into() })
    }

    /// Its address, without what is secret.
    pub fn name(&self) -> &str {
        &self.base
    }

    /// A GET request for a path below its address.
    pub fn get(&self, path: &str) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        let request = self.agent.get(format!("{}{path}", self.base));
        match &self.login {
            Some(login) => request.header("Authorization", login),
            None => request,
        }
    }
}

/// The header of a basic login, if there is a user.
fn login(user: Option<&str>, password_file: Option<&Path>) -> Result<Option<String>, String> {
    let user = match (user, password_file) {
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            return Err(
                "--source.password-file: whose? The user stands in the address: http://USER@HOST"
                    .into(),
            );
        }
        (Some(user), None) => decoded(user),
        (Some(user), Some(_)) if user.contains(':') => {
            return Err("--source.password-file: the address has a password, too".into());
        }
        (Some(user), Some(file)) => {
            let user = decoded(user);
            let password =
                String::from_utf8_lossy(&read(file, "--source.password-file")?).into_owned();
            // An editor ends the line.
            format!("{user}:{}", password.trim_end_matches(['\r', '\n']))
        }
    };
    let user = if user.contains(':') { user } else { format!("{user}:") };
    Ok(Some(format!("Basic {}", BASE64_STANDARD.encode(user))))
}

/// Percent-decodes a part of an address.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = behind.get(2..).filter(|_| byte.is_some()).unwrap_or(behind);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read(file: &Path, flag: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{flag}: {}: {error}", file.display()))
}

fn tls(access: &Access) -> Result<TlsConfig, String> {
    let mut config = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        // The program has one provider; without this line rustls wants one for the whole process.
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    if let Some(file) = &access.ca_file {
        config =
            config.root_certs(RootCerts::new_with_certs(&certificates(file, "--source.ca-file")?));
    }
    match (&access.cert_file, &access.key_file) {
        (None, None) => {}
        (Some(cert), Some(key)) => {
            let flag = "--source.key-file";
            let key = PrivateKey::from_pem(&read(key, flag)?)
                .map_err(|error| format!("{flag}: {}: {error}", key.display()))?;
            let chain = certificates(cert, "--source.cert-file")?;
            config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
        }
        _ => {
            return Err(
                "--source.cert-file, --source.key-file: one does not go without the other".into()
            );
        }
    }
    Ok(config.build())
}

fn certificates(file: &Path, flag: &str) -> Result<Vec<Certificate<'static>>, String> {
    let mut all = Vec::new();
    for item in parse_pem(&read(file, flag)?) {
        match item {
            Ok(PemItem::Certificate(certificate)) => all.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("{flag}: {}: {error}", file.display())),
        }
    }
    if all.is_empty() {
        return Err(format!("{flag}: {}: there is no certificate (PEM) in it", file.display()));
    }
    Ok(all)
}
