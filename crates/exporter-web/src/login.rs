//! Logins by HTTP basic authentication.
//!
//! A password is checked against its bcrypt hash, which takes a twentieth of a second and more on
//! purpose; so that a scrape does not, the result is cached under a keyed digest of name, hash and
//! password. Passwords that are not cached are checked one at a time, and client networks take turns,
//! regardless of their request rates. So a client that guesses passwords continuously delays the first login of
//! another client by two checks at most: the running one and its next one.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use axum::http::HeaderValue;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::error::Unspecified;
use ring::rand::SystemRandom;
use ring::{digest, hmac};

use super::locked::locked;
use super::own_thread::Lane;
use super::permit_queue::{PermitQueue, QueueLimits};
use super::users::Users;

/// How many wrong passwords are cached, and how many right ones. Each takes some 100 bytes, and a user has
/// one password. They are apart, so that guesses do not displace right ones.
const CACHED: usize = 1_000;

/// One check at a time. Of one client network 8 requests may wait: a browser opens some six connections. With the usual
/// cost of bcrypt, 60 ms, 64 are four seconds.
const TURNS: QueueLimits = QueueLimits { permits: 1, waiting_per_client: 8, waiting: 64 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Accepted,
    /// The request has no login, as the first one of a browser.
    Missing,
    Rejected,
    /// Too many logins wait: of the same client, or of all.
    Busy,
}

impl Login {
    fn of(is_right: bool) -> Self {
        if is_right { Login::Accepted } else { Login::Rejected }
    }
}

/// A keyed digest of a name, the hash in the file, and a password.
type Tag = [u8; digest::SHA256_OUTPUT_LEN];

/// Results of checks; the oldest of wrong and of right ones go first.
#[derive(Debug, Default)]
struct Cache {
    /// The tags of wrong ones and of right ones, oldest first.
    tags: [VecDeque<Tag>; 2],
}

impl Cache {
    /// Whether a password is right, if that is known.
    fn get(&self, tag: &Tag) -> Option<bool> {
        [true, false].into_iter().find(|is_right| self.tags[usize::from(*is_right)].contains(tag))
    }

