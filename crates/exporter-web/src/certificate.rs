//! What a certificate says of itself.

use std::net::IpAddr;
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::{self, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// It is good from then on.
    pub from: SystemTime,
    /// It is good until then.
    pub until: SystemTime,
    /// Its subject alternative names: hosts, addresses, mail addresses and URIs, as they are written.
    pub names: Vec<String>,
}

impl Facts {
    /// Reads a certificate; whose it is, is not looked at.
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Self, der::Error> {
        let certificate = Certificate::from_der(certificate)?.tbs_certificate;
        let names = match certificate.get::<SubjectAltName>()? {
            Some((_, names)) => names.0.iter().filter_map(name).collect(),
            None => Vec::new(),
        };
        let validity = certificate.validity;
        Ok(Facts {
            from: validity.not_before.to_system_time(),
            until: validity.not_after.to_system_time(),
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
            let four = <[u8; 4]>::try_from(bytes.as_bytes()).map(IpAddr::from);
            let address =
                four.or_else(|_| <[u8; 16]>::try_from(bytes.as_bytes()).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
