//! `links`: the state of each link as a table or as JSON.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use display_text::{grouped, natural_key, plural};
use fabric_api::links::links;
use fabric_api::model::{CrossedLinks, End, Link, Links, Nodes, Spare, Spares, Verdicts};
use fabric_api::{CROSSED, Filter, LINKS, MAX_LIMIT, spares};
use fabric_history::cable_life::begins_with;
use ib_health::verdict::Repair;

use super::cells::wait_rank;
use super::cells::{self, rate, reason};
use super::gate::{self, Gate};
use super::list::{self, Found, ListArgs, SortKey, VerdictArgs};
use super::node_match;
use super::node_match::NodeMatch;
use super::route::tables_unread;
use super::source::FabricSource;
use super::table::{Fit, Table};
use super::terminal::{Color, ColorChoice};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter links --url http://127.0.0.1:10315 --suspect
  fabric-exporter links --url http://127.0.0.1:10315 --node 'leaf-0-*' --watch
  fabric-exporter links --for 1m --fail-on bad
  fabric-exporter links --fabric.hca=mlx5_1 --json --limit 20
  fabric-exporter links --from /var/tmp/ibdiagnet2 --suspect
  fabric-exporter links --url http://127.0.0.1:10315 --spares
  fabric-exporter links --file history.db --at '2026-11-27 03:12' --suspect
  fabric-exporter links --url http://127.0.0.1:10315 --crossed-by gpu-17 --suspect
  fabric-exporter links --from monday/ tuesday/

The table is on standard output, worst links first; a summary is on standard error. TRY FIRST is the
repair, REASON the worst reason; (+2) means two more. COUNTS has the error counters of the ends A
and B; a + after a value means that the counter is saturated. A terminal shows COUNTS and CABLE only
if they fit (see also --wide). The exit code depends on what is found only with --fail-on.";

/// The arguments of `links`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct LinksArgs {
    /// List only suspect links
    ///
    /// Links whose verdict is bad or watch (degraded), and unknown links whose ports counted errors.
    #[arg(long)]
    suspect: bool,
    /// Only links of this node or port
    ///
    /// A name, GUID, LID or port in any spelling, such as leaf-0-1/10; a host for all of its HCAs; a link by its id;
    /// or a pattern of names, such as 'leaf-0-*'. May be repeated.
    #[arg(long, value_name = "NODE", help_heading = "Selection")]
    node: Vec<String>,
    /// Only links whose cable or module has this serial number
    ///
    /// In any case; if no serial number is exactly this, those that begin with it.
    #[arg(long, value_name = "SERIAL", help_heading = "Selection")]
    serial: Option<String>,
    /// Only links that the packets of this host cross
    ///
    /// By the forwarding tables of the switches, which are read for it: at most 2,000 MADs. A host, or an adapter or port
    /// of one. Cables of other hosts are left out. With adaptive routing packets may cross other links, too.
    #[arg(long, value_name = "HOST", help_heading = "Selection")]
    crossed_by: Option<String>,
    #[command(flatten)]
    selection: VerdictArgs,
    /// List the spares that are needed now, by part number
    ///
    /// Cables and transceivers that "try first" says to swap, of the selected links, with these links.
    #[arg(long, conflicts_with_all = ["limit", "sort"])]
    spares: bool,
    #[command(flatten)]
    list: ListArgs<LinkOrder>,
}

/// The order of a list of links. Links that are equal are in the order of their verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LinkOrder {
    /// The worst first
    #[default]
    Verdict,
    /// By the name of end A
    Node,
    /// The most link errors first
    Errors,
    /// The highest bit error ratio first
    Ber,
    /// The most flaps first
    Flaps,
    /// The highest wait ratio first
    Wait,
    /// The latest link down or up first
    Change,
}

impl SortKey for LinkOrder {}

