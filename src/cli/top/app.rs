//! The state of `top`: what is shown and selected, and what keys do.

use std::cmp::Reverse;
use std::time::SystemTime;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::cli::cells::wait_rank;
use crate::cli::links::{LinkOrder, key};
use crate::cli::list::{order_by, reordered};
use crate::exit::Fatal;
use display_text::natural_key;
use fabric_api::model::BusyLink;
use fabric_history::model::Event;

use super::fetch::{Body, Data, Response};
use super::request::{Request, Tab, Target};

display_text::labeled_enum! {
    /// The order of the busiest links.
    pub enum TrafficOrder {
        Utilization, "utilization", "The highest utilization first.";
        Rate, "rate", "The highest rate first.";
        Wait, "wait", "The highest wait ratio first.";
        Node, "node", "By the name of the node that sends.";
    }
}

/// The orders of the worst cables, with their names.
const CABLE_ORDERS: [(LinkOrder, &str); 7] = [
    (LinkOrder::Verdict, "verdict"),
    (LinkOrder::Errors, "errors"),
    (LinkOrder::Ber, "bit error ratio"),
    (LinkOrder::Flaps, "flaps"),
    (LinkOrder::Wait, "wait"),
    (LinkOrder::Change, "last change"),
    (LinkOrder::Node, "node"),
];

/// What keys mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Normal,
    /// A filter is entered.
    Filter(String),
    /// The list of keys is shown.
    Help,
}

/// The state.
#[derive(Debug, Default)]
pub struct App {
    /// The name of the source.
    pub source: String,
    pub request: Request,
    pub mode: Mode,
    pub data: Option<Data>,
    /// To which request the data is the response.
    pub shown: Request,
    /// When the data arrived.
    pub updated: Option<SystemTime>,
    /// Why there is no newer data.
    pub problem: Option<String>,
    /// The index of the selected row, or of the first line that is shown of a detail.
    pub selected: usize,
    /// How many rows fit on the screen: a page.
    pub page: usize,
    fabrics: Vec<String>,
    cable_order: usize,
    traffic_order: usize,
    /// The row from which a detail was opened.
    came_from: usize,
}

impl App {
    pub fn new(source: &str) -> Self {
        App { source: source.to_owned(), page: 1, ..App::default() }
    }

