//! What the address of the map chooses: the mask, the window of its errors, and what is open. Each choice keeps the
//! others, and the parameters of all pages, such as `fabric`.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use fabric_api::address;
use fabric_history::parameters::Pairs;
use ib_health::bit_errors::BerWindow;
use ib_mad::Guid;

use crate::query_params::QueryParams;
use crate::window_choice::WindowChoice;

display_text::labeled_enum! {
    /// What the colors of the map show.
    #[derive(Default)]
    pub enum Mask {
        #[default]
        Verdict, "verdict", "Verdict of each link.";
        Errors, "errors", "Errors of each link in a window.";
        Utilization, "utilization", "Utilization of the busier direction of each link.";
        Congestion, "congestion", "Links with a congestion root, and those that wait for one.";
        Temperature, "temperature", "Temperature of the modules of each link, and of the ASIC of each switch.";
        Speed, "speed", "Signaling rate of each link, per lane.";
        Changes, "changes", "What changed on each link since another moment, which diff= names: by default in 24 hours.";
    }
}

/// The window of the errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorWindow {
    /// One that the evaluator keeps: of bit errors.
    Evaluated(BerWindow),
    /// One of the history: of all link errors.
    Recorded(WindowChoice),
}

impl ErrorWindow {
    /// Whether it ends at a moment of the past: the evaluator's windows are not recorded.
    pub fn has_past(self) -> bool {
        matches!(self, ErrorWindow::Recorded(_))
    }

    /// All choices, the shortest of each kind first.
    pub const ALL: [ErrorWindow; 4] = [
        ErrorWindow::Evaluated(BerWindow::Short),
        ErrorWindow::Evaluated(BerWindow::Long),
        ErrorWindow::Recorded(WindowChoice::HOUR),
        ErrorWindow::Recorded(WindowChoice::DAY),
    ];

    /// Its name in an address.
    pub fn name(self) -> &'static str {
        match self {
            ErrorWindow::Evaluated(window) => window.label(),
            ErrorWindow::Recorded(choice) => choice.name,
        }
    }

    /// As text: `12 minutes`.
    pub fn label(self) -> &'static str {
        match self {
            ErrorWindow::Evaluated(BerWindow::Quick) => "75 seconds",
            ErrorWindow::Evaluated(BerWindow::Short) => "12 minutes",
            ErrorWindow::Evaluated(BerWindow::Long) => "125 minutes",
            ErrorWindow::Recorded(choice) if choice == WindowChoice::HOUR => "1 hour",
            ErrorWindow::Recorded(choice) => choice.label,
        }
    }
}

/// What is open: its switches, or its hosts, are shown below the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The hosts of a switch.
    Switch(Guid),
    /// The switches of the box of the map that has this one.
    Group(Guid),
}

const GROUP: &str = "group:";

impl Display for Opened {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Opened::Switch(guid) => write!(f, "{guid}"),
            Opened::Group(guid) => write!(f, "{GROUP}{guid}"),
        }
    }
}

impl FromStr for Opened {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (guid, of): (_, fn(Guid) -> Opened) = match text.strip_prefix(GROUP) {
            Some(guid) => (guid, Opened::Group),
            None => (text, Opened::Switch),
        };
        guid.parse().map(of).map_err(|_| format!("must be the GUID of a switch, or {GROUP}GUID"))
    }
}

/// The most parts that are open at a time: a page of a large fabric has 0.3 MB for each.
pub const MAX_OPEN: usize = 8;

const MASK: &str = "mask";
const WINDOW: &str = "window";
const OPEN: &str = "open";

/// The parameters of other pages and masks, which links keep. Unknown ones are not kept: a page has thousands of links,
/// and an address may have 32 KiB.
const KEPT: [&str; 4] = ["fabric", "refresh", "at", "diff"];

/// The choices of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapChoice {
    pub mask: Mask,
    pub window: ErrorWindow,
    /// At most [`MAX_OPEN`].
    pub open: Vec<Opened>,
    /// How many more the address opens.
    pub not_opened: usize,
    /// The map is of a moment of the past.
    pub is_past: bool,
    /// The other parameters, which links keep.
    pub others: Pairs,
}

