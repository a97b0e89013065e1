//! Two exporters sweep one fabric, one every 15 s and one every 15 or 60 s, and a Prometheus that scrapes one of them
//! fails over to the other. Their totals have to agree, or `rate()` would take the lower one for a counter reset.
//!
//! Random stories: tools clear counters, the device reboots, narrow counters saturate or are cleared by an exporter,
//! MADs are lost, exporters restart with and without a history, and their clocks disagree. [`device`] is the port that
//! both read, [`exporter`] the evaluation and the API of the real exporter.

mod device;
mod exporter;
mod served;

use ib_sim::rng::Rng;

use device::{COUNTERS, Device};
use exporter::Exporter;

/// Seconds that a story lasts.
const LENGTH: u64 = 2 * 3600;

/// The scrape interval.
const SCRAPE: u64 = 15;

/// After this time without a scrape the Prometheus fails over: longer than the longer interval, so that the other
/// exporter has read everything since then.
const FAILOVER: u64 = 75;

/// How long after a reset the totals of both may differ: until the slower exporter reads the port, in its second sweep if
/// the first one is lost, with a response that the faster one gave after its next sweep.
const SETTLED: u64 = 2 * 60 + 2 * 15;

/// The samples of one counter in the deduplicated series.
#[derive(Clone, Copy, Default)]
struct Series {
    /// The latest sample, what the device had counted by then as far as exporters can know, and the first of these.
    latest: Option<(u64, u64)>,
    first: u64,
    /// There was no reset shortly before the latest sample.
    is_settled: bool,
    /// A total fell.
    fell: bool,
    /// What Prometheus computes as the increase.
    increase: u64,
}

/// What was found in stories.
#[derive(Clone, Debug, Default)]
struct Found {
    failovers: u32,
    samples: u32,
    /// Samples that are lower than the one before.
    falls: u32,
    /// The same, if the device was reset within [`SETTLED`] before either.
    unsettled_falls: u32,
    /// Totals above the true count.
    exceeded: u32,
    /// Counters without a fall, and those whose increase over the story differs by more than 1% from the true one.
    counters: u32,
    wrong: u32,
    /// The largest relative error of an increase.
    worst: f64,
    resets: u32,
    restarts: u32,
    lost: u32,
    saturated: u32,
    own_clears: u32,
}

impl Found {
    fn add(&mut self, other: &Found) {
        self.failovers += other.failovers;
        self.samples += other.samples;
        self.falls += other.falls;
        self.unsettled_falls += other.unsettled_falls;
        self.exceeded += other.exceeded;
        self.wrong += other.wrong;
        self.counters += other.counters;
        self.worst = self.worst.max(other.worst);
        self.resets += other.resets;
        self.restarts += other.restarts;
        self.lost += other.lost;
        self.saturated += other.saturated;
        self.own_clears += other.own_clears;
    }
}

/// Plays a story. `follow`: the exporters take over each other's totals.
fn play(seed: u64, follow: bool) -> Found {
    let mut rng = Rng::new(seed);
    let mut device = Device::new(&mut rng);
    let slower = [15, 60][rng.below(2) as usize];
    let clears = rng.below(4) == 0;
    // Two that clear would see each other's clears as resets.
    let mut exporters =
        [Exporter::new(0, 15, clears, &mut rng), Exporter::new(1, slower, false, &mut rng)];
    let mut found = Found::default();
    let mut series = [Series::default(); COUNTERS.len()];
    let (mut active, mut silent_since) = (0, None);
    // Not in the first minutes, which only one exporter may have seen.
    let reset_at: Vec<u64> = (0..rng.below(4)).map(|_| 300 + rng.below(LENGTH - 600)).collect();
    for now in 0..LENGTH {
        device.count(now, &mut rng);
        if reset_at.contains(&now) {
            device.reset(now, &mut rng);
            found.resets += 1;
        }
        // One restart at a time: what both forget is lost.
        if rng.below(3600) == 0 {
            let both_up = exporters.iter().all(|it| it.is_settled(now));
            if both_up {
                let nth = rng.below(2) as usize;
                exporters[nth].stop(now, &mut device, &mut rng);
                found.restarts += 1;
            }
        }
        if follow {
            let [one, other] = &mut exporters;
            one.request(now, other);
            other.request(now, one);
        }
        for exporter in &mut exporters {
            exporter.advance(now, &mut device, &mut rng, &mut found);
        }
        if now % SCRAPE != 0 {
            continue;
        }
        // The Prometheus of the active exporter may fail, too.
        let fails = rng.below(200) == 0;
        let is_settled = now >= device.readable_since() + SETTLED;
        if exporters[active].is_up(now) && !fails && silent_since.is_none() {
            sample(&exporters[active], &mut series, is_settled, &mut found);
            continue;
        }
        let since = *silent_since.get_or_insert(now);
        if now >= since + FAILOVER && exporters[1 - active].is_up(now) {
            (active, silent_since) = (1 - active, None);
            found.failovers += 1;
            sample(&exporters[active], &mut series, is_settled, &mut found);
        }
    }
    for it in series.iter().filter(|it| !it.fell) {
        let Some((_, counted)) = it.latest else { continue };
        let truth = counted - it.first;
        // Below that, a few events between two reads are more than 1%.
        if truth >= 10_000 {
            let error = (it.increase as f64 - truth as f64).abs() / truth as f64;
            found.worst = found.worst.max(error);
            found.wrong += u32::from(error > 0.01);
            found.counters += 1;
        }
    }
    found
}

/// Adds the samples of a scrape.
fn sample(exporter: &Exporter, series: &mut [Series], is_settled: bool, found: &mut Found) {
    for (nth, series) in series.iter_mut().enumerate() {
        // A counter that was not read has no sample.
        let Some((total, [counted, visible])) = exporter.total(nth) else { continue };
        found.samples += 1;
        found.exceeded += u32::from(total > counted);
        if let Some((last, _)) = series.latest {
            let fell = total < last;
            series.increase += if fell { total } else { total - last };
            series.fell |= fell;
            let both_settled = is_settled && series.is_settled;
            found.falls += u32::from(fell && both_settled);
            found.unsettled_falls += u32::from(fell && !both_settled);
        } else {
            series.first = visible;
        }
        (series.latest, series.is_settled) = (Some((total, visible)), is_settled);
    }
}

fn play_all(stories: u64, follow: bool) -> Found {
    let mut all = Found::default();
    (0..stories).for_each(|seed| all.add(&play(seed, follow)));
    println!("{all:?}");
    all
}

#[test]
fn totals_agree_at_failover() {
    let apart = play_all(100, false);
    assert!(apart.falls > 20, "without the exchange totals fall: {apart:?}");
    let found = play_all(1_000, true);
    assert!(found.failovers > 1_000 && found.resets > 1_000 && found.restarts > 500, "{found:?}");
    assert!(found.saturated > 100 && found.own_clears > 100 && found.lost > 1_000, "{found:?}");
    assert_eq!((found.falls, found.exceeded, found.wrong), (0, 0, 0), "{found:?}");
}
