//! `OpenSM`, the subnet manager: assigns LIDs, configures the switches' routes, and responds to SA queries.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ib_mad::{Guid, Lid};

use super::Ibsim;
use super::child::{self, Running};
use super::seat::Seat;
use super::{require, wait_until};

/// How long `OpenSM` may take to bring up the fabric; 24,892 ports take 7 s.
const UP_LIMIT: Duration = Duration::from_secs(120);

/// How long it may take to end; it needs some 10 ms.
const END_LIMIT: Duration = Duration::from_secs(3);

/// The log at once on disk, where the rig waits for it; sweeps only when a trap requires one, so
/// that `OpenSM`'s own MADs do not move the counters under a test.
const CONFIG: &str = "force_log_flush TRUE\nsweep_interval 0\n";

/// A running `OpenSM`.
pub struct OpenSm {
    running: Running,
    /// Where it keeps its files.
    dir: PathBuf,
}

impl OpenSm {
    /// Starts `OpenSM` on the fabric's first host and waits until the subnet is up.
    pub fn start(ibsim: &Ibsim) -> Self {
        Self::start_at(ibsim.sm_seat())
    }

    /// Starts `OpenSM` on a seat of the caller's choice: a second one, or a slow one.
    pub fn start_at(seat: impl Into<Seat>) -> Self {
        Self::start_until(seat, CONFIG, &[], "SUBNET UP")
    }

    /// Starts `OpenSM` on a seat with a file `guid2lid`, as an earlier run leaves it: ports that have other LIDs get
    /// these.
    pub fn start_with_lids(seat: impl Into<Seat>, lids: &[(Guid, Lid)]) -> Self {
        Self::start_until(seat, CONFIG, lids, "SUBNET UP")
    }

    /// Starts `OpenSM` on the fabric's first host, with an LMC: each port of an adapter gets 2^LMC LIDs. It dumps its
    /// [forwarding tables](Self::forwarding_tables).
    pub fn start_with_lmc(ibsim: &Ibsim, lmc: u8) -> Self {
        // 0x40 is OSM_LOG_ROUTING, 3 what it logs by default.
        let config = format!("{CONFIG}lmc {lmc}\nlog_flags 0x43\n");
        Self::start_until(ibsim.sm_seat(), &config, &[], "SUBNET UP")
    }

    /// Starts `OpenSM` where another one is the master, and waits until it is standby. When the master has
    /// not responded for about `patience`, it takes over.
    pub fn start_standby_at(seat: impl Into<Seat>, patience: Duration) -> Self {
        // One poll, and four retries.
        let poll = patience.as_millis() / 5;
        let config = format!("{CONFIG}sminfo_polling_timeout {poll}\npolling_retry_number 4\n");
        Self::start_until(seat, &config, &[], "Entering STANDBY state")
    }

    /// Starts it and waits until its log shows that it is up.
    fn start_until(
        seat: impl Into<Seat>,
        settings: &str,
        lids: &[(Guid, Lid)],
        logs: &str,
    ) -> Self {
        let seat = seat.into();
        let dir = seat.new_dir("opensm");
        let (config, log) = (dir.join("osm.conf"), dir.join("osm.log"));
        std::fs::write(&config, settings)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", config.display()));
        // From the first to the last LID of a port.
        let lines =
            lids.iter().map(|(guid, lid)| format!("{:#018x} {1:#06x} {1:#06x}\n", guid.0, lid.0));
        std::fs::write(dir.join("guid2lid"), lines.collect::<String>()).expect("guid2lid");
        let mut command = seat.command_in(require("opensm"), &dir);
        command
            // Without these OpenSM keeps its files below /var, for all instances together.
            .env("OSM_TMP_DIR", &dir)
            .env("OSM_CACHE_DIR", &dir)
            .arg("-F")
            .arg(&config)
            .arg("-f")
            .arg(&log)
            .stdin(std::process::Stdio::null())
            .stdout(child::create(&dir.join("stdout")))
            .stderr(child::create(&dir.join("stderr")));
        let mut running = Running::spawn("opensm", &mut command);
        wait_until(UP_LIMIT, &format!("{logs} in OpenSM's log"), || {
            if let Some(status) = running.try_wait() {
                panic!("opensm: {status}\n{}", child::read_lossy(&dir.join("stderr")));
            }
            child::read_lossy(&log).contains(logs).then_some(())
        });
        Self { running, dir }
    }

    /// The port for each LID at each switch, by its GUID, as it has dumped them: `opensm-lfts.dump`, after `SUBNET UP`.
    pub fn forwarding_tables(&self, switches: usize) -> BTreeMap<(u64, u16), u8> {
        let file = self.dir.join("opensm-lfts.dump");
        let dump = wait_until(UP_LIMIT, "OpenSM's dump of forwarding tables", || {
            let dump = child::read_lossy(&file);
            (dump.matches(" lids dumped").count() == switches).then_some(dump)
        });
        let mut tables = BTreeMap::new();
        let mut switch = 0;
        for line in dump.lines() {
            if let Some((_, rest)) = line.split_once(" guid 0x") {
                let guid = rest.split(' ').next().unwrap_or_default();
                switch = u64::from_str_radix(guid, 16).expect("GUID");
            } else if let Some((lid, rest)) =
                line.strip_prefix("0x").and_then(|line| line.split_once(' '))
            {
                let lid = u16::from_str_radix(lid, 16).expect("LID");
                let port = rest.split(' ').next().and_then(|port| port.parse().ok());
                tables.insert((switch, lid), port.expect("port"));
            }
        }
        tables
    }

    /// Pauses it: requests to it stay unanswered.
    pub fn pause(&mut self) {
        self.running.signal("STOP");
    }

    /// Resumes it after [`pause`](Self::pause).
    pub fn resume(&mut self) {
        self.running.signal("CONT");
    }

    /// Ends it, as dropping it does.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for OpenSm {
    fn drop(&mut self) {
        // It does not always end: the preload library can deadlock in a program's exit
        // when a reply arrives just then. That is no failure of the test.
        let _ = self.running.end_within(END_LIMIT);
    }
}
