//! What all pages have around their content: the headers, the title with what is down or bad, the icon, the
//! navigation, and whether the browser loads them again.
//!
//! Without scripts, a page is loaded again by the header `Refresh`, which is the same as `<meta http-equiv>` and, like
//! it, not subject to the Content-Security-Policy. Each page has a link that pauses it (WCAG 2.2.2), and its address
//! keeps that choice.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, Query, Request, State};
use axum::http::{HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::moment::{self, AT};
use crate::page::{Live, Page, Problem};
use crate::recent_moments::ShownMoment;
use crate::state::PageState;
use crate::style::STYLE_ADDRESS;
use crate::time_bar;
use exporter_web::error_response::error_response;
use fabric_api::LiveState;
use fabric_api::address;
use fabric_api::condition;
use fabric_api::model::Condition;
use fabric_history::local_clock::LocalClock;
use fabric_history::parameters::Pairs;
use ib_health::Verdict;

/// The name of the program, which is also that of the product.
const PRODUCT: &str = "fabric-exporter";

/// The parameter of all pages that sets after how many seconds they are loaded again, or that they are not.
const REFRESH: &str = "refresh";
const OFF: &str = "off";
/// The limits of that parameter. More often than a sweep, nothing changes.
const SECONDS: (u64, u64) = (5, 3600);
/// The shortest time until a page is loaded again by itself. Text that is being typed into its search is lost then.
const SHORTEST: Duration = Duration::from_secs(30);
/// And the longest, whatever the interval of sweeps.
const LONGEST: Duration = Duration::from_secs(300);

/// The Content-Security-Policy of all pages. Names from the fabric are escaped; if one got through, it could
/// still do nothing.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const NAVIGATION: [(&str, &str); 9] = [
    (address::OVERVIEW, "Overview"),
    (address::LINKS, "Links"),
    (address::SWITCHES, "Switches"),
    (address::HOSTS, "Hosts"),
    (address::TOPOLOGY, "Topology"),
    (address::TRAFFIC, "Traffic"),
    (address::MODULES, "Modules"),
    (address::EVENTS, "Events"),
    (address::HOST, "This host"),
];

/// Two nodes and the link between them, in the color of the condition: `?ok`, `?watch`, `?bad`, or gray.
pub(super) async fn icon(uri: Uri) -> impl IntoResponse {
    let color = match uri.query() {
        Some("bad") => "#c5352c",
        Some("watch") => "#b87a00",
        Some("ok") => "#1f7a43",
        _ => "#6b7280",
    };
    let icon = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" {
            rect width="16" height="16" rx="4" fill=(color) {}
            path d="M4 12L12 4" stroke="#fff" stroke-width="1.6" {}
            circle cx="4.5" cy="11.5" r="2.3" fill="#fff" {}
            circle cx="11.5" cy="4.5" r="2.3" fill="#fff" {}
        }
    };
    let headers =
        [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "max-age=3600")];
    (headers, icon.into_string())
}

/// Puts the content that a handler returned into a page. Other responses pass. The state is taken after the handler: a
/// download takes minutes, and must not keep the snapshots of a large fabric in memory.
///
/// An address with a moment is answered with the state of that moment, which the handlers get as their [`PageState`].
pub async fn frame<S>(State(app): State<S>, mut request: Request, next: Next) -> Response
where
    PageState: FromRef<S>,
{
    let uri = request.uri().clone();
    let is_api = uri.path().starts_with("/api/");
    let named = {
        let state = PageState::from_ref(&app);
        if time_bar::has_past(uri.path(), &state.telemetry_path) {
            moment::of_address(&state, &uri).await
        } else {
            Ok(None)
        }
    };
    let mut shown = None;
    let mut response = match named {
        Ok(moment) => {
            if let Some(moment) = &moment {
                request.extensions_mut().insert(Arc::clone(moment));
            }
            shown = moment;
            next.run(request).await
        }
        Err(Problem(status, _, text)) if is_api => error_response(status, &text),
        Err(problem) => problem.into_response(),
    };
    let state = PageState::from_ref(&app);
    let keep = |response: &mut Response| keep_moment_of_redirect(response, shown.as_deref());
    let Some(mut page) = response.extensions_mut().remove::<Page>() else {
        keep(&mut response);
        return response;
    };
    let time_bar = match &shown {
        Some(moment) => {
            page.live = Live::No;
            let telemetry_path = &state.telemetry_path;
            page.main = time_bar::keep_moment(&page.main, &moment.text(), telemetry_path);
            time_bar::bar(&uri, moment)
        }
        None if state.history.file.is_some() && page.live != Live::No => time_bar::into_past(&uri),
        None => html! {},
    };
    let live = shown.as_ref().map_or(state.live, |moment| Arc::clone(&moment.live));
    let refresh = Refresh::new(page.live, &uri, interval(&live));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Each load shows the latest state.
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(seconds) = refresh.as_ref().and_then(|refresh| refresh.seconds) {
        headers.insert(header::REFRESH, seconds.into());
    }
    let conditions: Vec<Condition> = live.conditions(live.now()).collect();
    let at = shown.map(|moment| moment.text());
    let around = Around { conditions: &conditions, refresh: refresh.as_ref(), time_bar, at };
    let page = document(&page, &around);
    *response.body_mut() = page.into_string().into();
    response
}

