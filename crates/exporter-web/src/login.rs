//! Logins by HTTP basic authentication.
//!
//! A password is checked against its bcrypt hash, which takes a twentieth of a second and more on
//! purpose; so that a scrape does not, the result is cached under a keyed digest of name, hash and
//! password. Passwords that are not cached are checked one at a time, and client networks take turns.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderValue;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

use super::fair_lock::FairLock;
use super::web_config::{Expected, Users};

/// How many wrong passwords are cached, and how many right ones. Each takes some 100 bytes, and a user has
/// one password. They are apart, so that guesses do not displace right ones.
const CACHED: usize = 1_000;

/// The outcome of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// The password is right, or none is needed.
    Accepted,
    /// It is missing or wrong.
    Rejected,
    /// Too many logins wait: of the same client, or of all.
    Busy,
}

/// A keyed digest of a name, the hash in the file, and a password.
type Tag = [u8; digest::SHA256_OUTPUT_LEN];

/// Results of checks; the oldest of wrong and of right ones go first.
#[derive(Debug, Default)]
struct Cache {
    results: HashMap<Tag, bool>,
    /// The tags of wrong ones and of right ones, oldest first.
    order: [VecDeque<Tag>; 2],
}

impl Cache {
    fn insert(&mut self, tag: Tag, is_right: bool) {
        if self.results.insert(tag, is_right).is_none() {
            let order = &mut self.order[usize::from(is_right)];
            order.push_back(tag);
            if order.len() > CACHED
                && let Some(oldest) = order.pop_front()
            {
                self.results.remove(&oldest);
            }
        }
    }
}

/// Checks logins, and caches the results.
#[derive(Debug)]
pub struct Logins {
    key: hmac::Key,
    cache: Mutex<Cache>,
    /// One password is checked at a time: all that guessers can have is a part of one processor.
    check: Arc<FairLock>,
    /// The same for hashes of a high cost, a check of which takes seconds or minutes.
    slow_check: Arc<FairLock>,
}

/// The system gave no random numbers to make a key of.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Logins {
    /// With an empty cache, and a random key.
    pub fn new() -> Result<Self, NoRandomness> {
        let mut key = [0; digest::SHA256_OUTPUT_LEN];
        SystemRandom::new().fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Logins {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            cache: Mutex::default(),
            check: Arc::default(),
            slow_check: Arc::default(),
        })
    }

    /// Checks the header `Authorization` of a request from this address.
    pub async fn check(
        self: &Arc<Self>,
        users: &Users,
        authorization: Option<&HeaderValue>,
        peer: IpAddr,
    ) -> Login {
        if users.is_empty() {
            return Login::Accepted;
        }
        let Some((user, password)) = authorization.and_then(credentials) else {
            return Login::Rejected;
        };
        let Expected { hash, exists, is_slow } = users.expected(&user);
        let tag = self.tag(&[user.as_bytes(), hash.as_bytes(), &password]);
        if let Some(login) = self.cached(&tag) {
            return login;
        }
        let lock = if is_slow { &self.slow_check } else { &self.check };
        let Some(guard) = lock.acquire(peer).await else { return Login::Busy };
        // Another request may have had the same password checked meanwhile.
        if let Some(login) = self.cached(&tag) {
            return login;
        }
        let (logins, hash) = (Arc::clone(self), hash.to_owned());
        let checked = tokio::task::spawn_blocking(move || {
            // Held as long as it takes: a check cannot be aborted, so a client that disconnects
            // meanwhile does not free its slot for another.
            let _guard = guard;
            let is_right = bcrypt::verify(&password, &hash).unwrap_or(false) && exists;
            logins.cache().insert(tag, is_right);
            is_right
        });
        match checked.await {
            Ok(true) => Login::Accepted,
            Ok(false) => Login::Rejected,
            Err(_) => Login::Busy,
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self, tag: &Tag) -> Option<Login> {
        let is_right = *self.cache().results.get(tag)?;
        Some(if is_right { Login::Accepted } else { Login::Rejected })
    }

    fn tag(&self, parts: &[&[u8]]) -> Tag {
        let mut signing = hmac::Context::with_key(&self.key);
        for part in parts {
            signing.update(&(part.len() as u64).to_be_bytes());
            signing.update(part);
        }
        let mut tag = [0; digest::SHA256_OUTPUT_LEN];
        tag.copy_from_slice(signing.sign().as_ref());
        tag
    }
}

