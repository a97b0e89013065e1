//! Generates openapi.json (OpenAPI 3.1) from the models and the routes; `make docs` writes it. Only tests build
//! the schemas: the program contains the text alone.
//!
//! tests/openapi.rs checks that it is valid and that real responses match it.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::history_service::HistoryService;
use crate::metrics::Exposition;
use fabric_history::EventKind;
use fabric_history::history_query::{DUMP, NAMES, PATH};
use fabric_history::model::{Cable, Coverage, ErrorDelta, FabricState, Port, Series, Span};
use fabric_history::source::{self, Events};
use fabric_observation::SharedState;
use ib_mad::node::NodeKind;

use super::model::{LinkDetail, Links, NodeDetail, Nodes, Overview, Search, Topologies};
use super::{LINK, LINKS, NODE, NODES, OPENAPI, OVERVIEW, ROUTES, SEARCH, TOPOLOGY};

const FABRIC: &str = "fabric";

/// A parameter of the path or of the query.
fn parameter(key: &str, place: &str) -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let many = |it: Value| json!({"type": "array", "items": it});
    let kinds: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.label()).collect();
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
        // Nodes and events both have a parameter of this name.
        "kind" if place == NODES => (
            "Those of this kind alone.",
            json!({"enum": super::ports::KINDS.map(NodeKind::label)}),
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
            json!({"type": "integer", "minimum": 1, "maximum": source::MAX_LIMIT, "default": source::DEFAULT_LIMIT}),
            false,
        ),
        "after" => ("The page after the one that has this `next`.", text, false),
        other => panic!("{other} has no description"),
    };
    let place = if place.contains(&format!("{{{key}}}")) { "path" } else { "query" };
    json!({"name": key, "in": place, "required": required, "description": about, "schema": schema})
}

/// The content of a response: the schema of a model.
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
    let operation = json!({
        "operationId": name.trim_end_matches('_'),
        "summary": about,
        "parameters": parameters,
        "responses": {"200": {"description": "What was asked for.", "content": content}, "default": problem},
    });
    (path.to_owned(), json!({"get": operation}))
}

fn paths(make: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths: Map<String, Value> = Map::new();
    for it in &ROUTES {
        let (about, content) = match it.path {
            OVERVIEW => ("Each fabric at a glance, and this host's devices", of::<Overview>(make)),
            SEARCH => ("What goes by a name, a GUID or a LID", of::<Search>(make)),
            LINKS => ("The cables", of::<Links>(make)),
            LINK => ("All that is known of a cable", of::<LinkDetail>(make)),
            NODES => ("The nodes", of::<Nodes>(make)),
            NODE => ("A node with its ports", of::<NodeDetail>(make)),
            TOPOLOGY => ("How a fabric is wired", of::<Topologies>(make)),
            other => panic!("{other} has no description"),
        };
        let in_path = it.path.split_once('{').map(|(_, id)| id.trim_end_matches('}'));
        let keys: Vec<&str> = in_path.into_iter().chain(it.accepts.iter().copied()).collect();
        paths.extend([route(it.path, about, &keys, &content)]);
    }
    let openapi = json!({"application/json": {"schema": {"type": "object"}}});
    paths.extend([route(OPENAPI, "This description", &[], &openapi)]);
    let dump = json!({"application/vnd.sqlite3": {}});
    let about = "A copy of a window of the history's file";
    paths.extend([route(DUMP, about, &["from", "to"], &dump)]);
    for (name, keys) in NAMES {
        let (about, content) = match name {
            "span" => ("The time of which anything is recorded", of::<Span>(make)),
            "ports" => ("The ports that are called so", of::<Vec<Port>>(make)),
            "events" => ("What happened, the earliest first, page by page", of::<Events>(make)),
            "cables" => ("The cables that led to ports", of::<Vec<Cable>>(make)),
            "moved" => ("What ports counted of errors", of::<Vec<ErrorDelta>>(make)),
            "series" => ("The course of ports' counters", of::<Vec<Series>>(make)),
            "fabrics" => ("The fabrics as they were at a moment", of::<Vec<FabricState>>(make)),
            "cover" => ("What is known of a window", of::<Coverage>(make)),
            other => panic!("{other} has no description"),
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
fn openapi_json_is_generated_from_models() {
    let made = format!("{:#}\n", document());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == made, "{path} is out of date: make docs");
}

/// The routes are read from axum's Debug output.
#[test]
fn all_routes_and_no_others_are_described() {
    let (_sender, latest) = tokio::sync::watch::channel(std::sync::Arc::new(Exposition::render(
        SharedState::default(),
    )));
    let shown = format!("{:?}", super::router(latest, HistoryService::new(None)));
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
