//! `basic_auth_users`: names, and bcrypt hashes of passwords.

use std::collections::BTreeMap;

use super::at;
use bcrypt::HashParts;
use site_config::yaml::Spanned;

/// The costs that bcrypt allows.
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;

/// The cost that is recommended: what `htpasswd -nBC 10` makes, and what the exporter toolkit checks the
/// password of an unknown user with.
const USUAL_COST: u32 = 10;

/// The highest cost that is checked beside usual ones: about a second. One more doubles that.
const HIGHEST_QUICK: u32 = 14;

/// How long a check with [`USUAL_COST`] takes, in seconds: 50 to 70 ms on processors of 2015 to 2024.
const USUAL_SECONDS: f64 = 0.06;

/// The section.
pub(super) type UsersSection = BTreeMap<String, Spanned<String>>;

/// A bcrypt hash and its cost.
#[derive(Clone, Debug, Default)]
struct Hash {
    text: String,
    cost: u32,
}

/// The users that may log in.
#[derive(Clone, Debug, Default)]
pub struct Users {
    hashes: BTreeMap<String, Hash>,
    /// What an unknown user's password is checked against.
    decoy: Hash,
}

/// What the password of a login is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The bcrypt hash.
    pub hash: &'a str,
    /// Whether there is such a user. If not, no password is right.
    pub exists: bool,
    /// Whether the check takes so long that others must not wait for it.
    pub is_slow: bool,
}

impl Users {
    /// Whether there are none, so that no login is needed.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// What a user's password is checked against. For an unknown user it is a hash that no password
    /// fits, with the highest cost of the file but at most `USUAL_COST`: the time does not reveal whether a
    /// name exists as long as all costs are the same and at most that. A higher one would let any client
    /// keep the processor busy without knowing a name.
    pub fn expected(&self, user: &str) -> Expected<'_> {
        let found = self.hashes.get(user);
        let Hash { text, cost } = found.unwrap_or(&self.decoy);
        Expected { hash: text, exists: found.is_some(), is_slow: *cost > HIGHEST_QUICK }
    }
}

pub(super) fn validate(
    section: UsersSection,
    warnings: &mut Vec<String>,
) -> Result<Users, Vec<String>> {
    let (mut hashes, mut diagnostics) = (BTreeMap::new(), Vec::new());
    for (user, hash) in section {
        let key = format!("basic_auth_users.{user}");
        let mut wrong = |problem: &str| {
            diagnostics.push(at(
                &hash,
                &key,
                format!("{problem}; `htpasswd -nBC 10 NAME` makes one"),
            ));
        };
        // The hash is a secret, too: it is in no message.
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
        if cost > HIGHEST_QUICK {
            let problem = format!(
                "a bcrypt cost of {cost} keeps a processor busy for about {} at each new login and each \
                 wrong password: make a hash with a lower cost, such as `htpasswd -nBC 10 NAME` does",
                check_time(cost)
            );
            warnings.push(at(&hash, &key, problem));
        }
        if user.contains(':') {
            // In a login the name ends at the first colon (RFC 7617, 2).
            warnings.push(at(&hash, &key, "a user with a colon in its name cannot log in"));
        }
        hashes.insert(user, Hash { text: hash.value, cost });
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let cost = hashes.values().map(|hash| hash.cost).max().unwrap_or(USUAL_COST).min(USUAL_COST);
    let decoy = Hash { text: format!("$2b${cost:02}${}", ".".repeat(53)), cost };
    Ok(Users { hashes, decoy })
}

/// Roughly how long a check takes: each step of the cost doubles it.
fn check_time(cost: u32) -> String {
    let seconds = USUAL_SECONDS * f64::from(cost.saturating_sub(USUAL_COST)).exp2();
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 5_400.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.0} h", seconds / 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(costs: &[u32]) -> (Users, Vec<String>) {
        let hash = |cost| format!("$2b${cost:02}${}", ".".repeat(53));
        let lines: Vec<_> =
            costs.iter().map(|cost| format!("user-{cost}: {}\n", hash(cost))).collect();
        let mut warnings = Vec::new();
        let section = site_config::yaml::parse::<UsersSection>(&lines.concat()).value;
        (validate(section, &mut warnings).unwrap(), warnings)
    }

    #[test]
    fn unknown_user_is_checked_at_no_more_than_the_usual_cost() {
        for (costs, cost) in
            [(&[4][..], 4), (&[4, 10], 10), (&[10, 18], 10), (&[12], 10), (&[31], 10)]
        {
            let (users, _) = users(costs);
            let unknown = users.expected("nobody");
            let parts = unknown.hash.parse::<HashParts>().unwrap();
            assert_eq!((parts.get_cost(), unknown.exists, unknown.is_slow), (cost, false, false));
        }
    }

    #[test]
    fn high_cost_is_a_warning_with_the_check_time() {
        let (users, warnings) = users(&[10, 14, 15, 18, 21, 31]);
        let slow = [10, 14, 15, 18].map(|cost| users.expected(&format!("user-{cost}")).is_slow);
        assert_eq!(slow, [false, false, true, true]);
        let expected = [
            "15 keeps a processor busy for about 2 s",
            "18 keeps a processor busy for about 15 s",
            "21 keeps a processor busy for about 2 min",
            "31 keeps a processor busy for about 35 h",
        ];
        assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(warning.contains(&format!("a bcrypt cost of {expected}")), "{warning}");
        }
        assert!(
            warnings[0].starts_with("line 3, column 10: basic_auth_users.user-15: "),
            "{}",
            warnings[0]
        );
    }
}
