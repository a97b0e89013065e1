//! `tls_server_config`: certificates, and how TLS is spoken.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::certificate::Facts;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use serde::Deserialize;
use site_config::yaml::Spanned;

use super::sources::Sources;
use super::{at, place};

/// A certificate that ends sooner is told of: who renews by ACME does so a month before.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// Cipher suites that Go knows by these names, and rustls does not speak: CBC.
const LEFT_OUT: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
];

/// What is wanted of a client's certificate, in the toolkit's words, which are Go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ClientAuth {
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

    /// Whether a certificate has to be of a CA that is known.
    pub fn verifies(self) -> bool {
        matches!(self, ClientAuth::VerifyClientCertIfGiven | ClientAuth::RequireAndVerifyClientCert)
    }

    /// Whether there has to be one.
    pub fn requires(self) -> bool {
        matches!(self, ClientAuth::RequireAnyClientCert | ClientAuth::RequireAndVerifyClientCert)
    }
}

/// How TLS is spoken.
#[derive(Debug)]
pub struct TlsSettings {
    /// The certificate, its chain and its key.
    pub certified: CertifiedKey,
    /// What is wanted of clients.
    pub client_auth: ClientAuth,
    /// The CAs whose clients are welcome.
    pub client_cas: Arc<RootCertStore>,
    /// The names one of which a client's certificate has to have; empty if any will do.
    pub allowed_sans: Vec<String>,
    /// The versions, cipher suites and groups that are spoken.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// The cipher suites and groups that are spoken.
    pub provider: Arc<CryptoProvider>,
    /// Whether our order of cipher suites counts, and not the client's.
    pub our_order: bool,
}

type Text = Option<Spanned<String>>;

/// The section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
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

impl Section {
    /// Whether it says anything at all.
    fn is_empty(&self) -> bool {
        let texts = [
            &self.cert,
            &self.key,
            &self.client_ca,
            &self.cert_file,
            &self.key_file,
            &self.client_ca_file,
            &self.client_auth_type,
            &self.min_version,
            &self.max_version,
        ];
        texts.iter().all(|text| text.is_none())
            && self.client_allowed_sans.is_none()
            && self.cipher_suites.is_none()
            && self.curve_preferences.is_none()
            && self.prefer_server_cipher_suites.is_none()
    }
}

/// A PEM that is written in the file, or named there.
struct Pem {
    bytes: Vec<u8>,
    place: String,
    file: Option<PathBuf>,
}

