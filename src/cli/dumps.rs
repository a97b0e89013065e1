//! Dumps of other tools as if the exporter had swept the fabric.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;
use display_text::{grouped, plural};
use fabric_dumps::{Dump, DumpError, Dumps, UNKNOWN_FILE};
use fabric_history::model::time::clamped;
use fabric_observation::{Collector, MonitorStats, Observation};
use humantime::format_rfc3339_seconds;
use ib_fabric::names::Naming;
use ib_fabric::node_name_map::NodeNameMap;
use ib_health::LinkEvaluator;
use ib_health::assessment::UnjudgedRates;
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use yaml_config::units::HumanDuration;

use crate::config::Settings;
use crate::exit::Fatal;
use crate::monitor::names_in;

/// The longest name that is shown of a file.
const SHOWN: usize = 60;

/// The most remarks that are shown.
const MAX_REMARKS: usize = 8;

/// The most names of files in a line.
const MAX_NAMES: usize = 5;

/// How dumps are read.
#[derive(Args, Clone, Debug, Default)]
pub struct ReadingArgs {
    /// Time between the dumps, if the files do not contain it
    #[arg(
        long,
        value_name = "DURATION",
        requires = "dumps",
        global = true,
        help_heading = "Dumps"
    )]
    between: Option<HumanDuration>,
    /// Fail if something in the dumps was not used
    ///
    /// Files of other formats, lines that are not of the tool, links whose ends are not known. Without this option they
    /// are listed on standard error.
    #[arg(long, requires = "dumps", global = true, help_heading = "Dumps")]
    strict: bool,
}

/// Reads dumps, the oldest first. With `--between` they are as far from each other, in the order of their times.
pub fn read(paths: &[PathBuf], how: &ReadingArgs) -> Result<Dumps, Fatal> {
    let mut found = fabric_dumps::read(paths).map_err(|error| match error {
        DumpError::File { .. } => Fatal::failed(error),
        DumpError::Invalid(_) => Fatal::usage(error),
    })?;
    if how.strict {
        let mut unused = all_unused(&found).into_iter();
        if let Some(first) = unused.next() {
            let more = match unused.len() {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            return Err(Fatal::usage(format!("--strict: not everything was used: {first}{more}")));
        }
    }
    let dumps = &mut found.dumps;
    let between = how.between.map(Duration::from);
    if let (Some(between), Some(first)) = (between, dumps.first().map(|dump| dump.taken_at)) {
        for (nth, dump) in dumps.iter_mut().enumerate() {
            dump.taken_at = first + between * nth as u32;
            dump.has_time = true;
        }
    }
    let same = dumps.windows(2).find(|pair| pair[0].taken_at >= pair[1].taken_at);
    if let Some([first, second]) = same {
        let (first, second) = (first.name(), second.name());
        let files = if first == second {
            format!("the readings in {first}")
        } else {
            format!("{first} and {second}")
        };
        return Err(Fatal::usage(format!(
            "{files} have the same time: error rates need the time between them: add --between"
        )));
    }
    Ok(found)
}

/// A line for each dump: its time, and what it contains. Then what was read in another way than it is written.
pub fn notes(found: &Dumps) -> Vec<String> {
    let mut notes: Vec<String> = found.dumps.iter().map(note).collect();
    let used = found.remarks().filter(|remark| !remark.is_unused).map(ToString::to_string);
    notes.extend(shortened(used.collect(), "note"));
    notes.iter().map(|note| super::terminal::printable(note)).collect()
}

/// What was not used, a line for each.
pub fn unused(found: &Dumps) -> Vec<String> {
    let lines = shortened(all_unused(found), "not used");
    lines.iter().map(|line| super::terminal::printable(line)).collect()
}

fn note(dump: &Dump) -> String {
    let mut formats: Vec<&str> = dump.files.iter().map(|(_, format)| format.label()).collect();
    formats.dedup();
    let time = format_rfc3339_seconds(clamped(dump.taken_at));
    let guessed = if dump.has_time { "" } else { " (modification time of the file)" };
    let mut name: String = dump.name();
    if name.chars().count() > SHOWN {
        let cut = name.chars().count() - SHOWN;
        name = format!("…{}", name.chars().skip(cut).collect::<String>());
    }
    let (nodes, links) = (plural(dump.nodes.len(), "node"), plural(dump.links.len(), "link"));
    let counted = plural(dump.counted(), "port");
    format!(
        "{name}: {time}{guessed}, {}: {nodes}, {links}, counters of {counted}",
        formats.join(", ")
    )
}

/// What was not used. Files that were ignored for the same reason are one line.
fn all_unused(found: &Dumps) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut lines = Vec::new();
    for remark in found.remarks().filter(|remark| remark.is_unused) {
        match remark.file.file_name() {
            Some(name) if remark.line == 0 && remark.text == UNKNOWN_FILE => {
                files.entry(&remark.text).or_default().push(name.to_string_lossy().into_owned());
            }
            _ => lines.push(remark.to_string()),
        }
    }
    let grouped_files = files.into_iter().map(|(text, names)| {
        let more = if names.len() > MAX_NAMES { ", …" } else { "" };
        let names_shown = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
        format!("{} {text}: {names_shown}{more}", plural(names.len(), "file"))
    });
    lines.into_iter().chain(grouped_files).collect()
}

