//! `history incidents`: events grouped by their cause.

use clap::Args;

use display_text::plural;
use fabric_history::Source;
use fabric_history::incidents::{Incident, IncidentKind, Incidents, MAX_INCIDENTS, Severity};
use fabric_history::local_clock::LocalClock;
use fabric_history::source::until_known;

use super::arguments::{Output, WindowArgs};
use super::hosts::{HostsArgs, period};
use super::show::{column_width, event_table, summarize, text_of};
use crate::cli::output::as_json;
use crate::cli::terminal::{Color, ColorChoice, printable};
use crate::exit::Fatal;

/// The arguments of `history incidents`.
#[derive(Args, Debug)]
pub struct IncidentsArgs {
    /// List only incidents of at least this severity: info, warning or critical
    #[arg(long, value_name = "SEVERITY", value_parser = severity, default_value = "info")]
    severity: Severity,
    /// List only incidents of this kind
    ///
    /// Such as switch_down; separate several with commas, or repeat the option.
    #[arg(long, value_name = "KIND", value_parser = kind, value_delimiter = ',')]
    kind: Vec<IncidentKind>,
    /// Also list the events of each incident, of each kind the first 10
    #[arg(long)]
    events: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    window: WindowArgs,
}

fn severity(label: &str) -> Result<Severity, String> {
    Severity::from_label(label)
        .ok_or_else(|| format!("unknown severity; known: {}", Severity::labels()))
}

fn kind(label: &str) -> Result<IncidentKind, String> {
    IncidentKind::from_label(label)
        .ok_or_else(|| format!("unknown kind; known: {}", IncidentKind::labels()))
}

impl IncidentsArgs {
    pub(super) fn run(
        &self,
        source: &dyn Source,
        clock: &LocalClock,
        color: ColorChoice,
    ) -> Result<Output, Fatal> {
        let hosts = self.hosts.read()?;
        let window = period(&self.window, hosts.as_ref(), clock, source)?;
        let window = until_known(source, window, clock.time())?;
        let mut found = Incidents::find(source, window, MAX_INCIDENTS)?;
        if let Some(hosts) = hosts {
            let scope = hosts.scope(source, window)?;
            found.incidents.retain(|incident| scope.relation(incident).is_some());
        }
        found.incidents.retain(|incident| {
            let is_of_kind = self.kind.is_empty() || self.kind.contains(&incident.kind);
            is_of_kind && incident.severity >= self.severity
        });
        let remarks = match found.more {
            0 => String::new(),
            more => format!(", {} not listed", plural(more, "more incident")),
        };
        let count = plural(found.incidents.len(), "incident");
        let summary = summarize(&count, window, &remarks, clock);
        let text = if self.json {
            as_json(&found)?
        } else {
            self.table(&found.incidents, clock, color.is_on())
        };
        Ok(Output { text, summary })
    }

    fn table(&self, incidents: &[Incident], clock: &LocalClock, colors: bool) -> String {
        let length = |incident: &Incident| match incident.length_text() {
            text if text.is_empty() => "-".to_owned(),
            text => text,
        };
        let lengths: Vec<String> = incidents.iter().map(length).collect();
        let width = column_width(lengths.iter().map(String::as_str));
        let severities = column_width(Severity::ALL.into_iter().map(Severity::label));
        let mut lines = Vec::new();
        for (incident, length) in incidents.iter().zip(&lengths) {
            let label = format!("{:severities$}", incident.severity.label());
            let severity = Color::paint(color_of(incident.severity), &label, colors);
            let began = clock.format(incident.began);
            let sign = if incident.began_earlier { "<" } else { " " };
            let title = printable(&incident.title);
            let events = plural(incident.event_count, "event");
            lines.push(format!("{sign}{began}  {length:width$}  {severity}  {title} ({events})"));
            if let Some(cause) = &incident.cause {
                lines.push(format!("      cause: {}", printable(cause)));
            }
            if self.events {
                let table = event_table(&incident.events, clock, colors);
                lines.extend(table.lines().map(|line| format!("      {line}")));
                if incident.more_events() > 0 {
                    lines.push(format!("      {}", plural(incident.more_events(), "more event")));
                }
            }
        }
        text_of(lines)
    }
}

fn color_of(severity: Severity) -> Option<Color> {
    match severity {
        Severity::Critical => Some(Color::Bad),
        Severity::Warning => Some(Color::Warning),
        Severity::Info => None,
    }
}
