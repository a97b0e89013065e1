//! `history events`: what happened.

use std::io::Write;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::{Value, json};

use crate::history::file::reader::{Recorded, Wanted};
use crate::history::{Kind, Reader};

use super::time::Clock;
use super::{Exit, Fatal, Told, asked, count, tame, unreadable};

/// How far around `--at` is looked.
const AROUND: Duration = Duration::from_secs(10 * 60);

/// The arguments of `history events`.
#[derive(Args, Debug)]
pub struct EventsArgs {
    /// From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: 24h]
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    since: Option<String>,
    /// Ten minutes before and after this time
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
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
    reader: &Reader,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let unknown = |flag: &str, what: &str| {
        Fatal::new(Exit::Usage, format!("{flag}: the history knows no {what:?}"))
    };
    let (from, to) = if let Some(at) = &ask.at {
        let at = asked(clock, "--at", Some(at), clock.time())?;
        (at.checked_sub(AROUND).unwrap_or(SystemTime::UNIX_EPOCH), at + AROUND)
    } else {
        let usual = clock.ago(Duration::from_secs(24 * 3600));
        // A simulated clock may be ahead of ours.
        (asked(clock, "--since", ask.since.as_deref(), usual)?, far(clock))
    };
    let nodes = match &ask.node {
        None => None,
        Some(node) => {
            let nodes = reader.nodes(node).map_err(unreadable)?;
            Some(nodes)
                .filter(|nodes| !nodes.is_empty())
                .ok_or_else(|| unknown("--node", node))?
                .into()
        }
    };
    let ports = match &ask.link {
        None => None,
        Some(link) => {
            let ports = reader.ports(link).map_err(unreadable)?;
            let ports: Vec<u32> = ports.into_iter().map(|port| port.id).collect();
            Some(ports)
                .filter(|ports| !ports.is_empty())
                .ok_or_else(|| unknown("--link", link))?
                .into()
        }
    };
    let wanted = Wanted { from, to, kinds: ask.kind.clone(), nodes, ports };
    let events = reader.events(&wanted).map_err(unreadable)?;
    let written = if ask.json { as_json(&events, out) } else { as_table(&events, clock, out) };
    let last = format!(
        "{} since {}; times are of {}",
        count(events.len(), "event"),
        clock.tell(from),
        clock.zone()
    );
    Ok(written.map(|()| last))
}

/// The end of what is asked for, when nobody names one.
pub(super) fn far(clock: &Clock) -> SystemTime {
    clock.time() + Duration::from_secs(365 * 24 * 3600)
}

fn as_json(events: &[Recorded], out: &mut impl Write) -> std::io::Result<()> {
    let events: Vec<Value> = events
        .iter()
        .map(|event| {
            let detail = event.detail.as_deref().map(serde_json::from_str::<Value>);
            json!({
                "at": humantime::format_rfc3339_millis(event.at).to_string(),
                "fabric": event.fabric,
                "kind": event.kind,
                "node": event.node.map(|guid| guid.to_string()),
                "port": event.port,
                "link": event.link.map(|link| link.to_string()),
                "place": event.place,
                "text": event.text,
                "detail": detail.and_then(Result::ok),
            })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &events)?;
    writeln!(out)
}

fn as_table(events: &[Recorded], clock: &Clock, out: &mut impl Write) -> std::io::Result<()> {
    let width = |of: fn(&Recorded) -> &str| {
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
