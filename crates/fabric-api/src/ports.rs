//! `/api/v1/links/{id}`, and the ports of a node: a link with both of its ports in full.

use ib_fabric::topology::{Link as Cable, LinkId};
use ib_fabric::{NodeIndex, PortIndex};
use ib_health::congestion::Role;
use ib_health::{LinkAssessment, PortAssessment, Verdict};
use ib_mad::counter::{TABLE, scaled};
use ib_mad::port_state::PortStatus;
use ib_mad::register::{self};
use ib_mad::{Counter, Reading};

use crate::filter::{Fabrics, selected};
use crate::link_row::{LinkRow, bit_errors, names, wait_ratio, worst_first};
use crate::model::{Congestion, LinkDetail, LinkDownReason, Peer, Port, PreFecBer};
use crate::modules::{has_link, module_of, reported_ber};
use crate::view::FabricView;
use crate::{learning, planes, traffic};

/// The link with this id and all current data of its ends, from the first of the selected fabrics that has it.
pub fn link_by_id(fabrics: &Fabrics, fabric: Option<&str>, id: LinkId) -> Option<LinkDetail> {
    let mut views = selected(fabrics, fabric).filter_map(|it| FabricView::new(it));
    views.find_map(|view| {
        let fabric = &view.snapshot.fabric;
        let low = fabric.find(id.low)?;
        let high = fabric.port(low).peer?.port;
        let is_its = fabric.port_key(high) == id.high;
        // A plane has no page of its own.
        is_its.then(|| link(view, fabric.whole_link(Cable { low, high })))
    })
}

/// A link with all data of its ends; of several planes, of the ends of the worst plane.
pub fn link(view: FabricView<'_>, cable: Cable) -> LinkDetail {
    let assessment = view.assessment.links.iter().find(|assessment| assessment.link == cable);
    let outages = assessment.map(|assessment| assessment.outages).unwrap_or_default();
    let shown = assessment.map_or(cable, |assessment| planes::worst(assessment).link);
    LinkDetail {
        swept_at: view.swept_at(),
        link: LinkRow { view, cable, assessment }.link(),
        expected_link_downs: outages.expected.iter().sum(),
        expected_down_seconds: outages.expected_down.least.as_secs_f64(),
        expected_down_max_seconds: outages.expected_down.most.as_secs_f64(),
        recoveries: outages.recoveries,
        ports: planes::ends_of(view, shown)
            .map(|end| port(view, end, assessment.map(planes::worst))),
    }
}