impl Pem {
    /// The one of two keys that is set, if one is.
    fn take(
        inline: Text,
        file: Text,
        key: &str,
        sources: &mut Sources,
    ) -> Result<Option<Pem>, String> {
        let key = format!("tls_server_config.{key}");
        let set = |text: Text| text.filter(|text| !text.value.is_empty());
        match (set(inline), set(file)) {
            (None, None) => Ok(None),
            (Some(_), Some(file)) => {
                Err(at(&file, &format!("{key}_file"), format!("{key} is there, too: one of them")))
            }
            (Some(inline), None) => {
                let place = place(&inline, &key);
                Ok(Some(Pem { bytes: inline.value.into_bytes(), place, file: None }))
            }
            (None, Some(file)) => {
                let place = place(&file, &format!("{key}_file"));
                let path = sources.resolve(&file.value);
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
            Ok(all) if all.is_empty() => Err(self.wrong("there is no certificate (PEM) in it")),
            Ok(all) => Ok(all),
            Err(error) => Err(self.wrong(format!("is not PEM: {error}"))),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, String> {
        use rustls::pki_types::pem::Error;
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            Error::NoItemsFound => {
                self.wrong("there is no private key (PEM, without a password) in it")
            }
            error => self.wrong(format!("is not PEM: {error}")),
        })
    }
}

/// What is said of TLS, if it is to be spoken.
pub(super) trait Validate {
    /// Reads the certificates, and looks whether all fits together.
    fn validate(
        self,
        sources: &mut Sources,
        warnings: &mut Vec<String>,
    ) -> Result<Option<TlsSettings>, Vec<String>>;
}

/// The value, or `None` with its mistake put to the others.
fn keep<T>(result: Result<T, String>, mistakes: &mut Vec<String>) -> Option<T> {
    result.map_err(|mistake| mistakes.push(mistake)).ok()
}

impl Validate for Spanned<Section> {
    fn validate(
        self,
        sources: &mut Sources,
        warnings: &mut Vec<String>,
    ) -> Result<Option<TlsSettings>, Vec<String>> {
        if self.value.is_empty() {
            return Ok(None);
        }
        let here = |problem: &str| at(&self, "tls_server_config", problem);
        let (no_cert, no_key) = (
            here("cert_file is missing (or cert, with the PEM itself)"),
            here("key_file is missing (or key, with the PEM itself)"),
        );
        let section = self.value;
        let mut mistakes = Vec::new();
        let provider =
            keep(versions(&section, warnings), &mut mistakes).and_then(|(versions, spoken)| {
                let provider = provider(&section, &versions, &spoken, warnings);
                keep(provider, &mut mistakes).map(|provider| (versions, provider))
            });
        let mut pem = |inline, file, key| {
            let taken = Pem::take(inline, file, key, sources);
            let was_taken = taken.is_ok();
            (keep(taken, &mut mistakes).flatten(), was_taken)
        };
        let (cert, cert_taken) = pem(section.cert, section.cert_file, "cert");
        let (key, key_taken) = pem(section.key, section.key_file, "key");
        let (client_ca, ca_taken) = pem(section.client_ca, section.client_ca_file, "client_ca");
        mistakes.extend((cert.is_none() && cert_taken).then_some(no_cert));
        mistakes.extend((key.is_none() && key_taken).then_some(no_key));
        let certified = cert.as_ref().zip(key.as_ref()).and_then(|(cert, key)| {
            // Whatever is wrong with the provider, the key is looked at, too.
            let usual = ring::default_provider();
            let provider = provider.as_ref().map_or(&usual, |(_, provider)| provider);
            keep(certified(cert, key, provider), &mut mistakes)
        });
        if let (Some(leaf), Some(cert)) = (certified.as_ref().and_then(|it| it.cert.first()), &cert)
        {
            warnings.extend(dates(leaf, SystemTime::now()).map(|problem| cert.wrong(problem)));
        }
        let auth = client_auth(section.client_auth_type.as_ref(), client_ca.as_ref(), warnings);
        // A CA that cannot be read is there all the same.
        let auth = if ca_taken { keep(auth, &mut mistakes) } else { auth.ok() };
        let cas = client_ca.as_ref().map_or(Ok(RootCertStore::empty()), client_cas);
        let cas = keep(cas, &mut mistakes);
        let sans = section.client_allowed_sans;
        mistakes.extend(sans.as_ref().zip(auth).and_then(|(sans, auth)| wrong_sans(sans, auth)));
        match (provider, certified, auth, cas) {
            (Some((versions, provider)), Some(certified), Some(client_auth), Some(cas))
                if mistakes.is_empty() =>
            {
                Ok(Some(TlsSettings {
                    certified,
                    client_auth,
                    client_cas: Arc::new(cas),
                    allowed_sans: sans.map(|sans| sans.value).unwrap_or_default(),
                    versions,
                    provider: Arc::new(provider),
                    our_order: section.prefer_server_cipher_suites.unwrap_or(true),
                }))
            }
            _ => Err(mistakes),
        }
    }
}

fn client_cas(ca: &Pem) -> Result<RootCertStore, String> {
    let mut cas = RootCertStore::empty();
    for certificate in ca.certificates()? {
        cas.add(certificate).map_err(|error| ca.wrong(error))?;
    }
    Ok(cas)
}

/// What is wrong with the names that clients' certificates have to have.
fn wrong_sans(sans: &Spanned<Vec<String>>, auth: ClientAuth) -> Option<String> {
    let problem = if auth == ClientAuth::NoClientCert {
        "no client is asked for a certificate: set client_auth_type"
    } else if sans.value.is_empty() {
        "with none, no client would come in"
    } else {
        return None;
    };
    Some(at(sans, "tls_server_config.client_allowed_sans", problem))
}

fn certified(cert: &Pem, key: &Pem, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    use rustls::{CertificateError, Error};
    CertifiedKey::from_der(cert.certificates()?, key.key()?, provider).map_err(
        |error| match error {
            Error::InconsistentKeys(_) => key.wrong("the key is not that of the certificate"),
            Error::InvalidCertificate(CertificateError::BadEncoding) => {
                cert.wrong("is not a certificate (X.509 version 3)")
            }
            error @ Error::InvalidCertificate(_) => cert.wrong(error),
            error => key.wrong(error),
        },
    )
}

/// What there is to say about the time in which a certificate is good.
fn dates(leaf: &CertificateDer<'_>, now: SystemTime) -> Option<String> {
    let Ok(facts) = Facts::read(leaf) else {
        return Some("the dates of the certificate cannot be read".into());
    };
    let day = humantime::format_rfc3339_seconds;
    if now < facts.from {
        Some(format!("the certificate is good from {} on only", day(facts.from)))
    } else if facts.until < now {
        Some(format!("the certificate expired at {}", day(facts.until)))
    } else if facts.until < now + SOON {
        Some(format!("the certificate expires at {}", day(facts.until)))
    } else {
        None
    }
}

fn client_auth(
    written: Option<&Spanned<String>>,
    ca: Option<&Pem>,
    warnings: &mut Vec<String>,
) -> Result<ClientAuth, String> {
    const KEY: &str = "tls_server_config.client_auth_type";
    let Some(written) = written.filter(|written| !written.value.is_empty()) else {
        return match ca {
            Some(ca) => Err(format!("{}: has no use without client_auth_type", ca.place)),
            None => Ok(ClientAuth::NoClientCert),
        };
    };
    // An older name, which the toolkit still takes.
    let name = if written.value == "RequireClientCert" {
        "RequireAnyClientCert"
    } else {
        written.value.as_str()
    };
    let Some((_, auth)) = ClientAuth::ALL.iter().find(|(known, _)| *known == name) else {
        let known = ClientAuth::ALL.map(|(known, _)| known).join(", ");
        return Err(at(written, KEY, format!("{name:?} is none of: {known}")));
    };
    match ca {
        Some(ca) if *auth == ClientAuth::NoClientCert => {
            Err(format!("{}: has no use with client_auth_type NoClientCert", ca.place))
        }
        // Go would take the system's CAs: anyone with a certificate of a public CA would be accepted.
        None if auth.verifies() && auth.requires() => {
            Err(at(written, KEY, "client_ca_file is missing: whose certificates are good?"))
        }
        None if auth.verifies() => {
            let problem = "client_ca_file is missing: clients without a certificate are accepted, and \
                           those that show one are refused; set client_ca_file, or NoClientCert";
            warnings.push(at(written, KEY, problem));
            Ok(*auth)
        }
        _ => Ok(*auth),
    }
}

/// The versions between two, and how that range is told.
fn versions(
    section: &Section,
    warnings: &mut Vec<String>,
) -> Result<(Vec<&'static SupportedProtocolVersion>, String), String> {
    let place = |written: &Text, name: &str, usual: u8| -> Result<u8, String> {
        let Some(written) = written else { return Ok(usual) };
        let known = ["TLS10", "TLS11", "TLS12", "TLS13"];
        let found = known.iter().position(|known| *known == written.value);
        found.map(|index| index as u8).ok_or_else(|| {
            let problem = format!("{:?} is none of: TLS12, TLS13", written.value);
            at(written, &format!("tls_server_config.{name}"), problem)
        })
    };
    let (least, most) = (
        place(&section.min_version, "min_version", 2)?,
        place(&section.max_version, "max_version", 3)?,
    );
    if let (Some(written), true) = (&section.min_version, least < 2) {
        let problem = format!("{} is not spoken: TLS12 is the least", written.value);
        warnings.push(at(written, "tls_server_config.min_version", problem));
    }
    let spoken: Vec<_> = [(2, &TLS12), (3, &TLS13)]
        .into_iter()
        .filter(|(version, _)| (least..=most).contains(version))
        .map(|(_, version)| version)
        .collect();
    if spoken.is_empty() {
        let Some(written) = section.max_version.as_ref().or(section.min_version.as_ref()) else {
            return Err("tls_server_config: no version is left".into());
        };
        let problem = "no version is left that is spoken: TLS12 and TLS13 are";
        return Err(at(written, "tls_server_config.max_version", problem));
    }
    let told = spoken.iter().map(|version| format!("{:?}", version.version)).collect::<Vec<_>>();
    Ok((spoken, told.join(", ")))
}

/// The cipher suites and groups that are wanted; without a wish, the usual ones.
fn provider(
    section: &Section,
    versions: &[&'static SupportedProtocolVersion],
    spoken: &str,
    warnings: &mut Vec<String>,
) -> Result<CryptoProvider, String> {
    let mut provider = ring::default_provider();
    if let Some(wanted) = section.cipher_suites.as_ref().filter(|wanted| !wanted.is_empty()) {
        let suites = suites(wanted, &provider.cipher_suites, warnings)?;
        let usable = |version: &&SupportedProtocolVersion| {
            suites.iter().any(|suite| suite.version() == *version)
        };
        if let (Some(first), false) = (wanted.first(), versions.iter().all(usable)) {
            let problem = format!("none of them can be spoken with {spoken}");
            return Err(at(first, "tls_server_config.cipher_suites", problem));
        }
        provider.cipher_suites = suites;
    }
    if let Some(wanted) = section.curve_preferences.as_ref().filter(|wanted| !wanted.is_empty()) {
        provider.kx_groups = groups(wanted, warnings)?;
    }
    Ok(provider)
}

/// Those of TLS 1.2 that are wanted, in that order. As for Go, the three of TLS 1.3 are not to be
/// chosen from: each of them is good.
fn suites(
    wanted: &[Spanned<String>],
    known: &[SupportedCipherSuite],
    warnings: &mut Vec<String>,
) -> Result<Vec<SupportedCipherSuite>, String> {
    const KEY: &str = "tls_server_config.cipher_suites";
    let name = |suite: &SupportedCipherSuite| {
        let told = format!("{:?}", suite.suite());
        told.strip_prefix("TLS13_").map_or_else(|| told.clone(), |rest| format!("TLS_{rest}"))
    };
    let (mut chosen, older): (Vec<_>, Vec<_>) =
        known.iter().copied().partition(|suite| suite.tls13().is_some());
    for written in wanted {
        if let Some(suite) = older.iter().find(|suite| name(suite) == written.value) {
            chosen.push(*suite);
        } else if LEFT_OUT.contains(&written.value.as_str()) {
            warnings.push(at(written, KEY, format!("{} is not spoken", written.value)));
        } else if !known.iter().any(|suite| name(suite) == written.value) {
            let known = known.iter().map(name).collect::<Vec<_>>().join(", ");
            return Err(at(written, KEY, format!("{:?} is none of: {known}", written.value)));
        }
    }
    Ok(chosen)
}

fn groups(
    wanted: &[Spanned<String>],
    warnings: &mut Vec<String>,
) -> Result<Vec<&'static dyn SupportedKxGroup>, String> {
    const KEY: &str = "tls_server_config.curve_preferences";
    let known: [(&str, Option<&'static dyn SupportedKxGroup>); 4] = [
        ("CurveP256", Some(ring::kx_group::SECP256R1)),
        ("CurveP384", Some(ring::kx_group::SECP384R1)),
        ("CurveP521", None),
        ("X25519", Some(ring::kx_group::X25519)),
    ];
    let mut chosen = Vec::new();
    for written in wanted {
        match known.iter().find(|(name, _)| *name == written.value) {
            Some((_, Some(group))) => chosen.push(*group),
            Some(_) => warnings.push(at(written, KEY, format!("{} is not spoken", written.value))),
            None => {
                let known = "CurveP256, CurveP384, X25519";
                return Err(at(written, KEY, format!("{:?} is none of: {known}", written.value)));
            }
        }
    }
    match wanted.first() {
        Some(first) if chosen.is_empty() => Err(at(first, KEY, "none of them is spoken")),
        _ => Ok(chosen),
    }
}
