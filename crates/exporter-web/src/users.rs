//! The users that may log in, and the hashes of their passwords.

use std::collections::BTreeMap;

use bcrypt::HashParts;

/// The recommended cost: that of `htpasswd -nBC 10`, and the one with which the exporter toolkit checks the
/// password of an unknown user.
pub(super) const USUAL_COST: u32 = 10;
/// The highest cost that is checked together with usual ones: about a second. Each further step doubles it.
pub(super) const HIGHEST_QUICK: u32 = 14;

/// A bcrypt hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hash {
    pub text: String,
    pub cost: u32,
}

impl Hash {
    /// Parses a hash; fails with what is wrong. The hash is a secret, too: it is in no message.
    pub fn parse(text: String) -> Result<Hash, &'static str> {
        match text.parse::<HashParts>().map(|parts| parts.get_cost()) {
            Ok(cost @ 4..=31) => Ok(Hash { text, cost }),
            Ok(_) => Err("the cost of the bcrypt hash is not between 4 and 31"),
            Err(_) => Err("is not a bcrypt hash"),
        }
    }

    /// Whether the check takes so long that others must not wait for it.
    pub fn is_slow(&self) -> bool {
        self.cost > HIGHEST_QUICK
    }
}

/// The users that may log in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users {
    hashes: BTreeMap<String, Hash>,
    /// What an unknown user's password is checked against: a hash that no password matches, with the highest cost of the
    /// users but at most `USUAL_COST`. The time does not reveal whether a name exists as long as all costs are the same
    /// and at most that. A higher one would let any client keep the processor busy without knowing a name.
    decoy: Hash,
}

impl Users {
    /// The users by name.
    pub fn new(hashes: BTreeMap<String, Hash>) -> Self {
        let highest = hashes.values().map(|hash| hash.cost).max();
        let cost = highest.unwrap_or(USUAL_COST).min(USUAL_COST);
        let decoy = Hash { text: format!("$2b${cost:02}${}", ".".repeat(53)), cost };
        Users { hashes, decoy }
    }

    /// Number of users; without users no login is needed.
    pub fn count(&self) -> usize {
        self.hashes.len()
    }

    /// What a user's password is checked against, and whether the user exists.
    pub fn expected(&self, user: &str) -> (&Hash, bool) {
        let hash = self.hashes.get(user);
        (hash.unwrap_or(&self.decoy), hash.is_some())
    }
}
