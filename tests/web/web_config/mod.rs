//! Who comes in, and how much of it: the web config file, TLS, logins, and limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod coming_in;
mod files;
mod limits;
mod raw;
mod reloaded;
mod scraped;

use test_rig as rig;

use std::path::Path;

use rig::Exporter;
use rig::certs::Ca;
use rig::exporter::{Response, response};
use rig::sysfs::Tree;

/// A directory with `server.pem`, `server.key` and `ca.pem`, and a web config file.
struct Site {
    dir: tempfile::TempDir,
    ca: Ca,
}

impl Site {
    fn new(web: &str) -> Self {
        let site = Site { dir: tempfile::tempdir().unwrap(), ca: Ca::new("the site's") };
        site.ca.server().write(site.dir.path(), "server");
        std::fs::write(site.path().join("ca.pem"), site.ca.pem()).unwrap();
        site.write(web);
        site
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Replaces the web config file in one go.
    fn write(&self, web: &str) {
        std::fs::write(self.path().join("new"), web).unwrap();
        std::fs::rename(self.path().join("new"), self.path().join("web.yml")).unwrap();
    }

    fn exporter(&self) -> Exporter {
        self.exporter_with(&[])
    }

    fn exporter_with(&self, flags: &[&str]) -> Exporter {
        Exporter::demo(&[&[self.flag().as_str()], flags].concat())
    }

    /// One without a fabric: its threads do not stand back behind whatever else a busy machine does.
    fn prompt_exporter(&self) -> Exporter {
        Exporter::on_host(&Tree::empty(), &[&self.flag()])
    }

    fn flag(&self) -> String {
        format!("--web.config.file={}", self.path().join("web.yml").display())
    }
}

/// What TLS needs at least.
const TLS: &str = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n";

/// TLS with a policy on clients.
fn tls_with(more: &str) -> String {
    format!("tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n{more}")
}

/// Gets a path of an exporter that speaks TLS.
fn get(
    agent: &ureq::Agent,
    exporter: &Exporter,
    path: &str,
    login: Option<&str>,
) -> Result<Response, ureq::Error> {
    let mut request = agent.get(format!("https://{}{path}", exporter.address()));
    if let Some(login) = login {
        request = request.header("Authorization", login);
    }
    response(request.call()?)
}
