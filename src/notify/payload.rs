//! The JSON that is sent.

use std::sync::Arc;

use fabric_api::address;
use fabric_history::model::Event;
use fabric_history::settings::HOST_FABRIC;
use serde::Serialize;

/// The version of the JSON: higher if a receiver has to be changed.
const SCHEMA_VERSION: u32 = 1;

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct Payload<'a> {
    schema_version: u32,
    exporter_version: &'static str,
    /// Of this process, with which the ids of its events begin.
    exporter_instance: &'a str,
    external_url: Option<&'a str>,
    /// How many events were dropped since the last request that was answered with success.
    dropped: u64,
    events: Vec<&'a PayloadEvent>,
}

impl<'a> Payload<'a> {
    pub fn new(
        instance: &'a str,
        external_url: Option<&'a str>,
        events: &'a [Arc<PayloadEvent>],
        dropped: u64,
    ) -> Self {
        Payload {
            schema_version: SCHEMA_VERSION,
            exporter_version: env!("CARGO_PKG_VERSION"),
            exporter_instance: instance,
            external_url,
            dropped,
            events: events.iter().map(|event| &**event).collect(),
        }
    }
}

/// An event as the API has it, and more.
#[derive(Debug, Serialize)]
pub(super) struct PayloadEvent {
    /// The same whenever the event is sent, and of no other event.
    pub id: String,
    /// Its page, if users reach the exporter under a URL.
    pub url: Option<String>,
    #[serde(flatten)]
    pub event: Event,
}

/// The pages of an exporter under its URL.
#[derive(Debug)]
pub(super) struct Pages(Option<String>);

impl Pages {
    pub fn new(external_url: Option<&str>) -> Self {
        Pages(external_url.map(str::to_owned))
    }

    /// The page of what an event is about.
    pub fn of(&self, event: &Event) -> Option<String> {
        let base = self.0.as_ref()?;
        let fabric = &*event.fabric;
        let page = match (event.link, event.node, event.port) {
            _ if fabric == HOST_FABRIC => address::HOST.to_owned(),
            (Some(link), ..) => address::link(fabric, link),
            (_, Some(node), Some(port)) => address::port_of_node(fabric, node, port),
            (_, Some(node), None) => address::node(fabric, node),
            _ => address::OVERVIEW.to_owned(),
        };
        Some(format!("{base}{page}"))
    }
}
