//! `/links`, `/switches`, `/hosts` and `/modules`: lists that are filtered, sorted by any column, paged, and the same
//! rows as CSV.
//!
//! Each list is a table of columns: what a row is sorted by and written as in CSV, and the cell of the page.

pub mod links;
pub mod modules;
pub mod nodes;

use std::num::NonZeroUsize;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::state::PageState;
use display_text::natural_key;
use exporter_web::PackedText;
use fabric_api::{Fabrics, parse_verdict};
use fabric_observation::SharedState;
use ib_health::Verdict;

use super::components::{self, grouped, plural};
use crate::page::{Answer, Live, Page, Problem, check_fabric, not_swept, render};
use crate::query_params::QueryParams;
use fabric_api::address;

/// The rows on a page.
const PAGE_LENGTH: usize = 100;

/// What a row has in a column.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Number(f64),
    /// A text, and what it is sorted by.
    Ranked(f64, String),
    None,
}

impl Value {
    fn into_text(self) -> String {
        match self {
            Value::None => String::new(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) | Value::Ranked(_, text) => text,
        }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        if text.is_empty() { Value::None } else { Value::Text(text) }
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.unwrap_or_default().to_owned().into()
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Value::None, Value::Number)
    }
}

impl From<Verdict> for Value {
    fn from(verdict: Verdict) -> Self {
        Value::Ranked(f64::from(verdict as u8), verdict.label().into())
    }
}

/// A column: its key in the address and in CSV, its heading, and what a row has there.
struct Column<R> {
    key: &'static str,
    /// Empty for a column that only CSV has.
    heading: &'static str,
    value: fn(&R) -> Value,
    /// What the page shows; `None` if that is the value.
    cell: Option<fn(&R) -> Markup>,
    is_number: bool,
    /// Whether the lowest number comes first.
    is_ascending: bool,
}

impl<R> Column<R> {
    const fn text(key: &'static str, heading: &'static str, value: fn(&R) -> Value) -> Self {
        Column { key, heading, value, cell: None, is_number: false, is_ascending: false }
    }

    const fn number(key: &'static str, heading: &'static str, value: fn(&R) -> Value) -> Self {
        Column { is_number: true, ..Column::text(key, heading, value) }
    }

    const fn only_csv(key: &'static str, value: fn(&R) -> Value) -> Self {
        Column::text(key, "", value)
    }

    const fn cell(self, cell: fn(&R) -> Markup) -> Self {
        Column { cell: Some(cell), ..self }
    }

    /// Numbers of which the lowest are the worst.
    const fn lowest_first(self) -> Self {
        Column { is_ascending: true, ..self }
    }

    fn markup(&self, row: &R) -> Markup {
        self.cell.map_or_else(|| html! { ((self.value)(row).into_text()) }, |cell| cell(row))
    }
}

