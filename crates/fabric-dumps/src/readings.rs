//! Which readings belong to one dump: those that complete each other, and do not contradict each other.

use std::time::Duration;

use crate::format::Format;
use crate::remark::Remark;
use crate::source::{MAX_ZONE, Source};

/// Readings whose times differ by more belong to different dumps.
const MAX_SPREAD: Duration = Duration::from_secs(3600);

/// Two readings with the same values are two only if they are at least so far apart: else one is a copy.
const MIN_SPREAD: Duration = Duration::from_secs(60);

/// How a reading relates to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// They say different things of one fabric at one time.
    Completes,
    /// It is of another time.
    Other,
    /// It says the same.
    Copy,
}

/// The readings of each dump, in the order of the files.
pub fn dumps(readings: Vec<Source>) -> Vec<Vec<Source>> {
    let topologies = readings.iter().filter(|source| source.contents.is_topology).count();
    let mut dumps: Vec<Vec<Source>> = Vec::new();
    for source in readings {
        let mut copy_of = None;
        // Several dumps may lack what this reading has: it is of the one nearest in time.
        let mut nearest: Option<(Duration, usize)> = None;
        for (index, dump) in dumps.iter().enumerate() {
            let mut is_other = false;
            for known in dump {
                match relation(&source, known, topologies) {
                    Relation::Other => is_other = true,
                    Relation::Copy => copy_of = Some((index, known.path.clone())),
                    Relation::Completes => {}
                }
                if is_other {
                    break;
                }
            }
            let apart = dump.iter().map(|known| apart(&source, known)).min().unwrap_or_default();
            if !is_other && nearest.is_none_or(|(least, _)| apart < least) {
                nearest = Some((apart, index));
            }
        }
        match (copy_of, nearest) {
            (Some((index, path)), _) if path != source.path => {
                let what = format!("ignored: it says the same as {}", path.display());
                let remark = Remark { file: source.path, ..Remark::unused(0, what) };
                dumps[index][0].contents.remark(remark);
            }
            (_, Some((_, index))) => dumps[index].push(source),
            (_, None) => dumps.push(vec![source]),
        }
    }
    dumps
}

fn apart(one: &Source, two: &Source) -> Duration {
    let (one, two) = (one.time(), two.time());
    one.max(two).duration_since(one.min(two)).unwrap_or_default()
}

fn relation(source: &Source, known: &Source, topologies: usize) -> Relation {
    if source.folder != known.folder {
        return Relation::Other;
    }
    if source.path == known.path && source.format == known.format {
        return Relation::Other;
    }
    let apart = apart(source, known);
    // A time without a zone may be off.
    let is_zoneless =
        [source, known].iter().any(|it| it.contents.is_zoneless && it.own_time().is_some());
    let max_spread = if is_zoneless { MAX_SPREAD + MAX_ZONE } else { MAX_SPREAD };
    let (contents, other) = (&source.contents, &known.contents);
    // Which cable is where changes rarely, and the only topology is that of all readings.
    let is_timeless = |of: &Source| {
        of.format == Format::Cables
            || topologies == 1 && of.contents.is_topology && !of.contents.has_counters()
    };
    if apart > max_spread && !is_timeless(source) && !is_timeless(known) {
        return Relation::Other;
    }
    // Another tool says other things, or the same ones a moment later.
    if source.format != known.format {
        return Relation::Completes;
    }
    let (mut any, mut differs, mut is_same) = (false, false, true);
    for (name, port) in &contents.ports {
        let twin = other.ports.get(name).filter(|twin| !twin.counters.is_empty());
        let Some(twin) = twin.filter(|_| !port.counters.is_empty()) else { continue };
        let overlap = port.counters.overlap(&twin.counters);
        any |= overlap.any;
        differs |= overlap.differs;
        is_same &= overlap.is_same;
    }
    if differs {
        return Relation::Other;
    }
    // One of two reports lists nothing: the counters of the fabric were other ones.
    if contents.is_report && other.is_report && contents.has_counters() != other.has_counters() {
        return Relation::Other;
    }
    let is_twin = contents.ports.len() == other.ports.len()
        && contents.ports.keys().eq(other.ports.keys())
        && contents.links == other.links
        && contents
            .ports
            .values()
            .zip(other.ports.values())
            .all(|(a, b)| a.state == b.state && a.width == b.width && a.speed == b.speed);
    match (is_twin && is_same, apart >= MIN_SPREAD) {
        (true, true) => Relation::Other,
        (true, false) => Relation::Copy,
        (false, _) if contradict(source, known) => Relation::Other,
        (false, true) if any => Relation::Other,
        (false, _) => Relation::Completes,
    }
}

/// Whether a port has another state or rate in the other one of two topologies. Parts of a topology have the same.
fn contradict(source: &Source, known: &Source) -> bool {
    source.contents.ports.iter().any(|(name, port)| {
        let Some(other) = known.contents.ports.get(name) else { return false };
        let differs = port.width.zip(other.width).is_some_and(|(a, b)| a != b)
            || port.speed.zip(other.speed).is_some_and(|(a, b)| a != b)
            || port.state.zip(other.state).is_some_and(|(a, b)| a != b);
        source.contents.is_topology && differs
    })
}
