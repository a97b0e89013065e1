//! What the commands `links`, `nodes` and `ports` have in common: which rows are listed, in which form, how often,
//! and the exit code.

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use yaml_config::units::HumanDuration;

use fabric_api::model::Condition;
use ib_health::{Reason, Verdict};

use super::gate::{FailOn, Gate};
use super::source::{FabricSource, OnceArgs, SourceArgs};
use super::table::{Style, Table};
use super::terminal::{self, ColorChoice, printable};
use crate::cli::output::{as_json, print};
use crate::exit::{Exit, Fatal};

/// The orders of a list, with the default one.
pub trait SortKey: ValueEnum + Copy + Default + Send + Sync + 'static {
    /// The help of `--sort`.
    const HELP: &'static str = "Order [default: verdict]";
}

/// The options of a list, and where its rows are from.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct ListArgs<S: SortKey> {
    // No `default_value_t`: clap would have one default for all types.
    #[arg(long, value_name = "KEY", help = S::HELP)]
    sort: Option<S>,
    /// Write JSON, in the same order
    #[arg(long)]
    json: bool,
    /// List at most this many
    ///
    /// The first ones in the order of --sort. The exit code of --fail-on still depends on all selected ones.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Write all columns, one line per row
    ///
    /// Also if the terminal is too narrow. Files and pipes always get all columns.
    #[arg(long)]
    wide: bool,
    /// Repeat at this interval [default: 5s]
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "5s")]
    watch: Option<HumanDuration>,
    /// Exit with 7 if a selected link is bad, or a node down
    ///
    /// With "watch" also if a link is degraded, with "unknown" also if it is unknown or learning. The last line says why
    /// and what to try first. If nothing is known of the fabric now, the exit code is 1.
    #[arg(long, value_name = "VERDICT", conflicts_with = "watch")]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    once: OnceArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// Which links, or which nodes or ports by their links.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Selection")]
pub struct VerdictArgs {
    /// Only these verdicts
    ///
    /// One or more of bad, watch (degraded), unknown and ok, separated by commas.
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = verdict)]
    pub verdict: Vec<Verdict>,
    /// Only verdicts with these reasons
    ///
    /// Such as flapping or bit_errors; separate several with commas.
    #[arg(long, value_name = "REASON", value_delimiter = ',', value_parser = reason)]
    pub reason: Vec<Reason>,
}

impl VerdictArgs {
    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.verdict.is_empty() && self.reason.is_empty()
    }

    /// Whether a verdict and its reasons, by their labels, are selected.
    pub fn selects<'a>(
        &self,
        verdict: Verdict,
        reasons: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        let is_wanted = |label: &str| self.reason.iter().any(|reason| reason.label() == label);
        (self.verdict.is_empty() || self.verdict.contains(&verdict))
            && (self.reason.is_empty() || reasons.into_iter().any(is_wanted))
    }
}

/// A verdict by its label, or by the word of tables and pages.
pub(super) fn verdict(text: &str) -> Result<Verdict, String> {
    let text = text.to_lowercase();
    let is_it =
        |verdict: &Verdict| [verdict.label(), Verdict::word(verdict.label())].contains(&&*text);
    let known = || format!("known: {}", Verdict::labels());
    Verdict::ALL.into_iter().find(is_it).ok_or_else(known)
}

/// A reason by its label, or as it is printed: with blanks.
fn reason(text: &str) -> Result<Reason, String> {
    let label = text.to_lowercase().replace([' ', '-'], "_");
    let known = || format!("known: {}", Reason::labels());
    Reason::from_label(&label).ok_or_else(known)
}

/// What a command found.
#[derive(Debug)]
pub struct Found<M> {
    /// What is listed: its JSON.
    pub model: M,
    /// The last line, on standard error.
    pub summary: String,
    /// What `--fail-on` judges.
    pub gate: Gate,
}

impl<S: SortKey> ListArgs<S> {
    /// The value of `--sort`.
    pub fn order(&self) -> S {
        self.sort.unwrap_or_default()
    }

