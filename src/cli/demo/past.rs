//! The past of a demo: before the first page the same monitors run on the simulated fabric, faster than time, and the
//! history records them with times of the last hours. Then they go on in real time from that state.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_sim::net::PortId;
use ib_sim::transport::{SharedSimulation, SimClock, SimTransport};
use ib_umad::plan::RunError;
use process_clock::Clock;

use super::own_host::SimulatedHost;
use crate::cli::daemon::{Daemon, ShutdownSignals};
use crate::exit::Fatal;
use crate::monitor::Monitor;
use crate::monitor::host::HostMonitor;

/// How long it is: the scenario `demo-past.yml` has its events.
pub const LENGTH: Duration = Duration::from_secs(150 * 60);

/// A fabric with more hosts has none: the first page would be late.
pub const MOST_HOSTS: u32 = 50;

/// The least time between two sweeps in the past. Plots of hours do not show more, and each sweep costs milliseconds.
const LEAST_INTERVAL: Duration = Duration::from_secs(15);

/// How often the devices of the own host are read in the past.
const HOST_INTERVAL: Duration = Duration::from_secs(30);

/// The fabric of a demo, and its host, in the past.
pub struct Past<'a> {
    pub simulation: SharedSimulation,
    pub port: PortId,
    /// The clock of the present: it is at [`LENGTH`] when the past is begun, and the past ends when it has caught up.
    pub clock: Clock,
    pub monitor: &'a mut Monitor,
    /// Between its sweeps.
    pub interval: Duration,
    pub host: Option<(&'a mut HostMonitor, SimulatedHost)>,
}

impl Past<'_> {
    /// Monitors and records it. False if a signal came meanwhile.
    pub fn record(
        mut self,
        daemon: &mut Daemon<'_>,
        signals: &mut ShutdownSignals,
    ) -> Result<bool, Fatal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Fatal::failed_to("cannot start a runtime"))?;
        let stop = daemon.stop.clone();
        // Dropped when the past is over, also by a panic, which the scope passes on.
        let (over, mut is_over) = tokio::sync::oneshot::channel::<Infallible>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _over = over;
                self.run(daemon);
            });
            let interrupted = runtime.block_on(async {
                tokio::select! {
                    _ = signals.recv() => true,
                    _ = &mut is_over => false,
                }
            });
            if interrupted {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(!interrupted)
        })
    }

    fn run(&mut self, daemon: &mut Daemon<'_>) {
        let states = daemon.states.clone();
        let mut recorder = daemon.recorder.as_mut();
        let start = self.clock.anchor().wall_of(Moment::default());
        let wall = |moment: Moment| -> SystemTime { start + moment.since(Moment::default()) };
        let (clock, host) = (self.clock, &mut self.host);
        let mut host_due = Moment::default();
        let transport = SimTransport::new(
            self.simulation.clone(),
            self.port,
            SimClock::Virtual { began: start },
        );
        let interval = self.interval.max(LEAST_INTERVAL);
        let ended = self.monitor.monitor_while(&mut { transport }, interval, |observation, now| {
            let at = wall(now);
            if let Some(recorder) = &mut recorder {
                recorder.record(&observation, at);
            }
            if let Some((monitor, devices)) = host
                && now >= host_due
            {
                host_due = now + HOST_INTERVAL;
                monitor.add(devices.at(Anchor { moment: now, wall: at }, || now));
                let state = states.borrow().clone();
                if let Some((recorder, host)) = recorder.as_mut().zip(state.host) {
                    recorder.record_host(&host, &state.fabrics, at);
                }
            }
            now + interval < clock.now()
        });
        if let Err(RunError::Transport(error)) = ended {
            tracing::warn!(%error, "the past of the demo was not recorded");
        }
    }
}
