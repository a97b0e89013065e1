//! Who would take over from the master: the fabric is walked through once, and whoever says to have a
//! subnet manager is asked. What else the walk shows is in [`super::identity`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_fabric::Fabric;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::sm_sweep::SmSweep;
use ib_fabric::names::NodeNameMap;
use ib_fabric::snapshot::SubnetManager;
use ib_mad::Mad;
use ib_mad::Moment;
use ib_mad::m_key::MKeys;
use ib_mad::smp::SmState;
use ib_umad::client::MadClient;
use ib_umad::query;
use ib_umad::query::{QueryPlan, RunError};
use ib_umad::{MadTransport, QueuePair, Request, RequestError};

use super::finding::{Finding, Subject};
use super::identity;

/// How long the walk through the fabric may take. 60,000 ports of switches that answer in 50 µs take
/// less; a fabric with many dead hosts may take more.
const MOST: Duration = Duration::from_millis(1_500);

/// A walk that asks nothing more once its time is over.
struct Hurried<W> {
    walk: W,
    until: Moment,
    late: bool,
}

impl<W: QueryPlan> QueryPlan for Hurried<W> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if self.late { None } else { self.walk.next_request(qp) }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.late |= at > self.until;
        self.walk.handle_outcome(tag, outcome, at);
    }
}

/// Looks for them; nothing where the device went meanwhile, of which others tell.
pub(super) fn look(
    what: &str,
    site: (&NodeNameMap, &MKeys),
    client: &mut MadClient,
    wire: &mut impl MadTransport,
) -> Vec<Finding> {
    let standbys = format!("{what}: standbys");
    match managers(site, client, wire) {
        Ok(Some((managers, fabric))) => {
            let mut findings = vec![told(&standbys, Some(&managers))];
            findings.extend(identity::check(what, &fabric));
            findings
        }
        Ok(None) => vec![told(&standbys, None)],
        Err(_) => Vec::new(),
    }
}

/// Managers, each with what its node is called.
type Managers = Vec<(SubnetManager, String)>;

/// The managers and the fabric; `None` if the fabric is too large to be walked through.
fn managers(
    (names, keys): (&NodeNameMap, &MKeys),
    client: &mut MadClient,
    wire: &mut impl MadTransport,
) -> Result<Option<(Managers, Fabric)>, RunError> {
    let stop = AtomicBool::new(false);
    let until = wire.now() + MOST;
    let keys = Arc::new(keys.clone());
    let discovery = Discovery::new().with_keys(Arc::clone(&keys), wire.port_guid());
    let mut walk = Hurried { walk: discovery, until, late: false };
    query::run(&mut walk, client, wire, &stop)?;
    if walk.late {
        return Ok(None);
    }
    let fabric: Fabric = walk.walk.finish().assemble(names, wire.now(), None);
    let mut sweep = SmSweep::new(&fabric).with_keys(keys);
    query::run(&mut sweep, client, wire, &stop)?;
    let heard = sweep.finish().into_iter();
    let managers = heard.map(|it| (it, fabric.node_of(it.port).name.clone())).collect();
    Ok(Some((managers, fabric)))
}

fn told(what: &str, managers: Option<&[(SubnetManager, String)]>) -> Finding {
    let subject = Subject::SubnetManager;
    let Some(managers) = managers else {
        let found =
            format!("not looked for: walking through the fabric takes longer than {MOST:?}");
        return Finding::note(subject, what, found)
            .mend("a running exporter tells: infiniband_subnet_managers");
    };
    let of = |state: SmState| {
        let those = managers.iter().filter(move |(manager, _)| manager.state == state);
        those.map(|(it, node)| format!("{node} (priority {})", it.priority)).collect::<Vec<_>>()
    };
    let (masters, standbys) = (of(SmState::Master), of(SmState::Standby));
    if masters.len() > 1 {
        let found = format!("{} masters: {}", masters.len(), masters.join(", "));
        return Finding::bad(subject, what, found)
            .wanted("one master, the others standby")
            .mend("stop all but one; compare their versions, M_Keys and SM_Keys");
    }
    if standbys.is_empty() {
        return Finding::note(subject, what, "no standby: nobody takes over from the master")
            .wanted("a second subnet manager, where the fabric has to outlive the first")
            .mend("start one on another host or switch, with a lower priority");
    }
    Finding::ok(subject, what, format!("standing by: {}", standbys.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use ib_fabric::PortIndex;

    #[test]
    fn each_set_of_managers_has_its_level() {
        let manager = |state, node: &str| {
            let manager = SubnetManager { port: PortIndex(0), state, priority: 4, act_count: 1 };
            (manager, node.to_owned())
        };
        let master = manager(SmState::Master, "head-1");
        let other = manager(SmState::Master, "head-2");
        let standby = manager(SmState::Standby, "head-3");
        for (managers, level, says) in [
            (None, Level::Note, "not looked for"),
            (Some(vec![master.clone()]), Level::Note, "no standby"),
            (Some(vec![master.clone(), standby]), Level::Ok, "standing by: head-3 (priority 4)"),
            (Some(vec![master, other]), Level::Bad, "2 masters: head-1 (priority 4), head-2"),
        ] {
            let finding = told("standbys", managers.as_deref());
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.found.contains(says), "{finding:?}");
        }
    }
}
