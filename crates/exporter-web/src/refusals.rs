//! What was refused to clients: counts for metrics, and log lines that are limited, so that clients cannot fill the log.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::locked::locked;

/// Minimum interval of the log lines about each kind of refusal.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Declares the refusals, each with its label and whether it is logged.
macro_rules! refusals {
    ($($(#[$about:meta])* $name:ident: $label:literal, $logged:literal;)+) => {
        /// What was refused to a client, or ended early.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Refusal { $($(#[$about])* $name,)+ }

        impl Refusal {
            /// All of them.
            pub const ALL: [Refusal; [$($label),+].len()] = [$(Refusal::$name),+];

            /// Its label in metrics and in the log.
            pub fn label(self) -> &'static str {
                match self { $(Refusal::$name => $label,)+ }
            }

            fn is_logged(self) -> bool {
                match self { $(Refusal::$name => $logged,)+ }
            }
        }
    };
}

refusals! {
    /// A request without a login, as the first one of a browser.
    LoginMissing: "login_missing", false;
    /// A wrong password or an unknown user.
    LoginWrong: "login_wrong", true;
    /// Too many logins waited for their check.
    LoginBusy: "login_busy", true;
    /// The rate limit of the web config file.
    RateLimit: "rate_limit", true;
    /// A Host header that is not allowed.
    Host: "host", true;
    /// Too many requests were in progress, or waited.
    RequestLimit: "request_limit", true;
    /// The response was not built in time.
    ResponseTimeout: "response_timeout", true;
    /// A new connection beyond the limit.
    ConnectionLimit: "connection_limit", true;
    /// A connection that was closed in favor of one of a client with fewer of them.
    ConnectionDisplaced: "connection_displaced", true;
    /// A response that was given up in favor of one of a client with fewer of them.
    ResponseDisplaced: "response_displaced", true;
    /// A client that sent or read too slowly.
    SlowClient: "slow_client", true;
    /// A TLS handshake that failed, or plain HTTP on a TLS port.
    Handshake: "handshake", false;
}

/// The refusals of a server.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: [AtomicU64; Refusal::ALL.len()],
    log: LogThrottle,
}

impl Refusals {
    /// How many there were.
    pub fn count(&self, refusal: Refusal) -> u64 {
        self.counts[refusal as usize].load(Ordering::Relaxed)
    }

    /// Counts one, and logs it with the address of the client: one line a minute of each kind.
    pub fn record(&self, refusal: Refusal, peer: IpAddr) {
        self.counts[refusal as usize].fetch_add(1, Ordering::Relaxed);
        if refusal.is_logged()
            && let Some(suppressed) = self.log.due(refusal.label(), LOG_EVERY, Instant::now())
        {
            let total = self.count(refusal);
            let (peer, reason) = (peer.to_canonical(), refusal.label());
            tracing::warn!(%peer, reason, total, suppressed, "request or connection refused");
        }
    }
}

/// Limits log lines that clients can cause: when one of each kind was logged last, and how many were
/// suppressed since.
#[derive(Debug, Default)]
pub(super) struct LogThrottle {
    kinds: Mutex<HashMap<&'static str, LastLine>>,
}

#[derive(Debug)]
struct LastLine {
    logged: Instant,
    suppressed: u64,
}

impl LogThrottle {
    /// Whether a line of this kind is due: `Some` with the number suppressed since the last one if that was
    /// at least `every` ago; otherwise this one is suppressed.
    pub fn due(&self, kind: &'static str, every: Duration, now: Instant) -> Option<u64> {
        let mut kinds = locked(&self.kinds);
        match kinds.get_mut(kind) {
            Some(last) if now.saturating_duration_since(last.logged) < every => {
                last.suppressed = last.suppressed.saturating_add(1);
                None
            }
            last => {
                let suppressed = last.map_or(0, |last| last.suppressed);
                kinds.insert(kind, LastLine { logged: now, suppressed: 0 });
                Some(suppressed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_kind_per_interval() {
        let throttle = LogThrottle::default();
        let began = Instant::now();
        let due = |kind, seconds| {
            let now = began + Duration::from_secs(seconds);
            throttle.due(kind, Duration::from_secs(10), now)
        };
        assert_eq!([due("a", 0), due("a", 1), due("a", 9)], [Some(0), None, None]);
        assert_eq!([due("b", 9), due("b", 18)], [Some(0), None], "kinds are apart");
        assert_eq!(
            [due("a", 10), due("a", 11), due("a", 20), due("a", 90)],
            [Some(2), None, Some(1), Some(0)]
        );
    }
}
