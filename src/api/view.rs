//! The latest sweep of a fabric as models: what all routes have in common.

use std::time::{Duration, SystemTime};

use fabric_observation::Observation;
use ib_fabric::topology::Link as Cable;
use ib_fabric::{PortIndex, Snapshot};
use ib_health::bit_errors::BerWindow;
use ib_health::{
    Assessment, LinkAssessment, PortAssessment, Reason, Verdict, bit_errors, evidence,
};
use ib_mad::Moment;
use ib_mad::counter::{CounterKind, TABLE};
use ib_mad::moment::Anchor;
use ib_mad::port_state::PortStatus;

use super::model::{BitErrors, End, Label, Link, LinkReason, SuggestedRepair, WindowErrors};

/// A fabric after its first sweep: what the models are built from.
#[derive(Clone, Copy, Debug)]
pub struct FabricView<'a> {
    /// The fabric's name.
    pub name: &'a str,
    /// The latest sweep.
    pub snapshot: &'a Snapshot,
    /// The evaluation of that sweep.
    pub assessment: &'a Assessment,
}

impl<'a> FabricView<'a> {
    /// The view of an observation; `None` before the first sweep.
    pub fn new(observation: &'a Observation) -> Option<Self> {
        let (name, assessment) = (&*observation.fabric, &observation.assessment);
        Some(FabricView { name, snapshot: observation.snapshot.as_ref()?, assessment })
    }

    /// When the latest sweep ended.
    pub fn swept_at(self) -> Option<String> {
        self.time(self.snapshot.ended)
    }

    /// A link with its assessment.
    pub fn link(&self, cable: Cable, assessment: Option<&LinkAssessment>) -> Link {
        let Cable(near, far) = cable;
        let status = self.snapshot.status(near).or_else(|| self.snapshot.status(far));
        let id = self.snapshot.fabric.link_id(near).map(|id| id.to_string());
        let outages = assessment.map(|link| link.outages).unwrap_or_default();
        Link {
            link: id.unwrap_or_default(),
            fabric: self.name.to_owned(),
            verdict: assessment.map_or(Verdict::Unknown, |link| link.verdict).label().into(),
            since: assessment.and_then(|link| self.time(link.since)),
            reasons: assessment.map(|link| self.reasons(link)).unwrap_or_default(),
            repair: assessment.and_then(|link| link.repair).map(|repair| SuggestedRepair {
                repair: repair.label().into(),
                what: repair.help().into(),
            }),
            up: assessment.and_then(|link| link.up),
            ends: [self.end(near), self.end(far)],
            rate: status.and_then(PortStatus::rate),
            speed: status.and_then(|status| status.speed).map(|speed| speed.label().into()),
            width: status.and_then(|status| status.width).map(|width| width.label().into()),
            flaps: outages.flaps,
            down_seconds: outages.down.least.as_secs_f64(),
            down_max_seconds: outages.down.most.as_secs_f64(),
            last_change: outages.last_change.and_then(|last| self.time(last)),
            upstream: assessment
                .and_then(|link| link.upstream)
                .map(|port| evidence::port_label(self.snapshot, port)),
        }
    }

    fn reasons(&self, link: &LinkAssessment) -> Vec<LinkReason> {
        let reasons = worst_first(link).map(|(reason, weight)| LinkReason {
            reason: reason.label().into(),
            weight: weight.label().into(),
            evidence: evidence::describe(reason, link, self.assessment, self.snapshot),
        });
        reasons.collect()
    }

    fn end(&self, port: PortIndex) -> End {
        let fabric = &self.snapshot.fabric;
        let (node, reading) = (fabric.node_of(port), self.snapshot.reading(port));
        let default = PortAssessment::default();
        let assessment = self.assessment.ports.get(port.0 as usize).unwrap_or(&default);
        let errors = TABLE.iter().filter(|row| {
            matches!(row.kind, CounterKind::Error | CounterKind::Link) || row.counter.is_discard()
        });
        let nonzero = errors.filter_map(|row| {
            let count = reading?.get(row.counter).filter(|count| *count > 0)?;
            Some((Label::Borrowed(row.metric), count))
        });
        let saturated = TABLE.iter().filter(|row| assessment.counters.was_saturated(row.counter));
        End {
            guid: node.identity.guid.to_string(),
            node: node.name.clone(),
            port: fabric.port(port).number,
            node_type: node.identity.kind.label().into(),
            bit_errors: bit_errors(&assessment.bit_errors),
            counters: nonzero.collect(),
            saturated: saturated.map(|row| row.metric.into()).collect(),
            wait_ratio: assessment.wait.map(|wait| wait.share).filter(|share| share.is_finite()),
        }
    }

    /// A moment of the latest sweep as RFC 3339.
    pub fn time(&self, moment: Moment) -> Option<String> {
        rfc3339(&self.snapshot.anchor, moment)
    }
}

/// The reasons of a link with their weights, the heaviest first. The sort is stable: among equals the order of
/// the table decides, which lists first what to check first.
pub(super) fn worst_first(link: &LinkAssessment) -> impl Iterator<Item = (Reason, Verdict)> {
    let mut reasons: Vec<_> = link.reasons.iter().collect();
    reasons.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    reasons.into_iter()
}

/// A moment as RFC 3339; `None` if no calendar has it, by a clock that was never set.
pub(super) fn rfc3339(anchor: &Anchor, moment: Moment) -> Option<String> {
    const MAX: Duration = Duration::from_secs(250_000_000_000);
    let wall = anchor.wall_of(moment);
    let is_known = wall.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since < MAX);
    is_known.then(|| humantime::format_rfc3339_seconds(wall).to_string())
}

pub(super) fn bit_errors(errors: &bit_errors::BitErrors) -> BitErrors {
    let windows = BerWindow::ALL.into_iter().zip(errors.windows);
    let watched = windows.filter(|(_, measured)| !measured.span().is_zero());
    let windows = watched.map(|(window, measured)| WindowErrors {
        window: window.label().into(),
        errors: measured.errors,
        seconds: measured.seconds,
        ratio: errors.ratio(window).filter(|ratio| ratio.is_finite()),
    });
    BitErrors {
        judgement: errors.level.label().into(),
        limit: Some(errors.limit).filter(|limit| *limit > 0.0 && limit.is_finite()),
        windows: windows.collect(),
    }
}
