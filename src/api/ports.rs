//! `/api/v1/links/{id}`, and ports in full: put together from a board.

use ib_fabric::topology::{Link as Cable, LinkId};
use ib_fabric::{NodeIndex, PortIndex};
use ib_health::congestion::{Cause, Role};
use ib_health::{LinkFindings, PortFindings, Verdict};
use ib_mad::counter::{TABLE, scaled};
use ib_mad::port_state::{PortStatus, physical, state};
use ib_mad::{Counter, Reading};

use super::links::{Of, bit_errors};
use super::model::port::{Congestion, LinkDetail, Mended, Peer, Port, PortName};

/// The cable of this id in a fabric, as it is now.
pub fn find(of: Of<'_>, id: LinkId) -> Option<Cable> {
    let fabric = &of.snapshot.fabric;
    let near = fabric.find(id.0)?;
    let far = fabric.port(near).peer?.port;
    (fabric.end(far) == id.1).then_some(Cable(near, far))
}

/// A cable with all that is known of its ends.
pub fn link(of: Of<'_>, cable: Cable) -> LinkDetail {
    let judged = of.findings.links.iter().find(|judged| judged.link == cable);
    let outages = judged.map(|judged| judged.outages).unwrap_or_default();
    LinkDetail {
        swept_at: of.time(of.snapshot.ended),
        link: of.link(cable, judged),
        expected_losses: outages.expected.iter().sum(),
        expected_down_seconds: outages.expected_down.least.as_secs_f64(),
        expected_down_max_seconds: outages.expected_down.most.as_secs_f64(),
        recoveries: outages.recoveries,
        ports: [cable.0, cable.1].map(|index| port(of, index, judged)),
    }
}

/// A port, with what was found out about its cable.
pub fn port(of: Of<'_>, index: PortIndex, judged: Option<&LinkFindings>) -> Port {
    let (snapshot, fabric) = (of.snapshot, &of.snapshot.fabric);
    let known = fabric.port(index);
    let (status, reading) = (snapshot.status(index), snapshot.reading(index));
    let nothing = PortFindings::default();
    let findings = of.findings.ports.get(index.0 as usize).unwrap_or(&nothing);
    let counting = findings.counting;
    let counted = TABLE.iter().filter_map(|row| {
        let count = scaled(reading?.get(row.counter)?, row.scale);
        Some((row.metric.into(), count))
    });
    let counters = counted.collect();
    let best = || status?.best_rate_with(snapshot.status(known.peer?.port)?);
    let named = |full: &dyn Fn(Counter) -> bool| {
        let rows = TABLE.iter().filter(|row| full(row.counter));
        rows.map(|row| row.metric.into()).collect()
    };
    Port {
        name: name(of, index),
        up: snapshot.is_up(known.node),
        state: status.map(|status| state::name(status.state).into()),
        physical_state: status.map(|status| physical::name(status.physical_state).into()),
        speed: status.and_then(|status| status.speed).map(|speed| speed.label().into()),
        width: status.and_then(|status| status.width).map(|width| width.label().into()),
        rate: status.and_then(PortStatus::rate),
        supported_rate: best(),
        fec: snapshot.fec.get(index.0 as usize).copied().flatten().map(|fec| fec.label().into()),
        peer: known.peer.map(|peer| Peer { name: name(of, peer.port), connected: peer.connected }),
        link: fabric.link_id(index).map(|id| id.to_string()),
        verdict: known
            .peer
            .map(|_| judged.map_or(Verdict::Unknown, |judged| judged.verdict).label().into()),
        reasons: judged.map(gravest_first).unwrap_or_default(),
        read_at: reading.and_then(|reading| of.time(reading.at)),
        errors: reading.map_or(0, Reading::link_errors),
        discards: reading.and_then(|reading| reading.get(Counter::XmitDiscards)),
        counters,
        saturated: named(&|counter| counting.was_saturated(counter)),
        stuck: named(&|counter| counting.is_stuck(counter)),
        impossible: named(&|counter| counting.is_impossible(counter)),
        impossible_readings: counting.impossible_readings,
        resets: counting.resets,
        last_reset: counting.last_reset.and_then(|last| of.time(last)),
        bit_errors: bit_errors(&findings.bit_errors),
        mended: findings
            .bit_errors
            .mended
            .filter(|mended| mended.ratio.is_finite() && mended.limit.is_finite())
            .map(|mended| Mended {
                ratio: mended.ratio,
                limit: mended.limit,
                measured_at: of.time(mended.at),
                stale: mended.stale,
            }),
        wait_ratio: findings.wait.map(|wait| wait.share).filter(|share| share.is_finite()),
        tick_told: findings.wait.is_some_and(|wait| wait.tick_told),
        congestion: findings.role.map(|role| congestion(of, role, findings.cause)),
    }
}

/// All ports of a node, each with what was found out about its cable.
pub fn ports_of(of: Of<'_>, node: NodeIndex) -> Vec<Port> {
    let fabric = &of.snapshot.fabric;
    let at_node = |port| fabric.port(port).node == node;
    let judged: Vec<&LinkFindings> = (of.findings.links.iter())
        .filter(|judged| at_node(judged.link.0) || at_node(judged.link.1))
        .collect();
    let watched = fabric.ports_of(node).filter(|index| fabric.is_monitored(*index));
    let told = watched.map(|index| {
        let is_its = |judged: &&&LinkFindings| judged.link.0 == index || judged.link.1 == index;
        port(of, index, judged.iter().find(is_its).copied())
    });
    told.collect()
}

pub(super) fn name(of: Of<'_>, index: PortIndex) -> PortName {
    let node = of.snapshot.fabric.node_of(index);
    PortName {
        guid: node.identity.guid.to_string(),
        node: node.name.clone(),
        node_type: node.identity.kind.label().into(),
        port: of.snapshot.fabric.port(index).number,
    }
}

fn gravest_first(judged: &LinkFindings) -> Vec<super::model::Word> {
    let mut reasons: Vec<_> = judged.reasons.iter().collect();
    reasons.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    reasons.into_iter().map(|(reason, _)| reason.label().into()).collect()
}

fn congestion(of: Of<'_>, role: Role, cause: Option<Cause>) -> Congestion {
    match role {
        Role::Root => Congestion {
            role: "root".into(),
            of: None,
            cause: cause.map(|cause| cause.label().into()),
        },
        Role::Victim { of: root } => {
            Congestion { role: "victim".into(), of: Some(name(of, root)), cause: None }
        }
    }
}
