//! A thread of its own for jobs that must not wait behind others: the pool of the runtime may be busy with responses.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, mpsc};

use tokio::sync::oneshot;

use super::locked::locked;

type Job = Box<dyn FnOnce() + Send>;

/// Runs one job after the other, on a thread that is started for the first one.
#[derive(Debug)]
pub(super) struct Lane {
    thread: &'static str,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Lane {
    /// A lane whose thread will have this name, of up to 15 bytes.
    pub fn new(thread: &'static str) -> Self {
        Lane { thread, jobs: Mutex::default() }
    }

    /// The result of a job; `None` if it panicked, or if the system starts no thread. A job that has begun is not
    /// aborted; one whose future was dropped before does not begin.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, result) = oneshot::channel();
        self.send(Box::new(move || {
            if !sender.is_closed() {
                let _ = sender.send(job());
            }
        }));
        result.await.ok()
    }

    /// Hands a job to the thread; drops it if there is none.
    fn send(&self, job: Job) {
        let mut jobs = locked(&self.jobs);
        let unsent = match &*jobs {
            Some(sender) => sender.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        let Some(job) = unsent else { return };
        let (sender, receiver) = mpsc::channel::<Job>();
        let run = move || {
            for job in receiver {
                // The panic was reported; those behind it are not lost. A job owns all that it changes.
                let _ = std::panic::catch_unwind(AssertUnwindSafe(job));
            }
        };
        match std::thread::Builder::new().name(self.thread.into()).spawn(run) {
            Ok(_) => {
                let _ = sender.send(job);
                *jobs = Some(sender);
            }
            Err(error) => tracing::error!(%error, thread = self.thread, "cannot start a thread"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lane_runs_jobs_after_a_panic_and_not_those_nobody_waits_for() {
        let lane = Lane::new("test");
        assert_eq!(lane.run(|| 1).await, Some(1));
        assert_eq!(lane.run(|| -> u8 { panic!("on purpose") }).await, None);
        assert_eq!(lane.run(|| 2).await, Some(2));
        // A job that holds the thread, and one behind it whose client leaves.
        let (open, gate) = mpsc::channel::<()>();
        let (told, tell) = mpsc::channel();
        let holding = lane.run(move || gate.recv().is_err());
        let mut holding = Box::pin(holding);
        let mut abandoned = Box::pin(lane.run(move || told.send(()).is_ok()));
        tokio::select! {
            biased;
            _ = &mut holding => panic!("it is held"),
            _ = &mut abandoned => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
        drop(abandoned);
        drop(open);
        holding.await;
        assert_eq!(lane.run(|| 3).await, Some(3));
        assert!(tell.recv().is_err(), "it must not run");
    }
}
