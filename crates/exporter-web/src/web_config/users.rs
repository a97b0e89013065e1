//! `basic_auth_users`: names, and bcrypt hashes of passwords.

use std::collections::BTreeMap;

use super::problems::{Problems, at};
use crate::users::{Hash, USUAL_COST, Users};

/// How long a check with [`USUAL_COST`] takes, in seconds: 50 to 70 ms on processors of 2015 to 2024.
const USUAL_SECONDS: f64 = 0.06;

pub(super) type UsersSection = BTreeMap<String, String>;

pub(super) fn validate(section: UsersSection, problems: &mut Problems<'_>) -> Users {
    let document = problems.document;
    let mut hashes = BTreeMap::new();
    for (user, hash) in section {
        let key = format!("basic_auth_users.{user}");
        let hash = Hash::parse(hash).map_err(|problem| {
            let problem = format!("{problem}; create one with `htpasswd -nBC 10 NAME`");
            at(document, &key, problem)
        });
        let Some(hash) = problems.keep(hash) else { continue };
        if hash.is_slow() {
            problems.warn(at(
                document,
                &key,
                format_args!(
                    "bcrypt cost {}: each new login and each wrong password takes about {} of CPU time; \
                     create a hash with a lower cost: `htpasswd -nBC 10 NAME`",
                    hash.cost,
                    check_time(hash.cost)
                ),
            ));
        }
        if user.contains(':') {
            // In a login the name ends at the first colon (RFC 7617, 2).
            problems.warn(at(document, &key, "a user with a colon in its name cannot log in"));
        }
        hashes.insert(user, hash);
    }
    Users::new(hashes)
}

/// Roughly how long a check takes: each step of the cost doubles it.
fn check_time(cost: u32) -> String {
    let seconds = USUAL_SECONDS * f64::from(cost.saturating_sub(USUAL_COST)).exp2();
    match seconds {
        _ if seconds < 90.0 => format!("{seconds:.0} s"),
        _ if seconds < 5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use bcrypt::HashParts;
    use yaml_config::yaml;

    use super::*;

    fn users_of_costs(costs: &[u32]) -> (Users, Vec<String>) {
        let hash = |cost| format!("$2b${cost:02}${}", ".".repeat(53));
        let lines: Vec<_> =
            costs.iter().map(|cost| format!("  user-{cost}: {}\n", hash(*cost))).collect();
        let text = format!("basic_auth_users:\n{}", lines.concat());
        let parsed = yaml::parse::<BTreeMap<String, UsersSection>>(&text);
        let mut problems = Problems::new(&parsed.document);
        let users = validate(parsed.value["basic_auth_users"].clone(), &mut problems);
        (users, problems.finish(&parsed.diagnostics).unwrap())
    }

    #[test]
    fn unknown_user_is_checked_at_no_more_than_the_usual_cost() {
        for (costs, cost) in
            [(&[4][..], 4), (&[4, 10], 10), (&[10, 18], 10), (&[12], 10), (&[31], 10)]
        {
            let (users, _) = users_of_costs(costs);
            let (unknown, exists) = users.expected("nobody");
            let parts = unknown.text.parse::<HashParts>().unwrap();
            assert_eq!((parts.get_cost(), exists, unknown.is_slow()), (cost, false, false));
        }
    }

    #[test]
    fn high_cost_is_a_warning_with_the_check_time() {
        let (users, warnings) = users_of_costs(&[10, 14, 15, 18, 21, 31]);
        let slow = [10, 14, 15, 18].map(|cost| users.expected(&format!("user-{cost}")).0.is_slow());
        assert_eq!(slow, [false, false, true, true]);
        let expected = [
            (15, "about 2 s of CPU time"),
            (18, "about 15 s of CPU time"),
            (21, "about 2 min of CPU time"),
            (31, "about 35 h of CPU time"),
        ];
        assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
        for (warning, (cost, time)) in warnings.iter().zip(expected) {
            assert!(warning.contains(&format!("bcrypt cost {cost}: ")), "{warning}");
            assert!(warning.contains(time), "{warning}");
        }
        assert!(
            warnings[0].starts_with("line 4, column 12: basic_auth_users.user-15: "),
            "{}",
            warnings[0]
        );
    }
}
