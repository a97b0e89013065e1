//! Subnet managers: how many there are of each kind, what each tells of itself, and how often another
//! one became the master.

use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::snapshot::SubnetManager;
use ib_mad::smp::SmState;

use super::deflated::Block;
use super::family::{Family, Kind, push_label};
use super::line::{Line, Tell};
use super::part::{Part, Place, pack};

const MANAGER_LABELS: &[&str] = &["fabric", "guid", "port"];

const FAMILIES: [(Family, Tell<Observation>); 5] = [
    (
        Family {
            name: "infiniband_subnet_managers",
            kind: Kind::Gauge,
            labels: &["fabric", "state"],
            help: "Subnet managers that answered in the latest sweep, by state: master, standby, discovering or not_active. Absent where it is not known.",
        },
        |observation, line| {
            if let Some(managers) = managers(observation) {
                for state in SmState::ALL.into_iter().rev() {
                    line.label("state", state.label());
                    line.value(managers.iter().filter(|it| it.state == state).count() as u64);
                }
            }
        },
    ),
    (
        Family {
            name: "infiniband_subnet_manager_state",
            kind: Kind::Gauge,
            labels: MANAGER_LABELS,
            help: "SMState of the subnet manager at a port: 0 not active, 1 discovering, 2 standby, 3 master.",
        },
        |observation, line| each(observation, line, |it| it.state as u64),
    ),
    (
        Family {
            name: "infiniband_subnet_manager_priority",
            kind: Kind::Gauge,
            labels: MANAGER_LABELS,
            help: "Priority of the subnet manager at a port, 0 to 15: the highest is to be the master, and among equals the one with the lowest port GUID.",
        },
        |observation, line| each(observation, line, |it| it.priority.into()),
    ),
    (
        Family {
            name: "infiniband_subnet_manager_activity",
            kind: Kind::Counter,
            labels: MANAGER_LABELS,
            help: "ActCount of the subnet manager at a port, 32 bits: goes up while it works, and stands still when it hangs.",
        },
        |observation, line| each(observation, line, |it| it.act_count.into()),
    ),
    (
        Family {
            name: "infiniband_subnet_manager_changes",
            kind: Kind::Counter,
            labels: &["fabric"],
            help: "Times that another subnet manager became the master.",
        },
        |observation, line| line.value(observation.tally.mastership.changes()),
    ),
];

/// All families of this part.
pub fn families() -> impl Iterator<Item = Family> {
    FAMILIES.iter().map(|(family, _)| *family)
}

/// Renders what is known of the fabrics' subnet managers; families without samples are left out.
pub fn render(observations: &[Arc<Observation>]) -> Vec<Part<Block>> {
    let mut parts = Vec::new();
    for (index, (family, tell)) in FAMILIES.iter().enumerate() {
        let (name, mut text) = (family.sample_name(), Vec::new());
        for observation in observations {
            let mut labels = Vec::new();
            push_label(&mut labels, b'{', "fabric", &observation.fabric);
            tell(observation, &mut Line::new(&mut text, &name, &labels));
        }
        if !text.is_empty() {
            let (place, head) = (Place::Subnet(index), (*family).into());
            parts.push(Part { place, head, samples: pack(&text) });
        }
    }
    parts
}

fn managers(observation: &Observation) -> Option<&[SubnetManager]> {
    observation.snapshot.as_ref()?.managers.as_deref()
}

/// Writes a number of each subnet manager that answered.
fn each(observation: &Observation, line: &mut Line<'_>, value: impl Fn(&SubnetManager) -> u64) {
    let Some(snapshot) = &observation.snapshot else { return };
    for manager in managers(observation).unwrap_or_default() {
        let (guid, number) = snapshot.fabric.end(manager.port);
        line.label("guid", &guid.to_string());
        line.label("port", itoa::Buffer::new().format(number));
        line.value(value(manager));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{snapshot, text_of};
    use super::*;
    use ib_fabric::testing::end;

    /// What is told of subnet managers where these were heard: GUID, port, state and priority.
    fn told(heard: Option<&[(u64, u8, SmState, u8)]>) -> Vec<String> {
        let mut snapshot = snapshot();
        let manager = |&(guid, port, state, priority): &(u64, u8, SmState, u8)| {
            let port = snapshot.fabric.find(end(guid, port)).unwrap();
            SubnetManager { port, state, priority, act_count: u32::MAX }
        };
        snapshot.managers = heard.map(|heard| heard.iter().map(manager).collect());
        let snapshot = Some(snapshot);
        let observation = Observation { fabric: "f".into(), snapshot, ..Observation::default() };
        let text = text_of(vec![Arc::new(observation)].into());
        let ours = text.lines().filter(|line| line.starts_with("infiniband_subnet_manager"));
        ours.map(|line| line.trim_start_matches("infiniband_subnet_manager").to_owned()).collect()
    }

    #[test]
    fn each_that_answered_and_how_many_there_are() {
        let heard = [(1, 0, SmState::Master, 14), (2, 1, SmState::Standby, 0)];
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
        assert_eq!(told(Some(&heard)), expected);
    }

    #[test]
    fn none_is_known_to_be_none_and_not_known_is_absent() {
        let none = told(Some(&[]));
        assert_eq!(none.len(), 4 + 1);
        assert!(none[..4].iter().all(|line| line.ends_with("} 0")), "{none:?}");
        assert_eq!(told(None), ["_changes_total{fabric=\"f\"} 0"]);
    }
}
