//! `links`: what is known of each cable, as a table or as JSON, by a sweep of its own or from an
//! exporter that is running.

mod order;
mod remote;
mod sweep;
mod table;

use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::api::links::{Ask, links};
use crate::api::model::{Links, Verdicts};
use crate::config::Settings;
use crate::config::options::{
    CollectorOptions, FabricOptions, LogLevel, LogOptions, Options, PathOptions,
};
use ib_health::evidence::grouped;
use site_config::values::Span;

use super::access::AccessArgs;
use super::{Exit, Fatal};
use table::Style;
pub(super) use table::tame;

/// The arguments of `links`.
#[derive(Args, Debug)]
pub struct LinksArgs {
    /// Only links that are bad, to be watched, or unknown and with errors counted
    #[arg(long)]
    suspect: bool,
    /// Only links of the fabric with this name
    #[arg(long = "fabric", value_name = "NAME")]
    of_fabric: Option<String>,
    /// Write JSON, as an exporter's /api/v1/links does
    #[arg(long)]
    json: bool,
    /// Ask an exporter that is running, such as http://127.0.0.1:10315, instead of the fabric
    #[arg(long, value_name = "URL",
          conflicts_with_all = ["watch_for", "config_file", "PathOptions", "FabricOptions"])]
    url: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// Sweep on for so long: what happens meanwhile can be told, and one sweep tells no rates
    #[arg(long = "for", value_name = "TIME")]
    watch_for: Option<Span>,
    /// YAML file with the settings of `serve`; a flag wins over its key
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    fabric: FabricOptions,
}

/// Tells what is known of the links, and ends.
pub fn run(args: LinksArgs) -> Result<(), Fatal> {
    let ask = Ask { suspect: args.suspect, fabric: args.of_fabric.clone() };
    let json = args.json;
    let watch_for = args.watch_for.map(Duration::from);
    let is_glimpse = args.url.is_none() && watch_for.is_none();
    let told = if let Some(url) = &args.url {
        remote::links(url, &ask, &args.access.with(Vec::new()))?
    } else {
        links(&sweep::sweep(&settings(args)?, watch_for.unwrap_or_default())?, &ask)
    };
    match write(&told, json) {
        // Whoever reads has enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        Err(error) => {
            return Err(Fatal::new(
                Exit::Failed,
                format!("cannot write to standard output: {error}"),
            ));
        }
        Ok(()) => {}
    }
    if !json {
        // Whatever becomes of it, what was asked for is written.
        let _ = writeln!(std::io::stderr(), "{}", summary(&told, &ask, is_glimpse));
    }
    Ok(())
}

/// The settings of `serve`, for the fabrics that are asked for and nothing else.
fn settings(args: LinksArgs) -> Result<Settings, Fatal> {
    let wrong = |error: &dyn std::fmt::Display| Fatal::new(Exit::Usage, error);
    let options = Options {
        log: LogOptions { level: Some(LogLevel::Warn), ..LogOptions::default() },
        path: args.path,
        collector: CollectorOptions {
            fabric: Some(true),
            no_fabric: Some(false),
            no_host: Some(true),
            ..CollectorOptions::default()
        },
        fabric: args.fabric,
        ..Options::default()
    };
    let mut settings =
        Settings::load(options, args.config_file.as_deref()).map_err(|error| wrong(&error))?;
    if let Some(wanted) = &args.of_fabric {
        let names = settings.fabrics.iter().map(|fabric| &*fabric.name).collect::<Vec<_>>();
        let problem =
            format!("--fabric: no fabric is called {wanted:?}; there are: {}", names.join(", "));
        settings.fabrics.retain(|fabric| fabric.name == *wanted);
        if settings.fabrics.is_empty() {
            return Err(wrong(&problem));
        }
    }
    Ok(settings)
}

