//! Reads that block, and what is logged.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::{Arc, Condvar, Mutex, Once};
use std::time::Duration;

use crate::model::HostSnapshot;
use crate::reader::{DeviceSource, HostReader};

/// Where reads wait, as in a kernel that does not return from them.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    is_closed: bool,
    waiting: usize,
}

impl Gate {
    pub fn close(&self) {
        self.0.0.lock().unwrap().is_closed = true;
    }

    pub fn open(&self) {
        self.0.0.lock().unwrap().is_closed = false;
        self.0.1.notify_all();
    }

    /// Waits while it is closed, and returns whether it was. `wait` is called before.
    pub fn pass(&self, wait: impl FnOnce()) -> bool {
        let mut state = self.0.0.lock().unwrap();
        if !state.is_closed {
            return false;
        }
        state.waiting += 1;
        self.0.1.notify_all();
        wait();
        let open = |state: &mut GateState| state.is_closed;
        state = self.0.1.wait_while(state, open).unwrap();
        state.waiting -= 1;
        true
    }

    pub fn wait_for(&self, waiting: usize) {
        let few = |state: &mut GateState| state.waiting < waiting;
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), few).unwrap());
    }
}

/// Reads until a condition is met.
pub fn read_until(
    host: &mut HostReader,
    condition: impl Fn(&HostSnapshot) -> bool,
) -> HostSnapshot {
    let began = std::time::Instant::now();
    loop {
        let snapshot = host.read();
        if condition(&snapshot) {
            return snapshot;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{snapshot:#?}");
        std::thread::yield_now();
    }
}

/// The log lines of this thread while `act` runs.
pub fn logged(act: impl FnOnce()) -> Vec<String> {
    LINES.set(Some(Vec::new()));
    act();
    LINES.take().unwrap_or_default()
}

thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Keeps the lines of threads that want them. It is one for all tests, set before any of them logs: a call site that
/// another thread registers at the same time may be lost.
pub struct Lines;

impl Lines {
    pub fn collect() {
        static SET: Once = Once::new();
        SET.call_once(|| tracing::subscriber::set_global_default(Lines).unwrap());
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            let _ = write!(line, "{field}={value:?} ");
        });
        LINES.with_borrow_mut(|lines| lines.iter_mut().for_each(|lines| lines.push(line.clone())));
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
