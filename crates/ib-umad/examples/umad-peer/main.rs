//! Both ends of a umad conversation, for the tests on a real kernel.
//!
//!   umad-peer responder DEVICE                 answers performance management requests
//!   umad-peer client SYSFS HCA GID INDEX WHAT  sends them to the GID, by the exporter's own transport
//!
//! The responder is independent and shares no code with the exporter: its offsets are from the kernel and the
//! specification for the requests that it prints and the responses that it writes. Both print what they
//! see, one line each, for the test to check.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod kernel;
mod responder;
mod watched;

/// The responder's behavior depends on the requested port.
mod port {
    /// Answered at once.
    pub const QUICK: u8 = 1;
    /// Never answered.
    pub const SILENT: u8 = 2;
    /// Answered twice.
    pub const TWICE: u8 = 3;
    /// Answered after `SLOW_BY`.
    pub const SLOW: u8 = 4;
    /// Answered after `LATE_BY`.
    pub const LATE: u8 = 5;

    use std::time::Duration;

    /// Long enough for hundreds of requests to be open together.
    pub const SLOW_BY: Duration = Duration::from_secs(2);
    /// Longer than the client waits.
    pub const LATE_BY: Duration = Duration::from_secs(2);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["responder", device] => responder::run(device),
        ["client", sysfs, hca, gid, index, what] => {
            let (gid, index) = (gid.parse().expect("a GID"), index.parse().expect("its index"));
            client::run(&client::Args { sysfs: sysfs.as_ref(), hca, gid, index }, what);
        }
        _ => panic!("umad-peer responder DEVICE | umad-peer client SYSFS HCA GID INDEX WHAT"),
    }
}
