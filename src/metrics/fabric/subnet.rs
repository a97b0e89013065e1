//! Families of subnet managers: how many there are in each state, what each reports, and how often another
//! one became the master.

use exposition::{Family, Samples, counter, gauge};
use fabric_observation::Observation;
use ib_fabric::snapshot::SubnetManager;
use ib_mad::smp::SmState;

const MANAGER_LABELS: &[&str] = &["fabric", "guid", "port"];

type WriteFabric = fn(&&Observation, &mut Samples<'_>);

pub(super) const FAMILIES: &[(Family, WriteFabric)] = &[
    gauge(
        "infiniband_subnet_managers",
        &["fabric", "state"],
        "Subnet managers that answered in the latest sweep, by state: master, standby, discovering or not_active. Absent where it is not known.",
        |observation, samples| {
            if let Some(managers) = managers(observation) {
                for state in SmState::ALL.into_iter().rev() {
                    samples.label("state", state.label());
                    samples.value(managers.iter().filter(|it| it.state == state).count() as u64);
                }
            }
        },
    ),
    gauge(
        "infiniband_subnet_manager_state",
        MANAGER_LABELS,
        "SMState of the subnet manager at a port: 0 not active, 1 discovering, 2 standby, 3 master.",
        |observation, samples| each(observation, samples, |it| it.state as u64),
    ),
    gauge(
        "infiniband_subnet_manager_priority",
        MANAGER_LABELS,
        "Priority of the subnet manager at a port, 0 to 15: the highest is to be the master, and among equals the one with the lowest port GUID.",
        |observation, samples| each(observation, samples, |it| it.priority.into()),
    ),
    counter(
        "infiniband_subnet_manager_activity",
        MANAGER_LABELS,
        "ActCount of the subnet manager at a port, 32 bits: goes up while it works, and stands still when it hangs.",
        |observation, samples| each(observation, samples, |it| it.act_count.into()),
    ),
    counter(
        "infiniband_subnet_manager_changes",
        &["fabric"],
        "Times that another subnet manager became the master.",
        |observation, samples| samples.value(observation.stats.mastership.changes()),
    ),
];

/// The families.
pub fn families() -> impl Iterator<Item = Family> {
    FAMILIES.iter().map(|(family, _)| *family)
}

fn managers(observation: &Observation) -> Option<&[SubnetManager]> {
    observation.snapshot.as_ref()?.managers.as_deref()
}

/// Writes a number of each subnet manager that responded.
fn each(
    observation: &Observation,
    samples: &mut Samples<'_>,
    value: impl Fn(&SubnetManager) -> u64,
) {
    let Some(snapshot) = &observation.snapshot else { return };
    for manager in managers(observation).unwrap_or_default() {
        let (guid, number) = snapshot.fabric.end(manager.port);
        samples.label("guid", &guid.to_string());
        samples.label("port", itoa::Buffer::new().format(number));
        samples.value(value(manager));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::metrics::tests::{snapshot, text_of};
    use ib_fabric::testing::end;

    /// The samples when these subnet managers responded: GUID, port, state and priority.
    fn samples_of(answered: Option<&[(u64, u8, SmState, u8)]>) -> Vec<String> {
        let mut snapshot = snapshot();
        let manager = |&(guid, port, state, priority): &(u64, u8, SmState, u8)| {
            let port = snapshot.fabric.find(end(guid, port)).unwrap();
            SubnetManager { port, state, priority, act_count: u32::MAX }
        };
        snapshot.managers = answered.map(|answered| answered.iter().map(manager).collect());
        let snapshot = Some(snapshot.into());
        let observation = Observation { fabric: "f".into(), snapshot, ..Observation::default() };
        let text = text_of(vec![Arc::new(observation)].into());
        let ours = text.lines().filter(|line| line.starts_with("infiniband_subnet_manager"));
        ours.map(|line| line.trim_start_matches("infiniband_subnet_manager").to_owned()).collect()
    }

    #[test]
    fn each_manager_and_the_number_in_each_state() {
        let answered = [(1, 0, SmState::Master, 14), (2, 1, SmState::Standby, 0)];
        let (one, two) = (
            r#"{fabric="f",guid="0x0000000000000001",port="0"}"#,
            r#"{fabric="f",guid="0x0000000000000002",port="1"}"#,
        );
        let expected = [
            "s{fabric=\"f\",state=\"master\"} 1".to_owned(),
            "s{fabric=\"f\",state=\"standby\"} 1".to_owned(),
            "s{fabric=\"f\",state=\"discovering\"} 0".to_owned(),
            "s{fabric=\"f\",state=\"not_active\"} 0".to_owned(),
            format!("_state{one} 3"),
            format!("_state{two} 2"),
            format!("_priority{one} 14"),
            format!("_priority{two} 0"),
            format!("_activity_total{one} 4294967295"),
            format!("_activity_total{two} 4294967295"),
            "_changes_total{fabric=\"f\"} 0".to_owned(),
        ];
        assert_eq!(samples_of(Some(&answered)), expected);
    }

    #[test]
    fn no_manager_is_zero_and_unknown_is_absent() {
        let none = samples_of(Some(&[]));
        assert_eq!(none.len(), 4 + 1);
        assert!(none[..4].iter().all(|line| line.ends_with("} 0")), "{none:?}");
        assert_eq!(samples_of(None), ["_changes_total{fabric=\"f\"} 0"]);
    }
}
