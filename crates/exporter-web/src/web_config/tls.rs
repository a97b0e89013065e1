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
use site_config::yaml::Spanned;
use x509_cert::der::DateTime;

use crate::tls::{self, CertificateInfo};

use super::{Problems, Sources, at, place};

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

/// The policy for client certificates, with the exporter toolkit's names, which are Go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    NoClientCert,
    RequestClientCert,
    RequireAnyClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

impl ClientAuth {
    const ALL: [(&str, ClientAuth); 5] = [
        ("NoClientCert", ClientAuth::NoClientCert),
        ("RequestClientCert", ClientAuth::RequestClientCert),
        ("RequireAnyClientCert", ClientAuth::RequireAnyClientCert),
        ("VerifyClientCertIfGiven", ClientAuth::VerifyClientCertIfGiven),
        ("RequireAndVerifyClientCert", ClientAuth::RequireAndVerifyClientCert),
    ];

    pub fn verifies(self) -> bool {
        matches!(self, ClientAuth::VerifyClientCertIfGiven | ClientAuth::RequireAndVerifyClientCert)
    }

    pub fn requires(self) -> bool {
        matches!(self, ClientAuth::RequireAnyClientCert | ClientAuth::RequireAndVerifyClientCert)
    }
}

/// The TLS settings in force.
#[derive(Debug)]
pub struct TlsSettings {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client_auth: ClientAuth,
}

