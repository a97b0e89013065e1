//! `drain-plan`: is it safe to pull these cables or to power off these switches, and in how many windows?
//!
//! The definitions are those of the crate `drain_plan`. Here its net is made from the models of the API, and its answer
//! is explained. What is not known is said, and what is lost is rather overestimated: a router counts as a host that has
//! to keep its paths, a drained host is only one that the site names, and links of unknown state count as up when they
//! are repaired.

mod hosts;
mod judge;
mod net;
mod output;
mod parts;
mod report;
mod select;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::Write;

use clap::Args;

use display_text::plural;
use drain_plan::Share;
use fabric_api::links::links;
use fabric_api::model::{Links, Nodes};
use fabric_api::nodes::nodes;
use fabric_api::{Filter, LINKS};
use ib_health::Verdict;

use super::host_list;
use super::output::{as_json, print};
use super::source::{FabricSource, OnceArgs, SourceArgs};
use super::table::Style;
use super::terminal::{ColorChoice, printable};
use crate::exit::{Exit, Fatal};
use judge::Question;
use net::FabricNet;
use report::Report;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter drain-plan --url http://127.0.0.1:10315
  fabric-exporter drain-plan --url http://127.0.0.1:10315 leaf-0-1/10 spine-0-2
  fabric-exporter drain-plan --url http://127.0.0.1:10315 leaf-0-1 --drained 'gpu[001-032]'
  sinfo -h -t drained -o %N | fabric-exporter drain-plan --url http://127.0.0.1:10315 --drained -
  fabric-exporter drain-plan --from /var/tmp/ibdiagnet2 spine-0-2 --min-capacity 50%

A repair is safe if each host that is not drained keeps a path to each other one, and each leaf switch keeps the given
share of its capacity to the other leaves. The repairs of a window can be made together, in any order. Paths and
capacities are those of the cables: a routing engine may use fewer. docs/drain-plan.md says what is counted.";

/// The arguments of `drain-plan`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct DrainPlanArgs {
    /// Cables to pull, and switches or hosts to power off [default: all bad links]
    ///
    /// A link by its id or by one of its ports, such as leaf-0-1/10; a switch or host by name, GUID or LID; or a pattern
    /// of names, such as 'spine-0-*'.
    #[arg(value_name = "LINK|NODE")]
    repairs: Vec<String>,
    /// Without LINK|NODE: also links whose verdict is watch (degraded)
    #[arg(long, conflicts_with = "repairs")]
    include_watch: bool,
    /// Share of its capacity that each leaf switch must keep, such as 0.9 or 90%
    ///
    /// Of what it can send to all other leaves now. The default lets one of four spines, or one of four uplinks, be off.
    #[arg(long, value_name = "SHARE", default_value = "75%", value_parser = share)]
    min_capacity: Share,
    /// Hosts that run no jobs: they may lose their paths
    ///
    /// A list as Slurm writes it, such as gpu[001-512,600]; a file, if it contains a slash; or - for standard input. In
    /// files # begins a comment. Hosts that the exporter knows as drained or in maintenance are drained anyway.
    #[arg(long, value_name = "HOSTS")]
    drained: Option<String>,
    /// Exit with 7 if a repair is not safe, or if that is not certain
    ///
    /// The exit code is 0 if each repair is in a window, also if there are several windows.
    #[arg(long)]
    fail_on_unsafe: bool,
    /// Write JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write all columns, one line per row
    #[arg(long, help_heading = "Output")]
    wide: bool,
    #[command(flatten)]
    once: OnceArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// A share as a number from 0 to 1, or as a percentage.
fn share(text: &str) -> Result<Share, String> {
    let text = text.trim();
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|number| number / 100.0),
        None => text.parse::<f64>(),
    };
    let share = number.ok().and_then(Share::new);
    share.ok_or_else(|| "must be a number from 0 to 1, or from 0% to 100%".to_owned())
}