/// At most some lines, each with what it is.
fn shortened(lines: Vec<String>, what: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_REMARKS);
    let mut shown: Vec<String> =
        lines.into_iter().take(MAX_REMARKS).map(|line| format!("{what}: {line}")).collect();
    if more > 0 {
        shown.push(format!("{what}: {} more", grouped(more)));
    }
    shown
}

/// Which links have a rate that the dumps do not show to be right or wrong.
pub fn unjudged_rates(observation: &Observation) -> Option<String> {
    let UnjudgedRates { links, without_rate, without_peers } =
        observation.assessment.unjudged_rates;
    let why = match (without_rate, without_peers) {
        (0, 0) => return None,
        (count, 0) if count == links => {
            return Some("rates are not judged: the files contain no widths and speeds".into());
        }
        (_, 0) => "no width and speed".to_owned(),
        (0, _) => "fewer than 4 other links of their type to compare with".to_owned(),
        (without_rate, without_peers) => format!(
            "{} without width and speed, {} with fewer than 4 other links of their type",
            grouped(without_rate),
            grouped(without_peers)
        ),
    };
    let count = match without_rate + without_peers {
        all if all == links => plural(links, "link"),
        count => format!("{} of {}", grouped(count), plural(links, "link")),
    };
    Some(format!("the rates of {count} are not judged: {why}"))
}

