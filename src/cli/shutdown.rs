//! The end of the program: SIGTERM and SIGINT, or a thread that ends unexpectedly.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use super::{Exit, Fatal};

/// Handlers of SIGTERM and SIGINT. Until they are installed the signals end the program at once;
/// from then on it has time to clean up.
#[derive(Debug)]
pub struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    /// Installs the handlers. A signal before the first [`recv`](Self::recv) is kept.
    pub fn install() -> Result<Self, Fatal> {
        let failed = |error| Fatal::new(Exit::Failed, format!("SIGTERM, SIGINT: {error}"));
        // They are for the whole process: any later runtime receives them. This one starts no
        // thread.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(failed)?;
        let _within = runtime.enter();
        let handler = |kind| signal(kind).map_err(failed);
        Ok(ShutdownSignals {
            terminate: handler(SignalKind::terminate())?,
            interrupt: handler(SignalKind::interrupt())?,
        })
    }

    /// Waits for a signal, and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Reports the end of a thread or task that should not end, also by a panic.
pub(super) struct ExitGuard(pub(super) UnboundedSender<()>);

impl Drop for ExitGuard {
    fn drop(&mut self) {
        // Without a receiver the program is ending itself.
        let _ = self.0.send(());
    }
}
