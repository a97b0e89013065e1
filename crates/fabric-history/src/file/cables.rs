//! The life of a cable or module, from a file.

use std::time::{Duration, SystemTime};

use rusqlite::Result;

use crate::cable_life::{
    self, CableChange, CableLife, CableMatches, CablePlace, LastPlace, Place, Stay,
};
use crate::event::{EventKind, losses_of, verdict_of};
use crate::file::readings::{self, Readings};
use crate::file::sql::{Order, PortRow};
use crate::file::timeline;
use crate::model::{Event, Window};
use crate::source::{EventFilter, MAX_LIMIT};
use crate::time_of;
use ib_mad::{Guid, PortKey};

/// How many serial numbers are listed.
const MAX_SERIALS: usize = 100;

/// How many places of a cable are returned: the latest ones. A cable is moved a few times in its life.
const MAX_PLACES: usize = 50;

/// A device no longer reports a cable whose link is dead. What happened for so long after it was last reported is its
/// own, unless it was seen elsewhere, or another cable was there.
const UNREPORTED: Duration = Duration::from_secs(24 * 3600);

/// The cables with this serial number, or whose serial number begins with this.
pub(super) fn find(readings: Readings<'_>, called: &str) -> Result<CableMatches> {
    let sql = readings.sql;
    let last_places: Vec<LastPlace> = sql
        .modules(called)?
        .into_iter()
        .map(|(fabric, guid, port, serial, until)| {
            let port = PortKey::new(Guid(guid.cast_unsigned()), port);
            let until = until.map(|seconds| time_of(seconds.saturating_mul(1_000_000)));
            LastPlace { serial, place: Place { fabric, port }, until }
        })
        .collect();
    let mut changes: Vec<CableChange> = Vec::new();
    let kinds = vec![EventKind::CableChanged];
    let filter = EventFilter { kinds, ..EventFilter::all(always()) };
    sql.events(&filter, Order::EarliestFirst(None), &mut |_, event| {
        let change = CableChange::read(event);
        let begins = |serial: &str| cable_life::begins_with(serial, called);
        changes.extend(change.filter(|change| change.serials().any(begins)));
        true
    })?;
    let of_places = last_places.iter().map(|last| &*last.serial);
    let of_changes = changes.iter().flat_map(CableChange::serials);
    let mut serials = cable_life::matching(called, of_places.chain(of_changes));
    let found = serials.len();
    let life = match &*serials {
        [serial] => Some(life(readings, serial, &last_places, changes)?),
        _ => None,
    };
    serials.truncate(MAX_SERIALS);
    Ok(CableMatches { serials, found, life })
}

fn always() -> Window {
    Window { from: SystemTime::UNIX_EPOCH, to: time_of(i64::MAX) }
}

fn life(
    readings: Readings<'_>,
    serial: &str,
    last_places: &[LastPlace],
    mut changes: Vec<CableChange>,
) -> Result<CableLife> {
    let sql = readings.sql;
    changes.retain(|change| change.serials().any(|of| of == serial));
    let find = |fabric: &str, name: &str| {
        let ports = readings.sql.ports_referred_to(name).ok()?.into_iter();
        ports.map(|(_, port)| port).find(|port| port.fabric == fabric).map(|port| port.end())
    };
    let mut stays = cable_life::stays(serial, &changes, last_places, find);
    stays.drain(..stays.len().saturating_sub(MAX_PLACES));
    let mut life = CableLife {
        serial: serial.to_owned(),
        part: changes
            .iter()
            .rfind(|change| change.serial == serial)
            .and_then(|change| change.part.clone()),
        ..CableLife::default()
    };
    let [first, last] = [sql.first_began()?, sql.last_ended()?];
    for stay in &stays {
        let until = stay
            .until
            .map(|until| stay.left.map_or(until + UNREPORTED, |left| left.min(until + UNREPORTED)));
        let [first, last] = [first, last].map(|at| at.map_or(SystemTime::UNIX_EPOCH, time_of));
        let from = stay.since.unwrap_or(first);
        let window = Window { from, to: until.unwrap_or(last).max(from) };
        let Some((id, port)) = port_at(readings, &stay.place)? else { continue };
        let events = events(readings, stay.place.port, window)?;
        let place = place(readings, stay, (id, port), window, &events)?;
        life.places.push(place);
        life.events.extend(events);
    }
    life.events.extend(changes.into_iter().map(|change| change.event));
    life.events.sort_by_key(|event| event.at);
    // The events of a link are found at both ends.
    let mut events: Vec<Event> = Vec::with_capacity(life.events.len());
    for event in life.events {
        let mut same_time = events.iter().rev().take_while(|before| before.at == event.at);
        if !same_time.any(|before| *before == event) {
            events.push(event);
        }
    }
    Ok(CableLife { events, ..life })
}

fn port_at(readings: Readings<'_>, Place { fabric, port }: &Place) -> Result<Option<PortRow>> {
    let ports = readings.sql.ports_at(&[*port])?;
    Ok(ports.into_iter().find(|(_, port)| port.fabric == *fabric))
}

/// The events of a port and its links in a window, other than those of what the port has.
fn events(readings: Readings<'_>, end: PortKey, window: Window) -> Result<Vec<Event>> {
    let kinds = vec![EventKind::VerdictChanged, EventKind::Flap, EventKind::CableMoved];
    let filter = EventFilter { kinds, ports: vec![end], ..EventFilter::all(window) };
    let mut events = Vec::new();
    readings.sql.events(&filter, Order::EarliestFirst(None), &mut |_, event| {
        events.push(event);
        events.len() < MAX_LIMIT.get()
    })?;
    Ok(events)
}

fn place(
    readings: Readings<'_>,
    stay: &Stay,
    (id, port): PortRow,
    window: Window,
    events: &[Event],
) -> Result<CablePlace> {
    let cables = timeline::cables(readings.sql, &[port.end()], window)?;
    let is_its = |it: &crate::model::Port| it.is_same(&port);
    let cable = cables.into_iter().rfind(|cable| cable.ends.iter().any(is_its));
    let verdict = cable.as_ref().map(|cable| cable.verdict);
    let peer = cable.and_then(|cable| cable.ends.into_iter().find(|end| !end.is_same(&port)));
    let of = |kind: EventKind| events.iter().filter(move |event| event.kind == kind.label());
    let verdicts =
        of(EventKind::VerdictChanged).filter_map(|event| verdict_of(&event.detail, "to"));
    // What came before belongs to the cable that was there before.
    let first = of(EventKind::VerdictChanged).next().filter(|_| stay.since.is_none());
    let worst = verdicts
        .chain(first.and_then(|event| verdict_of(&event.detail, "from")))
        .chain(verdict)
        .max();
    let losses = |event: &Event| losses_of(&event.detail);
    Ok(CablePlace {
        since: stay.since,
        until: stay.until,
        peer,
        verdict,
        worst_verdict: worst,
        link_downs: of(EventKind::Flap).map(losses).fold(0, u64::saturating_add),
        errors: readings::errors_of(readings, id, window)?,
        port,
    })
}
