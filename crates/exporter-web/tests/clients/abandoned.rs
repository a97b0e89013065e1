//! Clients that disconnect before their response is built.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use exporter_web::{Limits, RequestClass, Security, blocking};

use crate::served::{Served, request, rest, status, wait_until};

#[derive(Default)]
struct Builds {
    running: AtomicUsize,
    most: AtomicUsize,
    begun: AtomicUsize,
    may_end: Mutex<bool>,
    ended: Condvar,
}

impl Builds {
    fn build(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let mut may_end = self.may_end.lock().unwrap();
        while !*may_end {
            may_end = self.ended.wait(may_end).unwrap();
        }
        drop(may_end);
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// Lets all builds end.
    fn open(&self) {
        *self.may_end.lock().unwrap() = true;
        self.ended.notify_all();
    }
}

/// A server with a page whose builds wait, and a path that is always ready.
fn served(limits: Limits, builds: &Arc<Builds>, security: Security) -> Served {
    let built = Arc::clone(builds);
    let page = move || {
        let builds = Arc::clone(&built);
        async move {
            match blocking::run(move || builds.build()).await {
                Ok(()) => (StatusCode::OK, "page\n"),
                Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy\n"),
            }
        }
    };
    let router = Router::new()
        .route("/page", get(page.clone()))
        .route("/scrape", get(page))
        .route("/", get(|| async { "fine\n" }));
    let class = |path: &str| match path {
        "/page" => RequestClass::Page,
        _ => RequestClass::Ready,
    };
    Served::secured(limits, router, class, security)
}

fn open_server() -> Security {
    Security::load(None).unwrap()
}

#[test]
fn requests_dropped_after_5_ms_do_not_free_their_permits() {
    for (path, permits) in [("/page", 4), ("/scrape", 2)] {
        let builds = Arc::new(Builds::default());
        let served = served(Limits::default(), &builds, open_server());
        for nth in 0..50 {
            // Half of them are reset, as by a client that is killed; the others are closed.
            let mut stream =
                if nth % 2 == 0 { served.connect_to_reset() } else { served.connect() };
            stream.write_all(request(path).as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        wait_until("the builds", || builds.running.load(Ordering::SeqCst) >= permits);
        // The server handles what was sent before this.
        assert_eq!(status(&served.get("/")), Some(200));
        builds.open();
        wait_until("the end of the builds", || builds.running.load(Ordering::SeqCst) == 0);
        let [most, begun] = [&builds.most, &builds.begun].map(|it| it.load(Ordering::SeqCst));
        assert!(most <= permits, "{path}: {most} builds in flight");
        // Those who left while they waited are not served after all.
        assert_eq!(status(&served.get("/page")), Some(200));
        assert!(begun <= 2 * permits, "{path}: {begun} builds were begun");
    }
}

#[test]
fn wait_for_a_permit_ends_with_a_503() {
    let builds = Arc::new(Builds::default());
    let limits = Limits { build_wait: Duration::from_millis(100), ..Limits::default() };
    let served = served(limits, &builds, open_server());
    let mut held: Vec<_> = (0..4).map(|_| served.connect()).collect();
    for stream in &mut held {
        stream.write_all(request("/page").as_bytes()).unwrap();
    }
    wait_until("the builds", || builds.running.load(Ordering::SeqCst) == 4);
    let response = served.get("/page");
    assert_eq!(status(&response), Some(503), "{response}");
    assert!(response.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{response}");
    assert!(response.contains("\r\nx-content-type-options: nosniff\r\n"), "{response}");
    builds.open();
    assert!(held.iter_mut().all(|stream| status(&rest(stream)) == Some(200)));
}

#[test]
fn logins_and_reloads_do_not_wait_for_pages() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("web.yml");
    let web = |password| {
        let hash = bcrypt::hash(password, 4).unwrap();
        std::fs::write(&file, format!("basic_auth_users:\n  a: {hash}\n  b: {hash}\n")).unwrap();
    };
    web("right");
    let builds = Arc::new(Builds::default());
    let security = Security::load(Some(&file)).unwrap();
    // As many threads for builds as there are permits.
    let served = served(Limits::default(), &builds, security);
    let login = |user: &str, password: &str, path: &str| {
        let login = BASE64_STANDARD.encode(format!("{user}:{password}"));
        let request =
            request(path).replace("Host: x", &format!("Host: x\r\nAuthorization: Basic {login}"));
        let mut stream = served.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let mut held: Vec<_> = (0..4).map(|_| login("a", "right", "/page")).collect();
    wait_until("the builds", || builds.running.load(Ordering::SeqCst) == 4);
    // It is not cached: it needs a check.
    assert_eq!(status(&rest(&mut login("b", "right", "/"))), Some(200));
    served.watch();
    web("new");
    wait_until("the reload", || status(&rest(&mut login("b", "new", "/"))) == Some(200));
    builds.open();
    assert!(held.iter_mut().all(|stream| status(&rest(stream)) == Some(200)));
}
