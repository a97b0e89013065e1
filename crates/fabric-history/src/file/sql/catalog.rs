//! The SQL that reads the catalog: nodes, ports and cables.

use rusqlite::types::Value;
use rusqlite::{Result, Row, params, params_from_iter};

use crate::file::record_kind::guid_bits;
use crate::model::Port;
use ib_fabric::topology::End;
use ib_mad::{Guid, PortNumber};

use super::{Sql, guid, marks};

/// The id of a port, and the port.
pub(crate) type PortRow = (u32, Port);

/// A cable by the ids of its ports, and when it was present.
#[derive(Clone, Copy, Debug)]
pub struct CablePresence {
    /// The lower end first.
    pub ends: [u32; 2],
    pub(in crate::file) since: i64,
    pub(in crate::file) until: i64,
}

/// A cable with its ends; their nodes have no names yet.
#[derive(Clone, Debug)]
pub(crate) struct CableRow {
    pub fabric: i64,
    pub ports: [u32; 2],
    pub nodes: [u32; 2],
    pub ends: [Port; 2],
    pub until: Option<i64>,
}

const PORTS: &str = "
    SELECT ports.id, fabrics.name, guid, number, coalesce(
        (SELECT name FROM names WHERE names.node = nodes.id ORDER BY since DESC LIMIT 1), '')
    FROM ports JOIN nodes ON nodes.id = ports.node JOIN fabrics ON fabrics.id = nodes.fabric";

const CABLES: &str = "
    SELECT fabrics.id, fabrics.name, cables.until, low.id, low_node.id, low_node.guid, low.number,
        high.id, high_node.id, high_node.guid, high.number
    FROM cables JOIN links ON links.id = link
    JOIN ports AS low ON low.id = links.low JOIN nodes AS low_node ON low_node.id = low.node
    JOIN ports AS high ON high.id = links.high JOIN nodes AS high_node ON high_node.id = high.node
    JOIN fabrics ON fabrics.id = low_node.fabric";

statements! {
    /// The ids and names of counters.
    counters() -> rows Vec<(i64, String)>: "SELECT id, name FROM counters";

    /// The ids of a fabric's ports, with their nodes' and their numbers on them.
    port_ids(fabric: i64) -> rows Vec<(u32, u32, PortNumber)>:
        "SELECT ports.id, node, number FROM ports JOIN nodes ON nodes.id = node WHERE fabric = ?1";

    /// The names of a fabric's nodes, with the sweeps from which on they had them; node by node, the earliest
    /// first.
    names(fabric: i64) -> rows Vec<(u32, i64, String)>:
        "SELECT node, since, name FROM names JOIN nodes ON nodes.id = node
         WHERE fabric = ?1 ORDER BY node, since";

    /// The presence intervals of a fabric's nodes that overlap a time range.
    presences(fabric: i64, from: i64, to: i64) -> rows Vec<(u32, i64, i64)>:
        "SELECT node, since, coalesce(until, 9223372036854775807) FROM presences
         JOIN nodes ON nodes.id = node
         WHERE fabric = ?1 AND since <= ?3 AND (until IS NULL OR until > ?2)";
}

