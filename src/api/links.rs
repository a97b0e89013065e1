//! `/api/v1/links`: what was found out about each cable, put together from a board.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

use fabric_history::query::Query;
use fabric_observation::Observation;
use ib_fabric::topology::Link as Cable;
use ib_fabric::{PortIndex, Snapshot};
use ib_health::bit_errors::Window;
use ib_health::{Findings, LinkFindings, PortFindings, Verdict, bit_errors, evidence};
use ib_mad::Moment;
use ib_mad::counter::{CounterKind, TABLE};
use ib_mad::moment::Anchor;
use ib_mad::port_state::PortStatus;

use super::model::{
    Because, BitErrors, End, FabricLinks, InWindow, Link, Links, ToTry, Verdicts, Word,
};

/// Which cables are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Those that are worth a look, and no others.
    pub suspect: bool,
    /// Those of this fabric.
    pub fabric: Option<String>,
}

impl Ask {
    /// Reads an address; the error names the parameter that is wrong.
    pub(super) fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        let query = Query::new(pairs, &["fabric", "suspect"])?;
        let fabric = query.optional("fabric")?.map(str::to_owned);
        Ok(Ask { suspect: query.flag("suspect")?, fabric })
    }
}

/// What is known of the cables that are asked for. No fabric may have the name that is.
pub fn links(fabrics: &[Arc<Observation>], ask: &Ask) -> Links {
    put_together(fabrics, ask, |cables| cables.told().collect())
}

/// The same as JSON. Made cable by cable: all of them at once would be more than the text is.
pub fn json(fabrics: &[Arc<Observation>], ask: &Ask) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&put_together(fabrics, ask, |cables| cables))
}

fn put_together<'a, L>(
    fabrics: &'a [Arc<Observation>],
    ask: &Ask,
    list: impl Fn(Cables<'a>) -> L,
) -> Links<L> {
    let wanted = |name: &str| ask.fabric.as_deref().is_none_or(|wanted| wanted == name);
    let fabrics = fabrics.iter().filter(|observation| wanted(&observation.fabric));
    let told = fabrics.map(|observation| {
        let cables = Cables { observation, suspect: ask.suspect };
        let mut verdicts = Verdicts::default();
        for (_, judged) in cables.all() {
            verdicts.add(judged.map_or(Verdict::Unknown, |link| link.verdict));
        }
        FabricLinks {
            fabric: observation.fabric.clone(),
            swept_at: cables.of().and_then(|of| of.time(of.snapshot.ended)),
            verdicts,
            links: list(cables),
        }
    });
    Links { fabrics: told.collect() }
}

/// All of a fabric's cables, with what was found out. A fabric that cannot be judged, its device being
/// away, has its cables all the same.
pub(super) fn all(
    observation: &Observation,
) -> impl Iterator<Item = (Cable, Option<&LinkFindings>)> {
    let cables = observation.snapshot.iter().flat_map(|snapshot| snapshot.fabric.links());
    let judged = observation.findings.links.iter().map(Some);
    cables.zip(judged.chain(std::iter::repeat(None)))
}

/// The cables of a fabric, or those of them that are suspect.
struct Cables<'a> {
    observation: &'a Observation,
    suspect: bool,
}

impl<'a> Cables<'a> {
    /// What they are told from, once there was a sweep.
    fn of(&self) -> Option<Of<'a>> {
        Of::new(self.observation)
    }

    fn all(&self) -> impl Iterator<Item = (Cable, Option<&'a LinkFindings>)> + use<'a> {
        all(self.observation)
    }

    fn told(&self) -> impl Iterator<Item = Link> + use<'a> {
        let (of, suspect) = (self.of(), self.suspect);
        self.all().filter_map(move |(cable, judged)| {
            let link = of.as_ref()?.link(cable, judged);
            (!suspect || link.is_suspect()).then_some(link)
        })
    }
}

impl Serialize for Cables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.told())
    }
}

/// What a fabric is told from.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// Its name.
    pub name: &'a str,
    /// The latest sweep.
    pub snapshot: &'a Snapshot,
    /// What that comes to.
    pub findings: &'a Findings,
}

impl<'a> Of<'a> {
    /// An observation, once there was a sweep.
    pub fn new(observation: &'a Observation) -> Option<Self> {
        let (name, findings) = (&*observation.fabric, &observation.findings);
        Some(Of { name, snapshot: observation.snapshot.as_ref()?, findings })
    }

