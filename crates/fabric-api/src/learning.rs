//! How far links are from their first verdict. After a start most of them only lack time of observation, which is not
//! the same as an unknown state.

use ib_fabric::PortIndex;
use ib_health::bit_errors::{BitErrorLevel, BitErrors, ENOUGH};
use ib_health::{LinkAssessment, Reason, TRAINING, Verdict};
use ib_mad::Counter;

use crate::model::Learning;
use crate::view::FabricView;

impl Learning {
    /// Both: the time is that of the one with more left.
    pub(crate) fn and(self, other: Learning) -> Learning {
        let left = |it: &Learning| it.needed_seconds - it.observed_seconds;
        let last = if left(&other) > left(&self) { other } else { self };
        Learning {
            links: self.links + other.links,
            errors: self.errors.saturating_add(other.errors),
            ..last
        }
    }
}

/// How far a link is; `None` if it has a verdict, or if time alone will not give it one.
pub(crate) fn of_link(view: FabricView<'_>, assessment: &LinkAssessment) -> Option<Learning> {
    let lacks_time = |(reason, weight)| match reason {
        Reason::InsufficientData => true,
        _ => weight == Verdict::Ok,
    };
    let is_early = assessment.verdict == Verdict::Unknown
        && assessment.reasons.weight(Reason::InsufficientData).is_some()
        && assessment.reasons.iter().all(lacks_time);
    if !is_early {
        return None;
    }
    let mut sum: Option<Learning> = None;
    for port in assessment.ports() {
        let errors = &view.port(port)?.bit_errors;
        // Readings are large: of 60,000 ports, to read them all takes milliseconds.
        let has_windows = || errors.windows.iter().any(|window| window.seconds > 0.0);
        let reads = || view.snapshot.reading(port)?.get(Counter::SymbolErrors);
        if errors.level == BitErrorLevel::Unknown && (has_windows() || reads().is_some()) {
            let end = of_end(errors).or_else(|| of_training(view, port))?;
            sum = Some(sum.map_or(end, |sum| Learning { links: 1, ..sum.and(end) }));
        }
    }
    sum
}

/// A port whose link trains, at a rate that is known: what it receives does not count yet.
fn of_training(view: FabricView<'_>, port: PortIndex) -> Option<Learning> {
    let peer = view.snapshot.fabric.port(port).connected_peer();
    // A sweep queries one end of each link.
    let mut statuses = [Some(port), peer].into_iter().flatten().map(|it| view.snapshot.status(it));
    let runs = statuses.any(|status| {
        status.is_some_and(|it| it.link_up() && it.rate().is_some() && it.width.is_some())
    });
    let needed_seconds = TRAINING.as_secs_f64();
    runs.then_some(Learning { links: 1, observed_seconds: 0.0, needed_seconds, errors: 0 })
}

/// The same of one end; `None` while it trains, without a limit.
fn of_end(errors: &BitErrors) -> Option<Learning> {
    let needed = ENOUGH / (errors.bits_per_second * errors.limit);
    let windows = || errors.windows.iter();
    needed.is_finite().then(|| Learning {
        links: 1,
        observed_seconds: windows().map(|window| window.seconds).fold(0.0, f32::max).into(),
        needed_seconds: needed.into(),
        errors: windows().map(|window| window.errors).max().unwrap_or(0).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdicts;
    use fabric_observation::Observation;
    use ib_fabric::snapshot::PortRead;
    use ib_health::bit_errors::{BerWindow, Measurement};
    use ib_health::testing::{count, fine, port, snapshot};
    use ib_mad::port_state::PortStatus;
    use ib_mad::port_state::testing::up;
    use ib_mad::rate::{Speed, Width};

    /// Two links at 4x NDR that were observed for so many seconds, with so many errors at the first one.
    fn observed(seconds: [f32; 2], errors: u32) -> Observation {
        let mut snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        let ends = [(1, 1), (2, 1), (1, 2), (3, 1)].map(|(guid, it)| port(&snapshot, guid, it));
        for (nth, end) in ends.into_iter().enumerate() {
            count(&mut snapshot, end, Counter::SymbolErrors, 0);
            let found = &mut assessment.ports[end].bit_errors;
            (found.bits_per_second, found.limit) = (4e11, 1e-14);
            found.windows[BerWindow::Short as usize] = Measurement {
                errors: if nth == 0 { errors } else { 0 },
                seconds: seconds[nth / 2],
            };
        }
        for link in &mut assessment.links {
            link.verdict = Verdict::Unknown;
            link.reasons.add(Reason::InsufficientData, Verdict::Unknown);
            link.reasons.add(Reason::BelowCapability, Verdict::Ok);
        }
        Observation { snapshot: Some(snapshot.into()), assessment, ..Observation::default() }
    }

    /// All links of a fabric that only lack time.
    fn of_fabric(observation: &Observation) -> Option<Learning> {
        let (view, mut verdicts) = (FabricView::new(observation)?, Verdicts::default());
        let early: Vec<Learning> =
            view.links().filter_map(|link| verdicts.add_link(&link)).collect();
        assert_eq!(verdicts.learning, early.len());
        early.into_iter().reduce(Learning::and)
    }

    #[test]
    fn fabric_is_as_far_as_its_last_link() {
        let learning = of_fabric(&observed([300.0, 240.0], 2)).unwrap();
        assert_eq!((learning.links, learning.errors), (2, 2));
        assert!((learning.observed_seconds - 240.0).abs() < 0.1, "{learning:?}");
        assert!((learning.needed_seconds - 625.0).abs() < 0.1, "{learning:?}");
    }

    #[test]
    fn link_that_trains_is_learned_about() {
        let mut observation = observed([300.0; 2], 0);
        let snapshot = std::sync::Arc::make_mut(observation.snapshot.as_mut().unwrap());
        let ends = [(1, 1), (2, 1)].map(|(guid, it)| port(snapshot, guid, it));
        for end in ends {
            observation.assessment.ports[end].bit_errors = BitErrors::default();
            snapshot.statuses[end] = PortRead::Ok(PortStatus { width: None, ..up(1) });
        }
        assert_eq!(of_fabric(&observation).map(|it| it.links), Some(1), "without a known rate");
        // One end is queried.
        let status = PortStatus { width: Some(Width::X4), speed: Some(Speed::Ndr), ..up(1) };
        let snapshot = std::sync::Arc::make_mut(observation.snapshot.as_mut().unwrap());
        snapshot.statuses[ends[0]] = PortRead::Ok(status);
        let learning = of_fabric(&observation).unwrap();
        assert_eq!(learning.links, 2);
    }

    #[test]
    fn links_with_another_reason_do_not_learn() {
        let mut observation = observed([300.0; 2], 0);
        observation.assessment.links[0].reasons.add(Reason::CounterSaturated, Verdict::Unknown);
        observation.assessment.links[1].verdict = Verdict::Watch;
        assert_eq!(of_fabric(&observation), None);
        // A device that does not count symbol errors is not learned about, however long it is observed.
        let mut observation = observed([300.0; 2], 0);
        std::sync::Arc::make_mut(observation.snapshot.as_mut().unwrap()).readings.fill(None);
        for port in &mut observation.assessment.ports {
            port.bit_errors.windows = Default::default();
        }
        assert_eq!(of_fabric(&observation), None);
        assert_eq!(of_fabric(&Observation::default()), None);
    }
}
