//! How much is done for clients, and for how long: none of them, and not all of them together, keep the
//! exporter from its work.

use std::time::Duration;

/// The limits of a server. What a site has to scrape with is far below them, so they are no settings.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. A site has a few Prometheuses and some browsers; each connection that does
    /// nothing takes some 20 kB, with TLS 50.
    pub connections: usize,
    /// Requests that are being answered at once. One whose client does not read holds 128 kB of plain text
    /// and as much again on its way out, beside what all share.
    pub requests: usize,
    /// Of these, such that are made for who asks: each is all that is known as JSON, some 40 MB for 60,000
    /// ports, until it is taken.
    pub made: usize,
    /// How long a handshake and the first request may take to come in, and the head of each further one.
    /// curl takes milliseconds; across the world it is a second.
    pub asking: Duration,
    /// How long a connection rests that nobody asks by: two of the longest usual scrape intervals.
    pub resting: Duration,
    /// In so long a client has to take [`Limits::least_taken`] of an answer, or all of it.
    pub taking: Duration,
    /// 2 kB/s with 30 s: slower than any line a Prometheus scrapes by.
    pub least_taken: usize,
    /// In so long a client has to take all of an answer, but for a copy: until it has, what was served then
    /// is kept. A scrape has its interval at the most.
    pub whole: Duration,
    /// How long it may take until an answer begins: as long as our own clients wait for one.
    pub answering: Duration,
    /// The same for answers of [`Limits::slow_paths`], which are made first and may be large.
    pub copying: Duration,
    /// The paths of such answers.
    pub slow_paths: &'static [&'static str],
    /// The bytes of a request's head. Cookies of others on the same host come along; servers usually
    /// take 8 to 64 kB. A connection reads twice as much at the most.
    pub head: usize,
    /// The bytes of a request's body. Nothing that is served here takes any.
    pub body: u64,
    /// Requests at once by one connection of HTTP/2.
    pub streams: u32,
    /// How often connections are looked at.
    pub look_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Limits {
            connections: 512,
            requests: 256,
            made: 4,
            asking: seconds(10),
            resting: seconds(300),
            taking: seconds(30),
            least_taken: 64 << 10,
            whole: seconds(300),
            answering: seconds(150),
            copying: seconds(1_800),
            slow_paths: &[],
            head: 32 << 10,
            body: 16 << 10,
            streams: 32,
            look_every: seconds(1),
        }
    }
}
