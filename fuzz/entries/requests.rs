//! HTTP requests after hyper has parsed them: methods, paths, queries and headers.
//!
//! The first line has method and address, each further line a header. The requests are handled by the
//! router of a site with a fabric and a history, without a socket.

use std::cell::RefCell;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use fabric_exporter::metrics::OwnMetrics;
use fabric_exporter::published::{Latest, Published};
use fabric_exporter::server::WebApp;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::{fabric, history};

/// A running site.
struct Up {
    runtime: Runtime,
    site: TowerToHyperService<Router>,
    _folder: TempDir,
    _latest: watch::Sender<Arc<Published>>,
}

impl Up {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        std::fs::write(&file, history::recorded()).unwrap();
        let exposition = Arc::new(Published::first(fabric::watch(&[])));
        let (latest, seen): (_, Latest) = watch::channel(exposition);
        let own = OwnMetrics::new("/nowhere".as_ref());
        let site = WebApp::new(seen, own, "/metrics", Some(file));
        Up {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            site: TowerToHyperService::new(site.router()),
            _folder: folder,
            _latest: latest,
        }
    }
}

thread_local! {
    static UP: RefCell<Option<Up>> = const { RefCell::new(None) };
}

pub fn run(bytes: &[u8]) {
    let Some(request) = read(bytes) else { return };
    UP.with_borrow_mut(|up| answered(up.get_or_insert_with(Up::new), request));
}

fn read(bytes: &[u8]) -> Option<Request<Body>> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let at = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::builder()
        .method(Method::from_bytes(&first[..at]).ok()?)
        .uri(&first[at + 1..])
        .body(Body::empty())
        .ok()?;
    for line in lines {
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..at]);
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            request.headers_mut().append(name, value);
        }
    }
    Some(request)
}

fn answered(up: &Up, request: Request<Body>) {
    let is_head = request.method() == Method::HEAD;
    let what = format!("{request:?}");
    let (parts, body) = up.runtime.block_on(async {
        let Ok(answer) = up.site.call(request).await;
        let (parts, body) = answer.into_parts();
        (parts, to_bytes(body, 64 << 20).await.unwrap())
    });
    assert!(
        !parts.status.is_server_error() || parts.status == StatusCode::SERVICE_UNAVAILABLE,
        "{} to {what}",
        parts.status
    );
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    if let Some(length) = length.filter(|_| !is_head) {
        assert_eq!(length, body.len().to_string(), "{what}");
    }
    let json = parts.headers.get(header::CONTENT_TYPE).is_some_and(|it| it == "application/json");
    if json && !is_head {
        let _: serde_json::Value = serde_json::from_slice(&body).unwrap();
    }
}
