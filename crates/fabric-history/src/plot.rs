//! The timeline of a cable: its ends' counters, resampled to columns of equal length, and its events; as an SVG
//! with one time axis, and as a line in a terminal.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::EventKind;
use crate::local_clock::LocalClock;
use crate::model::{Event, Port, Series, Step, Window};
use display_text::{abbreviate, grouped, label_text};
use ib_fabric::topology::LinkId;
use ib_mad::Counter;
use ib_mad::counter::{CORRUPTION, LINK_ERRORS};

/// Width of the time axis, in the picture's units.
const WIDTH: f64 = 640.0;

/// Width of the labels to the left of it: the title and the unit of a row, and its axis.
const LABEL_WIDTH: f64 = 200.0;

/// How many characters of usual width fit there.
const LABEL_CHARS: usize = 25;

/// Height of a row, and of the space between two.
const ROW_HEIGHT: f64 = 44.0;
const ROW_GAP: f64 = 14.0;

/// One column per four units: an hour of sweeps each 15 s has 240.
const COLUMNS: usize = 160;

/// The most ticks of the time axis: their labels do not touch.
const MAX_TICKS: u64 = 7;

/// The times between two ticks, in seconds: from 10 s to 30 minutes, from 1 to 12 hours, and 1, 2 and 7 days.
const TICK_STEPS: [u64; 16] = [
    10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
    604_800,
];

struct Row {
    title: String,
    unit: String,
    class: &'static str,
    columns: Vec<f64>,
}

impl Row {
    /// The end of its axis: 1, 2 or 5 times a power of ten.
    fn top(&self) -> f64 {
        let most = self.columns.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let power = 10f64.powf(most.log10().floor());
        let steps = [1.0, 2.0, 5.0].map(|step| step * power);
        steps.into_iter().find(|top| *top >= most).unwrap_or(10.0 * power)
    }
}

/// The plot; `None` if there is nothing to draw.
pub fn draw(timeline: LinkTimeline<'_>, window: Window, clock: &LocalClock) -> Option<Markup> {
    let rows = rows(timeline, window);
    if window.length().is_zero() || rows.is_empty() && timeline.events.is_empty() {
        return None;
    }
    let bottom = ROW_GAP * 2.0 + rows.len() as f64 * (ROW_HEIGHT + ROW_GAP);
    let about =
        format!("Timeline of {}: link errors, discards, traffic and events", timeline.place);
    let right = LABEL_WIDTH + WIDTH;
    // The label of the last tick is centered at it.
    Some(html! {
        svg .plot viewBox={ "0 0 " (right + 20.0) " " (bottom + 24.0) } role="img" aria-label=(about) {
            @for (index, row) in rows.iter().enumerate() {
                (bar_row(row, ROW_GAP * 2.0 + index as f64 * (ROW_HEIGHT + ROW_GAP), window, clock))
            }
            @for event in timeline.events { (event_mark(event, window, bottom, clock)) }
            line .axis x1=(LABEL_WIDTH) y1=(bottom) x2=(right) y2=(bottom) {}
            @for at in ticks(window) { (tick(at, window, bottom, clock)) }
        }
    })
}

fn rows(timeline: LinkTimeline<'_>, window: Window) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let column = window.length() / COLUMNS as u32;
    for PortErrors { port, what, class, columns } in timeline.errors(window, COLUMNS) {
        let unit = format!("{what} per {}", column_width(column));
        rows.push(Row { title: port.label(), unit, class, columns });
    }
    for (series, direction) in timeline.traffic() {
        let bytes = rates(&series.steps, window, COLUMNS).into_iter();
        let gigabits = |bytes: f64| bytes * 8.0 / 1e9;
        let (title, unit) = (series.port.label(), format!("Gb/s {direction}"));
        rows.push(Row { title, unit, class: "load", columns: bytes.map(gigabits).collect() });
    }
    rows
}

