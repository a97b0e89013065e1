//! `tls_server_config`: certificates, versions, and requirements on client certificates.
//!
//! Cipher suites and curves are accepted and ignored: rustls has no weak ones.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use serde::Deserialize;
use x509_cert::der::DateTime;
use yaml_config::yaml::Document;

use super::problems::{Mistake, Problems, at, place};
use super::sources::Sources;
use crate::tls::{self, CertificateInfo, ClientAuth};

const SECTION: &str = "tls_server_config";

/// A certificate that expires sooner is a warning: ACME clients renew a month before.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// The names that `cipher_suites` may have (Go's `tls.CipherSuites`).
const CIPHER_SUITES: &str = "\
    TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256 \
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 \
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 \
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 \
    TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA \
    TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA \
    TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256";

/// The names that `curve_preferences` may have (Go's `tls.CurveID`).
const CURVES: &str = "CurveP256 CurveP384 CurveP521 X25519 X25519MLKEM768";

/// The TLS settings in force.
#[derive(Debug)]
pub struct TlsSettings {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client_auth: ClientAuth,
    /// Whether client certificates are verified with CAs of the file.
    pub(crate) has_client_ca: bool,
    /// Whether client certificates need one of some names.
    pub(crate) has_allowed_sans: bool,
    /// Whether TLS 1.2 is accepted.
    pub(crate) accepts_tls12: bool,
}

type Text = Option<String>;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsSection {
    cert: Text,
    key: Text,
    client_ca: Text,
    cert_file: Text,
    key_file: Text,
    client_ca_file: Text,
    client_auth_type: Text,
    client_allowed_sans: Option<Vec<String>>,
    min_version: Text,
    max_version: Text,
    cipher_suites: Option<Vec<String>>,
    prefer_server_cipher_suites: Option<bool>,
    curve_preferences: Option<Vec<String>>,
}

/// A PEM block in the web config file, or in a file that it names.
struct Pem {
    bytes: Vec<u8>,
    /// The position of the PEM or of the file name.
    place: String,
    file: Option<PathBuf>,
}

impl Pem {
    /// Reads the key `key` or `key_file`, whichever is set.
    fn read(
        inline: Text,
        file: Text,
        key: &str,
        sources: &mut Sources,
        document: &Document,
    ) -> Result<Option<Pem>, String> {
        let key = format!("tls_server_config.{key}");
        let file_key = format!("{key}_file");
        let set = |text: Text| text.filter(|text| !text.is_empty());
        match (set(inline), set(file)) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                Err(at(document, &file_key, format!("{key} is set, too: remove one of them")))
            }
            (Some(inline), None) => {
                let place = place(document, &key, &key);
                Ok(Some(Pem { bytes: inline.into_bytes(), place, file: None }))
            }
            (None, Some(file)) => {
                let path = sources.folder.join(&file);
                let place = place(document, &file_key, &file_key);
                let bytes = sources.read(&path).map_err(|problem| format!("{place}: {problem}"))?;
                Ok(Some(Pem { bytes, place, file: Some(path) }))
            }
        }
    }

    fn wrong(&self, problem: impl std::fmt::Display) -> String {
        match &self.file {
            Some(file) => format!("{}: {}: {problem}", self.place, file.display()),
            None => format!("{}: {problem}", self.place),
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match read {
            Ok(all) if all.is_empty() => Err(self.wrong("contains no PEM certificate")),
            Ok(all) => Ok(all),
            Err(error) => Err(self.wrong(format!("is not PEM: {error}"))),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, String> {
        use rustls::pki_types::pem::Error;
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            Error::NoItemsFound => self.wrong("contains no unencrypted PEM private key"),
            error => self.wrong(format!("is not PEM: {error}")),
        })
    }
}