/// Prints the windows.
pub fn run(args: &DrainPlanArgs, color: ColorChoice) -> Result<(), Fatal> {
    // Standard input is read first: a sweep takes a while.
    let drained = args.drained.as_deref().map(|list| host_list::read("--drained", list));
    let drained = drained.transpose()?;
    let source = &args.source.clone().read(&args.once, None)?;
    let report = args.report(source, drained.as_deref())?;
    let text = if args.json {
        as_json(&report)?.into_bytes()
    } else {
        let mut out = Vec::new();
        let written = output::write(&report, &mut out, Style::for_output(color, args.wide));
        written.map_err(Fatal::failed_to("cannot format the plan"))?;
        out
    };
    if print(&text)? {
        let notes = report.notes.iter().map(|note| format!("note: {note}"));
        let about = source.notes.iter().cloned().chain(notes);
        let about = about.chain([args.summary(&report)]).filter(|_| !args.json);
        for line in about.chain(source.unused.iter().cloned()) {
            // The output is complete: an error here does not matter.
            let _ = writeln!(std::io::stderr(), "{}", printable(&line));
        }
    }
    match output::fault(&report).filter(|_| args.fail_on_unsafe) {
        Some(fault) => {
            Err(Fatal::new(Exit::Found, printable(&format!("--fail-on-unsafe: {fault}"))))
        }
        None => Ok(()),
    }
}

impl DrainPlanArgs {
    fn report(&self, source: &FabricSource, drained: Option<&[String]>) -> Result<Report, Fatal> {
        let filter = Filter { fabric: source.fabric.clone(), ..Filter::default() };
        let listed: Links = source.get(LINKS, &filter, |state| links(&state.fabrics, &filter))?;
        let listed_nodes: Nodes =
            source.get("/api/v1/nodes", &filter, |state| nodes(&state.fabrics, &filter))?;
        ensure_known(&listed)?;
        let mut net = FabricNet::new(&listed, &listed_nodes);
        if net.fabrics.is_empty() {
            let why = net.notes.first().map_or("this exporter does not sweep a fabric", |it| &**it);
            return Err(Fatal::failed(printable(&format!("drain-plan: nothing to judge: {why}"))));
        }
        if let Some(fabric) = &source.fabric {
            net.notes
                .push(format!("only {fabric} is judged: paths over other fabrics do not count"));
        }
        let targets = if self.repairs.is_empty() {
            let watch = self.include_watch.then_some(Verdict::Watch);
            let verdicts: Vec<Verdict> =
                [Some(Verdict::Bad), watch].into_iter().flatten().collect();
            select::with_verdicts(&net, &verdicts)
        } else {
            select::named(&net, source, &self.repairs)?
        };
        let drained = drained_hosts(&mut net, drained.unwrap_or_default())?;
        let question = Question {
            net: &net,
            targets: &targets,
            drained: &drained,
            min_capacity: self.min_capacity,
        };
        judge::report(&question).map_err(Fatal::failed_to("drain-plan"))
    }

    /// The last line.
    fn summary(&self, report: &Report) -> String {
        match report.repairs {
            0 if self.include_watch => "no bad or degraded links: nothing to repair".into(),
            0 => "no bad links: nothing to repair".into(),
            _ => output::summary(report),
        }
    }
}

/// The hosts that are drained by the exporter or by `--drained`.
fn drained_hosts(net: &mut FabricNet, names: &[String]) -> Result<BTreeSet<usize>, Fatal> {
    let (mut drained, unknown) = hosts::called(&net.hosts, names);
    if !unknown.is_empty() {
        let text = hostlist::fold(unknown.iter().map(String::as_str));
        if unknown.len() == names.len() {
            return Err(Fatal::usage(printable(&format!(
                "--drained: {text}: not found in the fabric"
            ))));
        }
        net.notes.push(format!("--drained: not found in the fabric: {text}"));
    }
    let known = net.hosts.iter().enumerate().filter(|(_, host)| host.is_drained);
    let known: Vec<usize> = known.map(|(index, _)| index).collect();
    // Its file may have hosts that are draining: their jobs still run.
    let trusted: Vec<&str> =
        known.iter().filter(|it| !drained.contains(it)).map(|it| &*net.hosts[*it].name).collect();
    if !trusted.is_empty() {
        let (count, hosts) = (plural(trusted.len(), "host"), hostlist::fold(trusted));
        net.notes.push(format!(
            "{count} drained or in maintenance, as the exporter was told: {hosts}; check that no jobs run there"
        ));
    }
    drained.extend(known);
    Ok(drained)
}

/// Fails if nothing is known now of a fabric: nothing is safe then.
fn ensure_known(listed: &Links) -> Result<(), Fatal> {
    for fabric in &listed.fabrics {
        let why = match fabric.condition.blind() {
            Some(why) => &*why.text,
            None if fabric.condition.verdict.is_empty() => "the exporter is too old to say",
            None => continue,
        };
        let name = &fabric.fabric;
        let problem = format!("drain-plan: the state of fabric {name} is not known: {why}");
        return Err(Fatal::failed(printable(&problem)));
    }
    Ok(())
}
