//! The metrics of each sweep, of which only what has changed is rendered, are those that a rendering of everything has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::{Duration, SystemTime};

use fabric_exporter::metrics::selection::{Group, Profile, Selection};
use fabric_exporter::metrics::{Format, OwnMetrics, RenderedMetrics};
use fabric_observation::SharedState;
use test_rig::Simulated;

/// The groups of fabrics: the exporter's own metrics say how long the rendering took.
fn selection(shard: Option<&str>) -> Selection {
    let groups = Group::ALL.into_iter().filter(|group| *group != Group::Exporter);
    let groups = groups.map(|group| ("collect[]".to_owned(), group.label().to_owned()));
    let shard = shard.map(|it| ("shard".to_owned(), it.to_owned()));
    Selection::parse(&groups.chain(shard).collect::<Vec<_>>(), Profile::Full).unwrap()
}

#[test]
fn sweeps_of_scenarios_have_the_metrics_of_a_first_rendering() {
    let own = OwnMetrics::new(Path::new("/nowhere"));
    let now = SystemTime::UNIX_EPOCH;
    let scenarios =
        ["bad-cable", "congestion", "flapping-link", "miswired", "modules", "switch-reboot"];
    for (index, name) in scenarios.into_iter().enumerate() {
        // A whole scrape after one of shards has the same samples by shards.
        let shards: &[_] = if index % 2 == 0 { &[None] } else { &[Some("0/2"), Some("1/2")] };
        let simulated = Simulated::library(name);
        let state = || vec![simulated.observation()].into();
        let mut metrics = RenderedMetrics::first(state());
        let (mut all, mut again) = (0, 0);
        for minute in 0..20 {
            simulated.run_for(Duration::from_secs(60));
            let swept: SharedState = state();
            metrics = metrics.next(swept.clone());
            let fresh = RenderedMetrics::first(swept);
            for &shard in shards {
                let of = |metrics: &RenderedMetrics| {
                    let selection = selection(shard);
                    metrics.document_at(now, &selection, Format::Text, &own).to_text().unwrap()
                };
                let (next, fresh) = (of(&metrics), of(&fresh));
                let different = next.lines().zip(fresh.lines()).find(|(a, b)| a != b);
                assert!(next == fresh, "{name}, minute {minute}, {shard:?}: {different:?}");
            }
            all += fresh.rendered().bytes;
            again += metrics.rendered().bytes;
        }
        // These fabrics have a chunk of each family: one port that changes has the others rendered with it.
        assert!(again * 2 < all, "{name}: {again} of {all} bytes");
    }
}