/// The parameters of a list: its filters, the column that it is sorted by, and the page.
struct ListQuery {
    path: &'static str,
    /// The filters that are set, by the names of their fields.
    filters: Vec<(&'static str, String)>,
    /// The verdict that is selected.
    verdict: Option<Verdict>,
    sort: Option<&'static str>,
    is_reversed: bool,
    page: usize,
    is_csv: bool,
}

impl ListQuery {
    /// Parses the parameters: `fields` are the filters of this list.
    fn parse<R>(
        path: &'static str,
        params: &QueryParams,
        fields: &[&'static str],
        columns: &[Column<R>],
    ) -> Result<Self, String> {
        let keys = || columns.iter().map(|column| column.key);
        let sort = params.parse("sort", |key| {
            let known = keys().find(|known| *known == key);
            known
                .ok_or_else(|| format!("must be one of: {}", keys().collect::<Vec<_>>().join(", ")))
        })?;
        let is_reversed = params.parse("order", |order| match order {
            "reverse" => Ok(true),
            _ => Err("must be: reverse".to_owned()),
        })?;
        let page = params.parse("page", |page| {
            page.parse().map_err(|_| "must be a positive integer".to_owned())
        })?;
        let is_csv = params.parse("format", |format| match format {
            "csv" => Ok(true),
            _ => Err("must be: csv".to_owned()),
        })?;
        let verdict = params.parse("verdict", parse_verdict);
        let filters = fields.iter().filter_map(|name| Some((*name, params.get(name)?.to_owned())));
        Ok(ListQuery {
            path,
            filters: filters.collect(),
            verdict: if fields.contains(&"verdict") { verdict? } else { None },
            sort,
            is_reversed: is_reversed.unwrap_or(false),
            page: page.map_or(1, NonZeroUsize::get),
            is_csv: is_csv.unwrap_or(false),
        })
    }

    fn filter(&self, name: &str) -> Option<&str> {
        self.filters.iter().find(|(field, _)| *field == name).map(|(_, value)| &**value)
    }

    /// Whether one of some texts has the text that is searched for, in any case.
    fn has_text(&self, texts: &[&str]) -> bool {
        let wanted = self.filter("text").unwrap_or_default().to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    }

    /// The number of rows before this page.
    fn skip(&self) -> usize {
        (self.page - 1).saturating_mul(PAGE_LENGTH)
    }

    fn address(&self, sort: Option<&str>, is_reversed: bool, page: usize, format: &str) -> String {
        let number = if page == 1 { String::new() } else { page.to_string() };
        let order = if is_reversed { "reverse" } else { "" };
        let filters = self.filters.iter().map(|(name, value)| (*name, &**value));
        let rest = [
            ("sort", sort.unwrap_or_default()),
            ("order", order),
            ("page", &number),
            ("format", format),
        ];
        address::with(self.path, &filters.chain(rest).collect::<Vec<_>>())
    }
}

/// A list with its rows, all that the filters select, in its own order.
struct List<'a, R> {
    title: &'static str,
    /// What a row is called: `link`.
    noun: &'static str,
    /// What its own order is called: `worst first`.
    order: &'static str,
    fabrics: &'a Fabrics,
    columns: &'a [Column<R>],
    /// What stands above the list.
    above: Markup,
    /// The fields of its form.
    form: Markup,
    /// What stands in place of rows where there are none without a filter.
    nothing: &'static str,
}

impl<R> List<'_, R> {
    /// The response with some of the rows, if these are `found`; in their own order, and only those of the page. A row is
    /// built from what identifies it when it is written, and dropped then.
    fn respond_with_page<I>(
        &self,
        query: &ListQuery,
        found: usize,
        ids: &[I],
        row: impl Fn(&I) -> R,
    ) -> Response {
        if query.is_csv {
            return self.csv(ids.iter().map(row));
        }
        let rows: Vec<R> = ids.iter().map(row).collect();
        let main = html! {
            (self.above)
            form .filter action=(query.path) {
                (self.form)
                @if let Some(sort) = query.sort { input type="hidden" name="sort" value=(sort); }
                @if query.is_reversed { input type="hidden" name="order" value="reverse"; }
                p { button { "Apply" } }
            }
            @if let Some(why) = not_swept(self.fabrics, query.filter("fabric")) {
                p { (why) }
            } @else if rows.is_empty() {
                p { @match found {
                    0 if query.filters.is_empty() => (self.nothing),
                    0 => { "No " (self.noun) " matches this filter." },
                    _ => "This page is past the end of the list.",
                } }
            } @else {
                p .quiet {
                    (plural(found, self.noun)) ", " (self.order_text(query))
                    @if found > rows.len() {
                        ": " (grouped(query.skip() as u64 + 1)) " to " (grouped((query.skip() + rows.len()) as u64))
                    }
                    " · " a href=(query.address(query.sort, query.is_reversed, 1, "csv")) { "CSV" }
                }
                (self.table(query, &rows))
            }
            (components::list_pager(query.page, found.div_ceil(PAGE_LENGTH), |page| query.address(query.sort, query.is_reversed, page, "")))
        };
        Page::new(self.title, query.path, main).live(Live::Offered).respond()
    }

    /// The response with all rows that are found.
    fn respond<I>(&self, query: &ListQuery, ids: Vec<I>, row: impl Fn(&I) -> R) -> Response {
        let sorted = match self.columns.iter().find(|column| Some(column.key) == query.sort) {
            Some(column) => {
                let value = |id: &I| (column.value)(&row(id));
                sorted(ids, value, query.is_reversed != column.is_ascending)
            }
            None => ids,
        };
        let shown = if query.is_csv {
            &sorted[..]
        } else {
            let from = query.skip().min(sorted.len());
            &sorted[from..sorted.len().min(from + PAGE_LENGTH)]
        };
        self.respond_with_page(query, sorted.len(), shown, row)
    }

    fn order_text(&self, query: &ListQuery) -> String {
        match self.columns.iter().find(|column| Some(column.key) == query.sort) {
            Some(column) if query.is_reversed => {
                format!("by {}, reversed", column.heading.to_lowercase())
            }
            Some(column) => format!("by {}", column.heading.to_lowercase()),
            None => self.order.to_owned(),
        }
    }

