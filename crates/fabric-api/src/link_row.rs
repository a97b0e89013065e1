//! A link with its assessment, and the models that are built from it.

use ib_fabric::aggregated_links::AggregatedLink;
use ib_fabric::hardware::PortHardware;
use ib_fabric::snapshot::WholeRate;
use ib_fabric::topology::Link as Cable;
use ib_fabric::{NodeIndex, NodeMap, PortIndex};
use ib_health::bit_errors::BerWindow;
use ib_health::{LinkAssessment, PortAssessment, Reason, Verdict, bit_errors, explain};
use ib_mad::counter::{CounterKind, CounterRow, LINK_ERRORS, TABLE};
use ib_mad::reading::CounterSet;
use ib_mad::register::text;
use ib_mad::{Counter, FrontPanel, Reading};

use crate::filter::Filter;
use crate::model::{
    BitErrors, End, Label, Learning, Link, LinkPlace, LinkReason, Severity, SuggestedRepair,
    Verdicts, WindowErrors,
};
use crate::{learning, model, planes};

use crate::view::FabricView;

impl<'a> FabricView<'a> {
    /// All links, each once: the planes of a link are one. While the device is away nothing is evaluated: the links are
    /// there without assessment.
    pub fn links(self) -> impl Iterator<Item = LinkRow<'a>> {
        let assessments = self.assessment.links.iter().map(Some).chain(std::iter::repeat(None));
        let links = self.snapshot.fabric.whole_links().zip(assessments);
        links.map(move |(cable, assessment)| LinkRow { view: self, cable, assessment })
    }

    fn reasons(&self, link: &LinkAssessment) -> Vec<LinkReason> {
        let reasons = worst_first(link).map(|(reason, verdict)| LinkReason {
            reason: reason.label().into(),
            verdict: verdict.label().into(),
            evidence: explain::reason(reason, link, self.assessment, self.snapshot),
        });
        reasons.collect()
    }

    pub(crate) fn end(&self, port: PortIndex) -> End {
        let fabric = &self.snapshot.fabric;
        let (node, reading) = (fabric.node_of(port), self.snapshot.reading(port));
        let default = PortAssessment::default();
        let assessment = self.port(port).unwrap_or(&default);
        let nonzero = error_rows().filter_map(|row| {
            let count = reading?.get(row.counter).filter(|count| *count > 0)?;
            Some((Label::Borrowed(row.metric), count))
        });
        let module = self.hardware(port).and_then(PortHardware::plugged);
        let known = |field: &[u8]| Some(text(field)).filter(|text| !text.is_empty());
        End {
            part_number: module.and_then(|module| known(&module.part_number)),
            serial_number: module.and_then(|module| known(&module.serial_number)),
            guid: node.identity.guid.to_string(),
            node: node.name.clone(),
            host: node.host.clone(),
            port: fabric.port(port).number,
            front_panel: fabric.front_panel(port).and_then(FrontPanel::label),
            node_type: node.identity.kind.label().into(),
            fec: self.snapshot.fec.get(port).copied().flatten().map(|fec| fec.label().into()),
            bit_errors: bit_errors(&assessment.bit_errors),
            counters: nonzero.collect(),
            saturated: names(assessment.counters.ever_saturated),
            wait_ratio: wait_ratio(assessment),
            wait_saturated: assessment.is_wait_saturated(),
        }
    }
}

/// The counters of errors, of link downs and of discards.
pub(crate) fn error_rows() -> impl Iterator<Item = &'static CounterRow> {
    TABLE.iter().filter(|row| {
        matches!(row.kind, CounterKind::Error | CounterKind::Link)
            || row.counter == Counter::XmitDiscards
    })
}

/// The reasons of a link with their weights, the heaviest first. The sort is stable: among equals the order of
/// the table decides, which lists first what to check first.
pub(crate) fn worst_first(link: &LinkAssessment) -> impl Iterator<Item = (Reason, Verdict)> {
    let mut reasons: Vec<_> = link.reasons.iter().collect();
    reasons.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    reasons.into_iter()
}

/// The share of time in which a port had data to send but sent none, if it is known.
pub(crate) fn wait_ratio(port: &PortAssessment) -> Option<f32> {
    port.wait.map(|wait| wait.share).filter(|share| share.is_finite())
}

/// The names of the metrics of some counters.
pub(crate) fn names(counters: CounterSet) -> Vec<Label> {
    let rows = TABLE.iter().filter(|row| counters.contains(row.counter));
    rows.map(|row| row.metric.into()).collect()
}

