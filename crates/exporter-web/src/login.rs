//! Logins by HTTP's basic authentication.
//!
//! A password is held against its bcrypt hash, which takes a twentieth of a second and more on purpose;
//! so that a scrape does not, what came out is remembered, under a digest with a key that nobody knows.
//! What is not known yet is checked in turns, which client addresses share out fairly.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderValue;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

use super::config::{Checked, Users};
use super::turns::Turns;

/// So many passwords that were wrong are remembered, and so many that were right. Each takes 100 bytes
/// or so, and a user has one password; apart, so that guesses do not make us forget who is welcome.
const REMEMBERED: usize = 1_000;

/// What becomes of somebody who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// Comes in.
    Welcome,
    /// Has to say who it is.
    Unknown,
    /// Too many logins wait: of the same address, or of all.
    Busy,
}

/// A password with the name and the hash that it is held against, as a digest.
type Tag = [u8; digest::SHA256_OUTPUT_LEN];

/// The latest of what came out one way.
#[derive(Debug, Default)]
struct Latest {
    order: VecDeque<Tag>,
}

#[derive(Debug, Default)]
struct Known {
    outcomes: HashMap<Tag, bool>,
    latest: [Latest; 2],
}

impl Known {
    fn remember(&mut self, tag: Tag, right: bool) {
        if self.outcomes.insert(tag, right).is_none() {
            let Latest { order } = &mut self.latest[usize::from(right)];
            order.push_back(tag);
            if order.len() > REMEMBERED
                && let Some(oldest) = order.pop_front()
            {
                self.outcomes.remove(&oldest);
            }
        }
    }
}

/// Who has been looked at.
#[derive(Debug)]
pub struct Logins {
    key: hmac::Key,
    known: Mutex<Known>,
    /// One password is checked at a time: all that guessers can have is a part of one processor.
    turns: Arc<Turns>,
    /// Hashes of a high cost have turns of their own: such a check takes seconds or minutes.
    slow_turns: Arc<Turns>,
}

/// There was no randomness to make a key of.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Logins {
    /// Nobody has been looked at.
    pub fn new() -> Result<Self, NoRandomness> {
        let mut key = [0; digest::SHA256_OUTPUT_LEN];
        SystemRandom::new().fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Logins {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            known: Mutex::default(),
            turns: Arc::default(),
            slow_turns: Arc::default(),
        })
    }

    /// Looks at what a client of this address says in the header `Authorization`.
    pub async fn check(
        self: &Arc<Self>,
        users: &Users,
        said: Option<&HeaderValue>,
        peer: IpAddr,
    ) -> Login {
        if users.is_empty() {
            return Login::Welcome;
        }
        let Some((user, password)) = said.and_then(credentials) else { return Login::Unknown };
        let Checked { hash, exists, is_slow } = users.checked(&user);
        let tag = self.tag(&[user.as_bytes(), hash.as_bytes(), &password]);
        if let Some(outcome) = self.remembered(&tag) {
            return outcome;
        }
        let turns = if is_slow { &self.slow_turns } else { &self.turns };
        let Some(turn) = turns.take(peer).await else { return Login::Busy };
        // The same may have been asked by many at once.
        if let Some(outcome) = self.remembered(&tag) {
            return outcome;
        }
        let (logins, hash) = (Arc::clone(self), hash.to_owned());
        let looked = tokio::task::spawn_blocking(move || {
            // As long as it takes: a check cannot be broken off, so a client that goes away meanwhile
            // makes no room for another.
            let _turn = turn;
            let right = bcrypt::verify(&password, &hash).unwrap_or(false) && exists;
            logins.known.lock().unwrap_or_else(PoisonError::into_inner).remember(tag, right);
            right
        });
        match looked.await {
            Ok(true) => Login::Welcome,
            Ok(false) => Login::Unknown,
            Err(_) => Login::Busy,
        }
    }

    fn remembered(&self, tag: &Tag) -> Option<Login> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let right = known.outcomes.get(tag)?;
        Some(if *right { Login::Welcome } else { Login::Unknown })
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

