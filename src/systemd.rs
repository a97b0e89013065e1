//! Notifications to systemd: ready, status, watchdog, stopping.
//!
//! Without `$NOTIFY_SOCKET` nothing is sent.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::watch;

use fabric_observation::SharedState;
use ib_umad::Heartbeat;

/// How many pings are sent within the timeout of the watchdog.
const PINGS_PER_TIMEOUT: u32 = 3;

/// The interval at which the status line is updated, if it has changed.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// The socket of the service manager, if there is one. It is connected before the sandbox is entered, which permits no
/// further sockets; `sd_notify::notify` would open one for each message.
#[derive(Clone, Debug)]
pub struct Notifier(Option<Arc<UnixDatagram>>);

impl Notifier {
    /// Connects to `$NOTIFY_SOCKET`. Logs why that failed.
    pub fn connect() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Notifier(None) };
        let connected = connect(name.as_bytes());
        let connected = connected.inspect_err(|error| {
            let socket = name.display();
            tracing::warn!(%socket, %error, "the service manager will not be notified");
        });
        Notifier(connected.ok().map(Arc::new))
    }

    /// Notifies the service manager, if there is one.
    pub fn notify(&self, state: &NotifyState<'_>) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(format!("{state}\n").as_bytes())
        {
            tracing::debug!(%error, "systemd notification failed");
        }
    }
}

/// Connects to a path, or to an abstract address: `@` stands for its first byte (sd_notify(3)).
fn connect(name: &[u8]) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(OsStr::from_bytes(name)),
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address?)?;
    // READY=1 must not be lost because the manager is busy, and no more than this is it worth waiting for.
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    Ok(socket)
}

/// Sends the status and the watchdog's pings, if a service manager requests them.
pub async fn keep_notified(
    notifier: Notifier,
    mut states: watch::Receiver<SharedState>,
    heartbeats: Vec<Heartbeat>,
) {
    if notifier.0.is_none() {
        return;
    }
    // `None` if systemd has no watchdog for the unit (`WatchdogSec=`).
    let watchdog = sd_notify::watchdog_enabled().map(|timeout| timeout / PINGS_PER_TIMEOUT);
    let interval = watchdog.unwrap_or(STATUS_INTERVAL);
    let mut loops: Vec<Loop> = heartbeats.into_iter().map(|heartbeat| (heartbeat, 0)).collect();
    // By then everything has had the time to start.
    let mut pings = tokio::time::interval_at(tokio::time::Instant::now() + interval, interval);
    let mut lines = tokio::time::interval(STATUS_INTERVAL);
    lines.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = pings.tick(), if watchdog.is_some() => ping(&notifier, &mut loops),
            _ = lines.tick() => if states.has_changed().unwrap_or(false) {
                let line = status(&states.borrow_and_update());
                notifier.notify(&NotifyState::Status(&line));
            },
        }
    }
}

/// The line that `systemctl status` shows.
fn status(state: &SharedState) -> String {
    let fabrics = state.fabrics.iter().map(|fabric| {
        let ports = fabric.snapshot.iter().flat_map(|snapshot| &snapshot.readings).flatten();
        format!("{}: {} ports, {} sweeps", fabric.fabric, ports.count(), fabric.stats.sweeps)
    });
    let host = state.host.iter().map(|host| {
        let devices = host.snapshot.as_ref().map_or(0, |snapshot| snapshot.devices.len());
        format!("this host: {devices} devices, {} reads", host.reads)
    });
    fabrics.chain(host).collect::<Vec<_>>().join("; ")
}

/// The heartbeat of a loop, and its count at the latest check.
type Loop = (Heartbeat, u64);

/// Pings the watchdog of systemd if each loop has run since the latest check. A loop that is late once does no
/// harm; one that hangs for the timeout of the watchdog restarts the process.
fn ping(notifier: &Notifier, loops: &mut [Loop]) {
    if all_running(loops) {
        notifier.notify(&NotifyState::Watchdog);
    } else {
        tracing::warn!("fabric monitor stalled; withholding the systemd watchdog ping");
    }
}

fn all_running(loops: &mut [Loop]) -> bool {
    loops.iter_mut().fold(true, |all, (heartbeat, before)| {
        let now = heartbeat.ticks();
        let is_running = now != std::mem::replace(before, now);
        all && is_running
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hanging_loop_withholds_the_ping() {
        let heartbeats = [Heartbeat::default(), Heartbeat::default()];
        let mut loops = heartbeats.each_ref().map(|heartbeat| (heartbeat.clone(), 0));
        assert!(!all_running(&mut loops), "no loop has run");
        heartbeats.iter().for_each(Heartbeat::tick);
        assert!(all_running(&mut loops));
        heartbeats[0].tick();
        assert!(!all_running(&mut loops), "the second hangs");
        heartbeats.iter().for_each(Heartbeat::tick);
        assert!(all_running(&mut loops), "it runs again");
    }
}
