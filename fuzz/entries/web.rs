//! What says who comes in: the web config file, and certificates.

use exporter_web::certificate::Facts;
use exporter_web::config::WebConfig;
use exporter_web::security::Security;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use super::files::one_line;

/// A folder with a certificate and its key, which a file can name.
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

/// A web config file; what is accepted can be served by.
pub fn config(bytes: &[u8]) {
    let path = FOLDER.with(|folder| folder.path().join("web.yml"));
    std::fs::write(&path, bytes).unwrap();
    let (sources, config) = WebConfig::load(&path);
    assert_eq!(sources.paths().next(), Some(&*path), "it is looked at again when it changes");
    let config = match config {
        Ok(config) => config,
        Err(error) => return error.lines().iter().for_each(one_line),
    };
    assert!(config.warnings.iter().all(|warning| !warning.contains('\n')), "{config:?}");
    match Security::load(Some(&path)) {
        Ok((security, _)) => assert_eq!(security.speaks_tls(), config.tls.is_some()),
        Err(error) => error.lines().iter().for_each(one_line),
    }
}

/// A certificate in DER, of which we tell names and when it ends.
pub fn certificate(bytes: &[u8]) {
    if let Ok(facts) = Facts::read(&CertificateDer::from(bytes)) {
        assert_eq!(Facts::read(&CertificateDer::from(bytes)), Ok(facts));
    }
}
