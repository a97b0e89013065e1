//! What all pages have in common: where one is, where one can go, and how it is answered.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::address;

/// A style sheet, on its way out.
pub type Style = ([(HeaderName, &'static str); 2], &'static str);

/// What a page may do: look as it is meant to, and ask us. Names from the fabric are escaped; should one
/// get through all the same, it can do nothing.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The ways through the pages: where, and what it is called.
const WAYS: [(&str, &str); 5] = [
    (address::OVERVIEW, "Fabric"),
    (address::LINKS, "Links"),
    (address::TOPOLOGY, "Topology"),
    (address::EVENTS, "Events"),
    (address::HOST, "This host"),
];

/// A page that is to be written.
#[derive(Debug)]
pub struct Page<'a> {
    /// What it is about, as its heading and its window's title.
    pub title: &'a str,
    /// Which of the ways it is one of: its path.
    pub way: &'a str,
    /// What was searched for, if anything was.
    pub sought: &'a str,
    /// What it says.
    pub main: Markup,
}

impl<'a> Page<'a> {
    /// One about something.
    pub fn new(title: &'a str, way: &'a str, main: Markup) -> Self {
        Page { title, way, sought: "", main }
    }

    /// Writes it.
    pub fn answer(&self) -> Response {
        self.answer_with(StatusCode::OK)
    }

    /// Writes it as something else than what was asked for.
    pub fn answer_with(&self, status: StatusCode) -> Response {
        let head = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            // What it says is of this moment.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        ];
        (status, head, self.written().into_string()).into_response()
    }

    fn written(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · fabric-exporter" }
                    link rel="stylesheet" href=(super::look());
                    // Browsers ask for one at the root, otherwise.
                    link rel="icon" href="data:,";
                }
                body {
                    a .skip href="#main" { "To the content" }
                    header {
                        nav aria-label="Pages" { ul {
                            @for (path, name) in WAYS { li {
                                a href=(path) aria-current=[(path == self.way).then_some("page")] { (name) }
                            } }
                        } }
                        form action=(address::SEARCH) role="search" {
                            label .unseen for="q" { "Search by name, GUID or LID" }
                            input #q type="search" name="q" value=(self.sought) placeholder="Name, GUID or LID" autocomplete="off" spellcheck="false";
                            button { "Search" }
                        }
                    }
                    main #main tabindex="-1" {
                        h1 { (self.title) }
                        (self.main)
                    }
                    footer { p { "fabric-exporter " (env!("CARGO_PKG_VERSION")) } }
                }
            }
        }
    }
}

/// Says that something is not there, or cannot be told.
pub fn problem(status: StatusCode, title: &str, what: &str) -> Response {
    let main = html! {
        p { (what) }
        p { a href=(address::OVERVIEW) { "To the fabric at a glance" } }
    };
    Page::new(title, "", main).answer_with(status)
}
