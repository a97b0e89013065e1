//! `impact`: bad links by what their repair frees.

use std::fmt::Write as _;
use std::io::Write;

use clap::Args;

use display_text::{grouped, plural};
use fabric_api::Filter;
use fabric_api::impact::IMPACT;
use fabric_api::model::{Impact, JobsState, LinkImpact};
use ib_health::Verdict;

use super::output::{as_json, print};
use super::source::query;
use super::table::{Fit, Style, Table};
use super::terminal::{Color, ColorChoice, printable};
use crate::exit::Fatal;
use crate::remote::Access;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter impact --url http://127.0.0.1:10315
  fabric-exporter impact --url http://127.0.0.1:10315 --limit 3 --json

The exporter must read the running jobs: --jobs.from. All numbers are upper bounds: a job counts with all of its nodes if one
of them is at the link, or sends packets over it.";

/// The arguments of `impact`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct ImpactArgs {
    /// Address of a running exporter that reads jobs
    ///
    /// Such as http://127.0.0.1:10315.
    #[arg(long, visible_alias = "source", value_name = "URL")]
    url: String,
    #[command(flatten)]
    access: Access,
    /// Show only this fabric
    #[arg(long, value_name = "NAME")]
    fabric: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write JSON, in the same order
    #[arg(long)]
    json: bool,
    /// Write all columns, one line per row
    #[arg(long)]
    wide: bool,
}

/// Prints the repairs.
pub fn run(args: &ImpactArgs, color: ColorChoice) -> Result<(), Fatal> {
    let filter = Filter { fabric: args.fabric.clone(), ..Filter::default() };
    let mut found: Impact = query(&args.url, &args.access, IMPACT, &filter)?;
    let problem = unknown(&found.jobs);
    let count = found.repairs.len();
    found.repairs.truncate(args.limit.unwrap_or(usize::MAX));
    let mut out = Vec::new();
    if args.json {
        out = as_json(&found)?.into_bytes();
    } else {
        let written = table(&found).write(&mut out, Style::for_output(color, args.wide));
        written.map_err(Fatal::failed_to("cannot format the list"))?;
    }
    if print(&out)? && !args.json && problem.is_none() {
        // The output is complete: an error here does not matter.
        let _ = writeln!(std::io::stderr(), "{}", printable(&summary(&found.jobs, count)));
    }
    match problem {
        Some(problem) => Err(Fatal::failed(printable(&problem))),
        None => Ok(()),
    }
}

/// Why nothing is known of the jobs; `None` if it is.
fn unknown(jobs: &JobsState) -> Option<String> {
    if jobs.source.is_none() {
        let problem = "the exporter reads no jobs: start it with --jobs.from, see docs/jobs.md";
        return Some(problem.to_owned());
    }
    let why = jobs.problem.as_deref().unwrap_or("they were not read yet");
    (!jobs.known).then(|| format!("the running jobs are not known: {why}"))
}

fn summary(jobs: &JobsState, repairs: usize) -> String {
    let links = if repairs == 0 { "no bad links".to_owned() } else { plural(repairs, "bad link") };
    let mut text = format!("{links}, {}; upper bounds", plural(jobs.running, "running job"));
    if let Some(age) = jobs.age_seconds {
        let _ = write!(text, "; jobs read {age:.0} s ago");
    }
    if let Some(problem) = &jobs.problem {
        let _ = write!(text, "; reading fails: {problem}");
    }
    if jobs.unknown_hosts > 0 {
        let _ = write!(text, "; {} of jobs in no fabric", plural(jobs.unknown_hosts, "host"));
    }
    text
}

fn table(found: &Impact) -> Table {
    let columns = vec![
        ("VERDICT", Fit::Whole),
        ("JOBS", Fit::Whole),
        ("NODES", Fit::Whole),
        ("NODE-HOURS", Fit::Whole),
        ("GPU-HOURS", Fit::Short),
        ("FABRIC", Fit::Whole),
        ("END A", Fit::Name),
        ("END B", Fit::Name),
        ("TRY FIRST", Fit::Text),
        ("JOB IDS", Fit::Extra),
    ];
    let is_of = |it: &LinkImpact| found.repairs.first().is_some_and(|one| one.fabric != it.fabric);
    let are_several = found.repairs.iter().any(is_of);
    let rows = found.repairs.iter().map(row).collect();
    Table { columns, rows }.with_fabric(are_several)
}

fn row(it: &LinkImpact) -> super::table::Row {
    let [a, b] = it.ends.clone();
    let ids: Vec<&str> = it.jobs.iter().map(|job| &*job.id).collect();
    let cells = vec![
        Verdict::word(&it.verdict).to_owned(),
        grouped(it.jobs_at_risk),
        grouped(it.nodes_at_risk),
        hours(it.node_hours_left),
        hours(it.gpu_hours_left),
        it.fabric.clone(),
        a,
        b,
        it.repair.as_ref().map(|repair| repair.description.to_string()).unwrap_or_default(),
        ids.join(","),
    ];
    (Verdict::from_label(&it.verdict).and_then(Color::of), cells)
}

/// Empty if they are not known.
fn hours(hours: Option<f64>) -> String {
    hours.map(|hours| format!("{hours:.1}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_row_for_each_repair() {
        let repair = LinkImpact {
            fabric: "f".into(),
            ends: ["leaf port 1".into(), "host-a port 1".into()],
            verdict: "bad".into(),
            jobs_at_risk: 2,
            nodes_at_risk: 1200,
            node_hours_left: Some(2.25),
            ..LinkImpact::default()
        };
        let found = Impact { repairs: vec![repair], ..Impact::default() };
        let mut out = Vec::new();
        table(&found).write(&mut out, Style::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let row: Vec<&str> =
            text.lines().nth(1).unwrap().split("  ").filter(|it| !it.is_empty()).collect();
        assert_eq!(row[0].trim(), "bad");
        assert!(text.contains("1,200") && text.contains("host-a port 1"), "{text}");
    }

    #[test]
    fn unknown_jobs_are_an_error_that_says_why() {
        let says = |jobs: &JobsState| unknown(jobs).unwrap_or_default();
        let mut jobs = JobsState::default();
        assert!(says(&jobs).contains("--jobs.from"));
        jobs.source = Some("slurm".into());
        assert!(says(&jobs).contains("not read yet"));
        jobs.problem = Some("squeue: down".into());
        assert_eq!(says(&jobs), "the running jobs are not known: squeue: down");
        jobs.known = true;
        assert_eq!(unknown(&jobs), None);
        assert_eq!(
            summary(&jobs, 0),
            "no bad links, 0 running jobs; upper bounds; reading fails: squeue: down"
        );
    }
}