    /// The name of the present order; `None` if the view has only one.
    pub fn order(&self) -> Option<&'static str> {
        match (&self.request.target, self.request.tab) {
            (None, Tab::Cables) => Some(CABLE_ORDERS[self.cable_order].1),
            (None, Tab::Traffic) => Some(TrafficOrder::ALL[self.traffic_order].label()),
            _ => None,
        }
    }

    /// Shows an response. One to an earlier request is dropped; the first one must not be an error.
    pub fn take(&mut self, response: Response) -> Result<(), Fatal> {
        match response.result {
            Err(error) if self.data.is_none() => return Err(error),
            Err(error) => self.problem = Some(error.message),
            Ok(data) => {
                if response.request.fabric.is_none() {
                    let names = data.overview.fabrics.iter().map(|it| it.fabric.clone());
                    self.fabrics = names.collect();
                }
                if response.request == self.request || self.data.is_none() {
                    (self.data, self.updated) = (Some(data), Some(SystemTime::now()));
                    self.shown = response.request;
                    self.sort();
                }
                self.problem = None;
            }
        }
        Ok(())
    }

    fn sort(&mut self) {
        match self.data.as_mut().map(|data| &mut data.body) {
            Some(Body::Cables(links)) => {
                let (order, _) = CABLE_ORDERS[self.cable_order];
                let sorted = order_by(links, |link| key(order, link));
                *links = reordered(std::mem::take(links), sorted).collect();
            }
            Some(Body::Traffic(links)) => {
                let order = TrafficOrder::ALL[self.traffic_order];
                links.sort_by(|a, b| compare(order, a, b));
            }
            _ => {}
        }
        self.selected = self.selected.min(self.rows().saturating_sub(1));
    }

    /// How many rows can be selected.
    pub fn rows(&self) -> usize {
        match self.data.as_ref().map(|data| &data.body) {
            None => 0,
            Some(Body::Cables(links)) => links.len(),
            Some(Body::Traffic(links)) => links.len(),
            Some(Body::Congestion(regions)) => regions.len(),
            Some(Body::Events(events, _)) => events.len(),
            // Its lines are scrolled.
            Some(Body::Detail(detail, _)) => {
                detail.ports.iter().map(|port| port.counters.len()).max().unwrap_or(0) + 12
            }
        }
    }

    /// Handles a key or a change of the size; `true` if it ends the program.
    pub fn handle(&mut self, input: &Input) -> bool {
        let Input::Key(key) = input else { return false };
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return true;
        }
        match std::mem::take(&mut self.mode) {
            Mode::Normal => return self.command(*key),
            Mode::Filter(text) => self.edit(text, key.code),
            Mode::Help => {}
        }
        false
    }

    fn command(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('/') if self.request.target.is_none() => {
                self.mode = Mode::Filter(self.request.filter.clone());
            }
            KeyCode::Char(digit @ '1'..='4') => self.show(Tab::ALL[digit as usize - '1' as usize]),
            KeyCode::Tab | KeyCode::Right => self.step(1),
            KeyCode::BackTab | KeyCode::Left => self.step(Tab::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected.saturating_add(1)),
            KeyCode::Up | KeyCode::Char('k') => self.select(self.selected.saturating_sub(1)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.select(self.selected + self.page),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(self.page)),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX),
            KeyCode::Enter => self.open(),
            KeyCode::Esc | KeyCode::Backspace => self.back(),
            KeyCode::Char('s') => self.next_order(),
            KeyCode::Char('p') => self.request.is_paused = !self.request.is_paused,
            KeyCode::Char('f') => self.next_fabric(),
            _ => {}
        }
        false
    }

    fn edit(&mut self, mut text: String, key: KeyCode) {
        match key {
            KeyCode::Enter => {
                text.trim().clone_into(&mut self.request.filter);
                self.selected = 0;
                return;
            }
            KeyCode::Esc => return,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(char) => text.push(char),
            _ => {}
        }
        self.mode = Mode::Filter(text);
    }

    fn show(&mut self, tab: Tab) {
        (self.request.tab, self.request.target, self.selected) = (tab, None, 0);
    }

    fn step(&mut self, by: usize) {
        self.show(Tab::ALL[(self.request.tab as usize + by) % Tab::ALL.len()]);
    }

    fn select(&mut self, index: usize) {
        self.selected = index.min(self.rows().saturating_sub(1));
    }

    /// Shows the ports of the selected row.
    fn open(&mut self) {
        let link = |fabric: &str, id: &str| Some(Target::Link(fabric.to_owned(), id.parse().ok()?));
        let target = match self.data.as_ref().map(|data| &data.body) {
            Some(Body::Cables(links)) => {
                links.get(self.selected).and_then(|it| link(&it.fabric, &it.link))
            }
            Some(Body::Traffic(links)) => {
                // The fabric of a direction is not in its model: the id is enough.
                links.get(self.selected).map(|it| Target::Port(it.link.clone()))
            }
            Some(Body::Congestion(regions)) => regions
                .get(self.selected)
                .map(|it| Target::Port(it.link.clone().unwrap_or_else(|| it.root.label()))),
            Some(Body::Events(events, _)) => events.get(self.selected).and_then(of_event),
            Some(Body::Detail(..)) | None => None,
        };
        if target.is_some() {
            (self.request.target, self.came_from, self.selected) = (target, self.selected, 0);
        }
    }

    /// Returns to the view; from there, removes the filter.
    fn back(&mut self) {
        if self.request.target.take().is_some() {
            self.selected = self.came_from;
        } else {
            self.request.filter.clear();
        }
    }

    fn next_order(&mut self) {
        match (&self.request.target, self.request.tab) {
            (None, Tab::Cables) => self.cable_order = (self.cable_order + 1) % CABLE_ORDERS.len(),
            (None, Tab::Traffic) => {
                self.traffic_order = (self.traffic_order + 1) % TrafficOrder::ALL.len();
            }
            _ => return,
        }
        self.selected = 0;
        self.sort();
    }

    /// All fabrics, then each by itself.
    fn next_fabric(&mut self) {
        let shown = self.request.fabric.as_ref();
        let at = shown.and_then(|shown| self.fabrics.iter().position(|known| known == shown));
        let next = at.map_or(0, |at| at + 1);
        self.request.fabric = self.fabrics.get(next).cloned().filter(|_| self.fabrics.len() > 1);
        self.selected = 0;
    }
}

/// The link of an event, or that of its port.
fn of_event(event: &Event) -> Option<Target> {
    if let Some(link) = event.link {
        return Some(Target::Link(event.fabric.clone(), link));
    }
    let (node, port) = event.node.zip(event.port)?;
    Some(Target::Port(format!("{node}[{port}]")))
}

