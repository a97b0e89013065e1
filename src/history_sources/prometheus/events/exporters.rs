//! Exporters that were started, and fabrics that could not be asked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::history_sources::prometheus::client::Labels;
use crate::history_sources::prometheus::cover::SWEPT;
use crate::history_sources::prometheus::look::{Look, fabric};
use crate::history_sources::prometheus::matchers;
use crate::history_sources::prometheus::timeline::{Timeline, changes, gap_of, timelines};
use fabric_history::Kind;
use fabric_history::event::About;
use fabric_history::model::time;
use fabric_history::source::AskError;

use super::Event;

/// Which of the things that are scraped it is.
fn target(labels: &Labels) -> (String, String) {
    let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
    (label("job"), label("instance"))
}

/// Processes that began in the window, of exporters that sweep fabrics.
pub(super) fn started(look: &Look<'_>) -> Result<Vec<Event>, AskError> {
    const STARTED: &str = "process_start_time_seconds";
    let range = look.range();
    let swept =
        look.vector(&format!("max by (job, instance, fabric) (last_over_time({SWEPT}{range}))"))?;
    let mut fabrics: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for sample in &swept {
        if let Some(fabric) = fabric(&sample.labels) {
            fabrics.entry(target(&sample.labels)).or_default().insert(fabric);
        }
    }
    let versions = look.vector(&format!(
        "max by (job, instance, version) (last_over_time(fabric_exporter_build_info{range}))"
    ))?;
    let instances = fabrics.keys().map(|(_, instance)| instance);
    let portions = matchers::one_of("instance", instances, look.at_once);
    let mut told: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut events = Vec::new();
    for run in look.runs(STARTED, &portions)? {
        let target = target(&run.labels);
        let Some(fabrics) = fabrics.get(&target) else { continue };
        let mut of = versions.iter().filter(|sample| self::target(&sample.labels) == target);
        // Of two, nobody knows which it was then.
        let version = match (of.next(), of.next()) {
            (Some(one), None) => one.labels.get("version"),
            _ => None,
        };
        let text = match version {
            Some(version) => format!("fabric-exporter {version}"),
            None => "fabric-exporter".into(),
        };
        for (_, started) in &run.points {
            #[expect(clippy::cast_sign_loss, reason = "what is before 1970 is 0, in no window")]
            let at = (started * 1000.0) as u64;
            for fabric in fabrics {
                if told.insert((fabric.clone(), at / 1000)) {
                    let start =
                        Event::new(at, fabric, Kind::ExporterStart, About::All, text.clone());
                    events.push(Event { detail: json!({"version": version}), ..start });
                }
            }
        }
    }
    Ok(events)
}

/// What an exporter says of itself: that none of its collectors brought anything in.
pub(super) fn failed(look: &Look<'_>) -> Result<Vec<Event>, AskError> {
    const SUCCESS: &str = "infiniband_collector_success";
    let changed = look.vector(&format!(
        "max by (fabric) (changes({SUCCESS}{{fabric!=\"\"}}{})) > 0",
        look.range()
    ))?;
    let named = changed.iter().filter_map(|sample| sample.labels.get("fabric"));
    let runs = look.runs(SUCCESS, &matchers::one_of("fabric", named, look.at_once))?;
    let seen = timelines(&runs, fabric, &["collector"], |samples| {
        Some(samples.iter().all(|(_, success)| *success <= 0.0))
    });
    let mut events = Vec::new();
    for (fabric, timeline) in seen {
        for (at, _, fails) in changes(&timeline) {
            let (kind, text) = if *fails {
                (Kind::SweepFailed, "nobody can be asked any more: what happens is not seen")
            } else {
                (Kind::SweepBack, "the fabric can be asked again")
            };
            events.push(Event::new(at, &fabric, kind, About::All, text));
        }
    }
    Ok(events)
}

/// Times without a scrape: whether the exporter was away or the Prometheus, no series says.
pub(super) fn unseen(look: &Look<'_>, scrapes: &BTreeMap<String, Timeline<f64>>) -> Vec<Event> {
    let mut events = Vec::new();
    for (fabric, timeline) in scrapes {
        let times: Vec<u64> = timeline.iter().map(|(at, _)| *at).collect();
        let most = gap_of(&times);
        let ends = times.iter().copied().chain([time::millis(look.window.to)]);
        let ends: Vec<u64> = ends.collect();
        for pair in ends.windows(2) {
            let [from, to] = pair else { continue };
            if to.saturating_sub(*from) <= most {
                continue;
            }
            let text = "no scrapes any more: the exporter was away, or who scrapes it";
            events.push(Event::new(*from, fabric, Kind::SweepFailed, About::All, text));
            if times.last() != Some(from) {
                let text = "there are scrapes again";
                events.push(Event::new(*to, fabric, Kind::SweepBack, About::All, text));
            }
        }
    }
    events
}