/// Prints the links.
pub fn run(args: &LinksArgs, color: ColorChoice) -> Result<(), Fatal> {
    let order = args.list.order();
    if args.spares {
        return args.list.run(color, |source| Ok(spares(args.find(source)?)), spares_table);
    }
    args.list.run(color, |source| args.find(source), |found| table(found, order))
}

impl LinksArgs {
    fn find(&self, source: &FabricSource) -> Result<Found<Links>, Fatal> {
        let fabric = source.fabric.clone();
        let mut filter = Filter { suspect: self.suspect, fabric, ..Filter::default() };
        if self.is_limited_at_the_source() {
            filter.verdicts.clone_from(&self.selection.verdict);
            filter.limit = self.list.limit;
        }
        let ends = NodeMatch::all(source, &self.node)?;
        // A host that asks for its own links, as a gate on each host does, should not get all of the fabric.
        if let [NodeMatch::Places(places)] = &ends[..]
            && let [(guid, None)] = places[..]
        {
            filter.node = Some(guid.to_string());
        }
        let mut found = source.get(LINKS, &filter, |state| links(&state.fabrics, &filter))?;
        if let Some(serial) = &self.serial {
            retain_serial(&mut found, serial)?;
        }
        let crossed =
            self.crossed_by.as_deref().map(|host| crossed_by(source, host)).transpose()?;
        if let Some(crossed) = &crossed {
            retain_crossed(&mut found, crossed);
        }
        let mut at_ends = None;
        if self.list.fail_on.is_some() {
            let down = gate::nodes_down(source)?;
            check_patterns(&found, &down, &ends)?;
            at_ends = Some((down, self.guids_of_selected(&found, &ends)));
        }
        let mut found = self.select(found, &ends);
        if let Some((down, guids)) = at_ends {
            found.gate.add_down(down, |node| match &guids {
                _ if !ends.is_empty() => gate::is_named(&ends, node),
                Some(guids) => guids.contains(&node.guid),
                None => true,
            });
        }
        if let Some(crossed) = &crossed {
            found.summary += &reservations(crossed);
        }
        Ok(found)
    }

    /// The nodes at the ends of the selected links; `None` for all nodes, if links are not selected by what they are.
    fn guids_of_selected(&self, found: &Links, ends: &[NodeMatch]) -> Option<BTreeSet<String>> {
        let links = found.fabrics.iter().flat_map(|fabric| &fabric.links);
        let selected = links.filter(|link| self.selects(link, ends));
        let guids = selected.flat_map(|link| link.ends.iter().map(|end| end.guid.clone()));
        let selects_links = self.serial.is_some() || self.crossed_by.is_some();
        (!self.selection.is_empty() || selects_links).then(|| guids.collect())
    }

    fn selects(&self, link: &Link, ends: &[NodeMatch]) -> bool {
        let reasons = link.reasons.iter().map(|reason| &*reason.reason);
        let has = |end: &End| node_match::is_wanted(ends, &end.node, &end.guid, Some(end.port));
        // Each plane may be at a node of its own.
        let ports = link.planes.iter().flat_map(|plane| &plane.ports);
        let mut has_plane =
            ports.map(|port| node_match::is_wanted(ends, &port.node, &port.guid, Some(port.port)));
        self.selection.selects(link.verdict(), reasons)
            && (link.ends.iter().any(has) || has_plane.any(|has| has))
    }

    /// Whether the exporter can select the links and their order: of 30,000 links, all models take a second.
    fn is_limited_at_the_source(&self) -> bool {
        let selects_by_verdict = self.node.is_empty()
            && self.selection.reason.is_empty()
            && !self.suspect
            && self.serial.is_none()
            && self.crossed_by.is_none();
        // The nodes at the ends of all selected links are judged, too.
        let judges_ends = self.list.fail_on.is_some() && !self.selection.is_empty();
        self.list.order() == LinkOrder::Verdict
            && selects_by_verdict
            && !judges_ends
            && self.list.limit.is_some_and(|limit| (1..=MAX_LIMIT).contains(&limit))
    }

