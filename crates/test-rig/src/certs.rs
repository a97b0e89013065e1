//! Certificates: an authority made for a test, and the certificates that it signs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SanType, date_time_ymd,
};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
}

impl Pair {
    /// Writes both as `NAME.pem` and `NAME.key`.
    pub fn write(&self, dir: &Path, name: &str) {
        std::fs::write(dir.join(format!("{name}.pem")), &self.cert).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), &self.key).unwrap();
    }
}

/// The name in a client's certificate.
pub enum San<'a> {
    /// A DNS name.
    Dns(&'a str),
    /// An IP address.
    Ip(&'a str),
    /// An e-mail address.
    Mail(&'a str),
    /// A URI.
    Uri(&'a str),
}

/// An authority.
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Ca(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server's certificate for 127.0.0.1.
    pub fn server(&self) -> Pair {
        self.sign(&[San::Ip("127.0.0.1"), San::Dns("localhost")], 2999, true)
    }

    /// A client's certificate, which is good until the end of a year.
    pub fn client(&self, sans: &[San<'_>], until: i32) -> Pair {
        self.sign(sans, until, false)
    }

    fn sign(&self, sans: &[San<'_>], until: i32, server: bool) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "somebody");
        params.subject_alt_names = sans
            .iter()
            .map(|san| match san {
                San::Dns(name) => SanType::DnsName((*name).try_into().unwrap()),
                San::Ip(address) => SanType::IpAddress(address.parse().unwrap()),
                San::Mail(address) => SanType::Rfc822Name((*address).try_into().unwrap()),
                San::Uri(uri) => SanType::URI((*uri).try_into().unwrap()),
            })
            .collect();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 12, 31);
        params.extended_key_usages = vec![if server {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        }];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Pair { cert: cert.pem(), key: key.serialize_pem() }
    }

    /// A client that trusts this authority and shows a certificate, if it has one. It keeps its connections.
    pub fn agent(&self, pair: Option<&Pair>) -> ureq::Agent {
        let own = pair.map(|pair| {
            let cert = Certificate::from_pem(pair.cert.as_bytes()).unwrap();
            ClientCert::new_with_certs(&[cert], PrivateKey::from_pem(pair.key.as_bytes()).unwrap())
        });
        let root = Certificate::from_pem(self.pem().as_bytes()).unwrap();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[root]))
            .client_cert(own)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .tls_config(tls)
            .build()
            .into()
    }
}

/// The header of a basic login.
pub fn login(user: &str, password: &str) -> String {
    use base64::Engine;
    format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}")))
}

/// A bcrypt hash with the lowest cost.
pub fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).unwrap()
}
