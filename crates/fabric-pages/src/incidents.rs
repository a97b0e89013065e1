//! Incidents on pages: a row each, with its events folded.

use maud::{Markup, html};

use fabric_history::incidents::{Incident, Severity};
use fabric_history::local_clock::LocalClock;

use crate::components::{self, plural};
use fabric_api::address;

/// Whether an incident is about a text, in lower case: in its title, its place, its cause or its hosts.
pub fn matches(incident: &Incident, text: &str) -> bool {
    let has = |field: &str| field.to_lowercase().contains(text);
    has(&incident.title)
        || has(&incident.place)
        || incident.cause.as_deref().is_some_and(has)
        || incident.hosts.iter().any(|host| has(host))
        || incident.events.iter().any(|event| has(&event.place))
}

/// A table of incidents with their events.
pub fn table(clock: &LocalClock, incidents: &[Incident], several_fabrics: bool) -> Markup {
    rows(incidents.iter().map(|it| (it, what(it, &details(clock, it)))), clock, several_fabrics)
}

/// A table for the overview. It shows no events: it is refreshed while one reads. Of equal incidents of a link it has the
/// latest one.
pub fn brief(
    clock: &LocalClock,
    incidents: &[Incident],
    several_fabrics: bool,
    most: usize,
) -> Markup {
    let shown = once_per_link(incidents).into_iter().take(most);
    let shown = shown.map(|(incident, earlier)| {
        let events = plural(incident.event_count, "event");
        let events = (incident.event_count > 1).then_some(events);
        let earlier = (earlier > 0).then(|| plural(earlier, "earlier incident"));
        let counts: Vec<String> = events.into_iter().chain(earlier).collect();
        let counts = html! {
            @if !counts.is_empty() { span .quiet { " (" (counts.join("; ")) ")" } }
        };
        (incident, what(incident, &counts))
    });
    rows(shown, clock, several_fabrics)
}

/// The incidents without those that are like a later one of the same link, and how many these are.
fn once_per_link(latest_first: &[Incident]) -> Vec<(&Incident, usize)> {
    let mut shown: Vec<(&Incident, usize)> = Vec::new();
    for incident in latest_first {
        let is_like = |it: &Incident| {
            incident.link.is_some()
                && (it.link, &it.kind, &it.fabric)
                    == (incident.link, &incident.kind, &incident.fabric)
        };
        match shown.iter_mut().find(|(it, _)| is_like(it)) {
            Some((_, earlier)) => *earlier += 1,
            None => shown.push((incident, 0)),
        }
    }
    shown
}

fn rows<'a>(
    incidents: impl Iterator<Item = (&'a Incident, Markup)>,
    clock: &LocalClock,
    several_fabrics: bool,
) -> Markup {
    html! {
        table .stack.incidents {
            thead { tr {
                th scope="col" { "Began" } th scope="col" { "Length" } th scope="col" { "Severity" }
                @if several_fabrics { th scope="col" { "Fabric" } }
                th scope="col" { "Incident" }
            } }
            tbody { @for (incident, what) in incidents { tr {
                td .when data-label="Began" {
                    @if incident.began_earlier { "before " }
                    (components::timestamp(clock, incident.began))
                }
                td .when data-label="Length" { (incident.length_text()) }
                td data-label="Severity" { (severity(incident)) }
                @if several_fabrics { td data-label="Fabric" { bdi { (incident.fabric) } } }
                td { (what) }
            } } }
        }
    }
}

/// Its title and cause, and what else there is to say.
fn what(incident: &Incident, more: &Markup) -> Markup {
    html! {
        @match address_of(incident) {
            Some(to) => a href=(to) { (incident.title) },
            None => span { (incident.title) },
        }
        @if let Some(cause) = &incident.cause { div .quiet { "Cause: " (cause) "." } }
        (more)
    }
}

/// What to try, the hosts, and the events, which are folded.
fn details(clock: &LocalClock, incident: &Incident) -> Markup {
    html! {
        @if incident.severity > Severity::Info && let Some(advice) = &incident.advice {
            div { "Try first: " (advice) }
        }
        @if incident.host_count > 0 { div .quiet { "Hosts: " (incident.hosts_text()) } }
        details {
            summary { (plural(incident.event_count, "event")) }
            div .wide { (components::event_table(clock, &incident.events, false)) }
            @if incident.more_events() > 0 {
                p .quiet {
                    "Not listed: " (plural(incident.more_events(), "more event"))
                    ". See all with " code { "?view=events" } "."
                }
            }
        }
    }
}

fn severity(incident: &Incident) -> Markup {
    let class = match incident.severity {
        Severity::Critical => "bad",
        Severity::Warning => "watch",
        Severity::Info => return html! { span .quiet { (incident.severity.label()) } },
    };
    html! { span .verdict.(class) { (incident.severity.label()) } }
}

/// The page of its link, port or node.
fn address_of(incident: &Incident) -> Option<String> {
    let fabric = &incident.fabric;
    if fabric == fabric_history::settings::HOST_FABRIC {
        return Some(address::HOST.to_owned());
    }
    match (incident.link, incident.node, incident.port) {
        (Some(link), ..) => Some(address::link(fabric, link)),
        (None, Some(guid), Some(port)) => Some(address::port_of_node(fabric, guid, port)),
        (None, Some(guid), None) => Some(address::node(fabric, guid)),
        (None, None, _) => None,
    }
}
