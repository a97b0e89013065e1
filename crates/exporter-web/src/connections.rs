//! The connections that there are, what each is doing, and which has to go.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::limits::Limits;

/// When all places are taken, who takes none of an answer for so long gives way, and who has not asked
/// yet after half of that: whoever means it has.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It was not asked by yet: the handshake, the first head.
    Greeting,
    /// The head of a further request comes in.
    Asking,
    /// Requests are answered.
    Answering,
    /// Nothing, after an answer.
    Resting,
}

#[derive(Debug)]
struct State {
    doing: Doing,
    since: Instant,
    /// The requests that are being answered, by their numbers.
    requests: BTreeMap<u64, Asked>,
    next: u64,
    /// Since when the client takes too little of what is written, and how much it took since.
    stuck: Option<(Instant, usize)>,
}

/// A request that is being answered.
#[derive(Debug)]
struct Asked {
    /// Until when all of the answer is to be taken, if it has to be in time.
    until: Option<Instant>,
    /// Since when there is more of the answer than is taken. A client of HTTP/2 can hold a single answer
    /// back (RFC 9113, 5.2): nothing is written then, and so nothing is stuck.
    offered: Option<Instant>,
}

impl State {
    /// Since when the client takes too little.
    fn untaken(&self) -> Option<Instant> {
        let offered = self.requests.values().filter_map(|asked| asked.offered);
        offered.chain(self.stuck.map(|(since, _)| since)).min()
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    state: Mutex<State>,
    least_taken: usize,
    gone: Notify,
}

impl Connection {
    fn new(now: Instant, least_taken: usize) -> Self {
        let state = State {
            doing: Doing::Greeting,
            since: now,
            requests: BTreeMap::new(),
            next: 0,
            stuck: None,
        };
        Connection { state: Mutex::new(state), least_taken, gone: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came in.
    pub fn heard(&self, now: Instant) {
        let mut state = self.state();
        if state.doing == Doing::Resting {
            (state.doing, state.since) = (Doing::Asking, now);
        }
    }

    /// The client took bytes.
    pub fn took(&self, bytes: usize) {
        let mut state = self.state();
        if let Some((_, taken)) = &mut state.stuck {
            *taken = taken.saturating_add(bytes);
            if *taken >= self.least_taken {
                state.stuck = None;
            }
        }
    }

    /// The client takes nothing for the moment.
    pub fn stuck(&self, now: Instant) {
        self.state().stuck.get_or_insert((now, 0));
    }

    /// The client has taken all.
    pub fn taken(&self) {
        self.state().stuck = None;
    }

    /// A request is to be answered; tells its number.
    fn begin(&self, now: Instant, whole: Duration) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.requests.insert(number, Asked { until: now.checked_add(whole), offered: None });
        (state.doing, state.since) = (Doing::Answering, now);
        number
    }

    /// More of its answer is there since then, or is not there yet.
    fn offer(&self, number: u64, since: Option<Instant>) {
        if let Some(asked) = self.state().requests.get_mut(&number) {
            asked.offered = since;
        }
    }

    /// It was answered.
    fn end(&self, number: u64, now: Instant) {
        let mut state = self.state();
        state.requests.remove(&number);
        if state.requests.is_empty() {
            (state.doing, state.since) = (Doing::Resting, now);
        }
    }

    /// Until it has to go.
    pub async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Why it has to go, if it has to.
    fn overdue(&self, now: Instant, limits: &Limits) -> Option<&'static str> {
        let state = self.state();
        let lasts = |since: Instant| now.saturating_duration_since(since);
        if state.untaken().is_some_and(|since| lasts(since) > limits.taking) {
            return Some("does not take its answer");
        }
        if state.requests.values().any(|asked| asked.until.is_some_and(|until| now > until)) {
            return Some("takes its answer too slowly");
        }
        match state.doing {
            Doing::Greeting | Doing::Asking if lasts(state.since) > limits.asking => {
                Some("asks too slowly")
            }
            Doing::Resting if lasts(state.since) > limits.resting => Some("rests"),
            _ => None,
        }
    }

