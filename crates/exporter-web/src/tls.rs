//! The server's side of TLS, and the verification of client certificates.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
    SignatureScheme, SupportedProtocolVersion,
};
use x509_cert::Certificate;
use x509_cert::der::{self, DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

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
    /// Each with its name.
    pub const ALL: [(&str, ClientAuth); 5] = [
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

/// A server's TLS configuration, for HTTP/1.1 alone. A client's certificate must have one of the allowed names, if
/// there are any.
pub(super) fn server_config(
    certified: CertifiedKey,
    versions: &[&'static SupportedProtocolVersion],
    client_auth: ClientAuth,
    client_cas: RootCertStore,
    allowed_sans: Vec<String>,
) -> Result<ServerConfig, String> {
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| format!("tls_server_config: {error}"))?;
    let builder = if client_auth == ClientAuth::NoClientCert {
        builder.with_no_client_auth()
    } else {
        let algorithms = provider.signature_verification_algorithms;
        let authority = (client_auth.verifies() && !client_cas.is_empty()).then(|| {
            let builder = WebPkiClientVerifier::builder_with_provider(client_cas.into(), provider);
            builder.build().map_err(|error| format!("client_ca_file: {error}"))
        });
        let authority = authority.transpose()?;
        let verifier = Verifier { policy: client_auth, authority, allowed_sans, algorithms };
        builder.with_client_cert_verifier(Arc::new(verifier))
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if client_auth != ClientAuth::NoClientCert {
        // No session is resumed: the client's certificate may have expired meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Why a handshake failed, as one of few reasons; `None` if the client disconnected.
pub fn refusal(error: &std::io::Error) -> Option<&'static str> {
    use CertificateError as Bad;
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::NoCertificatesPresented => "no client certificate",
        Error::InvalidCertificate(bad) => match bad {
            Bad::UnknownIssuer => {
                "client certificate is not signed by a CA in client_ca_file, or client_ca_file is not set"
            }
            Bad::Expired | Bad::ExpiredContext { .. } => "client certificate has expired",
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
                "client certificate is not valid yet"
            }
            Bad::ApplicationVerificationFailure => {
                "client certificate has no name in client_allowed_sans"
            }
            _ => "client certificate is not valid",
        },
        Error::PeerIncompatible(_) => "no common TLS version, cipher suite or group",
        Error::AlertReceived(_) => {
            "client rejected the server certificate or aborted the handshake"
        }
        _ => "not TLS, or malformed TLS",
    })
}

#[derive(Debug)]
struct Verifier {
    policy: ClientAuth,
    /// Verifies against the CAs, if the policy wants that and there are any.
    authority: Option<Arc<dyn ClientCertVerifier>>,
    allowed_sans: Vec<String>,
    algorithms: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.policy.requires()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authority.as_ref().map_or(&[], |authority| authority.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(authority) = &self.authority {
            authority.verify_client_cert(certificate, intermediates, now)?;
        } else if self.policy.verifies() {
            // There is no CA that could have issued it.
            return Err(CertificateError::UnknownIssuer.into());
        }
        if !self.allowed_sans.is_empty() {
            let info =
                CertificateInfo::parse(certificate).map_err(|_| CertificateError::BadEncoding)?;
            if !info.names.iter().any(|name| self.allowed_sans.contains(name)) {
                return Err(CertificateError::ApplicationVerificationFailure.into());
            }
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Dates and names of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// The first moment at which it is valid.
    pub not_before: DateTime,
    /// The last one.
    pub not_after: DateTime,
    /// Its subject alternative names: hosts, addresses, mail addresses and URIs, as they are written.
    pub names: Vec<String>,
}

impl CertificateInfo {
    /// Parses a certificate; its signature is not verified.
    pub fn parse(certificate: &CertificateDer<'_>) -> Result<Self, der::Error> {
        let certificate = Certificate::from_der(certificate)?.tbs_certificate;
        let names = certificate.get::<SubjectAltName>()?.map(|(_, names)| names.0);
        Ok(CertificateInfo {
            not_before: certificate.validity.not_before.to_date_time(),
            not_after: certificate.validity.not_after.to_date_time(),
            names: names.iter().flatten().filter_map(name).collect(),
        })
    }
}

fn name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(text)
        | GeneralName::Rfc822Name(text)
        | GeneralName::UniformResourceIdentifier(text) => Some(text.to_string()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