impl Sql<'_> {
    pub fn last_port(self) -> Result<u32> {
        Ok(self.value("SELECT max(id) FROM ports", [])?.unwrap_or(0))
    }

    /// The ports that match a node's name or GUID, and a port number.
    pub fn ports_called(
        self,
        name: &str,
        guid: Option<Guid>,
        number: Option<PortNumber>,
    ) -> Result<Vec<PortRow>> {
        // A name that several nodes share means all of them: each has GUID digits behind it.
        let of_node = " WHERE ports.node IN (SELECT node FROM names WHERE name = ?1
                OR name > ?1 || '#' AND name < ?1 || '$' AND length(name) - length(?1) BETWEEN 7 AND 17
                AND substr(name, length(?1) + 2) NOT GLOB '*[^0-9a-f]*'
            UNION SELECT id FROM nodes WHERE guid = ?2) AND ports.number = coalesce(?3, ports.number)";
        let guid = guid.map(guid_bits);
        self.ports(of_node, [Value::from(name.to_owned()), guid.into(), number.into()])
    }

    /// Some ports, as far as the file has them.
    pub fn ports_at(self, ends: &[End]) -> Result<Vec<PortRow>> {
        let which = format!(" WHERE (guid, number) IN (VALUES {})", marks(ends.len(), "(?, ?)"));
        let of = |(guid, number): &End| [Value::from(guid_bits(*guid)), Value::from(*number)];
        if ends.is_empty() { Ok(Vec::new()) } else { self.ports(&which, ends.iter().flat_map(of)) }
    }

    pub fn ports_by_id(self, ids: impl IntoIterator<Item = u32>) -> Result<Vec<PortRow>> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let mut ports = Vec::new();
        // SQLite limits the length of a statement; this number of ids takes a tenth of it.
        for ids in ids.chunks(10_000) {
            ports.extend(self.ports(&format!(" WHERE ports.id IN ({})", ids.join(",")), [])?);
        }
        Ok(ports)
    }

    pub fn all_ports(self) -> Result<Vec<PortRow>> {
        self.ports("", [])
    }

    fn ports(self, which: &str, values: impl IntoIterator<Item = Value>) -> Result<Vec<PortRow>> {
        let mut statement = self.0.prepare(&format!("{PORTS}{which} ORDER BY guid, number"))?;
        let read = |row: &Row<'_>| {
            let mut port = port(row, 1, 2)?;
            port.node = row.get(4)?;
            Ok((row.get(0)?, port))
        };
        statement.query_map(params_from_iter(values), read)?.collect()
    }

    /// The ids, GUIDs and kinds of a fabric's nodes.
    pub fn nodes(self, fabric: i64) -> Result<Vec<(u32, Guid, String)>> {
        let sql = "SELECT id, guid, kind FROM nodes WHERE fabric = ?1";
        let rows: Vec<(u32, i64, String)> = self.rows(sql, [fabric])?;
        let rows = rows.into_iter();
        Ok(rows.map(|(id, guid, kind)| (id, Guid(guid.cast_unsigned()), kind)).collect())
    }

    /// The cables of all fabrics that were present in a time range.
    pub fn cable_presences(self, (from, to): (i64, i64)) -> Result<Vec<CablePresence>> {
        let sql =
            "SELECT low, high, since, coalesce(until, ?3) FROM cables JOIN links ON links.id = link
                   WHERE since <= ?2 AND (until IS NULL OR until > ?1)";
        let rows: Vec<(u32, u32, i64, i64)> = self.rows(sql, [from, to, i64::MAX])?;
        let rows = rows.into_iter();
        let cable = |(low, high, since, until)| CablePresence { ends: [low, high], since, until };
        Ok(rows.map(cable).collect())
    }

    /// The cables of some ports that were present in a time range, the earliest first.
    pub fn cables_at(self, ports: &[u32], (from, to): (i64, i64)) -> Result<Vec<CableRow>> {
        let which = marks(ports.len(), "?");
        let sql = format!(
            "{CABLES} WHERE link IN (SELECT id FROM links WHERE low IN ({which})
                 UNION SELECT id FROM links WHERE high IN ({which}))
             AND since <= ? AND (until IS NULL OR until > ?) ORDER BY since, cables.id"
        );
        let values = ports.iter().chain(ports).map(|port| Value::from(*port));
        let values = values.chain([Value::from(to), Value::from(from)]);
        self.0.prepare(&sql)?.query_map(params_from_iter(values), cable)?.collect()
    }

    /// The cables of a fabric that were present in a sweep.
    pub fn cables_in(self, fabric: i64, began: i64) -> Result<Vec<CableRow>> {
        let sql = format!(
            "{CABLES} WHERE low_node.fabric = ?1 AND since <= ?2 AND (until IS NULL OR until > ?2)"
        );
        self.0.prepare_cached(&sql)?.query_map([fabric, began], cable)?.collect()
    }
}

/// A port whose GUID and number are in columns one after the other; its node has no name.
fn port(row: &Row<'_>, fabric: usize, column: usize) -> Result<Port> {
    let guid = guid(row, column)?.unwrap_or_default();
    Ok(Port { fabric: row.get(fabric)?, guid, port: row.get(column + 1)?, node: String::new() })
}

fn cable(row: &Row<'_>) -> Result<CableRow> {
    Ok(CableRow {
        fabric: row.get(0)?,
        until: row.get(2)?,
        ports: [row.get(3)?, row.get(7)?],
        nodes: [row.get(4)?, row.get(8)?],
        ends: [port(row, 1, 5)?, port(row, 1, 9)?],
    })
}