impl Default for MapChoice {
    fn default() -> Self {
        let (window, mask) = (ErrorWindow::ALL[0], Mask::default());
        MapChoice {
            mask,
            window,
            open: Vec::new(),
            not_opened: 0,
            is_past: false,
            others: Vec::new(),
        }
    }
}

impl MapChoice {
    /// Reads the choices. The error names the parameter, and what it can be.
    pub fn parse(query: &QueryParams) -> Result<Self, String> {
        let mask = query.parse(MASK, |name| {
            Mask::from_label(name).ok_or_else(|| format!("must be one of: {}", Mask::labels()))
        })?;
        let window = query.parse(WINDOW, |name| {
            let names = || ErrorWindow::ALL.map(ErrorWindow::name).join(", ");
            let found = ErrorWindow::ALL.into_iter().find(|it| it.name() == name);
            found.ok_or_else(|| format!("must be one of: {}", names()))
        })?;
        let (mut open, mut not_opened) = (Vec::new(), 0);
        for text in query.values(OPEN) {
            let opened = text.parse().map_err(|error| format!("{OPEN}: {text:?} {error}."))?;
            if open.len() == MAX_OPEN {
                not_opened += 1;
            } else if !open.contains(&opened) {
                open.push(opened);
            }
        }
        let default = MapChoice::default();
        Ok(MapChoice {
            mask: mask.unwrap_or(default.mask),
            window: window.unwrap_or(default.window),
            open,
            not_opened,
            is_past: false,
            others: query.only(&KEPT),
        })
    }

    /// The same choices for a moment of the past.
    #[must_use]
    pub fn of_past(self) -> Self {
        let window = Some(self.window).filter(|it| it.has_past());
        let window = window.unwrap_or(ErrorWindow::Recorded(WindowChoice::HOUR));
        MapChoice { window, is_past: true, ..self }
    }

    /// The windows that can be chosen.
    pub fn windows(&self) -> impl Iterator<Item = ErrorWindow> {
        let is_past = self.is_past;
        ErrorWindow::ALL.into_iter().filter(move |window| !is_past || window.has_past())
    }

    /// The window, where the mask has one.
    pub fn error_window(&self) -> Option<ErrorWindow> {
        Some(self.window).filter(|_| self.mask == Mask::Errors)
    }

    /// The address of a path with these choices.
    pub fn address(&self, path: &str) -> String {
        let default = MapChoice::default();
        let open: Vec<String> = self.open.iter().map(Opened::to_string).collect();
        let mut pairs: Vec<(&str, &str)> =
            self.others.iter().map(|(key, value)| (&**key, &**value)).collect();
        if self.mask != default.mask {
            pairs.push((MASK, self.mask.label()));
        }
        // It stays while another mask is looked at.
        if self.window != default.window {
            pairs.push((WINDOW, self.window.name()));
        }
        pairs.extend(open.iter().map(|opened| (OPEN, &**opened)));
        address::with(path, &pairs)
    }

    /// The address of another fabric: what is open is of this one.
    pub fn of_fabrics(&self) -> String {
        let others = self.others.iter().filter(|(key, _)| key != "fabric").cloned().collect();
        MapChoice { others, open: Vec::new(), ..self.clone() }.address(address::TOPOLOGY)
    }

    pub fn with_mask(&self, mask: Mask) -> String {
        MapChoice { mask, ..self.clone() }.address(address::TOPOLOGY)
    }

    pub fn with_window(&self, window: ErrorWindow) -> String {
        MapChoice { window, ..self.clone() }.address(address::TOPOLOGY)
    }

    /// The same comparison as a list.
    pub fn list_of_changes(&self) -> String {
        let others = self.others.iter().map(|(key, value)| (&**key, &**value));
        address::with(address::CHANGES, &others.collect::<Vec<_>>())
    }

    /// The address with something opened, which the page then shows: in place of the first one, if too many are open.
    pub fn opened(&self, opened: Opened) -> String {
        let mut choice = self.clone();
        if !choice.open.contains(&opened) {
            choice.open.push(opened);
            choice.open.drain(..choice.open.len().saturating_sub(MAX_OPEN));
        }
        format!("{}#{}", choice.address(address::TOPOLOGY), anchor(opened))
    }

