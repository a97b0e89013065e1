//! Work that may hang, waited for only so long.
//!
//! A read of sysfs can take as long as the device's firmware likes: mlx5 waits a minute for a command
//! that is not answered. So the work is done by a thread of its own, piece after piece; when a piece
//! takes too long its thread is left alone with it, and another one does the rest. A piece that is
//! done at last comes back, and its thread ends. There is one thread, and one more for each piece
//! that hangs.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is to be done with a piece of work.
type Work<J, O> = Arc<dyn Fn(&mut J) -> O + Send + Sync>;

/// Has work done; see the module.
pub(crate) struct Patience<J, O> {
    work: Work<J, O>,
    limit: Duration,
    worker: Option<Worker<J, O>>,
    /// Where pieces that took too long will come back.
    away: Vec<Receiver<(J, O)>>,
}

/// A thread, and the ways to and from it.
struct Worker<J, O> {
    queue: Queue<J>,
    wake: Sender<()>,
    done: Receiver<(J, O)>,
}

type Queue<J> = Arc<Mutex<VecDeque<J>>>;

impl<J: Send + 'static, O: Send + 'static> Patience<J, O> {
    /// Nobody waits longer than `limit` for a piece of it.
    pub(crate) fn new(limit: Duration, work: impl Fn(&mut J) -> O + Send + Sync + 'static) -> Self {
        Patience { work: Arc::new(work), limit, worker: None, away: Vec::new() }
    }

    /// Has all of it done, and returns what was done in time.
    pub(crate) fn run(&mut self, jobs: Vec<J>) -> Vec<(J, O)> {
        let mut done = Vec::with_capacity(jobs.len());
        let mut left = VecDeque::from(jobs);
        while !left.is_empty() {
            let Some(worker) = self.worker.take().or_else(|| Worker::start(&self.work)) else {
                // No thread is to be had: better here than not at all.
                let here = |mut job| {
                    let outcome = (self.work)(&mut job);
                    (job, outcome)
                };
                done.extend(left.drain(..).map(here));
                break;
            };
            let expected = left.len();
            worker.give(&mut left);
            let came = (0..expected)
                .map_while(|_| worker.done.recv_timeout(self.limit).map(|it| done.push(it)).ok());
            if came.count() == expected {
                self.worker = Some(worker);
            } else {
                // What it holds is lost for now. If its thread has died, for good.
                left = worker.take_back();
                self.away.push(worker.done);
            }
        }
        done
    }

    /// The pieces that were done after all, since the last time somebody asked.
    pub(crate) fn returned(&mut self) -> Vec<J> {
        let mut back = Vec::new();
        // It may have begun another piece before that was taken back, so all that comes is taken, for
        // as long as the thread lives.
        self.away.retain(|done| {
            loop {
                match done.try_recv() {
                    Ok((job, _)) => back.push(job),
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
                while let Some(mut job) = locked(&jobs, VecDeque::pop_front) {
                    let outcome = work(&mut job);
                    if tell.send((job, outcome)).is_err() {
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

    #[test]
    fn all_is_done_in_order_while_nothing_hangs() {
        let (mut patience, _go) = doubling(LONG);
        for _ in 0..3 {
            assert_eq!(patience.run(vec![2, 4, 6]), [(2, 4), (4, 8), (6, 12)]);
        }
        assert!(patience.returned().is_empty());
    }

    #[test]
    fn what_hangs_costs_itself_alone_and_comes_back() {
        let (mut patience, go) = doubling(SHORT);
        assert_eq!(patience.run(vec![2, 3, 4]), [(2, 4), (4, 8)]);
        assert!(patience.returned().is_empty());
        assert_eq!(patience.run(vec![2, 4]), [(2, 4), (4, 8)], "while one hangs");
        go.send(()).unwrap();
        let begun = std::time::Instant::now();
        let mut back = Vec::new();
        // Its thread ends, too.
        while !patience.away.is_empty() && begun.elapsed() < LONG {
            back.extend(patience.returned());
            std::thread::yield_now();
        }
        assert_eq!(back, [3]);
        assert!(patience.away.is_empty());
    }

    #[test]
    fn a_thread_that_dies_takes_its_piece_with_it_and_nothing_else() {
        let mut patience = Patience::new(LONG, |job: &mut u32| {
            assert_ne!(*job, 3, "as planned");
            *job
        });
        assert_eq!(patience.run(vec![2, 3, 4]), [(2, 2), (4, 4)]);
        assert!(patience.returned().is_empty() && patience.away.is_empty());
    }
}
