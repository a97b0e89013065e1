//! `route`: the cables between two nodes, by the forwarding tables of the switches, with their verdicts.

use std::fmt::Write as _;
use std::io::Write;

use clap::Args;

use display_text::plural;
use fabric_api::ROUTE;
use fabric_api::model::{LEARNING, Route, RouteCable, RouteHop, Routes, TablesRead};
use ib_health::Verdict;
use ib_health::verdict::Repair;

use super::output::{as_json, print};
use super::source::{OnceArgs, SourceArgs};
use super::table::{Fit, Style, Table};
use super::terminal::{Color, ColorChoice, printable};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter route --url http://127.0.0.1:10315 gpu-17 gpu-203
  fabric-exporter route --url http://127.0.0.1:10315 'gpu-17 mlx5_0' storage-1 --json
  fabric-exporter route --fabric.hca=mlx5_1 12 leaf-0-3

Packets in the other direction may take other cables: ask for that, too. A route that does not reach its destination ends
with the reason. The exit code is 0 in this case as well.";

/// The arguments of `route`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct RouteArgs {
    /// Where packets are sent
    ///
    /// A name, GUID, LID or port in any spelling; a host for all of its HCAs.
    #[arg(value_name = "FROM")]
    from: String,
    /// Where they are received
    ///
    /// The same. With an LMC or several ports there are several routes: all of them are listed.
    #[arg(value_name = "TO")]
    to: String,
    /// Write JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write all columns, one line per row
    #[arg(long, help_heading = "Output")]
    wide: bool,
    #[command(flatten)]
    once: OnceArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// Prints the routes.
pub fn run(args: &RouteArgs, color: ColorChoice) -> Result<(), Fatal> {
    let source = args.source.clone().read(&args.once, None)?;
    let ends = [&*args.from, &*args.to];
    let pairs = [("from", ends[0]), ("to", ends[1])];
    let found = source.ask(ROUTE, &pairs, async |desk, fabrics, fabric| {
        desk.routes(fabrics, fabric, ends).await
    })?;
    if args.json {
        print(as_json(&found)?.as_bytes())?;
        return Ok(());
    }
    let mut out = Vec::new();
    let written = table(&found).write(&mut out, Style::for_output(color, args.wide));
    written.map_err(Fatal::failed_to("cannot format the route"))?;
    if print(&out)? {
        // The output is complete: an error here does not matter.
        let _ = writeln!(std::io::stderr(), "{}", printable(&summary(&found)));
    }
    Ok(())
}

fn table(found: &Routes) -> Table {
    let columns = vec![
        ("VERDICT", Fit::Whole),
        ("ROUTE", Fit::Short),
        ("SENDS", Fit::Name),
        ("RECEIVES", Fit::Name),
        ("TRY FIRST", Fit::Short),
        ("REASON", Fit::Text),
        ("LINK", Fit::Extra),
    ];
    let several = found.routes.len() > 1;
    let mut rows = Vec::new();
    for (nth, route) in found.routes.iter().enumerate() {
        let number =
            if several { format!("{} to LID {}", nth + 1, route.lid) } else { String::new() };
        for cable in route.hops.iter().filter_map(|hop| hop.cable.as_ref()) {
            let verdict = Verdict::from_label(&cable.verdict).unwrap_or(Verdict::Unknown);
            rows.push((Color::of(verdict), row(cable, &number)));
        }
        if let Some(broken) = &route.broken {
            let place = broken.node.clone().unwrap_or_default();
            let why = format!("the route ends here: {}", broken.description);
            let none = String::new;
            let cells = vec!["broken".into(), number, place, none(), none(), why, none()];
            rows.push((Color::of(Verdict::Bad), cells));
        }
    }
    Table { columns, rows }
}

fn row(cable: &RouteCable, route: &str) -> Vec<String> {
    let verdict = match cable.learning {
        Some(_) => LEARNING.to_owned(),
        None => Verdict::word(&cable.verdict).to_owned(),
    };
    let repair = cable.repair.as_ref().filter(|it| it.repair != Repair::None.label());
    let repair = repair.map(|it| it.repair.replace('_', " ")).unwrap_or_default();
    let reason = match &cable.reasons[..] {
        _ if cable.learning.is_some() => String::new(),
        [] => String::new(),
        [one] => one.replace('_', " "),
        [one, rest @ ..] => format!("{} (+{})", one.replace('_', " "), rest.len()),
    };
    let (from, to) = (cable.from.label(), cable.to.label());
    vec![verdict, route.to_owned(), from, to, repair, reason, cable.link.clone()]
}