type Text = Option<Spanned<String>>;

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
    client_allowed_sans: Option<Spanned<Vec<String>>>,
    min_version: Text,
    max_version: Text,
    cipher_suites: Option<Vec<Spanned<String>>>,
    prefer_server_cipher_suites: Option<bool>,
    curve_preferences: Option<Vec<Spanned<String>>>,
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
    ) -> Result<Option<Pem>, String> {
        let key = format!("tls_server_config.{key}");
        let file_key = format!("{key}_file");
        let set = |text: Text| text.filter(|text| !text.value.is_empty());
        match (set(inline), set(file)) {
            (None, None) => Ok(None),
            (Some(_), Some(file)) => {
                Err(at(&file, &file_key, format!("{key} is set, too: remove one of them")))
            }
            (Some(inline), None) => {
                let place = place(&inline, &key);
                Ok(Some(Pem { bytes: inline.value.into_bytes(), place, file: None }))
            }
            (None, Some(file)) => {
                let path = sources.resolve(&file.value);
                let bytes = sources.read(&path).map_err(|problem| at(&file, &file_key, problem))?;
                Ok(Some(Pem { bytes, place: place(&file, &file_key), file: Some(path) }))
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
    section: Spanned<TlsSection>,
    sources: &mut Sources,
    found: &mut Problems,
) -> Option<TlsSettings> {
    if section.value == TlsSection::default() {
        return None;
    }
    let missing = |key| {
        let problem = format!("{key}_file is missing (or {key} with inline PEM)");
        at(&section, "tls_server_config", problem)
    };
    let (no_cert, no_key) = (missing("cert"), missing("key"));
    let section = section.value;
    let versions = versions(&section, found);
    ignore_names("cipher_suites", section.cipher_suites, CIPHER_SUITES, found);
    ignore_names("curve_preferences", section.curve_preferences, CURVES, found);
    let mut pem = |inline, file, key| {
        let pem = Pem::read(inline, file, key, sources);
        let is_readable = pem.is_ok();
        (found.keep(pem).flatten(), is_readable)
    };
    let (cert, cert_is_readable) = pem(section.cert, section.cert_file, "cert");
    let (key, key_is_readable) = pem(section.key, section.key_file, "key");
    let (ca, ca_is_readable) = pem(section.client_ca, section.client_ca_file, "client_ca");
    found.mistakes.extend((cert.is_none() && cert_is_readable).then_some(no_cert));
    found.mistakes.extend((key.is_none() && key_is_readable).then_some(no_key));
    let pair = cert.as_ref().zip(key.as_ref());
    let certified = pair.and_then(|(cert, key)| found.keep(certified(cert, key)));
    if let (Some(leaf), Some(cert)) = (certified.as_ref().and_then(|it| it.cert.first()), &cert) {
        found.warnings.extend(dates(leaf, SystemTime::now()).map(|problem| cert.wrong(problem)));
    }
    let auth = client_auth(section.client_auth_type.as_ref(), ca.as_ref(), &mut found.warnings);
    // A CA that cannot be read is not reported as missing, too.
    let auth = if ca_is_readable { found.keep(auth) } else { auth.ok() };
    let client_cas = found.keep(ca.as_ref().map_or(Ok(RootCertStore::empty()), client_cas));
    if let (Some(sans), Some(auth)) = (&section.client_allowed_sans, auth) {
        let problem = match auth {
            ClientAuth::NoClientCert => {
                Some("client certificates are not requested: set client_auth_type")
            }
            _ => sans.value.is_empty().then_some("an empty list rejects every client"),
        };
        let mistake = |problem| at(sans, "tls_server_config.client_allowed_sans", problem);
        found.mistakes.extend(problem.map(mistake));
    }
    let (versions, certified, client_auth, cas) = (versions?, certified?, auth?, client_cas?);
    if !found.mistakes.is_empty() {
        return None;
    }
    let sans = section.client_allowed_sans.map(|sans| sans.value).unwrap_or_default();
    let server = tls::server_config(certified, &versions, client_auth, cas, sans);
    let mut server = found.keep(server)?;
    server.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
    Some(TlsSettings { server: Arc::new(server), client_auth })
}

/// Warns that a key is ignored; an unknown name is an error.
fn ignore_names(key: &str, names: Option<Vec<Spanned<String>>>, known: &str, found: &mut Problems) {
    let key = format!("tls_server_config.{key}");
    let names = names.unwrap_or_default();
    let is_known = |name: &&Spanned<String>| known.split(' ').any(|known| known == name.value);
    if let Some(wrong) = names.iter().find(|name| !is_known(name)) {
        let problem = format!("{:?} is not one of: {}", wrong.value, known.replace(' ', ", "));
        found.mistakes.push(at(wrong, &key, problem));
    } else if let Some(first) = names.first() {
        let problem = "is ignored: all supported ones are strong, and the client may choose";
        found.warnings.push(at(first, &key, problem));
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
    written: Option<&Spanned<String>>,
    ca: Option<&Pem>,
    warnings: &mut Vec<String>,
) -> Result<ClientAuth, String> {
    const KEY: &str = "tls_server_config.client_auth_type";
    let without_certificates = |why| match ca {
        Some(ca) => Err(format!("{}: has no effect {why}", ca.place)),
        None => Ok(ClientAuth::NoClientCert),
    };
    let Some(written) = written.filter(|written| !written.value.is_empty()) else {
        return without_certificates("without client_auth_type");
    };
    let name = match &*written.value {
        // An older name, which the exporter toolkit still accepts.
        "RequireClientCert" => "RequireAnyClientCert",
        name => name,
    };
    let Some(&(_, auth)) = ClientAuth::ALL.iter().find(|(known, _)| *known == name) else {
        let known = ClientAuth::ALL.map(|(known, _)| known).join(", ");
        return Err(at(written, KEY, format!("{name:?} is not one of: {known}")));
    };
    if auth == ClientAuth::NoClientCert {
        return without_certificates("with client_auth_type NoClientCert");
    }
    if ca.is_none() && auth.verifies() {
        // Go would use the system's CAs: anyone with a certificate of a public CA would be accepted.
        if auth.requires() {
            let problem = "client_ca_file is missing: set the CAs of the client certificates";
            return Err(at(written, KEY, problem));
        }
        let problem = "client_ca_file is missing: clients without a certificate are accepted, and \
                       those that present one are refused; set client_ca_file or NoClientCert";
        warnings.push(at(written, KEY, problem));
    }
    Ok(auth)
}

/// The enabled versions, from `min_version` to `max_version`.
fn versions(
    section: &TlsSection,
    found: &mut Problems,
) -> Option<Vec<&'static SupportedProtocolVersion>> {
    let known =
        [("TLS10", None), ("TLS11", None), ("TLS12", Some(&TLS12)), ("TLS13", Some(&TLS13))];
    let mut index = |written: &Text, key: &str, default: usize| {
        let Some(written) = written else { return Some(default) };
        found.keep(known.iter().position(|(name, _)| *name == written.value).ok_or_else(|| {
            let problem = format!("{:?} is not one of: TLS12, TLS13", written.value);
            at(written, &format!("tls_server_config.{key}"), problem)
        }))
    };
    let min = index(&section.min_version, "min_version", 2)?;
    let max = index(&section.max_version, "max_version", 3)?;
    if let (Some(written), true) = (&section.min_version, min < 2) {
        let problem = format!("{} is not supported; the minimum is TLS12", written.value);
        found.warnings.push(at(written, "tls_server_config.min_version", problem));
    }
    let enabled = known.get(min..=max).into_iter().flatten();
    let spoken: Vec<_> = enabled.filter_map(|(_, version)| *version).collect();
    // With the defaults there are two: one of both keys is set.
    if let (Some(written), true) =
        (section.max_version.as_ref().or(section.min_version.as_ref()), spoken.is_empty())
    {
        let problem = "no supported version is left: TLS12 and TLS13 are supported";
        found.mistakes.push(at(written, "tls_server_config.max_version", problem));
        return None;
    }
    Some(spoken)
}
