//! What a device does not support, and what it does not respond to.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ib_mad::register::RegisterQuery;
use ib_mad::vendor::{self, GeneralInfo};
use ib_mad::{Moment, PortNumber};

use super::item::Item;
use crate::hardware::Hardware;

/// How long a register is not requested again after its device did not respond to it twice; each further time twice
/// as long, up to the maximum.
const MIN_PAUSE: Duration = Duration::from_secs(300);
const MAX_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// A register with its page or group, or GeneralInfo.
type Kind = (u16, u8);

fn kind(what: Option<RegisterQuery>) -> Kind {
    what.map_or((GeneralInfo::ID, 0), RegisterQuery::kind)
}

/// What did not respond. A register of two ports stands for all ports, and two registers for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Port(Kind, PortNumber),
    Kind(Kind),
    Device,
}

/// The scopes of a request, the smallest first. A device that does not respond to GeneralInfo is hardly asked for more.
fn scopes(what: Option<RegisterQuery>) -> impl Iterator<Item = Scope> {
    let port = what.and_then(RegisterQuery::port).map(|port| Scope::Port(kind(what), port));
    port.into_iter().chain(what.is_some().then_some(Scope::Kind(kind(what)))).chain([Scope::Device])
}

#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    /// In a row.
    timeouts: u32,
    until: Moment,
}

/// A device: what it supports, and when it may be queried again.
#[derive(Debug, Default)]
pub(super) struct Device {
    /// Registers and attributes that it refused: of the device, or of a port.
    refused: HashSet<(Kind, Option<PortNumber>)>,
    backoffs: HashMap<Scope, Backoff>,
    /// Whether it responds: `Some(false)` after a GeneralInfo without a response, until any.
    pub responds: Option<bool>,
    /// A timeout ends the requests of a run.
    pub not_before: Moment,
}

impl Device {
    /// Whether it may be asked for this now.
    pub fn may_be_asked(&self, what: Option<RegisterQuery>, now: Moment) -> bool {
        let port = what.and_then(RegisterQuery::port);
        let is_refused =
            [None, port].iter().any(|port| self.refused.contains(&(kind(what), *port)));
        let paused = |scope| self.backoffs.get(&scope).is_some_and(|backoff| backoff.until > now);
        !is_refused && self.not_before <= now && !scopes(what).any(paused)
    }

    pub fn on_response(&mut self, what: Option<RegisterQuery>) {
        if let Some(RegisterQuery::LinkDown(port)) = what {
            // Another module may be plugged.
            self.refused.retain(|(_, of)| *of != Some(port));
        }
        for scope in scopes(what) {
            self.backoffs.remove(&scope);
        }
    }

    /// The device responded that it does not support a register, or this port of it.
    pub fn on_refusal(&mut self, item: Item, status: u16, hardware: &mut Hardware) {
        let what = item.what;
        // A bad parameter may be the port: an internal one, or one without a module.
        let is_of_port = status & 0xff == vendor::status::BAD_PARAMETER;
        let port = what.and_then(RegisterQuery::port).filter(|_| is_of_port);
        self.refused.insert((kind(what), port));
        let scope = port.map_or(Scope::Kind(kind(what)), |port| Scope::Port(kind(what), port));
        forget(hardware, item, scope);
    }

    /// The device did not respond, in a run that ends at a moment. A first timeout may be a lost MAD; what does not
    /// respond twice is paused, and forgotten: it is out of date by then.
    pub fn on_timeout(
        &mut self,
        item: Item,
        (at, until): (Moment, Moment),
        hardware: &mut Hardware,
    ) {
        self.not_before = until;
        if item.what.is_none() {
            self.responds = Some(false);
        }
        for scope in scopes(item.what) {
            let backoff = self.backoffs.entry(scope).or_default();
            backoff.timeouts += 1;
            let Some(earlier) = backoff.timeouts.checked_sub(2) else { return };
            let pause = MIN_PAUSE * 2u32.saturating_pow(earlier.min(16));
            backoff.until = at + pause.min(MAX_PAUSE);
            forget(hardware, item, scope);
        }
    }
}

/// Forgets what was reported.
fn forget(hardware: &mut Hardware, Item { guid, what, .. }: Item, scope: Scope) {
    match (what, scope) {
        (Some(query), Scope::Port(_, port)) => hardware.forget(guid, query, Some(port)),
        (Some(query), Scope::Kind(_)) => hardware.forget(guid, query, None),
        (None, _) | (Some(_), Scope::Device) => hardware.retain(|node| *node != guid),
    }
}