/// The width of a column: exact, because the values are counts in it. In young data it has a fraction of a second.
fn column_width(column: Duration) -> String {
    if column >= Duration::from_secs(60) {
        // A fraction of a second is less than 2% then.
        let whole = Duration::from_secs((column + Duration::from_millis(500)).as_secs());
        return humantime::format_duration(whole).to_string();
    }
    let text = format!("{:.2}", column.as_secs_f64());
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A value with three digits that matter.
fn shown(value: f64) -> String {
    match value {
        value if value >= 100.0 => grouped(format!("{value:.0}")),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 || value == 0.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// The ends of an axis: whole numbers without decimals.
fn axis_label(value: f64) -> String {
    if value >= 1.0 { grouped(format!("{value:.0}")) } else { format!("{value}") }
}

fn bar_row(row: &Row, top: f64, window: Window, clock: &LocalClock) -> Markup {
    let (most, width) = (row.top(), WIDTH / COLUMNS as f64);
    let (bottom, right) = (top + ROW_HEIGHT, LABEL_WIDTH + WIDTH);
    let begin = |column: usize| window.from + window.length() * column as u32 / COLUMNS as u32;
    html! {
        // Hidden but on small screens, which show the end of the plot first.
        text .narrow x=(right) y=(top - 3.0) text-anchor="end" display="none" { (row.title) ", " (row.unit) }
        text x="0" y=(top + 18.0) { title { (row.title) } (abbreviate(&row.title, LABEL_CHARS)) }
        text .unit x="0" y=(top + 36.0) { (row.unit) }
        @for (y, value) in [(top, most), (bottom, 0.0)] {
            line .axis .grid[value > 0.0] x1=(LABEL_WIDTH) y1=(y) x2=(right) y2=(y) {}
            text .unit x=(LABEL_WIDTH - 4.0) y=(y + 4.0) text-anchor="end" { (axis_label(value)) }
        }
        @for (column, value) in row.columns.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            // Every value above zero is visible.
            @let height = (value / most * ROW_HEIGHT).max(1.5);
            rect class=(row.class) x=(rounded(LABEL_WIDTH + column as f64 * width)) y=(rounded(bottom - height))
                width=(width) height=(rounded(height)) {
                title { (clock.format_time(begin(column))) " to " (clock.format_time(begin(column + 1))) ": " (shown(*value)) " " (row.unit) }
            }
        }
    }
}

fn event_mark(event: &Event, window: Window, bottom: f64, clock: &LocalClock) -> Markup {
    let x = rounded(x_of(event.at, window));
    let good = [EventKind::LinkUp, EventKind::ExpectedLinkDown].map(EventKind::label);
    let is_good = good.contains(&&*event.kind);
    let class = if is_good { "mark good" } else { "mark" };
    html! {
        g class=(class) {
            title { (clock.format(event.at)) ": " (label_text(&event.kind)) ": " (event.text) }
            line x1=(x) y1="8" x2=(x) y2=(bottom) {}
            circle cx=(x) cy="8" r="4" {}
        }
    }
}

/// Round times in a window, as few that their labels do not touch.
fn ticks(window: Window) -> Vec<SystemTime> {
    let length = window.length().as_secs();
    let step = TICK_STEPS.into_iter().find(|step| length / step < MAX_TICKS);
    let step = step.unwrap_or_else(|| length.div_ceil(MAX_TICKS).next_multiple_of(86_400));
    let from = window.from.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let first = from.as_secs().next_multiple_of(step);
    let at = (0..=MAX_TICKS)
        .map(|tick| SystemTime::UNIX_EPOCH + Duration::from_secs(first + tick * step));
    at.take_while(|at| *at <= window.to).collect()
}

fn tick(at: SystemTime, window: Window, bottom: f64, clock: &LocalClock) -> Markup {
    let is_long = window.length() > Duration::from_secs(86_400);
    let mut label = if is_long { clock.format(at) } else { clock.format_time(at) };
    // Without seconds, and without the year, unless a tick has any.
    if label.ends_with(":00") {
        label.truncate(label.len() - 3);
    }
    if is_long {
        label.drain(.."2026-".len());
    }
    let x = rounded(x_of(at, window));
    html! {
        line .axis x1=(x) y1=(bottom) x2=(x) y2=(bottom + 4.0) {}
        text .unit x=(x) y=(bottom + 16.0) text-anchor="middle" { (label) }
    }
}

fn x_of(at: SystemTime, window: Window) -> f64 {
    let since = at.duration_since(window.from).unwrap_or_default().as_secs_f64();
    LABEL_WIDTH + WIDTH * (since / window.length().as_secs_f64()).min(1.0)
}

/// Rounds to a tenth: more is not visible, and makes the page longer.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The sum of steps in each of `count` columns of a window. A step is spread evenly over the time between its
/// two readings; the part before the window is left out.
pub fn resample<'a>(
    steps: impl IntoIterator<Item = &'a Step>,
    window: Window,
    count: usize,
) -> Vec<f64> {
    let mut columns = vec![0.0; count];
    let length = window.length().as_secs_f64();
    if count == 0 || length <= 0.0 {
        return columns;
    }
    let position = |at: SystemTime| {
        let since = match at.duration_since(window.from) {
            Ok(since) => since.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        };
        (since / length).min(1.0) * count as f64
    };
    for step in steps {
        let (from, to) = (position(step.from), position(step.to));
        #[expect(
            clippy::cast_sign_loss,
            reason = "a time before the window belongs to its first column"
        )]
        let (first, last) = ((from as usize).min(count - 1), (to as usize).min(count - 1));
        let share = step.by as f64 / (to - from);
        for (column, sum) in columns.iter_mut().enumerate().take(last + 1).skip(first) {
            // A step without length belongs to the column of its reading.
            if to <= from {
                *sum += step.by as f64;
                break;
            }
            let overlap = to.min((column + 1) as f64) - from.max(column as f64);
            *sum += share * overlap.max(0.0);
        }
    }
    columns
}

