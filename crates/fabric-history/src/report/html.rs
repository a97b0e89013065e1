//! The report as one self-contained page of HTML: no scripts, no images, no external styles. It is readable in
//! light and dark mode, on paper, and by a screen reader.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::local_clock::LocalClock;
use crate::plot;
use crate::report::suspects::list_errors;
use crate::report::{Report, Suspect, side_by_side};

const STYLE: &str = "
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif;
  --quiet: color-mix(in srgb, currentColor 20%, transparent);
  --bad: light-dark(#b3261e, #ff8a80); --watch: light-dark(#8a5a00, #ffc46b);
  --good: light-dark(#1b6e3c, #7fd7a1); --load: light-dark(#3566a8, #8ab4f8); }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
h3 { margin: 0; font-size: 1.05rem; }
.gist { font-size: 1.15rem; font-weight: 600; } .quiet { opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid var(--quiet); }
td { overflow-wrap: anywhere; }
td.when, td.what { white-space: nowrap; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
article { border: 1px solid var(--quiet); border-left: .4rem solid var(--watch); border-radius: .3rem; padding: .8rem 1rem; margin: 1rem 0; break-inside: avoid; }
article.bad { border-left-color: var(--bad); }
article ul { margin: .5rem 0; padding-left: 1.2rem; }
.verdict { font-weight: 700; color: var(--watch); } .verdict.bad { color: var(--bad); } .verdict.ok { color: var(--good); }
code { font-size: .85rem; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; margin-top: .5rem; }
svg text { font-size: 12px; fill: currentColor; } svg .unit { opacity: .7; font-size: 11px; }
svg .axis { stroke: currentColor; opacity: .4; } svg .bad { fill: var(--bad); } svg .watch { fill: var(--watch); } svg .load { fill: var(--load); }
svg .mark line { stroke: var(--watch); stroke-dasharray: 2 3; } svg .mark circle { fill: var(--watch); }
svg .mark.good line { stroke: var(--good); } svg .mark.good circle { fill: var(--good); }
";

/// Writes the report.
pub fn write(report: &Report, clock: &LocalClock) -> String {
    let (from, to) = (clock.format(report.window.from), clock.format(report.window.to));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "The fabric from " (from) " to " (to) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "The fabric from " (from) " to " (to) }
                p .gist { (report.summary()) }
                p .quiet {
                    "Read from " (report.source) " by fabric-exporter " (env!("CARGO_PKG_VERSION"))
                    ". Times are of " (clock.zone()) "."
                }
                (suspects(report, clock))
                (events(report, clock))
                (others(report, clock))
                (summaries(report))
                h2 { "What is not known" }
                @if report.unknown.is_empty() { p { "Nothing that could be told." } }
                ul { @for sentence in &report.unknown { li { (sentence) } } }
            }
        }
    };
    page.into_string()
}

fn suspects(report: &Report, clock: &LocalClock) -> Markup {
    html! {
        h2 { "Suspects" }
        @if report.suspects.is_empty() { p { "None." } }
        @for suspect in &report.suspects { (suspect_article(suspect, report, clock)) }
        @if report.more_suspects > 0 { p { (report.more_suspects) " more are less grave." } }
    }
}

fn suspect_article(suspect: &Suspect, report: &Report, clock: &LocalClock) -> Markup {
    html! {
        article class=(suspect.worst) {
            h3 { (suspect.place) ": " span class={ "verdict " (suspect.worst) } { (suspect.worst) } }
            p .quiet {
                code { (suspect.link) } ", conspicuous from " (clock.format(suspect.since))
                ", at the end " span class={ "verdict " (suspect.last) } { (suspect.last) } "."
            }
            ul {
                @for line in &suspect.evidence { li { (line) } }
                @if let Some(repair) = suspect.repair { li { strong { "To try first: " (repair) } } }
            }
            @if let Some(plot) = plot::draw(suspect.timeline(), report.window, clock) { (plot) }
        }
    }
}

fn events(report: &Report, clock: &LocalClock) -> Markup {
    html! {
        h2 { "What happened" }
        @if report.events.is_empty() {
            p { "Nothing, as far as is known." }
        } @else {
            div .wide { table {
                thead { tr { th { "when" } th { "what" } th { "where" } th { "in words" } } }
                tbody { @for event in &report.events { tr {
                    td .when { (clock.format(event.at)) }
                    td .what { (event.kind) }
                    td { (event.place) }
                    td { (event.text) }
                } } }
            } }
        }
        @if report.more_events > 0 { p { (report.more_events) " more events are left out." } }
    }
}

fn others(report: &Report, clock: &LocalClock) -> Markup {
    html! {
        @if !report.others.is_empty() {
            h2 { "Counters of ports that are not suspect" }
            div .wide { table {
                thead { tr { th { "port" } th { "counted" } } }
                tbody { @for moved in &report.others { tr {
                    td { (moved.port.label()) }
                    td { (list_errors(moved, &|at| clock.format(at))) }
                } } }
            } }
            @if report.more_others > 0 { p { (report.more_others) " more ports had fewer." } }
        }
    }
}

fn summaries(report: &Report) -> Markup {
    html! {
        h2 { "The fabric then" }
        @if report.summaries.is_empty() { p { "Not known." } }
        @for (fabric, [before, after]) in &report.summaries {
            div .wide { table {
                thead { tr { th { (fabric) } th { "at the beginning" } th { "at the end" } } }
                tbody { @for (what, before, after) in side_by_side(before.as_ref(), after.as_ref()) {
                    tr { td { (what) } td { (before) } td { (after) } }
                } }
            } }
        }
    }
}
