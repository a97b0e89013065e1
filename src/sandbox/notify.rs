//! What systemd is told: that the program is ready, how it is, that it lives, that it ends.
//!
//! Nobody is told anything where no `$NOTIFY_SOCKET` asks for it.

use std::time::Duration;

use sd_notify::NotifyState;

use fabric_observation::Board;
use ib_umad::client::Heartbeat;

/// Within the time that systemd waits for a sign of life, so many are given.
const SIGNS: u32 = 3;

/// Scrapes are answered. What the first sweep finds is not waited for: on a fabric that is down it
/// would be late, and that is what is to be told of.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// It was told to end, and does.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// What `systemctl status` shows in one line.
pub fn status(board: &Board) {
    let fabrics = board.fabrics.iter().map(|fabric| {
        let ports = fabric.snapshot.iter().flat_map(|snapshot| &snapshot.readings).flatten();
        format!("{}: {} ports, {} sweeps", fabric.fabric, ports.count(), fabric.tally.sweeps)
    });
    let host = board.host.iter().map(|host| {
        let devices = host.snapshot.as_ref().map_or(0, |snapshot| snapshot.devices.len());
        format!("this host: {devices} devices, {} looks", host.looks)
    });
    let line = fabrics.chain(host).collect::<Vec<_>>().join("; ");
    tell(&[NotifyState::Status(&line)]);
}

/// Whether anybody wants to be told.
pub fn is_wanted() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Gives signs of life for as long as all that must turn does. `None` if nobody waits for them.
#[derive(Debug)]
pub struct Watchdog {
    interval: Duration,
    /// What must turn, and how far it was.
    pulses: Vec<(Heartbeat, u64)>,
}

impl Watchdog {
    /// One that feels these pulses, if systemd watches (`WatchdogSec=`).
    pub fn new(pulses: Vec<Heartbeat>) -> Option<Self> {
        let limit = sd_notify::watchdog_enabled()?;
        let pulses = pulses.into_iter().map(|pulse| (pulse, 0)).collect();
        Some(Watchdog { interval: limit / SIGNS, pulses })
    }

    /// How long to wait from one look to the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Gives a sign of life if each pulse has beaten since the last look. A loop that is late once is
    /// forgiven; one that stands still for as long as systemd waits is not.
    pub fn look(&mut self) {
        if self.all_beat() {
            tell(&[NotifyState::Watchdog]);
        } else {
            tracing::warn!(
                "a watch over a fabric stands still: the service manager is not told that all is well"
            );
        }
    }

    fn all_beat(&mut self) -> bool {
        self.pulses.iter_mut().fold(true, |all, (pulse, before)| {
            let now = pulse.ticks();
            let beat = now != std::mem::replace(before, now);
            all && beat
        })
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager cannot be told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pulse_that_stands_still_is_enough() {
        let pulses = [Heartbeat::default(), Heartbeat::default()];
        let felt = pulses.iter().map(|pulse| (pulse.clone(), 0)).collect();
        let mut watchdog = Watchdog { interval: Duration::from_secs(1), pulses: felt };
        assert!(!watchdog.all_beat(), "nothing has begun to turn");
        pulses.iter().for_each(Heartbeat::tick);
        assert!(watchdog.all_beat());
        pulses[0].tick();
        assert!(!watchdog.all_beat(), "the second stands still");
        pulses.iter().for_each(Heartbeat::tick);
        assert!(watchdog.all_beat(), "and is forgiven");
    }
}
