//! The hosts that a question about a history is limited to: by name, or those of a job.

use clap::Args;

use fabric_history::Source;
use fabric_history::host_scope::HostScope;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Window;

use super::arguments::{WindowArgs, open_end};
use crate::cli::host_list;
use crate::cli::slurm::{self, Job};
use crate::exit::Fatal;

/// The arguments that name hosts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Hosts")]
pub struct HostsArgs {
    /// Only what concerns these hosts
    ///
    /// Their HCAs and cables, and the cables that traffic between them may have crossed: those on a shortest path. A list
    /// as Slurm writes it, such as gpu[001-512,600]; a file, if it contains a slash; or - for standard input. In files #
    /// begins a comment.
    #[arg(long, value_name = "HOSTS")]
    nodes: Option<String>,
    /// Only what concerns the hosts of this job, while it ran
    ///
    /// sacct or squeue must be installed, and tell which hosts it had, and when. --since, --until and --at replace its
    /// period.
    #[arg(long, value_name = "ID", conflicts_with = "nodes")]
    job: Option<String>,
}

/// The hosts that were asked for.
pub(super) struct Hosts {
    option: &'static str,
    names: Vec<String>,
    /// When their job ran.
    job: Option<Job>,
}

impl HostsArgs {
    /// The hosts; `None` if the question is about all.
    pub(super) fn read(&self) -> Result<Option<Hosts>, Fatal> {
        if let Some(id) = &self.job {
            let job = slurm::find("--job", id)?;
            if job.hosts.is_empty() {
                return Err(Fatal::failed(format!("--job: job {id} has no nodes yet")));
            }
            return Ok(Some(Hosts { option: "--job", names: job.hosts.clone(), job: Some(job) }));
        }
        let Some(list) = &self.nodes else { return Ok(None) };
        let names = host_list::read("--nodes", list)?;
        Ok(Some(Hosts { option: "--nodes", names, job: None }))
    }
}

/// The period of a question: as given, or while the job of the hosts ran.
pub(super) fn period(
    arguments: &WindowArgs,
    hosts: Option<&Hosts>,
    clock: &LocalClock,
    source: &dyn Source,
) -> Result<Window, Fatal> {
    match hosts.and_then(|hosts| hosts.ran(clock)).filter(|_| !arguments.is_given()) {
        Some(window) => Ok(window),
        None => arguments.window(clock, source),
    }
}

impl Hosts {
    /// Their names.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// When their job ran.
    fn ran(&self, clock: &LocalClock) -> Option<Window> {
        let job = self.job.as_ref()?;
        let from = job.start?;
        Some(Window { from, to: job.end.unwrap_or_else(|| open_end(clock)).max(from) })
    }

    /// What belongs to them in a period that has no future part; an error if the history has none of them.
    pub(super) fn scope(&self, source: &dyn Source, window: Window) -> Result<HostScope, Fatal> {
        let mut states = source.fabrics(window.from)?;
        states.extend(source.fabrics(window.to)?);
        let scope = HostScope::of(&self.names, &states);
        self.ensure_found(!scope.is_empty(), source)?;
        Ok(scope)
    }

    /// An error if none was found.
    pub(super) fn ensure_found(&self, is_found: bool, source: &dyn Source) -> Result<(), Fatal> {
        if is_found {
            return Ok(());
        }
        let hosts = hostlist::fold(self.names.iter().map(String::as_str));
        Err(Fatal::usage(format!("{}: {hosts}: not found in {}", self.option, source.name())))
    }
}
