//! Waiting for something slow, while the thread shows that it lives and can be stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ib_umad::Heartbeat;

use super::polled::PollError;

/// How often the flag is looked at.
const STEP: Duration = Duration::from_millis(100);

/// The flag that ends a monitor, and its heartbeat.
pub(super) struct Waiting<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) heartbeat: &'a Heartbeat,
}

/// What another thread does, and has not done yet.
pub(super) struct Pending<T>(Receiver<T>);

impl Waiting<'_> {
    fn step(&self) -> Result<(), PollError> {
        self.heartbeat.tick();
        if self.stop.load(Ordering::Relaxed) { Err(PollError::Stopped) } else { Ok(()) }
    }

    /// Waits for some time.
    pub(super) fn sleep(&self, time: Duration) -> Result<(), PollError> {
        let until = Instant::now() + time;
        loop {
            self.step()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    /// Waits for what another thread does, which is left alone if the monitor ends meanwhile.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PollError> {
        self.run_within(Duration::MAX, &mut None, work)
    }

    /// The same, at most for some time. Work that takes longer goes on, and the next call waits for it instead of doing
    /// its own: a file server that hangs would otherwise take a thread per poll.
    pub(super) fn run_within<T: Send + 'static>(
        &self,
        limit: Duration,
        pending: &mut Option<Pending<T>>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PollError> {
        let Pending(done) = match pending.take() {
            Some(pending) => pending,
            None => begin(work).map_err(PollError::Problem)?,
        };
        let began = Instant::now();
        loop {
            self.step()?;
            match done.recv_timeout(STEP) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) if began.elapsed() < limit => {}
                Err(RecvTimeoutError::Timeout) => {
                    *pending = Some(Pending(done));
                    let seconds = limit.as_secs();
                    return Err(PollError::Problem(format!(
                        "reading it takes more than {seconds} s: see whether its file system responds (NFS)"
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PollError::Problem(
                        "reading the source panicked: report the message in the log as a bug"
                            .into(),
                    ));
                }
            }
        }
    }
}

fn begin<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Pending<T>, String> {
    let (sender, done) = mpsc::sync_channel(1);
    let span = tracing::Span::current();
    let run = move || {
        let _ = sender.send(span.in_scope(work));
    };
    let thread = std::thread::Builder::new().name("poll".into()).spawn(run);
    thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(Pending(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_is_a_problem_and_is_waited_for_again() {
        let (stop, heartbeat) = (AtomicBool::new(false), Heartbeat::default());
        let waiting = Waiting { stop: &stop, heartbeat: &heartbeat };
        let (release, hangs) = mpsc::channel();
        let mut pending = None;
        let limit = Duration::from_millis(1);
        let problem = waiting.run_within(limit, &mut pending, move || hangs.recv().unwrap());
        let Err(PollError::Problem(problem)) = problem else { panic!("{problem:?}") };
        assert!(problem.contains("file system"), "{problem}");
        let again = waiting.run_within(limit, &mut pending, || panic!("a second thread"));
        assert!(again.is_err());
        release.send(7).unwrap();
        let found = waiting.run_within(Duration::MAX, &mut pending, || 8);
        assert_eq!(found, Ok(7));
        assert_eq!(waiting.run_within(Duration::MAX, &mut pending, || 8), Ok(8));
    }
}