/// What steps are per second in each of `count` columns of a window. The column in which the last step ends is that of the
/// time until then: a window ends seconds after the last sweep.
pub fn rates(steps: &[Step], window: Window, count: usize) -> Vec<f64> {
    let last = steps.iter().map(|step| step.to).max();
    let length = window.length() / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let of_column = |(column, sum): (usize, f64)| {
        let from = window.from + length * column as u32;
        let covered = last.and_then(|last| last.duration_since(from).ok());
        let covered = covered.filter(|it| !it.is_zero() && *it < length).unwrap_or(length);
        sum / covered.as_secs_f64()
    };
    resample(steps, window, count).into_iter().enumerate().map(of_column).collect()
}

/// A line of bars for a terminal: a dot for zero, and at least the lowest bar for anything else.
pub fn bars(columns: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = columns.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        #[expect(clippy::cast_sign_loss, reason = "increases are not negative")]
        let height = (value / most * 8.0).ceil() as usize;
        if *value > 0.0 { BARS[height.clamp(1, 8) - 1] } else { '·' }
    };
    columns.iter().map(bar).collect()
}

/// A cable's counters and events.
#[derive(Clone, Copy, Debug)]
pub struct LinkTimeline<'a> {
    /// The cable.
    pub link: LinkId,
    /// Its label.
    pub place: &'a str,
    /// Its ends' counters.
    pub series: &'a [Series],
    /// Its events, the earliest first.
    pub events: &'a [Event],
}

/// The link errors of one end of a cable, as [`link_errors`](ib_mad::counter::link_errors) adds them up, or its
/// packets that were discarded instead of being sent.
#[derive(Clone, Debug, PartialEq)]
pub struct PortErrors<'a> {
    /// The end.
    pub port: &'a Port,
    /// What they are called.
    pub what: &'static str,
    /// How bad they are: the class of their bars.
    class: &'static str,
    /// Their number in columns of equal length; not all are zero.
    pub columns: Vec<f64>,
}