/// Reads the certificates and validates the section; `None` if it is empty or invalid.
pub(super) fn validate(
    section: TlsSection,
    sources: &mut Sources,
    problems: &mut Problems<'_>,
) -> Option<TlsSettings> {
    if section == TlsSection::default() {
        return None;
    }
    let document = problems.document;
    let versions = versions(&section, problems);
    ignore_names("cipher_suites", section.cipher_suites, CIPHER_SUITES, problems);
    ignore_names("curve_preferences", section.curve_preferences, CURVES, problems);
    // `None` if it cannot be read, `Some(None)` if it is not set.
    let mut pem =
        |inline, file, key| problems.keep(Pem::read(inline, file, key, sources, document));
    let cert = pem(section.cert, section.cert_file, "cert");
    let key = pem(section.key, section.key_file, "key");
    let ca = pem(section.client_ca, section.client_ca_file, "client_ca");
    for (inline, file, pem) in [("cert", "cert_file", &cert), ("key", "key_file", &key)] {
        if matches!(pem, Some(None)) {
            let problem = format!("{file} is missing (or {inline} with inline PEM)");
            let text = at(document, SECTION, problem);
            problems.add(Mistake::Missing { section: SECTION, key: file, text });
        }
    }
    let ca_is_readable = ca.is_some();
    let [cert, key, ca] = [cert, key, ca].map(Option::flatten);
    let pair = cert.as_ref().zip(key.as_ref());
    let certified = pair.and_then(|(cert, key)| problems.keep(certified(cert, key)));
    let leaf = certified.as_ref().and_then(|certified| certified.cert.first());
    if let (Some(leaf), Some(cert)) = (leaf, &cert)
        && let Some(problem) = dates(leaf, SystemTime::now())
    {
        problems.warn(cert.wrong(problem));
    }
    let auth = client_auth(section.client_auth_type.as_deref(), ca.as_ref(), problems);
    // A CA that cannot be read is not reported as missing, too.
    let auth = if ca_is_readable { problems.keep(auth) } else { auth.ok() };
    let client_cas = problems.keep(ca.as_ref().map_or(Ok(RootCertStore::empty()), client_cas));
    if let (Some(sans), Some(auth)) = (&section.client_allowed_sans, auth) {
        let problem = match auth {
            ClientAuth::NoClientCert => {
                Some("client certificates are not requested: set client_auth_type")
            }
            ClientAuth::RequestClientCert
            | ClientAuth::RequireAnyClientCert
            | ClientAuth::VerifyClientCertIfGiven
            | ClientAuth::RequireAndVerifyClientCert => {
                sans.is_empty().then_some("an empty list rejects every client")
            }
        };
        if let Some(problem) = problem {
            problems.add(at(document, "tls_server_config.client_allowed_sans", problem));
        }
    }
    let (versions, certified, client_auth, cas) = (versions?, certified?, auth?, client_cas?);
    if problems.has_mistakes() {
        return None;
    }
    let sans = section.client_allowed_sans.unwrap_or_default();
    let (has_client_ca, has_allowed_sans) = (ca.is_some(), !sans.is_empty());
    let accepts_tls12 = versions.contains(&&TLS12);
    let server = tls::server_config(certified, &versions, client_auth, cas, sans);
    let mut server = problems.keep(server)?;
    server.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
    let server = Arc::new(server);
    Some(TlsSettings { server, client_auth, has_client_ca, has_allowed_sans, accepts_tls12 })
}

/// Warns that a key is ignored; an unknown name is an error.
fn ignore_names(key: &str, names: Option<Vec<String>>, known: &str, problems: &mut Problems<'_>) {
    let key = format!("tls_server_config.{key}");
    let names = names.unwrap_or_default();
    let place = |index: usize| place(problems.document, &format!("{key}[{index}]"), &key);
    let is_unknown = |name: &String| known.split(' ').all(|known| known != name);
    if let Some(wrong) = names.iter().position(is_unknown) {
        let known = known.replace(' ', ", ");
        let problem = format!("{}: {:?} is not one of: {known}", place(wrong), names[wrong]);
        problems.add(problem);
    } else if !names.is_empty() {
        let problem = "is ignored: all supported ones are strong, and the client may choose";
        problems.warn(format!("{}: {problem}", place(0)));
    }
}

fn client_cas(ca: &Pem) -> Result<RootCertStore, String> {
    let mut cas = RootCertStore::empty();
    for certificate in ca.certificates()? {
        cas.add(certificate).map_err(|error| ca.wrong(error))?;
    }
    Ok(cas)
}

fn certified(cert: &Pem, key: &Pem) -> Result<CertifiedKey, String> {
    use rustls::{CertificateError, Error};
    let certified = CertifiedKey::from_der(cert.certificates()?, key.key()?, &tls::provider());
    certified.map_err(|error| match error {
        Error::InconsistentKeys(_) => key.wrong("the private key does not match the certificate"),
        Error::InvalidCertificate(CertificateError::BadEncoding) => {
            cert.wrong("is not a certificate (X.509 version 3)")
        }
        error @ Error::InvalidCertificate(_) => cert.wrong(error),
        error => key.wrong(error),
    })
}