/// The measurements of the windows with data.
fn windows(errors: &bit_errors::BitErrors) -> impl Iterator<Item = WindowErrors> {
    let windows = BerWindow::ALL.into_iter().zip(errors.windows);
    let watched = windows.filter(|(_, measured)| !measured.span().is_zero());
    watched.map(|(window, measured)| WindowErrors {
        window: window.label().into(),
        errors: measured.errors,
        seconds: measured.seconds,
        ratio: errors.ratio(window).filter(|ratio| ratio.is_finite()),
    })
}

pub(crate) fn bit_errors(errors: &bit_errors::BitErrors) -> BitErrors {
    BitErrors {
        level: errors.level.label().into(),
        limit: Some(errors.limit).filter(|limit| *limit > 0.0 && limit.is_finite()),
        windows: windows(errors).collect(),
    }
}

/// A link with its assessment, before its model is built.
#[derive(Clone, Copy, Debug)]
pub struct LinkRow<'a> {
    /// Its fabric.
    pub view: FabricView<'a>,
    /// Its ends.
    pub cable: Cable,
    /// `None` while nothing is evaluated.
    pub assessment: Option<&'a LinkAssessment>,
}

impl<'a> LinkRow<'a> {
    /// Its model.
    pub fn link(&self) -> Link {
        let LinkRow { view, assessment, .. } = *self;
        let (whole, rate) = (self.whole(), self.rate());
        let outages = assessment.map(|link| link.outages).unwrap_or_default();
        Link {
            link: self.id(),
            fabric: view.name.to_owned(),
            verdict: self.verdict().label().into(),
            since: assessment.and_then(|link| view.time(link.since)),
            reasons: assessment.map(|link| view.reasons(link)).unwrap_or_default(),
            repair: assessment.and_then(|link| link.repair).map(|repair| SuggestedRepair {
                repair: repair.label().into(),
                description: repair.help().into(),
            }),
            up: assessment.and_then(|link| link.up),
            ends: self.ends(),
            rate: rate.bytes,
            speed: rate.speed.map(|speed| speed.label().into()),
            width: rate.width_label(),
            flaps: outages.flaps,
            down_seconds: outages.down.least.as_secs_f64(),
            down_max_seconds: outages.down.most.as_secs_f64(),
            last_change: outages.last_change.and_then(|last| view.time(last)),
            upstream: assessment
                .and_then(|link| link.upstream)
                .map(|port| view.snapshot.fabric.port_label(port)),
            learning: self.learning(),
            planes: whole.map_or_else(Vec::new, |it| planes::planes(view, it, assessment)),
            planes_source: whole.map(|whole| whole.source.label().into()),
        }
    }

    /// The models of its ends: of several planes, with what all of them counted.
    fn ends(&self) -> [End; 2] {
        let view = self.view;
        match self.whole() {
            None => self.cable.ports().map(|port| view.end(port)),
            Some(whole) => [0, 1]
                .map(|nth| planes::combined(planes::side(whole, nth).map(|port| view.end(port)))),
        }
    }

