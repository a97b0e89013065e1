//! Standby subnet managers: one discovery of the fabric, and SMInfo of each port with IsSM. The same
//! discovery is input of [`super::identity`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_fabric::Fabric;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::sweep::SmSweep;
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

/// How long the discovery may take. 60,000 ports of switches that respond in 50 µs take less; a fabric with
/// many dead hosts may take more.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A query plan that sends nothing more after a deadline.
struct WithDeadline<W> {
    plan: W,
    deadline: Moment,
    late: bool,
}

impl<W: QueryPlan> QueryPlan for WithDeadline<W> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if self.late { None } else { self.plan.next_request(qp) }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.late |= at > self.deadline;
        self.plan.handle_outcome(tag, outcome, at);
    }
}

/// Discovers the fabric and checks it; no finding if the device was removed meanwhile, which other checks
/// report.
pub(super) fn check(
    what: &str,
    site: (&NodeNameMap, &MKeys),
    client: &mut MadClient,
    wire: &mut impl MadTransport,
) -> Vec<Finding> {
    let standbys = format!("{what}: standbys");
    match query_managers(site, client, wire) {
        Ok(Some((managers, fabric))) => {
            let mut findings = vec![standby_finding(&standbys, Some(&managers))];
            findings.extend(identity::check(what, &fabric));
            findings
        }
        Ok(None) => vec![standby_finding(&standbys, None)],
        Err(_) => Vec::new(),
    }
}

/// Subnet managers, each with the name of its node.
type Managers = Vec<(SubnetManager, String)>;

/// The subnet managers and the fabric; `None` if the discovery took too long.
fn query_managers(
    (names, keys): (&NodeNameMap, &MKeys),
    client: &mut MadClient,
    wire: &mut impl MadTransport,
) -> Result<Option<(Managers, Fabric)>, RunError> {
    let stop = AtomicBool::new(false);
    let deadline = wire.now() + DISCOVERY_TIMEOUT;
    let keys = Arc::new(keys.clone());
    let discovery = Discovery::new().with_keys(Arc::clone(&keys), wire.port_guid());
    let mut plan = WithDeadline { plan: discovery, deadline, late: false };
    query::run(&mut plan, client, wire, &stop)?;
    if plan.late {
        return Ok(None);
    }
    let fabric: Fabric = plan.plan.finish().assemble(names, wire.now(), None);
    let mut sweep = SmSweep::new(&fabric).with_keys(keys);
    query::run(&mut sweep, client, wire, &stop)?;
    let managers = sweep.finish().into_iter();
    let managers = managers.map(|it| (it, fabric.node_of(it.port).name.clone())).collect();
    Ok(Some((managers, fabric)))
}

fn standby_finding(what: &str, managers: Option<&[(SubnetManager, String)]>) -> Finding {
    let subject = Subject::SubnetManager;
    let Some(managers) = managers else {
        let found = format!(
            "not looked for: walking through the fabric takes longer than {DISCOVERY_TIMEOUT:?}"
        );
        return Finding::note(subject, what, found)
            .mend("a running exporter tells: infiniband_subnet_managers");
    };
    let of = |state: SmState| {
        let matching = managers.iter().filter(move |(manager, _)| manager.state == state);
        matching.map(|(it, node)| format!("{node} (priority {})", it.priority)).collect::<Vec<_>>()
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
    fn level_depends_on_masters_and_standbys() {
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
            let finding = standby_finding("standbys", managers.as_deref());
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.found.contains(says), "{finding:?}");
        }
    }
}
