//! Draws `top`: a header, a view or the ports of a link, and the keys.

use std::collections::BTreeSet;
use std::time::SystemTime;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Row, Table, TableState};

use crate::cli::cells::count_of;
use crate::cli::cells::{percent, wait};
use crate::cli::cells::{rate, reason};
use crate::cli::terminal::{printable, wrap};
use display_text::{abbreviate, grouped, plural};
use fabric_api::model::{
    BusyLink, End, Flow, Label, Link, LinkDetail, Overview, Port, Region, Verdicts,
};
use fabric_api::traffic::bit_rate;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Event;
use ib_health::Verdict;

use super::app::{App, Mode};
use super::fetch::{Body, Deltas};
use super::request::Tab;

/// Smaller terminals show only a note.
const MIN_SIZE: (u16, u16) = (40, 8);

/// The lines below a table with the text of the selected row in full.
const TEXT: u16 = 5;

const KEYS: [(&str, &str); 12] = [
    ("1 2 3 4, Tab", "view: cables, traffic, congestion, events"),
    ("Up Down, j k", "select a row"),
    ("PgUp PgDn Space", "a page up or down"),
    ("Home End, g G", "the first or the last row"),
    ("Enter", "the ports of the selected row"),
    ("Esc", "back; in a view, remove the filter"),
    ("s", "next order"),
    ("/", "filter: a part of a name, a GUID, LID, port or link"),
    ("f", "next fabric"),
    ("p", "pause, continue"),
    ("?", "this help"),
    ("q, Ctrl-C", "end"),
];

/// Colors, or none.
#[derive(Clone, Copy)]
struct Palette(bool);

impl Palette {
    fn color(self, color: Color) -> Style {
        if self.0 { Style::new().fg(color) } else { Style::new() }
    }

    fn verdict(self, label: &str) -> Style {
        match Verdict::from_label(label) {
            Some(Verdict::Bad) => self.color(Color::Red).bold(),
            Some(Verdict::Watch) => self.color(Color::Yellow),
            Some(Verdict::Ok) => self.color(Color::Green),
            _ => Style::new(),
        }
    }
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dim();
const REVERSED: Style = Style::new().reversed();

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, app: &mut App, colors: bool) {
    let (area, palette) = (frame.area(), Palette(colors));
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        let (columns, rows) = MIN_SIZE;
        frame.render_widget(Line::raw(format!("too small: {columns}x{rows} needed")), area);
        return;
    }
    let rows = [Constraint::Length(3), Constraint::Fill(1), Constraint::Length(1)];
    let [head, body, foot] = Layout::vertical(rows).areas(area);
    header(frame, app, palette, head);
    match &app.data {
        None => {
            let text = format!("waiting for {}", app.source);
            frame.render_widget(Line::styled(text, DIM), body);
        }
        Some(_) => view(frame, app, palette, body),
    }
    footer(frame, app, foot);
    if app.mode == Mode::Help {
        help(frame, palette, body);
    }
}

fn header(frame: &mut Frame<'_>, app: &App, palette: Palette, area: Rect) {
    let [first, second, third] = Layout::vertical([Constraint::Length(1); 3]).areas(area);
    let overview = app.data.as_ref().map(|data| &data.overview);
    let mut line = vec![Span::styled("fabric-exporter top  ", BOLD), Span::raw(&*app.source)];
    if let Some(fabric) = &app.request.fabric {
        line.push(Span::raw(format!("  fabric {}", printable(fabric))));
    }
    line.extend(overview.map(|overview| Span::raw(format!("  {}", swept(overview)))));
    frame.render_widget(Line::from(line), first);
    match (&app.problem, overview) {
        (Some(problem), _) => {
            let style = palette.color(Color::Red).bold();
            let since = app.updated.map(|at| format!(" (data of {})", clock_time(at)));
            let text = format!("{}{}", printable(problem), since.unwrap_or_default());
            frame.render_widget(Line::styled(text, style), second);
        }
        (None, Some(overview)) => frame.render_widget(totals(overview, palette), second),
        (None, None) => {}
    }
    let mut tabs = Vec::new();
    for (index, tab) in Tab::ALL.into_iter().enumerate() {
        let is_shown = tab == app.request.tab && app.request.target.is_none();
        let style = if is_shown { REVERSED } else { Style::new() };
        tabs.push(Span::styled(format!(" {} {} ", index + 1, tab.label()), style));
    }
    if app.request.is_paused {
        tabs.push(Span::styled("  paused", palette.color(Color::Yellow)));
    }
    if !app.request.filter.is_empty() {
        tabs.push(Span::raw(format!("  filter: {}", printable(&app.request.filter))));
    }
    if let Some(order) = app.order() {
        tabs.push(Span::styled(format!("  by {order}"), DIM));
    }
    frame.render_widget(Line::from(tabs), third);
}

