//! Who is the subnet's master, and how often that became another.

use ib_fabric::Snapshot;
use ib_fabric::topology::End;
use ib_mad::smp::SmState;

/// The master as it is known from sweep to sweep; see the module.
#[derive(Clone, Debug, Default)]
pub struct Mastership {
    /// Where the last master that was heard sits; it may be gone by now.
    last: Option<End>,
    changes: u64,
}

impl Mastership {
    /// How often another subnet manager became the master. The first one that is known is no change,
    /// nor is one that was away for a while.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Where the last master that was heard sits; it may be gone by now.
    pub fn master(&self) -> Option<End> {
        self.last
    }

    /// Takes a sweep in. While two say to be the master, the one that was it still is: they will
    /// settle that between them.
    pub fn saw(&mut self, name: &str, snapshot: &Snapshot) {
        let (fabric, managers) = (&snapshot.fabric, snapshot.managers.as_deref());
        let masters = managers.unwrap_or_default().iter();
        let mut masters = masters.filter(|it| it.state == SmState::Master).peekable();
        let Some(&first) = masters.peek() else { return };
        if masters.any(|master| Some(fabric.end(master.port)) == self.last) {
            return;
        }
        let node = &fabric.node_of(first.port).name;
        if let Some((before, port)) = self.last.replace(fabric.end(first.port)) {
            tracing::info!(fabric = name, node, %before, port, "another subnet manager is the master");
            self.changes += 1;
        } else {
            tracing::info!(fabric = name, node, "the subnet has a master");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use ib_fabric::snapshot::SubnetManager;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::Moment;
    use ib_mad::moment::Anchor;
    use ib_mad::node::NodeKind;

    /// Each host's part in one sweep: `M` master, `s` standby, `-` silent; or nothing known.
    fn snapshot(parts: Option<&str>) -> Snapshot {
        let nodes = (1..=3).map(|guid| found(guid, NodeKind::Ca, 1)).collect();
        let fabric = Arc::new(fabric(nodes, &[], None));
        let manager = |(guid, part): (u64, char)| {
            let state = match part {
                'M' => SmState::Master,
                's' => SmState::Standby,
                _ => return None,
            };
            let port = fabric.find(end(guid, 1))?;
            Some(SubnetManager { port, state, priority: 0, act_count: 0 })
        };
        let managers = parts.map(|parts| (1..).zip(parts.chars()).filter_map(manager).collect());
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        Snapshot { managers, ..Snapshot::blank(Arc::clone(&fabric), anchor) }
    }

    #[test]
    fn another_master_is_a_change_and_the_same_one_is_none() {
        for (story, changes) in [
            (&["M--"][..], 0),
            (&["Ms-", "Ms-", "sM-", "sM-"], 1),
            (&["Ms-", "sM-", "Ms-"], 2),
            // Away for a while: itself, another one, and before any was known.
            (&["M--", "-s-", "---", "M--"], 0),
            (&["M--", "-s-", "-M-"], 1),
            (&["---", "ss-", "-M-"], 0),
            // Two at once, until they have settled it.
            (&["-M-", "MM-", "sM-"], 0),
            (&["-M-", "MM-", "Ms-", "MM-"], 1),
            (&["--M", "MM-", "MM-", "sM-"], 2),
        ] {
            let mut mastership = Mastership::default();
            for parts in story {
                mastership.saw("f", &snapshot(Some(parts)));
                mastership.saw("f", &snapshot(None));
            }
            assert_eq!(mastership.changes(), changes, "{story:?}");
        }
    }
}