fn compare(order: TrafficOrder, a: &BusyLink, b: &BusyLink) -> std::cmp::Ordering {
    // Ratios and rates are not negative, so their bits have the same order.
    let number = |it: &BusyLink| match order {
        TrafficOrder::Utilization => u64::from(it.flow.utilization.to_bits()),
        TrafficOrder::Rate => it.flow.bytes_per_second.to_bits(),
        TrafficOrder::Wait => wait_rank(it.wait_ratio, it.wait_saturated),
        TrafficOrder::Node => 0,
    };
    let by_number = Reverse(number(a)).cmp(&Reverse(number(b)));
    let (x, y) = (&a.from, &b.from);
    let names = || (natural_key(&x.node), x.port).cmp(&(natural_key(&y.node), y.port));
    by_number.then_with(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::{Fabric, Link, Overview};

    fn press(app: &mut App, code: KeyCode) -> bool {
        app.handle(&Input::Key(code.into()))
    }

    fn text(app: &mut App, keys: &str) {
        keys.chars().for_each(|key| assert!(!press(app, KeyCode::Char(key)), "{key}"));
    }

    fn link(id: u64, flaps: u32) -> Link {
        let link = format!("0x{id:016x}:1-0x00000000000000ff:{id}");
        Link { fabric: "f".into(), link, flaps, ..Link::default() }
    }

    fn response(request: &Request, body: Body) -> Response {
        let fabrics = ["f", "g"].map(|name| Fabric { fabric: name.into(), ..Fabric::default() });
        let overview = Overview { fabrics: fabrics.to_vec(), ..Overview::default() };
        Response { request: request.clone(), result: Ok(Data { overview, body }) }
    }

    /// Three links, of which the last one flapped most.
    fn app() -> App {
        let mut app = App::new("test");
        let body = Body::Cables([link(1, 0), link(2, 1), link(3, 5)].to_vec());
        app.take(response(&app.request.clone(), body)).unwrap();
        app
    }

    #[test]
    fn keys_select_rows_within_the_list() {
        let mut app = app();
        app.page = 2;
        for (code, selected) in [
            (KeyCode::Up, 0),
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 2),
            (KeyCode::Down, 2),
            (KeyCode::Home, 0),
            (KeyCode::End, 2),
            (KeyCode::PageUp, 0),
        ] {
            assert!(!press(&mut app, code));
            assert_eq!(app.selected, selected, "{code:?}");
        }
        // A shorter list keeps the selection within it.
        press(&mut app, KeyCode::End);
        app.take(response(&app.request.clone(), Body::Cables(vec![link(1, 0)]))).unwrap();
        assert_eq!(app.selected, 0);
    }

    #[test]
    fn enter_opens_the_link_and_escape_returns_to_its_row() {
        let mut app = app();
        press(&mut app, KeyCode::Down);
        press(&mut app, KeyCode::Enter);
        let Some(Target::Link(fabric, id)) = app.request.target.clone() else { panic!("{app:?}") };
        assert_eq!((&*fabric, id.to_string()), ("f", link(2, 0).link));
        // An response to the earlier request does not replace what is awaited.
        let earlier = Request { target: None, ..app.request.clone() };
        app.take(response(&earlier, Body::Cables(Vec::new()))).unwrap();
        assert_eq!(app.rows(), 3);
        press(&mut app, KeyCode::Esc);
        assert_eq!((&app.request.target, app.selected), (&None, 1));
    }

    #[test]
    fn filter_is_applied_by_enter_and_removed_by_escape() {
        let mut app = app();
        text(&mut app, "/leafx");
        press(&mut app, KeyCode::Backspace);
        // In a filter, q is a letter.
        assert_eq!((&app.mode, &*app.request.filter), (&Mode::Filter("leaf".into()), ""));
        text(&mut app, "q");
        press(&mut app, KeyCode::Enter);
        assert_eq!((&app.mode, &*app.request.filter), (&Mode::Normal, "leafq"));
        text(&mut app, "/x");
        press(&mut app, KeyCode::Esc);
        assert_eq!(&*app.request.filter, "leafq");
        press(&mut app, KeyCode::Esc);
        assert_eq!(&*app.request.filter, "");
    }

    #[test]
    fn orders_and_fabrics_are_cycled() {
        let mut app = app();
        let flaps = |app: &App| match &app.data.as_ref().unwrap().body {
            Body::Cables(links) => links.iter().map(|link| link.flaps).collect::<Vec<_>>(),
            _ => panic!("no links"),
        };
        assert_eq!((app.order(), flaps(&app)), (Some("verdict"), vec![0, 1, 5]));
        text(&mut app, "sss");
        assert_eq!((app.order(), flaps(&app)), (Some("flaps"), vec![5, 1, 0]));
        text(&mut app, "ssss");
        assert_eq!(app.order(), Some("verdict"));
        for fabric in [Some("f"), Some("g"), None, Some("f")] {
            text(&mut app, "f");
            assert_eq!(app.request.fabric.as_deref(), fabric);
        }
        for (key, tab) in [('3', Tab::Congestion), ('4', Tab::Events), ('1', Tab::Cables)] {
            text(&mut app, &key.to_string());
            assert_eq!(app.request.tab, tab);
        }
        press(&mut app, KeyCode::BackTab);
        assert_eq!((app.request.tab, app.order()), (Tab::Events, None));
        press(&mut app, KeyCode::Tab);
        assert_eq!(app.request.tab, Tab::Cables);
    }

    #[test]
    fn only_the_first_answer_must_not_be_an_error() {
        let failed = |request: &Request| Response {
            request: request.clone(),
            result: Err(Fatal::failed("gone")),
        };
        let mut app = App::new("test");
        assert!(app.take(failed(&app.request.clone())).is_err());
        let mut app = self::app();
        app.take(failed(&app.request.clone())).unwrap();
        assert_eq!((app.problem.as_deref(), app.rows()), (Some("gone"), 3));
        app.take(response(&app.request.clone(), Body::default())).unwrap();
        assert_eq!((app.problem.as_deref(), app.rows()), (None, 0));
        text(&mut app, "p?");
        assert!(app.request.is_paused && app.mode == Mode::Help);
        text(&mut app, "q");
        assert!(app.mode == Mode::Normal && press(&mut app, KeyCode::Char('q')));
    }
}
