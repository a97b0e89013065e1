//! The frame of all pages: navigation, search, headers, and error pages.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::address;

/// The Content-Security-Policy of all pages. Names from the fabric are escaped; if one got through, it could
/// still do nothing.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The entries of the navigation: path and name.
const NAVIGATION: [(&str, &str); 5] = [
    (address::OVERVIEW, "Fabric"),
    (address::LINKS, "Links"),
    (address::TOPOLOGY, "Topology"),
    (address::EVENTS, "Events"),
    (address::HOST, "This host"),
];

/// A page.
#[derive(Debug)]
pub struct Page<'a> {
    /// The heading, and the title of the window.
    pub title: &'a str,
    /// The path of the navigation entry that it belongs to.
    pub section: &'a str,
    /// The text of the search, which is shown in its field again.
    pub search_text: &'a str,
    /// The content.
    pub main: Markup,
}

impl<'a> Page<'a> {
    /// A page with this title and content, below an entry of the navigation.
    pub fn new(title: &'a str, section: &'a str, main: Markup) -> Self {
        Page { title, section, search_text: "", main }
    }

    /// The response with status 200.
    pub fn respond(&self) -> Response {
        self.respond_with(StatusCode::OK)
    }

    /// The response with this status.
    pub fn respond_with(&self, status: StatusCode) -> Response {
        let head = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            // Each load shows the latest state.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        ];
        (status, head, self.render().into_string()).into_response()
    }

    fn render(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · fabric-exporter" }
                    link rel="stylesheet" href=(super::style_address());
                    // Without it browsers request /favicon.ico.
                    link rel="icon" href="data:,";
                }
                body {
                    a .skip href="#main" { "To the content" }
                    header {
                        nav aria-label="Pages" { ul {
                            @for (path, name) in NAVIGATION { li {
                                a href=(path) aria-current=[(path == self.section).then_some("page")] { (name) }
                            } }
                        } }
                        form action=(address::SEARCH) role="search" {
                            label .unseen for="q" { "Search by name, GUID or LID" }
                            input #q type="search" name="q" value=(self.search_text) placeholder="Name, GUID or LID" autocomplete="off" spellcheck="false";
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

/// An error page.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    title: &'static str,
    text: String,
}

impl Problem {
    /// 404.
    pub fn not_found(title: &'static str, text: String) -> Self {
        Problem { status: StatusCode::NOT_FOUND, title, text }
    }

    /// 400.
    pub fn bad_request(title: &'static str, text: String) -> Self {
        Problem { status: StatusCode::BAD_REQUEST, title, text }
    }

    /// 500.
    pub fn internal(title: &'static str, text: String) -> Self {
        Problem { status: StatusCode::INTERNAL_SERVER_ERROR, title, text }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let main = html! {
            p { (self.text) }
            p { a href=(address::OVERVIEW) { "To the fabric at a glance" } }
        };
        Page::new(self.title, "", main).respond_with(self.status)
    }
}