    /// The selected links in their order, and the summary of all.
    pub(super) fn select(&self, mut found: Links, ends: &[NodeMatch]) -> Found<Links> {
        let (mut verdicts, mut gate) = (Verdicts::default(), Gate::default());
        let mut selected: Vec<(usize, Link)> = Vec::new();
        for (fabric, listed) in found.fabrics.iter_mut().enumerate() {
            let links = std::mem::take(&mut listed.links).into_iter();
            let links: Vec<Link> = links.filter(|link| self.selects(link, ends)).collect();
            let mut of_fabric = Verdicts::default();
            if self.is_limited_at_the_source() {
                // Of all links, also of those beyond the limit.
                of_fabric = listed.verdicts.only(&self.selection.verdict);
            } else {
                for link in &links {
                    of_fabric.add(link.verdict());
                    of_fabric.learning += usize::from(link.learning.is_some());
                }
            }
            verdicts = verdicts.and(of_fabric);
            if gate.sees(&listed.fabric, &listed.condition) {
                gate.add(of_fabric);
                if let Some(worst) = links.iter().min_by(|a, b| a.rank().cmp(&b.rank())) {
                    gate.name(worst.verdict(), || gate::of_link(worst));
                }
            }
            selected.extend(links.into_iter().map(|link| (fabric, link)));
        }
        let selects_links = self.serial.is_some() || self.crossed_by.is_some();
        let is_filtered =
            self.suspect || !ends.is_empty() || !self.selection.is_empty() || selects_links;
        let count = is_filtered.then_some(verdicts.count());
        let summary = summary(&found, count, self.suspect, &self.node.join(", "));
        let order = list::order_by(&selected, |(_, link)| key(self.list.order(), link));
        for (fabric, link) in list::reordered(selected, order).take(self.list.most()) {
            found.fabrics[fabric].links.push(link);
        }
        Found { model: found, summary, gate }
    }
}

/// Keeps the links with a cable or module of this serial number, or whose serial number begins with it; an error if
/// there are none.
fn retain_serial(found: &mut Links, serial: &str) -> Result<(), Fatal> {
    let serials = |link: &Link| link.ends.each_ref().map(|end| end.serial_number.clone());
    let links = found.fabrics.iter().flat_map(|fabric| &fabric.links);
    let all: Vec<String> = links.flat_map(serials).flatten().collect();
    let is_exact = all.iter().any(|of| of.eq_ignore_ascii_case(serial));
    let is_it = |of: &str| begins_with(of, serial) && (!is_exact || of.len() == serial.len());
    if !all.iter().any(|of| is_it(of)) {
        let why = if all.is_empty() {
            "no link reports one: the exporter reads them from NVIDIA devices, by default every 10 minutes".into()
        } else {
            format!("no link has it now; \"history cable {serial}\" lists where it was")
        };
        return Err(Fatal::usage(format!("--serial: {serial:?} not found: {why}")));
    }
    for fabric in &mut found.fabrics {
        fabric.links.retain(|link| serials(link).iter().flatten().any(|of| is_it(of)));
    }
    Ok(())
}

/// The links that packets of a host cross.
fn crossed_by(source: &FabricSource, host: &str) -> Result<CrossedLinks, Fatal> {
    source.ask(CROSSED, &[("host", host)], async |desk, fabrics, fabric| {
        desk.crossed(fabrics, fabric, host).await
    })
}

fn retain_crossed(found: &mut Links, crossed: &CrossedLinks) {
    let ids: BTreeSet<&str> = crossed.links.iter().map(|link| &*link.cable.link).collect();
    for fabric in &mut found.fabrics {
        let is_it = fabric.fabric == crossed.fabric;
        fabric.links.retain(|link| is_it && ids.contains(&*link.link));
    }
}