/// From this age on, in seconds, a sweep is shown with its time: it is one of the past, or sweeps have stopped.
const OLD: u64 = 600;

/// How old the latest sweep is.
fn swept(overview: &Overview) -> String {
    let ends =
        overview.fabrics.iter().filter_map(|fabric| fabric.sweep.as_ref()?.ended_at.as_ref());
    let Some(latest) = ends.max() else { return "not swept yet".into() };
    let Ok(at) = humantime::parse_rfc3339(latest) else { return String::new() };
    // A simulated clock may be ahead.
    let age = SystemTime::now().duration_since(at).unwrap_or_default().as_secs();
    if age >= OLD {
        format!("as of {}", LocalClock::now().format(at))
    } else {
        format!("swept {age} s ago")
    }
}

fn totals(overview: &Overview, palette: Palette) -> Line<'static> {
    if overview.fabrics.is_empty() {
        return Line::raw("this exporter does not sweep a fabric");
    }
    let verdicts = overview.fabrics.iter().map(|fabric| fabric.verdicts);
    let verdicts = verdicts.fold(Verdicts::default(), Verdicts::and);
    let mut spans = Vec::new();
    let findings = overview.fabrics.iter().flat_map(|fabric| fabric.condition.beside_links());
    for finding in findings {
        let style = palette.verdict(&finding.verdict);
        spans.push(Span::styled(format!("{} | ", printable(&finding.text)), style));
    }
    let beside = spans.len();
    for (verdict, count) in verdicts.worst_first().into_iter().filter(|(_, count)| *count > 0) {
        if spans.len() > beside {
            spans.push(Span::raw(", "));
        }
        let text = count_of(&verdicts, verdict, count);
        spans.push(Span::styled(text, palette.verdict(verdict.label())));
    }
    if spans.len() == beside {
        spans.push(Span::raw("no links"));
    }
    let regions: usize = overview.fabrics.iter().map(|fabric| fabric.regions).sum();
    if regions > 0 {
        let style = palette.color(Color::Yellow);
        spans.push(Span::styled(format!(" | congestion: {}", grouped(regions)), style));
    }
    let kinds = overview.fabrics.iter().flat_map(|fabric| &fabric.nodes);
    let (nodes, down) = kinds.fold((0, 0), |sum, kind| (sum.0 + kind.nodes, sum.1 + kind.down));
    spans.push(Span::raw(format!(" | {}", plural(nodes, "node"))));
    if down > 0 {
        spans.push(Span::styled(format!(", {down} down"), palette.verdict("bad")));
    }
    let sweeps = overview.fabrics.iter().filter_map(|fabric| fabric.sweep.as_ref());
    let failing: Vec<String> =
        sweeps.flat_map(|sweep| &sweep.failing).map(ToString::to_string).collect();
    if !failing.is_empty() {
        let text = format!(" | failing: {}", failing.join(", "));
        spans.push(Span::styled(text, palette.verdict("bad")));
    }
    Line::from(spans)
}