/// A redirect within the pages of a moment leads to a page of that moment.
fn keep_moment_of_redirect(response: &mut Response, shown: Option<&ShownMoment>) {
    let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
    let kept = shown.zip(location).filter(|(_, location)| location.starts_with('/'));
    let kept = kept.map(|(moment, it)| time_bar::with_moment(it, &moment.text(), "&"));
    if let Some(location) = kept.and_then(|it| HeaderValue::from_str(&it).ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
}

/// The shortest interval of what is monitored.
fn interval(live: &LiveState) -> Duration {
    let state = &live.state;
    let fabrics = state.fabrics.iter().map(|observation| observation.interval);
    fabrics.chain(state.host.iter().map(|host| host.interval)).min().unwrap_or_default()
}

/// Whether a page is loaded again by itself, and the link that changes this.
#[derive(Debug, PartialEq, Eq)]
struct Refresh {
    /// After so many seconds; `None` while it is paused.
    seconds: Option<u64>,
    /// The same page, the other way.
    toggle: String,
}

impl Refresh {
    /// What the address asks for, or else what is usual for the page; `None` for a page that does not change.
    fn new(live: Live, uri: &Uri, interval: Duration) -> Option<Self> {
        if live == Live::No {
            return None;
        }
        let Query(pairs) = Query::<Pairs>::try_from_uri(uri).unwrap_or_default();
        let (asked, others): (Pairs, Pairs) =
            pairs.into_iter().partition(|(key, _)| key == REFRESH);
        let usual = interval.clamp(SHORTEST, LONGEST).as_secs();
        let seconds = match asked.last().map(|(_, value)| &**value) {
            Some(OFF) => None,
            Some(value) => {
                Some(value.parse().map_or(usual, |it: u64| it.clamp(SECONDS.0, SECONDS.1)))
            }
            None => (live == Live::Yes).then_some(usual),
        };
        let other = if seconds.is_some() { OFF.to_owned() } else { usual.to_string() };
        let others = others.iter().map(|(key, value)| (&**key, &**value));
        let pairs: Vec<(&str, &str)> = others.chain([(REFRESH, &*other)]).collect();
        Some(Refresh { seconds, toggle: address::with(uri.path(), &pairs) })
    }
}

/// The title begins with what matters in a tab: what is down, and the number of bad links.
fn title(page: &Page, conditions: &[Condition]) -> String {
    let wrong = condition::short(conditions.iter());
    let name = Some(page.title.clone()).filter(|_| page.section != address::OVERVIEW);
    let parts = wrong.into_iter().chain(name).chain([PRODUCT.to_owned()]);
    parts.collect::<Vec<_>>().join(" - ")
}

/// What is around the content of a page.
struct Around<'a> {
    conditions: &'a [Condition],
    refresh: Option<&'a Refresh>,
    time_bar: Markup,
    /// The moment of the page, if it is not the present.
    at: Option<String>,
}

