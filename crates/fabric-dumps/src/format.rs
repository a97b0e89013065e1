//! The formats of dumps: how each is recognized and read.

use crate::contents::Contents;
use crate::lines::{Line, Lines};
use crate::problem::Problem;
use crate::telemetry::Writing;
use crate::{
    db_csv, iblinkinfo, ibnetdiscover, ibqueryerrors, lst, modules, net_dump, perfquery, pm,
    port_list, telemetry,
};

display_text::labeled_enum! {
    /// A format of a dump.
    #[derive(PartialOrd, Ord)]
    pub enum Format {
        DbCsv, "db_csv", "ibdiagnet2: nodes, ports, cables, counters, firmware, temperatures.";
        Lst, "lst", "ibdiagnet2: cables.";
        NetDump, "net_dump", "ibdiagnet2: ports of switches.";
        Pm, "pm", "ibdiagnet2: counters.";
        Cables, "cables", "ibdiagnet2: modules and cables.";
        IbNetDiscover, "ibnetdiscover", "Nodes and cables.";
        IbNetDiscoverPorts, "ibnetdiscover -p", "Ports and cables.";
        IbLinkInfo, "iblinkinfo", "Ports and cables, with states.";
        IbQueryErrors, "ibqueryerrors", "Counters.";
        PerfQuery, "perfquery", "Counters of a port.";
        UfmCsv, "ufm_csv", "UFM Telemetry: ports, cables, counters, modules.";
        UfmMetrics, "ufm_metrics", "The same in the text format of Prometheus.";
    }
}

/// A set of formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats(u16);

impl Formats {
    /// All formats.
    pub const ALL: Formats = Formats(u16::MAX);

    /// A set of one.
    pub fn of(format: Format) -> Formats {
        Formats(1 << format as u16)
    }

    /// Those in both sets.
    pub fn and(self, other: Formats) -> Formats {
        Formats(self.0 & other.0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The only format, if there is one.
    pub fn single(self) -> Option<Format> {
        Format::ALL.into_iter().find(|format| Formats::of(*format) == self)
    }
}

/// The formats that have a line like this one, from its first to its last character. The rows of a table of `db_csv` are
/// not recognized: only its first and last lines are.
pub fn formats_of(line: &str) -> Formats {
    let Some(first) = line.bytes().next() else { return Formats::default() };
    // The most frequent lines first.
    let format = match first {
        b'[' if ibnetdiscover::is_line(line) => Format::IbNetDiscover,
        b'S' | b'E' if db_csv::section_start(line).or(db_csv::section_end(line)).is_some() => {
            Format::DbCsv
        }
        b'{' if lst::is_line(line) => Format::Lst,
        b'P' if pm::port_line(line).is_some() => {
            return Formats(Formats::of(Format::Pm).0 | Formats::of(Format::Cables).0);
        }
        _ if pm::is_line(line) => Format::Pm,
        _ if perfquery::is_line(line) => Format::PerfQuery,
        _ if ibqueryerrors::is_line(line) => Format::IbQueryErrors,
        _ if iblinkinfo::is_line(line) => Format::IbLinkInfo,
        _ if port_list::is_line(line) => Format::IbNetDiscoverPorts,
        _ if ibnetdiscover::is_line(line) => Format::IbNetDiscover,
        _ if net_dump::is_line(line) => Format::NetDump,
        _ if modules::is_line(line) => Format::Cables,
        _ => return Formats::default(),
    };
    Formats::of(format)
}

type Recognizer = fn(&str) -> bool;

/// The format of which a line looks like a damaged one: part of a wrapped line, or cut off.
pub fn damaged_format(line: &str) -> Option<Format> {
    let recognizers: [(Format, Recognizer); 8] = [
        (Format::IbNetDiscover, ibnetdiscover::is_damaged),
        (Format::IbLinkInfo, iblinkinfo::is_damaged),
        (Format::IbQueryErrors, ibqueryerrors::is_damaged),
        (Format::IbNetDiscoverPorts, port_list::is_damaged),
        (Format::Lst, lst::is_damaged),
        (Format::Pm, pm::is_damaged),
        (Format::PerfQuery, perfquery::is_damaged),
        (Format::NetDump, net_dump::is_damaged),
    ];
    recognizers.into_iter().find(|(_, is_damaged)| is_damaged(line)).map(|(format, _)| format)
}

/// Whether a line looks like a damaged one of any format.
pub fn is_damaged(line: &str) -> bool {
    damaged_format(line).is_some()
}

impl Format {
    /// The format of telemetry that is written so.
    pub(crate) fn of_telemetry(writing: Writing) -> Format {
        match writing {
            Writing::Csv => Format::UfmCsv,
            Writing::Prometheus => Format::UfmMetrics,
        }
    }

    /// Reads lines of this format: one reading after the other.
    pub fn parse<'a>(
        self,
        lines: impl Iterator<Item = Line<'a>>,
    ) -> Result<Vec<Contents>, Problem> {
        match self {
            Format::DbCsv => db_csv::parse(lines),
            Format::Lst => lst::parse(lines),
            Format::NetDump => net_dump::parse(lines),
            Format::Pm => pm::parse(lines),
            Format::Cables => modules::parse(lines),
            Format::IbNetDiscover => ibnetdiscover::parse(lines),
            Format::IbNetDiscoverPorts => port_list::parse(lines),
            Format::IbLinkInfo => iblinkinfo::parse(lines),
            Format::IbQueryErrors => ibqueryerrors::parse(lines),
            Format::PerfQuery => perfquery::parse(lines),
            Format::UfmCsv | Format::UfmMetrics => {
                let mut first = None;
                let lines = lines.inspect(|line| first = first.or(Some(line.number)));
                let text = lines.flat_map(|line| [line.text, "\n"]).collect::<String>();
                let writing =
                    if self == Format::UfmCsv { Writing::Csv } else { Writing::Prometheus };
                telemetry::parse(writing, &text)
                    .map_err(|what| Problem::at(first.unwrap_or_default(), what))
            }
        }
    }

    /// Reads a text of which each line is of this format.
    pub fn parse_text(self, text: &str) -> Result<Vec<Contents>, Problem> {
        let mut lines = Lines::default();
        text.lines().enumerate().for_each(|(index, line)| lines.push(index + 1, line));
        self.parse(lines.iter())
    }
}