/// What is not known of the links that a host's packets cross.
fn reservations(crossed: &CrossedLinks) -> String {
    let mut text = String::new();
    if crossed.unknown_routes > 0 {
        let why = tables_unread(&crossed.tables);
        let _ = write!(text, "; {} not known: {why}", plural(crossed.unknown_routes, "route"));
    }
    if crossed.broken_routes > 0 {
        let broken = plural(crossed.broken_routes, "route");
        let _ = write!(text, "; {broken} end before the destination");
    }
    if crossed.may_differ {
        text += "; adaptive routing: packets may cross other links, too";
    }
    text
}

/// The sort key of a link: what it is sorted by, then its rank.
pub(super) fn key(order: LinkOrder, link: &Link) -> impl Ord {
    let most = |value: u64| Reverse(value);
    let names = (order == LinkOrder::Node).then(|| natural_key(&link.ends[0].node));
    let change = (order == LinkOrder::Change).then_some(link.last_change.as_deref());
    let waits = || link.ends.iter().map(|end| wait_rank(end.wait_ratio, end.wait_saturated));
    let number = match order {
        LinkOrder::Verdict | LinkOrder::Node | LinkOrder::Change => 0,
        LinkOrder::Errors => link.local_errors(),
        // Ratios are not negative, so their bits have the same order.
        LinkOrder::Ber => link.worst_ratio().to_bits(),
        LinkOrder::Flaps => link.flaps.into(),
        LinkOrder::Wait => waits().max().unwrap_or(0),
    };
    let port = names.is_some().then_some(link.ends[0].port);
    (names, port, Reverse(change), most(number), link.rank())
}

/// The last line: the number of links by verdict, and of those that are selected.
fn summary(found: &Links, selected: Option<usize>, suspect: bool, nodes: &str) -> String {
    if found.fabrics.is_empty() {
        return "no links: this exporter does not sweep a fabric".into();
    }
    let all = found.fabrics.iter().map(|fabric| fabric.verdicts);
    let all = all.fold(Verdicts::default(), Verdicts::and);
    let unswept = found.fabrics.iter().filter(|fabric| fabric.swept_at.is_none());
    let unswept: Vec<&str> = unswept.map(|fabric| &*fabric.fabric).collect();
    let mut parts = Vec::new();
    if !unswept.is_empty() {
        parts.push(format!("not swept yet: {}", unswept.join(", ")));
    }
    let kind = match (suspect, nodes) {
        (true, "") => "suspect".to_owned(),
        (true, nodes) => format!("suspect at {nodes}"),
        (false, "") => "selected".to_owned(),
        (false, nodes) => format!("at {nodes}"),
    };
    // The counts are of all links.
    let listed = match selected {
        None => String::new(),
        Some(0) if nodes.is_empty() => format!("no {kind} links: "),
        Some(0) => format!("no links {kind}: "),
        Some(count) => {
            let (count, all) = (grouped(count), grouped(all.count()));
            format!("{count} of {all} links {kind}; verdicts of all: ")
        }
    };
    match all.count() {
        0 => parts.push("no links found".into()),
        _ => parts.push(listed + &cells::verdict_counts(&all, true)),
    }
    let conditions = found.fabrics.iter().map(|it| (&*it.fabric, &it.condition));
    list::headline(conditions) + &parts.join("; ")
}

/// Fails if a pattern matches neither an end of a link nor a node that is down.
fn check_patterns(found: &Links, down: &Nodes, ends: &[NodeMatch]) -> Result<(), Fatal> {
    gate::check_patterns(ends, |pattern| {
        let links = found.fabrics.iter().flat_map(|fabric| &fabric.links);
        let mut nodes = down.fabrics.iter().flat_map(|fabric| &fabric.nodes);
        links.flat_map(|link| &link.ends).any(|end| pattern.has(&end.node, &end.guid, None))
            || nodes.any(|node| pattern.has(&node.node, &node.guid, None))
    })
}

