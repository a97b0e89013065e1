//! The SQL that reads the catalog: nodes, ports and cables.

use rusqlite::types::Value;
use rusqlite::{Result, Row, params, params_from_iter};

use crate::file::record_kind::guid_bits;
use crate::model::Port;
use ib_fabric::reference::{PortReference, Reference};
use ib_mad::{Guid, PortKey, PortNumber};

use super::{Sql, guid, marks};

/// The id of a port, and the port.
pub(crate) type PortRow = (u32, Port);

/// A cable by the ids of its ports, and when it was present.
#[derive(Clone, Copy, Debug)]
pub struct CablePresence {
    /// The id of its link.
    pub link: i64,
    /// The lower end first.
    pub ends: [u32; 2],
    pub(in crate::file) since: i64,
    pub(in crate::file) until: i64,
}

const PORTS: &str = "
    SELECT ports.id, fabrics.name, guid, number, coalesce(names.name, ''), host
    FROM ports JOIN nodes ON nodes.id = ports.node JOIN fabrics ON fabrics.id = nodes.fabric
    LEFT JOIN names ON names.node = nodes.id
        AND since = (SELECT max(since) FROM names WHERE names.node = nodes.id)";

statements! {
    /// The ids and names of counters.
    counters() -> rows Vec<(i64, String)>: "SELECT id, name FROM counters";

    /// The ids of a fabric's ports, with their nodes' and their numbers on them.
    port_ids(fabric: i64) -> rows Vec<(u32, u32, PortNumber)>:
        "SELECT ports.id, node, number FROM ports JOIN nodes ON nodes.id = node WHERE fabric = ?1";

    /// The ids, GUIDs and kinds of a fabric's nodes.
    nodes(fabric: i64) -> rows Vec<(u32, i64, String)>:
        "SELECT id, guid, kind FROM nodes WHERE fabric = ?1";

    /// The names and hosts of a fabric's nodes, with the sweeps from which on they had them; node by node, the
    /// earliest first.
    names(fabric: i64) -> rows Vec<(u32, i64, String, Option<String>)>:
        "SELECT node, since, name, host FROM names JOIN nodes ON nodes.id = node
         WHERE fabric = ?1 ORDER BY node, since";

    /// The names and hosts of a port's node, with the sweeps from which on it had them, the earliest first.
    names_of(port: u32) -> rows Vec<(i64, String, Option<String>)>:
        "SELECT since, name, host FROM names JOIN ports ON ports.node = names.node
         WHERE ports.id = ?1 ORDER BY since";

    /// The modules whose serial number begins with this, in any case: fabric, GUID, port, serial number, and the second
    /// until which each was there.
    modules(begins: &str) -> rows Vec<(String, i64, PortNumber, String, Option<i64>)>:
        "SELECT name, guid, port, serial, until FROM modules JOIN fabrics ON fabrics.id = fabric
         WHERE substr(serial, 1, length(?1)) = ?1 COLLATE NOCASE ORDER BY name, guid, port";

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

    /// The ports that match a node's name, host or GUID, and a port number.
    pub fn ports_called(
        self,
        name: &str,
        guid: Option<Guid>,
        number: Option<PortNumber>,
    ) -> Result<Vec<PortRow>> {
        // In any case. A name that several nodes share means all of them: each has GUID digits behind it.
        let of_node = " WHERE ports.node IN (SELECT node FROM names WHERE name = ?1 COLLATE NOCASE
                OR substr(name, 1, length(?1) + 1) = ?1 || '#' COLLATE NOCASE
                AND length(name) - length(?1) BETWEEN 7 AND 17
                AND substr(name, length(?1) + 2) NOT GLOB '*[^0-9a-f]*'
            UNION SELECT node FROM names WHERE host = ?1 COLLATE NOCASE
            UNION SELECT id FROM nodes WHERE guid = ?2) AND ports.number = coalesce(?3, ports.number)";
        let guid = guid.map(guid_bits);
        self.ports(of_node, [Value::from(name.to_owned()), guid.into(), number.into()])
    }

    /// The ports that a [`Reference`] means.
    pub fn ports_referred_to(self, called: &str) -> Result<Vec<PortRow>> {
        let reference = Reference::new(called);
        if let Some(link) = reference.link {
            return self.ports_at(&link.ends());
        }
        let mut found = Vec::new();
        for PortReference { node, number } in &reference.ports {
            found.extend(self.ports_of(node, Some(*number))?);
        }
        // The name of a node may look like a port.
        if found.is_empty() { self.ports_of(&reference.text, None) } else { Ok(found) }
    }

    fn ports_of(self, node: &str, number: Option<PortNumber>) -> Result<Vec<PortRow>> {
        // Short ones are names, even if all their letters are hex digits.
        let is_guid = node.len() > 10 || node.starts_with("0x");
        let guid = Reference::new(node).guid.filter(|_| is_guid);
        self.ports_called(node, guid, number)
    }

    /// Some ports, as far as the file has them.
    pub fn ports_at(self, ends: &[PortKey]) -> Result<Vec<PortRow>> {
        let which = format!(" WHERE (guid, number) IN (VALUES {})", marks(ends.len(), "(?, ?)"));
        let of = |PortKey { guid, number }: &PortKey| {
            [Value::from(guid_bits(*guid)), Value::from(*number)]
        };
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
            let guid = guid(row, 2)?.unwrap_or_default();
            let (fabric, port, node, host) = (row.get(1)?, row.get(3)?, row.get(4)?, row.get(5)?);
            Ok((row.get(0)?, Port { fabric, guid, port, node, host }))
        };
        statement.query_map(params_from_iter(values), read)?.collect()
    }

    /// The cables of all fabrics that were present in a time range, the earliest first.
    pub fn cable_presences(self, range: (i64, i64)) -> Result<Vec<CablePresence>> {
        self.cables(range, "")
    }

    /// The same of some ports, by their ids.
    pub fn cable_presences_of(
        self,
        ports: &[u32],
        range: (i64, i64),
    ) -> Result<Vec<CablePresence>> {
        let ids: Vec<String> = ports.iter().map(u32::to_string).collect();
        let ids = ids.join(",");
        let which = format!(
            " AND link IN (SELECT id FROM links WHERE low IN ({ids})
                           UNION SELECT id FROM links WHERE high IN ({ids}))"
        );
        self.cables(range, &which)
    }

    fn cables(self, (from, to): (i64, i64), which: &str) -> Result<Vec<CablePresence>> {
        let sql = format!(
            "SELECT link, low, high, since, coalesce(until, ?3) FROM cables JOIN links ON links.id = link
             WHERE since <= ?2 AND (until IS NULL OR until > ?1){which} ORDER BY since, cables.id"
        );
        let rows: Vec<(i64, u32, u32, i64, i64)> = self.rows(&sql, [from, to, i64::MAX])?;
        let rows = rows.into_iter();
        let cable = |(link, low, high, since, until)| CablePresence {
            link,
            ends: [low, high],
            since,
            until,
        };
        Ok(rows.map(cable).collect())
    }
}
