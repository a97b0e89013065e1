//! What a reload must not take away: a file that was cut, emptied or half written would open the server to everybody, and
//! without notice. Only a restart may do that, because it is on purpose.

use super::WebConfig;
use super::tls::TlsSettings;
use crate::tls::ClientAuth;

impl WebConfig {
    /// What the server would lose, or what needs a restart, with another configuration in place of this one.
    pub(crate) fn lost(&self, other: &WebConfig) -> Option<&'static str> {
        let tls = match (&self.tls, &other.tls) {
            (None, None) => None,
            (Some(_), None) => Some("TLS cannot be switched off"),
            (None, Some(_)) => Some("TLS cannot be switched on"),
            (Some(before), Some(after)) => before.lost(after),
        };
        let has_no_users = self.users.count() > 0 && other.users.count() == 0;
        let lost = [
            (has_no_users, "the last user cannot be removed"),
            (self.limiter.is_some() && other.limiter.is_none(), "the rate limit cannot be removed"),
            (self.has_settings() && !other.has_settings(), "all settings cannot be removed"),
        ];
        tls.or_else(|| first(lost))
    }

    fn has_settings(&self) -> bool {
        let WebConfig { tls, headers, users, limiter, warnings: _ } = self;
        tls.is_some() || !headers.is_empty() || users.count() > 0 || limiter.is_some()
    }
}

/// The first of some losses that is one.
fn first<const N: usize>(losses: [(bool, &'static str); N]) -> Option<&'static str> {
    losses.into_iter().find(|(is_lost, _)| *is_lost).map(|(_, what)| what)
}

impl TlsSettings {
    fn lost(&self, after: &TlsSettings) -> Option<&'static str> {
        let loses = |has: fn(ClientAuth) -> bool| has(self.client_auth) && !has(after.client_auth);
        first([
            (
                loses(ClientAuth::requires) || loses(ClientAuth::verifies),
                "client_auth_type cannot be made weaker",
            ),
            (self.has_client_ca && !after.has_client_ca, "client_ca_file cannot be removed"),
            (
                self.has_allowed_sans && !after.has_allowed_sans,
                "client_allowed_sans cannot be removed",
            ),
            (after.accepts_tls12 && !self.accepts_tls12, "min_version cannot be lowered"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A web config file with everything, which is cut after each of its lines.
    #[test]
    fn file_without_its_end_takes_nothing_away() {
        let dir = tempfile::tempdir().unwrap();
        let server = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (cert, key) = (server.cert.pem(), server.signing_key.serialize_pem());
        for (name, text) in [("server.pem", &cert), ("server.key", &key), ("ca.pem", &cert)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let load = |text: &str| {
            let file = dir.path().join("web.yml");
            std::fs::write(&file, text).unwrap();
            WebConfig::load(&file).1
        };
        let hash = bcrypt::hash("b", 4).unwrap();
        let full = format!(
            "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n  \
             client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n  \
             client_allowed_sans: [a.example]\n  min_version: TLS13\nbasic_auth_users:\n  a: {hash}\n  \
             b: {hash}\nrate_limit:\n  interval: 1s\n  burst: 5\n"
        );
        let whole = load(&full).unwrap();
        assert_eq!(whole.lost(&load(&full).unwrap()), None);
        let may_end = full.find("  b: ").unwrap()..full.find("rate_limit").unwrap();
        for end in (0..full.len()).filter(|end| !may_end.contains(end)) {
            if let Ok(cut) = load(&full[..end]) {
                let is_whole = end + 1 == full.len();
                assert_eq!(whole.lost(&cut).is_none(), is_whole, "{end}: {}", &full[..end]);
            }
        }
        // Neither do files without settings.
        for empty in ["", "\n", " \n\n", "# nothing\n", "---\n", "{}\n", "basic_auth_users:\n"] {
            let cut = load(empty).unwrap();
            assert!(whole.lost(&cut).is_some(), "{empty:?}");
            let headers = load("http_server_config: {headers: {X-Frame-Options: deny}}\n").unwrap();
            assert_eq!(headers.lost(&cut), Some("all settings cannot be removed"), "{empty:?}");
        }
        // What is stronger, or other users and another rate, needs no restart.
        let weak = load("tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n");
        assert_eq!(weak.unwrap().lost(&whole), None);
        let other = full.replace("  b: ", "  c: ").replace("burst: 5", "burst: 6");
        assert_eq!(whole.lost(&load(&other).unwrap()), None);
    }
}
