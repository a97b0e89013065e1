//! `basic_auth_users`: names, and bcrypt hashes of passwords.

use std::collections::BTreeMap;

use super::at;
use crate::config::yaml::Spanned;
use bcrypt::HashParts;

/// What bcrypt itself allows.
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;

/// The section.
pub(super) type Section = BTreeMap<String, Spanned<String>>;

/// Who may log in.
#[derive(Clone, Debug, Default)]
pub struct Users {
    hashes: BTreeMap<String, String>,
    decoy: String,
}

impl Users {
    /// Whether nobody has to log in.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The hash of a user's password; of somebody unknown, one that fits nothing and takes as long to
    /// find that out, so that time does not tell which names there are.
    pub fn hash(&self, user: &str) -> (&str, bool) {
        let hash = self.hashes.get(user);
        hash.map_or((&self.decoy, false), |hash| (hash, true))
    }
}

pub(super) fn validate(section: Section, warnings: &mut Vec<String>) -> Result<Users, Vec<String>> {
    let (mut hashes, mut mistakes) = (BTreeMap::new(), Vec::new());
    let mut highest = 10;
    for (user, hash) in section {
        let mut wrong = |problem: &str| {
            let key = format!("basic_auth_users.{user}");
            mistakes.push(at(&hash, &key, format!("{problem}; `htpasswd -nBC 10 NAME` makes one")));
        };
        // The hash itself is not told: it is a secret, too.
        let cost = match hash.value.parse::<HashParts>() {
            Ok(parts) if COSTS.contains(&parts.get_cost()) => parts.get_cost(),
            Ok(_) => {
                wrong("the cost of the bcrypt hash is not between 4 and 31");
                continue;
            }
            Err(_) => {
                wrong("is not a bcrypt hash");
                continue;
            }
        };
        if user.contains(':') {
            // RFC 7617, 2: in a login the name ends there.
            let problem = "a user with a colon in its name cannot log in";
            warnings.push(at(&hash, &format!("basic_auth_users.{user}"), problem));
        }
        highest = highest.max(cost);
        hashes.insert(user, hash.value);
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok(Users { hashes, decoy: format!("$2b${highest:02}${}", ".".repeat(53)) })
}
