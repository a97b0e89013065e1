//! The formats of dumps: how each is recognized and read.

use crate::contents::Contents;
use crate::problem::Problem;
use crate::{db_csv, ibdiagnet, iblinkinfo, ibnetdiscover, ibqueryerrors, modules, perfquery};

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
    }
}

impl Format {
    /// The format of a text, by the first line that only one format has.
    pub fn of(text: &str) -> Option<Format> {
        text.lines().find_map(|line| {
            let line = line.trim_start_matches('\u{feff}').trim_end();
            let word = line.trim_start_matches(['>', ' ']);
            Some(match line {
                _ if line.starts_with("START_") && !line.contains(' ') => Format::DbCsv,
                _ if line.starts_with("{ ") && line.contains("NodeGUID:") => Format::Lst,
                _ if line.contains(": IB# :") && line.contains("Neighbor Guid") => Format::NetDump,
                _ if line.starts_with("link_down_counter=") => Format::Pm,
                _ if line.starts_with("symbol_error_counter=") => Format::Pm,
                _ if line.starts_with("Identifier:") => Format::Cables,
                _ if ibnetdiscover::node_line(line).is_some() => Format::IbNetDiscover,
                _ if ibnetdiscover::is_port_list(line) => Format::IbNetDiscoverPorts,
                _ if ibqueryerrors::header(word).is_some() => Format::IbQueryErrors,
                _ if iblinkinfo::is_link(line) => Format::IbLinkInfo,
                _ if perfquery::header(line).is_some() => Format::PerfQuery,
                _ => return None,
            })
        })
    }

    /// Reads a text of this format.
    pub fn parse(self, text: &str) -> Result<Contents, Problem> {
        match self {
            Format::DbCsv => db_csv::parse(text),
            Format::Lst => ibdiagnet::parse_lst(text),
            Format::NetDump => ibdiagnet::parse_net_dump(text),
            Format::Pm => ibdiagnet::parse_pm(text),
            Format::Cables => modules::parse(text),
            Format::IbNetDiscover => ibnetdiscover::parse(text),
            Format::IbNetDiscoverPorts => ibnetdiscover::parse_port_list(text),
            Format::IbLinkInfo => iblinkinfo::parse(text),
            Format::IbQueryErrors => ibqueryerrors::parse(text),
            Format::PerfQuery => Ok(perfquery::parse(text)),
        }
    }
}