fn footer(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let line = match (&app.mode, &app.request.target) {
        (Mode::Filter(text), _) => {
            let hint = Span::styled("  Enter: apply  Esc: cancel", DIM);
            Line::from(vec![Span::raw(format!("filter: {}_", printable(text))), hint])
        }
        (_, Some(_)) => {
            keys(&[("Esc", "back"), ("↑↓", "scroll"), ("p", "pause"), ("?", "help"), ("q", "quit")])
        }
        (_, None) => keys(&[
            ("1-4", "view"),
            ("↑↓", "row"),
            ("Enter", "ports"),
            ("s", "sort"),
            ("/", "filter"),
            ("p", "pause"),
            ("?", "help"),
            ("q", "quit"),
        ]),
    };
    frame.render_widget(line, area);
}

fn keys(keys: &[(&'static str, &'static str)]) -> Line<'static> {
    let spans = keys
        .iter()
        .flat_map(|(key, what)| [Span::styled(*key, REVERSED), Span::raw(format!(" {what}  "))]);
    Line::from(spans.collect::<Vec<_>>())
}

fn help(frame: &mut Frame<'_>, palette: Palette, area: Rect) {
    let height = area.height.min(KEYS.len() as u16);
    let area = Rect { height, ..area };
    frame.render_widget(Clear, area);
    for ((key, what), row) in KEYS.iter().zip(area.rows()) {
        let key = Span::styled(format!("  {key:<17}"), palette.color(Color::Cyan));
        frame.render_widget(Line::from(vec![key, Span::raw(*what)]), row);
    }
}

fn view(frame: &mut Frame<'_>, app: &mut App, palette: Palette, area: Rect) {
    // While a new response is on its way, the screen shows the one before.
    let Some(data) = &app.data else { return };
    let (selected, width) = (app.selected, area.width);
    let has_text = matches!(data.body, Body::Cables(_) | Body::Events(..)) && area.height >= 14;
    let parts = [Constraint::Fill(1), Constraint::Length(if has_text { TEXT } else { 0 })];
    let [rows, below] = Layout::vertical(parts).areas(area);
    match &data.body {
        Body::Cables(links) => {
            table(frame, cables(links, palette, width), selected, rows);
            if let Some(link) = links.get(selected) {
                explain_link(frame, link, palette, below);
            }
        }
        Body::Traffic(links) => table(frame, traffic(links, palette, width), selected, area),
        Body::Congestion(regions) => {
            table(frame, congestion(regions, palette, width), selected, area);
        }
        Body::Events(events, problem) => {
            table(frame, list_events(events, problem.as_deref(), width), selected, rows);
            if let Some(event) = events.get(selected) {
                let title = format!("{}, {}", event.place, event.kind.replace('_', " "));
                explain(frame, &title, &event.text, None, palette, below);
            }
        }
        Body::Detail(detail, deltas) => {
            let lines = ports(detail, deltas, palette, width.into());
            let first = selected.min(lines.len().saturating_sub(area.height.into()));
            for (line, row) in lines.into_iter().skip(first).zip(area.rows()) {
                frame.render_widget(line, row);
            }
        }
    }
    app.page = usize::from(rows.height.saturating_sub(1)).max(1);
    if (app.shown.tab, &app.shown.target) != (app.request.tab, &app.request.target) {
        frame.render_widget(Clear, area);
        frame.render_widget(Line::styled("loading", DIM), area);
    }
}

/// A table: its columns, its rows with the style of their first cells, and what is shown without rows.
struct Listing<'a> {
    columns: Vec<(&'static str, Width)>,
    rows: Vec<(Style, Vec<String>)>,
    empty: &'a str,
}

/// The width of a column.
enum Width {
    Fixed(u16),
    /// As wide as its longest name, and at most this.
    Name(usize),
    /// What the others leave.
    Rest,
}