    /// The address with something closed.
    pub fn closed(&self, closed: Opened) -> String {
        let mut choice = self.clone();
        choice.open.retain(|it| *it != closed);
        format!("{}#map", choice.address(address::TOPOLOGY))
    }

    /// The address with nothing open.
    pub fn all_closed(&self) -> String {
        MapChoice { open: Vec::new(), ..self.clone() }.address(address::TOPOLOGY)
    }
}

/// The place on the page where something open is.
pub fn anchor(opened: Opened) -> String {
    match opened {
        Opened::Switch(guid) => format!("open-{guid}"),
        Opened::Group(guid) => format!("group-{guid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::Query;
    use axum::http::Uri;

    fn parse(uri: &str) -> Result<MapChoice, String> {
        let uri: Uri = uri.parse().unwrap();
        MapChoice::parse(&QueryParams::from(Query::try_from_uri(&uri)))
    }

    #[test]
    fn choices_keep_each_other_and_what_all_pages_have() {
        let text = "/topology?fabric=ib%200&refresh=off&mask=errors&window=24h&open=0x2&open=group:0x3&open=0x2";
        let choice = parse(text).unwrap();
        let (two, three) = (Opened::Switch(Guid(2)), Opened::Group(Guid(3)));
        assert_eq!(choice.open, [two, three]);
        assert_eq!(choice.error_window(), Some(ErrorWindow::Recorded(WindowChoice::DAY)));
        let rest = "window=24h&open=0x0000000000000002&open=group%3A0x0000000000000003";
        let others = "fabric=ib%200&refresh=off";
        assert_eq!(
            choice.address(address::TOPOLOGY_SVG),
            format!("/topology.svg?{others}&mask=errors&{rest}")
        );
        assert_eq!(choice.with_mask(Mask::Speed), format!("/topology?{others}&mask=speed&{rest}"));
        assert_eq!(choice.with_mask(Mask::Verdict), format!("/topology?{others}&{rest}"));
        let closed = choice.closed(three);
        assert!(closed.ends_with("&window=24h&open=0x0000000000000002#map"), "{closed}");
        assert_eq!(parse(closed.split('#').next().unwrap()).unwrap().opened(three), {
            format!("{}#group-0x0000000000000003", choice.address("/topology"))
        });
        assert_eq!(choice.of_fabrics(), "/topology?refresh=off&mask=errors&window=24h");
        assert_eq!(parse("/topology").unwrap(), MapChoice::default());
    }

    /// Each of thousands of links has the choices: an address cannot make a page of hundreds of megabytes.
    #[test]
    fn what_links_keep_is_bounded() {
        let open: Vec<String> = (1..3_000).map(|guid| format!("&open={guid}")).collect();
        let mut choice =
            parse(&format!("/topology?x={}{}", "y".repeat(9_000), open.concat())).unwrap();
        assert_eq!((choice.open.len(), choice.not_opened), (MAX_OPEN, 2_999 - MAX_OPEN));
        let [first, last] = [choice.open[0], Opened::Switch(Guid(5_000))];
        assert!(choice.with_mask(Mask::Speed).len() < 300);
        let opened = choice.opened(last);
        choice = parse(opened.split('#').next().unwrap()).unwrap();
        assert!(choice.open.contains(&last) && !choice.open.contains(&first), "{opened}");
    }

    #[test]
    fn wrong_choices_are_named() {
        for (uri, says) in [
            ("/topology?mask=colour", "mask: \"colour\" must be one of: verdict, errors"),
            ("/topology?window=7d", "window: \"7d\" must be one of: 12m, 125m, 1h, 24h."),
            ("/topology?open=leaf-1", "open: \"leaf-1\" must be the GUID of a switch"),
            ("/topology?open=group:", "open: \"group:\" must be"),
        ] {
            let error = parse(uri).unwrap_err();
            assert!(error.contains(says), "{uri}: {error}");
        }
    }
}