/// The spares that the selected links need.
fn spares(found: Found<Links>) -> Found<Spares> {
    let links = found.model.fabrics.iter().flat_map(|fabric| &fabric.links);
    let spares = spares::spares(links);
    let needed: usize = spares.iter().map(|spare| spare.needed).sum();
    let count = match needed {
        0 => "no spares needed now".to_owned(),
        needed => format!("{} needed now", plural(needed, "spare")),
    };
    let summary = format!("{count}; {}", found.summary);
    Found { model: Spares { spares }, summary, gate: found.gate }
}

fn spares_table(found: &Spares) -> Table {
    let columns = vec![
        ("PART NUMBER", Fit::Whole),
        ("PIECE", Fit::Whole),
        ("NEEDED", Fit::Whole),
        ("LINKS", Fit::Text),
    ];
    let row = |spare: &Spare| {
        let part = spare.part_number.clone().unwrap_or_else(|| "not reported".into());
        let links = spare.links.iter().map(|link| link.ends.join(" – "));
        let links = links.collect::<Vec<_>>().join("; ");
        (None, vec![part, spare.what.to_string(), grouped(spare.needed), links])
    };
    Table { columns, rows: found.spares.iter().map(row).collect() }
}

fn table(found: &Links, order: LinkOrder) -> Table {
    let columns = vec![
        ("VERDICT", Fit::Whole),
        ("FABRIC", Fit::Whole),
        ("END A", Fit::Name),
        ("END B", Fit::Name),
        ("RATE", Fit::Whole),
        ("TRY FIRST", Fit::Short),
        ("REASON", Fit::Text),
        ("COUNTS", Fit::Extra),
        ("CABLE", Fit::Extra),
    ];
    // Several fabrics are one table.
    let mut links: Vec<&Link> = found.fabrics.iter().flat_map(|fabric| &fabric.links).collect();
    links.sort_by_cached_key(|link| key(order, link));
    let rows = links.into_iter().map(|link| (Color::of(link.verdict()), row(link)));
    Table { columns, rows: rows.collect() }.with_fabric(found.fabrics.len() > 1)
}

fn row(link: &Link) -> Vec<String> {
    let (verdict, fabric) = (link.word().to_owned(), link.fabric.clone());
    let [a, b] = link.ends.each_ref().map(End::label);
    let rate = rate(link.width.as_deref(), link.speed.as_deref());
    vec![verdict, fabric, a, b, rate, repair(link), reason(link), counts(link), cable(link)]
}

/// The repair in one or two words; nothing if there is none.
fn repair(link: &Link) -> String {
    let repair = link.repair.as_ref().filter(|it| it.repair != Repair::None.label());
    repair.map(|it| it.repair.replace('_', " ")).unwrap_or_default()
}

