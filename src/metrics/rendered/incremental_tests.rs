//! What is rendered after a sweep is what a rendering of everything has, and no more is done for it than needed.

use super::tests::many;
use super::*;
use fabric_observation::Observation;
use ib_fabric::snapshot::{PortRead, SubnetManager};
use ib_fabric::testing::panel;
use ib_fabric::{NodeIndex, PortIndex};
use ib_health::Verdict;
use ib_health::congestion::{Level, Region, Wait};
use ib_health::testing::{over, saturated};
use ib_mad::smp::SmState;
use ib_mad::{Counter, Moment};
use proptest::prelude::*;

use crate::metrics::selection::Profile;

/// A change between two sweeps, of the port, node or link with this number.
#[derive(Clone, Copy, Debug)]
struct Change {
    what: u8,
    of: usize,
    value: u8,
}

fn changes() -> impl Strategy<Value = Change> {
    (0..17_u8, any::<usize>(), any::<u8>()).prop_map(|(what, of, value)| Change { what, of, value })
}

/// Another state, as the next sweep has it.
fn edited(before: &SharedState, edit: impl FnOnce(&mut Observation)) -> SharedState {
    let mut observation = (*before.fabrics[0]).clone();
    edit(&mut observation);
    vec![Arc::new(observation)].into()
}

fn apply(observation: &mut Observation, Change { what, of, value }: Change) {
    let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
    let ports: Vec<PortIndex> = snapshot.fabric.port_indexes().collect();
    let nodes: Vec<NodeIndex> = snapshot.fabric.node_indexes().collect();
    let (port, node) = (ports[of % ports.len()], nodes[of % nodes.len()]);
    let assessment = &mut observation.assessment;
    let links = assessment.links.len();
    let link = &mut assessment.links[of % links];
    let counter = Counter::all().nth(usize::from(value) % Counter::all().count()).unwrap();
    match what {
        0..4 => {
            if let Some(reading) = &mut snapshot.readings[port] {
                reading.set(counter, of as u64);
            }
        }
        4 => snapshot.readings[port] = None,
        5 => snapshot.statuses[port] = PortRead::Unknown,
        6 => snapshot.silent[node] ^= true,
        7 => {
            let (state, act_count) = (SmState::Master, of as u32);
            let manager = SubnetManager { port, state, priority: value, act_count };
            snapshot.managers = (value % 4 > 0).then(|| vec![manager]);
        }
        8 => link.verdict = if value % 2 == 0 { Verdict::Bad } else { Verdict::Ok },
        9 => link.outages.flaps += 1,
        10 => link.up = [None, Some(true), Some(false)][usize::from(value) % 3],
        11 => assessment.ports[port].bit_errors = over(value.into()),
        12 => assessment.ports[port].counters = saturated(counter, value % 2 == 0),
        13 => {
            let wait = Wait { share: f32::from(value) / 255.0, tick_reported: value % 2 == 0 };
            assessment.ports[port].wait = Some(wait);
        }
        14 => {
            assessment.in_maintenance.insert(node);
        }
        15 => {
            let fabric = Arc::make_mut(&mut snapshot.fabric);
            let key = fabric.port_key(port);
            Arc::make_mut(&mut fabric.front_panels).insert(key, panel(value, 1));
        }
        _ if value < 16 => observation.fabric.push('x'),
        _ => {
            let (level, since) = (Level::Medium, Moment(of as u64 % 1_000));
            let share = f32::from(value) / 255.0;
            assessment.regions =
                vec![Region { root: port, level, share, ports: 3, roots: 1, since }];
        }
    }
}

fn selection(shard: Option<(usize, usize)>) -> Selection {
    let shard = shard.map(|(index, count)| ("shard".to_owned(), format!("{index}/{count}")));
    // The exporter's own metrics say how long the rendering took.
    let groups = Group::ALL.into_iter().filter(|group| *group != Group::Exporter);
    let groups = groups.map(|group| ("collect[]".to_owned(), group.label().to_owned()));
    let pairs: Vec<_> = groups.chain(shard).collect();
    Selection::parse(&pairs, Profile::Full).unwrap()
}

fn text(metrics: &RenderedMetrics, shard: Option<(usize, usize)>, format: Format) -> String {
    let own = OwnMetrics::new(std::path::Path::new("/nowhere"));
    let document = metrics.document_at(SystemTime::UNIX_EPOCH, &selection(shard), format, &own);
    document.to_text().unwrap()
}

proptest! {
    // Each renders some sweeps twice.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn next_rendering_is_as_if_it_were_the_first(
        sweeps in prop::collection::vec(prop::collection::vec(changes(), 0..4), 1..6),
        power in 0..=3_u32,
    ) {
        let count = 2_usize.pow(power);
        let mut state = many();
        let mut metrics = RenderedMetrics::first(state.clone());
        text(&metrics, Some((0, count)), Format::Text);
        for sweep in sweeps {
            state = edited(&state, |it| sweep.into_iter().for_each(|change| apply(it, change)));
            metrics = metrics.next(state.clone());
            let fresh = RenderedMetrics::first(state.clone());
            for format in [Format::Text, Format::OpenMetrics] {
                for index in 0..count {
                    let of = |it| text(it, Some((index, count)), format);
                    prop_assert!(of(&metrics) == of(&fresh), "{index} of {count}");
                }
            }
            if count == 1 {
                prop_assert!(text(&metrics, None, Format::Text) == text(&fresh, None, Format::Text));
            }
        }
    }
}

#[test]
fn nothing_is_rendered_again_if_nothing_has_changed() {
    let metrics = RenderedMetrics::first(many());
    let whole = metrics.rendered();
    assert!(whole.chunks > 100 && whole.bytes > 100_000, "{whole:?}");
    let again = metrics.next(edited(&many(), |_| ()));
    assert_eq!(again.rendered(), Rendered::default());
    assert_eq!(text(&again, None, Format::Text), text(&metrics, None, Format::Text));
    // Nor if the host alone was read: then it is still the rendering of the last sweep.
    let same = again.next(again.state.clone());
    assert_eq!(same.rendered(), Rendered::default());
}

#[test]
fn what_is_rendered_again_is_as_little_as_what_has_changed() {
    let metrics = RenderedMetrics::first(many());
    let whole = metrics.rendered();
    let edit = |edit: fn(&mut Observation)| metrics.next(edited(&many(), edit)).rendered();
    let one_counter = edit(|it| {
        let snapshot = Arc::make_mut(it.snapshot.as_mut().unwrap());
        snapshot.readings[PortIndex(5)].as_mut().unwrap().set(Counter::XmitData, 8);
    });
    assert_eq!(one_counter.chunks, 1);
    assert!(one_counter.bytes * 100 < whole.bytes, "{one_counter:?} of {whole:?}");
    // Of one port of a hundred, all that it sends and receives.
    let traffic = edit(|it| {
        let snapshot = Arc::make_mut(it.snapshot.as_mut().unwrap());
        for reading in snapshot.readings.iter_mut().step_by(100).flatten() {
            reading.set(Counter::XmitData, 8);
            reading.set(Counter::RcvData, 8);
        }
    });
    assert!(traffic.bytes * 40 < whole.bytes, "{traffic:?} of {whole:?}");
    let verdict = edit(|it| it.assessment.links[3].verdict = Verdict::Bad);
    assert_eq!(verdict.chunks, 1);
    // The name of the fabric is in all of them.
    assert_eq!(edit(|it| it.fabric.push('x')).chunks, whole.chunks);
}