impl<'a> LinkTimeline<'a> {
    /// What the ends counted in a window.
    pub fn errors(self, window: Window, count: usize) -> Vec<PortErrors<'a>> {
        let ends = self.link.ends().into_iter();
        let of_ends = ends.flat_map(|end| {
            let of_end = || self.series.iter().filter(move |series| series.port.end() == end);
            let columns = |is_wanted: &dyn Fn(Counter) -> bool| {
                let steps = of_end().filter(|series| is_wanted(series.counter));
                resample(steps.flat_map(|series| &series.steps), window, count)
            };
            let of_counter = |wanted: Counter| columns(&|counter| counter == wanted);
            let others = |counter| LINK_ERRORS.contains(&counter) && !CORRUPTION.contains(&counter);
            let mut link_errors = columns(&others);
            let marked = of_counter(Counter::RcvRemotePhysicalErrors);
            // The share over the whole window: within a column the two counters may be read at different times.
            let sum = |columns: &[f64]| columns.iter().sum::<f64>();
            let received = sum(&of_counter(Counter::RcvErrors)).max(f64::MIN_POSITIVE);
            let own = 1.0 - (sum(&marked) / received).min(1.0);
            // The largest stands for all, as in `link_errors`.
            let corruption = CORRUPTION.map(|counter| {
                let share = if counter == Counter::RcvErrors { own } else { 1.0 };
                (of_counter(counter), share)
            });
            for (column, errors) in link_errors.iter_mut().enumerate() {
                let counts = corruption.iter().map(|(columns, share)| columns[column] * share);
                *errors += counts.fold(0.0, f64::max);
            }
            let discards = columns(&|counter| counter == Counter::XmitDiscards);
            // Less than one is a rounding error.
            let has_any = sum(&link_errors) > 0.5 || sum(&discards) > 0.5;
            let port = of_end().next().filter(|_| has_any).map(|series| &series.port);
            [("link errors", "bad", link_errors), ("discards", "watch", discards)]
                .into_iter()
                .filter(|(.., columns)| columns.iter().any(|value| *value > 0.0))
                .filter_map(move |(what, class, columns)| {
                    Some(PortErrors { port: port?, what, class, columns })
                })
        });
        of_ends.collect()
    }

    /// The traffic of one end in bytes, by direction.
    fn traffic(self) -> Vec<(&'a Series, &'static str)> {
        let of_end = |end| {
            let series = self.series.iter().filter(move |series| series.port.end() == end);
            let find = |counter| series.clone().find(|series| series.counter == counter);
            let both = [(Counter::XmitData, "sent"), (Counter::RcvData, "received")];
            both.into_iter().filter_map(|(counter, name)| Some((find(counter)?, name))).collect()
        };
        let of_ends: [Vec<_>; 2] = self.link.ends().map(of_end);
        of_ends.into_iter().find(|series| !series.is_empty()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ib_mad::{Guid, PortKey};
    use proptest::prelude::*;

    use super::*;

    /// Only the last minute's share of an hour's bytes lies in the window.
    #[test]
    fn share_before_the_window_is_left_out() {
        let at = |minutes: u64| at(60 * minutes);
        let window = Window { from: at(60), to: at(70) };
        let step = Step { from: at(1), to: at(61), by: 600 };
        assert_eq!(resample([&step], window, 10)[..2], [10.0, 0.0]);
    }

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn step(from: u64, to: u64, by: u64) -> Step {
        Step { from: at(from), to: at(to), by }
    }

    #[test]
    fn steps_are_drawn_as_bars() {
        let window = Window { from: at(0), to: at(60) };
        let columns = resample(&[step(0, 15, 1), step(45, 60, 8)], window, 4);
        assert_eq!(columns, [1.0, 0.0, 0.0, 8.0]);
        assert_eq!(bars(&columns), "▁··█");
    }

    /// A window ends some seconds after the last sweep: without this, each plot would end with a decrease.
    #[test]
    fn constant_rate_is_constant_until_the_last_sweep() {
        let window = Window { from: at(0), to: at(60) };
        let steps = [step(0, 15, 150), step(15, 30, 150), step(30, 47, 170)];
        let rates =
            |steps: &[Step]| rates(steps, window, 4).into_iter().map(rounded).collect::<Vec<f64>>();
        assert_eq!(rates(&steps), [10.0; 4]);
        assert_eq!(rates(&steps[..2]), [10.0, 10.0, 0.0, 0.0]);
        assert_eq!(rates(&[]), [0.0; 4]);
    }

    #[test]
    fn width_of_a_column_is_exact() {
        for (window, width) in [
            (300, "1.88s"),
            (600, "3.75s"),
            (1_600, "10s"),
            (3_600, "22.5s"),
            (86_400, "9m"),
            (7 * 86_400, "1h 3m"),
        ] {
            assert_eq!(
                column_width(Duration::from_secs(window) / COLUMNS as u32),
                width,
                "{window}"
            );
        }
    }

    #[test]
    fn axis_ends_at_a_round_number() {
        for (most, top, label) in [
            (456.0, 500.0, "500"),
            (0.03, 0.05, "0.05"),
            (1.0, 1.0, "1"),
            (5_100.0, 10_000.0, "10,000"),
        ] {
            let row =
                Row { title: String::new(), unit: String::new(), class: "", columns: vec![most] };
            assert_eq!((row.top(), &*axis_label(row.top())), (top, label), "{most}");
        }
    }

    #[test]
    fn ticks_are_at_round_times() {
        for (from, to, expected) in [
            (7, 240, vec![60, 120, 180, 240]),
            (3_601, 7_200, vec![4_200, 4_800, 5_400, 6_000, 6_600, 7_200]),
            (0, 30 * 86_400, (0..5).map(|week| week * 7 * 86_400).collect()),
        ] {
            let window = Window { from: at(from), to: at(to) };
            let expected: Vec<SystemTime> = expected.into_iter().map(at).collect();
            assert_eq!(ticks(window), expected, "{from} to {to}");
        }
    }

    #[test]
    fn bars_and_events_say_their_values() {
        let port = |guid, node: &str| Port {
            fabric: "f".into(),
            guid: Guid(guid),
            port: 1,
            node: node.into(),
            host: None,
        };
        let link = LinkId { low: PortKey::new(Guid(1), 1), high: PortKey::new(Guid(2), 1) };
        let series = [
            Series {
                port: port(1, "leaf"),
                counter: Counter::SymbolErrors,
                steps: vec![step(0, 10, 456)],
            },
            Series {
                port: port(2, "host"),
                counter: Counter::XmitData,
                steps: vec![step(0, 10, 2_000_000_000)],
            },
        ];
        let window = Window { from: at(0), to: at(1600) };
        let timeline = LinkTimeline { link, place: "it", series: &series, events: &[] };
        let svg = draw(timeline, window, &LocalClock::now()).unwrap().into_string();
        // 2 GB in a column of 10 s.
        for part in [
            ">500<",
            ": 456 link errors per 10s</title>",
            ": 1.60 Gb/s sent</title>",
            ">leaf port 1<",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn step_without_length_is_in_one_column() {
        let window = Window { from: at(0), to: at(60) };
        assert_eq!(resample(&[step(60, 60, 5)], window, 3), [0.0, 0.0, 5.0]);
        assert_eq!(resample(&[step(60, 60, 5)], Window { from: at(9), to: at(9) }, 2), [0.0, 0.0]);
        assert_eq!(bars(&[0.0, 0.0]), "··");
    }

    proptest! {
        #[test]
        fn sum_of_columns_is_sum_of_steps(
            steps in proptest::collection::vec((0u64..1000, 0u64..100, 0u64..1_000_000), 0..20),
            count in 1usize..100,
        ) {
            let steps: Vec<Step> =
                steps.into_iter().map(|(from, long, by)| step(from, from + long, by)).collect();
            let window = Window { from: at(0), to: at(1100) };
            let sum: f64 = resample(&steps, window, count).iter().sum();
            let all: u64 = steps.iter().map(|step| step.by).sum();
            prop_assert!((sum - all as f64).abs() < 1e-3 * all as f64 + 1e-6, "{sum} of {all}");
        }
    }
}
