//! Both ends of a conversation by umad, for the tests that hold it on a real kernel.
//!
//!   umad-peer responder DEVICE                 answers performance management requests
//!   umad-peer client SYSFS HCA GID INDEX WHAT  asks them of the GID, by the exporter's own transport
//!
//! The responder is a witness, and so shares no code with the exporter: what it says of its requests
//! and puts into its answers it has from the kernel's and the specification's offsets. Both print
//! what they see, a line each, for the test to judge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod kernel;
mod responder;
mod watched;

/// What the responder does depends on the port that it is asked for.
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

    /// Long enough for hundreds of requests to be waiting together.
    pub const SLOW_BY: Duration = Duration::from_secs(2);
    /// Later than the client waits.
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
