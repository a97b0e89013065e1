//! Links by one or more sweeps of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::cli::daemon::{blank_observations, capturing_monitor, start_log};
use crate::cli::{Exit, Fatal};
use crate::config::{FabricSettings, Settings};
use fabric_observation::{Observation, SharedState};
use ib_mad::clock::Clock;
use ib_umad::umad::Umad;

/// The longest time of `--for`.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// Sweeps each fabric at least once, and until the duration is over.
pub fn sweep(settings: &Settings, duration: Duration) -> Result<Vec<Arc<Observation>>, Fatal> {
    start_log(settings.log_level, settings.log_format);
    let clock = Clock::start();
    let (board, seen) = watch::channel(SharedState::from(blank_observations(settings)));
    let (board, stop) = (Arc::new(board), Arc::new(AtomicBool::new(false)));
    let mut ready = Vec::new();
    for (fabric_index, fabric) in settings.fabrics.iter().enumerate() {
        let (_, wire) = Umad::open_first(
            &settings.sysfs,
            fabric.hca.as_deref(),
            fabric.port,
            fabric.p_key,
            clock,
        )
        .map_err(|error| Fatal::new(Exit::NoDevice, error))?;
        let fabric = for_single_run(fabric, duration);
        let monitor =
            capturing_monitor(&fabric, Arc::clone(&board), fabric_index, Arc::clone(&stop))?;
        ready.push((monitor, wire));
    }
    // Only the monitors hold it from now on: it closes with the last of them.
    drop(board);
    let threads: Vec<_> = ready
        .into_iter()
        .map(|(monitor, wire)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                monitor.run(wire, || {
                    // A daemon waits for its device to return; this run ends.
                    stop.store(true, Ordering::Relaxed);
                    Err::<Umad, _>("it is not waited for")
                });
            })
        })
        .collect();
    let swept = wait(seen, duration);
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        // A panic is on standard error; `swept` has the result.
        let _ = thread.join();
    }
    swept
}

/// The settings of a fabric for a single run. Counters are not cleared: their values would be lost
/// with this process, and be missing in the totals of a running exporter.
fn for_single_run(fabric: &FabricSettings, duration: Duration) -> FabricSettings {
    let interval = fabric.interval.min(longest_interval(duration));
    FabricSettings { interval, clear_saturated: false, ..fabric.clone() }
}

/// Events are found by comparing sweeps: there have to be several in this time.
fn longest_interval(duration: Duration) -> Duration {
    if duration.is_zero() { Duration::MAX } else { (duration / 4).max(Duration::from_secs(1)) }
}

/// Waits until each fabric was swept, and the time is over.
fn wait(
    mut seen: watch::Receiver<SharedState>,
    duration: Duration,
) -> Result<Vec<Arc<Observation>>, Fatal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Fatal::failed_to("cannot start the runtime"))?;
    runtime.block_on(async {
        // An instant has a maximum.
        let until = Instant::now() + duration.min(MAX_DURATION);
        let lost = |_| Fatal::failed("the device was lost, as the log says: run it again");
        seen.wait_for(is_swept).await.map_err(lost)?;
        while let Ok(news) = timeout_at(until, seen.changed()).await {
            news.map_err(lost)?;
        }
        Ok(seen.borrow().fabrics.clone())
    })
}

fn is_swept(board: &SharedState) -> bool {
    board.fabrics.iter().all(|observation| observation.stats.sweeps > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::{FabricOptions, Options};

    #[test]
    fn single_run_does_not_clear_counters() {
        let fabric = FabricOptions { clear_saturated: Some(true), ..FabricOptions::default() };
        let options = Options { fabric, ..Options::default() };
        let settings = Settings::load(options, None).unwrap();
        let fabric = &settings.fabrics[0];
        assert!(fabric.clear_saturated);
        assert!(!for_single_run(fabric, Duration::ZERO).clear_saturated);
        assert_eq!(for_single_run(fabric, Duration::ZERO).interval, fabric.interval);
        assert!(for_single_run(fabric, Duration::from_secs(8)).interval <= Duration::from_secs(2));
    }
}