/// A port, with the assessment of its link.
fn port(view: FabricView<'_>, index: PortIndex, link: Option<&LinkAssessment>) -> Port {
    let (snapshot, fabric) = (view.snapshot, &view.snapshot.fabric);
    let known = fabric.port(index);
    let peer = known.peer;
    let status = snapshot.status(index);
    let reading = snapshot.reading(index).filter(|reading| !reading.is_empty());
    let default = PortAssessment::default();
    let assessment = view.port(index).unwrap_or(&default);
    let (counting, pre_fec) = (assessment.counters, assessment.bit_errors.pre_fec);
    let verdict = link.map_or(Verdict::Unknown, |link| link.verdict);
    let reasons = link.into_iter().flat_map(worst_first);
    let counters = TABLE.iter().filter_map(|row| {
        let count = scaled(reading?.get(row.counter)?, row.scale);
        Some((row.metric.into(), count))
    });
    let hardware = view.hardware(index);
    let best = || status?.best_rate_with(snapshot.status(peer?.port)?);
    Port {
        name: view.port_name(index),
        up: snapshot.is_up(known.node),
        state: status.map(|status| status.state.name().into()),
        physical_state: status.map(|status| status.physical_state.name().into()),
        speed: status.and_then(|status| status.speed).map(|speed| speed.label().into()),
        width: status.and_then(|status| status.width).map(|width| width.label().into()),
        rate: status.and_then(PortStatus::rate),
        supported_rate: best(),
        fec: snapshot.fec.get(index).copied().flatten().map(|fec| fec.label().into()),
        peer: peer.map(|peer| Peer { name: view.port_name(peer.port), connected: peer.connected }),
        link: fabric.link_id(index).map(|id| id.to_string()),
        verdict: peer.map(|_| verdict.label().into()),
        reasons: reasons.map(|(reason, _)| reason.label().into()).collect(),
        read_at: reading.and_then(|reading| view.time(reading.at)),
        errors: reading.filter(|it| it.has_link_errors()).map(Reading::link_errors),
        discards: reading.and_then(|reading| reading.get(Counter::XmitDiscards)),
        counters: counters.collect(),
        saturated: names(counting.ever_saturated),
        saturated_now: names(counting.saturated_now),
        impossible: names(counting.impossible),
        impossible_readings: counting.impossible_readings,
        resets: counting.resets,
        last_reset: counting.last_reset.and_then(|last| view.time(last)),
        cleared_every_seconds: assessment.cleared_every.map(|every| every.as_secs_f64()),
        bit_errors: bit_errors(&assessment.bit_errors),
        pre_fec_ber: pre_fec.filter(|it| it.ratio.is_finite() && it.limit.is_finite()).map(|it| {
            PreFecBer {
                ratio: it.ratio,
                limit: it.limit,
                measured_at: view.time(it.at),
                stale: it.stale,
                lane: it.lane.map(|(lane, _)| lane),
                lane_share: it.lane.map(|(_, share)| share),
            }
        }),
        reported_ber: reported_ber(view, index),
        fec_histogram: hardware
            .filter(|_| has_link(view, index))
            .and_then(|it| it.fec_histogram.as_ref())
            .map_or_else(Vec::new, |read| read.value.blocks.to_vec()),
        link_down_reason: hardware.and_then(|it| it.link_down.as_ref()).map(|read| {
            let side = read.value.side().map(|side| side.label().into());
            LinkDownReason { side, reason: read.value.reason(), read_at: view.time(read.at) }
        }),
        trouble: hardware
            .filter(|_| status.is_some_and(|status| !status.link_up()))
            .and_then(|it| register::trouble(it.trouble.as_ref()?.value))
            .map(Into::into),
        module: module_of(view, index),
        tx: assessment.tx.map(traffic::flow),
        rx: assessment.rx.map(traffic::flow),
        learning: link.and_then(|link| learning::of_link(view, link)),
        wait_ratio: wait_ratio(assessment),
        wait_saturated: assessment.is_wait_saturated(),
        tick_reported: assessment.wait.is_some_and(|wait| wait.tick_reported),
        congestion: assessment
            .role
            .map(|role| congestion(view, role, measured_at(view, assessment))),
    }
}

/// All ports of a node, each with the assessment of its link: of a plane, that of the plane.
pub fn ports_of(view: FabricView<'_>, node: NodeIndex) -> Vec<Port> {
    let fabric = &view.snapshot.fabric;
    let at_node = |port| fabric.port(port).node == node;
    let links: Vec<&LinkAssessment> = (view.assessment.links.iter())
        .flat_map(LinkAssessment::plane_links)
        .filter(|assessment| at_node(assessment.link.low) || at_node(assessment.link.high))
        .collect();
    let watched = fabric.ports_of(node).filter(|index| fabric.is_monitored(*index));
    let ports = watched.map(|index| {
        let is_its = |link: &&&LinkAssessment| link.link.low == index || link.link.high == index;
        port(view, index, links.iter().find(is_its).copied())
    });
    ports.collect()
}

fn congestion(view: FabricView<'_>, role: Role, measured_at: Option<String>) -> Congestion {
    let (role, root, cause) = match role {
        Role::Root(cause) => ("root", None, Some(cause.label().into())),
        Role::Victim { of: root } => ("victim", Some(view.port_name(root)), None),
    };
    Congestion { role: role.into(), root, cause, measured_at }
}

/// When the wait of a port was last measured, if it is not known now.
pub(crate) fn measured_at(view: FabricView<'_>, port: &PortAssessment) -> Option<String> {
    view.time(port.held_wait?.at)
}