fn table(frame: &mut Frame<'_>, list: Listing<'_>, selected: usize, area: Rect) {
    let Listing { columns, mut rows, empty } = list;
    if rows.is_empty() {
        frame.render_widget(Line::raw(printable(empty)), area);
        return;
    }
    let mut widths = Vec::new();
    for (index, (_, width)) in columns.iter().enumerate() {
        widths.push(match *width {
            Width::Fixed(width) => Constraint::Length(width),
            Width::Rest => Constraint::Fill(1),
            Width::Name(most) => {
                let longest = rows.iter().map(|(_, cells)| cells[index].chars().count()).max();
                let width = longest.unwrap_or(0).clamp(5, most.max(5));
                for (_, cells) in &mut rows {
                    cells[index] = abbreviate(&cells[index], width);
                }
                Constraint::Length(width as u16)
            }
        });
    }
    let rows = rows.into_iter().map(|(style, cells)| {
        let cells = cells.into_iter().enumerate().map(|(index, cell)| {
            let style = if index == 0 { style } else { Style::new() };
            Span::styled(printable(&cell), style)
        });
        Row::new(cells.collect::<Vec<_>>())
    });
    let head = Row::new(columns.iter().map(|(head, _)| *head)).style(BOLD);
    let table = Table::new(rows, widths).header(head).row_highlight_style(REVERSED);
    let mut state = TableState::default().with_selected(Some(selected));
    // The selected row stays in the middle third of a long list.
    let visible = usize::from(area.height.saturating_sub(1));
    *state.offset_mut() = selected.saturating_sub(visible * 2 / 3);
    frame.render_stateful_widget(table, area, &mut state);
}

fn cables(links: &[Link], palette: Palette, width: u16) -> Listing<'static> {
    let most = usize::from(width.saturating_sub(24)) / 3;
    let columns = vec![
        ("VERDICT", Width::Fixed(8)),
        ("END A", Width::Name(most)),
        ("END B", Width::Name(most)),
        ("RATE", Width::Fixed(7)),
        ("REASON", Width::Rest),
    ];
    let row = |link: &Link| {
        let verdict = link.word().to_owned();
        let [a, b] = link.ends.each_ref().map(End::label);
        let rate = rate(link.width.as_deref(), link.speed.as_deref());
        let reason = short_reason(link, [&a, &b]);
        (palette.verdict(&link.verdict), vec![verdict, a, b, rate, reason])
    };
    Listing { columns, rows: links.iter().map(row).collect(), empty: "no links" }
}

/// The worst reason, as short as a row of 80 columns needs it: the ends have columns of their own, and the row below the
/// table has the whole sentence.
fn short_reason(link: &Link, ends: [&str; 2]) -> String {
    let text = reason(link);
    let of_end = ends.into_iter().zip(["A", "B"]).find_map(|(label, sign)| {
        let rest = text.strip_prefix(label)?.strip_prefix(' ')?;
        Some(format!("{sign}: {}", rest.strip_prefix("receives ").unwrap_or(rest)))
    });
    let text = of_end.unwrap_or(text);
    match text
        .split_once(" (limit ")
        .and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        Some((before, (limit, after))) => format!("{before} > {limit}{after}"),
        None => text,
    }
}

/// Everything that is known of why a link has its verdict, and what to do.
fn explain_link(frame: &mut Frame<'_>, link: &Link, palette: Palette, area: Rect) {
    let [a, b] = link.ends.each_ref().map(End::label);
    let verdict = Verdict::word(&link.verdict);
    let since = since(link.since.as_deref()).map(|at| format!(", {verdict} since {at}"));
    let title = format!("{a} – {b}{}", since.unwrap_or_default());
    let text = if link.reasons.is_empty() { reason(link) } else { evidence(link) };
    explain(frame, &title, &text, advice(link), palette, area);
}

/// The evidence of all reasons of a verdict.
fn evidence(link: &Link) -> String {
    link.told_reasons().map(|reason| &*reason.evidence).collect::<Vec<_>>().join("; ")
}

fn advice(link: &Link) -> Option<String> {
    link.repair.as_ref().map(|repair| printable(&format!("First: {}", repair.description)))
}

/// A text in full: its title, as many lines as there is room for, and what to do.
fn explain(
    frame: &mut Frame<'_>,
    title: &str,
    text: &str,
    advice: Option<String>,
    palette: Palette,
    area: Rect,
) {
    let width = usize::from(area.width);
    let room = usize::from(area.height).saturating_sub(2 + usize::from(advice.is_some()));
    let mut lines =
        vec![Line::styled("─".repeat(width), DIM), Line::styled(printable(title), BOLD)];
    lines.extend(wrap(text, width).into_iter().take(room).map(Line::raw));
    lines.extend(advice.map(|advice| Line::styled(advice, palette.color(Color::Cyan))));
    for (line, row) in lines.into_iter().zip(area.rows()) {
        frame.render_widget(line, row);
    }
}

