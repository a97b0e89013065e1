//! TLS: whom we speak with, and how.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use thiserror::Error as ThisError;

use super::certificate::Facts;
use super::config::{ClientAuth, TlsSettings};

/// Why settings that are well written cannot be had all the same.
#[derive(Debug, ThisError)]
pub enum TlsError {
    /// The CAs of clients.
    #[error("client_ca_file: {0}")]
    ClientCas(#[from] VerifierBuilderError),
    /// All else.
    #[error("tls_server_config: {0}")]
    Other(#[from] Error),
}

/// A server's side of TLS.
pub fn server_config(tls: &TlsSettings, http2: bool) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(&tls.provider))
        .with_protocol_versions(&tls.versions)?;
    let builder = if tls.client_auth == ClientAuth::NoClientCert {
        builder.with_no_client_auth()
    } else {
        builder.with_client_cert_verifier(Arc::new(Verifier::new(tls)?))
    };
    let key = SingleCertAndKey::from(tls.certified.clone());
    let mut config = builder.with_cert_resolver(Arc::new(key));
    config.ignore_client_order = tls.our_order;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if http2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    if tls.client_auth != ClientAuth::NoClientCert {
        // Who comes again shows its certificate again: it may have expired meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Why a client is refused whose handshake failed, in one of few ways; `None` if it went away by itself.
pub fn refusal(error: &std::io::Error) -> Option<&'static str> {
    use CertificateError as Bad;
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::NoCertificatesPresented => "no client certificate",
        Error::InvalidCertificate(bad) => match bad {
            Bad::UnknownIssuer => {
                "client certificate is of no CA in client_ca_file, or there is no such file"
            }
            Bad::Expired | Bad::ExpiredContext { .. } => "client certificate has expired",
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
                "client certificate is not valid yet"
            }
            Bad::ApplicationVerificationFailure => {
                "client certificate has no name of client_allowed_sans"
            }
            _ => "client certificate is not valid",
        },
        Error::PeerIncompatible(_) => "no TLS version, cipher suite or group in common",
        Error::AlertReceived(_) => "client rejects our certificate, or ended the handshake",
        _ => "no TLS, or malformed TLS",
    })
}

/// Looks at the certificates of clients.
#[derive(Debug)]
struct Verifier {
    settings: ClientAuth,
    /// Whose certificates are accepted, where that counts.
    authority: Option<Arc<dyn ClientCertVerifier>>,
    allowed_sans: Vec<String>,
    algorithms: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(tls: &TlsSettings) -> Result<Self, VerifierBuilderError> {
        let (roots, provider) = (Arc::clone(&tls.client_cas), Arc::clone(&tls.provider));
        let verifies = tls.client_auth.verifies() && !roots.is_empty();
        let authority = || WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        Ok(Verifier {
            settings: tls.client_auth,
            authority: verifies.then(authority).transpose()?,
            allowed_sans: tls.allowed_sans.clone(),
            algorithms: tls.provider.signature_verification_algorithms,
        })
    }
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.settings.requires()
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
        } else if self.settings.verifies() {
            // There is no CA that it could be of.
            return Err(CertificateError::UnknownIssuer.into());
        }
        if !self.allowed_sans.is_empty() {
            let facts = Facts::read(certificate).map_err(|_| CertificateError::BadEncoding)?;
            if !facts.names.iter().any(|name| self.allowed_sans.contains(name)) {
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