    /// A cable, with what was found out about it.
    pub fn link(&self, cable: Cable, judged: Option<&LinkFindings>) -> Link {
        let Cable(near, far) = cable;
        let status = self.snapshot.status(near).or_else(|| self.snapshot.status(far));
        let id = self.snapshot.fabric.link_id(near).map(|id| id.to_string());
        let outages = judged.map(|link| link.outages).unwrap_or_default();
        Link {
            link: id.unwrap_or_default(),
            fabric: self.name.to_owned(),
            verdict: judged.map_or(Verdict::Unknown, |link| link.verdict).label().into(),
            since: judged.and_then(|link| self.time(link.since)),
            reasons: judged.map(|link| self.reasons(link)).unwrap_or_default(),
            repair: judged
                .and_then(|link| link.repair)
                .map(|repair| ToTry { repair: repair.label().into(), what: repair.help().into() }),
            up: judged.and_then(|link| link.up),
            ends: [self.end(near), self.end(far)],
            rate: status.and_then(PortStatus::rate),
            speed: status.and_then(|status| status.speed).map(|speed| speed.label().into()),
            width: status.and_then(|status| status.width).map(|width| width.label().into()),
            flaps: outages.flaps,
            down_seconds: outages.down.least.as_secs_f64(),
            down_max_seconds: outages.down.most.as_secs_f64(),
            last_change: outages.last_change.and_then(|last| self.time(last)),
            upstream: judged
                .and_then(|link| link.upstream)
                .map(|port| evidence::port_label(self.snapshot, port)),
        }
    }

    fn reasons(&self, link: &LinkFindings) -> Vec<Because> {
        let mut reasons: Vec<_> = link.reasons.iter().collect();
        // A stable sort: among equals the table's order, which is that of what to look at first.
        reasons.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let told = reasons.into_iter().map(|(reason, weight)| Because {
            reason: reason.label().into(),
            weight: weight.label().into(),
            evidence: evidence::of(reason, link, self.findings, self.snapshot),
        });
        told.collect()
    }

    fn end(&self, port: PortIndex) -> End {
        let fabric = &self.snapshot.fabric;
        let (node, reading) = (fabric.node_of(port), self.snapshot.reading(port));
        let nothing = PortFindings::default();
        let findings = self.findings.ports.get(port.0 as usize).unwrap_or(&nothing);
        let errors = TABLE.iter().filter(|row| {
            matches!(row.kind, CounterKind::Error | CounterKind::Link) || row.counter.is_discard()
        });
        let counted = errors.filter_map(|row| {
            let count = reading?.get(row.counter).filter(|count| *count > 0)?;
            Some((Word::Borrowed(row.metric), count))
        });
        let saturated = TABLE.iter().filter(|row| findings.counting.was_saturated(row.counter));
        End {
            guid: node.identity.guid.to_string(),
            node: node.name.clone(),
            port: fabric.port(port).number,
            node_type: node.identity.kind.label().into(),
            bit_errors: bit_errors(&findings.bit_errors),
            counters: counted.collect(),
            saturated: saturated.map(|row| row.metric.into()).collect(),
            wait_ratio: findings.wait.map(|wait| wait.share).filter(|share| share.is_finite()),
        }
    }

    /// A moment of it as people and JSON write it, if a calendar has it.
    pub fn time(&self, moment: Moment) -> Option<String> {
        time(&self.snapshot.anchor, moment)
    }
}

/// A moment as people and JSON write it. One that no calendar has, from a clock that was never set, is
/// not told.
pub(super) fn time(anchor: &Anchor, moment: Moment) -> Option<String> {
    const MOST: Duration = Duration::from_secs(250_000_000_000);
    let wall = anchor.wall_of(moment);
    let known = wall.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since < MOST);
    known.then(|| humantime::format_rfc3339_seconds(wall).to_string())
}

