//! Generates openapi.json (OpenAPI 3.1) from the models and the routes; `make docs` writes it. Only tests build
//! the schemas: the program contains the text alone.
//!
//! tests/openapi.rs checks that it is valid and that real responses match it.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::published::Published;
use fabric_history::EventKind;
use fabric_history::cable_life::CableMatches;
use fabric_history::history_query::{DUMP, NAMES, PATH, parameter_names};
use fabric_history::incidents::{Incidents, Severity};
use fabric_history::model::{Cable, Coverage, ErrorDelta, FabricState, Port, Series, Span};
use fabric_history::source::{self, EventOrder, Events};
use fabric_observation::SharedState;
use fabric_pages::HistoryQueries;
use ib_health::Verdict;
use ib_mad::node::NodeKind;

use super::WebApp;
use super::api::ROUTES;
use super::routes::ASKED;
use fabric_api::changes::CHANGES;
use fabric_api::impact::IMPACT;
use fabric_api::model::{
    Changes, CrossedLinks, HostsOfLink, Impact, LinkDetail, Links, Modules, NodeDetail, Nodes,
    Overview, Routes, Search, Topologies, Totals, Traffics,
};
use fabric_api::route_desk::RouteDesk;
use fabric_api::totals::TOTALS;
use fabric_api::{CROSSED, LINK_HOSTS, LINKS, OPENAPI, ROUTE, TRAFFIC};

const FABRIC: &str = "fabric";

/// What a parameter that names a moment is about, its schema, and whether it is required.
fn time_parameter(key: &str, path: &str) -> (&'static str, Value, bool) {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    match key {
        "from" => ("Start of the time window.", time, true),
        "to" => ("End of the time window.", time, true),
        "at" if path.starts_with(PATH) => ("The time.", time, true),
        "at" => (
            "The moment of the past that is shown, by the history: RFC 3339, local time such as `2026-11-27 03:12`, or how \
             long ago such as `2h`. Without it, the present.",
            text,
            false,
        ),
        _ => ("The first moment, in the same forms. The second one is `at`.", text, true),
    }
}

