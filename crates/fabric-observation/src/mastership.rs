//! Which subnet manager is the master, from sweep to sweep.

use ib_fabric::{PortIndex, Snapshot};
use ib_mad::PortKey;
use ib_mad::smp::SmState;

/// The subnet's master from sweep to sweep.
#[derive(Clone, Debug, Default)]
pub struct Mastership {
    /// The port of the last known master, which may be gone.
    pub master: Option<PortKey>,
    /// How often another subnet manager became the master: not the first known one, nor the same one again.
    pub changes: u64,
}

impl Mastership {
    /// Adds a sweep. Returns the port of the master, if it is another one than before. While two claim to be the master,
    /// the one that was it still is.
    pub fn update<V>(&mut self, snapshot: &Snapshot<V>) -> Option<NewMaster> {
        let (fabric, managers) = (&snapshot.fabric, snapshot.managers.as_deref());
        let masters = managers.unwrap_or_default().iter();
        let mut masters = masters.filter(|it| it.state == SmState::Master).peekable();
        let first = *masters.peek()?;
        if masters.any(|master| Some(fabric.port_key(master.port)) == self.master) {
            return None;
        }
        let before = self.master.replace(fabric.port_key(first.port));
        self.changes += u64::from(before.is_some());
        Some(NewMaster { port: first.port, before })
    }
}

/// Another subnet manager became the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMaster {
    /// Its port.
    pub port: PortIndex,
    /// The port of the one before; `None` of the first that is known.
    pub before: Option<PortKey>,
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

    /// The role of each host in one sweep: `M` master, `s` standby, `-` silent; `None` if it is not known.
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
    fn only_another_master_is_a_change() {
        for (sweeps, changes) in [
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
            for parts in sweeps {
                mastership.update(&snapshot(Some(parts)));
                mastership.update(&snapshot(None));
            }
            assert_eq!(mastership.changes, changes, "{sweeps:?}");
        }
    }
}
