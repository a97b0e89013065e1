//! Runs jobs that may hang, each with a timeout.
//!
//! A read of sysfs can take as long as the device's firmware likes: mlx5 waits a minute for a command that
//! the firmware does not answer. So jobs run one after the other on a worker thread. When a job exceeds the
//! timeout, its thread is abandoned with it, and a new worker runs the jobs that are left. A job that ends
//! late is returned by [`TimeoutExecutor::late`], and its thread ends.
//!
//! A job that panics is returned with the panic message, and the worker continues: a bug that one unusual
//! device triggers must not stop the reading of other devices, nor of that device permanently.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Work<J, O> = Arc<dyn Fn(&mut J) -> O + Send + Sync>;

/// A job that ended, and its output. If the work panicked, its message; the job may be in any state then.
pub type Completed<J, O> = (J, Result<O, String>);

/// Runs jobs of one kind, each with a timeout; see the module.
pub struct TimeoutExecutor<J, O> {
    work: Work<J, O>,
    timeout: Duration,
    /// Where jobs that exceeded the timeout will be returned.
    abandoned: Vec<Receiver<Completed<J, O>>>,
}

type Queue<J> = Mutex<VecDeque<J>>;

impl<J: Send + 'static, O: Send + 'static> TimeoutExecutor<J, O> {
    /// Runs `work` on each job, and waits no longer than `timeout` for one of them.
    pub fn new(timeout: Duration, work: impl Fn(&mut J) -> O + Send + Sync + 'static) -> Self {
        TimeoutExecutor { work: Arc::new(work), timeout, abandoned: Vec::new() }
    }

    /// Runs all jobs, and returns those that ended in time.
    pub fn run(&mut self, jobs: Vec<J>) -> Vec<Completed<J, O>> {
        let mut completed = Vec::with_capacity(jobs.len());
        let mut pending = VecDeque::from(jobs);
        while !pending.is_empty() {
            let expected = completed.len() + pending.len();
            let queue = Arc::new(Mutex::new(std::mem::take(&mut pending)));
            let Some(worker) = start_worker(&self.work, &queue) else {
                // Without a thread the jobs run here, with no timeout.
                let jobs = with_queue(&queue, std::mem::take).into_iter();
                completed.extend(jobs.map(|job| run_job(&self.work, job)));
                break;
            };
            while completed.len() < expected {
                let Ok(job) = worker.recv_timeout(self.timeout) else { break };
                completed.push(job);
            }
            if completed.len() < expected {
                // All but the job that hangs.
                pending = with_queue(&queue, std::mem::take);
                self.abandoned.push(worker);
            }
        }
        completed
    }

    /// The jobs that exceeded the timeout and have ended since the last call.
    pub fn late(&mut self) -> Vec<Completed<J, O>> {
        let mut late = Vec::new();
        // A worker may have begun another job before the queue was taken from it.
        self.abandoned.retain(|worker| {
            loop {
                match worker.try_recv() {
                    Ok(job) => late.push(job),
                    Err(error) => return error == TryRecvError::Empty,
                }
            }
        });
        late
    }
}

/// Starts a thread that runs the jobs of a queue until it is empty.
fn start_worker<J: Send + 'static, O: Send + 'static>(
    work: &Work<J, O>,
    queue: &Arc<Queue<J>>,
) -> Option<Receiver<Completed<J, O>>> {
    let (sender, completed) = mpsc::channel();
    let (work, queue) = (Arc::clone(work), Arc::clone(queue));
    let run = move || {
        while let Some(job) = with_queue(&queue, VecDeque::pop_front) {
            if sender.send(run_job(&work, job)).is_err() {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("host-reader".into()).spawn(run).inspect_err(|error| {
        tracing::warn!(%error, "reader thread not started: a device that hangs will block all others");
    });
    started.is_ok().then_some(completed)
}

/// Runs a job. After a panic the job is not run again, so its broken state is not seen.
fn run_job<J, O>(work: &Work<J, O>, mut job: J) -> Completed<J, O> {
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut job)));
    let message = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        text.unwrap_or("a panic without a message").to_owned()
    };
    (job, outcome.map_err(message))
}

fn with_queue<J, T>(queue: &Queue<J>, act: impl FnOnce(&mut VecDeque<J>) -> T) -> T {
    act(&mut queue.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(20);

    /// Doubles numbers, and waits for a message before each odd one.
    fn doubling(timeout: Duration) -> (TimeoutExecutor<u32, u32>, Sender<()>) {
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let executor = TimeoutExecutor::new(timeout, move |job: &mut u32| {
            if *job % 2 == 1 {
                let _ = may_go.lock().unwrap().recv();
            }
            *job * 2
        });
        (executor, go)
    }

    #[test]
    fn jobs_are_done_in_order() {
        let (mut executor, _go) = doubling(LONG);
        for _ in 0..3 {
            let done = executor.run(vec![2, 4, 6]);
            assert_eq!(done, [(2, Ok(4)), (4, Ok(8)), (6, Ok(12))]);
        }
        assert!(executor.late().is_empty());
    }

    #[test]
    fn hanging_job_delays_no_other_and_returns_late() {
        let (mut executor, go) = doubling(SHORT);
        assert_eq!(executor.run(vec![2, 3, 4]), [(2, Ok(4)), (4, Ok(8))]);
        assert!(executor.late().is_empty());
        assert_eq!(executor.run(vec![2, 4]), [(2, Ok(4)), (4, Ok(8))], "while one hangs");
        go.send(()).unwrap();
        let began = std::time::Instant::now();
        let mut late = Vec::new();
        // Its thread ends, too.
        while !executor.abandoned.is_empty() && began.elapsed() < LONG {
            late.extend(executor.late());
            std::thread::yield_now();
        }
        assert_eq!(late, [(3, Ok(6))]);
        assert!(executor.abandoned.is_empty());
    }

    #[test]
    fn panicking_job_returns_its_message_and_others_are_done() {
        let mut executor = TimeoutExecutor::new(LONG, |job: &mut u32| {
            assert!(*job != 3, "as planned");
            *job
        });
        for _ in 0..2 {
            let done = executor.run(vec![2, 3, 4]);
            assert_eq!(done, [(2, Ok(2)), (3, Err("as planned".to_owned())), (4, Ok(4))]);
        }
        assert!(executor.late().is_empty() && executor.abandoned.is_empty());
    }
}