fn traffic(links: &[BusyLink], palette: Palette, width: u16) -> Listing<'static> {
    let most = usize::from(width.saturating_sub(40)) / 2;
    let columns = vec![
        ("USED", Width::Fixed(6)),
        ("FROM", Width::Name(most)),
        ("TO", Width::Name(most)),
        ("RATE", Width::Fixed(10)),
        ("WAIT", Width::Fixed(9)),
        ("", Width::Rest),
    ];
    let row = |link: &BusyLink| {
        let used = link.flow.utilization;
        let style = if used >= 0.9 { palette.color(Color::Yellow) } else { Style::new() };
        let cells = vec![
            percent(used),
            link.from.label(),
            link.to.label(),
            bit_rate(link.flow.bytes_per_second),
            wait(link.wait_ratio, link.wait_saturated),
            bar(used),
        ];
        (style, cells)
    };
    let empty = "no traffic known: rates need two sweeps";
    Listing { columns, rows: links.iter().map(row).collect(), empty }
}

/// A share as a bar of ten characters, which every terminal has.
fn bar(share: f32) -> String {
    let full = (1..=10).filter(|step| share * 10.0 >= *step as f32 - 0.5).count();
    format!("[{:<10}]", "|".repeat(full))
}

fn congestion(regions: &[Region], palette: Palette, width: u16) -> Listing<'static> {
    let columns = vec![
        ("LEVEL", Width::Fixed(7)),
        ("ROOT", Width::Name(usize::from(width.saturating_sub(48)))),
        ("CAUSE", Width::Fixed(13)),
        ("PORTS", Width::Fixed(6)),
        ("WAIT", Width::Fixed(6)),
        ("SINCE", Width::Rest),
    ];
    let row = |region: &Region| {
        let measured = since(region.measured_at.as_deref());
        let measured = measured.map_or(String::new(), |at| format!(" (measured {at})"));
        let style = palette.color(if region.level == "high" { Color::Red } else { Color::Yellow });
        let cells = vec![
            region.level.to_string(),
            region.root_label(),
            region.cause.replace('_', " "),
            region.ports.to_string(),
            region.wait_ratio.map(percent).unwrap_or_default(),
            format!("{}{measured}", since(region.since.as_deref()).unwrap_or_default()),
        ];
        (style, cells)
    };
    Listing { columns, rows: regions.iter().map(row).collect(), empty: "no congestion" }
}

fn list_events<'a>(events: &[Event], problem: Option<&'a str>, width: u16) -> Listing<'a> {
    let columns = vec![
        ("TIME", Width::Fixed(11)),
        ("KIND", Width::Fixed(18)),
        ("PLACE", Width::Name(usize::from(width.saturating_sub(31)) / 2)),
        ("EVENT", Width::Rest),
    ];
    let row = |event: &Event| {
        let Event { kind, place, text, .. } = event;
        (DIM, vec![clock_time(event.at), kind.clone(), place.clone(), text.clone()])
    };
    let empty = problem.unwrap_or("no events in the last hour");
    Listing { columns, rows: events.iter().map(row).collect(), empty }
}

/// The time of day; with the date if it was not today.
fn clock_time(at: SystemTime) -> String {
    let clock = LocalClock::now();
    let (text, now) = (clock.format(at), clock.format(clock.time()));
    match (text.split_once(' '), now.split_once(' ')) {
        (Some((day, time)), Some((today, _))) if day == today => time.to_owned(),
        // 11-21 03:12
        _ => text.get(5..16).unwrap_or(&text).to_owned(),
    }
}

/// A time of the API as clock time.
fn since(at: Option<&str>) -> Option<String> {
    humantime::parse_rfc3339(at?).ok().map(clock_time)
}

