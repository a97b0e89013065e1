//! The fields of a certificate that are used: its dates and its names.

use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::{self, DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

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
        let names = match certificate.get::<SubjectAltName>()? {
            Some((_, names)) => names.0.iter().filter_map(name).collect(),
            None => Vec::new(),
        };
        let validity = certificate.validity;
        Ok(CertificateInfo {
            not_before: validity.not_before.to_date_time(),
            not_after: validity.not_after.to_date_time(),
            names,
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
