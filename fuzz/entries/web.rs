//! The web config file, and certificates.

use exporter_web::{CertificateInfo, Security, WebConfig};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use super::files::one_line;

/// A folder with a certificate and its key for a web config file.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(folder.path().join("cert"), certificate.pem()).unwrap();
    std::fs::write(folder.path().join("key"), key.serialize_pem()).unwrap();
    folder
}

thread_local! {
    static FOLDER: TempDir = folder();
}

/// A web config file; a server can be configured with a valid one.
pub fn config(bytes: &[u8]) {
    let path = FOLDER.with(|folder| folder.path().join("web.yml"));
    std::fs::write(&path, bytes).unwrap();
    let (sources, config) = WebConfig::load(&path);
    assert_eq!(sources.paths().next(), Some(&*path), "changes of the file are watched");
    let config = match config {
        Ok(config) => config,
        Err(error) => return error.lines().iter().for_each(one_line),
    };
    assert!(config.warnings.iter().all(|warning| !warning.contains('\n')), "{config:?}");
    match Security::load(Some(&path)) {
        Ok(security) => assert_eq!(security.speaks_tls(), config.tls.is_some()),
        Err(error) => error.lines().iter().for_each(one_line),
    }
}

/// A certificate in DER.
pub fn certificate(bytes: &[u8]) {
    if let Ok(info) = CertificateInfo::parse(&CertificateDer::from(bytes)) {
        assert_eq!(CertificateInfo::parse(&CertificateDer::from(bytes)), Ok(info));
    }
}