    fn insert(&mut self, tag: Tag, is_right: bool) {
        if self.get(&tag).is_none() {
            let tags = &mut self.tags[usize::from(is_right)];
            tags.push_back(tag);
            if tags.len() > CACHED {
                tags.pop_front();
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Logins {
    key: hmac::Key,
    cache: Mutex<Cache>,
    quick: Checks,
    /// Those of hashes with a high cost, a check of which takes seconds or minutes.
    slow: Checks,
}

/// Checks of passwords, one at a time: all that guessers can have is a part of one processor.
#[derive(Debug)]
struct Checks {
    turns: Arc<PermitQueue>,
    /// The pool of threads may be busy with responses.
    lane: Lane,
}

impl Checks {
    fn new(thread: &'static str) -> Self {
        Checks { turns: PermitQueue::new(TURNS), lane: Lane::new(thread) }
    }
}

impl Logins {
    /// With an empty cache and a random key; fails if the system gives no random numbers.
    pub fn new() -> Result<Self, Unspecified> {
        Ok(Logins {
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?,
            cache: Mutex::default(),
            quick: Checks::new("login"),
            slow: Checks::new("slow-login"),
        })
    }

    /// Checks the header `Authorization` of a request from this address. Once the client `left`, a check that has not begun
    /// will not begin.
    pub async fn check(
        self: &Arc<Self>,
        users: &Users,
        authorization: Option<&HeaderValue>,
        peer: IpAddr,
        left: impl Future<Output = ()>,
    ) -> Login {
        if users.count() == 0 {
            return Login::Accepted;
        }
        let Some(authorization) = authorization else { return Login::Missing };
        let Some((user, password)) = credentials(authorization) else { return Login::Rejected };
        let (hash, exists) = users.expected(&user);
        let tag = self.tag(&[user.as_bytes(), hash.text.as_bytes(), &password]);
        if let Some(login) = self.cached(&tag) {
            return login;
        }
        let checks = if hash.is_slow() { &self.slow } else { &self.quick };
        let turn = tokio::select! {
            biased;
            turn = checks.turns.acquire(peer) => turn,
            () = left => None,
        };
        let Some(turn) = turn else { return Login::Busy };
        // Another request may have had the same password checked meanwhile.
        if let Some(login) = self.cached(&tag) {
            return login;
        }
        let (logins, hash) = (Arc::clone(self), hash.text.clone());
        let checked = checks.lane.run(move || {
            // Held as long as it takes: a check cannot be aborted, so a client that disconnects
            // meanwhile does not free its slot for another.
            let _turn = turn;
            let is_right = bcrypt::verify(&password, &hash).unwrap_or(false) && exists;
            locked(&logins.cache).insert(tag, is_right);
            is_right
        });
        checked.await.map_or(Login::Busy, Login::of)
    }

    fn cached(&self, tag: &Tag) -> Option<Login> {
        locked(&self.cache).get(tag).map(Login::of)
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
    use std::future::pending;

    use super::*;
    use crate::users::Hash;

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
        assert_eq!(cache.get(&tag(0)), Some(true));
        assert_eq!(cache.tags.each_ref().map(VecDeque::len), [CACHED, 1]);
        assert_eq!(cache.get(&tag(5_000)), Some(false));
        assert_eq!(cache.get(&tag(4_000)), None);
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

    fn users<const N: usize>(hashes: [(&str, String); N]) -> Users {
        Users::new(hashes.map(|(user, hash)| (user.to_owned(), Hash::parse(hash).unwrap())).into())
    }

    #[tokio::test]
    async fn cached_result_needs_no_check() {
        let hash = |password| bcrypt::hash(password, 4).unwrap();
        let before = users([("a", hash("b"))]);
        let logins = Arc::new(Logins::new().unwrap());
        let header = |pair: &str| {
            HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).unwrap()
        };
        let [right, wrong, stranger, another] = ["a:b", "a:c", "b:b", "a:d"].map(header);
        let peer = IpAddr::from([192, 0, 2, 1]);
        let check =
            async |users: &Users, header| logins.check(users, Some(header), peer, pending()).await;
        let expected =
            [(&right, Login::Accepted), (&wrong, Login::Rejected), (&stranger, Login::Rejected)];
        for (header, login) in expected {
            assert_eq!(check(&before, header).await, login);
        }
        // While the lock is held, cached results are returned, and all else has to wait.
        let _guard = logins.quick.turns.acquire(peer).await.unwrap();
        for (header, login) in expected {
            assert_eq!(check(&before, header).await, login);
        }
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, check(&before, &another)).await.is_err());
        // With a new hash the same password is checked again.
        let after = users([("a", hash("e"))]);
        assert!(tokio::time::timeout(limit, check(&after, &right)).await.is_err());
        assert_eq!(logins.check(&Users::default(), None, peer, pending()).await, Login::Accepted);
    }

    #[tokio::test]
    async fn slow_check_does_not_delay_usual_hashes() {
        // A check of the second one would take 15 s; its lock is held instead.
        let slow = format!("$2b$18${}", ".".repeat(53));
        let users = users([("a", bcrypt::hash("b", 4).unwrap()), ("slow", slow)]);
        let logins = Arc::new(Logins::new().unwrap());
        let check = async |pair: &str, last| {
            let header = format!("Basic {}", BASE64_STANDARD.encode(pair));
            let header = HeaderValue::try_from(header).unwrap();
            logins.check(&users, Some(&header), [192, 0, 2, last].into(), pending()).await
        };
        let _guard = logins.slow.turns.acquire([192, 0, 2, 1].into()).await.unwrap();
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, check("slow:x", 1)).await.is_err(), "it waits");
        assert_eq!(check("a:b", 1).await, Login::Accepted);
        assert_eq!(check("a:x", 2).await, Login::Rejected);
        assert_eq!(check("nobody:x", 2).await, Login::Rejected);
    }
}
