//! What the fabric was like, as the file answers it.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params_from_iter};

use crate::model::{Cable, Node, Port, Then, Window};
use crate::{micros_of, time_of};
use ib_fabric::topology::End;
use ib_mad::Guid;

use super::frame::Frame;
use super::reader::{Reader, marks};
use super::state::State;
use super::tier::Tier;

/// How things were, by their numbers in the file.
type States = HashMap<u32, State>;

const CABLE: &str = "
    SELECT low.id, low_node.guid, low.number, low_node.id, high.id, high_node.guid, high.number,
        high_node.id, fabrics.id, fabrics.name, cables.until
    FROM cables JOIN links ON links.id = link
    JOIN ports AS low ON low.id = links.low JOIN nodes AS low_node ON low_node.id = low.node
    JOIN ports AS high ON high.id = links.high JOIN nodes AS high_node ON high_node.id = high.node
    JOIN fabrics ON fabrics.id = low_node.fabric";

/// A row of cables.
struct Found {
    fabric: i64,
    numbers: [u32; 2],
    nodes: [i64; 2],
    ends: [Port; 2],
    until: Option<i64>,
}

impl Found {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let name: String = row.get(9)?;
        let port = |at: usize| {
            let guid = Guid(row.get::<_, i64>(at)?.cast_unsigned());
            Ok::<_, rusqlite::Error>(Port {
                fabric: name.clone(),
                guid,
                port: row.get(at + 1)?,
                node: String::new(),
            })
        };
        Ok(Found {
            fabric: row.get(8)?,
            numbers: [row.get(0)?, row.get(4)?],
            nodes: [row.get(3)?, row.get(7)?],
            ends: [port(1)?, port(5)?],
            until: row.get(10)?,
        })
    }

    /// The cable, with its ends' names and how they were.
    fn cable(self, names: &HashMap<i64, String>, states: &States) -> Cable {
        let Found { numbers, nodes, mut ends, .. } = self;
        for (end, node) in ends.iter_mut().zip(nodes) {
            end.node = names.get(&node).cloned().unwrap_or_default();
        }
        let [low, high] = numbers.map(|port| states.get(&port).copied().unwrap_or_default());
        ends.sort_by_key(Port::end);
        // Both ends have what was found of the cable; what it ran at is what either said.
        Cable {
            ends,
            up: low.up(),
            verdict: low.verdict(),
            rate: low.rate().or_else(|| high.rate()),
        }
    }
}