    fn table(&self, query: &ListQuery, rows: &[R]) -> Markup {
        let columns = || self.columns.iter().filter(|column| !column.heading.is_empty());
        html! { div .wide tabindex="0" role="group" aria-label=(self.title) { table .stack.list {
            thead { tr { @for column in columns() {
                @let is_sorted = Some(column.key) == query.sort;
                // Numbers are sorted with the highest first.
                @let is_descending = (column.is_number && !column.is_ascending) != query.is_reversed;
                th .n[column.is_number] scope="col" aria-sort=[is_sorted.then_some(if is_descending { "descending" } else { "ascending" })] {
                    a href=(query.address(Some(column.key), is_sorted && !query.is_reversed, 1, "")) { (column.heading) }
                }
            } } }
            tbody { @for row in rows { tr { @for (place, column) in columns().enumerate() {
                @if place == 0 { th scope="row" data-label=(column.heading) { (column.markup(row)) } }
                @else { td .n[column.is_number] data-label=(column.heading) { (column.markup(row)) } }
            } } } }
        } } }
    }

    /// The rows as CSV (RFC 4180), with all columns.
    fn csv(&self, rows: impl Iterator<Item = R>) -> Response {
        let mut line = self.columns.iter().map(|column| column.key).collect::<Vec<_>>().join(",");
        let mut text = PackedText::default();
        line.push_str("\r\n");
        text.push(line.as_bytes());
        for row in rows {
            let fields = self.columns.iter().map(|column| csv_field((column.value)(&row)));
            line = fields.collect::<Vec<_>>().join(",");
            line.push_str("\r\n");
            text.push(line.as_bytes());
        }
        let name = format!("attachment; filename=\"{}.csv\"", self.title.to_lowercase());
        let head =
            [(header::CONTENT_DISPOSITION, name), (header::CACHE_CONTROL, "no-store".to_owned())];
        (head, text.respond("text/csv; charset=utf-8")).into_response()
    }
}

/// A field of CSV.
fn csv_field(value: Value) -> String {
    match value {
        Value::Number(_) => value.into_text(),
        text => exposition::csv::text(&text.into_text()),
    }
}

/// Rows in the order of their values: the highest number first, texts in natural order, and what has none always last.
/// Stable: among equals their own order stays.
fn sorted<I>(ids: Vec<I>, value: impl Fn(&I) -> Value, is_reversed: bool) -> Vec<I> {
    let values: Vec<Value> = ids.iter().map(value).collect();
    let keys = values.iter().map(|value| match value {
        Value::Number(number) | Value::Ranked(number, _) => Some((-number, Vec::new())),
        Value::Text(text) => Some((0.0, natural_key(text))),
        Value::None => None,
    });
    let mut keyed: Vec<_> = keys.zip(ids).collect();
    keyed.sort_by(|(a, _), (b, _)| {
        let (Some(a), Some(b)) = (a, b) else { return b.is_some().cmp(&a.is_some()) };
        let order = a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1));
        if is_reversed { order.reverse() } else { order }
    });
    keyed.into_iter().map(|(_, id)| id).collect()
}

/// The page of a query that cannot be parsed.
fn refused(title: &'static str) -> impl Fn(String) -> Problem {
    move |text| Problem(StatusCode::BAD_REQUEST, title, text)
}

/// Renders a list on a blocking thread, if there is the fabric that the query names.
async fn render_list(
    app: &PageState,
    query: ListQuery,
    page: impl FnOnce(&SharedState, &ListQuery) -> Response + Send + 'static,
) -> Answer {
    let live = app.live.clone();
    check_fabric(&live.state.fabrics, query.filter("fabric"))?;
    Ok(render(move || page(&live.state, &query)).await)
}

/// The field of a form that selects a fabric.
fn fabric_field(query: &ListQuery, fabrics: &Fabrics) -> Markup {
    let names: Vec<&str> = fabrics.iter().map(|it| &*it.fabric).collect();
    components::fabric_field(&names, query.filter("fabric"))
}

/// The field of a form for a text that rows have.
fn text_field(label: &str, query: &ListQuery) -> Markup {
    html! { p {
        label for="text" { (label) }
        input #text type="search" name="text" value=(query.filter("text").unwrap_or_default()) placeholder="Part of it" autocomplete="off" spellcheck="false";
    } }
}

