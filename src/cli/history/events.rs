//! `history events`: what happened.

use std::io::Write;

use clap::Args;

use fabric_history::model::{Port, Told as Event};
use fabric_history::source::Wanted;
use fabric_history::{Kind, Source};
use ib_mad::Guid;
use ib_mad::label::plural;

use super::window::WindowArgs;
use super::{Fatal, Told, as_json, ports, tame, unreadable};
use fabric_history::clock::Clock;

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
    kind: Vec<Kind>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

fn kind(label: &str) -> Result<Kind, String> {
    let known = || Kind::ALL.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", ");
    Kind::from_label(label).ok_or_else(|| format!("none of {}", known()))
}

pub(super) fn tell(
    ask: &EventsArgs,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let window = ask.window.window(clock, source)?;
    let mut wanted = Wanted { kinds: ask.kind.clone(), ..Wanted::all(window) };
    if let Some(node) = &ask.node {
        let ports = ports(source, "--node", node)?;
        let guids: std::collections::BTreeSet<Guid> = ports.iter().map(|port| port.guid).collect();
        wanted.nodes = guids.into_iter().collect();
    }
    if let Some(link) = &ask.link {
        let ports = ports(source, "--link", link)?;
        wanted.ports = ports.iter().map(Port::end).collect();
    }
    let events = source.events(&wanted).map_err(unreadable)?;
    let written = if ask.json { as_json(&events, out) } else { as_table(&events, clock, out) };
    let last = format!(
        "{} since {}; times are of {}",
        plural(events.len(), "event"),
        clock.tell(window.from),
        clock.zone()
    );
    Ok(written.map(|()| last))
}

fn as_table(events: &[Event], clock: &Clock, out: &mut impl Write) -> std::io::Result<()> {
    let width = |of: fn(&Event) -> &str| {
        events.iter().map(|event| of(event).chars().count()).max().unwrap_or(0)
    };
    let (kinds, places) = (width(|event| &event.kind), width(|event| &event.place));
    for event in events {
        let (kind, place) = (tame(&event.kind), tame(&event.place));
        let (at, text) = (clock.tell(event.at), tame(&event.text));
        writeln!(out, "{at}  {kind:kinds$}  {place:places$}  {text}")?;
    }
    Ok(())
}