fn document(page: &Page, around: &Around<'_>) -> Markup {
    let Around { conditions, refresh, time_bar, at } = around;
    let at = at.as_deref().unwrap_or_default();
    let state = match conditions.iter().map(Condition::verdict).max() {
        None | Some(Verdict::Unknown) => "",
        Some(Verdict::Ok) => "?ok",
        Some(Verdict::Watch) => "?watch",
        Some(Verdict::Bad) => "?bad",
    };
    let icon = format!("{}{state}", address::ICON);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title(page, conditions)) }
                link rel="stylesheet" href=(*STYLE_ADDRESS);
                link rel="icon" type="image/svg+xml" href=(icon);
            }
            body {
                a .skip href="#main" { "Skip to content" }
                header {
                    a .product href=(address::with(address::OVERVIEW, &[(AT, at)])) { img src=(icon) alt="" width="20" height="20"; (PRODUCT) }
                    nav aria-label="Pages" { ul {
                        @for (path, name) in NAVIGATION { li {
                            a href=(address::with(path, &[(AT, at)])) aria-current=[(path == page.section).then_some("page")] { (name) }
                        } }
                    } }
                    form action=(address::SEARCH) role="search" {
                        label .unseen for="q" { "Search by name, GUID, LID or node[port]" }
                        input #q type="search" name="q" value=(page.search_text) placeholder="Name, GUID, LID" autocomplete="off" spellcheck="false";
                        @if !at.is_empty() { input type="hidden" name=(AT) value=(at); }
                        button { "Search" }
                    }
                }
                main #main tabindex="-1" {
                    @if let Some(Refresh { seconds, toggle }) = refresh { p .live { @match seconds {
                        Some(seconds) => { "Refreshes every " (seconds) " s. " a href=(toggle) { "Pause" } },
                        None => a href=(toggle) { "Refresh automatically" },
                    } } }
                    (time_bar)
                    h1 { (page.title) }
                    (page.main)
                }
                footer { p {
                    (PRODUCT) " " (env!("CARGO_PKG_VERSION")) " · " a href=(address::RUNBOOKS) { "Runbooks" }
                    " · Time zone: " (LocalClock::now().zone())
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::Finding;

    fn refresh(live: Live, uri: &'static str) -> Option<(Option<u64>, String)> {
        let interval = Duration::from_secs(15);
        let refresh = Refresh::new(live, &Uri::from_static(uri), interval)?;
        Some((refresh.seconds, refresh.toggle))
    }

    #[test]
    fn pages_refresh_unless_the_address_pauses_them() {
        for (live, uri, seconds, toggle) in [
            (Live::Yes, "/", Some(30), "/?refresh=off"),
            (Live::Yes, "/?refresh=off", None, "/?refresh=30"),
            (Live::Yes, "/?refresh=60", Some(60), "/?refresh=off"),
            (Live::Yes, "/?refresh=0", Some(5), "/?refresh=off"),
            (Live::Yes, "/?refresh=soon", Some(30), "/?refresh=off"),
            (Live::Offered, "/links", None, "/links?refresh=30"),
            // The other parameters stay, once each and escaped.
            (
                Live::Offered,
                "/links?text=a%26b&refresh=5&refresh=10&page=2",
                Some(10),
                "/links?text=a%26b&page=2&refresh=off",
            ),
        ] {
            assert_eq!(refresh(live, uri), Some((seconds, toggle.into())), "{uri}");
        }
        assert_eq!(refresh(Live::No, "/runbooks?refresh=5"), None);
        let slow = Refresh::new(Live::Yes, &Uri::from_static("/"), Duration::from_secs(3600));
        assert_eq!(slow.unwrap().seconds, Some(300));
    }

    fn condition(findings: &[(&'static str, &'static str, usize)]) -> Condition {
        let findings = findings.iter().map(|&(kind, verdict, count)| Finding {
            kind: kind.into(),
            verdict: verdict.into(),
            count,
            ..Finding::default()
        });
        let findings: Vec<Finding> = findings.collect();
        let verdict = findings.first().map_or("ok".into(), |worst| worst.verdict.clone());
        Condition { verdict, findings, ..Condition::default() }
    }

    #[test]
    fn title_begins_with_what_is_down_or_bad() {
        let page = |title, section| Page::new(title, section, html! {});
        let overview = page("Overview", address::OVERVIEW);
        let (switch, bad) = (("switches_down", "bad", 1), ("links", "bad", 1_200));
        for (of, says) in [
            (vec![condition(&[("links", "bad", 2)])], "2 bad - fabric-exporter"),
            (vec![condition(&[])], "fabric-exporter"),
            (
                vec![condition(&[("links", "unknown", 9), ("learning", "unknown", 9)])],
                "fabric-exporter",
            ),
            // Before the first sweep.
            (vec![], "fabric-exporter"),
            (vec![condition(&[switch, bad])], "1 switch down, 1,200 bad - fabric-exporter"),
            (vec![condition(&[switch]), condition(&[switch])], "2 switches down - fabric-exporter"),
            (vec![condition(&[("nodes_down", "bad", 1)])], "1 node down - fabric-exporter"),
            // It may reboot.
            (vec![condition(&[("nodes_down", "unknown", 1)])], "fabric-exporter"),
        ] {
            assert_eq!(title(&overview, &of), says);
        }
        let leaf = page("leaf-3", "");
        assert_eq!(title(&leaf, &[condition(&[bad])]), "1,200 bad - leaf-3 - fabric-exporter");
    }

    #[test]
    fn icon_is_green_only_if_all_is_known_and_ok() {
        let page = Page::new("Overview", address::OVERVIEW, html! {});
        let icon = |of: &[Condition]| {
            let (conditions, time_bar) = (of, html! {});
            let around = Around { conditions, refresh: None, time_bar, at: None };
            let text = document(&page, &around).into_string();
            let icon = text.split(address::ICON).nth(1).unwrap();
            icon.split('"').next().unwrap().to_owned()
        };
        let [ok, unknown] = [condition(&[]), condition(&[("learning", "unknown", 9)])];
        let [watch, bad] = ["watch", "bad"].map(|it| condition(&[("links", it, 1)]));
        assert_eq!(icon(&[ok.clone(), ok.clone()]), "?ok");
        assert_eq!((icon(&[]), icon(&[ok.clone(), unknown])), (String::new(), String::new()));
        assert_eq!((&*icon(&[ok, watch.clone()]), &*icon(&[bad, watch])), ("?watch", "?bad"));
    }
}