/// A parameter of the path or of the query.
fn parameter(key: &str, path: &str) -> Value {
    let text = json!({"type": "string"});
    let many = |it: Value| json!({"type": "array", "items": it});
    let kinds: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.label()).collect();
    let (about, schema, required) = match key {
        FABRIC => ("Only this fabric.", text, false),
        "suspect" => (
            "Only suspect links: bad, watch, or unknown with link errors.",
            json!({"type": "boolean"}),
            false,
        ),
        "down" => (
            "Only nodes that are down: missing or unresponsive.",
            json!({"type": "boolean"}),
            false,
        ),
        "id" => {
            ("The id of the link, such as 0x00aa000000000001:5-0x00aa000000000002:1.", text, true)
        }
        "guid" => ("NodeGUID.", text, true),
        "q" => (
            "A node name or part of it, a GUID, a LID, a link id, node[port], or a device of this host.",
            text,
            true,
        ),
        // Nodes and events both have a parameter of this name.
        "kind" if path == "/api/v1/nodes" => (
            "Only nodes of this type.",
            json!({"enum": fabric_api::KINDS.map(NodeKind::label)}),
            false,
        ),
        "kind" => ("Only events of these kinds.", many(json!({"enum": kinds})), false),
        "called" => (
            "A link id, node[port], guid[port], the name or GUID of a node, or a host.",
            text,
            true,
        ),
        "serial" => (
            "A serial number, in any case, or at least four characters with which it begins.",
            text,
            true,
        ),
        "from" if path == ROUTE => (
            "Where packets are sent: a name, GUID, LID, port or host; of a host, each of its adapters.",
            text,
            true,
        ),
        "to" if path == ROUTE => ("Where they are received, in the same form.", text, true),
        "host" => ("A host, or the name, GUID, LID or a port of one of its adapters.", text, true),
        "from" | "to" | "at" | "diff" => time_parameter(key, path),
        "node" if !path.starts_with(PATH) => (
            "Only nodes of this name, GUID or host; of links, those with such an end.",
            text,
            false,
        ),
        "node" => ("Only these nodes, by GUID.", many(text), false),
        "port" => ("Only these ports, such as 0x00aa000000000001:5.", many(text), false),
        "detail" => (
            "`errors` for error counters, `all` for traffic and wait counters, too.",
            json!({"enum": ["errors", "all"]}),
            true,
        ),
        "name" => ("Only links with this text in the name of a node at an end.", text, false),
        "verdict" => (
            "Only links with these verdicts.",
            many(json!({"enum": Verdict::ALL.map(Verdict::label)})),
            false,
        ),
        "limit" if !path.starts_with(PATH) => (
            "At most this many per fabric, the worst or busiest first. Without it, all links are listed by GUID, or the \
             20 busiest directions.",
            json!({"type": "integer", "minimum": 1, "maximum": fabric_api::MAX_LIMIT}),
            false,
        ),
        "severity" => (
            "Only incidents of at least this severity.",
            json!({"enum": Severity::ALL.map(Severity::label), "default": "info"}),
            false,
        ),
        "limit" if path.ends_with("/incidents") => (
            "Maximum number of incidents; those of the least severity and harm are omitted.",
            json!({"type": "integer", "minimum": 1, "maximum": source::MAX_LIMIT, "default": source::DEFAULT_LIMIT}),
            false,
        ),
        "limit" => (
            "Maximum number of events per page.",
            json!({"type": "integer", "minimum": 1, "maximum": source::MAX_LIMIT, "default": source::DEFAULT_LIMIT}),
            false,
        ),
        "after" => ("Start after the page that returned this `next`.", text, false),
        "order" => (
            "Order of the events: by their times, or as they were recorded. A flap has the time of the link down, and is \
             recorded when the link is up again: to follow a history, use `recorded`, and repeat the request with the \
             latest `next`.",
            json!({"enum": EventOrder::ALL.map(EventOrder::label), "default": EventOrder::default().label()}),
            false,
        ),
        other => panic!("{other} has no description"),
    };
    let location = if path.contains(&format!("{{{key}}}")) { "path" } else { "query" };
    json!({"name": key, "in": location, "required": required, "description": about, "schema": schema})
}

/// The content of a response: the schema of a model.
fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    json!({"application/json": {"schema": generator.subschema_for::<T>()}})
}

fn route(path: &str, about: &str, keys: &[&str], content: &Value) -> (String, Value) {
    let parameters: Vec<Value> = keys.iter().map(|key| parameter(key, path)).collect();
    let problem = json!({
        "description": "The error, in one line.",
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
        "responses": {"200": {"description": "The result.", "content": content}, "default": problem},
    });
    (path.to_owned(), json!({"get": operation}))
}

