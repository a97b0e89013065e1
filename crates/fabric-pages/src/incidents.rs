//! Incidents on pages: a row each, with its events folded.

use maud::{Markup, html};

use fabric_history::incidents::{Incident, Severity};
use fabric_history::local_clock::LocalClock;

use crate::components;
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

/// A table of incidents. The overview shows no events: it is refreshed while one reads.
pub fn table(
    clock: &LocalClock,
    incidents: &[Incident],
    several_fabrics: bool,
    with_events: bool,
) -> Markup {
    html! {
        table .stack.incidents {
            thead { tr {
                th scope="col" { "Began" } th scope="col" { "Length" } th scope="col" { "Severity" }
                @if several_fabrics { th scope="col" { "Fabric" } }
                th scope="col" { "Incident" }
            } }
            tbody { @for incident in incidents { tr {
                td .when {
                    @if incident.began_earlier { "before " }
                    (components::timestamp(clock, incident.began))
                }
                td .when data-label="Length" { (incident.length_text()) }
                td data-label="Severity" { (severity(incident)) }
                @if several_fabrics { td data-label="Fabric" { bdi { (incident.fabric) } } }
                td { (what(clock, incident, with_events)) }
            } } }
        }
    }
}

fn what(clock: &LocalClock, incident: &Incident, with_events: bool) -> Markup {
    html! {
        @match address_of(incident) {
            Some(to) => a href=(to) { (incident.title) },
            None => span { (incident.title) },
        }
        @if let Some(cause) = &incident.cause { div .quiet { "Cause: " (cause) "." } }
        @if with_events {
            @if incident.severity > Severity::Info && let Some(advice) = &incident.advice {
                div { "Try first: " (advice) }
            }
            @if incident.host_count > 0 { div .quiet { "Hosts: " (incident.hosts_text()) } }
            details {
                summary { (components::plural(incident.event_count as u64, "event")) }
                div .wide { (components::event_table(clock, &incident.events, false)) }
                @if incident.more_events() > 0 {
                    p .quiet {
                        "Not listed: " (components::plural(incident.more_events() as u64, "more event"))
                        ". See all with " code { "?view=events" } "."
                    }
                }
            }
        } @else if incident.event_count > 1 {
            span .quiet { " (" (components::plural(incident.event_count as u64, "event")) ")" }
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