/// The field of a form that selects a verdict.
fn verdict_field(query: &ListQuery) -> Markup {
    let [ok, unknown, watch, bad] = Verdict::ALL.map(Verdict::label);
    let text = |label: &str| Verdict::word(label).to_owned();
    let (chosen, verdicts) = (query.verdict.map_or("", Verdict::label), [bad, watch, unknown, ok]);
    components::select_field("verdict", "Verdict", chosen, &components::or_all(&verdicts, text))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    type Row = (&'static str, Option<f64>);

    const COLUMNS: [Column<Row>; 3] = [
        Column::text("name", "Name", |row| row.0.to_owned().into()),
        Column::number("heat", "Heat", |row| row.1.into()),
        Column::only_csv("twice", |row| row.1.map(|heat| heat * 2.0).into()),
    ];

    const ROWS: [Row; 4] = [
        ("leaf-10", Some(1.0)),
        ("leaf-2", None),
        ("=cmd|'a'", Some(3.0)),
        ("a \"b\", c", Some(1.0)),
    ];

    #[test]
    fn rows_are_sorted_both_ways_and_empty_ones_are_last() {
        let names = |column: usize, is_reversed| {
            let rows = sorted(ROWS.to_vec(), COLUMNS[column].value, is_reversed);
            rows.iter().map(|row| row.0).collect::<Vec<_>>()
        };
        assert_eq!(names(0, false), ["=cmd|'a'", "a \"b\", c", "leaf-2", "leaf-10"]);
        assert_eq!(names(0, true), ["leaf-10", "leaf-2", "a \"b\", c", "=cmd|'a'"]);
        assert_eq!(names(1, false), ["=cmd|'a'", "leaf-10", "a \"b\", c", "leaf-2"]);
        assert_eq!(names(1, true), ["leaf-10", "a \"b\", c", "=cmd|'a'", "leaf-2"]);
    }

    #[tokio::test]
    async fn csv_has_all_columns_and_no_formula() {
        let list = List {
            title: "Things",
            noun: "thing",
            order: "",
            fabrics: &[],
            columns: &COLUMNS,
            above: html! {},
            form: html! {},
            nothing: "",
        };
        let response = list.csv(ROWS.into_iter());
        assert_eq!(
            response.headers()[header::CONTENT_DISPOSITION],
            "attachment; filename=\"things.csv\""
        );
        let text = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
        assert_eq!(
            String::from_utf8(text.to_vec()).unwrap(),
            "name,heat,twice\r\nleaf-10,1,2\r\nleaf-2,,\r\n'=cmd|'a',3,6\r\n\"a \"\"b\"\", c\",1,2\r\n"
        );
    }

    /// Counts the rows that exist.
    struct Counted<'a>(&'a Cell<(usize, usize)>);

    impl<'a> Counted<'a> {
        fn new(count: &'a Cell<(usize, usize)>) -> Self {
            let (now, most) = count.get();
            count.set((now + 1, most.max(now + 1)));
            Counted(count)
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            let (now, most) = self.0.get();
            self.0.set((now - 1, most));
        }
    }

    /// Models of all links take ten times the memory of their lines.
    #[test]
    fn rows_exist_one_at_a_time_in_csv_and_while_they_are_sorted() {
        let count = Cell::default();
        let columns = [Column::<Counted<'_>>::text("a", "A", |_| Value::Number(1.0))];
        let list = List {
            title: "Things",
            noun: "thing",
            order: "",
            fabrics: &[],
            columns: &columns,
            above: html! {},
            form: html! {},
            nothing: "",
        };
        for (text, most) in [
            ("format=csv", 1),
            ("format=csv&sort=a", 1),
            ("sort=a&order=reverse", PAGE_LENGTH),
            ("page=2", PAGE_LENGTH),
        ] {
            count.set((0, 0));
            let query = parse(text, &columns).unwrap();
            let response =
                list.respond(&query, (0..1_000).collect(), |_: &u32| Counted::new(&count));
            assert_eq!(response.status(), StatusCode::OK);
            assert!((1..=most).contains(&count.get().1), "{text}: {:?}", count.get());
        }
    }

    fn parse<R>(text: &str, columns: &[Column<R>]) -> Result<ListQuery, String> {
        let uri = format!("/x?{text}").parse().unwrap();
        let params = QueryParams::from(axum::extract::Query::try_from_uri(&uri));
        ListQuery::parse("/x", &params, &["text"], columns)
    }

    #[test]
    fn query_names_columns_filters_and_page() {
        let parse = |text| parse(text, &COLUMNS);
        let query = parse("text=a%26b&sort=heat&order=reverse&page=3&other=1").unwrap();
        assert_eq!(
            query.address(query.sort, query.is_reversed, 2, "csv"),
            "/x?text=a%26b&sort=heat&order=reverse&page=2&format=csv"
        );
        assert_eq!(
            (query.skip(), query.filter("text"), query.filter("other")),
            (200, Some("a&b"), None)
        );
        for (text, problem) in [
            ("sort=cold", "must be one of: name, heat, twice"),
            ("page=0", "must be a positive integer"),
            ("order=up", "must be: reverse"),
            ("format=pdf", "must be: csv"),
        ] {
            assert!(parse(text).err().is_some_and(|it| it.contains(problem)), "{text}");
        }
    }
}
