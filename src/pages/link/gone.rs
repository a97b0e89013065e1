//! A link that does not exist now: what is known of its two ports.

use std::sync::Arc;

use maud::{Markup, html};

use crate::api::links::FabricView;
use crate::api::model::port::Port;
use crate::api::{ports, selected};
use crate::pages::{address, ask, words};
use fabric_observation::Observation;
use ib_fabric::topology::{End, LinkId};

/// The state of both ends now, in each of the selected fabrics.
pub(super) fn section(fabrics: &[Arc<Observation>], fabric: Option<&str>, id: LinkId) -> Markup {
    html! {
        p { "No cable leads from one of these ports to the other now: " code { (id) } "." }
        @if let Some(why) = ask::not_swept(fabrics, fabric) { p { (why) } }
        @for observation in selected(fabrics, fabric) {
            @if let Some(view) = FabricView::new(observation) {
                @if fabrics.len() > 1 { h2 { "In fabric " (view.name) } }
                ul { @for end in id.ends() { li { (end_now(view, end)) } } }
            }
        }
    }
}

fn end_now(view: FabricView<'_>, end: End) -> Markup {
    let (guid, number) = end;
    let Some(node) = view.snapshot.fabric.node_by_guid(guid) else {
        return html! { "No node has the GUID " code { (guid) } "." };
    };
    let name = &view.snapshot.fabric.node(node).name;
    let ports = ports::ports_of(view, node);
    let Some(port) = ports.iter().find(|port| port.name.port == number) else {
        return html! {
            a href=(address::node(view.name, guid)) { (name) } " has no port " (number) "."
        };
    };
    html! { (words::port(view.name, &port.name)) " " (link_now(view, port)) }
}

fn link_now(view: FabricView<'_>, port: &Port) -> Markup {
    html! {
        @match (&port.peer, &port.link) {
            (Some(peer), Some(link)) => {
                @if peer.connected { "leads to " } @else { "has no link now; its cable led to " }
                (peer.name.label()) ": "
                a href=(address::link(view.name, link)) { "that link" }
                @if let Some(verdict) = &port.verdict { " (" (words::verdict(verdict)) ")" }
                "."
            }
            _ => "has no cable now.",
        }
    }
}
