//! A cable that is not there now: what is known of the ports that it led to.

use std::sync::Arc;

use maud::{Markup, html};

use crate::api::links::Of;
use crate::api::model::port::Port;
use crate::api::ports;
use crate::pages::{address, ask, words};
use fabric_observation::Observation;
use ib_fabric::topology::{End, LinkId};

/// What is at each of its ends now, fabric by fabric.
pub(super) fn known(fabrics: &[Arc<Observation>], fabric: Option<&str>, id: LinkId) -> Markup {
    html! {
        p { "No cable leads from one of these ports to the other now: " code { (id) } "." }
        @if let Some(why) = ask::not_swept(fabrics, fabric) { p { (why) } }
        @for observation in ask::meant(fabrics, fabric) {
            @if let Some(of) = Of::new(observation) {
                @if fabrics.len() > 1 { h2 { "In fabric " (of.name) } }
                ul { @for end in id.ends() { li { (end_now(of, end)) } } }
            }
        }
    }
}

fn end_now(of: Of<'_>, end: End) -> Markup {
    let (guid, number) = end;
    let Some(node) = of.snapshot.fabric.node_by_guid(guid) else {
        return html! { "No node has the GUID " code { (guid) } "." };
    };
    let name = &of.snapshot.fabric.node(node).name;
    let ports = ports::ports_of(of, node);
    let Some(port) = ports.iter().find(|port| port.name.port == number) else {
        return html! {
            a href=(address::node(of.name, guid)) { (name) } " has no port " (number) "."
        };
    };
    html! { (words::port(of.name, &port.name)) " " (cabled(of, port)) }
}

fn cabled(of: Of<'_>, port: &Port) -> Markup {
    let link = port.link.as_deref().and_then(|link| link.parse::<LinkId>().ok());
    html! {
        @match (&port.peer, link) {
            (Some(peer), Some(link)) => {
                @if peer.connected { "leads to " } @else { "has no link now; its cable led to " }
                (peer.name.label()) ": "
                a href=(address::link(of.name, link)) { "that link" }
                @if let Some(verdict) = &port.verdict { " (" (words::verdict(verdict)) ")" }
                "."
            }
            _ => "has no cable now.",
        }
    }
}