    /// What it is if it has several planes.
    pub fn whole(&self) -> Option<&'a AggregatedLink> {
        self.view.snapshot.fabric.aggregated_link(self.cable.low)
    }

    /// The links of the subnet that it is of: its planes, or itself.
    pub fn cables(&self) -> impl Iterator<Item = Cable> + use<'a> {
        let (whole, cable) = (self.whole(), self.cable);
        let own = whole.is_none().then_some(cable);
        let planes = whole.into_iter().flat_map(|whole| &whole.planes);
        own.into_iter().chain(planes.map(|plane| plane.link))
    }

    /// The ports of all its planes.
    pub fn all_ports(&self) -> impl Iterator<Item = PortIndex> + use<'a> {
        self.cables().flat_map(Cable::ports)
    }

    /// The pairs of nodes that it joins, each once: those of its planes.
    pub(crate) fn node_pairs(&self) -> impl Iterator<Item = [NodeIndex; 2]> + use<'a> {
        let (row, fabric) = (*self, &self.view.snapshot.fabric);
        let nodes = move |cable: Cable| cable.ports().map(|port| fabric.port(port).node);
        let pairs = row.cables().map(nodes).enumerate();
        let is_new = move |(nth, pair): &(usize, [NodeIndex; 2])| {
            !row.cables().take(*nth).any(|cable| nodes(cable) == *pair)
        };
        pairs.filter(is_new).map(|(_, pair)| pair)
    }

    /// The nodes at its ends, each once: each plane may be at a node of its own.
    pub fn nodes(&self) -> Vec<NodeIndex> {
        let fabric = &self.view.snapshot.fabric;
        let mut nodes: Vec<_> = self.all_ports().map(|port| fabric.port(port).node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Its id.
    pub fn id(&self) -> String {
        let id = self.view.snapshot.fabric.link_id(self.cable.low);
        id.map(|id| id.to_string()).unwrap_or_default()
    }

    /// Its verdict; that of a link without assessment is unknown.
    pub fn verdict(&self) -> Verdict {
        self.assessment.map_or(Verdict::Unknown, |link| link.verdict)
    }

    /// The heaviest reason of its verdict.
    pub fn first_reason(&self) -> Option<Reason> {
        worst_first(self.assessment?).next().map(|(reason, _)| reason)
    }

    /// How far it is, if it only lacks time of observation.
    pub fn learning(&self) -> Option<Learning> {
        learning::of_link(self.view, self.assessment?)
    }

    /// Its ends; of several planes, those of the lowest one.
    pub fn ports(&self) -> [PortIndex; 2] {
        self.cable.ports()
    }

    /// Its width and speed: of several planes, of all that are up.
    pub fn rate(&self) -> WholeRate {
        self.view.snapshot.link_rate(self.cable)
    }

    /// The link errors of both ends.
    pub fn errors(&self) -> u64 {
        self.readings().map(Reading::link_errors).fold(0, u64::saturating_add)
    }

    /// The same, if they were read, and whether they are a lower bound because a counter is or was saturated.
    pub fn counted_errors(&self) -> Option<(u64, bool)> {
        let is_saturated = |port: &PortAssessment| {
            let saturated = port.counters.ever_saturated;
            LINK_ERRORS.iter().any(|counter| saturated.contains(*counter))
        };
        let is_least =
            || self.all_ports().filter_map(|port| self.view.port(port)).any(is_saturated);
        let is_read = self.readings().any(Reading::has_link_errors);
        is_read.then(|| (self.errors(), is_least()))
    }

    fn readings(&self) -> impl Iterator<Item = &'a Reading> {
        let snapshot = self.view.snapshot;
        self.all_ports().filter_map(|port| snapshot.reading(port))
    }

    /// Whether one of its ends is at one of these nodes.
    pub fn is_at(&self, nodes: &NodeMap<bool>) -> bool {
        let fabric = &self.view.snapshot.fabric;
        self.all_ports().any(|port| nodes[fabric.port(port).node])
    }

    pub(crate) fn is_selected(&self, filter: &Filter, nodes: Option<&NodeMap<bool>>) -> bool {
        let has_reason =
            |reason| self.assessment.is_some_and(|link| link.reasons.weight(reason).is_some());
        let has_speed = |speed| self.rate().speed == Some(speed);
        let is_suspect =
            || model::is_suspect(self.verdict(), self.errors()) && !self.was_lost_as_expected();
        (filter.verdicts.is_empty() || filter.verdicts.contains(&self.verdict()))
            && filter.reason.is_none_or(has_reason)
            && filter.speed.is_none_or(has_speed)
            && nodes.is_none_or(|nodes| self.is_at(nodes))
            && (!filter.suspect || is_suspect())
    }

    /// Whether it is only suspect because of the link downs of a reboot or of announced maintenance.
    fn was_lost_as_expected(&self) -> bool {
        let Some(outages) = self.assessment.map(|link| link.outages) else { return false };
        let has_losses_only = |reading: &Reading| {
            reading.link_errors() == reading.get(Counter::LinkDowned).unwrap_or(0)
        };
        let is_expected = outages.flaps == 0 && outages.expected.iter().any(|count| *count > 0);
        self.verdict() == Verdict::Unknown && is_expected && self.readings().all(has_losses_only)
    }

    /// The severity of its model.
    pub(crate) fn severity(&self) -> Severity {
        let ends = self.all_ports().filter_map(|port| self.view.port(port));
        let ratios = ends.flat_map(|end| windows(&end.bit_errors)).filter_map(|it| it.ratio);
        model::severity(self.verdict(), ratios.fold(0.0, f64::max), self.errors())
    }

    pub(crate) fn place(&self) -> LinkPlace<'a> {
        let FabricView { name, snapshot, .. } = self.view;
        let fabric = &snapshot.fabric;
        (name, self.ports().map(|port| (&*fabric.node_of(port).name, fabric.port(port).number)))
    }
}

impl Verdicts {
    /// Counts one more link. Returns how far it is.
    pub(crate) fn add_link(&mut self, link: &LinkRow<'_>) -> Option<Learning> {
        let learning = link.learning();
        self.add(link.verdict());
        self.learning += usize::from(learning.is_some());
        learning
    }
}