/// A name and a password, as RFC 7617 has them.
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
    fn guesses_do_not_make_us_forget_who_is_welcome() {
        let mut known = Known::default();
        known.remember(tag(0), true);
        for guess in 1..=5_000 {
            known.remember(tag(guess), false);
            known.remember(tag(guess), false);
        }
        assert_eq!(known.outcomes.get(&tag(0)), Some(&true));
        assert_eq!(known.outcomes.len(), REMEMBERED + 1);
        assert_eq!(known.outcomes.get(&tag(5_000)), Some(&false));
        assert_eq!(known.outcomes.get(&tag(4_000)), None);
    }

    #[test]
    fn credentials_as_rfc_7617_has_them() {
        for (header, told) in [
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
            let told = told.map(|(user, password)| (user.into(), password.as_bytes().to_vec()));
            assert_eq!(read, told, "{header}");
        }
        assert_eq!(credentials(&HeaderValue::from_bytes(b"Basic \xff").unwrap()), None);
    }

    fn users(text: &str) -> Users {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("web.yml");
        std::fs::write(&file, text).unwrap();
        super::super::config::WebConfig::load(&file).1.unwrap().users
    }

    #[tokio::test]
    async fn what_came_out_once_is_not_worked_out_again() {
        let hash = |password| bcrypt::hash(password, 4).unwrap();
        let before = users(&format!("basic_auth_users:\n  a: {}\n", hash("b")));
        let logins = Arc::new(Logins::new().unwrap());
        let said = |pair: &str| {
            HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).unwrap()
        };
        let [right, wrong, stranger, another] = ["a:b", "a:c", "b:b", "a:d"].map(said);
        let peer = IpAddr::from([192, 0, 2, 1]);
        let check = async |users: &Users, said| logins.check(users, Some(said), peer).await;
        let expected =
            [(&right, Login::Welcome), (&wrong, Login::Unknown), (&stranger, Login::Unknown)];
        for (said, login) in expected {
            assert_eq!(check(&before, said).await, login);
        }
        // Nobody's turn comes any more: what is known is known all the same, and what is not has to wait.
        let _turn = logins.turns.take(peer).await.unwrap();
        for (said, login) in expected {
            assert_eq!(check(&before, said).await, login);
        }
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, check(&before, &another)).await.is_err());
        // A new hash is another question, for the same password, too.
        let after = users(&format!("basic_auth_users:\n  a: {}\n", hash("e")));
        assert!(tokio::time::timeout(limit, check(&after, &right)).await.is_err());
        assert_eq!(logins.check(&Users::default(), None, peer).await, Login::Welcome);
    }

    #[tokio::test]
    async fn a_check_that_takes_long_delays_nobody_with_a_usual_hash() {
        // Nobody has the time to check this one: its turn stays taken.
        let text = format!(
            "basic_auth_users:\n  a: {}\n  slow: $2b$18${}\n",
            bcrypt::hash("b", 4).unwrap(),
            ".".repeat(53)
        );
        let users = users(&text);
        let logins = Arc::new(Logins::new().unwrap());
        let check = async |pair: &str, last| {
            let said = format!("Basic {}", BASE64_STANDARD.encode(pair));
            let said = HeaderValue::try_from(said).unwrap();
            logins.check(&users, Some(&said), [192, 0, 2, last].into()).await
        };
        let _turn = logins.slow_turns.take([192, 0, 2, 1].into()).await.unwrap();
        let limit = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(limit, check("slow:x", 1)).await.is_err(), "it waits");
        assert_eq!(check("a:b", 1).await, Login::Welcome);
        assert_eq!(check("a:x", 2).await, Login::Unknown);
        assert_eq!(check("nobody:x", 2).await, Login::Unknown);
    }
}
