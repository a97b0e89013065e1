//! Work that may hang, waited for only so long.
//!
//! A read of sysfs can take as long as the device's firmware likes: mlx5 waits a minute for a command
//! that is not answered. So the work is done by a thread of its own, piece after piece; when a piece
//! takes too long its thread is left alone with it, and another one does the rest. A piece that is
//! done at last comes back, and its thread ends. There is one thread, and one more for each piece
//! that hangs.
//!
//! A piece at which the work panics comes back as such, and the thread goes on: a bug that one odd device
//! brings to light must cost neither the others nor, for ever, that device.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is to be done with a piece of work.
type Work<J, O> = Arc<dyn Fn(&mut J) -> O + Send + Sync>;

/// A piece of work, and what came of it.
pub(crate) type Done<J, O> = (J, Result<O, Panicked>);

/// The work panicked, with this message. What it worked on may be in any state.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Panicked(String);

impl From<Box<dyn Any + Send>> for Panicked {
    fn from(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Panicked(text.unwrap_or("a panic without a message").to_owned())
    }
}

/// Has work done; see the module.
pub struct Patience<J, O> {
    work: Work<J, O>,
    limit: Duration,
    worker: Option<Worker<J, O>>,
    /// Where pieces that took too long will come back.
    away: Vec<Receiver<Done<J, O>>>,
}

/// A thread, and the ways to and from it.
struct Worker<J, O> {
    queue: Queue<J>,
    wake: Sender<()>,
    done: Receiver<Done<J, O>>,
}

type Queue<J> = Arc<Mutex<VecDeque<J>>>;

impl<J: Send + 'static, O: Send + 'static> Patience<J, O> {
    /// Nobody waits longer than `limit` for a piece of it.
    pub fn new(limit: Duration, work: impl Fn(&mut J) -> O + Send + Sync + 'static) -> Self {
        Patience { work: Arc::new(work), limit, worker: None, away: Vec::new() }
    }

    /// Has all of it done, and returns what was done in time.
    pub fn run(&mut self, jobs: Vec<J>) -> Vec<Done<J, O>> {
        let mut done = Vec::with_capacity(jobs.len());
        let mut left = VecDeque::from(jobs);
        while !left.is_empty() {
            let Some(worker) = self.worker.take().or_else(|| Worker::start(&self.work)) else {
                // No thread is to be had: better here than not at all.
                done.extend(left.drain(..).map(|job| attempt(&self.work, job)));
                break;
            };
            let expected = left.len();
            worker.give(&mut left);
            let came = (0..expected)
                .map_while(|_| worker.done.recv_timeout(self.limit).map(|it| done.push(it)).ok());
            if came.count() == expected {
                self.worker = Some(worker);
            } else {
                // What it holds is lost for now.
                left = worker.take_back();
                self.away.push(worker.done);
            }
        }
        done
    }

    /// The pieces that were done after all, since the last time somebody asked.
    pub(crate) fn returned(&mut self) -> Vec<Done<J, O>> {
        let mut back = Vec::new();
        // It may have begun another piece before that was taken back, so all that comes is taken, for
        // as long as the thread lives.
        self.away.retain(|done| {
            loop {
                match done.try_recv() {
                    Ok(done) => back.push(done),
                    Err(error) => return error == TryRecvError::Empty,
                }
            }
        });
        back
    }
}

impl<J: Send + 'static, O: Send + 'static> Worker<J, O> {
    fn start(work: &Work<J, O>) -> Option<Self> {
        let queue = Queue::default();
        let (wake, woken) = mpsc::channel::<()>();
        let (tell, done) = mpsc::channel();
        let (work, jobs) = (Arc::clone(work), Arc::clone(&queue));
        let begun = std::thread::Builder::new().name("host-reader".into()).spawn(move || {
            while woken.recv().is_ok() {
                while let Some(job) = locked(&jobs, VecDeque::pop_front) {
                    if tell.send(attempt(&work, job)).is_err() {
                        return;
                    }
                }
            }
        });
        match begun {
            Ok(_) => Some(Worker { queue, wake, done }),
            Err(error) => {
                tracing::warn!(%error, "no thread to read devices on: one that hangs will hang all");
                None
            }
        }
    }

    fn give(&self, jobs: &mut VecDeque<J>) {
        locked(&self.queue, |queue| queue.append(jobs));
        // It listens for as long as it lives; if it died, nothing comes back, which is seen.
        let _ = self.wake.send(());
    }

    fn take_back(&self) -> VecDeque<J> {
        locked(&self.queue, std::mem::take)
    }
}

/// Does a piece of work. A piece that panicked is not worked on again, so nobody sees the state that it was
/// left in.
fn attempt<J, O>(work: &Work<J, O>, mut job: J) -> Done<J, O> {
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut job)));
    (job, outcome.map_err(Panicked::from))
}

fn locked<J, T>(queue: &Queue<J>, with: impl FnOnce(&mut VecDeque<J>) -> T) -> T {
    with(&mut queue.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(20);

    /// Doubles numbers, and waits for a word before each odd one.
    fn doubling(limit: Duration) -> (Patience<u32, u32>, Sender<()>) {
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let patience = Patience::new(limit, move |job: &mut u32| {
            if *job % 2 == 1 {
                let _ = may_go.lock().unwrap().recv();
            }
            *job * 2
        });
        (patience, go)
    }

    /// What was done, and those that panicked with their messages.
    fn told(done: Vec<Done<u32, u32>>) -> Vec<(u32, Result<u32, String>)> {
        done.into_iter().map(|(job, it)| (job, it.map_err(|panic| panic.to_string()))).collect()
    }

    #[test]
    fn all_is_done_in_order_while_nothing_hangs() {
        let (mut patience, _go) = doubling(LONG);
        for _ in 0..3 {
            assert_eq!(told(patience.run(vec![2, 4, 6])), [(2, Ok(4)), (4, Ok(8)), (6, Ok(12))]);
        }
        assert!(patience.returned().is_empty());
    }

    #[test]
    fn what_hangs_costs_itself_alone_and_comes_back() {
        let (mut patience, go) = doubling(SHORT);
        assert_eq!(told(patience.run(vec![2, 3, 4])), [(2, Ok(4)), (4, Ok(8))]);
        assert!(patience.returned().is_empty());
        assert_eq!(told(patience.run(vec![2, 4])), [(2, Ok(4)), (4, Ok(8))], "while one hangs");
        go.send(()).unwrap();
        let begun = std::time::Instant::now();
        let mut back = Vec::new();
        // Its thread ends, too.
        while !patience.away.is_empty() && begun.elapsed() < LONG {
            back.extend(told(patience.returned()));
            std::thread::yield_now();
        }
        assert_eq!(back, [(3, Ok(6))]);
        assert!(patience.away.is_empty());
    }

    #[test]
    fn a_piece_that_panics_comes_back_as_such_and_the_others_are_done() {
        let mut patience = Patience::new(LONG, |job: &mut u32| {
            assert!(*job != 3, "as planned");
            *job
        });
        for _ in 0..2 {
            let done = told(patience.run(vec![2, 3, 4]));
            assert_eq!(done, [(2, Ok(2)), (3, Err("as planned".to_owned())), (4, Ok(4))]);
        }
        assert!(patience.returned().is_empty() && patience.away.is_empty());
    }
}
