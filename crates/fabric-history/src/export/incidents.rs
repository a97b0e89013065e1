//! Incidents as a table: a row each, without their events in CSV.

use std::io::Write;

use crate::export::{ExportError, ExportFilter, Row, TableFormat, TableWriter};
use crate::file::reader::Reader;
use crate::incidents::{Incident, Incidents, MAX_INCIDENTS};
use crate::model::{Event, time};
use crate::source::SourceError;
use exposition::csv::Line;
use ib_fabric::topology::LinkId;

/// The fields of an [`Incident`].
const INCIDENTS: &[&str] = &[
    "began",
    "ended",
    "kind",
    "severity",
    "fabric",
    "place",
    "title",
    "cause",
    "planned",
    "repair",
    "advice",
    "node",
    "port",
    "link",
    "hosts",
    "host_count",
    "nodes",
    "links",
    "event_count",
];

impl Row for Incident {
    fn cells(&self, line: &mut Line) {
        let id = |id: Option<String>| id.unwrap_or_default();
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        line.text(&time::text(self.began)).text(&id(self.ended.map(time::text)));
        line.text(self.kind.label()).text(self.severity.label()).text(&self.fabric);
        line.text(&self.place).text(&self.title).text(&optional(&self.cause));
        line.text(if self.planned { "true" } else { "false" });
        line.text(&optional(&self.repair)).text(&optional(&self.advice));
        line.text(&id(self.node.map(|guid| guid.to_string()))).number(self.port);
        line.text(&id(self.link.map(|link| link.to_string()))).text(&self.hosts.join("; "));
        for count in [self.host_count, self.nodes, self.links, self.event_count] {
            line.number(Some(count as u64));
        }
    }
}

/// Writes incidents, a row per incident; returns the number of rows.
pub fn incidents(
    reader: &Reader,
    filter: &ExportFilter,
    format: TableFormat,
    out: impl Write,
) -> Result<u64, ExportError> {
    let found =
        Incidents::find(reader, filter.window, MAX_INCIDENTS).map_err(|error| match error {
            SourceError::File(error) => ExportError::History(error),
            SourceError::Address(..) => {
                ExportError::Write(std::io::Error::other(error.to_string()))
            }
        })?;
    let mut table = TableWriter::new(INCIDENTS, format, out)?;
    let mut rows = 0;
    for incident in found.incidents.iter().filter(|incident| is_exported(incident, filter)) {
        rows += 1;
        table.row(incident)?;
    }
    table.flush()?;
    Ok(rows)
}

/// Whether one of its events is of a node or port that is exported.
fn is_exported(incident: &Incident, filter: &ExportFilter) -> bool {
    let is_of = |event: &Event| {
        let ends = event.link.map(LinkId::ends);
        let ends = ends.iter().flatten().copied().chain(event.port_key());
        let mut nodes = ends.clone().map(|end| end.guid).chain(event.node);
        let of_node = filter.nodes.is_empty() || nodes.any(|guid| filter.nodes.contains(&guid));
        let of_port =
            filter.ports.is_empty() || ends.clone().any(|end| filter.ports.contains(&end));
        of_node && of_port
    };
    let is_all = filter.nodes.is_empty() && filter.ports.is_empty();
    is_all || incident.events.iter().any(is_of)
}