/// Evaluates dumps one after the other, and returns the last observation. `each` gets all of them.
pub fn judge(
    dumps: &[Dump],
    settings: &Settings,
    mut each: impl FnMut(&Observation),
) -> Result<Arc<Observation>, Fatal> {
    let settings =
        settings.fabrics.first().ok_or_else(|| Fatal::usage("no fabric is configured"))?;
    let map = match &settings.node_name_map {
        Some(path) => names_in(path).map_err(Fatal::usage)?,
        None => NodeNameMap::default(),
    };
    let naming = Naming { map, hosts: settings.hosts.clone(), rails: settings.rails.clone() };
    let mut evaluator = LinkEvaluator::of_dumps(settings.limits.clone());
    let first = dumps.first().map_or(SystemTime::UNIX_EPOCH, |dump| dump.taken_at);
    let mut last = Observation { fabric: settings.name.clone(), ..Observation::default() };
    for (nth, dump) in dumps.iter().enumerate() {
        let since = dump.taken_at.duration_since(first).unwrap_or_default();
        // Not the start of the clock, which stands for never.
        let anchor = Anchor {
            moment: Moment::default() + Duration::from_secs(1) + since,
            wall: dump.taken_at,
        };
        let fabric = last.snapshot.as_ref().map(|snapshot| Arc::clone(&snapshot.fabric));
        let previous = fabric.as_deref().map(|fabric| (fabric, Moment::default()));
        let (snapshot, assessment) = evaluator.evaluate(dump.snapshot(previous, &naming, anchor));
        let mut stats = MonitorStats::default();
        (stats.sweeps, stats.discoveries) = (nth as u64 + 1, nth as u64 + 1);
        for collector in Collector::ALL {
            stats.set_success(collector, true);
        }
        last = Observation { snapshot: Some(Arc::new(snapshot)), assessment, stats, ..last };
        each(&last);
    }
    Ok(Arc::new(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Options;
    use fabric_api::Filter;
    use fabric_api::links::links;
    use fabric_api::model::{Link, Node, Port};
    use fabric_api::nodes::{node_by_guid, nodes};
    use fabric_api::search::search;
    use fabric_observation::SharedState;
    use ib_mad::Guid;

    fn judged(texts: &[&str]) -> Arc<Observation> {
        let settings = Settings::load(Options::default(), None).unwrap();
        let read = fabric_dumps::from_texts(texts).unwrap();
        judge(&read.dumps, &settings, |_| {}).unwrap()
    }

    /// A leaf, LID 6, with a host at each port, LIDs from 101 on: width and speed of their links.
    fn ibnetdiscover(rates: &[&str]) -> String {
        let head = "vendid=0x2c9\ndevid=0xcf08\nsysimgguid=0xa00\nswitchguid=0xa00(a00)\n\
                    Switch\t36 \"S-0000000000000a00\"\t\t# \"leaf-1\" enhanced port 0 lid 6 lmc 0\n";
        let port = |(rate, port): (&&str, u64)| {
            let (guid, lid) = (0xb00 + port * 16, 100 + port);
            format!(
                "[{port}]\t\"H-{guid:016x}\"[1]({:x}) \t\t# \"host-{port}\" lid {lid} {rate}\n",
                guid + 1
            )
        };
        head.to_owned() + &rates.iter().zip(1..).map(port).collect::<String>()
    }

    fn lst(rates: &[(&str, &str)]) -> String {
        let line = |((width, speed), port): (&(&str, &str), u64)| {
            let guid = 0xb00 + port * 16;
            format!(
                "{{ CA Ports:01 SystemGUID:{guid:016x} NodeGUID:{guid:016x} PortGUID:{:016x} VenID:000002c9 \
                 DevID:1003 Rev:00000000  LID:{:04X} PN:01 }} {{ SW Ports:24 SystemGUID:0000000000000a00 \
                 NodeGUID:0000000000000a00 PortGUID:0000000000000a00 VenID:000002c9 DevID:c738 Rev:000000a1  \
                 LID:0006 PN:{port:02X} }} PHY={width} LOG=ACT SPD={speed}\n",
                guid + 1,
                100 + port
            )
        };
        rates.iter().zip(1..).map(line).collect()
    }

    fn iblinkinfo(rates: &[(&str, &str, &str)]) -> String {
        let row = |((width, speed, hint), port): (&(&str, &str, &str), u32)| {
            format!(
                "           6   {port:2}[  ] ==( {width} {speed:>14} Gbps Active/  LinkUp)==>  \
                 {:6}    1[  ] \"host-{port}\" ({hint})\n",
                100 + port
            )
        };
        let rows: String = rates.iter().zip(1..).map(row).collect();
        format!("Switch: 0x0000000000000a00 leaf-1:\n{rows}")
    }

    /// The port of the leaf, verdict, reason and evidence of the links that are degraded or bad.
    fn suspects(observation: &Arc<Observation>) -> Vec<(u8, String)> {
        let found = links(&[Arc::clone(observation)], &Filter::default());
        let suspect = |link: &Link| {
            let reason = link.told_reasons().next()?;
            let is_leaf = link.ends[0].node_type == "switch";
            let port = link.ends[usize::from(!is_leaf)].port;
            let text = format!("{} {}: {}", link.verdict, reason.reason, reason.evidence);
            (link.verdict() >= ib_health::Verdict::Watch).then_some((port, text))
        };
        found.fabrics[0].links.iter().filter_map(suspect).collect()
    }

    #[test]
    fn slow_and_narrow_links_are_reported_from_one_dump() {
        let narrow = "bad width: runs at 1x EDR; its peers run at 4x EDR";
        let slow = "watch speed: runs at 4x SDR; its peers run at 4x EDR";
        let expected = [(3, narrow.to_owned()), (8, slow.to_owned())];
        let mut rates = ["4xEDR"; 20];
        (rates[2], rates[7]) = ("1xEDR", "4xSDR");
        let found = judged(&[&ibnetdiscover(&rates)]);
        assert_eq!((&*suspects(&found), unjudged_rates(&found)), (&expected[..], None));
        let mut rates = [("4x", "25"); 20];
        (rates[2], rates[7]) = (("1x", "25"), ("4x", "2.5"));
        let found = judged(&[&lst(&rates)]);
        assert_eq!((&*suspects(&found), unjudged_rates(&found)), (&expected[..], None));
        // One of five, as in an old fabric.
        let mut rates = [("4x", "10"); 5];
        rates[0] = ("4x", "2.5");
        let slow = "watch speed: runs at 4x SDR; its peers run at 4x QDR";
        assert_eq!(suspects(&judged(&[&lst(&rates)])), [(1, slow.into())]);
        let narrow = "bad width: runs at 1x EDR; both ends support and enable 4x EDR";
        let mut rates = [("4X", "25.78125", " "); 20];
        rates[2] = ("1X", "25.78125", "Could be 4X ");
        rates[7] = ("4X", "2.5", "Could be 25.78125 Gbps ");
        let slow = "watch speed: runs at 4x SDR; its peers run at 4x EDR";
        let found = suspects(&judged(&[&iblinkinfo(&rates)]));
        let peers = "bad width: runs at 1x EDR; its peers run at 4x EDR";
        assert_eq!(found, [(3, peers.into()), (8, slow.into())]);
        assert_eq!(suspects(&judged(&[&iblinkinfo(&rates[2..3])])), [(1, narrow.into())]);
    }

    #[test]
    fn rates_that_cannot_be_judged_are_said() {
        let says = |rates: &[&str]| unjudged_rates(&judged(&[&ibnetdiscover(rates)]));
        let note = |text: &str| Some(text.to_owned());
        assert_eq!(says(&["4xEDR"; 5]), None);
        let few = "fewer than 4 other links of their type to compare with";
        assert_eq!(
            says(&["4xEDR", "4xSDR"]),
            note(&format!("the rates of 2 links are not judged: {few}"))
        );
        let nothing = "rates are not judged: the files contain no widths and speeds";
        assert_eq!(says(&["", ""]), note(nothing));
        assert_eq!(
            says(&["4xEDR", "4xEDR", ""]),
            note(
                "the rates of 3 links are not judged: 1 without width and speed, 2 with fewer than 4 other links of \
                 their type"
            )
        );
        let mut rates = ["4xEDR"; 6];
        rates[1] = "";
        let one = "the rates of 1 of 6 links are not judged: no width and speed";
        assert_eq!(says(&rates), note(one));
    }

    #[test]
    fn lid_of_a_switch_finds_all_of_it_and_that_of_an_adapter_its_port() {
        let observation = judged(&[&ibnetdiscover(&["4xEDR"; 5])]);
        let fabrics = [Arc::clone(&observation)];
        let listed = nodes(&fabrics, &Filter::default()).fabrics.remove(0).nodes;
        let leaf: Vec<&Node> = listed.iter().filter(|node| node.node == "leaf-1").collect();
        assert_eq!((leaf[0].lid, leaf[0].port_count), (Some(6), 36));
        let detail = node_by_guid(&fabrics, None, Guid(0xa00)).unwrap();
        assert_eq!(detail.ports.len(), 36, "without port 0");
        let state = SharedState::from(vec![observation]);
        let hit = |text: &str| {
            let hit = search(&state, text).hits.remove(0);
            format!("{} {}", hit.kind, hit.name)
        };
        assert_eq!(["6", "103"].map(hit), ["node leaf-1", "port host-3 port 1"]);
    }

    #[test]
    fn errors_that_no_file_contains_are_absent() {
        let errors = "Errors for 0xa00 \"leaf-1\"\n   \
                      GUID 0xa00 port 2: [SymbolErrorCounter == 65535] [LinkDownedCounter == 10]\n";
        let found = judged(&[&ibnetdiscover(&["4xEDR"; 5]), errors]);
        let ports = node_by_guid(&[found], None, Guid(0xa00)).unwrap().ports;
        let counted = |port: &Port| (port.errors, port.is_least(), port.read_at.is_some());
        assert_eq!(counted(&ports[1]), (Some(65_545), true, true));
        assert_eq!(counted(&ports[0]), (None, false, false));
    }
}