/// What is known of a port, as a cell.
type Fact = fn(&Port) -> String;

/// Both ports of a link side by side, with what their counters counted since the reading before.
fn ports<'a>(
    detail: &LinkDetail,
    deltas: &[Deltas; 2],
    palette: Palette,
    width: usize,
) -> Vec<Line<'a>> {
    let [a, b] = &detail.ports;
    let verdict = Verdict::word(&detail.link.verdict);
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("{verdict}  "), palette.verdict(&detail.link.verdict)),
        Span::raw(printable(&format!("{} – {}", a.name.label(), b.name.label()))),
    ])];
    let why = wrap(&evidence(&detail.link), width).into_iter();
    lines.extend(why.filter(|line| !line.is_empty()).map(Line::raw));
    let cyan = palette.color(Color::Cyan);
    lines.extend(advice(&detail.link).map(|advice| Line::styled(advice, cyan)));
    // The longest names of usual counters have 27 characters.
    let name = 28.min(width * 7 / 20);
    let column = (width.saturating_sub(name + 2)) / 2;
    let row = |head: &str, cells: [String; 2]| {
        let cells = cells.map(|cell| format!("{:<column$}", abbreviate(&printable(&cell), column)));
        format!("{:<name$} {} {}", abbreviate(head, name), cells[0], cells[1])
    };
    let heads = [a, b].map(|port| abbreviate(&port.name.label(), column));
    lines.push(Line::styled(row("", heads), BOLD));
    let facts: [(&str, Fact); 8] = [
        ("state", |port| port.state.clone().unwrap_or_default().into()),
        ("rate", |port| rate(port.width.as_deref(), port.speed.as_deref())),
        ("FEC", |port| port.fec.clone().unwrap_or_default().into()),
        ("module", |port| {
            let module = port.module.as_ref();
            module.map_or(String::new(), |it| format!("{} {}", it.part_number, it.serial_number))
        }),
        ("sent", |port| flow(port.tx)),
        ("received", |port| flow(port.rx)),
        ("wait", |port| wait(port.wait_ratio, port.wait_saturated)),
        ("bit error ratio", |port| {
            let ratios = port.bit_errors.windows.iter().filter_map(|window| window.ratio);
            ratios.reduce(f64::max).map(|ratio| format!("{ratio:.1e}")).unwrap_or_default()
        }),
    ];
    for (head, fact) in facts {
        let cells = [fact(a), fact(b)];
        if cells.iter().any(|cell| !cell.is_empty()) {
            lines.push(Line::raw(row(head, cells)));
        }
    }
    // Errors first: corrected ones are normal.
    let names = [a, b].into_iter().flat_map(|port| port.counters.keys());
    let names: BTreeSet<(bool, &Label)> = names.map(|name| (!is_error(name), name)).collect();
    for (is_normal, counter) in names {
        let cells = [0, 1].map(|index| {
            let port = &detail.ports[index];
            let Some(count) = port.counters.get(counter) else { return String::new() };
            let by = deltas[index].get(counter).map(|by| format!(" (+{})", grouped(by)));
            let more = if port.saturated.contains(counter) { "+" } else { "" };
            format!("{}{more}{}", grouped(count), by.unwrap_or_default())
        });
        let is_known =
            detail.ports.iter().any(|port| port.counters.get(counter).is_some_and(|it| *it > 0));
        if is_known {
            let style = if is_normal { Style::new() } else { palette.color(Color::Yellow) };
            lines.push(Line::styled(row(counter, cells), style));
        }
    }
    lines
}

fn is_error(counter: &str) -> bool {
    use ib_mad::counter::{CounterKind, TABLE};
    let row = TABLE.iter().find(|row| row.metric == counter);
    row.is_some_and(|row| matches!(row.kind, CounterKind::Error | CounterKind::Link))
        && !counter.starts_with("fec_corrected_")
}

