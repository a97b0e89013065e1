//! `/runbooks`, the list of runbooks, and `/runbooks/{alert}`: the meaning of an alert, and what to do. Alerts link
//! here, so that no other server is needed.
//!
//! The text is that of `alerts/runbooks`. [`markdown`] renders the Markdown that these files use, and no more.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};

use crate::page::{Answer, Page, Problem};
use axum::http::StatusCode;
use fabric_api::address;

const FILES: [&str; 6] = [
    include_str!("../../../alerts/runbooks/cables.md"),
    include_str!("../../../alerts/runbooks/nodes.md"),
    include_str!("../../../alerts/runbooks/subnet.md"),
    include_str!("../../../alerts/runbooks/congestion.md"),
    include_str!("../../../alerts/runbooks/hosts.md"),
    include_str!("../../../alerts/runbooks/exporter.md"),
];

/// The address of a document that the exporter does not serve, by its path from the root of the repository.
const REPOSITORY: &str = "https://github.com/fabric-exporter/fabric-exporter/blob/main/";

/// A file of runbooks.
#[derive(Clone, Copy, Debug)]
struct File {
    title: &'static str,
    /// What applies to all of its alerts.
    notes: &'static str,
    sections: &'static str,
}

impl File {
    fn all() -> impl Iterator<Item = File> {
        FILES.into_iter().map(|text| {
            let (head, sections) = text.split_once("\n## ").unwrap_or((text, ""));
            let (title, notes) = head.split_once('\n').unwrap_or((head, ""));
            File { title: title.trim_start_matches("# Runbook: "), notes, sections }
        })
    }

    /// Each alert with the text of its section.
    fn runbooks(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.sections.split("\n## ").filter_map(|section| section.split_once('\n'))
    }
}

pub(super) async fn index() -> Response {
    let main = html! {
        p { "What each alert means, its impact on jobs, what to check first, and how to repair the fault." }
        @for file in File::all() {
            h2 { (file.title) }
            ul { @for (alert, _) in file.runbooks() { li { a href=(address::runbook(alert)) { (alert) } } } }
        }
    };
    Page::new("Runbooks", "", main).respond()
}

pub(super) async fn get(Path(alert): Path<String>) -> Answer {
    let mut all = File::all().flat_map(|file| file.runbooks().map(move |it| (file, it)));
    let Some((file, (alert, text))) = all.find(|(_, (name, _))| *name == alert) else {
        let text = format!("No alert has the name {alert:?}.");
        return Err(Problem(StatusCode::NOT_FOUND, "No such runbook", text));
    };
    let main = html! {
        div .runbook {
            (markdown(text))
            @if !file.notes.trim().is_empty() {
                h2 { "Notes" }
                (markdown(file.notes))
            }
            p { a href=(address::RUNBOOKS) { "All runbooks" } }
        }
    };
    Ok(Page::new(alert, "", main).respond())
}

/// The blocks of a text: what blank lines separate.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.is_empty())
}

/// Renders Markdown: paragraphs, indented code (each line by itself, so that wrapped ones are indented), lists without nesting, `code`, `**bold**` and links.
fn markdown(text: &str) -> Markup {
    html! { @for block in blocks(text) {
        @let lines: Vec<&str> = block.lines().collect();
        // The further lines of an item are indented.
        @let items = || lines.chunk_by(|_, next| next.starts_with(' ')).map(|item| {
            let text = item.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
            html! { li { (inline(text.split_once(' ').map_or("", |(_mark, text)| text))) } }
        });
        @if let Some(code) = block.strip_prefix("    ") { pre { code { @for line in code.split("\n    ") { span { (line) "\n" } } } } }
        @else if block.starts_with("- ") { ul { @for item in items() { (item) } } }
        @else if block.starts_with("1. ") { ol { @for item in items() { (item) } } }
        @else { p { (inline(&block.replace('\n', " "))) } }
    } }
}

fn inline(text: &str) -> Markup {
    let Some(at) = text.find(['`', '*', '[']) else { return html! { (text) } };
    let (before, rest) = text.split_at(at);
    let (element, after) = element(rest).unwrap_or_else(|| (html! { (&rest[..1]) }, &rest[1..]));
    html! { (before) (element) (inline(after)) }
}

/// The element at the start of a text, and the text after it.
fn element(text: &str) -> Option<(Markup, &str)> {
    if let Some(rest) = text.strip_prefix('`') {
        let (code, after) = rest.split_once('`')?;
        return Some((html! { code { (code) } }, after));
    }
    if let Some(rest) = text.strip_prefix("**") {
        let (bold, after) = rest.split_once("**")?;
        return Some((html! { strong { (inline(bold)) } }, after));
    }
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    Some((html! { a href=(link(target)) { (inline(label)) } }, after))
}

/// The address of a link in a runbook: another runbook, or a document of the repository.
fn link(target: &str) -> String {
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    if let Some(path) = file.strip_prefix("../../") {
        let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
        return format!("{REPOSITORY}{path}{fragment}");
    }
    File::all()
        .flat_map(File::runbooks)
        .find(|(alert, _)| alert.eq_ignore_ascii_case(fragment))
        .map_or_else(|| address::RUNBOOKS.to_owned(), |(alert, _)| address::runbook(alert))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_html() {
        let text = "A **b `c`** and [d](nodes.md#infinibandnodedown),\nor [e](../../docs/f.md#g).\n\n    \
                    <h> 1\n    2\n\n1. x\n   y\n2. z * [5m]\n\n- w\n";
        assert_eq!(
            markdown(text).into_string(),
            "<p>A <strong>b <code>c</code></strong> and <a href=\"/runbooks/InfinibandNodeDown\">d</a>, \
             or <a href=\"https://github.com/fabric-exporter/fabric-exporter/blob/main/docs/f.md#g\">e</a>.</p>\
             <pre><code><span>&lt;h&gt; 1\n</span><span>2\n</span></code></pre><ol><li>x y</li><li>z * [5m]</li></ol><ul><li>w</li></ul>"
        );
    }

    /// Markdown beyond what [`markdown`] knows would be shown as it is written.
    #[test]
    fn runbooks_use_known_markdown_and_existing_links() {
        for file in File::all() {
            assert!(file.title.starts_with(|it: char| it.is_ascii_uppercase()), "{file:?}");
            for text in [file.notes, file.sections] {
                for block in blocks(text) {
                    let unknown = ["|", "```", "> ", "# ", "<", "* "];
                    let found = unknown.iter().find(|it| block.starts_with(**it));
                    assert!(found.is_none() || block.starts_with("## "), "{block}");
                }
                for target in text.split("](").skip(1) {
                    let target = target.split(')').next().unwrap();
                    assert!(link(target) != address::RUNBOOKS, "{target}");
                }
            }
            for (alert, text) in file.runbooks() {
                let html = markdown(text).into_string();
                assert!(!html.contains("**") && !html.contains("]("), "{alert}: {html}");
            }
        }
    }
}
