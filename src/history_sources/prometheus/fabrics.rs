//! What fabrics and cables were like at a moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::time::{Duration, SystemTime};

use fabric_history::model::{Cable, Node, Port, Then, Window, time};
use fabric_history::source::AskError;
use ib_fabric::topology::{End, LinkId};
use ib_health::Verdict;

use super::client::{Client, Labels, Sample, range};
use super::cover::SWEPT;
use super::look::{Look, end_at, fabric, fabric_link, guid};
use super::matchers::{self, is, selector};

/// How far back a fabric is looked for that was not scraped at a moment: a little first.
const BEFORE: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(24 * 3600)];

/// The fabrics as they were; those that were not scraped for a day are left out.
pub(super) fn fabrics(client: &Client, at: SystemTime) -> Result<Vec<Then>, AskError> {
    let at = at.min(client.now()?);
    let mut last: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for before in BEFORE {
        let from = at.checked_sub(before).unwrap_or(SystemTime::UNIX_EPOCH);
        let window = Window { from, to: at };
        // Of those that were scraped just before, a day's samples are not wanted.
        let known = client
            .vector(&format!("max by (fabric) (last_over_time({SWEPT}{}))", range(window)), at)?;
        let missing = known.iter().filter_map(|sample| sample.labels.get("fabric"));
        let missing: Vec<&String> = missing.filter(|fabric| !last.contains_key(*fabric)).collect();
        for matchers in matchers::one_of("fabric", missing, 10) {
            for run in client.runs(&selector(SWEPT, &matchers), window)? {
                if let (Some(fabric), Some(&point)) = (fabric(&run.labels), run.points.last()) {
                    let latest = last.entry(fabric).or_insert(point);
                    if point.0 > latest.0 {
                        *latest = point;
                    }
                }
            }
        }
    }
    let told = last.into_iter().map(|(fabric, (scraped, swept))| {
        // What was there in the latest scrape is asked for as it was then: afterwards it is stale.
        let scraped = time::of_millis(scraped);
        let ask = |metric: &str, by: &str| {
            let of = selector(metric, &[is("fabric", &fabric)]);
            client.vector(&format!("max by (fabric, {by}) ({of})"), scraped)
        };
        let up = by_key(&ask("infiniband_node_up", "guid")?, guid);
        let infos = ask("infiniband_node_info", "guid, node, node_type")?;
        let node = |sample: &Sample| {
            let guid = guid(&sample.labels)?;
            let label = |name| sample.labels.get(name).cloned().unwrap_or_default();
            let up = up.get(&guid).is_some_and(|up| *up > 0.0);
            Some(Node { guid, name: label("node"), kind: label("node_type"), up })
        };
        let mut nodes: Vec<Node> = infos.iter().filter_map(node).collect();
        nodes.sort_by_key(|node| node.guid);
        nodes.dedup_by_key(|node| node.guid);
        let cables = put_together(
            &ask("infiniband_link_info", CABLE)?,
            &ask("infiniband_link_up", "link")?,
            &ask("infiniband_link_verdict", "link")?,
        );
        // The sweep that was scraped, unless clocks differ.
        let swept = Duration::try_from_secs_f64(swept).ok();
        let swept = swept.and_then(|swept| SystemTime::UNIX_EPOCH.checked_add(swept));
        let at = swept.map_or(scraped, |swept| swept.min(scraped));
        Ok(Then { fabric, at, nodes, cables })
    });
    told.collect()
}

/// What a cable's series says of it.
const CABLE: &str = "link, guid, port, node, peer_guid, peer_port, peer_node, speed, width";

/// The cables that led to some ports in a window.
pub(super) fn cables(look: &Look<'_>, ends: &[End]) -> Result<Vec<Cable>, AskError> {
    let ends: BTreeSet<End> = ends.iter().copied().collect();
    let mut links: BTreeSet<String> = BTreeSet::new();
    for (guid, port) in [("guid", "port"), ("peer_guid", "peer_port")] {
        for matchers in matchers::ports(&ends, 300) {
            let matchers = match guid {
                "guid" => matchers,
                _ => matchers.iter().map(|matcher| format!("peer_{matcher}")).collect(),
            };
            let of = selector("infiniband_link_info", &matchers);
            let query =
                format!("max by (link, {guid}, {port}) (last_over_time({of}{}))", look.range());
            let found = look.vector(&query)?;
            let is_wanted = |sample: &&Sample| {
                end_at(&sample.labels, guid, port).is_some_and(|end| ends.contains(&end))
            };
            links.extend(
                found
                    .iter()
                    .filter(is_wanted)
                    .filter_map(|sample| sample.labels.get("link").cloned()),
            );
        }
    }
    let (mut infos, mut ups, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    for matchers in matchers::one_of("link", &links, 300) {
        infos.extend(look.latest("infiniband_link_info", &matchers, "link")?);
        ups.extend(look.latest("infiniband_link_up", &matchers, "link")?);
        verdicts.extend(look.latest("infiniband_link_verdict", &matchers, "link")?);
    }
    Ok(put_together(&infos, &ups, &verdicts))
}

fn put_together(infos: &[Sample], ups: &[Sample], verdicts: &[Sample]) -> Vec<Cable> {
    let ups = by_key(ups, fabric_link);
    let verdicts = by_key(verdicts, fabric_link);
    let mut cables: BTreeMap<(String, LinkId), Cable> = BTreeMap::new();
    for info in infos {
        let labels = &info.labels;
        let (Some(key), Some(near), Some(far)) = (
            fabric_link(labels),
            port_at(labels, "guid", "port", "node"),
            port_at(labels, "peer_guid", "peer_port", "peer_node"),
        ) else {
            continue;
        };
        let mut ends = [near, far];
        ends.sort_by_key(Port::end);
        let up = ups.get(&key).map(|up| *up > 0.0);
        let verdict = verdicts.get(&key).map_or(Verdict::Unknown, |value| weight(*value));
        let rate = rate(labels).filter(|_| up != Some(false));
        let cable = Cable { ends, up, verdict, rate };
        // Of several exporters one may not know the rate.
        let known = cables.entry(key).or_insert_with(|| cable.clone());
        known.rate = known.rate.take().or(cable.rate);
    }
    let mut cables: Vec<Cable> = cables.into_values().collect();
    cables.sort_by_key(Cable::link);
    cables
}

/// What a cable runs at, as its labels have it.
pub(super) fn rate(labels: &Labels) -> Option<String> {
    Some(format!("{} {}", labels.get("width")?, labels.get("speed")?))
}

/// A verdict as metrics write it.
pub(super) fn weight(value: f64) -> Verdict {
    let is_it = |(place, _): &(usize, Verdict)| (*place as f64 - value).abs() < 0.5;
    let known = Verdict::ALL.into_iter().enumerate().find(is_it);
    known.map_or(Verdict::Unknown, |(_, verdict)| verdict)
}

fn port_at(labels: &Labels, guid: &str, port: &str, node: &str) -> Option<Port> {
    let (guid, port) = end_at(labels, guid, port)?;
    let node = labels.get(node).cloned().unwrap_or_else(|| guid.to_string());
    Some(Port { fabric: fabric(labels)?, guid, port, node })
}

/// The greatest value of each key.
fn by_key<K: Eq + Hash>(samples: &[Sample], key: impl Fn(&Labels) -> Option<K>) -> HashMap<K, f64> {
    let mut by = HashMap::new();
    for sample in samples {
        if let Some(key) = key(&sample.labels) {
            let value = by.entry(key).or_insert(sample.value);
            *value = value.max(sample.value);
        }
    }
    by
}