/// The name and the password of a header (RFC 7617).
fn credentials(header: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, rest) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut bytes = BASE64_STANDARD.decode(rest.trim()).ok()?;
    let colon = bytes.iter().position(|&byte| byte == b':')?;
    let password = bytes.split_off(colon + 1);
    bytes.pop();
    Some((String::from_utf8(bytes).ok()?, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(number: u64) -> Tag {
        let mut tag = Tag::default();
        tag[..8].copy_from_slice(&number.to_le_bytes());
        tag
    }

    #[test]
    fn wrong_passwords_do_not_displace_right_ones() {
        let mut cache = Cache::default();
        cache.insert(tag(0), true);
        for guess in 1..=5_000 {
            cache.insert(tag(guess), false);
            cache.insert(tag(guess), false);
        }
        assert_eq!(cache.results.get(&tag(0)), Some(&true));
        assert_eq!(cache.results.len(), CACHED + 1);
        assert_eq!(cache.results.get(&tag(5_000)), Some(&false));
        assert_eq!(cache.results.get(&tag(4_000)), None);
    }

    #[test]
    fn credentials_of_rfc_7617_headers() {
        for (header, expected) in [
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Some(("Aladdin", "open sesame"))),
            ("basic YTo=", Some(("a", ""))),
            ("Basic YTpiOmM=", Some(("a", "b:c"))),
            ("Basic OmI=", Some(("", "b"))),
            ("Basic YQ==", None),
            ("Basic ???", None),
            ("Basic", None),
            ("Bearer YTpi", None),
            ("", None),
        ] {
            let read = credentials(&HeaderValue::from_static(header));
            let expected =
                expected.map(|(user, password)| (user.into(), password.as_bytes().to_vec()));
            assert_eq!(read, expected, "{header}");
        }
        assert_eq!(credentials(&HeaderValue::from_bytes(b"Basic \xff").unwrap()), None);
    }

    fn users(text: &str) -> Users {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("web.yml");
        std::fs::write(&file, text).unwrap();
        crate::web_config::WebConfig::load(&file).1.unwrap().users
    }

    #[tokio::test]
    async fn cached_result_needs_no_check() {
        let hash = |password| bcrypt::hash(password, 4).unwrap();
        let before = users(&format!("basic_auth_users:\n  a: {}\n", hash("b")));
        let logins = Arc::new(Logins::new().unwrap());
        let header = |pair: &str| {
            HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).unwrap()
        };
        let [right, wrong, stranger, another] = ["a:b", "a:c", "b:b", "a:d"].map(header);
        let peer = IpAddr::from([192, 0, 2, 1]);
        let check = async |users: &Users, header| logins.check(users, Some(header), peer).await;
        let expected =
            [(&right, Login::Accepted), (&wrong, Login::Rejected), (&stranger, Login::Rejected)];
        for (header, login) in expected {
            assert_eq!(check(&before, header).await, login);
        }
        // While the lock is held, cached results are returned, and all else has to wait.
        let _guard = logins.check.acquire(peer).await.unwrap();
        for (header, login) in expected {
            assert_eq!(check(&before, header).await, login);
        }
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, check(&before, &another)).await.is_err());
        // With a new hash the same password is checked again.
        let after = users(&format!("basic_auth_users:\n  a: {}\n", hash("e")));
        assert!(tokio::time::timeout(limit, check(&after, &right)).await.is_err());
        assert_eq!(logins.check(&Users::default(), None, peer).await, Login::Accepted);
    }

    #[tokio::test]
    async fn slow_check_does_not_delay_usual_hashes() {
        // A check of the second one would take 15 s; its lock is held instead.
        let text = format!(
            "basic_auth_users:\n  a: {}\n  slow: $2b$18${}\n",
            bcrypt::hash("b", 4).unwrap(),
            ".".repeat(53)
        );
        let users = users(&text);
        let logins = Arc::new(Logins::new().unwrap());
        let check = async |pair: &str, last| {
            let header = format!("Basic {}", BASE64_STANDARD.encode(pair));
            let header = HeaderValue::try_from(header).unwrap();
            logins.check(&users, Some(&header), [192, 0, 2, last].into()).await
        };
        let _guard = logins.slow_check.acquire([192, 0, 2, 1].into()).await.unwrap();
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, check("slow:x", 1)).await.is_err(), "it waits");
        assert_eq!(check("a:b", 1).await, Login::Accepted);
        assert_eq!(check("a:x", 2).await, Login::Rejected);
        assert_eq!(check("nobody:x", 2).await, Login::Rejected);
    }
}
