//! What ends the program: SIGTERM and SIGINT. Until they are caught they end it at once; from then on it has
//! the time to put things away.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Exit, Fatal};

/// The signals, caught.
#[derive(Debug)]
pub struct Ending {
    terminate: Signal,
    interrupt: Signal,
}

impl Ending {
    /// Catches them from now on. What is sent before anybody waits for it is kept.
    pub fn caught() -> Result<Self, Fatal> {
        let failed = |error| Fatal::new(Exit::Failed, format!("SIGTERM, SIGINT: {error}"));
        // They are caught for the whole process: any runtime that turns later hears of them, and this one
        // starts no thread.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(failed)?;
        let _within = runtime.enter();
        let catch = |kind| signal(kind).map_err(failed);
        Ok(Ending {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them, and says which it was.
    pub async fn told(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
