//! The description of the API (OpenAPI 3.1), made from the types that are served: openapi.json, which `make
//! docs` writes. The types' schemas are made by tests alone, so the program carries a text and no more.
//!
//! That it is one, and that real answers are as it says, is tested in tests/web/openapi.rs.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::archive::Archive;
use crate::metrics::Exposition;
use fabric_history::Kind;
use fabric_history::model::{Cable, Cover, Moved, Port, Series, Span, Then};
use fabric_history::page;
use fabric_history::page::Events;
use fabric_history::question::{DUMP, NAMES, PATH};
use fabric_observation::Board;
use ib_mad::node::NodeKind;

use super::model::Links;
use super::model::node::{NodeDetail, Nodes};
use super::model::overview::Overview;
use super::model::port::LinkDetail;
use super::model::search::Search;
use super::model::topology::Topologies;
use super::{LINKS, OPENAPI, OVERVIEW, SEARCH, detail};

const FABRIC: &str = "fabric";

/// What an address may say: its key, and what that is.
fn parameter(key: &str, place: &str) -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let many = |it: Value| json!({"type": "array", "items": it});
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.label()).collect();
    let (about, schema, required) = match key {
        FABRIC => ("Of this fabric alone.", text, false),
        "suspect" => ("Those alone that are worth a look.", json!({"type": "boolean"}), false),
        "id" => ("A cable's id, such as 0x00aa000000000001:5-0x00aa000000000002:1.", text, true),
        "guid" => ("A node's GUID.", text, true),
        "q" => (
            "A node's name or a part of it, a GUID, a LID, a cable's id, node[port], or a device.",
            text,
            true,
        ),
        // Of nodes there are four kinds, and of events as many as are known.
        "kind" if place == detail::NODES => (
            "Those of this kind alone.",
            json!({"enum": super::nodes::KINDS.map(NodeKind::label)}),
            false,
        ),
        "kind" => ("Events of these kinds alone.", many(json!({"enum": kinds})), false),
        "called" => ("A cable's id, node[port], guid[port], or a node's name or GUID.", text, true),
        "from" => ("The beginning of the window.", time, true),
        "to" => ("The end of the window.", time, true),
        "at" => ("The moment.", time, true),
        "node" => ("Of these nodes alone, by GUID.", many(text), false),
        "port" => ("Of these ports, such as 0x00aa000000000001:5.", many(text), false),
        "detail" => {
            ("Errors, or traffic and waits, too.", json!({"enum": ["errors", "all"]}), true)
        }
        "limit" => (
            "How many there are on a page at most.",
            json!({"type": "integer", "minimum": 1, "maximum": page::MOST, "default": page::USUAL}),
            false,
        ),
        "after" => ("The page after the one that has this `next`.", text, false),
        other => panic!("nothing is known of {other}"),
    };
    let place = if place.contains(&format!("{{{key}}}")) { "path" } else { "query" };
    json!({"name": key, "in": place, "required": required, "description": about, "schema": schema})
}

/// What is answered if all goes well: a type's schema.
fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    json!({"application/json": {"schema": generator.subschema_for::<T>()}})
}

fn route(path: &str, about: &str, keys: &[&str], content: &Value) -> (String, Value) {
    let parameters: Vec<Value> = keys.iter().map(|key| parameter(key, path)).collect();
    let problem = json!({
        "description": "Why there is no answer, in one line.",
        "content": {"text/plain": {"schema": {"type": "string"}}}
    });
    let name: String = path
        .trim_start_matches("/api/v1/")
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '_' })
        .collect();
    let asked = json!({
        "operationId": name.trim_end_matches('_'),
        "summary": about,
        "parameters": parameters,
        "responses": {"200": {"description": "What was asked for.", "content": content}, "default": problem},
    });
    (path.to_owned(), json!({"get": asked}))
}

fn paths(make: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths: Map<String, Value> = [
        route(
            OVERVIEW,
            "Each fabric at a glance, and this host's devices",
            &[],
            &of::<Overview>(make),
        ),
        route(SEARCH, "What goes by a name, a GUID or a LID", &["q"], &of::<Search>(make)),
        route(LINKS, "The cables", &[FABRIC, "suspect"], &of::<Links>(make)),
        route(
            detail::LINK,
            "All that is known of a cable",
            &["id", FABRIC],
            &of::<LinkDetail>(make),
        ),
        route(detail::NODES, "The nodes", &[FABRIC, "kind"], &of::<Nodes>(make)),
        route(detail::NODE, "A node with its ports", &["guid", FABRIC], &of::<NodeDetail>(make)),
        route(detail::TOPOLOGY, "How a fabric is wired", &[FABRIC], &of::<Topologies>(make)),
        route(
            OPENAPI,
            "This description",
            &[],
            &json!({"application/json": {"schema": {"type": "object"}}}),
        ),
        route(
            DUMP,
            "A copy of a window of the history's file",
            &["from", "to"],
            &json!({"application/vnd.sqlite3": {}}),
        ),
    ]
    .into_iter()
    .collect();
    for (name, keys) in NAMES {
        let (about, content) = match name {
            "span" => ("The time of which anything is recorded", of::<Span>(make)),
            "ports" => ("The ports that are called so", of::<Vec<Port>>(make)),
            "events" => ("What happened, the earliest first, page by page", of::<Events>(make)),
            "cables" => ("The cables that led to ports", of::<Vec<Cable>>(make)),
            "moved" => ("What ports counted of errors", of::<Vec<Moved>>(make)),
            "series" => ("The course of ports' counters", of::<Vec<Series>>(make)),
            "fabrics" => ("The fabrics as they were at a moment", of::<Vec<Then>>(make)),
            "cover" => ("What is known of a window", of::<Cover>(make)),
            other => panic!("nothing is known of {other}"),
        };
        paths.extend([route(&format!("{PATH}/{name}"), about, keys, &content)]);
    }
    paths
}

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let paths = paths(&mut generator);
    let about = "What fabric-exporter knows. Counts are in their metric's unit, times are RFC 3339, rates are \
                 bytes a second. A later version may add fields and words of vocabularies. What is below \
                 /api/v1/history is answered where something is recorded: --history.file.";
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fabric-exporter",
            "version": "1",
            "description": about,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")}
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": generator.take_definitions(true)},
    })
}

#[test]
fn the_document_is_made_from_the_types() {
    let made = format!("{:#}\n", document());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == made, "{path} is out of date: make docs");
}

/// The routes as axum has them: it tells them to who debugs.
#[test]
fn each_route_is_described_and_nothing_else() {
    let (_sender, latest) =
        tokio::sync::watch::channel(std::sync::Arc::new(Exposition::render(Board::default())));
    let shown = format!("{:?}", super::router(latest, Archive::new(None)));
    let quoted = shown.split('"').filter(|text| text.starts_with("/api/"));
    let question = format!("{PATH}/{{question}}");
    let routes: BTreeSet<String> = quoted
        .flat_map(|path| {
            let names = NAMES.iter().map(|(name, _)| format!("{PATH}/{name}"));
            if path == question { names.collect() } else { vec![path.to_owned()] }
        })
        .collect();
    let document = document();
    let described: BTreeSet<String> =
        document["paths"].as_object().unwrap().keys().cloned().collect();
    assert!(routes.len() > 10, "{routes:?}");
    assert_eq!(routes, described);
}
