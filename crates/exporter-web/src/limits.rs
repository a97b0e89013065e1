//! The limits of clients: the numbers, with their reasons.
//!
//! `connections` enforces those of connections and memory, `request_permits` those of requests, `deadlines` the timeouts.

use std::time::Duration;

/// Declares the limits, each with its default.
macro_rules! limits {
    ($($(#[$about:meta])* $name:ident: $type:ty = $default:expr,)+) => {
        /// The limits of a server. There are no settings for them: every usual set-up stays far below.
        #[derive(Clone, Copy, Debug)]
        pub struct Limits { $($(#[$about])* pub $name: $type,)+ }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)+ }
            }
        }
    };
}

limits! {
    /// Concurrent connections. A site has a few Prometheus servers and some browsers; an idle connection takes
    /// about 20 kB, with TLS 50.
    connections: usize = 512,
    /// Concurrent connections of one client address, so that one client cannot use up all. A browser opens
    /// about six; behind a reverse proxy all clients have its address.
    connections_per_client: usize = 128,
    /// Concurrent requests. One whose client does not read holds 128 kB of plain text and as much again in
    /// write buffers, in addition to shared data.
    concurrent_requests: usize = 256,
    /// Concurrent builds of responses of each class that is built: [`RequestClass::Page`](crate::RequestClass::Page), and
    /// `Api` with `Download`. More would not be faster on the processors of a small host, and each holds what it reads and
    /// writes.
    concurrent_builds: usize = 4,
    /// The same of responses that are usually ready, but not now.
    concurrent_late_builds: usize = 2,
    /// Requests of one client that may wait for a build. A browser opens six connections; behind a reverse proxy all
    /// clients have its address.
    waiting_per_client: usize = 16,
    /// Requests that may wait in all.
    waiting: usize = 128,
    /// How long a request waits for a build. The clients in front take turns, and a build takes a second.
    build_wait: Duration = Duration::from_secs(20),
    /// Bytes that responses occupy while they are written: of a page about 100 kB, of a list of 60,000 ports up to 5 MB,
    /// compressed.
    unsent_bytes: usize = 48 << 20,
    /// Timeout of the handshake with the head of the first request, and of the head of each further request
    /// from its first byte. curl takes milliseconds; over a very long distance it takes a second.
    header_timeout: Duration = Duration::from_secs(10),
    /// Timeout of an idle connection: two of the longest usual scrape intervals. While more than half of the
    /// connections are open it is [`Limits::header_timeout`], so that a full server soon accepts connections again.
    idle_timeout: Duration = Duration::from_secs(300),
    /// How long a client that sends no more waits for the beginning of its response. It cannot be told from one that has
    /// left, whose history query should end.
    half_closed_timeout: Duration = Duration::from_secs(10),
    /// Within this time a client has to read [`Limits::write_stall_bytes`] of a response, or all of it.
    write_stall_timeout: Duration = Duration::from_secs(30),
    /// 2 kB/s with 30 s: slower than any network that Prometheus scrapes over.
    write_stall_bytes: usize = 64 << 10,
    /// Within this time a client has to read a whole response, except for downloads: the response is kept in
    /// memory until then. A scrape takes its interval at most.
    response_timeout: Duration = Duration::from_secs(300),
    /// A download has to be read at this rate at least, in bytes per second, over each [`Limits::download_window`]. It
    /// occupies the only permit for downloads, and a file without a name. The slowest uplinks of sites have 10 Mbit/s.
    download_rate: usize = 256 << 10,
    /// See [`Limits::download_rate`].
    download_window: Duration = Duration::from_secs(60),
    /// Time until a response has to begin: as long as our own clients wait for one.
    handler_timeout: Duration = Duration::from_secs(150),
    /// The same for a download, which has to be built first.
    download_handler_timeout: Duration = Duration::from_secs(1_800),
    /// Bytes of the head of a request. It may contain cookies of other services of the host; servers usually
    /// accept 8 to 64 kB. A connection buffers at most twice as much.
    head_bytes: usize = 32 << 10,
    /// Bytes of the body of a request. No endpoint needs one.
    body_bytes: u64 = 16 << 10,
    /// How often the deadlines of a connection are checked.
    check_interval: Duration = Duration::from_secs(1),
}
