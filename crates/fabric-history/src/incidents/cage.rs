//! A cage of a switch, as events of links name it.

use serde_json::Value;

/// A cage of a switch that holds the ports of several links.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cage {
    /// The GUID that identifies the switch.
    pub guid: String,
    /// Its number there.
    pub number: u64,
    /// The name of the switch.
    switch: String,
}

impl Cage {
    /// The cages that the detail of a link's event names.
    pub fn of_event(detail: &Value) -> impl Iterator<Item = Cage> {
        let cages = detail["cages"].as_array().into_iter().flatten();
        cages.filter_map(|cage| {
            Some(Cage {
                guid: cage["guid"].as_str()?.to_owned(),
                number: cage["cage"].as_u64()?,
                switch: cage["switch"].as_str()?.to_owned(),
            })
        })
    }

    /// `leaf-1 cage 19`
    pub fn label(&self) -> String {
        format!("{} cage {}", self.switch, self.number)
    }

    /// Whether both are the same, whatever the name of the switch.
    pub fn is_same(&self, other: &Cage) -> bool {
        (&self.guid, self.number) == (&other.guid, other.number)
    }
}