fn flow(flow: Option<Flow>) -> String {
    let text = |it: Flow| format!("{} {}", bit_rate(it.bytes_per_second), percent(it.utilization));
    flow.map(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::top::fetch::{Data, Response};
    use fabric_api::model::{End, LinkReason, SuggestedRepair};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(app: &mut App, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, app, true)).unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |row: u16| (0..width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..height).map(|row| line(row).trim_end().to_owned()).collect()
    }

    fn app(body: Body) -> App {
        let mut app = App::new("http://127.0.0.1:10315");
        let request = app.request.clone();
        let data = Data { body, ..Data::default() };
        app.take(Response { request, result: Ok(data) }).unwrap();
        app
    }

    fn bad() -> Link {
        let end = |node: &str, port| End { node: node.into(), port, ..End::default() };
        let evidence =
            "went down 3 times, for 44 s in all, and 1.5e-12 of the bits are wrong\u{1b}[2J";
        Link {
            verdict: "bad".into(),
            ends: [end("leaf-0-1", 9), end("a-host-with-a-very-long-name.example.org mlx5_0", 1)],
            reasons: vec![LinkReason { evidence: evidence.into(), ..LinkReason::default() }],
            repair: Some(SuggestedRepair {
                description: "Reseat the cable and clean its ends.".into(),
                ..SuggestedRepair::default()
            }),
            width: Some("4x".into()),
            speed: Some("NDR".into()),
            ..Link::default()
        }
    }

    #[test]
    fn worst_cable_has_its_evidence_and_repair_at_80x24() {
        let lines = screen(&mut app(Body::Cables(vec![bad()])), 80, 24);
        let row = lines.iter().find(|line| line.starts_with("bad ")).unwrap();
        assert!(row.contains("leaf-0-1 port 9") && row.contains("4x NDR"), "{row}");
        assert!(row.contains("a-hos") && row.contains("…"), "{row}");
        let text = lines.join("\n");
        assert!(
            text.contains("for 44 s in all, and 1.5e-12 of the bits are wrong\u{fffd}[2J"),
            "{text}"
        );
        let link = bad();
        let labels = link.ends.each_ref().map(End::label);
        let of = |evidence: String| {
            let reasons = vec![LinkReason { evidence, ..LinkReason::default() }];
            short_reason(&Link { reasons, ..bad() }, labels.each_ref().map(|it| &**it))
        };
        assert_eq!(
            of(format!(
                "{} receives symbol BER 1.6e-11 (limit 1e-14): 255 symbol errors in 40s",
                labels[1]
            )),
            "B: symbol BER 1.6e-11 > 1e-14: 255 symbol errors in 40s"
        );
        assert_eq!(of("runs at 1x NDR".into()), "runs at 1x NDR");
        assert!(text.contains("First: Reseat the cable and clean its ends."), "{text}");
        assert!(lines[23].ends_with("q quit"), "{text}");
    }

    #[test]
    fn any_size_and_view_can_be_drawn() {
        let bodies: [fn() -> Body; 5] = [
            || Body::Cables(vec![bad(); 50]),
            || Body::Traffic(vec![BusyLink::default(); 3]),
            || Body::Congestion(vec![Region::default()]),
            || Body::Events(Vec::new(), Some("no history".into())),
            || Body::Detail(Box::default(), Default::default()),
        ];
        for (body, tab) in bodies.iter().zip([
            Tab::Cables,
            Tab::Traffic,
            Tab::Congestion,
            Tab::Events,
            Tab::Cables,
        ]) {
            for (width, height) in [(1, 1), (39, 30), (40, 8), (80, 24), (300, 5), (300, 90)] {
                let mut app = app(body());
                app.request.tab = tab;
                app.selected = 40;
                for mode in [Mode::Normal, Mode::Help, Mode::Filter("leaf".into())] {
                    app.mode = mode;
                    screen(&mut app, width, height);
                }
            }
        }
        assert!(screen(&mut app(bodies[0]()), 39, 24)[0].starts_with("too small: 40x8"));
    }

    #[test]
    fn share_is_a_bar_of_ten() {
        assert_eq!([0.0, 0.51, 7.0].map(bar), ["[          ]", "[|||||     ]", "[||||||||||]"]);
    }
}