/// A warning if a certificate is not valid, or not for long.
fn dates(leaf: &CertificateDer<'_>, now: SystemTime) -> Option<String> {
    let dates = CertificateInfo::parse(leaf).ok().zip(DateTime::from_system_time(now).ok());
    let Some((CertificateInfo { not_before, not_after, .. }, now)) = dates else {
        return Some("the validity period of the certificate cannot be read".into());
    };
    let left = not_after.unix_duration().saturating_sub(now.unix_duration());
    let problem = if now < not_before {
        format!("is not valid before {not_before}")
    } else if not_after < now {
        format!("expired at {not_after}")
    } else if left < EXPIRES_SOON {
        format!("expires at {not_after}")
    } else {
        return None;
    };
    Some(format!("the certificate {problem}"))
}

fn client_auth(
    written: Option<&str>,
    ca: Option<&Pem>,
    problems: &mut Problems<'_>,
) -> Result<ClientAuth, Mistake> {
    const KEY: &str = "tls_server_config.client_auth_type";
    let without_certificates = |why| match ca {
        Some(ca) => Err(format!("{}: has no effect {why}", ca.place).into()),
        None => Ok(ClientAuth::NoClientCert),
    };
    let Some(written) = written.filter(|written| !written.is_empty()) else {
        return without_certificates("without client_auth_type");
    };
    let name = match written {
        // An older name, which the exporter toolkit still accepts.
        "RequireClientCert" => "RequireAnyClientCert",
        name => name,
    };
    let Some(&(_, auth)) = ClientAuth::ALL.iter().find(|(known, _)| *known == name) else {
        let known = ClientAuth::ALL.map(|(known, _)| known).join(", ");
        return Err(at(problems.document, KEY, format!("{name:?} is not one of: {known}")).into());
    };
    if auth == ClientAuth::NoClientCert {
        return without_certificates("with client_auth_type NoClientCert");
    }
    if ca.is_none() && auth.verifies() {
        // Go would use the system's CAs: anyone with a certificate of a public CA would be accepted.
        if auth.requires() {
            let problem = "client_ca_file is missing: set the CAs of the client certificates";
            let text = at(problems.document, KEY, problem);
            return Err(Mistake::Missing { section: SECTION, key: "client_ca_file", text });
        }
        let problem = "client_ca_file is missing: clients without a certificate are accepted, and \
                       those that present one are refused; set client_ca_file or NoClientCert";
        problems.warn(at(problems.document, KEY, problem));
    }
    Ok(auth)
}

const MIN_VERSION: &str = "tls_server_config.min_version";
const MAX_VERSION: &str = "tls_server_config.max_version";

/// The enabled versions, from `min_version` to `max_version`.
fn versions(
    section: &TlsSection,
    problems: &mut Problems<'_>,
) -> Option<Vec<&'static SupportedProtocolVersion>> {
    let known =
        [("TLS10", None), ("TLS11", None), ("TLS12", Some(&TLS12)), ("TLS13", Some(&TLS13))];
    let document = problems.document;
    let mut index = |written: &Text, key, default| {
        let Some(written) = written else { return Some(default) };
        let found_at = known.iter().position(|(name, _)| name == written);
        let problem = format!("{written:?} is not one of: TLS12, TLS13");
        problems.keep(found_at.ok_or_else(|| at(document, key, problem)))
    };
    let min = index(&section.min_version, MIN_VERSION, 2)?;
    let max = index(&section.max_version, MAX_VERSION, 3)?;
    if let (Some(written), true) = (&section.min_version, min < 2) {
        let problem = format!("{written} is not supported; the minimum is TLS12");
        problems.warn(at(document, MIN_VERSION, problem));
    }
    let enabled = known.get(min..=max).into_iter().flatten();
    let spoken: Vec<_> = enabled.filter_map(|(_, version)| *version).collect();
    if spoken.is_empty() {
        // With the defaults there are two: one of both keys is set.
        let written = if section.max_version.is_some() { MAX_VERSION } else { MIN_VERSION };
        let place = place(document, written, MAX_VERSION);
        let problem = "no supported version is left: TLS12 and TLS13 are supported";
        problems.add(format!("{place}: {problem}"));
        return None;
    }
    Some(spoken)
}