    /// How soon it gives way to others, the least first, and since when; None if it stays.
    fn gives_way(&self, now: Instant) -> Option<(u8, Instant)> {
        let state = self.state();
        let lasts = |since: Instant| now.saturating_duration_since(since);
        if let Some(since) = state.untaken().filter(|since| lasts(*since) > PATIENCE) {
            return Some((1, since));
        }
        match state.doing {
            Doing::Greeting | Doing::Asking if lasts(state.since) > PATIENCE / 2 => {
                Some((0, state.since))
            }
            Doing::Resting => Some((2, state.since)),
            _ => None,
        }
    }
}

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    all: Mutex<HashMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    requests: AtomicU64,
    limits: Limits,
}

impl Connections {
    pub fn new(limits: Limits) -> Self {
        let all = Mutex::default();
        Connections { all, next: AtomicU64::new(0), requests: AtomicU64::new(0), limits }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// One more, in the place of another if all are taken; None if nobody gives way.
    pub fn open(self: &Arc<Self>, now: Instant) -> Option<Place> {
        let mut all = self.all();
        if all.len() >= self.limits.connections {
            let first = all
                .iter()
                .filter_map(|(id, connection)| Some((connection.gives_way(now)?, *id)))
                .min()?;
            if let Some(connection) = all.remove(&first.1) {
                connection.gone.notify_one();
            }
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new(now, self.limits.least_taken));
        all.insert(id, Arc::clone(&connection));
        Some(Place { id, connection, all: Arc::clone(self) })
    }

    /// Has those go that are overdue.
    pub fn look(&self, now: Instant) {
        let all = self.all();
        for connection in all.values() {
            if let Some(why) = connection.overdue(now, &self.limits) {
                tracing::debug!("a connection is closed: it {why}");
                connection.gone.notify_one();
            }
        }
    }

    /// One more request, which may take so long with all of its answer; None if there are too many.
    pub fn begin(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        now: Instant,
        whole: Duration,
    ) -> Option<Request> {
        if self.requests.fetch_add(1, Ordering::Relaxed) >= self.limits.requests as u64 {
            self.requests.fetch_sub(1, Ordering::Relaxed);
            self.hurry(now);
            return None;
        }
        let number = connection.begin(now, whole);
        Some(Request { connection: Arc::clone(connection), number, all: Arc::clone(self) })
    }

    /// Has the connection go whose client has taken nothing for the longest, so that there is room.
    pub fn hurry(&self, now: Instant) {
        let all = self.all();
        let of = |connection: &Arc<Connection>| connection.gives_way(now).filter(|way| way.0 == 1);
        let slowest = all.values().filter_map(|it| Some((of(it)?, it))).min_by_key(|it| it.0);
        if let Some((_, connection)) = slowest {
            connection.gone.notify_one();
        }
    }
}

/// A connection's place among all, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    pub connection: Arc<Connection>,
    all: Arc<Connections>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.all().remove(&self.id);
    }
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Request {
    connection: Arc<Connection>,
    number: u64,
    all: Arc<Connections>,
}