pub(super) fn bit_errors(errors: &bit_errors::BitErrors) -> BitErrors {
    let windows = Window::ALL.into_iter().zip(errors.windows);
    let watched = windows.filter(|(_, measured)| !measured.span().is_zero());
    let told = watched.map(|(window, measured)| InWindow {
        window: window.label().into(),
        errors: measured.errors,
        seconds: measured.seconds,
        ratio: errors.ratio(window).filter(|ratio| ratio.is_finite()),
    });
    BitErrors {
        judgement: errors.judgement.label().into(),
        limit: Some(errors.limit).filter(|limit| *limit > 0.0 && limit.is_finite()),
        windows: told.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_health::congestion::Wait;
    use ib_health::testing::{count, fine, over, port, saturated, snapshot};
    use ib_health::verdict::{Reason, Repair};
    use ib_mad::Counter;

    /// A small fabric whose first link is bad.
    fn observation() -> Observation {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        count(&mut snapshot, leaf, Counter::SymbolErrors, 65_535);
        count(&mut snapshot, leaf, Counter::LinkDowned, 0);
        count(&mut snapshot, leaf, Counter::XmitData, 7);
        let mut findings = fine(&snapshot);
        let of_leaf = &mut findings.ports[leaf.0 as usize];
        of_leaf.bit_errors = over(432);
        of_leaf.wait = Some(Wait { share: 0.5, tick_told: true });
        of_leaf.counting = saturated(Counter::SymbolErrors, false);
        let link = &mut findings.links[0];
        link.verdict = Verdict::Bad;
        link.reasons.add(Reason::TooShort, Verdict::Unknown);
        link.reasons.add(Reason::Flapping, Verdict::Bad);
        link.repair = Some(Repair::Reseat);
        link.outages.flaps = 3;
        link.outages.last_change = Some(snapshot.ended);
        link.upstream = Some(port(&snapshot, 1, 2));
        let fabric = "f".into();
        Observation { fabric, snapshot: Some(snapshot), findings, ..Observation::default() }
    }

    #[test]
    fn a_link_with_all_that_is_known_of_it() {
        let observations = [Arc::new(observation())];
        let told = links(&observations, &Ask::default());
        let [fabric] = &told.fabrics[..] else { panic!("one fabric") };
        assert_eq!(fabric.swept_at.as_deref(), Some("1970-01-01T00:16:40Z"));
        assert_eq!(fabric.verdicts, Verdicts { ok: 1, bad: 1, ..Verdicts::default() });
        let [bad, fine] = &fabric.links[..] else { panic!("two links") };
        assert_eq!((&*bad.verdict, &*fine.verdict), ("bad", "ok"));
        assert_eq!(bad.link, "0x0000000000000001:1-0x0000000000000002:1");
        assert_eq!(bad.since.as_deref(), Some("1970-01-01T00:01:40Z"));
        assert_eq!(bad.last_change.as_deref(), Some("1970-01-01T00:16:40Z"));
        let reasons: Vec<_> = bad.reasons.iter().map(|it| (&*it.reason, &*it.evidence)).collect();
        assert_eq!(reasons[0], ("flapping", "went down 3 times"), "the gravest first");
        assert_eq!(reasons[1].0, "too_short");
        assert_eq!(bad.repair.as_ref().unwrap().repair, "reseat");
        assert_eq!(bad.upstream.as_deref(), Some("leaf port 2"));
        assert_eq!((bad.speed.as_deref(), bad.width.as_deref()), (Some("EDR"), Some("4x")));
        assert_eq!((bad.rate, bad.up, bad.flaps), (Some(12_500_000_000), Some(true), 3));
        let leaf = &bad.ends[0];
        assert_eq!((leaf.label().as_str(), &*leaf.node_type), ("leaf port 1", "switch"));
        assert_eq!(leaf.counters.iter().collect::<Vec<_>>(), [(&"symbol_errors".into(), &65_535)]);
        assert_eq!(leaf.saturated, ["symbol_errors"]);
        assert_eq!((&*leaf.bit_errors.judgement, leaf.wait_ratio), ("over", Some(0.5)));
        let windows: Vec<_> = leaf.bit_errors.windows.iter().map(|it| &*it.window).collect();
        assert_eq!(windows, ["12m"]);
        assert_eq!(bad.ends[1].label(), "host-a port 1");
        let json = json(&observations, &Ask::default()).unwrap();
        assert_eq!(serde_json::from_slice::<Links>(&json).unwrap(), told);
    }

    #[test]
    fn what_was_not_asked_for_is_left_out_and_counted() {
        let other = Observation { fabric: "g".into(), ..Observation::default() };
        let observations = [Arc::new(observation()), Arc::new(other)];
        let told = links(&observations, &Ask { suspect: true, fabric: None });
        assert_eq!(told.fabrics.len(), 2);
        assert_eq!((told.fabrics[0].links.len(), told.fabrics[0].verdicts.ok), (1, 1));
        assert_eq!((told.fabrics[1].links.len(), &told.fabrics[1].swept_at), (0, &None));
        let told = links(&observations, &Ask { suspect: false, fabric: Some("g".into()) });
        assert_eq!(told.fabrics.len(), 1);
    }

    #[test]
    fn links_that_nobody_judged_are_unknown() {
        let observation = Observation { findings: Findings::default(), ..observation() };
        let told = links(&[Arc::new(observation)], &Ask::default());
        let fabric = &told.fabrics[0];
        assert_eq!((fabric.links.len(), fabric.verdicts.unknown), (2, 2));
        assert!(fabric.links.iter().all(|link| link.verdict == "unknown" && link.since.is_none()));
    }

    #[test]
    fn what_is_no_number_and_no_time_is_null() {
        let mut observation = observation();
        let leaf = port(observation.snapshot.as_ref().unwrap(), 1, 1);
        let of_leaf = &mut observation.findings.ports[leaf.0 as usize];
        of_leaf.wait = Some(Wait { share: f32::NAN, tick_told: true });
        of_leaf.bit_errors.limit = f32::INFINITY;
        observation.findings.links[0].since = Moment::NEVER;
        let anchor = &mut observation.snapshot.as_mut().unwrap().anchor;
        anchor.wall = SystemTime::UNIX_EPOCH - Duration::from_secs(1_000_000_000);
        let told = links(&[Arc::new(observation)], &Ask::default());
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<Links>(&text).unwrap(), told);
        let link = &told.fabrics[0].links[0];
        assert_eq!((link.ends[0].wait_ratio, link.ends[0].bit_errors.limit), (None, None));
        assert_eq!(told.fabrics[0].swept_at, None);
    }
}