fn write(told: &Links, json: bool) -> std::io::Result<()> {
    let stdout = std::io::stdout();
    let style = Style::of(&stdout);
    let mut out = BufWriter::new(stdout.lock());
    if json {
        serde_json::to_writer_pretty(&mut out, told)?;
        writeln!(out)?;
    } else {
        let links = order::worst_first(told);
        table::write(&mut out, &links, told.fabrics.len() > 1, style)?;
    }
    out.flush()
}

impl Style {
    /// What suits the place that is written to.
    fn of(stdout: &std::io::Stdout) -> Self {
        if !stdout.is_terminal() {
            return Style { width: None, colours: false };
        }
        let size = rustix::termios::tcgetwinsize(stdout).ok();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        // https://no-color.org: set, to whatever but nothing.
        let no_colours = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Style { width, colours: !no_colours }
    }
}

/// The last line: how many there are of what, and what more there is to do.
fn summary(told: &Links, ask: &Ask, is_glimpse: bool) -> String {
    if told.fabrics.is_empty() {
        return "no links: this exporter watches no fabric".into();
    }
    let mut all = Verdicts::default();
    for fabric in &told.fabrics {
        all.ok += fabric.verdicts.ok;
        all.unknown += fabric.verdicts.unknown;
        all.watch += fabric.verdicts.watch;
        all.bad += fabric.verdicts.bad;
    }
    let unswept = told.fabrics.iter().filter(|fabric| fabric.swept_at.is_none());
    let unswept: Vec<&str> = unswept.map(|fabric| &*fabric.fabric).collect();
    let found = all.ok + all.unknown + all.watch + all.bad;
    let shown: usize = told.fabrics.iter().map(|fabric| fabric.links.len()).sum();
    let mut parts = Vec::new();
    if !unswept.is_empty() {
        parts.push(format!("not swept yet: {}", unswept.join(", ")));
    }
    if found == 0 {
        parts.push("no links found".into());
    } else {
        let counts =
            [(all.bad, "bad"), (all.watch, "watch"), (all.unknown, "unknown"), (all.ok, "ok")];
        let counts = counts.map(|(count, verdict)| format!("{} {verdict}", grouped(count as u64)));
        let none = if ask.suspect && shown == 0 { "nothing suspect: " } else { "" };
        parts.push(format!("{none}{}", counts.join(", ")));
        if is_glimpse {
            parts.push(
                "one sweep cannot tell ratios: --for 1m, or --url of a running exporter".into(),
            );
        }
    }
    parts.join("; ").chars().map(tame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::FabricLinks;

    #[test]
    fn the_last_line_says_how_many_there_are_of_what() {
        let swept = |verdicts| FabricLinks {
            fabric: "f".into(),
            swept_at: Some("1970-01-01T00:00:00Z".into()),
            verdicts,
            ..FabricLinks::default()
        };
        let some = Verdicts { bad: 3, watch: 1, unknown: 20, ok: 4_000_000 };
        let unswept = FabricLinks { fabric: "g".into(), ..FabricLinks::default() };
        for (fabrics, suspect, is_glimpse, says) in [
            (vec![], false, false, "no links: this exporter watches no fabric"),
            (vec![swept(Verdicts::default())], false, true, "no links found"),
            (vec![unswept.clone()], false, false, "not swept yet: g; no links found"),
            (vec![swept(some)], false, false, "3 bad, 1 watch, 20 unknown, 4,000,000 ok"),
            (
                vec![swept(some), unswept],
                true,
                false,
                "not swept yet: g; nothing suspect: 3 bad, 1 watch, 20 unknown, 4,000,000 ok",
            ),
            (
                vec![swept(Verdicts { ok: 999, ..Verdicts::default() })],
                false,
                true,
                "0 bad, 0 watch, 0 unknown, 999 ok; one sweep cannot tell ratios: --for 1m, or \
                 --url of a running exporter",
            ),
        ] {
            let ask = Ask { suspect, fabric: None };
            assert_eq!(summary(&Links { fabrics }, &ask, is_glimpse), says);
        }
    }
}