/// What a technician orders and looks for: part and serial number of the cable, or of the modules at both ends.
fn cable(link: &Link) -> String {
    let known = |end: &End| {
        let parts = [&end.part_number, &end.serial_number].into_iter().flatten();
        parts.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    match link.ends.each_ref().map(known) {
        [a, b] if a == b || b.is_empty() => a,
        [a, b] if a.is_empty() => b,
        [a, b] => format!("A: {a}; B: {b}"),
    }
}

fn counts(link: &Link) -> String {
    let ends = ["A", "B"].into_iter().zip(link.ends.each_ref().map(counts_of));
    let counts = ends.filter(|(_, counts)| !counts.is_empty());
    counts.map(|(name, counts)| format!("{name}: {counts}")).collect::<Vec<_>>().join("; ")
}

/// A saturated counter has a `+`. Corrected symbols are normal and many on links with four-level
/// signals: only `--json` has them.
fn counts_of(end: &End) -> String {
    let counters = end.counters.iter().filter(|(name, _)| !name.starts_with("fec_corrected_"));
    let counts = counters.map(|(name, count)| {
        format!("{name} {}", cells::count(*count, end.saturated.contains(name)))
    });
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::cli::table::Style;
    use clap::Parser;
    use fabric_api::model::{Condition, FabricLinks, LinkReason, SuggestedRepair, WindowErrors};

    fn args(options: &[&str]) -> LinksArgs {
        let cli = Cli::try_parse_from([&["fabric-exporter", "links"], options].concat());
        match cli.unwrap().verb {
            crate::cli::Verb::Links(args) => args,
            _ => panic!("another verb"),
        }
    }

    fn in_fabric(links: Vec<Link>) -> Links {
        let mut verdicts = Verdicts::default();
        for link in &links {
            verdicts.add(link.verdict());
        }
        let (fabric, swept_at) = ("f".into(), Some("1970-01-01T00:00:00Z".into()));
        let condition = Condition { verdict: "bad".into(), ..Condition::default() };
        Links { fabrics: vec![FabricLinks { fabric, swept_at, condition, verdicts, links }] }
    }

    #[test]
    fn summary_counts_links_by_verdict() {
        let swept = |verdicts| FabricLinks { verdicts, ..in_fabric(Vec::new()).fabrics.remove(0) };
        let some = Verdicts { bad: 3, watch: 1, unknown: 20, ok: 4_000_000, learning: 0 };
        let unswept = FabricLinks { fabric: "g".into(), ..FabricLinks::default() };
        for (fabrics, selected, says) in [
            (vec![], None, "no links: this exporter does not sweep a fabric"),
            (vec![swept(Verdicts::default())], None, "no links found"),
            (vec![unswept.clone()], None, "not swept yet: g; no links found"),
            (vec![swept(some)], None, "3 bad, 1 degraded, 20 unknown, 4,000,000 ok"),
            (
                vec![swept(some), unswept],
                Some(0),
                "not swept yet: g; no suspect links: 3 bad, 1 degraded, 20 unknown, 4,000,000 ok",
            ),
            (
                vec![swept(Verdicts { ok: 1_996, bad: 1, unknown: 3, learning: 2, watch: 0 })],
                Some(1),
                "1 of 2,000 links suspect; verdicts of all: 1 bad, 0 degraded, 3 unknown (2 learning), 1,996 ok",
            ),
        ] {
            assert_eq!(summary(&Links { fabrics }, selected, true, ""), says);
        }
    }

    fn link(verdict: &'static str, errors: u64, ratio: Option<f64>, node: &str, port: u8) -> Link {
        let mut end = End { node: node.into(), port, ..End::default() };
        if errors > 0 {
            end.counters.insert("symbol_errors".into(), errors);
        }
        end.bit_errors.windows =
            vec![WindowErrors { window: "12m".into(), errors: 0, seconds: 1.0, ratio }];
        Link { verdict: verdict.into(), ends: [end, End::default()], ..Link::default() }
    }

    /// The links in the order of JSON and of the table.
    fn listed(options: &[&str], links: Vec<Link>) -> Vec<Link> {
        let args = args(options);
        let found = args.select(in_fabric(links), &[]).model;
        let rows = table(&found, args.list.order()).rows;
        let links = found.fabrics.into_iter().flat_map(|fabric| fabric.links);
        let links: Vec<Link> = links.collect();
        assert_eq!(rows.len(), links.len());
        for ((_, cells), link) in rows.iter().zip(&links) {
            assert_eq!(cells[1], link.ends[0].label());
        }
        links
    }

    #[test]
    fn worst_links_come_first() {
        let wanted = [
            link("bad", 0, Some(1e-9), "z", 1),
            link("bad", 7, Some(1e-12), "a", 1),
            link("bad", 9, None, "b", 1),
            link("bad", 8, None, "a", 1),
            link("watch", 0, None, "a", 1),
            link("unknown", 5, None, "a", 1),
            link("unknown", 1, None, "a", 1),
            link("unknown", 0, None, "a", 2),
            link("unknown", 0, None, "a", 10),
            link("unknown", 0, None, "b", 1),
            link("ok", 1_000, None, "a", 1),
            link("ok", 0, None, "a", 1),
        ];
        let mut links = wanted.to_vec();
        links.reverse();
        links.swap(2, 7);
        assert_eq!(listed(&[], links.clone()), wanted);
        assert_eq!(listed(&["--limit=3"], links.clone()), wanted[..3]);
        let watched = listed(&["--verdict=degraded,ok"], links.clone());
        assert_eq!(watched, [&wanted[4..5], &wanted[10..]].concat());
        // What the exporter limits is counted like what is limited here.
        for order in ["--sort=verdict", "--sort=errors"] {
            let options = [order, "--verdict=degraded,ok", "--limit=1"];
            let found = args(&options).select(in_fabric(links.clone()), &[]);
            assert_eq!(
                (found.gate.verdicts.watch, found.gate.verdicts.ok, found.gate.verdicts.bad),
                (1, 2, 0)
            );
            assert!(found.summary.starts_with("3 of 12 links selected"), "{}", found.summary);
        }
    }

    #[test]
    fn links_are_sorted_by_the_key_then_by_rank() {
        let links = || {
            let mut links = vec![
                link("ok", 5, None, "leaf-10", 1),
                link("ok", 3, Some(1e-9), "leaf-2", 2),
                link("bad", 3, None, "leaf-2", 1),
            ];
            links[0].flaps = 2;
            links[1].ends[1].wait_ratio = Some(0.5);
            links[2].last_change = Some("2026-11-21T03:12:00Z".into());
            links
        };
        let [ten, two, bad] = <[Link; 3]>::try_from(links()).unwrap();
        for (sort, order) in [
            ("--sort=verdict", [&bad, &two, &ten]),
            ("--sort=node", [&bad, &two, &ten]),
            ("--sort=errors", [&ten, &bad, &two]),
            ("--sort=ber", [&two, &bad, &ten]),
            ("--sort=flaps", [&ten, &bad, &two]),
            ("--sort=wait", [&two, &bad, &ten]),
            ("--sort=change", [&bad, &two, &ten]),
        ] {
            let sorted = listed(&[sort], links());
            assert_eq!(sorted.iter().collect::<Vec<_>>(), order, "{sort}");
        }
    }

    #[test]
    fn nodes_and_ports_select_their_links() {
        let mut a = link("ok", 0, None, "leaf-1", 1);
        (a.ends[0].guid, a.ends[1].guid) = ("0x1".into(), "0x9".into());
        let mut b = link("ok", 0, None, "leaf-1", 2);
        (b.ends[0].guid, b.ends[1].node) = ("0x1".into(), "spine-3".into());
        let leaf = ib_mad::Guid(1);
        for (ends, count) in [
            (NodeMatch::Places(vec![(leaf, None)]), 2),
            (NodeMatch::Places(vec![(leaf, Some(2))]), 1),
            (NodeMatch::Places(vec![(leaf, Some(3))]), 0),
            (NodeMatch::Places(vec![(ib_mad::Guid(9), None)]), 1),
            (NodeMatch::Pattern("leaf*".into()), 2),
            (NodeMatch::Pattern("*-3".into()), 1),
        ] {
            let found = args(&[]).select(in_fabric(vec![a.clone(), b.clone()]), &[ends]);
            assert_eq!(
                (found.model.fabrics[0].links.len(), found.gate.verdicts.ok),
                (count, count)
            );
        }
    }

    #[test]
    fn serial_number_selects_its_links_exactly_or_by_its_beginning() {
        let cable = |port, serials: [Option<&str>; 2]| {
            let mut link = link("ok", 0, None, "leaf", port);
            for (end, serial) in link.ends.iter_mut().zip(serials) {
                end.serial_number = serial.map(Into::into);
            }
            link
        };
        let links = vec![
            cable(1, [Some("MT1"), Some("MT1")]),
            cable(2, [Some("MT12"), Some("MT3")]),
            cable(3, [None, None]),
        ];
        let selected = |serial: &str| {
            let mut found = in_fabric(links.clone());
            retain_serial(&mut found, serial).map_err(|error| error.message)?;
            let ports = found.fabrics[0].links.iter().map(|link| link.ends[0].port);
            Ok::<Vec<u8>, String>(ports.collect())
        };
        for (serial, ports) in [("mt1", &[1][..]), ("MT12", &[2]), ("mt3", &[2]), ("M", &[1, 2])] {
            assert_eq!(selected(serial).unwrap(), ports, "{serial}");
        }
        assert!(selected("T1").unwrap_err().contains("history cable T1"));
        let mut none = in_fabric(vec![cable(3, [None, None])]);
        assert!(retain_serial(&mut none, "MT1").unwrap_err().message.contains("NVIDIA"));
    }

    fn bad() -> Link {
        let end = |node: &str, port, counters: &[(&'static str, u64)]| End {
            node: node.into(),
            port,
            counters: counters.iter().map(|&(name, count)| (name.into(), count)).collect(),
            ..End::default()
        };
        let mut near = end("leaf-0-1", 9, &[("symbol_errors", 65_535), ("link_downed", 3)]);
        near.saturated = vec!["symbol_errors".into()];
        Link {
            fabric: "f".into(),
            verdict: "bad".into(),
            reasons: vec![LinkReason {
                reason: "flapping".into(),
                verdict: "bad".into(),
                evidence: "went down 3 times, for 44 s in all".into(),
            }],
            ends: [near, end("host\u{1b}[2J", 1, &[])],
            width: Some("4x".into()),
            speed: Some("NDR".into()),
            ..Link::default()
        }
    }

    fn text(links: Vec<Link>, fabrics: usize) -> String {
        let mut found = in_fabric(links);
        found.fabrics.resize(fabrics, FabricLinks::default());
        let mut out = Vec::new();
        table(&found, LinkOrder::default()).write(&mut out, Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let fine = Link { verdict: "ok".into(), ..Link::default() };
        assert_eq!(
            text(vec![bad(), fine], 1),
            "\
VERDICT  END A            END B            RATE    REASON                              COUNTS
bad      leaf-0-1 port 9  host\u{fffd}[2J port 1  4x NDR  went down 3 times, for 44 s in all  A: link_downed 3, symbol_errors 65535+
ok        port 0           port 0          -
"
        );
    }

    #[test]
    fn repair_has_a_column_of_few_words() {
        let mut link = bad();
        link.repair = Some(SuggestedRepair {
            repair: "swap_transceiver".into(),
            description: "Swap the transceiver at the sending end.".into(),
        });
        let text = text(vec![link], 1);
        assert!(
            text.lines().next().unwrap().contains("RATE    TRY FIRST         REASON"),
            "{text}"
        );
        assert!(text.contains("4x NDR  swap transceiver  went down 3 times"), "{text}");
    }

    #[test]
    fn several_fabrics_have_a_column() {
        let text = text(vec![bad()], 2);
        assert!(text.starts_with("VERDICT  FABRIC  END A"), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("bad      f       leaf-0-1"), "{text}");
    }

    #[test]
    fn corrected_symbols_are_not_shown() {
        let mut link = bad();
        link.ends[1].counters = [("fec_corrected_symbols".into(), 7)].into();
        let text = text(vec![link], 1);
        assert!(text.contains("symbol_errors 65535"), "{text}");
        assert!(!text.contains("fec_") && !text.contains("B: "), "{text}");
    }

    #[test]
    fn no_links_are_no_table() {
        assert_eq!(text(Vec::new(), 1), "");
        let link = Link { reasons: Vec::new(), ..bad() };
        assert!(text(vec![link], 1).contains("recovering"));
    }
}