impl Reader {
    pub(super) fn read_cables(&self, ends: &[End], window: Window) -> rusqlite::Result<Vec<Cable>> {
        let ports: Vec<u32> = self.at(ends)?.into_iter().map(|place| place.id).collect();
        if ports.is_empty() {
            return Ok(Vec::new());
        }
        let (from, to) = (micros_of(window.from), micros_of(window.to));
        let which = marks(ports.len(), "?");
        let mut statement = self.db.prepare(&format!(
            "{CABLE} WHERE link IN (SELECT id FROM links WHERE low IN ({which})
                 UNION SELECT id FROM links WHERE high IN ({which}))
             AND since <= ? AND (until IS NULL OR until > ?) ORDER BY since, cables.id"
        ))?;
        let values = ports.iter().chain(&ports).map(|port| Value::from(*port));
        let values = values.chain([Value::from(to), Value::from(from)]);
        let found: Vec<Found> = statement
            .query_map(params_from_iter(values), Found::read)?
            .collect::<rusqlite::Result<_>>()?;
        // As it was at the end of the window, or just before the sweep that missed it.
        let mut moments: BTreeMap<(i64, i64), Vec<Found>> = BTreeMap::new();
        for cable in found {
            let at = cable.until.map_or(to, |until| to.min(until - 1));
            moments.entry((at, cable.fabric)).or_default().push(cable);
        }
        let mut cables: BTreeMap<_, Cable> = BTreeMap::new();
        for ((at, fabric), found) in moments {
            let states = self.states(fabric, [Tier::AllPorts, Tier::Ports], at)?;
            let states = states.unwrap_or_default();
            let names = self.names(fabric, at)?;
            // One that was there twice is told as it was the last time.
            let told = found.into_iter().map(|it| it.cable(&names, &states));
            cables.extend(told.map(|cable| (cable.link(), cable)));
        }
        Ok(cables.into_values().collect())
    }

    pub(super) fn read_fabrics(&self, at: SystemTime) -> rusqlite::Result<Vec<Then>> {
        let at = micros_of(at);
        let mut statement = self.db.prepare("SELECT id, name FROM fabrics ORDER BY name")?;
        let fabrics: Vec<(i64, String)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut told = Vec::new();
        for (fabric, name) in fabrics {
            told.extend(self.then(fabric, name, at)?);
        }
        Ok(told)
    }

    fn then(&self, fabric: i64, name: String, at: i64) -> rusqlite::Result<Option<Then>> {
        let mut latest = self.db.prepare_cached(
            "SELECT began FROM sweeps WHERE fabric = ?1 AND began <= ?2
             ORDER BY began DESC LIMIT 1",
        )?;
        let sweep: Option<i64> = latest.query_row([fabric, at], |row| row.get(0)).optional()?;
        let Some(sweep) = sweep else { return Ok(None) };
        let Some(ports) = self.states(fabric, [Tier::AllPorts, Tier::Ports], sweep)? else {
            return Ok(None);
        };
        let up = self.states(fabric, [Tier::AllNodes, Tier::Nodes], sweep)?.unwrap_or_default();
        let names = self.names(fabric, sweep)?;
        let mut statement = self.db.prepare(
            "SELECT nodes.id, guid, kind FROM presences JOIN nodes ON nodes.id = node
             WHERE fabric = ?1 AND since <= ?2 AND (until IS NULL OR until > ?2)",
        )?;
        let mut nodes: Vec<Node> = statement
            .query_map([fabric, sweep], |row| {
                let id: u32 = row.get(0)?;
                let state = up.get(&id).copied().unwrap_or_default();
                Ok(Node {
                    guid: Guid(row.get::<_, i64>(1)?.cast_unsigned()),
                    name: names.get(&i64::from(id)).cloned().unwrap_or_default(),
                    kind: row.get(2)?,
                    up: state.up().unwrap_or(false),
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        nodes.sort_by_key(|node| node.guid);
        let mut statement = self.db.prepare(&format!(
            "{CABLE} WHERE low_node.fabric = ?1 AND since <= ?2 AND (until IS NULL OR until > ?2)"
        ))?;
        let mut cables = Vec::new();
        for found in statement.query_map([fabric, sweep], Found::read)? {
            cables.push(found?.cable(&names, &ports));
        }
        cables.sort_by_key(Cable::link);
        Ok(Some(Then { fabric: name, at: time_of(sweep), nodes, cables }))
    }

    /// How things were at a moment: the latest whole account before it, and what changed since. None
    /// if there is no whole one.
    fn states(
        &self,
        fabric: i64,
        [all, changes]: [Tier; 2],
        at: i64,
    ) -> rusqlite::Result<Option<States>> {
        let mut whole = self.db.prepare_cached(
            "SELECT began, data FROM frames WHERE tier = ?1 AND fabric = ?2 AND began <= ?3
             ORDER BY began DESC LIMIT 1",
        )?;
        let mut rows = whole.query((all as u8, fabric, at))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let from: i64 = row.get(0)?;
        let Ok(frame) = Frame::unpack(row.get_ref(1)?.as_blob()?) else { return Ok(None) };
        let mut states = States::new();
        follow(&mut states, &frame);
        let mut since = self.db.prepare_cached(
            "SELECT data FROM frames WHERE tier = ?1 AND fabric = ?2 AND began > ?3 AND began <= ?4
             ORDER BY began",
        )?;
        let mut rows = since.query((changes as u8, fabric, from, at))?;
        while let Some(row) = rows.next()? {
            if let Ok(frame) = Frame::unpack(row.get_ref(0)?.as_blob()?) {
                follow(&mut states, &frame);
            }
        }
        Ok(Some(states))
    }

    /// What people called the nodes at a moment; before the first name, by that.
    fn names(&self, fabric: i64, at: i64) -> rusqlite::Result<HashMap<i64, String>> {
        let mut statement = self.db.prepare_cached(
            "SELECT node, name, since FROM names JOIN nodes ON nodes.id = node
             WHERE fabric = ?1 ORDER BY node, since",
        )?;
        let mut names = HashMap::new();
        let mut rows = statement.query([fabric])?;
        while let Some(row) = rows.next()? {
            let (node, since): (i64, i64) = (row.get(0)?, row.get(2)?);
            if since <= at || !names.contains_key(&node) {
                names.insert(node, row.get(1)?);
            }
        }
        Ok(names)
    }
}

fn follow(states: &mut States, frame: &Frame) {
    for entry in frame.entries() {
        states.entry(entry.port).or_default().follow(frame, entry);
    }
}
