//! The command line, one verb per file.

mod cells;
pub mod check;
pub mod check_node;
pub mod completions;
mod daemon;
pub mod demo;
pub mod doctor;
pub mod drain_plan;
mod dumps;
mod gate;
#[cfg(test)]
mod gate_tests;
pub mod history;
mod host_list;
pub mod impact;
pub mod leftovers;
pub mod links;
mod list;
pub mod man;
mod node_match;
pub mod nodes;
mod output;
mod past;
pub mod ports;
pub mod route;
pub mod serve;
mod slurm;
mod source;
mod table;
pub mod terminal;
pub mod top;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Fatal;

pub use terminal::ColorChoice;

/// Prometheus exporter for InfiniBand fabrics and RDMA hosts
///
/// Sweeps a fabric, exports the counters and states of all ports, and reports which cables to
/// replace. Exit codes: 0 success, 1 runtime failure, 2 invalid command line or file, 3 no usable
/// InfiniBand port on this host (doctor: neither an RDMA device nor an RDMA adapter), 4 the listen address is not
/// available, 5 (doctor) the exporter works, with warnings, 6 (doctor) the exporter cannot work until something is
/// fixed, 7 (with --fail-on) a node is down, or a link is bad, degraded or unknown;
/// (with --fail-on-unsafe) a repair is not safe.
#[derive(Debug, Parser)]
#[command(
    name = "fabric-exporter",
    version,
    disable_help_subcommand = true,
    after_help = "Run \"fabric-exporter COMMAND -h\" for the most important options of a command, and \
                  --help for all of them, with examples."
)]
pub struct Cli {
    /// Color the output: auto, always or never [default: auto]
    ///
    /// "auto" colors it on a terminal, unless the environment variable NO_COLOR is set.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub color: Option<ColorChoice>,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// Runs the verb. Returns the exit code, which is not 0 if the report of `doctor` says so.
    pub fn run(self) -> Result<ExitCode, Fatal> {
        let Cli { color, verb } = self;
        let color = color.unwrap_or_default();
        // These end by themselves. No thread may be started before the sandbox of the first two.
        if !matches!(verb, Verb::Serve(_) | Verb::Demo(_) | Verb::Top(_)) {
            terminal::hang_up_when_gone();
        }
        match verb {
            Verb::Serve(args) => serve::run(args),
            Verb::Links(args) => links::run(&args, color),
            Verb::Nodes(args) => nodes::run(&args, color),
            Verb::Ports(args) => ports::run(&args, color),
            Verb::Route(args) => route::run(&args, color),
            Verb::Impact(args) => impact::run(&args, color),
            Verb::History(args) => history::run(args, color),
            Verb::Check(args) => check::run(&args, color),
            Verb::Top(args) => top::run(args, color),
            Verb::DrainPlan(args) => drain_plan::run(&args, color),
            Verb::Completions(args) => completions::run(&args, &Cli::command()),
            Verb::Man(args) => man::run(&args, &Cli::command()),
            Verb::Demo(args) => demo::run(args),
            Verb::CheckNode(args) => return check_node::run(args),
            Verb::Doctor(args) => return doctor::run(args, color).map(ExitCode::from),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Sweep the fabric at intervals and serve its metrics over HTTP
    Serve(serve::ServeArgs),
    /// Sweep the fabric once and list its links, worst first
    Links(links::LinksArgs),
    /// Show the worst cables, the busiest links, congestion and events live
    Top(top::TopArgs),
    /// List the switches, channel adapters and routers of the fabric
    Nodes(nodes::NodesArgs),
    /// List the ports of a node with their counters
    Ports(ports::PortsArgs),
    /// Plan repairs: which cables and switches can be out of service together, and whom it cuts off
    DrainPlan(drain_plan::DrainPlanArgs),
    /// Show the cables between two nodes that the forwarding tables lead packets over
    Route(route::RouteArgs),
    /// List bad links by the running jobs that their repair frees
    Impact(impact::ImpactArgs),
    /// Check what the exporter needs on this host, and print the fix for each problem
    Doctor(doctor::DoctorArgs),
    /// Check whether the fabric is fine for this host or others: one line and an exit code for schedulers
    CheckNode(check_node::CheckNodeArgs),
    /// Query the recorded history: events, counters, reports and exports
    History(history::HistoryArgs),
    /// Validate the config file and all files that it names
    Check(check::CheckArgs),
    /// Serve a simulated fabric with faults, without any InfiniBand hardware
    Demo(demo::DemoArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(man::ManArgs),
}