/// The last line: how many cables, and what is not known.
fn summary(found: &Routes) -> String {
    let cables =
        |route: &Route| route.hops.iter().filter(|hop: &&RouteHop| hop.cable.is_some()).count();
    let count: usize = found.routes.iter().map(cables).sum();
    let routes = match found.routes.len() {
        1 => String::new(),
        several => format!("{}, ", plural(several, "route")),
    };
    let mut text = routes + &plural(count, "cable");
    if let Some(age) = found.tables.age_seconds {
        let _ = write!(text, "; tables read {age:.0} s ago");
    }
    let broken = found.routes.iter().filter(|route| route.broken.is_some()).count();
    if broken > 0 {
        let _ = write!(text, "; {} before the destination", ends(broken));
    }
    if !found.tables.unread.is_empty() || found.tables.limit.is_some() {
        let _ = write!(text, "; {}", tables_unread(&found.tables));
    }
    if found.may_differ {
        text += "; adaptive routing: packets may cross other cables, too";
    }
    text
}

fn ends(routes: usize) -> String {
    let verb = if routes == 1 { "ends" } else { "end" };
    format!("{} {verb}", plural(routes, "route"))
}

/// Why tables were not read.
pub(super) fn tables_unread(tables: &TablesRead) -> String {
    match (&tables.limit, &tables.unread[..]) {
        (Some(limit), _) => format!("{limit}: ask again in a minute"),
        (None, [first, rest @ ..]) => {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!("the table of {} was not read ({}){more}", first.switch.node, first.cause)
        }
        (None, []) => "the time for reading tables was over: ask again".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::{NodeName, PortName, RouteEnd, UnreadTable};

    fn port(node: &str, number: u8) -> PortName {
        let node_type = if node.starts_with("leaf") { "switch".into() } else { "ca".into() };
        PortName { node: node.into(), port: number, node_type, ..PortName::default() }
    }

    fn hop(from: (&str, u8), to: (&str, u8), verdict: &'static str) -> RouteHop {
        let cable = RouteCable {
            from: port(from.0, from.1),
            to: port(to.0, to.1),
            verdict: verdict.into(),
            reasons: if verdict == "ok" {
                vec![]
            } else {
                vec!["bit_errors".into(), "down".into()]
            },
            ..RouteCable::default()
        };
        RouteHop { node: from.0.into(), cable: Some(cable), ..RouteHop::default() }
    }

    fn shown(found: &Routes) -> String {
        let mut out = Vec::new();
        table(found).write(&mut out, Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_cable_is_a_row_in_the_order_of_the_route() {
        let hops =
            vec![hop(("gpu-1", 1), ("leaf-1", 4), "ok"), hop(("leaf-1", 9), ("gpu-2", 1), "bad")];
        let routes = vec![Route { lid: 7, hops, broken: None }];
        let found = Routes { routes, may_differ: true, ..Routes::default() };
        let text = shown(&found);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("ok ") && lines[1].contains("gpu-1 port 1"), "{text}");
        assert!(lines[2].starts_with("bad ") && lines[2].contains("bit errors (+1)"), "{text}");
        assert!(!lines[0].contains("ROUTE"), "one route needs no number: {text}");
        assert_eq!(
            summary(&found),
            "2 cables; adaptive routing: packets may cross other cables, too"
        );
    }

    #[test]
    fn route_that_ends_says_where_and_why() {
        let broken = RouteEnd {
            node: Some("leaf-1".into()),
            cause: "no_entry".into(),
            description: "the switch has no entry for the LID".into(),
        };
        let hops = vec![hop(("gpu-1", 1), ("leaf-1", 4), "ok")];
        let other = Route { lid: 8, ..Route::default() };
        let routes = vec![Route { lid: 7, hops, broken: Some(broken) }, other];
        let switch = NodeName { guid: "0x1".into(), node: "spine-1".into() };
        let unread = vec![UnreadTable { switch, cause: "timed out".into() }];
        let tables = TablesRead { unread, ..TablesRead::default() };
        let found = Routes { routes, tables, ..Routes::default() };
        let text = shown(&found);
        assert!(
            text.contains("1 to LID 7")
                && text.contains("the route ends here: the switch has no entry"),
            "{text}"
        );
        let says = "2 routes, 1 cable; 1 route ends before the destination; the table of spine-1 was not read (timed out)";
        assert_eq!(summary(&found), says);
    }
}
