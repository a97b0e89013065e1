//! `history events`: lists events.

use std::io::Write;

use clap::Args;

use fabric_history::model::{Event, Port};
use fabric_history::source::EventFilter;
use fabric_history::{EventKind, Source};
use ib_mad::Guid;
use ib_mad::label::plural;

use super::window::WindowArgs;
use super::{Fatal, Written, ports, tame, unreadable, write_json};
use fabric_history::local_clock::LocalClock;

/// The arguments of `history events`.
#[derive(Args, Debug)]
pub struct EventsArgs {
    #[command(flatten)]
    window: WindowArgs,
    /// Only of this node, with its ports and links: a name or a GUID
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Only of this link: its id, or NODE[PORT]
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// Only of this kind; may be repeated
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<EventKind>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

fn kind(label: &str) -> Result<EventKind, String> {
    let known = || EventKind::ALL.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", ");
    EventKind::from_label(label).ok_or_else(|| format!("none of {}", known()))
}

pub(super) fn write(
    args: &EventsArgs,
    source: &dyn Source,
    clock: &LocalClock,
    out: &mut impl Write,
) -> Result<Written, Fatal> {
    let window = args.window.window(clock, source)?;
    let mut wanted = EventFilter { kinds: args.kind.clone(), ..EventFilter::all(window) };
    if let Some(node) = &args.node {
        let ports = ports(source, "--node", node)?;
        let guids: std::collections::BTreeSet<Guid> = ports.iter().map(|port| port.guid).collect();
        wanted.nodes = guids.into_iter().collect();
    }
    if let Some(link) = &args.link {
        let ports = ports(source, "--link", link)?;
        wanted.ports = ports.iter().map(Port::end).collect();
    }
    let events = source.events(&wanted).map_err(unreadable)?;
    let written =
        if args.json { write_json(&events, out) } else { write_table(&events, clock, out) };
    let summary = format!(
        "{} since {}; times are of {}",
        plural(events.len(), "event"),
        clock.format(window.from),
        clock.zone()
    );
    Ok(written.map(|()| summary))
}

fn write_table(events: &[Event], clock: &LocalClock, out: &mut impl Write) -> std::io::Result<()> {
    let width = |text: fn(&Event) -> &str| {
        events.iter().map(|event| text(event).chars().count()).max().unwrap_or(0)
    };
    let (kinds, places) = (width(|event| &event.kind), width(|event| &event.place));
    for event in events {
        let (kind, place) = (tame(&event.kind), tame(&event.place));
        let (at, text) = (clock.format(event.at), tame(&event.text));
        writeln!(out, "{at}  {kind:kinds$}  {place:places$}  {text}")?;
    }
    Ok(())
}
