//! `check-node`: is the fabric fine for a host? One line and an exit code, for node health checks of schedulers.
//!
//! *Bad* is only what is known to be wrong with the host's own ports, HCAs and cables. Whatever keeps the check from
//! knowing, also a mistake in its arguments, is *unknown*: no reason to take a host out of service. A bad uplink of its
//! leaf switch hurts all hosts of the leaf; to drain all of them would do more harm, so it is a note by default.

mod exporter;
mod outcome;
mod own_ports;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Args;
use yaml_config::units::HumanDuration;

use super::host_list;
use super::output::{as_json, print};
use crate::exit::Fatal;
use crate::remote::Access;
use exporter::Exporter;
use outcome::{HostCheck, Outcome};

const EXAMPLES: &str = "\
Examples:
  fabric-exporter check-node
  fabric-exporter check-node --url http://exporter-host:10315
  fabric-exporter check-node --nagios --url http://exporter-host:10315 gpu001
  fabric-exporter check-node 'gpu[001-064]' --url http://exporter-host:10315 --json

Exit code: 0 fine, 1 bad, 2 unknown; with --nagios 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Unknown is no reason to drain
a host: the check itself failed, or the exporter does not respond, is not up to date, or does not know the host.

deploy/node-checks has examples for Slurm, NHC, node-problem-detector, gpud and GCM.";

/// The arguments of `check-node`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct CheckNodeArgs {
    /// Hosts, as Slurm lists them: gpu[001-064] [default: this host]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Address of a running exporter that sweeps the fabric
    ///
    /// Such as http://127.0.0.1:10315. It knows the verdicts on cables, and the other ends. Without it only the ports of
    /// this host are checked.
    #[arg(long, visible_alias = "source", value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    access: Access,
    /// How many ports of this host must be Active [default: at least one]
    #[arg(long, value_name = "N")]
    expect_ports: Option<usize>,
    /// Also bad: a bad uplink of a leaf switch of the host, and congestion that the host causes or waits for
    #[arg(long)]
    strict: bool,
    /// Exit codes of Nagios plugins: 0 OK, 1 WARNING (degraded), 2 CRITICAL, 3 UNKNOWN
    #[arg(long)]
    nagios: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// How long the whole check may take
    #[arg(long, value_name = "DURATION", default_value = "400ms")]
    timeout: HumanDuration,
    /// Where sysfs is mounted
    #[arg(long = "path.sysfs", value_name = "DIR", default_value = "/sys", hide_short_help = true)]
    sysfs: PathBuf,
}

/// Checks the hosts, prints the line, and returns the exit code. Nothing but a closed standard output is an error.
pub fn run(args: CheckNodeArgs) -> Result<ExitCode, Fatal> {
    let (json, nagios, limit) = (args.json, args.nagios, Duration::from(args.timeout));
    let (sender, receiver) = mpsc::channel();
    // What hangs is left behind: this process ends.
    std::thread::spawn(move || {
        let outcome = args.check(Instant::now() + limit);
        let _ = sender.send(outcome);
    });
    let outcome = receiver.recv_timeout(limit).unwrap_or_else(|_| {
        Outcome::unknown(format!("no result within {}", humantime::format_duration(limit)))
    });
    let text = if json { as_json(&outcome)? } else { format!("{}\n", outcome.line()) };
    print(text.as_bytes())?;
    Ok(ExitCode::from(outcome.status().exit_code(nagios)))
}

/// Whether a command line that clap refuses is one of `check-node --nagios`, whose exit code for it is 3.
pub fn is_nagios(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let mut arguments = arguments.skip(1).filter(|it| it != "--color");
    arguments.next().is_some_and(|verb| verb == "check-node")
        && arguments.any(|argument| argument == "--nagios")
}

/// The exit code of a refused command line of `check-node --nagios`.
pub const NAGIOS_UNKNOWN: u8 = 3;

/// The name of this host: that which Slurm gave it, or its own.
fn own_name() -> String {
    let of_slurm = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    let of_kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    of_slurm
        .or_else(of_kernel)
        .map_or_else(|| "localhost".to_owned(), |name| name.trim().to_owned())
}

impl CheckNodeArgs {
    fn check(&self, deadline: Instant) -> Outcome {
        let own = own_name();
        let mut names = Vec::new();
        for list in &self.names {
            match hostlist::parse(list) {
                Ok(hosts) => names.extend(hosts),
                Err(error) => return Outcome::unknown(error.to_string()),
            }
        }
        if names.is_empty() {
            names.push(own.clone());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let exporter =
            self.url.as_ref().map(|url| Exporter::new(url, &self.access, left)).transpose();
        let exporter = match exporter {
            Ok(exporter) => exporter,
            Err(problem) => return Outcome::unknown(format!("--url: {problem}")),
        };
        let is_own = |name: &str| host_list::short(name) == host_list::short(&own);
        let check = |name: String| {
            let mut check = HostCheck::new(name);
            if is_own(&check.host) {
                own_ports::check(&self.sysfs, self.expect_ports, &mut check);
            } else if exporter.is_none() {
                check.unknown("--url is required for another host");
            }
            if let Some(exporter) = &exporter {
                exporter.check(self.strict, &mut check);
            }
            check
        };
        Outcome { hosts: names.into_iter().map(check).collect(), problem: None }
    }
}
