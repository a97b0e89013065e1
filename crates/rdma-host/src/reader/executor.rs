//! Runs jobs that may hang, and waits no longer for each than its owner wants to.
//!
//! A read of sysfs can take as long as the device's firmware likes: mlx5 waits a minute for a command that the
//! firmware does not answer. So jobs run one after the other on a worker thread, which then waits for the next ones.
//! When a job takes too long, its worker is left to it, and another worker runs the jobs that are left. A job that ends
//! late is returned by [`TimeoutExecutor::late`]; its worker waits for jobs again.
//!
//! A job that panics is returned with the panic message, and the worker continues: a bug that one unusual
//! device triggers must not stop the reading of other devices, nor of that device permanently.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many threads wait for jobs at most: one for all devices, and one for each that is slow.
const MAX_IDLE: usize = 8;

type Work<J, O> = Arc<dyn Fn(&mut J) -> O + Send + Sync>;

/// A job that ended, and its output. If the work panicked, its message; the job may be in any state then.
pub type Completed<J, O> = (J, Result<O, String>);

/// Runs jobs of one kind; see the module.
pub struct TimeoutExecutor<J, O> {
    work: Work<J, O>,
    timeout: Duration,
    /// Workers without jobs. They stay, because a new thread costs more than all else here.
    idle: Vec<Worker<J, O>>,
    /// Those whose job is not waited for.
    abandoned: Vec<Worker<J, O>>,
}

impl<J: Send + 'static, O: Send + 'static> TimeoutExecutor<J, O> {
    /// Runs `work` on each job. [`run`](Self::run) waits no longer than `timeout` for one of them.
    pub fn new(timeout: Duration, work: impl Fn(&mut J) -> O + Send + Sync + 'static) -> Self {
        TimeoutExecutor { work: Arc::new(work), timeout, idle: Vec::new(), abandoned: Vec::new() }
    }

    /// Runs all jobs, and returns those that ended in time.
    pub fn run(&mut self, jobs: Vec<J>) -> Vec<Completed<J, O>> {
        let timeout = self.timeout;
        self.run_while(jobs, |_, began| {
            Some(timeout.saturating_sub(began.elapsed())).filter(|rest| !rest.is_zero())
        })
    }