fn paths(make: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths: Map<String, Value> = Map::new();
    for (path, accepts, _) in &ROUTES {
        let (about, content) = match *path {
            "/api/v1/overview" => {
                ("Summary of each fabric and of this host's devices", of::<Overview>(make))
            }
            "/api/v1/search" => ("Search by name, GUID or LID", of::<Search>(make)),
            LINKS => ("List links", of::<Links>(make)),
            "/api/v1/links/{id}" => ("Get a link with both ports", of::<LinkDetail>(make)),
            "/api/v1/modules" => ("List cables and modules", of::<Modules>(make)),
            "/api/v1/nodes" => ("List nodes", of::<Nodes>(make)),
            "/api/v1/nodes/{guid}" => ("Get a node with its ports", of::<NodeDetail>(make)),
            TOTALS => ("Get what counters had counted before their last reset", of::<Totals>(make)),
            "/api/v1/topology" => ("Topology of each fabric", of::<Topologies>(make)),
            IMPACT => ("Running jobs that bad links may hurt", of::<Impact>(make)),
            TRAFFIC => ("Traffic, and the busiest directions of links", of::<Traffics>(make)),
            other => panic!("{other} has no description"),
        };
        let in_path = path.split_once('{').map(|(_, id)| id.trim_end_matches('}'));
        let keys: Vec<&str> = in_path.into_iter().chain(accepts.iter().copied()).collect();
        paths.extend([route(path, about, &keys, &content)]);
    }
    for (path, accepts) in ASKED {
        let (about, content) = match path {
            ROUTE => (
                "Routes between two nodes, by the forwarding tables of the switches",
                of::<Routes>(make),
            ),
            LINK_HOSTS => ("Hosts whose packets cross a link", of::<HostsOfLink>(make)),
            CROSSED => {
                ("Links that packets of a host cross, the worst first", of::<CrossedLinks>(make))
            }
            other => panic!("{other} has no description"),
        };
        let in_path = path.split_once('{').map(|_| "id");
        let keys: Vec<&str> = in_path.into_iter().chain(accepts.iter().copied()).collect();
        paths.extend([route(path, about, &keys, &content)]);
    }
    let about = "What changed between two moments";
    paths.extend([route(CHANGES, about, &super::changes::ACCEPTED, &of::<Changes>(make))]);
    let openapi = json!({"application/json": {"schema": {"type": "object"}}});
    paths.extend([route(OPENAPI, "This OpenAPI document", &[], &openapi)]);
    let dump = json!({"application/vnd.sqlite3": {}});
    let about = "Copy of the history file, limited to a time window";
    paths.extend([route(DUMP, about, &["from", "to"], &dump)]);
    for name in NAMES {
        let (about, content) = match name {
            "span" => ("Time span of the recorded data", of::<Span>(make)),
            "ports" => ("Find recorded ports by name, GUID or link id", of::<Vec<Port>>(make)),
            "events" => ("List events, oldest first, in pages", of::<Events>(make)),
            "incidents" => (
                "List incidents, oldest first: events grouped by their cause",
                of::<Incidents>(make),
            ),
            "cables" => ("Links of ports during a time window", of::<Vec<Cable>>(make)),
            "moved" => ("Increase of error counters by port", of::<Vec<ErrorDelta>>(make)),
            "series" => ("Counter series of ports", of::<Vec<Series>>(make)),
            "fabrics" => ("State of the fabrics at a given time", of::<Vec<FabricState>>(make)),
            "cable" => (
                "Find a cable or module by its serial number: where it was, and what happened there",
                of::<CableMatches>(make),
            ),
            "cover" => ("Coverage of a time window", of::<Coverage>(make)),
            other => panic!("{other} has no description"),
        };
        let keys = parameter_names(name).unwrap();
        paths.extend([route(&format!("{PATH}/{name}"), about, &keys, &content)]);
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
    let about = "The state and the history of InfiniBand fabrics and of this host's RDMA devices. Counts have the unit of \
                 their metric, times are RFC 3339, rates are in bytes per second. Later versions may add fields \
                 and enumeration values. /api/v1/history requires --history.file.";
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/fabric-api/openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == made, "{path} is out of date: make docs");
}

/// The routes are read from axum's Debug output.
#[test]
fn all_routes_and_no_others_are_described() {
    let (_sender, latest) =
        tokio::sync::watch::channel(std::sync::Arc::new(Published::first(SharedState::default())));
    let api = super::api::router(latest.clone(), HistoryQueries::new(None));
    let asked = super::routes::router(latest, RouteDesk::default());
    let changes = super::changes::router::<WebApp>();
    let shown = format!("{:?} {changes:?}", api.merge(asked));
    let quoted = shown.split('"').filter(|text| text.starts_with("/api/"));
    let question = format!("{PATH}/{{question}}");
    let routes: BTreeSet<String> = quoted
        .flat_map(|path| {
            let names = NAMES.iter().map(|name| format!("{PATH}/{name}"));
            if path == question { names.collect() } else { vec![path.to_owned()] }
        })
        .collect();
    let document = document();
    let described: BTreeSet<String> =
        document["paths"].as_object().unwrap().keys().cloned().collect();
    assert!(routes.len() > 10, "{routes:?}");
    assert_eq!(routes, described);
}