impl Request {
    /// The client has more of the answer to take since then; `None` while there is no more of it yet.
    pub fn offer(&self, since: Option<Instant>) {
        self.connection.offer(self.number, since);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.all.requests.fetch_sub(1, Ordering::Relaxed);
        self.connection.end(self.number, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn connections(most: usize, requests: usize) -> Arc<Connections> {
        Arc::new(Connections::new(Limits { connections: most, requests, ..Limits::default() }))
    }

    #[test]
    fn each_thing_takes_its_time_and_no_more() {
        let limits = Limits::default();
        let began = Instant::now();
        let all = connections(9, 9);
        let at = |seconds: f64| began + Duration::from_secs_f64(seconds);
        let place = all.open(began).unwrap();
        let connection = &place.connection;
        let overdue = |seconds| connection.overdue(at(seconds), &limits);
        assert_eq!([overdue(9.0), overdue(11.0)], [None, Some("asks too slowly")]);
        let request = connection.begin(at(5.0), limits.whole);
        assert_eq!([overdue(304.0), overdue(306.0)], [None, Some("takes its answer too slowly")]);
        // Stuck, and loose again once enough was taken.
        connection.stuck(at(10.0));
        connection.took(100);
        connection.stuck(at(39.0));
        assert_eq!([overdue(39.0), overdue(41.0)], [None, Some("does not take its answer")]);
        connection.took(limits.least_taken);
        assert_eq!(overdue(41.0), None);
        connection.end(request, at(50.0));
        assert_eq!([overdue(349.0), overdue(351.0)], [None, Some("rests")]);
        connection.heard(at(60.0));
        connection.heard(at(69.0));
        assert_eq!([overdue(69.0), overdue(71.0)], [None, Some("asks too slowly")]);
    }

    #[test]
    fn who_does_least_gives_way_first() {
        let began = Instant::now();
        let all = connections(4, 9);
        let [silent, stuck, resting, busy] = std::array::from_fn(|_| all.open(began).unwrap());
        let _answers = [&stuck, &busy].map(|it| all.begin(&it.connection, began, SECOND).unwrap());
        stuck.connection.stuck(began);
        resting.connection.end(resting.connection.begin(began, SECOND), began);
        let order = [silent.id, stuck.id, resting.id];
        for id in order {
            let place = all.open(began + 3 * SECOND).unwrap();
            assert!(!all.all().contains_key(&id), "{id} is the next to go");
            place.connection.begin(began, SECOND);
            // It stays, as it is busy.
            std::mem::forget(place);
        }
        assert!(all.open(began + 3 * SECOND).is_none(), "all are busy");
    }

    #[test]
    fn an_answer_that_is_held_back_is_no_better_for_others_by_the_same_connection() {
        let limits = Limits::default();
        let began = Instant::now();
        let all = connections(9, 9);
        let at = |seconds| began + seconds * SECOND;
        let place = all.open(began).unwrap();
        let overdue = |seconds| place.connection.overdue(at(seconds), &limits);
        let ask = |seconds| all.begin(&place.connection, at(seconds), limits.whole).unwrap();
        let (held, made) = (ask(0), ask(0));
        held.offer(Some(at(1)));
        made.offer(None);
        assert!(place.connection.gives_way(at(2)).is_none());
        assert_eq!(place.connection.gives_way(at(4)), Some((1, at(1))));
        drop(ask(20));
        assert_eq!([overdue(31), overdue(32)], [None, Some("does not take its answer")]);
        drop(held);
        // Nor is one that is taken in small pieces.
        made.offer(Some(at(290)));
        let _another = ask(290);
        assert_eq!([overdue(300), overdue(301)], [None, Some("takes its answer too slowly")]);
        drop(made);
        assert_eq!(overdue(301), None);
    }

    #[test]
    fn who_has_just_come_is_not_sent_away_for_the_next() {
        let began = Instant::now();
        let all = connections(1, 9);
        let _first = all.open(began).unwrap();
        assert!(all.open(began + SECOND / 2).is_none());
        assert!(all.open(began + 2 * SECOND).is_some());
    }

    #[test]
    fn a_request_too_many_is_not_begun() {
        let (now, all) = (Instant::now(), connections(9, 2));
        let place = all.open(now).unwrap();
        let begin = || all.begin(&place.connection, now, SECOND);
        let (first, _second) = (begin().unwrap(), begin().unwrap());
        assert!(begin().is_none() && begin().is_none());
        drop(first);
        assert!(begin().is_some());
    }
}
