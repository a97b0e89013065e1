//! A sweep of one's own, or some of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::cli::daemon::{capturing_monitor, start_log};
use crate::cli::{Exit, Fatal};
use crate::config::{FabricSettings, Settings};
use fabric_observation::{Observation, SharedState};
use ib_mad::clock::Clock;
use ib_umad::umad::Umad;

/// Longer than anybody watches.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Sweeps each fabric once, and then on for what is left of that time.
pub fn sweep(settings: &Settings, watch_for: Duration) -> Result<Vec<Arc<Observation>>, Fatal> {
    start_log(settings.log_level, settings.log_format);
    let clock = Clock::start();
    let blanks = settings.fabrics.iter().map(|fabric| {
        Arc::new(Observation { fabric: fabric.name.clone(), ..Observation::default() })
    });
    let (board, seen) = watch::channel(SharedState::from(blanks.collect::<Vec<_>>()));
    let (board, stop) = (Arc::new(board), Arc::new(AtomicBool::new(false)));
    let mut ready = Vec::new();
    for (slot, fabric) in settings.fabrics.iter().enumerate() {
        let (_, wire) = Umad::open_first(
            &settings.sysfs,
            fabric.hca.as_deref(),
            fabric.port,
            fabric.p_key,
            clock,
        )
        .map_err(|error| Fatal::new(Exit::NoDevice, error))?;
        let fabric = looked_at(fabric, watch_for);
        let monitor = capturing_monitor(&fabric, Arc::clone(&board), slot, Arc::clone(&stop))?;
        ready.push((monitor, wire));
    }
    // The monitors alone hold it from now on: when they have ended it closes.
    drop(board);
    let threads: Vec<_> = ready
        .into_iter()
        .map(|(monitor, wire)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                monitor.run(wire, || {
                    // A daemon waits for its device to come back; nobody waits here.
                    stop.store(true, Ordering::Relaxed);
                    Err::<Umad, _>("it is not waited for")
                });
            })
        })
        .collect();
    let swept = wait(seen, watch_for);
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        // One that panicked has said so; whether that matters, `swept` tells.
        let _ = thread.join();
    }
    swept
}

/// The settings of a fabric that is only looked at for so long. Nothing is cleared: the totals that what
/// was cleared would go into end with us, and an exporter that is running would miss it in its own.
fn looked_at(fabric: &FabricSettings, watch_for: Duration) -> FabricSettings {
    let interval = fabric.interval.min(longest_interval(watch_for));
    FabricSettings { interval, clear_saturated: false, ..fabric.clone() }
}

/// What happens is seen by comparing sweeps: there are to be some in the time that there is.
fn longest_interval(watch_for: Duration) -> Duration {
    if watch_for.is_zero() { Duration::MAX } else { (watch_for / 4).max(Duration::from_secs(1)) }
}

/// Waits until each fabric was swept, and the time is over.
fn wait(
    mut seen: watch::Receiver<SharedState>,
    watch_for: Duration,
) -> Result<Vec<Arc<Observation>>, Fatal> {
    let failed = |problem: String| Fatal::new(Exit::Failed, problem);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| failed(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async {
        // A clock has an end; nobody waits for so long.
        let until = Instant::now() + watch_for.min(LONGEST);
        let lost = |_| failed("the device was lost, as the log says: run it again".into());
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
    fn who_only_looks_clears_nothing() {
        let fabric = FabricOptions { clear_saturated: Some(true), ..FabricOptions::default() };
        let options = Options { fabric, ..Options::default() };
        let settings = Settings::load(options, None).unwrap();
        let fabric = &settings.fabrics[0];
        assert!(fabric.clear_saturated);
        assert!(!looked_at(fabric, Duration::ZERO).clear_saturated);
        assert_eq!(looked_at(fabric, Duration::ZERO).interval, fabric.interval);
        assert!(looked_at(fabric, Duration::from_secs(8)).interval <= Duration::from_secs(2));
    }
}