    /// Runs all jobs, and returns those that were waited for: `patience` gets the index of the job that runs and
    /// when it began, and returns how long to wait before it is asked again, or `None` to leave the job.
    pub(super) fn run_while(
        &mut self,
        jobs: Vec<J>,
        mut patience: impl FnMut(usize, Instant) -> Option<Duration>,
    ) -> Vec<Completed<J, O>> {
        let mut completed = Vec::with_capacity(jobs.len());
        let mut pending = VecDeque::from(jobs);
        let mut left = 0;
        while !pending.is_empty() {
            let Some(worker) = self.worker() else {
                // Without a thread the jobs run here, however long they take.
                completed.extend(pending.drain(..).map(|job| run_job(&self.work, job)));
                break;
            };
            let (first, count) = (completed.len() + left, pending.len());
            let mut queue = worker.0.queue();
            queue.pending.append(&mut pending);
            queue.began = Instant::now();
            worker.0.has_work.notify_one();
            let waits = loop {
                if queue.done.len() == count {
                    break false;
                }
                let Some(limit) = patience(first + queue.done.len(), queue.began) else {
                    break true;
                };
                let waited = worker.0.is_done.wait_timeout(queue, limit);
                (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            };
            completed.append(&mut queue.done);
            if waits {
                // All but the job that hangs; and that one, if its worker has not begun it.
                pending = std::mem::take(&mut queue.pending);
                left += usize::from(queue.is_running);
                drop(queue);
                self.abandoned.push(worker);
            } else {
                drop(queue);
                self.idle.push(worker);
            }
        }
        completed
    }

    /// Starts a job that is not waited for, on a thread of its own. Without a thread it is returned.
    pub(super) fn start(&mut self, job: J) -> Option<J> {
        let Some(worker) = self.worker() else { return Some(job) };
        worker.0.queue().pending.push_back(job);
        worker.0.has_work.notify_one();
        self.abandoned.push(worker);
        None
    }

    fn worker(&mut self) -> Option<Worker<J, O>> {
        self.idle.pop().or_else(|| Worker::start(&self.work))
    }

    /// The jobs that were not waited for and have ended since the last call.
    pub fn late(&mut self) -> Vec<Completed<J, O>> {
        let mut late = Vec::new();
        for worker in std::mem::take(&mut self.abandoned) {
            let mut queue = worker.0.queue();
            late.append(&mut queue.done);
            let is_busy = queue.is_running || !queue.pending.is_empty();
            drop(queue);
            if is_busy {
                self.abandoned.push(worker);
            } else if self.idle.len() < MAX_IDLE {
                self.idle.push(worker);
            } else {
                worker.retire();
            }
        }
        late
    }
}

impl<J, O> Drop for TimeoutExecutor<J, O> {
    fn drop(&mut self) {
        self.idle.iter().chain(&self.abandoned).for_each(Worker::retire);
    }
}

/// A thread, by the queue that it shares.
struct Worker<J, O>(Arc<Shared<J, O>>);

struct Shared<J, O> {
    queue: Mutex<Queue<J, O>>,
    has_work: Condvar,
    is_done: Condvar,
}

struct Queue<J, O> {
    pending: VecDeque<J>,
    is_running: bool,
    /// When the job began, or the queue was filled.
    began: Instant,
    done: Vec<Completed<J, O>>,
    /// The thread ends when the queue is empty.
    is_retired: bool,
}

impl<J, O> Shared<J, O> {
    fn queue(&self) -> MutexGuard<'_, Queue<J, O>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the jobs of the queue until it is retired.
    fn run(&self, work: &Work<J, O>) {
        let mut queue = self.queue();
        loop {
            if let Some(job) = queue.pending.pop_front() {
                (queue.is_running, queue.began) = (true, Instant::now());
                drop(queue);
                let completed = run_job(work, job);
                queue = self.queue();
                queue.done.push(completed);
                queue.is_running = false;
            } else if queue.is_retired {
                return;
            } else {
                // Once for all jobs.
                self.is_done.notify_one();
                queue = self.has_work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl<J, O> Worker<J, O> {
    fn retire(&self) {
        self.0.queue().is_retired = true;
        self.0.has_work.notify_one();
    }
}

impl<J: Send + 'static, O: Send + 'static> Worker<J, O> {
    fn start(work: &Work<J, O>) -> Option<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                pending: VecDeque::new(),
                is_running: false,
                began: Instant::now(),
                done: Vec::new(),
                is_retired: false,
            }),
            has_work: Condvar::new(),
            is_done: Condvar::new(),
        });
        let (work, its) = (Arc::clone(work), Arc::clone(&shared));
        let run = move || its.run(&work);
        let started = std::thread::Builder::new().name("host-reader".into()).spawn(run).inspect_err(|error| {
            tracing::warn!(%error, "reader thread not started: a device that hangs will block all others");
        });
        started.is_ok().then_some(Worker(shared))
    }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Sender};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

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

    /// Waits until no job is left, and returns those that ended.
    fn all_late(executor: &mut TimeoutExecutor<u32, u32>) -> Vec<Completed<u32, u32>> {
        let (began, mut late) = (Instant::now(), Vec::new());
        while !executor.abandoned.is_empty() && began.elapsed() < LONG {
            late.extend(executor.late());
            std::thread::yield_now();
        }
        assert!(executor.abandoned.is_empty());
        late
    }

    #[test]
    fn jobs_are_done_in_order_on_one_thread() {
        let (mut executor, _go) = doubling(LONG);
        for _ in 0..3 {
            let done = executor.run(vec![2, 4, 6]);
            assert_eq!(done, [(2, Ok(4)), (4, Ok(8)), (6, Ok(12))]);
        }
        let thread_of = |(): &mut ()| std::thread::current().id();
        let mut executor = TimeoutExecutor::new(LONG, thread_of);
        let threads: Vec<_> =
            (0..9).flat_map(|_| executor.run(vec![(), ()])).map(|((), id)| id.unwrap()).collect();
        assert!(threads.iter().all(|id| *id == threads[0]), "{threads:?}");
        assert!(executor.late().is_empty());
    }

    #[test]
    fn hanging_job_delays_no_other_and_returns_late() {
        let (mut executor, go) = doubling(Duration::from_millis(20));
        // The job that hangs is the one that is left, however long the others take.
        let leave_odd = |jobs: &'static [u32]| {
            move |index: usize, _| jobs[index].is_multiple_of(2).then_some(Duration::from_millis(1))
        };
        let run = |executor: &mut TimeoutExecutor<u32, u32>, jobs: &'static [u32]| {
            executor.run_while(jobs.to_vec(), leave_odd(jobs))
        };
        let done = run(&mut executor, &[2, 3, 4]);
        assert_eq!(done, [(2, Ok(4)), (4, Ok(8))]);
        assert!(executor.late().is_empty());
        assert_eq!(run(&mut executor, &[2, 4]), [(2, Ok(4)), (4, Ok(8))], "while one hangs");
        assert_eq!(executor.run(vec![5]), [], "nor is it waited for");
        go.send(()).and_then(|()| go.send(())).unwrap();
        let mut late = all_late(&mut executor);
        late.sort_unstable();
        assert_eq!(late, [(3, Ok(6)), (5, Ok(10))]);
    }

    #[test]
    fn job_in_background_is_not_waited_for() {
        let (mut executor, go) = doubling(LONG);
        assert_eq!(executor.start(3), None);
        assert_eq!(executor.run(vec![2]), [(2, Ok(4))]);
        go.send(()).unwrap();
        assert_eq!(all_late(&mut executor), [(3, Ok(6))]);
    }

    #[test]
    fn worker_whose_job_ended_late_is_used_again() {
        let mut executor = TimeoutExecutor::new(LONG, |(): &mut ()| std::thread::current().id());
        let mut threads = std::collections::HashSet::new();
        for _ in 0..20 {
            assert_eq!(executor.start(()), None);
            let began = Instant::now();
            while !executor.abandoned.is_empty() && began.elapsed() < LONG {
                threads.extend(executor.late().into_iter().map(|((), id)| id.unwrap()));
            }
        }
        assert_eq!(threads.len(), 1);
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