    /// How many rows are listed at most.
    pub fn most(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    /// Lists what `find` finds, once or again and again.
    pub fn run<M: Serialize>(
        &self,
        color: ColorChoice,
        find: impl Fn(&FabricSource) -> Result<Found<M>, Fatal>,
        table: impl Fn(&M) -> Table,
    ) -> Result<(), Fatal> {
        let interval = self.watch.map(Duration::from);
        let source = &self.source.clone().read(&self.once, interval)?;
        let text = |model: &M| self.text(model, color, &table);
        if let Some(interval) = interval {
            return self.watch(source, interval, find, text);
        }
        let found = find(source)?;
        if print(&text(&found.model)?)? {
            // The output is complete: an error here does not matter.
            let mut stderr = std::io::stderr();
            let summary = summary(source, &found);
            let about = source.notes.iter().chain([&summary]).filter(|_| !self.json);
            for line in about.chain(&source.unused) {
                let _ = writeln!(stderr, "{line}");
            }
        }
        self.fail_on.map_or(Ok(()), |level| found.gate.check(level))
    }

    fn text<M: Serialize>(
        &self,
        model: &M,
        color: ColorChoice,
        table: impl Fn(&M) -> Table,
    ) -> Result<Vec<u8>, Fatal> {
        if self.json {
            return Ok(as_json(model)?.into_bytes());
        }
        let mut out = Vec::new();
        let written = table(model).write(&mut out, Style::for_output(color, self.wide));
        written.map_err(Fatal::failed_to("cannot format the list"))?;
        Ok(out)
    }

    /// Lists at intervals until a signal or a closed pipe: on a terminal as many lines as it has, from the top.
    fn watch<M>(
        &self,
        source: &FabricSource,
        interval: Duration,
        find: impl Fn(&FabricSource) -> Result<Found<M>, Fatal>,
        text: impl Fn(&M) -> Result<Vec<u8>, Fatal>,
    ) -> Result<(), Fatal> {
        loop {
            source.check()?;
            let (mut out, last) = match find(source) {
                Ok(found) => (text(&found.model)?, summary(source, &found)),
                // It may be restarting. A mistake in the command line stays one.
                Err(error) if error.exit == Exit::Failed => (Vec::new(), printable(&error.message)),
                Err(error) => return Err(error),
            };
            if let Some((columns, rows)) = terminal::size()
                && !self.json
            {
                let lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
                let room = rows.saturating_sub(1 + last.chars().count().div_ceil(columns));
                let shown = lines.iter().take(room).copied();
                out = [&b"\x1b[H\x1b[2J"[..]].into_iter().chain(shown).collect::<Vec<_>>().concat();
                out.extend_from_slice(last.as_bytes());
            } else if !self.json {
                out.extend_from_slice(last.as_bytes());
                out.extend_from_slice(b"\n\n");
            }
            if !print(&out)? {
                return Ok(());
            }
            std::thread::sleep(interval);
        }
    }
}

fn summary<M>(source: &FabricSource, found: &Found<M>) -> String {
    let hint = source.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    printable(&format!("{}{hint}", found.summary))
}

/// The indexes of some rows in the order of a key that may borrow from them.
pub fn order_by<'a, T, K: Ord>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_cached_key(|index| key(&rows[*index]));
    order
}

/// Some rows in the order of their indexes.
pub fn reordered<T>(rows: Vec<T>, order: Vec<usize>) -> impl Iterator<Item = T> {
    let mut rows: Vec<Option<T>> = rows.into_iter().map(Some).collect();
    order.into_iter().filter_map(move |index| rows[index].take())
}

/// What the counts of links do not show, for the beginning of a summary: nodes that are down, and what is not known. With
/// the names of the fabrics if there are several.
pub fn headline<'a>(fabrics: impl Iterator<Item = (&'a str, &'a Condition)>) -> String {
    let fabrics: Vec<_> = fabrics.collect();
    let mut text = String::new();
    for (name, condition) in &fabrics {
        for finding in condition.beside_links().filter(|it| it.kind != "not_swept") {
            if fabrics.len() > 1 {
                text += name;
                text += ": ";
            }
            text += &finding.text;
            text += "; ";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_verdicts_and_reasons_are_accepted() {
        for (text, wanted) in
            [("bad", Verdict::Bad), ("Degraded", Verdict::Watch), ("watch", Verdict::Watch)]
        {
            assert_eq!(verdict(text), Ok(wanted));
        }
        assert!(verdict("worse").unwrap_err().contains("watch"));
        for text in ["bit_errors", "bit errors", "Bit-Errors"] {
            assert_eq!(reason(text), Ok(Reason::BitErrors));
        }
        assert!(reason("rust").unwrap_err().contains("flapping"));
    }

    #[test]
    fn selection_is_by_verdict_and_by_any_reason() {
        let args = |verdict: &[Verdict], reason: &[Reason]| VerdictArgs {
            verdict: verdict.to_vec(),
            reason: reason.to_vec(),
        };
        assert!(args(&[], &[]).selects(Verdict::Ok, []));
        assert!(args(&[Verdict::Bad], &[]).selects(Verdict::Bad, ["flapping"]));
        assert!(!args(&[Verdict::Bad], &[]).selects(Verdict::Ok, []));
        let flapping = args(&[], &[Reason::Flapping, Reason::Down]);
        assert!(flapping.selects(Verdict::Bad, ["width", "down"]));
        assert!(!flapping.selects(Verdict::Bad, ["width"]));
    }
}
